import type { TableMetadata } from '../iceberg/types.ts';
import { retentionCutoff } from '../maintain/retention.ts';
import type { Decision } from '../sink.ts';
import { listChange } from './changes.ts';
import { fileMatcher } from './file-filter.ts';
import { type IcebergBase, seenOf } from './iceberg-base.ts';
import { type IndexOfSnapshot, indexAfterRemoval, indexAfterRetention, indexNeeds } from './last-value.ts';
import type { CommitIdentity, DeleteOperation, OverwriteOperation } from './operation.ts';
import { otherTable } from './premises.ts';
import { reportKeys } from './report.ts';
import { rewriteTouched } from './rewrite-files.ts';
import {
  candidateRows,
  countsOf,
  liveRows,
  type Selection,
  selectFiles,
  selectionNeeds,
  selectOnce,
  tooMany,
  untouchedRows,
} from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { snapshotOf } from './snapshot-of.ts';

/** Key of the summary: microseconds of the instant before which the table's retention dropped all. */
export const RETENTION_CUTOFF = 'sluice.retention-cutoff';

/**
 * A delete of whole files, checked against the table it is for.
 *
 * @throws invalid `unknown-partition-field`, `bad-partition-value`, `no-time-column`
 */
export function prepareDelete(
  identity: CommitIdentity,
  filter: DeleteOperation['filter'],
  metadata: TableMetadata,
): DeleteOperation {
  fileMatcher(filter, metadata);
  return { kind: 'delete', commitId: identity.commitId, uploads: [], identity, filter };
}

/**
 * A delete of what is past the table's retention: everything wholly before `cutoff`, microseconds.
 *
 * @throws invalid `no-time-column`
 */
export function prepareRetention(identity: CommitIdentity, cutoff: bigint, metadata: TableMetadata): DeleteOperation {
  return { ...prepareDelete(identity, { kind: 'retention', before: cutoff }, metadata), retention: cutoff };
}

/**
 * Deletes the files that the filter covers *on this base*: chosen anew on each attempt. So an append that got in before
 * it is deleted with the rest, and one that comes after it stays: commits take effect in the order of their versions.
 * Nothing to delete makes no snapshot (S10).
 */
export function decideDelete(
  context: SinkContext,
  operation: DeleteOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity, filter } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  if (operation.retention !== undefined) {
    // The limit was taken away or lengthened meanwhile: what it keeps now is not dropped by what it said before.
    const cutoff = retentionCutoff(metadata, nowMs);
    if (cutoff === null || cutoff < operation.retention) {
      return { kind: 'nothing', message: 'table keeps its rows for longer by now', detail: {} };
    }
  }
  const matcher = fileMatcher(filter, metadata);
  const parentRows = liveRows(context, base, seen);
  const candidates = candidateRows(parentRows, matcher);
  const refusal = tooMany(candidates);
  if (refusal !== null) return refusal;
  const known = seenOf(context, base, seen);
  const { touched, removed, overlapping, unnumbered } = select(context, operation, base, seen);
  if (unnumbered !== null) return unnumberedRefusal(unnumbered);
  if (removed.files === 0) {
    const detail = { overlappingFiles: overlapping.files, overlappingRows: overlapping.records.toString() };
    return { kind: 'nothing', message: 'no file is covered by the filter', detail };
  }
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const made = rewriteTouched(context, { metadata, identity, sequenceNumber }, touched, known, matcher);
  const carried = untouchedRows(parentRows, touched);
  return snapshotOf(
    context,
    {
      base,
      identity,
      operation: 'delete',
      schemaId: metadata['current-schema-id'],
      parentRows,
      made,
      carried,
      counts: countsOf(null, removed),
      epochs: 'carry',
      ...indexAfterDelete(context, operation, base, seen),
      extra: {
        ...reportKeys({ made, replaced: touched.length, kept: carried.length, overlapping }),
        ...(operation.retention === undefined ? {} : { [RETENTION_CUTOFF]: String(operation.retention) }),
      },
      updates: [listChange(metadata.properties, identity.commitId)],
    },
    known,
    nowMs,
  );
}

/** Rows went: an index that still names them would answer wrongly. */
function indexAfterDelete(
  context: SinkContext,
  { identity, retention }: DeleteOperation,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
): IndexOfSnapshot {
  return retention === undefined
    ? indexAfterRemoval(base)
    : indexAfterRetention(context, { base, identity, cutoff: retention }, seen);
}

/** See `selectionNeeds`; and the last-value index where it is cut. */
export function deleteNeeds(
  context: SinkContext,
  operation: DeleteOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (base === null || otherTable(base, operation.identity.tableUuid) !== null) return [];
  const files = selectionNeeds(
    context,
    base,
    seen,
    ({ metadata }, rows) => candidateRows(rows, fileMatcher(operation.filter, metadata)),
    (newest) => countsOf(null, select(context, operation, newest, seen).removed),
  );
  return operation.retention === undefined ? files : [...files, ...indexNeeds(context, base, seen)];
}

/** The files an operation's filter covers on this base. */
export function select(
  context: SinkContext,
  operation: DeleteOperation | OverwriteOperation,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
): Selection {
  return selectOnce({ base, seen, change: operation }, () => {
    const matcher = fileMatcher(operation.filter, base.metadata);
    const candidates = candidateRows(liveRows(context, base, seen), matcher);
    return selectFiles(context, base.metadata, candidates, seenOf(context, base, seen), matcher);
  });
}

/** A file whose file sequence number its manifest does not give: an entry of it cannot be written rightly (Q2). */
export function unnumberedRefusal(path: string): Extract<Decision<IcebergBase>, { kind: 'refused' }> {
  const message = `manifest does not give the file sequence number of a file, rewrite it with its own engine: ${path}`;
  return { kind: 'refused', type: 'unnumbered-file', message };
}
