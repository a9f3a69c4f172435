import { currentSchema } from '../iceberg/metadata.ts';
import { currentSnapshot } from '../iceberg/snapshot.ts';
import { NO_COUNTS } from '../iceberg/summary.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import { type IcebergBase, listNeed, seenOf } from './iceberg-base.ts';
import { indexOf, indexOfRows } from './last-value.ts';
import type { IndexOperation } from './operation.ts';
import { otherTable } from './premises.ts';
import { liveRows } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { rowsToCount, snapshotOf } from './snapshot-of.ts';

/**
 * Names a last-value index on a table that names none, or one that cannot be read, by a snapshot of the same files. Premise: the snapshot whose
 * rows were looked through is still the current one. An append that got in between would be missing in the index, and an
 * index that misses rows is never named.
 */
export function decideIndex(
  context: SinkContext,
  operation: IndexOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity, covers, newest } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  if (hasIndex(metadata, operation)) return { kind: 'nothing', message: 'table has its last-value index', detail: {} };
  if (currentSnapshot(metadata)?.['snapshot-id'] !== covers) {
    const message = 'rows came or went while the newest of each series were looked for';
    return { kind: 'conflict', type: 'index-behind', message };
  }
  const index = indexOfRows(context, { base, identity, schema: currentSchema(metadata), newest });
  if (index.lastValueIndex === null) {
    return { kind: 'refused', type: 'no-index', message: `last-value index cannot be made: ${index.noIndex}` };
  }
  const rows = liveRows(context, base, seen);
  return snapshotOf(
    context,
    {
      base,
      identity,
      operation: 'replace',
      schemaId: metadata['current-schema-id'],
      parentRows: rows,
      made: [],
      carried: rows,
      counts: NO_COUNTS,
      epochs: 'carry',
      ...index,
    },
    seenOf(context, base, seen),
    nowMs,
  );
}

/** Keys that the decision reads: the manifest list, and the manifests where totals must be counted. */
export function indexOperationNeeds(
  context: SinkContext,
  operation: IndexOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (base === null || otherTable(base, operation.identity.tableUuid) !== null) return [];
  const { metadata } = base;
  if (hasIndex(metadata, operation) || currentSnapshot(metadata)?.['snapshot-id'] !== operation.covers) return [];
  const list = listNeed(context, base, seen);
  if (list !== null) return [list];
  return seenOf(context, base, seen).missing(rowsToCount(base, liveRows(context, base, seen)));
}

/** Another one than that which could not be read: somebody has mended it. */
function hasIndex(metadata: TableMetadata, { lost }: IndexOperation): boolean {
  const named = indexOf(metadata);
  return named !== null && named !== lost;
}
