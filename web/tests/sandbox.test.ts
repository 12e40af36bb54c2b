import { readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";
import { Book, type PrintedLine } from "../src/sandbox/build";
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
