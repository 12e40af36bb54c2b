/** From entries to rows: pairs calls with results, folds what is alike, nests sub-agents.

Same entries, same rows: nothing here depends on when an entry arrived. */

import type {
  DiffLine,
  Entry,
  EntryKind,
  Init,
  Said,
  ToolCall,
  ToolKind,
  ToolResult,
  TurnResult,
} from "../api/types";

interface Base {
  key: string;
  /** Position of the first entry in it. */
  seq: number;
  ts: string;
  depth: number;
}

export interface TextRow extends Base {
  type: "text";
  text: string;
  plain: boolean;
  truncated: number | null;
  entryId: string;
}
export interface ThinkingRow extends Base {
  type: "thinking";
  text: string;
  tookMs: number | null;
  truncated: number | null;
  entryId: string;
}
export interface UserRow extends Base {
  type: "user";
  text: string;
}
export interface ToolRow extends Base {
  type: "tool";
  call: ToolCall;
  result: ToolResult | null;
  diffs: DiffLine[];
  /** Rows of the sub-agent that this call started; shown below it unless folded. */
  children: number;
  folded: boolean;
}
export interface FoldRow extends Base {
  type: "fold";
  toolKind: ToolKind;
  tools: ToolRow[];
}
export interface PlanItem {
  text: string;
  status: string;
}
export interface PlanRow extends Base {
  type: "plan";
  items: PlanItem[];
  /** What changed since the plan before; null for the first one. */
  change: string | null;
}
export interface OrphanRow extends Base {
  type: "orphan";
  result: ToolResult;
}
export interface NoticeRow extends Base {
  type: "notice";
  lines: Said[];
}
export interface UnknownRow extends Base {
  type: "unknown";
  lines: Said[];
}
export interface InitRow extends Base {
  type: "init";
  entry: Init;
}
export interface TurnRow extends Base {
  type: "turn";
  entry: TurnResult;
}
export interface DiffRow extends Base {
  type: "diff";
  lines: DiffLine[];
}

export type Row =
  | TextRow
  | ThinkingRow
  | UserRow
  | ToolRow
  | FoldRow
  | PlanRow
  | OrphanRow
  | NoticeRow
  | UnknownRow
  | InitRow
  | TurnRow
  | DiffRow;

export interface RowOptions {
  /** The runtime prints plain text: lines in a row are one block. */
  plain: boolean;
  hidden: ReadonlySet<EntryKind>;
  /** What a reader opened or closed by hand, by key. */
  opened: ReadonlyMap<string, boolean>;
  /** Nothing is folded away, as "expand all" asks. */
  unfold: boolean;
}

export interface Rows {
  rows: Row[];
  /** Which row shows an entry, by its position. */
  rowOf: Map<number, number>;
}

const FOLDED: ReadonlySet<ToolKind> = new Set(["read", "search"] as const);
const QUICK_MS = 2000;
const LINES_IN_BLOCK = 400;

interface Draft {
  row: Row;
  seqs: number[];
  parent: string | null;
}

export function buildRows(entries: readonly Entry[], options: RowOptions): Rows {
  return new Builder(entries, options).build();
}

class Builder {
  private drafts: Draft[] = [];
  private calls = new Map<string, Draft>();
  private lastPlan: PlanItem[] | null = null;

  constructor(
    private readonly entries: readonly Entry[],
    private readonly options: RowOptions,
  ) {}

  build(): Rows {
    for (let at = 0; at < this.entries.length; at++) this.take(this.entries[at]!, at);
    return placed(nested(this.drafts), this.options);
  }

  private take(entry: Entry, at: number): void {
    switch (entry.kind) {
      case "tool_result":
        if (this.pair(entry)) return;
        break;
      case "diff":
        if (this.joinDiff(entry)) return;
        break;
      case "assistant":
      case "stderr":
      case "system":
      case "stdout":
        if (this.joinLines(entry)) return;
        break;
    }
    if (this.options.hidden.has(entry.kind)) return;
    const row = this.row(entry, at);
    const draft = { row, seqs: [entry.seq], parent: entry.parentToolUseId ?? null };
    this.drafts.push(draft);
    if (entry.kind === "tool_call" && entry.toolUseId) this.calls.set(entry.toolUseId, draft);
  }

