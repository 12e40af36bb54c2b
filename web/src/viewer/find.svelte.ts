/** Searching a transcript where it was read, mostly on the server; the words in sight are marked without touching the page. */

import type { SearchMatch } from "../api/types";
import type { Found } from "./run.svelte";

const WAIT_MS = 180;

export class Finder {
  words = $state("");
  hits = $state.raw<readonly SearchMatch[]>([]);
  at = $state(-1);
  busy = $state(false);
  more = $state(false);
  private next: number | null = null;
  private waiting: ReturnType<typeof setTimeout> | null = null;
  private asking: AbortController | null = null;

  constructor(
    private readonly look: (words: string, from: number, signal: AbortSignal) => Promise<Found>,
  ) {}

  ask(words: string): void {
    this.words = words;
    if (this.waiting) clearTimeout(this.waiting);
    this.asking?.abort();
    this.hits = [];
    this.at = -1;
    this.more = false;
    this.busy = words.length > 0;
    if (words) this.waiting = setTimeout(() => void this.search(0), WAIT_MS);
  }

  /** Search anew, as when other entries are shown. */
  again(): void {
    if (this.words) this.ask(this.words);
  }

  /** The next or the previous match, seen from an entry. */
  async step(forward: boolean, from: number): Promise<SearchMatch | null> {
    if (!this.hits.length) {
      if (this.words && !this.busy) await this.search(0);
      if (!this.hits.length) return null;
    }
    if (this.at < 0) {
      const next = this.hits.findIndex((hit) => hit.seq >= from);
      this.at = next < 0 ? 0 : next;
    } else {
      if (forward && this.at === this.hits.length - 1 && this.next !== null)
        await this.search(this.next);
      this.at = (this.at + (forward ? 1 : -1) + this.hits.length) % this.hits.length;
    }
    return this.hits[this.at] ?? null;
  }

  private async search(from: number): Promise<void> {
    const mine = new AbortController();
    this.asking = mine;
    this.busy = true;
    try {
      const found = await this.look(this.words, from, mine.signal);
      this.hits = from ? [...this.hits, ...found.matches] : found.matches;
      this.next = found.next;
      this.more = found.next !== null;
    } catch {
      if (!mine.signal.aborted) this.hits = [];
    } finally {
      if (this.asking === mine) this.busy = false;
    }
  }
}

/** Mark the words wherever they stand below an element; the ones in `here` more strongly. */
export function markWords(root: Element, words: string, here: Element | null): void {
  if (!("highlights" in CSS)) return;
  CSS.highlights.delete("search");
  CSS.highlights.delete("search-here");
  if (!words) return;
  const [all, strong] = [new Highlight(), new Highlight()];
  const wanted = words.toLowerCase();
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const text = node.textContent!.toLowerCase();
    for (let at = text.indexOf(wanted); at >= 0; at = text.indexOf(wanted, at + wanted.length)) {
      const range = new Range();
      range.setStart(node, at);
      range.setEnd(node, Math.min(at + wanted.length, node.textContent!.length));
      (here?.contains(node) ? strong : all).add(range);
    }
  }
  CSS.highlights.set("search", all);
  CSS.highlights.set("search-here", strong);
}
