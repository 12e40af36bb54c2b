/** Budgets in words and as a form's fields; what a runtime tells decides what they can stop (D10). */

import type { Budget, ConfigField } from "../api/types";
import type { Values } from "../form/config";

export type UsageTold = "step" | "end" | "never";
export const LINES = ["usd", "tokens", "runs", "minutes"] as const;
export type LineName = (typeof LINES)[number];

const LABELS: Record<LineName, string> = {
  usd: "Money, USD",
  tokens: "Tokens",
  runs: "Runs",
  minutes: "Minutes of work",
};

export function budgetFields(prefix: "budget" | "runBudget"): ConfigField[] {
  const lines = prefix === "budget" ? LINES : LINES.filter((line) => line !== "runs");
  return lines.map((line) => ({ key: `${prefix}.${line}`, label: LABELS[line], type: "number" }));
}

/** A whole budget from the form; an empty field is no limit. */
export function budgetOf(
  prefix: "budget" | "runBudget",
  values: Values,
  period: Budget["period"],
): Budget {
  const at = (line: LineName) => {
    const value = values[`${prefix}.${line}`];
    return typeof value === "number" ? value : null;
  };
  return { usd: at("usd"), tokens: at("tokens"), runs: at("runs"), minutes: at("minutes"), period };
}

/** How budgets hold with this runtime. */
export function holds(told: UsageTold, runtime: string): string {
  if (told === "step")
    return `${runtime} tells its usage after each step: every budget stops a run in flight.`;
  if (told === "end")
    return `${runtime} tells its usage when a run ends: money and tokens are checked between runs, and a run may go over. Minutes stop it in flight.`;
  return `${runtime} never tells its usage: limits in money and tokens have no effect. Limit runs and minutes instead.`;
}
