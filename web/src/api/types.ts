/** What crosses the wire, as the server's contract names it. */

export type RunState =
  | "queued"
  | "starting"
  | "running"
  | "finalizing"
  | "succeeded"
  | "failed"
  | "timed_out"
  | "cancelled"
  | "lost";

export const TERMINAL: ReadonlySet<RunState> = new Set([
  "succeeded",
  "failed",
  "timed_out",
  "cancelled",
  "lost",
] as const);

export type ToolKind =
  | "shell"
  | "read"
  | "write"
  | "edit"
  | "search"
  | "web"
  | "todo"
  | "agent"
  | "mcp"
  | "other";

export type ChangeType = "add" | "remove" | "context" | "hunk" | "file_header" | "truncation";

interface Fields {
  ts: string;
  id: string;
  seq: number;
  attempt?: number;
  stream?: "stdout" | "stderr";
  offset?: number;
  parentToolUseId?: string | null;
  truncated?: { bytes: number } | null;
}

export interface Init extends Fields {
  kind: "init";
  model: string;
  sessionId: string;
}
export interface Said extends Fields {
  kind: "assistant" | "thinking" | "user" | "stderr" | "system" | "stdout";
  text: string;
  delta?: boolean;
}
export interface ToolCall extends Fields {
  kind: "tool_call";
  name: string;
  input: unknown;
  toolUseId?: string | null;
  toolKind?: ToolKind | null;
  title?: string | null;
}
export interface Attachment {
  mediaType: string;
  ref: string;
}
export interface ToolResult extends Fields {
  kind: "tool_result";
  toolUseId: string;
  content: string;
  isError: boolean;
  toolName?: string | null;
  exitCode?: number | null;
  durationMs?: number | null;
  attachments?: Attachment[];
  pairedByGuess?: boolean;
}
export interface TurnResult extends Fields {
  kind: "result";
  text: string;
  inputTokens: number;
  outputTokens: number;
  cachedTokens: number;
  costUsd: number | null;
  subtype: string;
  isError: boolean;
  errors: string[];
}
export interface DiffLine extends Fields {
  kind: "diff";
  changeType: ChangeType;
  text: string;
  toolUseId?: string | null;
  path?: string | null;
}

export type Entry = Init | Said | ToolCall | ToolResult | TurnResult | DiffLine;
export type EntryKind = Entry["kind"];

export type TranscriptRecord =
  | { type: "entry"; entry: Entry }
  | { type: "append"; id: string; text: string }
  | { type: "replace"; id: string; entry: Entry };

export interface Usage {
  inputTokens: number | null;
  cachedInputTokens: number | null;
  cacheWriteTokens: number | null;
  outputTokens: number | null;
  reasoningTokens: number | null;
  source: "reported" | "derived" | "unknown";
}

export interface RunView {
  id: string;
  status: RunState;
  adapterType: string;
  cwd: string | null;
  prompt: string | null;
  agentId: string | null;
  agentName: string | null;
  taskId: string | null;
  wakeReasons: string[];
  createdAt: string;
  startedAt: string | null;
  endedAt: string | null;
  attempts: number;
  sessionId: string | null;
  sessionReason: string | null;
  provider: string | null;
  model: string | null;
  usage: Usage | null;
  costUsd: number | null;
  errorCode: string | null;
  errorMessage: string | null;
  retryOf: string | null;
  summary: string | null;
  coverage: { lines: number; understood: number; unknown: number } | null;
  directory: string | null;
  scheduled?: boolean;
  waitingFor?: string | null;
  budgetNote?: string | null;
  result?: { exitCode: number | null; signal: string | null } | null;
}

export interface StateChange {
  state: RunState;
  at: string;
  reason: string;
  actor: string;
}

export interface AttemptDetail {
  attempt: number;
  meta: Record<string, unknown> | null;
  exit: Record<string, unknown> | null;
}

export interface RunDetail extends RunView {
  history: StateChange[];
  config: Record<string, unknown>;
  context: Record<string, unknown>;
  attemptDetails: AttemptDetail[];
}

export interface TranscriptPage {
  entries: Entry[];
  fromSeq: number;
  total: number;
  complete: boolean;
  cursor: string;
}

export interface Bucket {
  fromSeq: number;
  entries: number;
  modelMs: number;
  toolMs: number;
  waitMs: number;
  errors: number;
}

export interface AttemptOutline {
  attempt: number;
  fromSeq: number;
  total: number;
  parser: string;
  parserVersion: string;
  startedMs: number | null;
  endedMs: number | null;
  bucketMs: number;
  buckets: Bucket[];
}

export interface Outline {
  total: number;
  cursor: string;
  complete: boolean;
  kinds: Partial<Record<EntryKind, number>>;
  errorCount: number;
  errors: number[];
  attempts: AttemptOutline[];
  slowestTools: { seq: number; name: string | null; durationMs: number; isError: boolean }[];
  tools: { name: string; count: number; errors: number; totalMs: number; longestMs: number }[];
}

export interface SearchMatch {
  seq: number;
  id: string;
  kind: EntryKind;
  excerpt: string;
}

export interface Page<T> {
  items: T[];
  next: string | null;
}
