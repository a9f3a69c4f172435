import type { TableSettings } from '../table/properties.ts';

/** What is buffered and who waits. Times in milliseconds since 1970. */
export interface FlushFacts {
  rows: number;
  bytes: number;
  /** When the oldest buffered batch was accepted; null: nothing is buffered. */
  oldestMs: number | null;
  /** Since when a caller waits for its commit; null: nobody does. */
  waiterMs: number | null;
  /** When the last commit of this table was made; null: none known. */
  lastCommitMs: number | null;
}

/**
 * When the buffer is to be flushed, or null while it is empty. Whichever comes first: enough rows, enough bytes, the
 * oldest row's age, a waiting caller. A caller hurries a flush, but never below the least interval between commits:
 * each commit is one more version for every reader to load.
 */
export function flushDueMs(
  facts: FlushFacts,
  flush: TableSettings['flush'],
  bounds: { gatherMs: number; commitIntervalMinMs: number },
): number | null {
  if (facts.oldestMs === null) return null;
  if (facts.rows >= flush.rows || facts.bytes >= flush.bytes) return facts.oldestMs;
  const byAge = facts.oldestMs + flush.intervalMs;
  if (facts.waiterMs === null) return byAge;
  const soon = facts.waiterMs + bounds.gatherMs;
  const spaced = facts.lastCommitMs === null ? soon : Math.max(soon, facts.lastCommitMs + bounds.commitIntervalMinMs);
  return Math.min(byAge, spaced);
}
