/** Where rows stand on a sheet that may be longer than a browser can draw.

Rows that are held have their real heights; what lies before and behind is a stretch whose scale
shrinks with the length of the run, so the sheet never grows past what an element can be. */

import { estimatedHeight, type Row } from "../transcript/rows";

const STRETCH_PER_ENTRY = 32;
const LONGEST_STRETCH = 8_000_000;

export interface Held {
  from: number;
  to: number;
  total: number;
}

export class Layout {
  rows: readonly Row[] = [];
  before = 0;
  after = 0;
  private tops = new Float64Array(1);
  private heights = new Map<string, number>();
  private places = new Map<string, number>();
  private scale = STRETCH_PER_ENTRY;
  private held: Held = { from: 0, to: 0, total: 0 };

  /** Take another list of rows. */
  set(rows: readonly Row[], held: Held): void {
    this.rows = rows;
    this.held = held;
    this.scale = Math.min(STRETCH_PER_ENTRY, LONGEST_STRETCH / Math.max(1, held.total));
    this.before = held.from * this.scale;
    this.after = Math.max(0, held.total - held.to) * this.scale;
    this.measure();
  }

  /** Note a height; true if it is another than before. */
  note(key: string, height: number): boolean {
    if (this.heights.get(key) === height) return false;
    this.heights.set(key, height);
    return true;
  }

  measure(): void {
    this.tops = new Float64Array(this.rows.length + 1);
    this.places.clear();
    let top = this.before;
    this.rows.forEach((row, index) => {
      this.tops[index] = top;
      this.places.set(row.key, index);
      top += this.heights.get(row.key) ?? estimatedHeight(row);
    });
    this.tops[this.rows.length] = top;
  }

  get bottom(): number {
    return this.tops[this.rows.length]!;
  }

  get height(): number {
    return this.bottom + this.after;
  }

  top(index: number): number {
    return this.tops[Math.min(index, this.rows.length)]!;
  }

  indexOf(key: string): number | undefined {
    return this.places.get(key);
  }

  /** The row at a place of the sheet. */
  at(y: number): number {
    let [low, high] = [0, this.rows.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.tops[middle]! <= y) low = middle;
      else high = middle - 1;
    }
    return Math.max(0, low);
  }

  /** Whether a view of the sheet lies where no rows are held. */
  outside(y: number, height: number): boolean {
    return (
      (this.held.from > 0 && y + height < this.before) ||
      (this.held.to < this.held.total && y > this.bottom)
    );
  }

  /** Which entry a place of the sheet stands for. */
  seqAt(y: number): number {
    if (y < this.before) return Math.floor(y / this.scale);
    if (y < this.bottom) return this.rows[this.at(y)]!.seq;
    const behind = (y - this.bottom) / this.scale;
    return Math.min(this.held.total - 1, this.held.to + Math.max(0, Math.floor(behind)));
  }
}
