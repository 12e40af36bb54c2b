/** Lines of cost summed by day and by what they are told apart; unknown stays unknown (D10). */

export interface CostLine {
  day: string;
  agentId: string;
  adapterType: string;
  model: string | null;
  runs: number;
  inputTokens: number;
  cachedInputTokens: number;
  cacheWriteTokens: number;
  outputTokens: number;
  costUsd: number;
  runsOfUnknownCost: number;
}

export type Part = "agentId" | "adapterType" | "model";

export interface Sum {
  name: string;
  runs: number;
  unknown: number;
  input: number;
  cached: number;
  output: number;
  cost: number;
}

export function sums(lines: readonly CostLine[], part: Part): Sum[] {
  const found = new Map<string, Sum>();
  for (const line of lines) {
    const name = line[part] ?? "";
    const sum = found.get(name) ?? {
      name,
      runs: 0,
      unknown: 0,
      input: 0,
      cached: 0,
      output: 0,
      cost: 0,
    };
    sum.runs += line.runs;
    sum.unknown += line.runsOfUnknownCost;
    sum.input += line.inputTokens;
    sum.cached += line.cachedInputTokens + line.cacheWriteTokens;
    sum.output += line.outputTokens;
    sum.cost += line.costUsd;
    found.set(name, sum);
  }
  return [...found.values()].sort((a, b) => b.cost - a.cost || b.runs - a.runs);
}

export type Measure = "cost" | "tokens";

export interface Span {
  /** The first day of it. */
  day: string;
  value: number;
  unknown: number;
  parts: { name: string; value: number }[];
}

const DAY_MS = 86_400_000;

export function measured(sum: Sum, measure: Measure): number {
  return measure === "cost" ? sum.cost : sum.input + sum.cached + sum.output;
}

/** Every span from the first day to the last, also those in which nothing ran. */
export function spans(
  lines: readonly CostLine[],
  part: Part,
  from: string,
  to: string,
  { measure = "cost" as Measure, width = 1 } = {},
): Span[] {
  const found: Span[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += width * DAY_MS) {
    const [day, next] = [dayOf(at), dayOf(at + width * DAY_MS)];
    const own = sums(
      lines.filter((line) => line.day >= day && line.day < next),
      part,
    );
    const parts = own
      .map((sum) => ({ name: sum.name, value: measured(sum, measure) }))
      .filter((one) => one.value > 0);
    const value = parts.reduce((all, one) => all + one.value, 0);
    const unknown = own.reduce((all, sum) => all + sum.unknown, 0);
    found.push({ day, value, unknown, parts });
  }
  return found;
}

export function dayOf(ms: number): string {
  return new Date(ms).toISOString().slice(0, 10);
}
