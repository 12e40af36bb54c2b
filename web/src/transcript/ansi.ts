/** Terminal colours as spans; every other control sequence is dropped, never shown raw. */

export interface Span {
  text: string;
  classes: string;
}

// CSI, OSC and the two-character escapes.
const SEQUENCE = /\x1b(?:\[([0-9;:]*)([@-~])|\][^\x07\x1b]*(?:\x07|\x1b\\)?|[@-Z\\-_])/g;
const CONTROL = /[\x00-\x08\x0b-\x1f\x7f]/g;

interface Pen {
  fore: string;
  back: string;
  marks: Set<string>;
}

export function spans(text: string): Span[] {
  if (!text.includes("\x1b")) return [{ text: clean(text), classes: "" }];
  const found: Span[] = [];
  const pen: Pen = { fore: "", back: "", marks: new Set() };
  let from = 0;
  for (const match of text.matchAll(SEQUENCE)) {
    push(found, text.slice(from, match.index), pen);
    if (match[2] === "m") draw(pen, match[1] ?? "");
    from = match.index + match[0].length;
  }
  push(found, text.slice(from), pen);
  return found;
}

/** The text alone, as it is copied. */
export function plain(text: string): string {
  return clean(text.replace(SEQUENCE, ""));
}

function clean(text: string): string {
  return overwritten(text).replace(CONTROL, "");
}

/** A progress bar writes over its own line: what stood last is what is read. */
function overwritten(text: string): string {
  if (!text.includes("\r")) return text;
  const lines = text.split("\n").map((line) => {
    const kept = line.endsWith("\r") ? line.slice(0, -1) : line;
    return kept.slice(kept.lastIndexOf("\r") + 1);
  });
  return lines.join("\n");
}

function push(found: Span[], text: string, pen: Pen): void {
  const kept = clean(text);
  if (!kept) return;
  const classes = [pen.fore, pen.back, ...pen.marks].filter(Boolean).join(" ");
  const last = found.at(-1);
  if (last && last.classes === classes) last.text += kept;
  else found.push({ text: kept, classes });
}

const MARKS: Record<number, string> = { 1: "b", 2: "dim", 3: "i", 4: "u", 9: "s" };

function draw(pen: Pen, codes: string): void {
  const list = codes.split(/[;:]/).map(Number);
  for (let at = 0; at < list.length; at++) {
    const code = list[at]!;
    if (code === 0) Object.assign(pen, { fore: "", back: "", marks: new Set() });
    else if (MARKS[code]) pen.marks.add(MARKS[code]);
    else if (code === 22) for (const mark of ["b", "dim"]) pen.marks.delete(mark);
    else if (code === 23) pen.marks.delete("i");
    else if (code === 24) pen.marks.delete("u");
    else if (code === 39) pen.fore = "";
    else if (code === 49) pen.back = "";
    else if (code >= 30 && code <= 37) pen.fore = `f${code - 30}`;
    else if (code >= 90 && code <= 97) pen.fore = `f${code - 82}`;
    else if (code >= 40 && code <= 47) pen.back = `g${code - 40}`;
    else if (code >= 100 && code <= 107) pen.back = `g${code - 92}`;
    else if (code === 38 || code === 48) at += extended(pen, code, list, at);
  }
}

/** 256 and true colours become the nearest of the sixteen, so that both themes stay readable. */
function extended(pen: Pen, code: number, list: number[], at: number): number {
  const long = list[at + 1] === 2;
  const index = long
    ? nearest(list[at + 2] ?? 0, list[at + 3] ?? 0, list[at + 4] ?? 0)
    : paletted(list[at + 2] ?? 0);
  if (code === 38) pen.fore = `f${index}`;
  else pen.back = `g${index}`;
  return long ? 4 : 2;
}

function paletted(code: number): number {
  if (code < 16) return code;
  if (code >= 232) return code > 243 ? 7 : 8;
  const value = code - 16;
  return nearest(Math.floor(value / 36) * 51, (Math.floor(value / 6) % 6) * 51, (value % 6) * 51);
}

function nearest(red: number, green: number, blue: number): number {
  const bit = (value: number) => (value > 110 ? 1 : 0);
  return bit(red) + 2 * bit(green) + 4 * bit(blue) + (Math.max(red, green, blue) > 190 ? 8 : 0);
}
