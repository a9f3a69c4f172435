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
    void this.#storage.setAlarm(dueMs);
  }

  /** The alarm is going off: nothing is set any more. */
  fired(): void {
    this.#armedMs = null;
  }
}
