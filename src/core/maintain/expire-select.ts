import { ancestors, MAIN, snapshotById } from '../iceberg/snapshot.ts';
import type { SnapshotRef, TableMetadata } from '../iceberg/types.ts';
import type { RetentionPolicy } from './retention-policy.ts';

/** What an expiry removes. */
export interface Expired {
  /** Refs past their age. */
  refs: string[];
  /** Snapshots that no rule keeps, in the order of the table's list. */
  snapshotIds: bigint[];
}

/**
 * Chooses what expires (spec: snapshot retention policy; X1, X2). Pure: it is chosen again on each base, so that a ref
 * that was set meanwhile is seen (X5).
 *
 * 1. A ref other than main goes when its snapshot is older than the ref's greatest age.
 * 2. Of each branch that stays, the head stays, and its ancestors while they are among the newest so many or younger than
 *    the greatest age; the first that is neither ends the walk. The table's bound on the number of snapshots cuts the
 *    second reason short, unless the branch has an age of its own.
 * 3. The snapshot of a tag that stays, stays.
 * 4. A snapshot that is no ancestor of any branch that stays (left behind by a rollback) stays while it is young.
 */
export function selectExpired(metadata: TableMetadata, policy: RetentionPolicy, nowMs: number): Expired {
  if (nowMs < policy.keepUntilMs) return { refs: [], snapshotIds: [] };
  const expiredRefs: string[] = [];
  const kept = new Set<bigint>();
  const referenced = new Set<bigint>();
  for (const [name, ref] of Object.entries(metadata.refs)) {
    if (name !== MAIN && isPast(metadata, ref, policy, nowMs)) {
      expiredRefs.push(name);
      continue;
    }
    kept.add(ref['snapshot-id']);
    if (ref.type === 'tag') continue;
    keepOfBranch(metadata, ref, policy, nowMs, kept);
    for (const { 'snapshot-id': id } of ancestors(metadata, ref['snapshot-id'])) {
      if (referenced.has(id)) break;
      referenced.add(id);
    }
  }
  const current = metadata['current-snapshot-id'];
  if (current !== undefined) kept.add(current);
  const oldestMs = nowMs - policy.snapshotAgeMs;
  const snapshotIds = metadata.snapshots
    .filter(({ 'snapshot-id': id, 'timestamp-ms': atMs }) => !kept.has(id) && (referenced.has(id) || atMs < oldestMs))
    .map((snapshot) => snapshot['snapshot-id']);
  return { refs: expiredRefs, snapshotIds };
}

function isPast(metadata: TableMetadata, ref: SnapshotRef, policy: RetentionPolicy, nowMs: number): boolean {
  const ageMs = ref['max-ref-age-ms'] ?? policy.refAgeMs;
  const atMs = snapshotById(metadata, ref['snapshot-id'])?.['timestamp-ms'] ?? nowMs;
  return nowMs - atMs > ageMs;
}

function keepOfBranch(
  metadata: TableMetadata,
  ref: SnapshotRef,
  policy: RetentionPolicy,
  nowMs: number,
  kept: Set<bigint>,
): void {
  const min = Math.max(1, ref['min-snapshots-to-keep'] ?? policy.snapshotsMin);
  const ownAgeMs = ref['max-snapshot-age-ms'];
  const oldestMs = nowMs - (ownAgeMs ?? policy.snapshotAgeMs);
  const max = ownAgeMs === undefined ? Math.max(min, policy.snapshotsMax) : Number.POSITIVE_INFINITY;
  let walked = 0;
  for (const snapshot of ancestors(metadata, ref['snapshot-id'])) {
    const isYoung = snapshot['timestamp-ms'] >= oldestMs && walked < max;
    if (walked >= min && !isYoung) return;
    kept.add(snapshot['snapshot-id']);
    walked++;
  }
}
