import type { TableMetadata } from '../iceberg/types.ts';
import { expirySelector } from './expire-select.ts';
import type { RetentionPolicy } from './retention-policy.ts';

/** When an expiry that nobody asked for is worth its version. */
export interface ExpiryPace {
  /** So many snapshots and refs at once. */
  batch: number;
  /** Or the first of them, so long after it could have gone. */
  lateMs: number;
}

/**
 * When the next expiry of a table is due, as far as this state of it tells: null when nothing of it will ever expire by
 * itself. Each snapshot of a table that is written all the time passes its age at another moment, and an expiry for each
 * would be one more version for each: so they go together, and the last ones of a table that came to rest a while later.
 */
export function expiryDueMs(metadata: TableMetadata, policy: RetentionPolicy, pace: ExpiryPace): number | null {
  const moments = momentsOf(metadata, policy);
  const expiredAt = expirySelector(metadata, policy);
  // What expires only grows with time.
  const firstWith = (count: number): number | null => {
    let low = 0;
    let high = moments.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { refs, snapshotIds } = expiredAt(moments[middle]);
      if (refs.length + snapshotIds.length >= count) high = middle;
      else low = middle + 1;
    }
    return moments[low] ?? null;
  };
  const first = firstWith(1);
  if (first === null) return null;
  const lateMs = first + pace.lateMs;
  const full = firstWith(pace.batch);
  return full === null ? lateMs : Math.min(full, lateMs);
}

/** Every time at which something more may expire, in order: ages that are passed, and this state itself for what goes by number. */
function momentsOf(metadata: TableMetadata, policy: RetentionPolicy): number[] {
  const branchAges = Object.values(metadata.refs).map((ref) => ref['max-snapshot-age-ms']);
  const refAges = Object.values(metadata.refs).map((ref) => ref['max-ref-age-ms']);
  const ages = [policy.snapshotAgeMs, policy.refAgeMs, ...branchAges, ...refAges].filter(
    (age): age is number => age !== undefined && Number.isFinite(age),
  );
  const fromMs = Math.max(metadata['last-updated-ms'], policy.keepUntilMs);
  const moments = new Set([fromMs]);
  for (const age of new Set(ages)) {
    for (const snapshot of metadata.snapshots) {
      const pastMs = snapshot['timestamp-ms'] + age + 1;
      if (pastMs > fromMs) moments.add(pastMs);
    }
  }
  return [...moments].sort((a, b) => a - b);
}
