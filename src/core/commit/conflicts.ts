import { own } from '../base/shape.ts';
import { sameSchema } from '../iceberg/schema.ts';
import { ancestors, currentSnapshot, MAIN, snapshotById } from '../iceberg/snapshot.ts';
import type { Snapshot, SnapshotRef, TableMetadata } from '../iceberg/types.ts';
import type { RebasedOver } from '../sink.ts';

/**
 * What becomes of an operation when another change gets in between its decision and its write. Each attempt decides again
 * on the newer base, so nothing here is looked up while committing: the premises of the operations come to this, and
 * `test/engine/conflicts.test.ts` makes every cell happen.
 *
 * In every row, *is my commit in the chain* is asked before anything else: else a late own replace would find its
 * inputs gone, and its live outputs would be thrown away.
 */
export type Resolution =
  /** The same change on the newer base. */
  | 'rebase'
  /** The same filter on the newer base: what it removes is chosen anew, and includes what the other change added. */
  | 'choose-again'
  /** Rebased while every file it replaces is live, else a conflict: plan it anew. */
  | 'inputs-live'
  /** Rebased while the table still knows the schema, spec and order it was made with. */
  | 'layout-known'
  /** Rebased while the branch is there, wherever it stands by then, else refused with its own batches alone. */
  | 'branch-there'
  /** Rows were looked through that are no longer all there are: looked through anew by the caller. */
  | 'look-again'
  /** Files were made for another layout: made again by the caller. */
  | 'prepare-again'
  /** Refused: nothing lands in what took the table's place. */
  | 'gone';

/** `index`: a last-value index for the rows that are there. */
export type Mine = 'append' | 'append-to-branch' | 'replace' | 'delete' | 'overwrite' | 'rewrite-manifests' | 'index';

/** `layout`: schema, partition spec or sort order; `refs`: branches and tags beside main. */
export type Theirs = RebasedOver;

/** Mine, then theirs. */
export const MATRIX: { readonly [mine in Mine]: { readonly [theirs in Theirs]: Resolution } } = {
  append: {
    append: 'rebase',
    replace: 'rebase',
    delete: 'rebase',
    overwrite: 'rebase',
    'rewrite-manifests': 'rebase',
    expire: 'rebase',
    layout: 'prepare-again',
    properties: 'rebase',
    refs: 'rebase',
    // Progress is read again, along the new ancestry.
    rollback: 'rebase',
    drop: 'gone',
  },
  // As on main, from where the branch stands; what becomes of main does not matter to it.
  'append-to-branch': {
    append: 'rebase',
    replace: 'rebase',
    delete: 'rebase',
    overwrite: 'rebase',
    'rewrite-manifests': 'rebase',
    expire: 'rebase',
    layout: 'prepare-again',
    properties: 'rebase',
    refs: 'branch-there',
    rollback: 'rebase',
    drop: 'gone',
  },
  replace: {
    append: 'rebase',
    replace: 'inputs-live',
    delete: 'inputs-live',
    overwrite: 'inputs-live',
    // The inputs are found in other manifests then.
    'rewrite-manifests': 'rebase',
    expire: 'rebase',
    layout: 'layout-known',
    properties: 'rebase',
    refs: 'rebase',
    rollback: 'inputs-live',
    drop: 'gone',
  },
  delete: {
    append: 'choose-again',
    replace: 'choose-again',
    delete: 'choose-again',
    overwrite: 'choose-again',
    'rewrite-manifests': 'choose-again',
    expire: 'rebase',
    layout: 'choose-again',
    properties: 'rebase',
    refs: 'rebase',
    rollback: 'choose-again',
    drop: 'gone',
  },
  overwrite: {
    append: 'choose-again',
    replace: 'choose-again',
    delete: 'choose-again',
    overwrite: 'choose-again',
    'rewrite-manifests': 'choose-again',
    expire: 'rebase',
    layout: 'prepare-again',
    properties: 'rebase',
    refs: 'rebase',
    rollback: 'choose-again',
    drop: 'gone',
  },
  'rewrite-manifests': {
    append: 'choose-again',
    replace: 'choose-again',
    delete: 'choose-again',
    overwrite: 'choose-again',
    'rewrite-manifests': 'choose-again',
    expire: 'rebase',
    layout: 'choose-again',
    properties: 'rebase',
    refs: 'rebase',
    rollback: 'choose-again',
    drop: 'gone',
  },
  index: {
    append: 'look-again',
    // Of the same rows, but that is not told from the snapshot alone.
    replace: 'look-again',
    delete: 'look-again',
    overwrite: 'look-again',
    'rewrite-manifests': 'look-again',
    expire: 'rebase',
    layout: 'rebase',
    properties: 'rebase',
    refs: 'rebase',
    rollback: 'look-again',
    drop: 'gone',
  },
};

