/** Notices of the browser when a run ends while nobody looks; only after a person asked for them. */

import { board } from "../api/board.svelte";
import { TERMINAL } from "../api/types";
import { STATE_WORDS, shapeOf, title } from "../words/states";

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
      // The tag makes ten open tabs tell it once.
      new Notification(`${STATE_WORDS[status]}: ${title(notice.run)}`, {
        tag: id,
        icon: `/icons/${shapeOf(status)}.svg`,
      });
    });
  }
}

export const notices = new Notices();
