/** A tool call as a sentence: what was done, to what, and how it ended. */

import type { ToolCall, ToolKind, ToolResult } from "../api/types";
import { humanised, plural } from "./format";

const VERBS: Record<ToolKind, [past: string, now: string]> = {
  shell: ["Ran", "Running"],
  read: ["Read", "Reading"],
  write: ["Wrote", "Writing"],
  edit: ["Edited", "Editing"],
  search: ["Searched", "Searching"],
  web: ["Fetched", "Fetching"],
  todo: ["Planned", "Planning"],
  agent: ["Sub-agent", "Sub-agent"],
  mcp: ["Called", "Calling"],
  other: ["Used", "Using"],
};

export function verb(call: ToolCall, done: boolean): string {
  const kind = call.toolKind ?? "other";
  return VERBS[kind]?.[done ? 0 : 1] ?? "Used";
}

export function target(call: ToolCall, cwd: string | null): string {
  const kind = call.toolKind ?? "other";
  if (kind === "shell") return shellCommand(call) || call.title || call.name;
  const title = call.title ? relative(call.title, cwd) : "";
  if (kind === "mcp" || kind === "other") {
    const name = humanised(call.name.replace(/^mcp__/, "").replaceAll("__", " "));
    return title && title !== call.name ? `${name}: ${title}` : name;
  }
  return title || call.name;
}

export function shellCommand(call: ToolCall): string {
  const input = call.input as Record<string, unknown> | null;
  const command = input?.command ?? input?.cmd;
  if (Array.isArray(command)) return command.map(String).join(" ");
  return typeof command === "string" ? command : "";
}

/** A path inside the working directory without it. */
export function relative(path: string, cwd: string | null): string {
  return cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}

export function outcome(result: ToolResult | null): string {
  if (!result) return "";
  if (result.exitCode != null && result.exitCode !== 0) return `exit ${result.exitCode}`;
  return result.isError ? "failed" : "";
}

export function foldTitle(kind: ToolKind, number: number): string {
  if (kind === "read") return `Read ${plural(number, "file")}`;
  return `Searched ${plural(number, "time")}`;
}

/** The input of a call as it is shown when the card is opened. */
export function inputText(call: ToolCall): string {
  if (typeof call.input === "string") return call.input;
  try {
    return JSON.stringify(call.input, null, 2) ?? "";
  } catch {
    return String(call.input);
  }
}
