/** Numbers, times and ids in the words of the app. */

const THIN = "\u202f";

export function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+(?!\d))/g, THIN);
}

export function tokens(value: number | null | undefined): string {
  if (value == null) return "unknown";
  if (value < 1000) return String(value);
  if (value < 100_000) return `${trimmed(value / 1000, 1)}k`;
  if (value < 1_000_000) return `${Math.round(value / 1000)}k`;
  return `${trimmed(value / 1_000_000, 2)}M`;
}

export function money(usd: number | null | undefined): string {
  if (usd == null) return "cost unknown";
  if (usd === 0) return "$0";
  if (usd < 0.01) return `$${usd.toFixed(4)}`;
  return `$${usd.toFixed(2)}`;
}

export function bytes(value: number): string {
  if (value < 1000) return `${value}${THIN}B`;
  if (value < 1e6) return `${trimmed(value / 1e3, 1)}${THIN}kB`;
  if (value < 1e9) return `${trimmed(value / 1e6, 1)}${THIN}MB`;
  return `${trimmed(value / 1e9, 2)}${THIN}GB`;
}

/** How long a tool or a thought took. */
export function took(ms: number | null | undefined): string {
  if (ms == null) return "";
  if (ms < 1000) return `${Math.round(ms)}${THIN}ms`;
  if (ms < 60_000) return `${trimmed(ms / 1000, ms < 10_000 ? 1 : 0)}${THIN}s`;
  return clock(ms);
}

/** `m:ss` or `h:mm:ss`, as a watch shows it. */
export function clock(ms: number): string {
  const all = Math.max(0, Math.floor(ms / 1000));
  const [hours, minutes, seconds] = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  const two = (value: number) => String(value).padStart(2, "0");
  return hours ? `${hours}:${two(minutes)}:${two(seconds)}` : `${minutes}:${two(seconds)}`;
}

export function ago(iso: string | null | undefined, now: number): string {
  if (!iso) return "";
  const seconds = Math.round((now - Date.parse(iso)) / 1000);
  if (Number.isNaN(seconds)) return "";
  // Clocks of two processes are never quite the same.
  if (seconds < -2) return `in ${span(-seconds)}`;
  return seconds < 5 ? "just now" : `${span(seconds)} ago`;
}

function span(seconds: number): string {
  if (seconds < 60) return `${seconds}${THIN}s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)}${THIN}min`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)}${THIN}h`;
  return `${Math.floor(seconds / 86_400)}${THIN}d`;
}

export function exact(iso: string | null | undefined): string {
  if (!iso) return "";
  const date = new Date(iso);
  return Number.isNaN(date.getTime())
    ? iso
    : date.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
}

export function timeOfDay(iso: string): string {
  const date = new Date(iso);
  return Number.isNaN(date.getTime()) ? "" : date.toLocaleTimeString([], { hour12: false });
}

export function shortId(id: string): string {
  return id.slice(-8);
}

/** `my_k8s_agent` becomes "My K8s Agent". */
export function humanised(type: string): string {
  return type
    .split(/[_-]+/)
    .filter(Boolean)
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join(" ");
}

export function firstLine(text: string | null | undefined): string {
  return (text ?? "").trim().split("\n", 1)[0] ?? "";
}

export function plural(value: number, one: string, many = `${one}s`): string {
  return `${count(value)} ${value === 1 ? one : many}`;
}

function trimmed(value: number, digits: number): string {
  return value.toFixed(digits).replace(/\.0+$/, "");
}
