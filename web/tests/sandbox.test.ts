import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import type { Outline } from "../src/api/types";
import { Book, type PrintedLine } from "../src/sandbox/build";
import { outlineOf, searchIn } from "../src/sandbox/positions";
import { Repair } from "../src/sandbox/repair";

interface Case {
  name: string;
  renumber?: boolean;
  dropped?: number;
  steps: { ts: string; raw: unknown; entries: unknown[] }[];
}
const vectors = JSON.parse(readFileSync("../tests/vectors/foreign-entries.json", "utf-8"));

describe("what a foreign parser returned", () => {
  it.each(vectors.cases as Case[])("by the shared vectors: $name", (given) => {
    const repair = new Repair(given.renumber);
    for (const { raw, ts, entries } of given.steps)
      expect(repair.entries(raw, ts)).toEqual(entries);
    expect(repair.dropped).toBe(given.dropped ?? 0);
  });

  it("is cut when it floods", () => {
    const flood = Array(5000).fill({ kind: "assistant", text: "x" });
    expect(new Repair().entries(flood, "t")).toHaveLength(200);
  });

  it("is counted when it was repaired", () => {
    const repair = new Repair();
    repair.entries([{ kind: "assistant", ts: "t", text: "fine" }], "t");
    expect(repair.repaired).toBe(0);
    repair.entries([{ kind: "tool_call", ts: "t", name: "shell" }], "t");
    expect(repair.repaired).toBe(1);
  });
});

let offset = 0;
function line(text: string, more: Partial<PrintedLine> = {}): PrintedLine {
  offset += 10;
  const ts = `2026-01-01T00:00:0${offset / 10}.000Z`;
  return { n: 0, ts, stream: "stdout", text, attempt: 1, offset, bytes: null, ...more };
}
function book(): Book {
  offset = 0;
  return new Book(false);
}

describe("a transcript built in the browser", () => {
  it("names entries by their place in the output, as the host does", () => {
    const made = book();
    made.add(line("a"), [
      { kind: "assistant", text: "one" },
      { kind: "user", text: "two" },
    ]);
    made.add(line("b", { stream: "stderr" }), null);
    expect(made.entries.map(({ id, seq, kind }) => [id, seq, kind])).toEqual([
      ["1o10.0", 0, "assistant"],
      ["1o10.1", 1, "user"],
      ["1e20.0", 2, "stderr"],
    ]);
  });

  it("merges deltas of a kind until something else comes", () => {
    const made = book();
    const delta = (text: string) => [{ kind: "assistant", text, delta: true }];
    made.add(line("a"), delta("Hel"));
    expect(made.add(line("b"), delta("lo"))).toEqual([
      { type: "append", id: "1o10.0", text: "lo" },
    ]);
    made.add(line("c"), [{ kind: "system", text: "." }]);
    made.add(line("d"), delta("again"));
    expect(made.entries.map((one) => "text" in one && one.text)).toEqual(["Hello", ".", "again"]);
  });

  it("gives a result its call's name and the time it took", () => {
    const made = book();
    made.add(line("a"), [{ kind: "tool_call", name: "shell", toolUseId: "1" }]);
    made.add(line("b"), [{ kind: "tool_result", toolUseId: "1", content: "ok" }]);
    expect(made.entries[1]).toMatchObject({ toolName: "shell", durationMs: 1000 });
  });

  it("falls back to the generic rule for lines that no parser may see or that it threw at", () => {
    const made = book();
    made.add(line("[binderclip] notice"), null);
    made.add(line("head … tail", { bytes: 20_000_000 }), null);
    made.add(line("boom"), { error: "thrown" });
    made.add(line(""), null);
    expect(made.entries.map((one) => one.kind)).toEqual(["system", "stdout", "stdout"]);
    expect(made.thrown).toBe(1);
  });

  it("is read by pages like the host's", () => {
    const made = book();
    for (let at = 0; at < 9; at++) made.add(line("x"), { kind: "assistant", text: `${at}` });
    const page = made.page(4, 2);
    expect(page.entries.map((one) => one.seq)).toEqual([4, 5]);
    expect([page.total, page.cursor]).toEqual([9, "0.9.book"]);
  });
});

describe("positions in a transcript built in the browser", () => {
  const second = { attempt: 2, ts: "2026-01-01T00:01:00.000Z" };
  function told(): Book {
    const made = book();
    made.add(line("a"), [{ kind: "assistant", text: "One Word" }]);
    made.add(line("b"), [
      { kind: "tool_call", name: "sh", toolUseId: "u", input: { command: "find a WORD" } },
      { kind: "tool_result", toolUseId: "u", content: "no", isError: true, durationMs: 1500 },
    ]);
    made.add(line("c", second), [{ kind: "user", text: "again" }]);
    return made;
  }
  const bucket = { fromSeq: 90, entries: 7, modelMs: 5, toolMs: 6, waitMs: 7, errors: 3 };
  const attempt = {
    fromSeq: 40,
    total: 50,
    parser: "p",
    parserVersion: "1",
    endedMs: null,
    bucketMs: 1500,
  };
  const host: Outline = {
    total: 100,
    cursor: "1.100.1",
    complete: true,
    kinds: { stdout: 100 },
    errorCount: 9,
    errors: [77],
    slowestTools: [],
    tools: [],
    attempts: [
      {
        ...attempt,
        attempt: 1,
        startedMs: Date.parse("2026-01-01T00:00:01.000Z"),
        buckets: [bucket, bucket],
      },
      { ...attempt, attempt: 2, startedMs: Date.parse(second.ts), buckets: [bucket] },
    ],
  };

  it("are those of its own entries, by the clock of the host", () => {
    const found = outlineOf(told().entries, host);
    expect([found.total, found.errors, found.errorCount]).toEqual([4, [2], 1]);
    expect(found.kinds).toEqual({ assistant: 1, tool_call: 1, tool_result: 1, user: 1 });
    expect(found.attempts.map((one) => [one.fromSeq, one.total])).toEqual([
      [0, 3],
      [3, 1],
    ]);
    const [first, next] = found.attempts[0]!.buckets;
    expect([first!.fromSeq, first!.entries, first!.errors]).toEqual([0, 3, 1]);
    expect([next!.fromSeq, next!.entries, next!.toolMs]).toEqual([3, 0, 6]);
    expect(found.slowestTools).toEqual([{ seq: 2, name: "sh", durationMs: 1500, isError: true }]);
    expect(found.tools[0]).toMatchObject({ name: "sh", count: 1, errors: 1, longestMs: 1500 });
  });

  it("are found by words, whatever their case and field", () => {
    expect(searchIn(told().entries, "word").map(({ seq }) => seq)).toEqual([0, 1]);
    expect(searchIn(told().entries, "assistant")).toEqual([]);
    expect(searchIn(told().entries, "AGAIN")[0]).toMatchObject({ id: "2o30.0", excerpt: "again" });
  });

  it("are found by an entry's id, and a long text is there as a whole", () => {
    const made = told();
    expect([made.find("1o20.1"), made.find("1o99.0")]).toEqual([2, null]);
    const long = "x".repeat(70_000);
    made.add(line("d", second), [{ kind: "assistant", text: long, delta: true }]);
    made.add(line("e", second), [{ kind: "assistant", text: "!", delta: true }]);
    expect(made.entries.at(-1)).toMatchObject({ truncated: { bytes: 70_001 } });
    expect(made.whole("2o40.0")).toMatchObject({ text: `${long}!` });
  });
});
