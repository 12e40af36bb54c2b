/** Requests to the server; a refusal becomes an `ApiError` that says what to do. */

import type {
  Checkpoint,
  Entry,
  JobDetail,
  Outline,
  Page,
  RunChanges,
  RunDetail,
  RunEvent,
  RunView,
  SearchMatch,
  TranscriptPage,
} from "./types";

export class ApiError extends Error {
  constructor(
    readonly status: number,
    readonly code: string,
    message: string,
    readonly hint: string | null = null,
    readonly fields: Record<string, string> = {},
  ) {
    super(message);
  }
}

export async function request<T>(path: string, init: RequestInit = {}): Promise<T> {
  const answer = await ask(path, init);
  if (answer.status === 204) return undefined as T;
  return (await answer.json()) as T;
}

export async function text(path: string, signal?: AbortSignal): Promise<string> {
  return (await ask(path, { signal })).text();
}

/** Save what the server gives as a file of the name that it tells. */
export async function download(path: string): Promise<void> {
  const answer = await ask(path, {});
  const told = /filename="([^"]+)"/.exec(answer.headers.get("content-disposition") ?? "");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(await answer.blob());
  link.download = told?.[1] ?? "download";
  link.click();
  URL.revokeObjectURL(link.href);
}

async function ask(path: string, init: RequestInit): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, { credentials: "same-origin", ...init });
  } catch {
    throw new ApiError(
      0,
      "unreachable",
      "The server does not answer.",
      "Is `binderclip up` running?",
    );
  }
  if (!answer.ok) throw await refusal(answer);
  return answer;
}

async function refusal(answer: Response): Promise<ApiError> {
  const told = (await answer.json().catch(() => null)) as {
    error?: { code?: string; message?: string; hint?: string; fields?: Record<string, string> };
  } | null;
  const error = told?.error;
  const message = error?.message ?? `The server answered ${answer.status}.`;
  return new ApiError(answer.status, error?.code ?? "failed", message, error?.hint, error?.fields);
}

export function send<T>(method: string, path: string, body?: unknown): Promise<T> {
  return request<T>(path, {
    method,
    headers: body === undefined ? {} : { "content-type": "application/json" },
    body: body === undefined ? undefined : JSON.stringify(body),
  });
}

export function query(values: Record<string, string | number | null | undefined>): string {
  const given = Object.entries(values).filter(([, value]) => value != null && value !== "");
  const text = new URLSearchParams(given.map(([key, value]) => [key, String(value)])).toString();
  return text ? `?${text}` : "";
}

export interface RunFilter {
  status?: string | null;
  adapterType?: string | null;
  agentId?: string | null;
  taskId?: string | null;
  q?: string | null;
}

export const runs = {
  list: (filter: RunFilter, cursor: string | null, limit = 100) =>
    request<Page<RunView>>(`/api/runs${query({ ...filter, cursor, limit })}`),
  show: (id: string) => request<RunDetail>(`/api/runs/${id}`),
  page: (id: string, from: number, limit: number, signal?: AbortSignal) =>
    request<TranscriptPage>(`/api/runs/${id}/transcript${query({ from, limit })}`, { signal }),
  outline: (id: string) => request<Outline>(`/api/runs/${id}/outline`),
  entry: (id: string, entryId: string) =>
    request<Entry>(`/api/runs/${id}/entries/${encodeURIComponent(entryId)}`),
  search: (id: string, q: string, from: number, signal?: AbortSignal) =>
    request<{ matches: SearchMatch[]; next: number | null; total: number }>(
      `/api/runs/${id}/search${query({ q, from, limit: 500 })}`,
      { signal },
    ),
  job: (id: string) => request<JobDetail>(`/api/runs/${id}/job`),
  checkpoints: (id: string) => request<Checkpoint[]>(`/api/runs/${id}/checkpoints`),
  events: (id: string, cursor: string | null) =>
    request<Page<RunEvent>>(`/api/runs/${id}/events${query({ cursor, limit: 100 })}`),
  changes: (id: string, signal?: AbortSignal) =>
    request<RunChanges>(`/api/runs/${id}/diff`, { signal }),
  retry: (id: string) => send<{ runId: string }>("POST", `/api/runs/${id}/retry`),
  goOn: (id: string, prompt: string) =>
    send<{ runId: string }>("POST", `/api/runs/${id}/continue`, { prompt }),
  cancel: (id: string, kill = false) => send<RunView>("POST", `/api/runs/${id}/cancel`, { kill }),
};
