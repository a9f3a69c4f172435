import { SluiceError } from '../core/base/errors.ts';
import { INTENT_RETRY } from '../core/base/limits.ts';
import { StoreError } from '../store/store.ts';
import type { ChoreState, ErrorRecord } from './ports.ts';

/** Wait after so many failures in a row, in milliseconds: doubling within its bounds, for faults of the store pass by themselves. */
export function retryWaitMs(
  failures: number,
  { baseMs, capMs }: { baseMs: number; capMs: number } = INTENT_RETRY,
): number {
  return Math.min(capMs, baseMs * 2 ** Math.min(failures - 1, 20));
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}

/** An error as status and log tell it. What nobody expected is told from a store that does not answer. */
export function errorRecord(error: unknown, atMs: number): ErrorRecord {
  const type =
    error instanceof SluiceError ? error.type : error instanceof StoreError ? 'store-unavailable' : 'internal';
  return { type, message: messageOf(error), atMs };
}

/** How the tries of some work went: what fails is due again later each time, and shown. */
export class Tries {
  failures = 0;
  lastError: ErrorRecord | null = null;
  /** No try before this time. */
  notBeforeMs = 0;

  state(dueMs: number | null): ChoreState {
    return { dueMs, failures: this.failures, lastError: this.lastError };
  }

  succeeded(notBeforeMs: number): void {
    this.failures = 0;
    this.lastError = null;
    this.notBeforeMs = notBeforeMs;
  }

  /** Returns what is to be told of it. */
  failed(error: unknown, nowMs: number, wait?: { baseMs: number; capMs: number }): ErrorRecord & { failures: number } {
    this.failures++;
    this.notBeforeMs = nowMs + retryWaitMs(this.failures, wait);
    this.lastError = errorRecord(error, nowMs);
    return { ...this.lastError, failures: this.failures };
  }
}
