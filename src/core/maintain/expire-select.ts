import { MAIN } from '../iceberg/snapshot.ts';
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
  return expirySelector(metadata, policy)(nowMs);
}

/** `selectExpired` of one state at many times, which is how its next expiry is found: what does not depend on time is looked up once. */
export function expirySelector(metadata: TableMetadata, policy: RetentionPolicy): (nowMs: number) => Expired {
  const chain = chainOf(metadata);
  const refs = Object.entries(metadata.refs).map(([name, ref]) => ({ name, ref, head: chain.at(ref['snapshot-id']) }));
  const current = metadata['current-snapshot-id'];
  return (nowMs) => {
    if (nowMs < policy.keepUntilMs) return { refs: [], snapshotIds: [] };
    const expiredRefs: string[] = [];
    const kept = new Uint8Array(chain.length);
    const referenced = new Uint8Array(chain.length);
    for (const { name, ref, head } of refs) {
      if (name !== MAIN && isPast(chain, ref, head, policy, nowMs)) {
        expiredRefs.push(name);
        continue;
      }
      if (head === NONE) continue;
      kept[head] = 1;
      if (ref.type === 'tag') continue;
      keepOfBranch(chain, ref, head, policy, nowMs, kept);
      for (let i = head; i !== NONE && referenced[i] === 0; i = chain.parents[i]) referenced[i] = 1;
    }
    if (current !== undefined && chain.at(current) !== NONE) kept[chain.at(current)] = 1;
    const oldestMs = nowMs - policy.snapshotAgeMs;
    const snapshotIds = metadata.snapshots
      .filter((_, i) => kept[i] === 0 && (referenced[i] === 1 || chain.timesMs[i] < oldestMs))
      .map((snapshot) => snapshot['snapshot-id']);
    return { refs: expiredRefs, snapshotIds };
  };
}

/** Snapshots by their places in the table's list. */
interface Chain {
  length: number;
  /** Place of a snapshot, or `NONE`. */
  at(snapshotId: bigint): number;
  /** Place of each one's parent; `NONE` where it has none, or that has expired. */
  parents: Int32Array;
  timesMs: Float64Array;
}

const NONE = -1;

function chainOf({ snapshots }: TableMetadata): Chain {
  const places = new Map(snapshots.map((snapshot, i) => [snapshot['snapshot-id'], i]));
  const at = (snapshotId: bigint): number => places.get(snapshotId) ?? NONE;
  return {
    length: snapshots.length,
    at,
    parents: Int32Array.from(snapshots, ({ 'parent-snapshot-id': id }) => (id === undefined ? NONE : at(id))),
    timesMs: Float64Array.from(snapshots, (snapshot) => snapshot['timestamp-ms']),
  };
}

function isPast(chain: Chain, ref: SnapshotRef, head: number, policy: RetentionPolicy, nowMs: number): boolean {
  const ageMs = ref['max-ref-age-ms'] ?? policy.refAgeMs;
  return head !== NONE && nowMs - chain.timesMs[head] > ageMs;
}

function keepOfBranch(
  chain: Chain,
  ref: SnapshotRef,
  head: number,
  policy: RetentionPolicy,
  nowMs: number,
  kept: Uint8Array,
): void {
  const min = Math.max(1, ref['min-snapshots-to-keep'] ?? policy.snapshotsMin);
  const ownAgeMs = ref['max-snapshot-age-ms'];
  const oldestMs = nowMs - (ownAgeMs ?? policy.snapshotAgeMs);
  const max = ownAgeMs === undefined ? Math.max(min, policy.snapshotsMax) : Number.POSITIVE_INFINITY;
  // As many steps as there are snapshots: a chain that bites its tail ends too.
  for (let i = head, walked = 0; i !== NONE && walked < chain.length; i = chain.parents[i], walked++) {
    const isYoung = chain.timesMs[i] >= oldestMs && walked < max;
    if (walked >= min && !isYoung) return;
    kept[i] = 1;
  }
}
