import { WAITERS_MAX } from '../core/base/limits.ts';

interface Waiter {
  sequence: number;
  sinceMs: number;
  wake: () => void;
}

/** Callers that want to hear what became of their batch. */
export class Waiters {
  #waiting: Waiter[] = [];

  /** Since when the longest-waiting caller waits; null when nobody does. */
  get sinceMs(): number | null {
    return this.#waiting[0]?.sinceMs ?? null;
  }

  /** Resolves when sequence `sequence` has left the buffer or `timeout` resolves; at once when too many wait. */
  async wait(sequence: number, nowMs: number, timeout: Promise<void>): Promise<void> {
    if (this.#waiting.length >= WAITERS_MAX) return;
    const waiter: Waiter = { sequence, sinceMs: nowMs, wake: () => undefined };
    const woken = new Promise<void>((resolve) => {
      waiter.wake = resolve;
    });
    this.#waiting.push(waiter);
    await Promise.race([woken, timeout]);
    this.#waiting = this.#waiting.filter((other) => other !== waiter);
  }

  /** Wakes everybody whose batch is at or below `last`. */
  wake(last: number): void {
    for (const waiter of this.#waiting) if (waiter.sequence <= last) waiter.wake();
  }
}
