import type { Mark, Marks } from '../engine/ports.ts';

/** Counts marks since this incarnation began; status shows them. */
export class CountedMarks implements Marks {
  readonly counts: Partial<Record<Mark, number>> = {};

  hit(mark: Mark): void {
    this.counts[mark] = (this.counts[mark] ?? 0) + 1;
  }
}
