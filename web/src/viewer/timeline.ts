/** The run's time from top to bottom, and which entry stands at which moment of it. */

import type { Outline } from "../api/types";

export interface Stretch {
  /** Share of the whole length at which it begins and ends. */
  from: number;
  to: number;
  fromSeq: number;
  toSeq: number;
  model: number;
  tool: number;
  wait: number;
  errors: number;
  startMs: number;
}

export function stretches(outline: Outline): Stretch[] {
  const found: Stretch[] = [];
  const whole = outline.attempts.reduce((sum, one) => sum + one.buckets.length * one.bucketMs, 0);
  if (!whole) return found;
  let at = 0;
  let began: number | null = null;
  for (const attempt of outline.attempts) {
    began ??= attempt.startedMs;
    attempt.buckets.forEach((bucket, index) => {
      const next = attempt.buckets[index + 1];
      const spent = Math.max(1, bucket.modelMs + bucket.toolMs + bucket.waitMs);
      found.push({
        from: at / whole,
        to: (at + attempt.bucketMs) / whole,
        fromSeq: bucket.fromSeq,
        toSeq: next ? next.fromSeq : attempt.fromSeq + attempt.total,
        model: bucket.modelMs / spent,
        tool: bucket.toolMs / spent,
        wait: bucket.waitMs / spent,
        errors: bucket.errors,
        startMs: (attempt.startedMs ?? 0) + index * attempt.bucketMs - (began ?? 0),
      });
      at += attempt.bucketMs;
    });
  }
  return found;
}

/** The share of the length at which an entry stands. */
export function shareOf(list: readonly Stretch[], seq: number): number {
  let [low, high] = [0, list.length - 1];
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (list[middle]!.fromSeq <= seq) low = middle;
    else high = middle - 1;
  }
  const one = list[low];
  if (!one) return 0;
  // Stretches without entries begin with the entry after them: go back to where it really is.
  let first = low;
  while (first > 0 && list[first - 1]!.fromSeq === one.fromSeq) first--;
  const stretch = seq === one.fromSeq ? list[first]! : one;
  const share = (seq - stretch.fromSeq) / Math.max(1, stretch.toSeq - stretch.fromSeq);
  return stretch.from + Math.min(1, Math.max(0, share)) * (stretch.to - stretch.from);
}

/** The entry at a share of the length. */
export function seqAt(list: readonly Stretch[], share: number): number {
  const one = list.find((stretch) => share < stretch.to) ?? list.at(-1);
  if (!one) return 0;
  const inside = (share - one.from) / Math.max(1e-9, one.to - one.from);
  const seq = one.fromSeq + Math.floor(inside * Math.max(0, one.toSeq - one.fromSeq));
  return Math.max(0, seq);
}
