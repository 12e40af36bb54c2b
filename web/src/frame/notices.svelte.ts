/** Notices of the browser when a run ends or asks while nobody looks; only after a person asked for them. */

import { board } from "../api/board.svelte";
import { questions } from "../api/questions.svelte";
import type { RunView } from "../api/types";
import { TERMINAL } from "../api/types";
import { STATE_WORDS, shapeOf, title } from "../words/states";
import { route } from "./route.svelte";

class Notices {
  readonly possible = "Notification" in window;
  wanted = $state(localStorage.getItem("notices") === "on" && this.allowed());
  refused = $state(false);
  private told = new Set<string>();

  constructor() {
    if (this.wanted) this.listen();
  }

  async want(on: boolean): Promise<void> {
    const granted = on && (await Notification.requestPermission()) === "granted";
    this.refused = on && !granted;
    this.wanted = granted;
    localStorage.setItem("notices", granted ? "on" : "off");
    if (granted) this.listen();
  }

  private allowed(): boolean {
    return "Notification" in window && Notification.permission === "granted";
  }

  private listen(): void {
    board.hear((notice) => {
      if (notice.name !== "run" || !this.wanted || !document.hidden) return;
      const { id, status } = notice.run;
      if (!TERMINAL.has(status) || this.told.has(id)) return;
      this.told.add(id);
      void this.tell(notice.run);
    });
  }

  /** A run that left a question waits for a person; that is said instead of how it ended. */
  private async tell(run: RunView): Promise<void> {
    const asked = (await questions.load()).find((one) => one.runId === run.id);
    const words = asked ? "Waits for you" : STATE_WORDS[run.status];
    // The tag makes ten open tabs tell it once.
    const shown = new Notification(`${words}: ${title(run)}`, {
      tag: run.id,
      icon: `/icons/${shapeOf(run.status)}.svg`,
    });
    shown.onclick = () => {
      window.focus();
      route.go(asked ? `/tasks/${asked.taskId}` : `/runs/${run.id}`);
    };
  }
}

export const notices = new Notices();
