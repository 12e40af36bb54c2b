/** Where things stand in a transcript that was read in the browser.

The host's entries may be others, so its positions do not count here; its clock does. */

import type { Entry, EntryKind, Outline, SearchMatch } from "../api/types";

const BEFORE = 60;
const AFTER = 100;
const MOST_SLOW = 100;
const UNSEARCHED = new Set(["id", "ts", "kind", "stream"]);

/** The host's outline with the positions, counts and tools of these entries. */
export function outlineOf(entries: readonly Entry[], host: Outline): Outline {
  const kinds: Partial<Record<EntryKind, number>> = {};
  const errors: number[] = [];
  entries.forEach((entry, seq) => {
    kinds[entry.kind] = (kinds[entry.kind] ?? 0) + 1;
    if ("isError" in entry && entry.isError) errors.push(seq);
  });
  return {
    ...host,
    ...tools(entries),
    kinds,
    errors,
    total: entries.length,
    errorCount: errors.length,
    attempts: host.attempts.map((attempt) => moved(attempt, entries, errors)),
  };
}

type Attempt = Outline["attempts"][number];

function moved(attempt: Attempt, entries: readonly Entry[], errors: readonly number[]): Attempt {
  const number = (entry: Entry) => entry.attempt ?? 1;
  const fromSeq = bound(entries, (entry) => number(entry) < attempt.attempt);
  const to = bound(entries, (entry) => number(entry) <= attempt.attempt);
  const starts = attempt.buckets.map((_, index) => {
    const begins = (attempt.startedMs ?? 0) + index * attempt.bucketMs;
    if (!index) return fromSeq;
    const before = (entry: Entry) =>
      number(entry) < attempt.attempt ||
      (number(entry) === attempt.attempt && Date.parse(entry.ts) < begins);
    return bound(entries, before);
  });
  const buckets = attempt.buckets.map((bucket, index) => {
    const [first, next] = [starts[index]!, starts[index + 1] ?? to];
    const inside = errors.filter((seq) => seq >= first && seq < next).length;
    return { ...bucket, fromSeq: first, entries: next - first, errors: inside };
  });
  return { ...attempt, fromSeq, total: to - fromSeq, buckets };
}

/** How many entries from the beginning on are so; they are in the order of time. */
function bound(entries: readonly Entry[], so: (entry: Entry) => boolean): number {
  let [low, high] = [0, entries.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (so(entries[middle]!)) low = middle + 1;
    else high = middle;
  }
  return low;
}

function tools(entries: readonly Entry[]): Pick<Outline, "tools" | "slowestTools"> {
  const sums = new Map<string, Outline["tools"][number]>();
  const slowest: Outline["slowestTools"] = [];
  entries.forEach((entry, seq) => {
    if (entry.kind !== "tool_result") return;
    const name = entry.toolName ?? "";
    const durationMs = entry.durationMs ?? 0;
    const sum = sums.get(name) ?? { name, count: 0, errors: 0, totalMs: 0, longestMs: 0 };
    sums.set(name, {
      name,
      count: sum.count + 1,
      errors: sum.errors + (entry.isError ? 1 : 0),
      totalMs: sum.totalMs + durationMs,
      longestMs: Math.max(sum.longestMs, durationMs),
    });
    if (entry.durationMs != null)
      slowest.push({ seq, name: name || null, durationMs, isError: entry.isError });
  });
  return {
    tools: [...sums.values()].sort((a, b) => b.totalMs - a.totalMs),
    slowestTools: slowest.sort((a, b) => b.durationMs - a.durationMs).slice(0, MOST_SLOW),
  };
}

/** Entries that hold these words, whatever their case, as the server searches. */
export function searchIn(entries: readonly Entry[], words: string): SearchMatch[] {
  const wanted = words.toLowerCase();
  const found: SearchMatch[] = [];
  entries.forEach((entry, seq) => {
    const text = holding(entry, wanted);
    if (text === null) return;
    const at = text.toLowerCase().indexOf(wanted);
    const excerpt = text.slice(Math.max(0, at - BEFORE), at + wanted.length + AFTER);
    found.push({ seq, id: entry.id, kind: entry.kind, excerpt });
  });
  return found;
}

function holding(value: unknown, wanted: string): string | null {
  if (typeof value === "string") return value.toLowerCase().includes(wanted) ? value : null;
  if (typeof value !== "object" || value === null) return null;
  for (const [key, item] of Object.entries(value)) {
    const text = !Array.isArray(value) && UNSEARCHED.has(key) ? null : holding(item, wanted);
    if (text !== null) return text;
  }
  return null;
}
