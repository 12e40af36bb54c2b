/** What a run's state is called, and how it ended in one sentence. */

import type { RunState, RunView } from "../api/types";
import { firstLine, humanised } from "./format";

export const STATE_WORDS: Record<RunState, string> = {
  queued: "queued",
  starting: "starting",
  running: "running",
  finalizing: "finishing",
  succeeded: "succeeded",
  failed: "failed",
  timed_out: "timed out",
  cancelled: "cancelled",
  lost: "lost",
};

/** States that look alike share a shape. */
export function shapeOf(state: RunState): string {
  return state === "starting" || state === "finalizing" ? "running" : state;
}

export function title(run: RunView): string {
  const said = firstLine(run.prompt) || run.title;
  if (said) return said;
  if (hasAgent(run) && run.agentName) return run.agentName;
  return humanised(run.adapterType);
}

/** A run that a person started by hand belongs to no agent and to no task. */
export function hasAgent(run: RunView): boolean {
  return !!run.agentId && run.agentId !== "cli";
}

export function hasTask(run: RunView): boolean {
  return !!run.taskId && !run.taskId.includes(":") && run.taskId !== "heartbeat";
}

export function outcome(run: RunView): string {
  const exit = run.result?.exitCode;
  const reason = run.errorMessage ? firstLine(run.errorMessage) : "";
  switch (run.status) {
    case "succeeded":
      return "The agent finished its work.";
    case "failed":
      return reason || (exit != null ? `The agent ended with exit ${exit}.` : "The run failed.");
    case "timed_out":
      return reason || "A time limit ended the run.";
    case "cancelled":
      return reason || "The run was cancelled.";
    case "lost":
      return reason || "The agent vanished without telling how it ended.";
    default:
      return "";
  }
}

const NEXT: Record<string, string> = {
  auth: "Log the agent's runtime in, then retry.",
  quota: "Wait for the quota to renew, or give the agent another account.",
  rate_limit: "Wait a little, then retry.",
  upstream: "The model's host had a problem; retry.",
  context_overflow: "Start a fresh session, or ask for less at once.",
  turn_limit: "Raise the limit of turns, or continue with a message.",
  budget: "Raise the agent's budget.",
  command_not_found: "Install the runtime, or set the agent's command.",
  bad_config: "Correct the agent's configuration.",
  timeout: "Raise timeoutSec, or continue with a message.",
  idle_timeout: "Raise idleTimeoutSec if silence is normal for this work.",
  permission: "Allow what the agent asked for, then retry.",
  cut_output: "Retry: the end of the output is missing.",
};

export function advice(run: RunView): string {
  return run.errorCode ? (NEXT[run.errorCode] ?? "") : "";
}
