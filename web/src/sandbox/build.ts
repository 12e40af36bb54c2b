/** Building a transcript in the browser: lines and a parser's answers in, records out (T3, T4).

The host builds the same records from the same lines; ids and positions agree. */

import type { Entry, TranscriptPage, TranscriptRecord } from "../api/types";
import { type MadeEntry, Repair } from "./repair";

export interface PrintedLine {
  n: number;
  ts: string;
  stream: "stdout" | "stderr";
  text: string;
  attempt: number;
  offset: number;
  bytes: number | null;
}

const SHOWN_BYTES = 64 * 1024;

/** Whether a line goes to the parser at all. */
export function isParsed(line: PrintedLine): boolean {
  return line.stream === "stdout" && !!line.text && line.bytes === null && !isNotice(line.text);
}

function isNotice(text: string): boolean {
  return text.startsWith("[binderclip] ") || text.startsWith("[paperclip] ");
}

export class Book {
  entries: Entry[] = [];
  complete = false;
  /** Lines that the parser threw at; the generic rule took them. */
  thrown = 0;
  dropped = 0;
  repaired = 0;
  private records = 0;
  private attempt = 0;
  private repair: Repair;
  private readonly open = new Map<string, Entry>();
  private readonly long = new Map<string, Entry>();
  private readonly calls = new Map<string, { ts: string; name: string }>();

  constructor(private readonly renumber: boolean) {
    this.repair = new Repair(renumber);
  }

  /** Where the book stands, in the order of its records. */
  get order(): number {
    return this.records;
  }

  /** Where an entry stands; null if it is not here. */
  find(id: string): number | null {
    const at = this.entries.findIndex((entry) => entry.id === id);
    return at < 0 ? null : at;
  }

  /** An entry that is shown cut, with all of its text. */
  whole(id: string): Entry | undefined {
    return this.long.get(id);
  }

  page(from: number, limit: number): TranscriptPage {
    return {
      entries: this.entries.slice(from, from + limit),
      fromSeq: from,
      total: this.entries.length,
      complete: this.complete,
      cursor: `0.${this.records}.book`,
    };
  }

  /** The records of one line; `answer` is what the parser said, if it was asked. */
  add(line: PrintedLine, answer: unknown): TranscriptRecord[] {
    if (line.attempt !== this.attempt) this.begin(line.attempt);
    if (!line.text) return [];
    const made = isParsed(line) ? this.parsed(line, answer) : [generic(line)];
    return made.flatMap((entry, k) => this.place(entry, line, k));
  }

  /** An entry that the host itself added. */
  note(entry: Entry): TranscriptRecord[] {
    return [this.grown({ ...entry, seq: this.entries.length })];
  }

  private begin(attempt: number): void {
    this.attempt = attempt;
    this.repair = new Repair(this.renumber);
    this.open.clear();
    this.calls.clear();
  }

  private parsed(line: PrintedLine, answer: unknown): MadeEntry[] {
    if (isError(answer)) {
      this.thrown++;
      return [{ kind: "stdout", ts: line.ts, text: line.text }];
    }
    const { dropped, repaired } = this.repair;
    const made = this.repair.entries(answer, line.ts);
    this.dropped += this.repair.dropped - dropped;
    this.repaired += this.repair.repaired - repaired;
    return made;
  }

  private place(made: MadeEntry, line: PrintedLine, k: number): TranscriptRecord[] {
    const { attempt, stream, offset } = line;
    const id = `${attempt}${stream[3]}${offset}.${k}`;
    const entry = { ...made, id, seq: this.entries.length, attempt, stream, offset } as Entry;
    if (stream === "stdout") {
      const grown = this.grow(entry);
      if (grown) return [grown];
    }
    if (entry.kind === "tool_call")
      this.calls.set(entry.toolUseId ?? "", { ts: entry.ts, name: entry.name });
    if (entry.kind === "tool_result") {
      const call = this.calls.get(entry.toolUseId);
      this.calls.delete(entry.toolUseId);
      if (call) {
        entry.toolName ??= call.name;
        entry.durationMs ??= Math.max(0, Date.parse(entry.ts) - Date.parse(call.ts));
      }
    }
    const record = this.grown(entry);
    if (isDelta(entry)) this.open.set(lane(entry), this.entries.at(-1)!);
    return [record];
  }

  private grown(entry: Entry): TranscriptRecord {
    const kept = shortened(entry);
    if (kept !== entry) this.long.set(entry.id, entry);
    this.entries.push(kept);
    this.records++;
    return { type: "entry", entry: kept };
  }

  /** Add a delta to the open text of its kind and sub-agent; anything else closes those texts. */
  private grow(entry: Entry): TranscriptRecord | null {
    const before = isDelta(entry) ? this.open.get(lane(entry)) : undefined;
    if (!before || !("text" in before) || !("text" in entry)) {
      for (const kind of ["assistant", "thinking"])
        this.open.delete(`${kind} ${entry.parentToolUseId ?? ""}`);
      return null;
    }
    const next = lengthened(before, entry.text);
    if (next.truncated) {
      const whole = (this.long.get(before.id) ?? before) as typeof before;
      this.long.set(before.id, { ...whole, text: whole.text + entry.text });
    }
    this.entries[before.seq] = next;
    this.open.set(lane(entry), next);
    this.records++;
    return { type: "append", id: before.id, text: entry.text };
  }
}

function generic({ text, ts, stream, bytes }: PrintedLine): MadeEntry {
  if (bytes !== null && stream === "stdout")
    return { kind: stream, ts, text, truncated: { bytes } };
  if (isNotice(text)) return { kind: "system", ts, text };
  return { kind: stream, ts, text };
}

function isDelta(entry: Entry): boolean {
  return (entry.kind === "assistant" || entry.kind === "thinking") && !!entry.delta;
}

function lane(entry: Entry): string {
  return `${entry.kind} ${entry.parentToolUseId ?? ""}`;
}

function isError(answer: unknown): boolean {
  if (typeof answer !== "object" || answer === null || Array.isArray(answer)) return false;
  return Object.keys(answer).join() === "error";
}

/** Long texts are cut as the server cuts them; the whole is kept beside. */
function shortened(entry: Entry): Entry {
  const field = "content" in entry ? "content" : "text" in entry ? "text" : null;
  if (!field || entry.truncated) return entry;
  const whole = (entry as unknown as Record<string, string>)[field]!;
  if (whole.length <= SHOWN_BYTES / 4) return entry;
  const bytes = new TextEncoder().encode(whole);
  if (bytes.length <= SHOWN_BYTES) return entry;
  // A character that the cut went through is left out.
  const shown = new TextDecoder().decode(bytes.subarray(0, SHOWN_BYTES), { stream: true });
  return { ...entry, [field]: shown, truncated: { bytes: bytes.length } } as Entry;
}

function lengthened(before: Entry & { text: string }, more: string): Entry {
  if (!before.truncated) return shortened({ ...before, text: before.text + more } as Entry);
  const bytes = before.truncated.bytes + new TextEncoder().encode(more).length;
  return { ...before, truncated: { bytes } };
}
