/** Pasted output as an adapter's parser reads it on the server; nothing of it is kept. */

import { ApiError, send } from "../api/client";
import type { Entry, Parsed } from "../api/types";
import { buildRows, type Row } from "../transcript/rows";
import type { Reader } from "../viewer/reader";
import { opensItself } from "../viewer/run.svelte";

export interface Pasting {
  stdout: string;
  stderr: string;
  exitCode: number;
}

export class Pasted implements Reader {
  readonly id = "";
  readonly run = null;
  readonly live = false;
  told = $state.raw<Parsed | null>(null);
  problem = $state.raw<ApiError | null>(null);
  busy = $state(false);
  private opened = $state.raw<ReadonlyMap<string, boolean>>(new Map());
  private asked = 0;

  readonly rows: readonly Row[] = $derived.by(() => {
    if (!this.told) return [];
    const plain = this.told.parser.kind === "generic";
    const options = { plain, hidden: new Set<Entry["kind"]>(), unfold: false };
    return buildRows(this.told.entries, { ...options, opened: this.opened }).rows;
  });

  async parse(type: string, body: Pasting): Promise<void> {
    const asked = ++this.asked;
    this.busy = true;
    this.problem = null;
    try {
      const told = await send<Parsed>("POST", `/api/adapters/${type}/parse`, body);
      if (asked !== this.asked) return;
      this.told = told;
      this.opened = new Map();
    } catch (problem) {
      if (asked === this.asked) this.problem = problem as ApiError;
    } finally {
      if (asked === this.asked) this.busy = false;
    }
  }

  isOpen(row: Row): boolean {
    return this.opened.get(row.key) ?? opensItself(row);
  }

  toggle(key: string, open: boolean): void {
    this.opened = new Map(this.opened).set(key, open);
  }

  /** What is longer is in the pasted text. */
  async whole(entryId: string): Promise<Entry> {
    const found = this.told?.entries.find((entry) => entry.id === entryId);
    if (!found) throw new ApiError(404, "not_found", "There is no such entry.");
    return found;
  }
}
