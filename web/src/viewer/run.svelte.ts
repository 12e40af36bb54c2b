/** One run in view: what it is, the window of its transcript, its stream, what the reader opened. */

import { board } from "../api/board.svelte";
import { ApiError, runs } from "../api/client";
import { EventFeed } from "../api/stream";
import type {
  Entry,
  EntryKind,
  Outline,
  RunDetail,
  RunView,
  SearchMatch,
  TranscriptRecord,
} from "../api/types";
import { TERMINAL } from "../api/types";
import { outlineOf, searchIn } from "../sandbox/positions";
import { ForeignReading } from "../sandbox/reading.svelte";
import { buildRows, type Row, type Rows } from "../transcript/rows";
import { EntryWindow, orderOf } from "../transcript/window";

const FLUSH_MS = 80;
/** More entries than anybody reads are drawn less often. */
const FAST_FLUSH_MS = 200;
const FAST = 100;
const OUTLINE_MS = 2000;
const AGAIN_MS = 1500;
const MOST_ASKED = 1000;
const NO_ROWS: Rows = { rows: [], rowOf: new Map() };

export interface Found {
  matches: SearchMatch[];
  /** Where a further search begins; null when all was searched. */
  next: number | null;
}

export class RunInView {
  run = $state.raw<RunDetail | null>(null);
  private told = $state.raw<Outline | null>(null);
  problem = $state.raw<ApiError | null>(null);
  /** Changes when entries do; `window` itself is plain data. */
  version = $state(0);
  total = $state(0);
  missed = $state(0);
  /** What the runtime said of itself, which the run's own record tells only at its end. */
  begun = $state.raw<Extract<Entry, { kind: "init" }> | null>(null);
  following = $state(false);
  /** Whether entries may still come: a run's last state is told before its last entries. */
  growing = $state(false);
  connected = $state(true);
  loaded = $state(false);
  hidden = $state.raw<ReadonlySet<EntryKind>>(new Set());
  opened = $state.raw<ReadonlyMap<string, boolean>>(new Map());
  allOpen = $state(false);
  /** Grows when other entries took the place of those that were shown. */
  swaps = $state(0);
  /** The position that the reader is at. */
  reading: (() => number) | null = null;
  readonly window: EntryWindow;
  readonly foreign: ForeignReading;

  private feed: EventFeed | null = null;
  private unheard: (() => void) | null = null;
  private flushing: ReturnType<typeof setTimeout> | null = null;
  private outlineAt = 0;
  private outlining: ReturnType<typeof setTimeout> | null = null;
  private gone = false;
  private fast = false;

  /** Totals, errors and times of the entries that are shown, whoever made them. */
  readonly outline = $derived.by(() => {
    const { book } = this.foreign;
    return book && this.told ? outlineOf(book.entries, this.told) : this.told;
  });
  readonly plain = $derived.by(() => {
    const kinds = this.outline?.kinds;
    return !!kinds && !kinds.init && !kinds.result && !kinds.tool_call && !kinds.thinking;
  });
  readonly live = $derived(this.run !== null && !TERMINAL.has(this.run.status));
  readonly shown: Rows = $derived.by(() => {
    void this.version;
    if (!this.loaded) return NO_ROWS;
    const { plain, hidden, opened, allOpen } = this;
    return buildRows(this.window.entries, { plain, hidden, opened, unfold: allOpen });
  });

  constructor(readonly id: string) {
    this.foreign = new ForeignReading(id, {
      swapped: () => void this.swap(),
      played: (record, order) => this.play(record, order),
    });
    this.window = new EntryWindow(async (from, limit, signal) =>
      this.foreign.book
        ? this.foreign.book.page(from, limit)
        : runs.page(id, from, Math.min(limit, MOST_ASKED), signal),
    );
  }

  /** Read the run and the entries to begin with: those at a link, the end of a live run, the top. */
  async open(entryId: string | null): Promise<number | "end"> {
    try {
      const asked = entryId ? runs.entry(this.id, entryId).catch(() => null) : null;
      // Most runs are over and read from the top: their first page is on its way with the rest.
      const top = entryId ? null : this.window.open(0);
      const [run, outline, entry] = await Promise.all([
        runs.show(this.id),
        runs.outline(this.id),
        asked,
        top,
      ]);
      this.run = run;
      this.begun = this.window.entries.find((one) => one.kind === "init") ?? null;
      this.told = outline;
      this.window.total = Math.max(outline.total, this.window.total);
      const at = entry ? entry.seq : this.live ? "end" : 0;
      if (at === "end") await this.window.openEnd();
      else if (at || !top) await this.window.open(at);
      this.following = at === "end";
      this.loaded = true;
      this.changed();
      if (this.live) this.listen();
      void this.foreign.open(run);
      return at;
    } catch (problem) {
      this.problem = asError(problem);
      return 0;
    }
  }

  close(): void {
    this.gone = true;
    this.feed?.end();
    this.unheard?.();
    this.foreign.close();
    if (this.flushing) clearTimeout(this.flushing);
    if (this.outlining) clearTimeout(this.outlining);
  }

  /** Show the entries around a position; true once they are held. */
  async reach(seq: number): Promise<boolean> {
    if (seq >= this.window.from && seq < this.window.to) return true;
    return this.moved(this.window.open(seq));
  }

  async reachEnd(): Promise<boolean> {
    this.missed = 0;
    this.draw();
    if (this.window.atEnd) return true;
    return this.moved(this.window.openEnd());
  }

  extendUp = (): Promise<boolean> => this.moved(this.window.extendUp());
  extendDown = (): Promise<boolean> => this.moved(this.window.extendDown());

  toggle(key: string, open: boolean): void {
    this.opened = new Map(this.opened).set(key, open);
  }

