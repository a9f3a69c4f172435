import { ALARM_LATE_MS } from '../core/base/limits.ts';

/**
 * The object's one alarm. What is due is kept in the ledger; the alarm is only the platform's promise to look. It is
 * set in the same turn as the ledger step that makes something due, so that both are written or neither.
 */
export class Schedule {
  readonly #storage: DurableObjectStorage;
  #armedMs: number | null = null;

  constructor(storage: DurableObjectStorage) {
    this.#storage = storage;
  }

  /** Sets the alarm when `dueMs` is earlier than what it is set to; each change is a billed write. */
  arm(dueMs: number | null): void {
    if (dueMs === null) return; // an alarm without work finds none and is not set again
    if (this.#armedMs !== null && this.#armedMs <= dueMs) return;
    this.#armedMs = dueMs;
    // Not awaited: the output gate holds every answer until it is written.
    // The platform refuses times at or before 1970: what is long due is due at its beginning.
    void this.#storage.setAlarm(Math.max(1, dueMs));
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
    this.#armedMs = null;
  }
}
