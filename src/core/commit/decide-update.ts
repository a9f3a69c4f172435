import { utf8 } from '../base/bytes.ts';
import { conflict } from '../base/errors.ts';
import { stringifyJson } from '../base/int64-json.ts';
import { EPOCHS_MIRROR_KEY, readEpochs, serializeMirror } from '../batch/epochs.ts';
import { currentSchema, serializeMetadata } from '../iceberg/metadata.ts';
import { checkRequirements } from '../iceberg/requirements.ts';
import { currentSnapshot } from '../iceberg/snapshot.ts';
import { NO_COUNTS } from '../iceberg/summary.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { applyUpdates, commitTime, type MetadataUpdate } from '../iceberg/updates.ts';
import { lostSnapshots } from '../maintain/reachable.ts';
import type { Decision } from '../sink.ts';
import { listChange } from './changes.ts';
import { type IcebergBase, listNeed, manifestsOf, NOTHING_KEPT, seenOf } from './iceberg-base.ts';
import { indexAfterSchema, indexNeeds, indexOf } from './last-value.ts';
import type { UpdateOperation } from './operation.ts';
import { otherTable } from './premises.ts';
import { liveRows } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { rowsToCount, snapshotOf } from './snapshot-of.ts';

/**
 * A change of metadata against one base: planned on it, its requirements checked, its updates applied. The commit's id goes
 * into the list of changes, by which it is found. A plan that changes nothing writes nothing.
 *
 * @throws conflict `requirement-failed` (detail: requirement), and what the plan and `applyUpdates` throw
 */
export function decideUpdate(
  context: SinkContext,
  operation: UpdateOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  const planned = operation.plan(metadata);
  const [failure] = checkRequirements(metadata, planned.requirements ?? []);
  if (failure !== undefined) {
    throw conflict('requirement-failed', failure.message, { requirement: failure.requirement.type });
  }
  const timeMs = commitTime(metadata, nowMs);
  const apply = (all: readonly MetadataUpdate[]) =>
    applyUpdates(metadata, all, { nowMs: timeMs, previousMetadataLocation: context.versionLocation(base.version) });
  if (planned.updates.length === 0 || changesNothing(metadata, apply(planned.updates))) {
    return { kind: 'nothing', message: 'table is as asked already', detail: {} };
  }
  const updates: MetadataUpdate[] = [...planned.updates, listChange(metadata.properties, identity.commitId)];
  if (planned.columns === true && namesIndex(metadata))
    return withIndex(context, operation, base, updates, seen, nowMs);

  let next = apply(updates);
  const mirror = mirrorAfter(metadata, next);
  if (mirror !== null) {
    next = apply([...updates, { action: 'set-properties', updates: { [EPOCHS_MIRROR_KEY]: mirror } }]);
  }
  const moved = next['current-snapshot-id'] !== metadata['current-snapshot-id'];
  return {
    kind: 'proceed',
    uploads: [],
    bytes: utf8(serializeMetadata(next)),
    next: (etag) => ({
      version: base.version + 1,
      etag,
      metadata: next,
      manifests: moved ? null : base.manifests,
      kept: moved ? NOTHING_KEPT : base.kept,
    }),
  };
}

/** Keys that the decision reads: manifest list and last-value index, where the change needs a snapshot of the same files. */
export function updateNeeds(
  context: SinkContext,
  operation: UpdateOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (base === null || otherTable(base, operation.identity.tableUuid) !== null || !namesIndex(base.metadata)) return [];
  if (operation.plan(base.metadata).columns !== true) return [];
  const index = indexNeeds(context, base, seen);
  const list = listNeed(context, base, seen);
  if (list !== null) return [list, ...index];
  const rows = manifestsOf(base, seen, context.keyOf, context.deflate);
  return [...seenOf(context, base, seen).missing(rowsToCount(base, rows)), ...index];
}

/** Updates share what they leave alone; only small maps are made anew with the same content. */
function changesNothing(before: TableMetadata, after: TableMetadata): boolean {
  return (Object.keys(after) as (keyof TableMetadata)[]).every((key) => {
    if (key === 'last-updated-ms' || key === 'metadata-log' || before[key] === after[key]) return true;
    return (key === 'properties' || key === 'refs') && stringifyJson(before[key]) === stringifyJson(after[key]);
  });
}

function namesIndex(metadata: TableMetadata): boolean {
  return indexOf(metadata) !== null;
}

/** The updates together with a snapshot of the same files that names an index in the new columns, or none. */
function withIndex(
  context: SinkContext,
  operation: UpdateOperation,
  base: IcebergBase,
  updates: readonly MetadataUpdate[],
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const rows = liveRows(context, base, seen);
  const changed = applyUpdates(base.metadata, updates, { nowMs, previousMetadataLocation: null });
  const { identity } = operation;
  return snapshotOf(
    context,
    {
      base,
      identity,
      operation: 'replace',
      schemaId: changed['current-schema-id'],
      parentRows: rows,
      made: [],
      carried: rows,
      counts: NO_COUNTS,
      epochs: 'carry',
      ...indexAfterSchema(context, { base, identity, schema: currentSchema(changed) }, seen),
      updates,
    },
    seenOf(context, base, seen),
    nowMs,
  );
}

/**
 * The mirror of main's progress, when it must be written anew: main moved, or the snapshot that carried its progress is
 * removed. Progress is read where it still is, on the base's snapshots: a mirror of a state that main was rolled back from
 * must never count again, however the table goes on.
 */
function mirrorAfter(before: TableMetadata, after: TableMetadata): string | null {
  const head = currentSnapshot(after);
  if (head === null) return null;
  const moved = head['snapshot-id'] !== before['current-snapshot-id'];
  if (!moved && lostSnapshots(before, after).length === 0) return null;
  const snapshots = [...before.snapshots, ...lostSnapshots(after, before)];
  const progress = readEpochs({ ...before, snapshots, refs: after.refs, 'current-snapshot-id': head['snapshot-id'] });
  if (progress.size === 0 && before.properties[EPOCHS_MIRROR_KEY] === undefined) return null;
  return serializeMirror(head['snapshot-id'], head['sequence-number'], progress);
}
