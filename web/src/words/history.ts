/** A run's standard events, checkpoints and job in words. */

import type { Checkpoint, JobDetail, JobNode, JobRun, RunEvent } from "../api/types";
import { firstLine, plural, took } from "./format";

export const JOB_WORDS: Record<string, string> = {
  init: "not started",
  proceeding: "under way",
  running: "running",
  completed: "completed",
  stoppedByMaxSteps: "stopped at its limit of steps",
  stoppedByExceededMaxSteps: "stopped at its limit of steps",
  stoppedByInteractiveTool: "stopped to ask",
  stoppedByDelegate: "stopped to delegate",
  stoppedByError: "stopped by an error",
};

const EVENT_WORDS: Record<string, string> = {
  initializeRuntime: "runtime",
  startRun: "start",
  callTools: "tools",
  resolveToolResults: "results",
  retry: "retry",
  continueToNextStep: "next step",
  completeRun: "complete",
  stopRunByError: "error",
  stopRunByExceededMaxSteps: "limit",
  stopRunByInteractiveTool: "question",
  stopRunByDelegate: "delegation",
};

export function eventWord(event: RunEvent): string {
  return EVENT_WORDS[event.type] ?? event.type;
}

export function isTrouble(event: RunEvent): boolean {
  return !!event.error || (event.toolResults ?? []).some((result) => result.isError);
}

/** What happened, in one line. */
export function eventLine(event: RunEvent): string {
  if (event.error) return firstLine(event.error.message) || event.error.name;
  if (event.toolCalls) return event.toolCalls.map((call) => call.toolName).join(", ");
  if (event.toolResults) return event.toolResults.map(resultWord).join(", ");
  const said = firstLine(event.text ?? event.reason);
  if (said) return said;
  if (event.type === "initializeRuntime") {
    return [...new Set([event.expertName, event.model])].filter(Boolean).join(" · ");
  }
  if (event.resumedFrom) return `goes on from ${event.resumedFrom.slice(-8)}`;
  const asked = event.inputMessages?.[0]?.contents[0]?.text;
  if (asked) return firstLine(asked);
  return event.stepNumber == null ? "" : `step ${event.stepNumber}`;
}

function resultWord(result: NonNullable<RunEvent["toolResults"]>[number]): string {
  const how = result.isError ? "failed" : result.durationMs ? took(result.durationMs) : "";
  return how ? `${result.toolName} (${how})` : result.toolName;
}

export function checkpointLine(checkpoint: Checkpoint): string {
  const messages = plural(checkpoint.messages.length, "message");
  const status = JOB_WORDS[checkpoint.status] ?? checkpoint.status;
  return `${status} at step ${checkpoint.stepNumber}, ${messages}`;
}

export interface Link {
  run: JobRun;
  depth: number;
}

/** The runs of a job from the first on; only where several went on from one are they set in. */
export function chainOf(job: JobDetail): Link[] {
  const links: Link[] = [];
  const open = job.tree.map((node): [JobNode, number] => [node, 0]).reverse();
  for (let next = open.pop(); next; next = open.pop()) {
    const [node, depth] = next;
    links.push({ run: node.run, depth });
    const inner = node.children.length > 1 ? depth + 1 : depth;
    for (const child of [...node.children].reverse()) open.push([child, inner]);
  }
  return links;
}
