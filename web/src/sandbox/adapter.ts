/** The parser that an adapter brings for the browser: which one, its text, or why none (U3, U5). */

import { ApiError, request } from "../api/client";
import type { Adapter } from "../api/types";
import { ParserFailure } from "./frame";

interface Report {
  state: "none" | "ready" | "refused";
  reason: string | null;
  sha256: string;
  warnings: string[];
}

export interface ForeignParser {
  /** Changes when the adapter does. */
  key: string;
  source: string;
  /** Two runs over the same lines differ, so its ids cannot be trusted. */
  renumber: boolean;
}

/** What failed stays failed until the adapter changes. */
const failures = new Map<string, string>();

export function remember(key: string, reason: string): void {
  if (!failures.has(key)) console.warn(`The parser of ${key} is not used: ${reason}`);
  failures.set(key, reason);
}

export function refuseKnown(key: string): void {
  const reason = failures.get(key);
  if (reason) throw new ParserFailure(reason);
}

/** Null where an adapter declares no parser: that is no failure. */
export async function foreignParser(type: string): Promise<ForeignParser | null> {
  const known = await request<Adapter[]>("/api/adapters");
  const adapter = known.find((one) => one.type === type);
  if (adapter?.source !== "external" || adapter.overridePaused) return null;
  const path = `/api/adapters/${encodeURIComponent(type)}`;
  const { description } = await request<{ description: { parser: Report } }>(`${path}/plugin`);
  const report = description.parser;
  if (report.state === "none") return null;
  if (report.state === "refused") throw new ParserFailure(report.reason ?? "the host refused it");
  const key = `${type} ${adapter.version} ${report.sha256.slice(0, 20)}`;
  refuseKnown(key);
  const renumber = report.warnings.some((one) => one.startsWith("not deterministic"));
  return { key, source: await sourceOf(`${path}/ui-parser.js`, key), renumber };
}

async function sourceOf(path: string, key: string): Promise<string> {
  const answer = await fetch(path, { credentials: "same-origin" }).catch(() => null);
  if (answer?.ok) return answer.text();
  if (!answer) throw new ApiError(0, "unreachable", "The server does not answer.");
  const reason = `${answer.status}: the server has no such file`;
  remember(key, reason);
  throw new ParserFailure(reason);
}
