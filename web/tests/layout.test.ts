import { describe, expect, it } from "vitest";
import type { Outline } from "../src/api/types";
import { buildRows } from "../src/transcript/rows";
import { Layout } from "../src/viewer/layout";
import { seqAt, shareOf, stretches } from "../src/viewer/timeline";
import { entries, said } from "./entries";

const rows = (number: number) =>
  buildRows(entries(...Array.from({ length: number }, () => said("x"))), {
    plain: false,
    hidden: new Set(),
    opened: new Map(),
    unfold: false,
  }).rows;

describe("the layout", () => {
  it("never makes a sheet taller than a browser can draw", () => {
    const layout = new Layout();
    layout.set(rows(300), { from: 500_000, to: 500_300, total: 100_000_000 });
    expect(layout.height).toBeLessThan(16_000_000);
  });

  it("finds rows by their place, with real heights where they are known", () => {
    const layout = new Layout();
    layout.set(rows(3), { from: 0, to: 3, total: 3 });
    for (const row of layout.rows) layout.note(row.key, 100);
    layout.measure();
    expect([0, 99, 100, 250, 9999].map((y) => layout.at(y))).toEqual([0, 0, 1, 2, 2]);
    expect(layout.height).toBe(300);
  });

  it("knows which entry a place outside of the rows stands for", () => {
    const layout = new Layout();
    layout.set(rows(10), { from: 1000, to: 1010, total: 2000 });
    expect(layout.outside(0, 600)).toBe(true);
    expect(layout.outside(layout.top(0), 600)).toBe(false);
    expect(layout.seqAt(0)).toBe(0);
    expect(layout.seqAt(layout.height)).toBe(1999);
  });

  it("knows which entry a place among the rows stands for", () => {
    const layout = new Layout();
    layout.set(rows(10), { from: 0, to: 10, total: 2000 });
    expect(layout.seqAt(0)).toBe(0);
    expect(layout.seqAt(layout.top(4))).toBe(4);
  });
});

describe("the timeline", () => {
  const bucket = (fromSeq: number, entries: number) => ({
    fromSeq,
    entries,
    modelMs: 100,
    toolMs: 0,
    waitMs: 0,
    errors: 0,
  });
  const outline = {
    total: 100,
    attempts: [
      {
        attempt: 1,
        fromSeq: 0,
        total: 100,
        parser: "x",
        parserVersion: "1",
        startedMs: 0,
        endedMs: 400,
        bucketMs: 100,
        buckets: [bucket(0, 50), bucket(50, 0), bucket(50, 0), bucket(50, 50)],
      },
    ],
  } as unknown as Outline;

  it("maps entries to moments and back", () => {
    const list = stretches(outline);
    expect(shareOf(list, 0)).toBe(0);
    expect(shareOf(list, 25)).toBeCloseTo(0.125);
    expect(shareOf(list, 75)).toBeCloseTo(0.875);
    expect(seqAt(list, 0.125)).toBe(25);
    expect(seqAt(list, 0.5)).toBe(50);
    expect(seqAt(list, 1)).toBe(100);
  });

  it("is empty for a run that printed nothing", () => {
    expect(stretches({ attempts: [] } as unknown as Outline)).toEqual([]);
    expect(seqAt([], 0.5)).toBe(0);
  });
});
