import { own } from '../base/shape.ts';
import type { Snapshot, TableMetadata } from './types.ts';

/** The branch that readers see. */
export const MAIN = 'main';

const indexes = new WeakMap<readonly Snapshot[], ReadonlyMap<bigint, Snapshot>>();

/** All snapshots by id; kept per list, as lists are never changed in place. */
export function snapshotsById(metadata: TableMetadata): ReadonlyMap<bigint, Snapshot> {
  const kept = indexes.get(metadata.snapshots);
  if (kept !== undefined) return kept;
  const byId = new Map(metadata.snapshots.map((snapshot) => [snapshot['snapshot-id'], snapshot]));
  indexes.set(metadata.snapshots, byId);
  return byId;
}

/** The snapshot with this id, or null. */
export function snapshotById(metadata: TableMetadata, id: bigint): Snapshot | null {
  return snapshotsById(metadata).get(id) ?? null;
}

/** The current snapshot, or null while the table has none. */
export function currentSnapshot(metadata: TableMetadata): Snapshot | null {
  const id = metadata['current-snapshot-id'];
  return id === undefined ? null : snapshotById(metadata, id);
}

/** The head of a branch or the target of a tag; null when there is no such ref, or `main` of a table without snapshots. */
export function snapshotOfRef(metadata: TableMetadata, ref: string): Snapshot | null {
  const target = own(metadata.refs, ref);
  return target === undefined ? null : snapshotById(metadata, target['snapshot-id']);
}

/**
 * The snapshot itself, its parent, and so on. Ends at a parent that has expired, and after as many steps as there are
 * snapshots: a chain that bites its tail ends too.
 */
export function* ancestors(metadata: TableMetadata, snapshotId: bigint): Generator<Snapshot, void, undefined> {
  const byId = snapshotsById(metadata);
  let next: bigint | undefined = snapshotId;
  for (let steps = 0; steps < byId.size && next !== undefined; steps++) {
    const snapshot = byId.get(next);
    if (snapshot === undefined) return;
    yield snapshot;
    next = snapshot['parent-snapshot-id'];
  }
}

/** True when `ancestorId` is `snapshotId` or a retained ancestor of it. An expired one is not found. */
export function isAncestor(metadata: TableMetadata, snapshotId: bigint, ancestorId: bigint): boolean {
  for (const snapshot of ancestors(metadata, snapshotId)) {
    if (snapshot['snapshot-id'] === ancestorId) return true;
  }
  return false;
}
