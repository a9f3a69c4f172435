import { ALARM_LATE_MS } from '../core/base/limits.ts';

/**
 * The object's one alarm. What is due is kept in the ledger; the alarm is only the platform's promise to look. It is
 * set in the same turn as the ledger step that makes something due, so that both are written or neither.
 */
export class Schedule {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'getAlarm'>;
  #armedMs: number | null = null;
  /** What the alarm that went off last was set to. */
  #firedMs: number | null = null;

  constructor(storage: Pick<DurableObjectStorage, 'setAlarm' | 'getAlarm'>) {
    this.#storage = storage;
  }

  /** Sets the alarm when `dueMs` is earlier than what it is set to; each change is a billed write. */
  arm(dueMs: number | null): void {
    if (dueMs === null) return; // an alarm without work finds none and is not set again
    if (this.#armedMs !== null && this.#armedMs <= dueMs) return;
    this.#armedMs = dueMs;
    // The platform refuses times at or before 1970: what is long due is due at its beginning. And a handler that sets the
    // alarm to the very time it was called for has set nothing: the platform takes it for the one just handled. That
    // happens when an alarm goes off a moment early and finds nothing due yet.
    const atMs = Math.max(1, dueMs);
    // Not awaited: the output gate holds every answer until it is written.
    void this.#storage.setAlarm(atMs === this.#firedMs ? atMs + 1 : atMs);
  }

  /** Sets the alarm although it seems to be set, when the platform has lost it: nothing is stored, or long past. */
  async repair(dueMs: number | null, nowMs: number): Promise<void> {
    const stored = await this.#storage.getAlarm();
    if (dueMs === null || (stored !== null && stored > nowMs - ALARM_LATE_MS)) return;
    this.#armedMs = null;
    this.arm(dueMs);
  }

  /** The alarm is going off: nothing is set any more. */
  fired(): void {
    this.#firedMs = this.#armedMs === null ? null : Math.max(1, this.#armedMs);
    this.#armedMs = null;
  }
}
