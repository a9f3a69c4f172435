import { invalid, rejected } from '../base/errors.ts';
import type { Frame } from '../batch/frame.ts';
import type { Decision } from '../sink.ts';
import { madeOnce } from './added-manifest.ts';
import { listChange } from './changes.ts';
import { select, unnumberedRefusal } from './decide-delete.ts';
import { evolvedBy, isLayoutOf } from './evolve.ts';
import { type FileFilter, fileMatcher } from './file-filter.ts';
import { type IcebergBase, seenOf } from './iceberg-base.ts';
import { indexAfterRemoval } from './last-value.ts';
import { type FileMaking, makeFiles, rowsOf } from './make-files.ts';
import type { CommitIdentity, OverwriteOperation } from './operation.ts';
import { otherTable } from './premises.ts';
import { reportKeys } from './report.ts';
import { rewriteTouched } from './rewrite-files.ts';
import { candidateRows, countsOf, liveRows, selectionNeeds, tooMany, untouchedRows } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { snapshotOf } from './snapshot-of.ts';

export interface OverwriteInput extends FileMaking {
  identity: CommitIdentity;
  /** Which files the rows take the place of. */
  filter: FileFilter;
  /** The new rows: not empty, in order. Overwriting with nothing is a delete. */
  frames: readonly Frame[];
}

/**
 * Makes the files of an overwrite, once for all attempts. New rows must be of what they overwrite: with a filter by
 * partition or time, every new file must be covered by it.
 *
 * @throws invalid `no-rows`; rejected `outside-filter`; and what `fileMatcher`, `rowsOf` and `makeFiles` throw
 */
export function prepareOverwrite(input: OverwriteInput): OverwriteOperation {
  const { identity, filter, frames } = input;
  const matcher = fileMatcher(filter, input.metadata);
  const { metadata, evolution } = evolvedBy(frames, input.metadata);
  const rows = rowsOf(frames, metadata, identity.timeMs);
  const { uploads, entries, manifest, added, layout } = makeFiles(rows, { ...input, metadata });
  if (manifest === null) throw invalid('no-rows', 'overwrite has no rows: delete what is to go');
  if (filter.kind === 'partitions' || filter.kind === 'time-range') {
    for (const { dataFile } of entries) {
      if (matcher.match(layout.specId, dataFile) === 'inside') continue;
      const folder = dataFile.filePath.slice(input.place.location.length + 1).replace(/\/?[^/]*$/, '');
      throw rejected('outside-filter', `rows are not of what they are to overwrite: ${folder}`, { partition: folder });
    }
  }
  const { commitId } = identity;
  return { kind: 'overwrite', commitId, uploads, identity, filter, layout, evolution, manifest, added };
}

/**
 * Puts the new rows in the place of the files that the filter covers *on this base*, chosen anew on each attempt. A file
 * that a time range only overlaps would keep rows of the range beside the new ones: then it is refused. Where nothing is
 * in the way it is an append by its operation, as in the reference.
 */
export function decideOverwrite(
  context: SinkContext,
  operation: OverwriteOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity, filter, layout } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  if (!isLayoutOf(metadata, layout, operation.evolution))
    return { kind: 'again', reason: 'schema, partition spec or sort order moved' };
  const matcher = fileMatcher(filter, metadata);
  const parentRows = liveRows(context, base, seen);
  const candidates = candidateRows(parentRows, matcher);
  const refusal = tooMany(candidates);
  if (refusal !== null) return refusal;
  const known = seenOf(context, base, seen);
  const { touched, removed, overlapping, unnumbered } = select(context, operation, base, seen);
  if (unnumbered !== null) return unnumberedRefusal(unnumbered);
  if (overlapping.files > 0) {
    const { files, records } = overlapping;
    const message = `files hold rows of the range and others too, so they cannot be replaced whole: files=${files} rows=${records}`;
    return { kind: 'refused', type: 'partly-covered', message };
  }
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const made = [
    madeOnce(operation.manifest, sequenceNumber),
    ...rewriteTouched(context, { metadata, identity, sequenceNumber }, touched, known, matcher),
  ];
  const carried = untouchedRows(parentRows, touched);
  return snapshotOf(
    context,
    {
      base,
      identity,
      operation: removed.files === 0 ? 'append' : 'overwrite',
      schemaId: layout.schemaId,
      parentRows,
      made,
      carried,
      counts: countsOf(operation.added, removed),
      // Rows given here come with no epoch: nobody's progress moves.
      epochs: 'carry',
      ...indexAfterRemoval(base),
      extra: reportKeys({ made, replaced: touched.length, kept: carried.length }),
      updates: [...(operation.evolution?.updates ?? []), listChange(metadata.properties, identity.commitId)],
    },
    known,
    nowMs,
  );
}

/** See `selectionNeeds`. */
export function overwriteNeeds(
  context: SinkContext,
  operation: OverwriteOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  const { identity, filter, layout, evolution } = operation;
  if (otherTable(base, identity.tableUuid) !== null) return [];
  if (base !== null && !isLayoutOf(base.metadata, layout, evolution)) return [];
  return selectionNeeds(
    context,
    base,
    seen,
    ({ metadata }, rows) => candidateRows(rows, fileMatcher(filter, metadata)),
    (newest) => countsOf(operation.added, select(context, operation, newest, seen).removed),
  );
}
