import { describe, expect, it } from "vitest";
import { type CostLine, spans, sums } from "../src/costs/sums";

const line = (more: Partial<CostLine>): CostLine => ({
  day: "2026-01-02",
  agentId: "a",
  adapterType: "x",
  model: null,
  runs: 1,
  inputTokens: 10,
  cachedInputTokens: 5,
  cacheWriteTokens: 1,
  outputTokens: 2,
  costUsd: 0.5,
  runsOfUnknownCost: 0,
  ...more,
});

describe("costs", () => {
  it("are summed by what they are told apart, unknown ones apart from money", () => {
    const found = sums(
      [line({}), line({ costUsd: 0, runsOfUnknownCost: 1 }), line({ agentId: "b" })],
      "agentId",
    );
    expect(found[0]).toEqual({
      name: "a",
      runs: 2,
      unknown: 1,
      input: 20,
      cached: 12,
      output: 4,
      cost: 0.5,
    });
    expect(found).toHaveLength(2);
  });

  it("have a place for every day", () => {
    const found = spans([line({})], "model", "2026-01-01", "2026-01-03");
    expect(found.map((one) => [one.day, one.value])).toEqual([
      ["2026-01-01", 0],
      ["2026-01-02", 0.5],
      ["2026-01-03", 0],
    ]);
  });

  it("are summed by weeks over long times, in money or in tokens", () => {
    const lines = [line({}), line({ day: "2026-01-07" }), line({ day: "2026-01-08" })];
    const found = spans(lines, "model", "2026-01-01", "2026-01-10", {
      measure: "tokens",
      width: 7,
    });
    expect(found.map((one) => [one.day, one.value])).toEqual([
      ["2026-01-01", 36],
      ["2026-01-08", 18],
    ]);
  });
});