  private row(entry: Entry, at: number): Row {
    const base = { key: entry.id, seq: entry.seq, ts: entry.ts, depth: 0 };
    const cut = entry.truncated?.bytes ?? null;
    switch (entry.kind) {
      case "assistant": {
        const { text, id } = entry;
        return {
          ...base,
          type: "text",
          text,
          plain: this.options.plain,
          truncated: cut,
          entryId: id,
        };
      }
      case "thinking": {
        const { text, id } = entry;
        return {
          ...base,
          type: "thinking",
          text,
          tookMs: this.thought(at),
          truncated: cut,
          entryId: id,
        };
      }
      case "user":
        return { ...base, type: "user", text: entry.text };
      case "tool_call":
        return this.called(entry, base);
      case "tool_result":
        return { ...base, type: "orphan", result: entry };
      case "result":
        return { ...base, type: "turn", entry };
      case "init":
        return { ...base, type: "init", entry };
      case "diff":
        return { ...base, type: "diff", lines: [entry] };
      case "stdout":
        return { ...base, type: "unknown", lines: [entry] };
      case "stderr":
      case "system":
        return { ...base, type: "notice", lines: [entry] };
    }
  }

  private called(call: ToolCall, base: Base): Row {
    const items = call.toolKind === "todo" ? planItems(call.input) : null;
    if (items) {
      const change = this.lastPlan ? planChange(this.lastPlan, items) : null;
      this.lastPlan = items;
      return { ...base, type: "plan", items, change };
    }
    return { ...base, type: "tool", call, result: null, diffs: [], children: 0, folded: false };
  }

  /** A result belongs to its call, wherever that stands. */
  private pair(result: ToolResult): boolean {
    const draft = this.calls.get(result.toolUseId);
    if (!draft) return false;
    draft.seqs.push(result.seq);
    if (draft.row.type === "tool") draft.row.result = result;
    return true;
  }

  private joinDiff(line: DiffLine): boolean {
    const call = line.toolUseId ? this.calls.get(line.toolUseId) : undefined;
    if (call?.row.type === "tool") {
      call.row.diffs.push(line);
      call.seqs.push(line.seq);
      return true;
    }
    const last = this.drafts.at(-1);
    if (last?.row.type !== "diff" || last.row.lines[0]?.toolUseId !== line.toolUseId) return false;
    last.row.lines.push(line);
    last.seqs.push(line.seq);
    return true;
  }

  private joinLines(entry: Said): boolean {
    const last = this.drafts.at(-1);
    if (!last || last.parent !== (entry.parentToolUseId ?? null)) return false;
    if (last.seqs.length >= LINES_IN_BLOCK || this.options.hidden.has(entry.kind)) return false;
    const row = last.row;
    if (entry.kind === "assistant") {
      if (row.type !== "text" || !row.plain) return false;
      row.text += `\n${entry.text}`;
    } else if (entry.kind === "stdout") {
      if (row.type !== "unknown") return false;
      row.lines.push(entry);
    } else {
      if (row.type !== "notice") return false;
      row.lines.push(entry);
    }
    last.seqs.push(entry.seq);
    return true;
  }

  /** Streamed thoughts carry the time they began, whole ones the time they were printed. */
  private thought(at: number): number | null {
    const entry = this.entries[at] as Said;
    const other = entry.delta ? this.entries[at + 1] : this.entries[at - 1];
    if (!other) return null;
    const took = Math.abs(Date.parse(other.ts) - Date.parse(entry.ts));
    return took >= 1000 ? took : null;
  }
}

/** Sub-agents' rows right below the call that started them, each a step further in. */
function nested(drafts: Draft[]): Draft[] {
  const children = new Map<string, Draft[]>();
  const owners = new Set<string>();
  for (const draft of drafts) {
    if (draft.row.type === "tool" && draft.row.call.toolUseId) owners.add(draft.row.call.toolUseId);
  }
  const roots: Draft[] = [];
  for (const draft of drafts) {
    if (draft.parent && owners.has(draft.parent)) {
      const list = children.get(draft.parent) ?? [];
      list.push(draft);
      children.set(draft.parent, list);
    } else {
      draft.row.depth = draft.parent ? 1 : 0;
      roots.push(draft);
    }
  }
  if (!children.size) return roots;
  const ordered: Draft[] = [];
  const visit = (draft: Draft): void => {
    ordered.push(draft);
    const id = draft.row.type === "tool" ? draft.row.call.toolUseId : null;
    const own = id ? children.get(id) : undefined;
    if (!own || !id || draft.row.type !== "tool") return;
    // Taken away first: a call that names itself as its parent would never end.
    children.delete(id);
    draft.row.children = own.length;
    for (const child of own) {
      child.row.depth = Math.min(draft.row.depth + 1, 6);
      visit(child);
    }
  };
  for (const root of roots) visit(root);
  for (const stray of [...children.values()].flat())
    if (!ordered.includes(stray)) ordered.push(stray);
  return ordered;
}

