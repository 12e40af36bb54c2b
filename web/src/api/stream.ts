/** A stream of server-sent events that heals itself and rests while the page is hidden (D9). */

export interface StreamHandlers {
  /** Called for each named event with its data and id. */
  events: Record<string, (data: string, id: string) => void>;
  connected?: (is: boolean) => void;
}

/** A hidden page keeps its connection for a moment, since people flick between tabs. */
const REST_AFTER_MS = 1500;
const RETRY_MS = 1500;

export class EventFeed {
  private source: EventSource | null = null;
  private ended = false;
  private rest: ReturnType<typeof setTimeout> | null = null;
  private retry: ReturnType<typeof setTimeout> | null = null;

  constructor(
    private readonly address: (after: string | null) => string,
    private readonly handlers: StreamHandlers,
    private last: string | null = null,
    /** The stream that other tabs share goes on while its own is hidden. */
    options: { rests: boolean } = { rests: true },
  ) {
    if (options.rests) document.addEventListener("visibilitychange", this.seen);
    if (!options.rests || !document.hidden) this.open();
  }

  /** Stop for good. */
  end(): void {
    this.ended = true;
    document.removeEventListener("visibilitychange", this.seen);
    this.close();
  }

  private readonly seen = (): void => {
    if (this.rest) clearTimeout(this.rest);
    this.rest = null;
    if (document.hidden) this.rest = setTimeout(() => this.close(), REST_AFTER_MS);
    else if (!this.source) this.open();
  };

  private open(): void {
    if (this.ended || this.source) return;
    const source = new EventSource(this.address(this.last));
    this.source = source;
    source.onopen = () => this.handlers.connected?.(true);
    source.onerror = () => {
      // A browser gives up for good after some errors; starting anew always heals.
      this.handlers.connected?.(false);
      this.close();
      this.retry = setTimeout(() => this.open(), RETRY_MS);
    };
    for (const [name, handle] of Object.entries(this.handlers.events)) {
      source.addEventListener(name, (event) => {
        const { data, lastEventId } = event as MessageEvent<string>;
        if (this.source !== source) return;
        if (lastEventId) this.last = lastEventId;
        handle(data, lastEventId);
      });
    }
  }

  private close(): void {
    if (this.retry) clearTimeout(this.retry);
    this.retry = null;
    this.source?.close();
    this.source = null;
  }
}
