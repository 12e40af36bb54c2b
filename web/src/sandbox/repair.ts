/** What a foreign parser returned, as entries of the contract (T1, T4).

The host does the same in Python; both follow the same vectors. */

import type { ChangeType, Entry, ToolKind } from "../api/types";

type Item = Record<string, unknown>;
type Bare<T> = T extends Entry ? Omit<T, "id" | "seq"> : never;
/** An entry that has no place in a transcript yet. */
export type MadeEntry = Bare<Entry>;
interface OpenCall {
  told: string;
  used: string;
  name: string;
}

const MOST_ENTRIES = 200;
const SAID = new Set(["assistant", "thinking", "user", "stderr", "system", "stdout"]);
const KINDS = new Set([...SAID, "init", "tool_call", "tool_result", "result", "diff"]);
const CHANGES = new Set(["add", "remove", "context", "hunk", "file_header", "truncation"]);
const TOOL_KINDS = new Set(
  "shell read write edit search web todo agent mcp other".split(" "),
) as ReadonlySet<unknown>;

export class Repair {
  dropped = 0;
  repaired = 0;
  private made = 0;
  private readonly uses = new Map<string, number>();
  private open: OpenCall[] = [];

  constructor(private readonly renumber = false) {}

  /** The entries of one line; things that are none are dropped and counted. */
  entries(answer: unknown, ts: string): MadeEntry[] {
    if (answer === null || answer === undefined) return [];
    if (!Array.isArray(answer)) this.repaired++;
    const given = Array.isArray(answer) ? answer.slice(0, MOST_ENTRIES) : [answer];
    return given.map((item) => this.one(item, ts)).filter((entry) => entry !== null);
  }

  private one(item: unknown, ts: string): MadeEntry | null {
    const made = isItem(item) && typeof item.kind === "string" ? this.shaped(item, ts) : null;
    if (!made) this.dropped++;
    else if (isItem(item) && typeof item.ts !== "string") this.repaired++;
    return made;
  }

  private shaped(item: Item, ts: string): MadeEntry | null {
    const kind = item.kind as string;
    if (!KINDS.has(kind)) {
      this.repaired++;
      return { kind: "stdout", ts, text: JSON.stringify(item) };
    }
    const parent = text(item, "parentToolUseId");
    const lane = parent ? { parentToolUseId: parent } : {};
    if (SAID.has(kind)) return said(item, ts, lane);
    if (kind === "tool_call") return this.call(item, ts, lane);
    if (kind === "tool_result") return this.result(item, ts, lane);
    if (kind === "diff") return diff(item, ts, lane);
    return kind === "init" ? init(item, ts) : end(item, ts);
  }

  private call(item: Item, ts: string, lane: object): MadeEntry | null {
    if (typeof item.name !== "string") return null;
    const told = text(item, "toolUseId") ?? "";
    const used = this.idOfCall(told);
    if (used !== told) this.repaired++;
    this.open.push({ told, used, name: item.name });
    const title = text(item, "title");
    return {
      kind: "tool_call",
      ts,
      name: item.name,
      input: item.input ?? {},
      toolUseId: used,
      ...(TOOL_KINDS.has(item.toolKind) ? { toolKind: item.toolKind as ToolKind } : {}),
      ...(title ? { title } : {}),
      ...lane,
    };
  }

  private idOfCall(told: string): string {
    if (!told || this.renumber) return `call-${++this.made}`;
    const uses = (this.uses.get(told) ?? 0) + 1;
    this.uses.set(told, uses);
    return uses === 1 ? told : `${told}#${uses}`;
  }

  private result(item: Item, ts: string, lane: object): MadeEntry | null {
    const { content } = item;
    if (content === null || content === undefined) return null;
    const name = text(item, "toolName");
    const { used, known, guessed } = this.pair(text(item, "toolUseId") ?? "", name);
    const toolName = name ?? known;
    const exitCode = whole(item, "exitCode");
    const durationMs = whole(item, "durationMs");
    if (guessed || typeof content !== "string") this.repaired++;
    return {
      kind: "tool_result",
      ts,
      toolUseId: used,
      content: typeof content === "string" ? content : JSON.stringify(content),
      isError: item.isError === true,
      ...(toolName ? { toolName } : {}),
      ...(exitCode === null ? {} : { exitCode }),
      ...(durationMs === null ? {} : { durationMs }),
      ...(guessed ? { pairedByGuess: true } : {}),
      ...lane,
    };
  }

  /** The call that a result answers: by its id, else by name and order, which is a guess. */
  private pair(told: string, name: string | null) {
    const byId = told ? this.open.findLast((call) => call.told === told) : undefined;
    if (byId) return this.closed(byId, false);
    const wanted = name ?? told;
    const byName = this.open.filter((call) => call.name === wanted);
    if (byName.length) return this.closed(byName[0]!.told ? byName.at(-1)! : byName[0]!, true);
    const nameless = !name && !told ? this.open.find((call) => !call.told) : undefined;
    if (nameless) return this.closed(nameless, true);
    const used = told && !this.renumber ? told : `call-${++this.made}`;
    return { used, known: null, guessed: false };
  }

  private closed(call: OpenCall, guessed: boolean) {
    this.open = this.open.filter((one) => one !== call);
    return { used: call.used, known: call.name, guessed };
  }
}

function said(item: Item, ts: string, lane: object): MadeEntry | null {
  if (typeof item.text !== "string") return null;
  const kind = item.kind as "assistant";
  const grows = (item.kind === "assistant" || item.kind === "thinking") && item.delta === true;
  return { kind, ts, text: item.text, ...(grows ? { delta: true } : {}), ...lane };
}

function diff(item: Item, ts: string, lane: object): MadeEntry | null {
  if (typeof item.text !== "string" || !CHANGES.has(item.changeType as string)) return null;
  const toolUseId = text(item, "toolUseId");
  const path = text(item, "path");
  return {
    kind: "diff",
    ts,
    changeType: item.changeType as ChangeType,
    text: item.text,
    ...(toolUseId ? { toolUseId } : {}),
    ...(path ? { path } : {}),
    ...lane,
  };
}

function init(item: Item, ts: string): MadeEntry {
  const model = text(item, "model") ?? "";
  return { kind: "init", ts, model, sessionId: text(item, "sessionId") ?? "" };
}

function end(item: Item, ts: string): MadeEntry {
  const errors = Array.isArray(item.errors) ? item.errors : [];
  return {
    kind: "result",
    ts,
    text: text(item, "text") ?? "",
    inputTokens: whole(item, "inputTokens") ?? 0,
    outputTokens: whole(item, "outputTokens") ?? 0,
    cachedTokens: whole(item, "cachedTokens") ?? 0,
    costUsd: typeof item.costUsd === "number" ? item.costUsd : null,
    subtype: text(item, "subtype") ?? "",
    isError: item.isError === true,
    errors: errors.filter((error): error is string => typeof error === "string"),
  };
}

function isItem(value: unknown): value is Item {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function text(item: Item, key: string): string | null {
  const value = item[key];
  return typeof value === "string" && value ? value : null;
}

function whole(item: Item, key: string): number | null {
  const value = item[key];
  return typeof value === "number" && Math.abs(value) < 2 ** 53 ? Math.trunc(value) : null;
}
