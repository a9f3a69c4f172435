import { ALARM_AHEAD_MAX_MS, ALARM_LATE_MS } from '../core/base/limits.ts';
import type { Clock } from '../engine/ports.ts';

/**
 * The object's one alarm. What is due is kept in the ledger; the alarm is only the platform's promise to look. It is
 * set in the same turn as the ledger step that makes something due, so that both are written or neither.
 */
export class Schedule {
  readonly #storage: Pick<DurableObjectStorage, 'setAlarm' | 'getAlarm'>;
  readonly #clock: Pick<Clock, 'now'>;
  /** What the alarm is set for; null: it is not set. */
  #dueMs: number | null = null;
  /** What the alarm that went off last had been set to. */
  #firedMs = 0;
  #isHandled = false;

  constructor(storage: Pick<DurableObjectStorage, 'setAlarm' | 'getAlarm'>, clock: Pick<Clock, 'now'>) {
    this.#storage = storage;
    this.#clock = clock;
  }

  /** Sets the alarm when `dueMs` is earlier than what it is set for; each change is a billed write. */
  arm(dueMs: number | null): void {
    if (dueMs === null) return; // an alarm without work finds none and is not set again
    // The alarm that is handled is the promise itself: the platform repeats it when the handler is cut off, and the
    // handler sets the next one at its end.
    if (this.#isHandled) return;
    if (this.#dueMs !== null && this.#dueMs <= dueMs) return;
    this.#dueMs = dueMs;
    // Never the time of an alarm that has gone off: the platform tells alarms apart by their time, takes a setting to
    // the same one for no change, and forgets it together with the one that is handled. It moves times that are past to
    // the present, which may be that very millisecond; so what is due already is due in the next one.
    const nowMs = this.#clock.now();
    const atMs = Math.max(Math.min(dueMs, nowMs + ALARM_AHEAD_MAX_MS), nowMs + 1, this.#firedMs + 1);
    // Not awaited: the output gate holds every answer until it is written.
    void this.#storage.setAlarm(atMs);
  }

  /**
   * Sets the alarm for what is due as far as it is not: an incarnation that has just begun does not know what is set, and the
   * platform may have lost it (nothing is stored, or long past). Where it stands, nothing is written.
   */
  async repair(due: () => number | null): Promise<void> {
    const stored = await this.#storage.getAlarm();
    // Asked for after the wait: what was due before it may be done.
    const dueMs = due();
    // While an alarm is handled none is stored, and the handler sets the next one.
    if (dueMs === null || this.#isHandled) return;
    const nowMs = this.#clock.now();
    const stands = stored !== null && stored > nowMs - ALARM_LATE_MS && stored <= Math.max(dueMs, nowMs + 1);
    this.#dueMs = stands ? dueMs : null;
    this.arm(dueMs);
  }

  /** The alarm that was set to `atMs` has gone off and is handled: nothing is set any more. */
  fired(atMs: number): void {
    this.#firedMs = Math.max(this.#firedMs, atMs);
    this.#dueMs = null;
    this.#isHandled = true;
  }

  /** The alarm's work is done. The next call is `arm` with what is due now, in the same turn. */
  handled(): void {
    this.#isHandled = false;
  }
}
