/** The part of a run's transcript that the browser holds: a window of entries without gaps.

It grows at its ends as the reader moves, and with the run while it reaches the run's end. */

import type { Entry, TranscriptPage, TranscriptRecord } from "../api/types";

export const MOST_HELD = 1500;
export const PAGE = 300;

export type FetchPage = (
  from: number,
  limit: number,
  signal?: AbortSignal,
) => Promise<TranscriptPage>;

export class EntryWindow {
  from = 0;
  entries: Entry[] = [];
  total = 0;
  complete = false;
  cursor: string | null = null;
  /** Which end a run of requests is under way for. */
  private loading: AbortController | null = null;
  /** Where an entry stands, and up to which record of the run its text is known. */
  private place = new Map<string, { seq: number; asOf: number }>();
  private totalAsOf = 0;

  constructor(private readonly fetchPage: FetchPage) {}

  get to(): number {
    return this.from + this.entries.length;
  }

  get atEnd(): boolean {
    return this.to >= this.total;
  }

  get busy(): boolean {
    return this.loading !== null;
  }

  at(seq: number): Entry | undefined {
    return this.entries[seq - this.from];
  }

  /** Replace the window by the entries around a position. */
  async open(seq: number): Promise<boolean> {
    this.loading?.abort();
    const first = Math.max(0, Math.floor(seq - PAGE / 2));
    return this.load(first, PAGE, (page) => this.replace(first, page));
  }

  /** Replace the window by the last entries, however many there are by now. */
  async openEnd(): Promise<boolean> {
    this.loading?.abort();
    let from = Math.max(0, this.total - PAGE);
    const done = await this.load(from, PAGE, (page) => this.replace(from, page));
    if (!done || this.atEnd) return done;
    from = Math.max(0, this.total - PAGE);
    return this.load(from, PAGE, (page) => this.replace(from, page));
  }

  async extendUp(): Promise<boolean> {
    if (this.loading || this.from === 0) return false;
    const from = Math.max(0, this.from - PAGE);
    return this.load(from, this.from - from, (page) => this.prepend(from, page));
  }

  async extendDown(): Promise<boolean> {
    if (this.loading || this.atEnd) return false;
    const from = this.to;
    return this.load(from, PAGE, (page) => this.append(from, page));
  }

  /** Read the held entries again, as when another parser gives them. */
  async reload(): Promise<boolean> {
    this.loading?.abort();
    const from = this.from;
    const limit = Math.max(PAGE, this.entries.length);
    this.total = 0;
    this.totalAsOf = 0;
    this.cursor = null;
    const done = await this.load(from, limit, (page) => this.replace(from, page));
    return done && !this.entries.length && this.total ? this.openEnd() : done;
  }

  /** Play a record of the live stream; true if it changed what is held.

  A page may have been read later than the stream tells: what it held already is not played again. */
  apply(record: TranscriptRecord, order: number, follow: boolean): boolean {
    if (record.type === "entry") return this.grow(record.entry, order, follow);
    const known = this.place.get(record.id);
    if (!known || order <= known.asOf) return false;
    const index = known.seq - this.from;
    const old = this.entries[index];
    if (!old) return false;
    known.asOf = order;
    if (record.type === "replace") this.entries[index] = { ...record.entry, seq: old.seq };
    else if ("text" in old) this.entries[index] = { ...old, text: old.text + record.text } as Entry;
    return true;
  }

  private grow(entry: Entry, order: number, follow: boolean): boolean {
    if (order <= this.totalAsOf) return false;
    this.totalAsOf = order;
    const seq = this.total;
    const held = this.to === seq;
    this.total = seq + 1;
    // A reader elsewhere keeps the entries that are read; the new ones wait on the server.
    if (!held || (!follow && this.entries.length >= MOST_HELD)) return false;
    this.entries.push({ ...entry, seq });
    this.place.set(entry.id, { seq, asOf: order });
    if (follow && this.entries.length > MOST_HELD + PAGE) this.dropFirst(PAGE);
    return true;
  }

  private async load(
    from: number,
    limit: number,
    take: (page: TranscriptPage) => void,
  ): Promise<boolean> {
    const mine = new AbortController();
    this.loading = mine;
    try {
      const page = await this.fetchPage(from, limit, mine.signal);
      if (mine.signal.aborted) return false;
      this.total = Math.max(this.total, page.total);
      this.totalAsOf = Math.max(this.totalAsOf, orderOf(page.cursor));
      this.complete = page.complete;
      this.cursor ??= page.cursor;
      take(page);
      return true;
    } catch (problem) {
      if (mine.signal.aborted) return false;
      throw problem;
    } finally {
      if (this.loading === mine) this.loading = null;
    }
  }

  private replace(from: number, page: TranscriptPage): void {
    this.from = from;
    this.entries = [];
    this.place.clear();
    this.append(from, page);
  }

  private append(from: number, page: TranscriptPage): void {
    const asOf = orderOf(page.cursor);
    for (const entry of page.entries) {
      const seq = from++;
      if (seq < this.to) continue;
      this.entries.push({ ...entry, seq });
      this.place.set(entry.id, { seq, asOf });
    }
    if (this.entries.length > MOST_HELD) this.dropFirst(this.entries.length - MOST_HELD);
  }

  private prepend(from: number, page: TranscriptPage): void {
    const fresh = page.entries.map((entry, index) => ({ ...entry, seq: from + index }));
    const asOf = orderOf(page.cursor);
    for (const { id, seq } of fresh) this.place.set(id, { seq, asOf });
    this.entries = [...fresh, ...this.entries];
    this.from = from;
    while (this.entries.length > MOST_HELD) this.place.delete(this.entries.pop()!.id);
  }

  private dropFirst(count: number): void {
    for (const entry of this.entries.splice(0, count)) this.place.delete(entry.id);
    this.from += count;
  }
}

/** The place of an event's id (`<attempt>.<record>.<version>`) in the order of a run's records. */
export function orderOf(id: string): number {
  const [attempt, record] = id.split(".", 2).map(Number);
  return (attempt || 0) * 1e11 + (record || 0);
}
