/** The runs in the list: pages read as the reader goes down, kept alive by the board's stream. */

import { board } from "../api/board.svelte";
import { type ApiError, type RunFilter, runs } from "../api/client";
import type { RunView } from "../api/types";
import { TERMINAL } from "../api/types";
import { title } from "../words/states";

const PAGE = 200;
const ALIVE = ["running", "queued"] as const;

export class RunList {
  problem = $state.raw<ApiError | null>(null);
  loaded = $state(false);
  more = $state(true);
  private known = $state.raw<ReadonlyMap<string, RunView>>(new Map());
  private next: string | null = null;
  private loading = false;
  private filter: RunFilter = {};
  private forget: () => void;

  /** Running ones on top, then newest first: ids grow with time. */
  readonly all = $derived(
    [...this.known.values()].sort((a, b) => {
      const order = Number(TERMINAL.has(a.status)) - Number(TERMINAL.has(b.status));
      return order || (a.id < b.id ? 1 : -1);
    }),
  );

  constructor() {
    this.forget = board.hear((notice) => {
      if (notice.name === "reset") void this.open(this.filter);
      else if (notice.name !== "run") return;
      else if (fits(notice.run, this.filter)) this.put([notice.run]);
      else this.drop(notice.run.id);
    });
  }

  close(): void {
    this.forget();
  }

  async open(filter: RunFilter): Promise<void> {
    this.filter = filter;
    this.loading = true;
    try {
      const [page, ...alive] = await Promise.all([
        runs.list(server(filter), null, PAGE),
        // Those that work for long may be older than the first page.
        ...(filter.status
          ? []
          : ALIVE.map((status) => runs.list(server({ ...filter, status }), null, PAGE))),
      ]);
      if (this.filter !== filter) return;
      this.known = new Map();
      this.next = page.next;
      this.more = page.next !== null;
      this.put([...alive.flatMap((one) => one.items), ...page.items]);
      this.problem = null;
    } catch (problem) {
      this.problem = problem as ApiError;
    } finally {
      this.loading = false;
      this.loaded = true;
    }
  }

  async extend(): Promise<void> {
    if (this.loading || this.next === null) return;
    this.loading = true;
    try {
      const page = await runs.list(server(this.filter), this.next, PAGE);
      this.next = page.next;
      this.more = page.next !== null;
      this.put(page.items);
    } catch (problem) {
      this.problem = problem as ApiError;
    } finally {
      this.loading = false;
    }
  }

  private put(items: readonly RunView[]): void {
    const known = new Map(this.known);
    for (const run of items) known.set(run.id, run);
    this.known = known;
  }

  private drop(id: string): void {
    if (!this.known.has(id)) return;
    const known = new Map(this.known);
    known.delete(id);
    this.known = known;
  }
}

function server({ status, adapterType, agentId }: RunFilter): RunFilter {
  return { status, adapterType, agentId };
}

export function fits(run: RunView, filter: RunFilter): boolean {
  return (
    (!filter.status || run.status === filter.status) &&
    (!filter.adapterType || run.adapterType === filter.adapterType) &&
    (!filter.agentId || run.agentId === filter.agentId)
  );
}

/** Whether a run tells of some words. */
export function tells(run: RunView, words: string): boolean {
  const text = [title(run), run.prompt, run.agentName, run.adapterType, run.model, run.id, run.cwd];
  const wanted = words.toLowerCase();
  return text.some((part) => part?.toLowerCase().includes(wanted));
}
