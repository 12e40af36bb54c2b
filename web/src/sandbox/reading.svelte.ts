/** One run read by its adapter's own parser in the sandbox, while the host's records are shown.

The book is in force once it has caught up; after any failure it never is (U5). */

import { request, runs } from "../api/client";
import { EventFeed } from "../api/stream";
import type { RunDetail, TranscriptRecord } from "../api/types";
import { plural } from "../words/format";
import { type ForeignParser, foreignParser, refuseKnown, remember } from "./adapter";
import { Book, isParsed, type PrintedLine } from "./build";
import { ParserFailure, SandboxFrame } from "./frame";

const BATCH = 500;
const FLUSH_MS = 80;
/** More lines than a page should hold; the host's records of them are read instead. */
const MOST_LINES = 50_000;

interface LinePage {
  lines: PrintedLine[];
  next: number;
  complete: boolean;
}

export interface BookReader {
  /** The book took the place of the host's records, or gave it back. */
  swapped(): void;
  played(record: TranscriptRecord, order: number): void;
}

export class ForeignReading {
  /** Why the adapter's parser is not used. */
  failure = $state<string | null>(null);
  book = $state.raw<Book | null>(null);
  counts = $state("");
  private parser: ForeignParser | null = null;
  private frame: SandboxFrame | null = null;
  private feed: EventFeed | null = null;
  private waiting: PrintedLine[] = [];
  private flushing = false;
  private over = false;
  private gone = false;
  private next = 0;
  private attempt = 0;

  constructor(
    private readonly id: string,
    private readonly reader: BookReader,
  ) {}

  /** Read the run so far, then follow it. */
  async open(run: RunDetail): Promise<void> {
    let key = "";
    try {
      const parser = await foreignParser(run.adapterType);
      if (!parser || this.gone) return;
      key = `${parser.key} run ${this.id}`;
      refuseKnown(key);
      await this.load(parser);
      const book = new Book(parser.renumber);
      await this.catchUp(book);
      if (this.gone) return;
      this.book = book;
      this.count();
      this.reader.swapped();
      if (book.complete) this.frame?.close();
      else this.follow(key);
    } catch (problem) {
      this.fail(key, problem);
    }
  }

  close(): void {
    this.gone = true;
    this.feed?.end();
    this.frame?.close();
  }

  private async load(parser: ForeignParser): Promise<void> {
    this.parser = parser;
    this.frame = new SandboxFrame();
    try {
      await this.frame.load(parser.source);
    } catch (problem) {
      if (!this.gone) remember(parser.key, words(problem));
      throw problem;
    }
  }

  private async catchUp(book: Book): Promise<void> {
    for (;;) {
      const page = await request<LinePage>(
        `/api/runs/${this.id}/lines?from=${this.next}&limit=${BATCH}`,
      );
      await this.read(book, page.lines);
      this.next = page.next;
      if (this.next > MOST_LINES) throw new ParserFailure(`the run has over ${MOST_LINES} lines`);
      if (page.complete) await this.finish(book);
      if (this.gone || page.lines.length < BATCH) return;
    }
  }

  private async read(book: Book, lines: PrintedLine[]): Promise<TranscriptRecord[]> {
    const records: TranscriptRecord[] = [];
    for (let at = 0; at < lines.length; ) {
      const { attempt } = lines[at]!;
      let to = at + 1;
      while (lines[to]?.attempt === attempt) to++;
      if (attempt !== this.attempt) records.push(...(await this.turn(book, attempt)));
      records.push(...(await this.ask(book, lines.slice(at, to))));
      at = to;
    }
    return records;
  }

  private async ask(book: Book, lines: PrintedLine[]): Promise<TranscriptRecord[]> {
    const asked = lines.filter(isParsed);
    const answers = await this.frame!.parse(asked.map((line) => [line.text, line.ts]));
    let at = 0;
    return lines.flatMap((line) => book.add(line, isParsed(line) ? answers[at++] : null));
  }

  /** Another attempt begins: its parser knows nothing of the one before. */
  private async turn(book: Book, attempt: number): Promise<TranscriptRecord[]> {
    const before = this.attempt;
    this.attempt = attempt;
    if (!before) return [];
    this.frame?.close();
    await this.load(this.parser!);
    return this.notes(book, before);
  }

  private async finish(book: Book): Promise<TranscriptRecord[]> {
    const records = await this.notes(book, this.attempt);
    book.complete = true;
    return records;
  }

  /** What the host said at the end of an attempt; no line holds it. */
  private async notes(book: Book, attempt: number): Promise<TranscriptRecord[]> {
    const outline = await runs.outline(this.id);
    const part = outline.attempts.find((one) => one.attempt === attempt);
    if (!part) return [];
    const from = Math.max(part.fromSeq, part.fromSeq + part.total - 20);
    const { entries } = await runs.page(this.id, from, 20);
    const own = entries.filter((one) => one.attempt === attempt && one.id.includes(".end"));
    return own.flatMap((entry) => book.note(entry));
  }

  private follow(key: string): void {
    this.feed = new EventFeed(
      (after) => `/api/runs/${this.id}/stream?as=lines&after=${after}`,
      {
        events: {
          line: (data) => {
            this.waiting.push(JSON.parse(data) as PrintedLine);
            this.soon(key);
          },
          end: () => {
            this.over = true;
            this.feed?.end();
            this.soon(key);
          },
        },
      },
      `lines.${this.next}`,
    );
  }

  /** Many lines become one batch, and one batch is under way at a time. */
  private soon(key: string): void {
    if (this.flushing) return;
    this.flushing = true;
    setTimeout(async () => {
      try {
        while (!this.gone && (this.waiting.length || this.over)) {
          if (!this.waiting.length) return await this.end();
          this.played(await this.read(this.book!, this.waiting.splice(0, BATCH)));
        }
      } catch (problem) {
        this.fail(key, problem);
      } finally {
        this.flushing = false;
      }
    }, FLUSH_MS);
  }

  private async end(): Promise<void> {
    this.over = false;
    this.played(await this.finish(this.book!));
    this.frame?.close();
  }

  private played(records: TranscriptRecord[]): void {
    if (this.gone || !this.book) return;
    this.count();
    const before = this.book.order - records.length;
    for (const [index, record] of records.entries()) this.reader.played(record, before + index + 1);
  }

  private count(): void {
    const { repaired, dropped, thrown } = this.book!;
    const told = [
      repaired ? `${plural(repaired, "entry", "entries")} repaired` : "",
      dropped ? `${dropped} dropped` : "",
      thrown ? `it threw at ${plural(thrown, "line")}` : "",
    ];
    this.counts = told.filter(Boolean).join(", ");
  }

  private fail(key: string, problem: unknown): void {
    this.feed?.end();
    this.frame?.close();
    if (this.gone) return;
    this.failure = words(problem);
    if (key && problem instanceof ParserFailure) remember(key, this.failure);
    if (!this.book) return;
    this.book = null;
    this.reader.swapped();
  }
}

function words(problem: unknown): string {
  return problem instanceof Error ? problem.message : String(problem);
}
