import { KEPT_DUE_SLACK_MS } from '../base/limits.ts';

/**
 * Whether a due time is to take the place of the one that is kept. What is kept may be too early, which costs one look at the
 * table, and a little too late; each change of it is a billed write. So it is written when it is much too late, or when its
 * time has come and something else is due by then.
 */
export function isDueToKeep(keptMs: number | null, dueMs: number | null, nowMs: number): boolean {
  if (keptMs === null) return dueMs !== null;
  if (dueMs !== null && dueMs < keptMs - KEPT_DUE_SLACK_MS) return true;
  return keptMs <= nowMs && dueMs !== keptMs && (dueMs === null || dueMs > nowMs);
}
