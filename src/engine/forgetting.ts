import { BATCH_MEMORY_MS, PRUNE_INTERVAL_MS, PRUNE_ROWS_MAX } from '../core/base/limits.ts';
import type { Clock, Ledger } from './ports.ts';

/** Lets the ledger forget batch ids and receipts whose time is over, in the writer's runs. */
export class Forgetting {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  #passedMs = 0;

  constructor({ ledger, clock }: { ledger: Ledger; clock: Clock }) {
    this.#ledger = ledger;
    this.#clock = clock;
  }

  /** One pass, unless the last one was a moment ago. */
  run(): void {
    const nowMs = this.#clock.now();
    if (nowMs - this.#passedMs < PRUNE_INTERVAL_MS) return;
    // What is left over is for the next run: messages of a queue have an id each, and no hour waits for them.
    if (this.#ledger.prune(nowMs - BATCH_MEMORY_MS, PRUNE_ROWS_MAX) < PRUNE_ROWS_MAX) this.#passedMs = nowMs;
  }
}
