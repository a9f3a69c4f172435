import type { CommitEnd } from '../engine/commit-log.ts';

/** What the object counts since its incarnation began; nothing of it is kept. */
export interface CountsView {
  /** Ends of runs of operations. */
  outcomes: { operation: string; outcome: string; count: number }[];
  /** Requests and batches that were refused, by type of problem. */
  refusals: { type: string; count: number }[];
  /** Age of the oldest row when its append was committed, summed over appends. */
  lag: { commits: number; sumMs: number };
}

/** Counters of one incarnation. Names are those of operations, outcomes and problem types: some hundred at most. */
export class Counts {
  readonly #outcomes = new Map<string, number>();
  readonly #refusals = new Map<string, number>();
  readonly #lag = { commits: 0, sumMs: 0 };

  commit(operation: string, outcome: CommitEnd['outcome'], lagMs: number | null): void {
    add(this.#outcomes, `${operation} ${outcome}`, 1);
    if (lagMs === null) return;
    this.#lag.commits++;
    this.#lag.sumMs += lagMs;
  }

  refused(type: string, count = 1): void {
    add(this.#refusals, type, count);
  }

  view(): CountsView {
    return {
      outcomes: [...this.#outcomes].map(([key, count]) => {
        const [operation, outcome] = key.split(' ');
        return { operation, outcome, count };
      }),
      refusals: [...this.#refusals].map(([type, count]) => ({ type, count })),
      lag: { ...this.#lag },
    };
  }
}

function add(counts: Map<string, number>, key: string, count: number): void {
  counts.set(key, (counts.get(key) ?? 0) + count);
}
