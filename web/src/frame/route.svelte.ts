/** The address of the page: every view has one that restores it. */

export class Route {
  path = $state(location.pathname);
  params = $state.raw(new URLSearchParams(location.search));

  constructor() {
    window.addEventListener("popstate", () => this.read());
  }

  /** The parts of the path, decoded. */
  get parts(): string[] {
    return this.path.split("/").filter(Boolean).map(decoded);
  }

  go(address: string): void {
    if (address === location.pathname + location.search) return;
    history.pushState(null, "", address);
    this.read();
  }

  /** Change some parameters without a new step in the history. */
  put(changes: Record<string, string | null>): void {
    const params = new URLSearchParams(location.search);
    for (const [name, value] of Object.entries(changes)) {
      if (value === null || value === "") params.delete(name);
      else params.set(name, value);
    }
    const text = params.toString();
    history.replaceState(null, "", location.pathname + (text ? `?${text}` : ""));
    this.read();
  }

  /** Links inside the app change the view, not the page. */
  follow = (event: MouseEvent): void => {
    const link = (event.target as Element | null)?.closest("a");
    if (!link || event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    if (link.target || link.hasAttribute("download") || link.origin !== location.origin) return;
    if (link.pathname.startsWith("/api/") || link.pathname === "/openapi.json") return;
    event.preventDefault();
    this.go(link.pathname + link.search);
  };

  private read(): void {
    this.path = location.pathname;
    this.params = new URLSearchParams(location.search);
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const route = new Route();