/** Changes of metadata alone. `tag` stands for all changes of refs, `properties` for upgrade, `schema` for partitions too. */
export type MyChange = 'properties' | 'schema' | 'tag' | 'rollback' | 'expire';

export type ChangeResolution =
  /** Planned anew on the newer base, whatever happened to it. */
  | 'plan-again'
  /** The same, while the snapshot it names is retained, else a conflict. */
  | 'snapshot-kept'
  /** Refused, as above. */
  | 'gone';

const PLANNED_AGAIN: { readonly [theirs in Theirs]: ChangeResolution } = {
  append: 'plan-again',
  replace: 'plan-again',
  delete: 'plan-again',
  overwrite: 'plan-again',
  'rewrite-manifests': 'plan-again',
  expire: 'plan-again',
  layout: 'plan-again',
  properties: 'plan-again',
  refs: 'plan-again',
  rollback: 'plan-again',
  drop: 'gone',
};

/**
 * A change of metadata is a plan: cheaper to make again than to reconcile. Requirements that came with it (a client's
 * updates, an expected schema or snapshot) are asked of the newer base, and one that does not hold is a conflict.
 */
export const CHANGES_MATRIX: {
  readonly [mine in MyChange]: { readonly [theirs in Theirs]: ChangeResolution };
} = {
  properties: PLANNED_AGAIN,
  schema: PLANNED_AGAIN,
  tag: { ...PLANNED_AGAIN, expire: 'snapshot-kept' },
  rollback: { ...PLANNED_AGAIN, expire: 'snapshot-kept' },
  expire: PLANNED_AGAIN,
};

/** What happened between two versions of a table, as far as their metadata tells. */
export function changesBetween(before: TableMetadata | null, after: TableMetadata | null): Theirs[] {
  if (before === null || after === null) return [];
  if (before['table-uuid'] !== after['table-uuid']) return ['drop'];
  const found = new Set<Theirs>();
  const head = currentSnapshot(before);
  const now = currentSnapshot(after);
  let isDescendant = head === null;
  for (const snapshot of now === null ? [] : ancestors(after, now['snapshot-id'])) {
    if (snapshot['snapshot-id'] === head?.['snapshot-id']) {
      isDescendant = true;
      break;
    }
    if (snapshotById(before, snapshot['snapshot-id']) === null) found.add(kindOf(snapshot));
  }
  // Expiry cuts ancestries off too: only a head that is still there can have been left.
  if (!isDescendant && head !== null && snapshotById(after, head['snapshot-id']) !== null) found.add('rollback');
  if (before.snapshots.some((snapshot) => snapshotById(after, snapshot['snapshot-id']) === null)) found.add('expire');
  if (!sameLayout(before, after)) found.add('layout');
  if (!sameProperties(before.properties, after.properties)) found.add('properties');
  if (!sameRefs(before, after)) found.add('refs');
  return [...found];
}

/** A rewrite of manifests is a replace that changes no file. */
function kindOf({ summary }: Snapshot): Theirs {
  if (summary.operation !== 'replace') return summary.operation;
  return own(summary, 'added-data-files') === undefined ? 'rewrite-manifests' : 'replace';
}

function sameLayout(before: TableMetadata, after: TableMetadata): boolean {
  return (
    before['current-schema-id'] === after['current-schema-id'] &&
    before['default-spec-id'] === after['default-spec-id'] &&
    before['default-sort-order-id'] === after['default-sort-order-id'] &&
    before.schemas.length === after.schemas.length &&
    before.schemas.every((schema, i) => schema === after.schemas[i] || sameSchema(schema, after.schemas[i]))
  );
}

/** Own bookkeeping changes with each commit and is no change of anybody's. */
function sameProperties(before: Record<string, string>, after: Record<string, string>): boolean {
  const told = (properties: Record<string, string>) =>
    Object.entries(properties).filter(([key]) => !/^sluice\.(epochs|changes)/.test(key));
  const later = new Map(told(after));
  const earlier = told(before);
  return earlier.length === later.size && earlier.every(([key, value]) => later.get(key) === value);
}

function sameRefs(before: TableMetadata, after: TableMetadata): boolean {
  const others = (metadata: TableMetadata) => Object.entries(metadata.refs).filter(([name]) => name !== MAIN);
  const same = (a: SnapshotRef, b: SnapshotRef | undefined) =>
    b !== undefined && a['snapshot-id'] === b['snapshot-id'] && a.type === b.type;
  return (
    others(before).length === others(after).length &&
    others(before).every(([name, ref]) => same(ref, own(after.refs, name)))
  );
}
