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
  title: string | null;
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
  /** Why it cannot be done again from here, or gone on from with a message. */
  retryRefusal: string | null;
  messageRefusal: string | null;
}

export interface FileChange {
  status: string;
  path: string;
  /** Null for a binary file. */
  added: number | null;
  removed: number | null;
  shown: boolean;
}

export interface RunChanges {
  basis: "workspace" | "directory" | "none";
  reason: string | null;
  files: FileChange[];
  leftOut: number;
  diff: string;
}

export interface TranscriptPage {
  entries: Entry[];
  fromSeq: number;
  total: number;
  complete: boolean;
  cursor: string;
}

export interface TokenUsage {
  inputTokens: number;
  outputTokens: number;
  totalTokens: number;
}

export interface Checkpoint {
  id: string;
  jobId: string;
  runId: string;
  status: string;
  stepNumber: number;
  messages: unknown[];
  usage: TokenUsage;
}

/** An event of a run; which of the fields it has, its type tells. */
export interface RunEvent {
  type: string;
  id: string;
  timestamp: number;
  stepNumber?: number;
  expertName?: string;
  model?: string;
  resumedFrom?: string | null;
  inputMessages?: { contents: { text?: string }[] }[];
  toolCalls?: { toolName: string }[];
  toolResults?: { toolName: string; isError?: boolean; durationMs?: number | null }[];
  reason?: string;
  text?: string;
  error?: { name: string; message: string } | null;
}

export interface JobRun {
  id: string;
  status: RunState;
  adapterType: string;
  title: string | null;
  startedAt: number;
}

export interface JobNode {
  run: JobRun;
  children: JobNode[];
}

export interface JobDetail {
  job: {
    id: string;
    status: string;
    totalSteps: number;
    usage: TokenUsage;
    costUsd: number | null;
  };
  runs: JobRun[];
  tree: JobNode[];
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

export interface ConfigField {
  key: string;
  label: string;
  type:
    | "text"
    | "textarea"
    | "number"
    | "toggle"
    | "select"
    | "combobox"
    | "secret"
    | "list"
    | "keyvalue";
  options?: { value: string; label: string }[];
  default?: unknown;
  hint?: string | null;
  required?: boolean;
  group?: string | null;
  dangerous?: boolean;
}

export interface Capabilities {
  supportsLocalAgentJwt: boolean;
  supportsInstructionsBundle: boolean;
  instructionsPathKey: string;
  requiresMaterializedRuntimeSkills: boolean;
  supportsSkills: boolean;
}

export interface Adapter {
  type: string;
  label: string;
  source: "builtin" | "external";
  version: string;
  state: "ready" | "broken" | "disabled" | "missing";
  disabled: boolean;
  models: { id: string; label: string }[];
  parser: string;
  capabilities: Capabilities;
  packageName: string | null;
  overriddenBuiltin: boolean | null;
  overridePaused: boolean | null;
  problem: string | null;
}

export interface ModelList {
  type: string;
  models: { id: string; label: string }[];
  source: "runtime" | "declared";
  detected: string | null;
  askedAt: string;
  problem: string | null;
}

export interface Parsed {
  parser: {
    kind: "builtin" | "plugin" | "ui-parser" | "generic";
    version: string;
    why: string;
    problem: string | null;
    failures: string[];
    dropped: number;
  };
  coverage: { lines: number; understood: number; unknown: number };
  total: number;
  entries: Entry[];
  result: { errorCode: string | null; errorMessage: string | null; summary: string | null };
}

export interface Budget {
  usd: number | null;
  tokens: number | null;
  runs: number | null;
  minutes: number | null;
  period: "day" | "month" | "total";
}

export interface Agent {
  id: string;
  companyId: string;
  name: string;
  adapterType: string;
  adapterConfig: Record<string, unknown>;
  role: string | null;
  status: "active" | "paused" | "archived";
  pausedReason: string | null;
  heartbeatMinutes: number | null;
  nextBeatAt: string | null;
  maxConcurrentRuns: number;
  retryLimit: number;
  budget: Budget;
  runBudget: Budget;
  environmentId: string | null;
  workspace: "worktree" | "cwd";
  instructions: string | null;
  createdAt: string;
}

export interface AgentState {
  spent: { usd: number; tokens: number; runs: number; minutes: number; since: string | null };
  pauses: { id: string; taskKey: string; reason: string; runId: string; since: string }[];
}

export interface Check {
  code: string;
  level: "info" | "warn" | "error";
  message: string;
  detail?: string | null;
  hint?: string | null;
}

export interface EnvironmentReport {
  adapterType: string;
  status: "pass" | "warn" | "fail";
  checks: Check[];
  testedAt: string;
}

export interface Environment {
  id: string;
  name: string;
  kind: "local" | "ssh";
  config: Record<string, unknown>;
}

export interface Session {
  agentId: string;
  adapterType: string;
  taskKey: string;
  displayId: string | null;
  cwd: string | null;
  lastRunId: string | null;
  runs: number;
  tokens: number;
  updatedAt: string;
}

export type TaskStatus =
  | "backlog"
  | "todo"
  | "in_progress"
  | "in_review"
  | "blocked"
  | "done"
  | "cancelled";

export interface Task {
  id: string;
  identifier: string;
  title: string;
  body: string;
  status: TaskStatus;
  priority: "critical" | "high" | "medium" | "low";
  assigneeAgentId: string | null;
  parentId: string | null;
  blockedBy: string[];
  cwd: string | null;
  workspace: "worktree" | "cwd" | null;
  environmentId: string | null;
  checkoutRunId: string | null;
  createdBy: string;
  createdAt: string;
  updatedAt: string;
}

export interface Comment {
  id: string;
  author: string;
  body: string;
  runId: string | null;
  createdAt: string;
}

export interface Interaction {
  id: string;
  taskId: string;
  runId: string | null;
  agentId: string | null;
  kind: "request_confirmation" | "suggest_tasks" | "ask_user_questions";
  status: "open" | "accepted" | "rejected" | "answered" | "cancelled";
  payload: Record<string, unknown>;
  response: Record<string, unknown> | null;
  createdAt: string;
  resolvedAt: string | null;
}

export interface WorkspaceOperation {
  id: string;
  runId: string;
  taskId: string | null;
  kind: "worktree_prepare" | "execute" | "workspace_finalize";
  status: "running" | "succeeded" | "failed" | "waived";
  startedAt: string;
  endedAt: string | null;
  error: string | null;
  waivedBy: string | null;
  waiveReason: string | null;
}

export interface Workspace {
  id: string;
  taskKey: string;
  kind: "worktree" | "cwd";
  source: string;
  tree: string;
  branch: string | null;
  base: string | null;
  state: "preparing" | "active" | "conflict" | "archived";
  agentId: string | null;
  environmentId: string | null;
  away: boolean;
  runId: string | null;
  notes: string[];
  usedAt: string;
  /** Null while it is not counted yet. */
  bytes: number | null;
}

export interface WorkspaceDetail {
  workspace: Workspace;
  commits: string[];
  files: { status: string; path: string }[];
  uncommitted: number;
  problem: string | null;
  operations: WorkspaceOperation[];
}

/** How a conflict is settled. */
export type Take = "ours" | "theirs" | "markers";
