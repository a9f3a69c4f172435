import { SluiceError } from '../core/base/errors.ts';
import { INTENT_RETRY } from '../core/base/limits.ts';
import { StoreError } from '../store/store.ts';
import type { ErrorRecord } from './ports.ts';

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
