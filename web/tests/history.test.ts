import { describe, expect, it } from "vitest";
import type { JobDetail, JobNode, RunEvent } from "../src/api/types";
import { chainOf, checkpointLine, eventLine, eventWord, isTrouble } from "../src/words/history";

const event = (more: Partial<RunEvent>): RunEvent => ({
  type: "startRun",
  id: "e",
  timestamp: 0,
  ...more,
});
const node = (id: string, ...children: JobNode[]): JobNode => ({
  run: { id, status: "succeeded", adapterType: "process", title: null, startedAt: 0 },
  children,
});
const usage = { inputTokens: 1, outputTokens: 2, totalTokens: 3 };
const job = (...tree: JobNode[]): JobDetail => ({
  job: { id: "j", status: "completed", totalSteps: 1, usage, costUsd: null },
  runs: [],
  tree,
});
const places = (detail: JobDetail) => chainOf(detail).map(({ run, depth }) => [run.id, depth]);

describe("the history of a run", () => {
  it("tells events in one line each", () => {
    const failed = { toolName: "shell", isError: true };
    const lines = [
      event({ type: "initializeRuntime", expertName: "claude", model: "m" }),
      event({ inputMessages: [{ contents: [{ text: "Fix it\nnow" }] }] }),
      event({ resumedFrom: "aaaa-12345678" }),
      event({ type: "callTools", toolCalls: [{ toolName: "shell" }, { toolName: "read" }] }),
      event({ type: "resolveToolResults", toolResults: [failed] }),
      event({ type: "continueToNextStep", stepNumber: 3 }),
      event({ type: "completeRun", text: "Done.\nReally." }),
      event({ type: "stopRunByError", error: { name: "auth", message: "" } }),
      event({ type: "somethingNew" }),
    ];
    expect(lines.map(eventLine)).toEqual([
      "claude · m",
      "Fix it",
      "goes on from 12345678",
      "shell, read",
      "shell (failed)",
      "step 3",
      "Done.",
      "auth",
      "",
    ]);
    expect(lines.filter(isTrouble).map(eventWord)).toEqual(["results", "error"]);
    expect(eventWord(lines[8]!)).toBe("somethingNew");
  });

  it("is a chain that is set in only where it forks", () => {
    expect(places(job(node("a", node("b", node("c")))))).toEqual([
      ["a", 0],
      ["b", 0],
      ["c", 0],
    ]);
    expect(places(job(node("a", node("b", node("c")), node("d")), node("e")))).toEqual([
      ["a", 0],
      ["b", 1],
      ["c", 1],
      ["d", 1],
      ["e", 0],
    ]);
  });

  it("says where a checkpoint stands", () => {
    const checkpoint = { id: "r-1", jobId: "j", runId: "r", status: "completed", stepNumber: 4 };
    expect(checkpointLine({ ...checkpoint, messages: [{}], usage })).toBe(
      "completed at step 4, 1 message",
    );
  });
});
