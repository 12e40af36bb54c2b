/** Light, dark, or as the system says; remembered. */

export type Theme = "system" | "light" | "dark";

class Appearance {
  theme = $state<Theme>((localStorage.getItem("theme") as Theme | null) ?? "system");

  choose(theme: Theme): void {
    this.theme = theme;
    if (theme === "system") {
      localStorage.removeItem("theme");
      delete document.documentElement.dataset.theme;
    } else {
      localStorage.setItem("theme", theme);
      document.documentElement.dataset.theme = theme;
    }
  }

  get dark(): boolean {
    if (this.theme !== "system") return this.theme === "dark";
    return matchMedia("(prefers-color-scheme: dark)").matches;
  }

  toggle(): void {
    this.choose(this.dark ? "light" : "dark");
  }
}

export const appearance = new Appearance();
