/** The stream of the lists, held by one tab and shared with the others (D9). */

import { EventFeed } from "./stream";
import type { RunView } from "./types";

export type Notice =
  | { name: "run"; run: RunView }
  | { name: "adapter" }
  | { name: "progress"; about: string; step: string }
  | { name: "question"; question: AskedPerson }
  | { name: "reset" };

/** A question that waits for a person, as it is told when it is asked. */
export interface AskedPerson {
  id: string;
  title: string;
  taskId: string | null;
  runId: string | null;
}
type Listener = (notice: Notice) => void;

class Board {
  connected = $state(true);
  private listeners = new Set<Listener>();
  private channel: BroadcastChannel | null = null;

  /** Hear of every run that changes; the answer stops it. */
  hear(listener: Listener): () => void {
    this.listeners.add(listener);
    if (!this.channel) this.start();
    return () => this.listeners.delete(listener);
  }

  private start(): void {
    this.channel = new BroadcastChannel("binderclip-board");
    this.channel.onmessage = (event: MessageEvent<Notice>) => this.tell(event.data);
    const hold = () => new Promise<never>(() => this.listen());
    // Without locks (plain http to another machine) every tab listens for itself.
    if (navigator.locks) void navigator.locks.request("binderclip-board", hold);
    else this.listen();
  }

  private listen(): void {
    const pass = (notice: Notice) => {
      this.channel?.postMessage(notice);
      this.tell(notice);
    };
    new EventFeed(
      () => "/api/events",
      {
        connected: (is) => {
          // What happened while nobody listened is read again.
          if (is && !this.connected) pass({ name: "reset" });
          this.connected = is;
        },
        events: {
          run: (data) => pass({ name: "run", run: JSON.parse(data) as RunView }),
          question: (data) => pass({ name: "question", question: JSON.parse(data) as AskedPerson }),
          adapter: () => pass({ name: "adapter" }),
          "adapter-progress": (data) => {
            const { about, progress } = JSON.parse(data) as {
              about: string;
              progress: { step?: string; message?: string };
            };
            pass({ name: "progress", about, step: progress.message ?? progress.step ?? "" });
          },
          reset: () => pass({ name: "reset" }),
        },
      },
      null,
      { rests: false },
    );
  }

  private tell(notice: Notice): void {
    for (const listener of this.listeners) listener(notice);
  }
}

export const board = new Board();
