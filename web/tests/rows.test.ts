import { describe, expect, it } from "vitest";
import type { Entry } from "../src/api/types";
import { buildRows, type RowOptions } from "../src/transcript/rows";
import { call, entries, result, said } from "./entries";

const usual: RowOptions = { plain: false, hidden: new Set(), opened: new Map(), unfold: false };
const types = (list: Entry[], options: Partial<RowOptions> = {}) =>
  buildRows(list, { ...usual, ...options }).rows.map((row) => row.type);

describe("rows", () => {
  it("pair a call with its result, however far behind it stands", () => {
    const list = entries(call("a"), call("b"), said("meanwhile"), result("b"), result("a"));
    const { rows, rowOf } = buildRows(list, usual);
    expect(rows.map((row) => row.type)).toEqual(["tool", "tool", "text"]);
    expect(rows[0]!.type === "tool" && rows[0]!.result?.seq).toBe(4);
    expect(rowOf.get(4)).toBe(0);
    expect(rowOf.get(3)).toBe(1);
  });

  it("show a result whose call is not held by itself", () => {
    expect(types(entries(result("gone")))).toEqual(["orphan"]);
  });

  it("fold quick reads in a row into one", () => {
    const reads = ["a", "b", "c"].flatMap((id) => [call(id, "read"), result(id)]);
    const { rows } = buildRows(entries(...reads), usual);
    expect(rows).toHaveLength(1);
    expect(rows[0]!.type === "fold" && rows[0]!.tools).toHaveLength(3);
  });

  it("do not fold a read that failed, is slow, or still runs", () => {
    const list = entries(
      call("a", "read"),
      result("a"),
      call("b", "read"),
      result("b", { isError: true }),
      call("c", "read"),
      result("c", { durationMs: 9000 }),
      call("d", "read"),
    );
    expect(types(list)).toEqual(["tool", "tool", "tool", "tool"]);
  });

  it("put a sub-agent's rows below its call and fold them when it is done", () => {
    const list = entries(
      call("sub", "agent"),
      said("outside"),
      said("inside", { parentToolUseId: "sub" }),
      result("sub"),
    );
    expect(types(list)).toEqual(["tool", "text"]);
    const open = buildRows(list, { ...usual, opened: new Map([["1o0.0", true]]) });
    expect(open.rows.map((row) => row.depth)).toEqual([0, 1, 0]);
    expect(buildRows(list, usual).rowOf.get(2)).toBe(0);
  });

  it("end even when calls name each other as parents", () => {
    const list = entries(
      call("a", "agent", { parentToolUseId: "b" }),
      call("b", "agent", { parentToolUseId: "a" }),
      call("c", "agent", { parentToolUseId: "c" }),
    );
    expect(buildRows(list, usual).rows).toHaveLength(3);
  });

  it("draw lines of a plain runtime as one block, and texts of a structured one apart", () => {
    const list = entries(said("one"), said("two"), said("three"));
    expect(types(list, { plain: true })).toEqual(["text"]);
    expect(types(list)).toEqual(["text", "text", "text"]);
  });

  it("gather lines nobody understood, and keep notices small", () => {
    const list = entries(
      { kind: "stdout", text: "{" },
      { kind: "stdout", text: "}" },
      { kind: "stderr", text: "warning" },
      { kind: "system", text: "note" },
    );
    expect(types(list)).toEqual(["unknown", "notice"]);
  });

  it("tell what changed in a plan", () => {
    const items = (first: string) => ({ items: [{ text: "Look", status: first }] });
    const list = entries(
      call("a", "todo", { input: items("pending") }),
      call("b", "todo", { input: items("completed") }),
    );
    const { rows } = buildRows(list, usual);
    expect(rows.map((row) => row.type === "plan" && row.change)).toEqual([null, "finished Look"]);
  });

  it("bring a diff to the edit that made it", () => {
    const line = {
      kind: "diff",
      changeType: "add",
      text: "x",
      toolUseId: "e",
      path: "a.py",
    } as const;
    const { rows } = buildRows(entries(call("e", "edit"), result("e"), line, line), usual);
    expect(rows[0]!.type === "tool" && rows[0]!.diffs).toHaveLength(2);
  });

  it("leave out hidden kinds", () => {
    const list = entries(said("a"), call("t"), result("t"), said("b"));
    const hidden = new Set(["tool_call", "tool_result"] as const);
    expect(types(list, { hidden })).toEqual(["text", "text"]);
  });
});
