/** Notices of the browser when a run ends or somebody is asked while nobody looks; opt-in. */

import { type AskedPerson, board } from "../api/board.svelte";
import type { RunView } from "../api/types";
import { TERMINAL } from "../api/types";
import { STATE_WORDS, shapeOf, title } from "../words/states";
import { route } from "./route.svelte";

class Notices {
  readonly possible = "Notification" in window;
  wanted = $state(localStorage.getItem("notices") === "on" && this.allowed());
  refused = $state(false);
  private told = new Set<string>();
  private listening = false;

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
    if (this.listening) return;
    this.listening = true;
    board.hear((notice) => {
      if (!this.wanted || !document.hidden) return;
      if (notice.name === "run") this.ended(notice.run);
      else if (notice.name === "question") this.asked(notice.question);
    });
  }

  private ended(run: RunView): void {
    const { id, status } = run;
    if (!TERMINAL.has(status)) return;
    this.tell(id, `${STATE_WORDS[status]}: ${title(run)}`, shapeOf(status), `/runs/${id}`);
  }

  private asked({ id, title: about, taskId, runId }: AskedPerson): void {
    const place = taskId ? `/tasks/${taskId}` : runId ? `/runs/${runId}` : "/tasks";
    this.tell(id, `waits for you: ${about}`, "queued", place);
  }

  private tell(id: string, words: string, shape: string, place: string): void {
    if (this.told.has(id)) return;
    this.told.add(id);
    // The tag makes ten open tabs tell it once.
    const shown = new Notification(words, { tag: id, icon: `/icons/${shape}.svg` });
    shown.onclick = () => {
      window.focus();
      route.go(place);
      shown.close();
    };
  }
}

export const notices = new Notices();
