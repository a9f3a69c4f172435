import type { Clock } from '../../src/engine/ports.ts';

/** Turns of the event loop after which nothing can be waiting for anything but time. */
const IDLE_TURNS = 3;

/** A clock that moves only when everybody waits: to the earliest time that somebody sleeps until. */
export class VirtualClock implements Clock {
  #nowMs: number;
  #sleepers: { untilMs: number; order: number; wake: () => void }[] = [];
  #order = 0;

  constructor(startMs = Date.UTC(2026, 0, 1)) {
    this.#nowMs = startMs;
  }

  now(): number {
    return this.#nowMs;
  }

  /** Until when somebody sleeps longest; null: nobody sleeps. */
  get latest(): number | null {
    return this.#sleepers.length === 0 ? null : Math.max(...this.#sleepers.map(({ untilMs }) => untilMs));
  }

  sleep(ms: number): Promise<void> {
    return new Promise((wake) => {
      this.#sleepers.push({ untilMs: this.#nowMs + Math.max(0, ms), order: this.#order++, wake });
    });
  }

  /** Moves time without waking anybody before they are due. */
  advance(ms: number): void {
    this.#nowMs += ms;
    this.#wakeDue();
  }

  /** Runs the world until the promise settles. Fails when everybody waits for something that no time will bring. */
  async until<T>(promise: Promise<T>): Promise<T> {
    let isSettled = false;
    const watched = promise.finally(() => {
      isSettled = true;
    });
    watched.catch(() => undefined);
    for (let idle = 0; !isSettled; ) {
      await new Promise((resolve) => setImmediate(resolve));
      if (isSettled) break;
      if (++idle < IDLE_TURNS) continue;
      idle = 0;
      const next = this.#next();
      if (next === null) throw new Error('the world stands still: everybody waits and nobody sleeps');
      this.#nowMs = Math.max(this.#nowMs, next);
      this.#wakeDue();
    }
    return watched;
  }

  /** Lets everything run that does not wait for time. */
  async idle(): Promise<void> {
    for (let turn = 0; turn < IDLE_TURNS; turn++) await new Promise((resolve) => setImmediate(resolve));
  }

  #next(): number | null {
    return this.#sleepers.length === 0 ? null : Math.min(...this.#sleepers.map((sleeper) => sleeper.untilMs));
  }

  #wakeDue(): void {
    const due = this.#sleepers.filter((sleeper) => sleeper.untilMs <= this.#nowMs);
    this.#sleepers = this.#sleepers.filter((sleeper) => sleeper.untilMs > this.#nowMs);
    for (const sleeper of due.sort((a, b) => a.untilMs - b.untilMs || a.order - b.order)) sleeper.wake();
  }
}
