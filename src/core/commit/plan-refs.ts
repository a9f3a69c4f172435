import { conflict, invalid, rejected } from '../base/errors.ts';
import { NAME_LENGTH_MAX, REFS_MAX } from '../base/limits.ts';
import { describe, own } from '../base/shape.ts';
import type { Requirement } from '../iceberg/requirements.ts';
import { isAncestor, MAIN, snapshotById } from '../iceberg/snapshot.ts';
import type { SnapshotRef, TableMetadata } from '../iceberg/types.ts';
import type { MetadataUpdate } from '../iceberg/updates.ts';
import type { Plan, Planned } from './plan.ts';

/** What a client wants a branch or tag to be. What is left out stays as it is, or is not set on a new one. */
export interface RefChange {
  name: string;
  type: 'branch' | 'tag' | null;
  /** Null: where it stands; for a new ref the current snapshot. */
  snapshotId: bigint | null;
  maxRefAgeMs?: number | null;
  maxSnapshotAgeMs?: number | null;
  minSnapshotsToKeep?: number | null;
  /** The snapshot it must stand at before: null for a ref that must not exist; undefined: any. */
  expected?: bigint | null;
}

const NAME = /^[A-Za-z0-9_][A-Za-z0-9_.-]*$/;

/**
 * Makes a branch or tag, moves it, or gives it other retention limits. One that is as asked is left alone, whatever is
 * expected of it: a client that repeats its own request is not told of a conflict with itself.
 *
 * @throws invalid `bad-ref`, rejected `main-fixed` for main at another snapshot, `too-many-refs`; conflict `unknown-snapshot`
 */
export function setRef(change: RefChange): Plan {
  const { name } = change;
  return (metadata) => {
    const before = own(metadata.refs, name) ?? null;
    if (before === null) checkNewRef(metadata, change);
    const snapshotId = change.snapshotId ?? before?.['snapshot-id'] ?? metadata['current-snapshot-id'];
    if (snapshotId === undefined) throw rejected('no-snapshot', `table has no snapshot for a ref to stand at: ${name}`);
    checkRetained(metadata, snapshotId);
    if (name === MAIN && snapshotId !== metadata['current-snapshot-id']) {
      throw rejected('main-fixed', 'main moves by commits, by rollback and by fast-forward, not by being set');
    }
    const type = change.type ?? before?.type ?? 'branch';
    if (before !== null && before.type !== type) throw invalid('bad-ref', `ref is a ${before.type}: ${name}`);
    const after = withLimits({ ...before, 'snapshot-id': snapshotId, type }, change);
    if (before !== null && sameRef(before, after)) return { updates: [] };
    return { requirements: expecting(change), updates: [refUpdate(name, after)] };
  };
}

/** Removes a branch or tag. @throws invalid `unknown-ref`; rejected `main-fixed` */
export function dropRef(name: string, expected?: bigint | null): Plan {
  return (metadata) => {
    if (name === MAIN) throw rejected('main-fixed', 'main cannot be removed');
    refAt(metadata, name);
    return {
      requirements: expecting({ name, expected }),
      updates: [{ action: 'remove-snapshot-ref', 'ref-name': name }],
    };
  };
}

/**
 * Moves a branch to where another ref stands, when nothing that the branch holds is left behind.
 *
 * @throws invalid `unknown-ref`, `bad-ref`; conflict `not-fast-forward`
 */
export function fastForward(name: string, to: string): Plan {
  return (metadata) => {
    const branch = refAt(metadata, name);
    if (branch.type !== 'branch') throw invalid('bad-ref', `ref is a tag and does not move forward: ${name}`);
    const target = refAt(metadata, to)['snapshot-id'];
    if (target === branch['snapshot-id']) return { updates: [] };
    if (!isAncestor(metadata, target, branch['snapshot-id'])) {
      throw conflict('not-fast-forward', `head of ${name} is no ancestor of ${to}: ${branch['snapshot-id']}`);
    }
    return { updates: [refUpdate(name, { ...branch, 'snapshot-id': target })] };
  };
}

/**
 * Moves main to a snapshot that is still in the table. Its rows and its progress are what counts from then on; later
 * snapshots stay until they expire.
 *
 * @throws conflict `unknown-snapshot`
 */
export function rollback(snapshotId: bigint, expected?: bigint | null): Plan {
  return (metadata): Planned => {
    checkRetained(metadata, snapshotId);
    const main = own(metadata.refs, MAIN);
    if (main?.['snapshot-id'] === snapshotId) return { updates: [] };
    return {
      requirements: expecting({ name: MAIN, expected }),
      updates: [refUpdate(MAIN, { ...(main ?? { type: 'branch' }), 'snapshot-id': snapshotId })],
    };
  };
}

/** The ref of this name. @throws invalid `unknown-ref` */
export function refAt(metadata: TableMetadata, name: string): SnapshotRef {
  const ref = own(metadata.refs, name);
  if (ref === undefined) throw invalid('unknown-ref', `table has no branch or tag of this name: ${describe(name)}`);
  return ref;
}

function checkNewRef(metadata: TableMetadata, { name, type }: RefChange): void {
  if (!NAME.test(name) || name.length > NAME_LENGTH_MAX) {
    throw invalid(
      'bad-ref',
      `name of a ref is 1 to ${NAME_LENGTH_MAX} of A-Z a-z 0-9 _ . -, not . or - first: ${describe(name)}`,
    );
  }
  // engines take either after VERSION AS OF
  if (/^[0-9]+$/.test(name)) throw invalid('bad-ref', `name of a ref must not read as a snapshot id: ${name}`);
  if (type === null) throw invalid('bad-ref', `type of a new ref is missing: ${name}`);
  if (Object.keys(metadata.refs).length >= REFS_MAX) {
    throw rejected('too-many-refs', `table has as many branches and tags as it may: ${REFS_MAX}`);
  }
}

function checkRetained(metadata: TableMetadata, id: bigint): void {
  if (snapshotById(metadata, id) !== null) return;
  throw conflict('unknown-snapshot', `snapshot is not in the table, or not any more: ${id}`);
}

/** Limits given are set, null takes one away, left out keeps it. */
function withLimits(ref: SnapshotRef, change: RefChange): SnapshotRef {
  const limits = {
    'max-ref-age-ms': change.maxRefAgeMs,
    'max-snapshot-age-ms': change.maxSnapshotAgeMs,
    'min-snapshots-to-keep': change.minSnapshotsToKeep,
  } as const;
  const out = { ...ref };
  for (const [key, value] of Object.entries(limits) as [keyof typeof limits, number | null | undefined][]) {
    if (value === undefined) continue;
    if (value === null) delete out[key];
    else if (!Number.isSafeInteger(value) || value < 1) throw invalid('bad-ref', `${key} is positive: ${value}`);
    else if (ref.type === 'tag' && key !== 'max-ref-age-ms') throw invalid('bad-ref', `a tag has no ${key}: ${value}`);
    else out[key] = value;
  }
  return out;
}

function sameRef(a: SnapshotRef, b: SnapshotRef): boolean {
  return (['snapshot-id', 'max-ref-age-ms', 'max-snapshot-age-ms', 'min-snapshots-to-keep'] as const).every(
    (key) => a[key] === b[key],
  );
}

function expecting({ name, expected }: { name: string; expected?: bigint | null }): Requirement[] {
  return expected === undefined ? [] : [{ type: 'assert-ref-snapshot-id', ref: name, 'snapshot-id': expected }];
}

function refUpdate(name: string, ref: SnapshotRef): MetadataUpdate {
  return { action: 'set-snapshot-ref', 'ref-name': name, ...ref };
}
