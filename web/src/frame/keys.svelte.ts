/** The keys of the page in view: a view registers its own, `?` shows all of them. */

export interface Key {
  /** As typed: `j`, `Shift+E` is `E`, two strokes are `g r`. */
  keys: string;
  does: string;
  run: () => void;
}

class Keys {
  groups = $state.raw<{ name: string; keys: Key[] }[]>([]);
  helpOpen = $state(false);
  private begun: { key: string; at: number } | null = null;

  /** Add a group of keys; the answer takes them away again. */
  add(name: string, keys: Key[]): () => void {
    const group = { name, keys };
    this.groups = [...this.groups, group];
    return () => {
      this.groups = this.groups.filter((other) => other !== group);
    };
  }

  heard = (event: KeyboardEvent): void => {
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (typing(event.target) || pressing(event)) return;
    const typed = this.typed(event.key);
    for (const group of this.groups.toReversed()) {
      const key = group.keys.find((one) => one.keys.split(", ").includes(typed));
      if (!key) continue;
      event.preventDefault();
      key.run();
      return;
    }
  };

  private typed(key: string): string {
    const begun = this.begun && performance.now() - this.begun.at < 1200 ? this.begun.key : null;
    this.begun = key === "g" && !begun ? { key, at: performance.now() } : null;
    return begun ? `${begun} ${key}` : key;
  }
}

function typing(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return !!element?.closest?.("input, textarea, select, [contenteditable], dialog");
}

/** A button that the keyboard stands on is pressed by Enter, whatever else Enter does here. */
function pressing(event: KeyboardEvent): boolean {
  const element = event.target as HTMLElement | null;
  return event.key === "Enter" && !!element?.matches?.(":is(button, summary):focus-visible");
}

export const keys = new Keys();
