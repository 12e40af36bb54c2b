/** What workspaces and the operations on them are called. */

import type { Workspace, WorkspaceOperation } from "../api/types";

export const NOT_MEASURED = "It is large and still being counted; look again later.";

export const OPERATION_WORDS: Record<WorkspaceOperation["kind"], string> = {
  worktree_prepare: "Prepared the worktree",
  execute: "Ran the agent",
  workspace_finalize: "Brought the work back",
};

export const OPERATION_STATES: Record<WorkspaceOperation["status"], string> = {
  running: "under way",
  succeeded: "done",
  failed: "failed",
  waived: "waived",
};

export const FILE_WORDS: Record<string, string> = {
  A: "added",
  M: "changed",
  D: "deleted",
  R: "renamed",
  T: "another type",
};

export function stateOf(one: Workspace): string {
  if (one.state === "conflict") return "conflict";
  if (one.away) return "work is elsewhere";
  return { preparing: "being prepared", active: "in use", archived: "archived" }[one.state];
}

/** What a person calls it: the branch, or the directory. */
export function nameOf(one: Workspace): string {
  return one.branch ?? one.tree;
}

/** Operations that hinder what waits for this workspace, until tried again or waived. */
export function hindering(operations: readonly WorkspaceOperation[]): WorkspaceOperation | null {
  const ends = operations.filter((one) => one.kind === "workspace_finalize");
  const last = ends.at(-1);
  return last?.status === "failed" ? last : null;
}