  openAll(open: boolean): void {
    this.allOpen = open;
    this.opened = new Map();
  }

  isOpen(row: Row): boolean {
    return this.opened.get(row.key) ?? (this.allOpen || opensItself(row));
  }

  async refresh(): Promise<void> {
    try {
      this.run = await runs.show(this.id);
    } catch (problem) {
      this.problem = asError(problem);
    }
  }

  async whole(entryId: string): Promise<Entry> {
    return this.foreign.book?.whole(entryId) ?? runs.entry(this.id, entryId);
  }

  /** Entries that hold some words, from a position on. */
  async search(words: string, from: number, signal: AbortSignal): Promise<Found> {
    const { book } = this.foreign;
    if (!book) return runs.search(this.id, words, from, signal);
    return { matches: searchIn(book.entries, words), next: null };
  }

  private async moved(work: Promise<boolean>): Promise<boolean> {
    try {
      const done = await work;
      if (done && !this.gone) this.changed();
      return done;
    } catch {
      this.connected = false;
      return false;
    }
  }

  private listen(): void {
    this.growing = true;
    // A hidden tab rests; the stream that all tabs share tells it how its run fares.
    this.unheard ??= board.hear((notice) => {
      if (document.hidden && notice.name === "run" && notice.run.id === this.id)
        this.update(notice.run);
    });
    const record = (type: TranscriptRecord["type"]) => (data: string, id: string) =>
      this.heard(type, data, id);
    this.feed = new EventFeed(
      (after) => `/api/runs/${this.id}/stream${after ? `?after=${encodeURIComponent(after)}` : ""}`,
      {
        connected: (is) => {
          this.connected = is;
        },
        events: {
          entry: record("entry"),
          append: record("append"),
          replace: record("replace"),
          status: (data) => this.update(JSON.parse(data) as RunView),
          usage: (data) => this.update(JSON.parse(data) as Partial<RunView>),
          reset: () => this.restart(),
          end: (data) => this.ended(JSON.parse(data) as RunView),
        },
      },
      this.window.cursor,
    );
  }

  private heard(type: TranscriptRecord["type"], data: string, id: string): void {
    if (this.foreign.book) return;
    const parsed = JSON.parse(data) as Entry | TranscriptRecord;
    const record = (
      type === "entry" ? { type, entry: parsed } : { ...parsed, type }
    ) as TranscriptRecord;
    this.play(record, orderOf(id));
  }

  /** The same place by another parser; who follows stays at the end. */
  private async swap(): Promise<void> {
    const before = this.reading ? this.window.at(this.reading()) : undefined;
    if (!(await this.moved(this.window.reload()))) return;
    if (this.following) await this.reachEnd();
    else if (before) await this.meet(before);
    this.swaps++;
  }

  /** Have an entry held that may stand elsewhere now. */
  private async meet(before: Entry): Promise<void> {
    const seq = await this.placeOf(before.id);
    if (seq !== null) await this.reach(seq);
  }

  /** Where an entry stands among those that are shown; null if there is none such. */
  async placeOf(entryId: string): Promise<number | null> {
    const { book } = this.foreign;
    if (book) return book.find(entryId);
    return runs.entry(this.id, entryId).then(
      (entry) => entry.seq,
      () => null,
    );
  }

  private play(record: TranscriptRecord, order: number): void {
    const before = this.window.total;
    if (record.type === "entry" && record.entry.kind === "init") this.begun = record.entry;
    this.window.apply(record, order, this.following);
    if (!this.following) this.missed += this.window.total - before;
    this.soon();
  }

  /** Many records become one drawing. */
  private soon(): void {
    this.flushing ??= setTimeout(
      () => {
        this.flushing = null;
        this.fast = this.window.total - this.total > FAST;
        this.changed();
        this.surveyed();
      },
      this.fast ? FAST_FLUSH_MS : FLUSH_MS,
    );
  }

  /** Draw at once what was to be drawn soon. */
  private draw(): void {
    if (!this.flushing) return;
    clearTimeout(this.flushing);
    this.flushing = null;
    this.changed();
  }

  private changed(): void {
    this.total = this.window.total;
    this.version++;
  }

  private update(changes: Partial<RunView>): void {
    if (this.run) this.run = { ...this.run, ...changes, result: changes.result ?? this.run.result };
  }

  /** The timeline follows a live run, but not faster than anybody looks. */
  private surveyed(): void {
    if (this.outlining || this.gone) return;
    const wait = Math.max(0, this.outlineAt + OUTLINE_MS - performance.now());
    this.outlining = setTimeout(async () => {
      this.outlineAt = performance.now();
      this.outlining = null;
      this.told = await runs.outline(this.id).catch(() => this.told);
    }, wait);
  }

  /** Another transcript took the old one's place: read it again behind what is shown. */
  private async restart(): Promise<void> {
    if (!this.window.total || this.foreign.book) return;
    this.feed?.end();
    if (!(await this.moved(this.window.reload()))) {
      if (!this.gone) setTimeout(() => void this.restart(), AGAIN_MS);
      return;
    }
    if (this.gone) return;
    if (this.following) await this.reachEnd();
    this.listen();
  }

  private async ended(view: RunView): Promise<void> {
    this.feed?.end();
    this.update(view);
    await this.refresh();
    this.told = await runs.outline(this.id).catch(() => this.told);
    this.changed();
    this.growing = false;
  }
}

export function opensItself(row: Row): boolean {
  if (row.type === "tool") return !!row.result?.isError || row.diffs.length > 0;
  if (row.type === "plan") return row.change === null;
  return row.type === "orphan" && row.result.isError;
}

function asError(problem: unknown): ApiError {
  return problem instanceof ApiError ? problem : new ApiError(0, "failed", String(problem));
}
