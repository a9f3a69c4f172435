import type { Clock } from './ports.ts';

/**
 * One timer, for the earliest time that it was set to. It lives as long as this incarnation: what must outlast it is the
 * object's alarm.
 */
export class Timer {
  readonly #clock: Clock;
  readonly #goesOff: () => void;
  #atMs: number | null = null;

  /** `goesOff` may be called a moment early. */
  constructor(clock: Clock, goesOff: () => void) {
    this.#clock = clock;
    this.#goesOff = goesOff;
  }

  /** Sets it, unless it is set to an earlier time. */
  set(atMs: number): void {
    if (this.#atMs !== null && this.#atMs <= atMs) return;
    this.#atMs = atMs;
    void this.#clock.sleep(Math.max(0, atMs - this.#clock.now())).then(() => {
      if (this.#atMs !== atMs) return; // another one is set for an earlier time
      this.#atMs = null;
      this.#goesOff();
    });
  }
}