function placed(drafts: Draft[], options: RowOptions): Rows {
  const rows: Row[] = [];
  const rowOf = new Map<number, number>();
  let closedBelow = Number.POSITIVE_INFINITY;
  for (const draft of drafts) {
    const row = draft.row;
    const hidden = row.depth > closedBelow;
    if (!hidden) closedBelow = Number.POSITIVE_INFINITY;
    if (row.type === "tool" && row.children && !hidden) {
      row.folded = !(options.opened.get(row.key) ?? (options.unfold || !row.result));
      if (row.folded) closedBelow = row.depth;
    }
    if (!hidden && !joinFold(rows, row, options)) rows.push(row);
    for (const seq of draft.seqs) rowOf.set(seq, rows.length - 1);
  }
  return { rows, rowOf };
}

/** Quick tools of one kind in a row become one. */
function joinFold(rows: Row[], row: Row, options: RowOptions): boolean {
  if (options.unfold || !foldable(row)) return false;
  const last = rows.at(-1);
  const kind = row.call.toolKind!;
  if (last?.type === "fold" && last.toolKind === kind && last.depth === row.depth) {
    last.tools.push(row);
    return true;
  }
  if (last && foldable(last) && last.call.toolKind === kind && last.depth === row.depth) {
    const { seq, ts, depth } = last;
    const fold: FoldRow = {
      type: "fold",
      key: `fold:${last.key}`,
      seq,
      ts,
      depth,
      toolKind: kind,
      tools: [last, row],
    };
    rows[rows.length - 1] = fold;
    return true;
  }
  return false;
}

function foldable(row: Row): row is ToolRow {
  return (
    row.type === "tool" &&
    FOLDED.has(row.call.toolKind ?? "other") &&
    row.result !== null &&
    !row.result.isError &&
    !row.result.attachments?.length &&
    (row.result.durationMs ?? 0) < QUICK_MS &&
    !row.diffs.length &&
    !row.children
  );
}

export function planItems(input: unknown): PlanItem[] | null {
  const items = (input as { items?: unknown } | null)?.items;
  if (!Array.isArray(items)) return null;
  return items
    .filter((item): item is Record<string, unknown> => typeof item === "object" && item !== null)
    .map((item) => ({ text: String(item.text ?? ""), status: String(item.status ?? "pending") }));
}

function planChange(before: PlanItem[], now: PlanItem[]): string {
  const known = new Map(before.map((item) => [item.text, item.status]));
  for (const [status, verb] of [
    ["completed", "finished"],
    ["in_progress", "began"],
  ] as const) {
    const item = now.find((one) => one.status === status && known.get(one.text) !== status);
    if (item) return `${verb} ${item.text}`;
  }
  const added = now.find((item) => !known.has(item.text));
  return added ? `added ${added.text}` : "unchanged";
}

/** Heights before a row was ever drawn; near enough that the page does not jump. */
export function estimatedHeight(row: Row): number {
  switch (row.type) {
    case "text":
      return 24 + 22 * Math.min(60, Math.ceil(row.text.length / 95) + newlines(row.text));
    case "user":
      return 40 + 22 * Math.min(20, newlines(row.text));
    case "tool":
      return row.result?.isError ? 150 : 30;
    case "plan":
      return row.change === null ? 44 + row.items.length * 24 : 30;
    case "notice":
      return 10 + 20 * row.lines.length;
    case "diff":
      return 40 + 20 * row.lines.length;
    case "turn":
      return 44;
    default:
      return 30;
  }
}

function newlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf("\n"); at >= 0 && count < 100; at = text.indexOf("\n", at + 1))
    count++;
  return count;
}
