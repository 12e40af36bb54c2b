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

export interface Day {
  day: string;
  cost: number;
  unknown: number;
  parts: { name: string; cost: number }[];
}

/** Every day from the first to the last, also those on which nothing ran. */
export function days(lines: readonly CostLine[], part: Part, from: string, to: string): Day[] {
  const found: Day[] = [];
  for (let at = Date.parse(from); at <= Date.parse(to); at += 86_400_000) {
    const day = new Date(at).toISOString().slice(0, 10);
    const own = sums(
      lines.filter((line) => line.day === day),
      part,
    );
    const cost = own.reduce((all, sum) => all + sum.cost, 0);
    const unknown = own.reduce((all, sum) => all + sum.unknown, 0);
    const parts = own.filter((sum) => sum.cost > 0).map(({ name, cost }) => ({ name, cost }));
    found.push({ day, cost, unknown, parts });
  }
  return found;
}
