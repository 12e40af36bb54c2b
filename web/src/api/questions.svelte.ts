/** Open questions to a person, by the runs and the tasks that wait for an answer. */

import { board } from "./board.svelte";
import { request } from "./client";
import type { Interaction, Page } from "./types";
import { TERMINAL } from "./types";

/** Many runs that end at once are one look. */
const SOON_MS = 200;

class Questions {
  runs = $state.raw<ReadonlySet<string>>(new Set());
  tasks = $state.raw<ReadonlySet<string>>(new Set());
  private watched = false;
  private soon: ReturnType<typeof setTimeout> | undefined;

  /** Begin to look: questions are told when they are asked, answers follow a run that ends. */
  watch(): void {
    if (this.watched) return;
    this.watched = true;
    void this.load();
    board.hear((notice) => {
      const ended = notice.name === "run" && TERMINAL.has(notice.run.status);
      if (!ended && notice.name !== "reset" && notice.name !== "question") return;
      clearTimeout(this.soon);
      this.soon = setTimeout(() => void this.load(), SOON_MS);
    });
  }

  async load(): Promise<Interaction[]> {
    const open = await request<Page<Interaction>>("/api/interactions?status=open&limit=200")
      .then((page) => page.items)
      .catch(() => []);
    this.runs = new Set(open.map((one) => one.runId).filter((id) => id !== null));
    this.tasks = new Set(open.map((one) => one.taskId));
    return open;
  }
}

export const questions = new Questions();
