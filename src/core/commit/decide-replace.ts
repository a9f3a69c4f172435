import { DELETED, readManifest } from '../iceberg/manifest-read.ts';
import { currentSchema, specById } from '../iceberg/metadata.ts';
import type { DataFile, ManifestEntry, ManifestFile, TableMetadata } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import { madeOnce } from './added-manifest.ts';
import { unnumberedRefusal } from './decide-delete.ts';
import { type FileMatcher, tuplesMatcher } from './file-filter.ts';
import { type IcebergBase, type Seen, seenOf } from './iceberg-base.ts';
import type { ReplaceInput, ReplaceOperation } from './operation.ts';
import { isKnownLayout, otherTable } from './premises.ts';
import { reportKeys } from './report.ts';
import { rewriteTouched } from './rewrite-files.ts';
import {
  countsOf,
  liveRows,
  type Selection,
  selectFiles,
  selectionNeeds,
  selectOnce,
  tooMany,
  tupleKey,
  untouchedRows,
} from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { snapshotOf } from './snapshot-of.ts';
import { isBetween, type Span, spansOf } from './spans.ts';

type Conflict = Extract<Decision<IcebergBase>, { kind: 'conflict' }>;

/**
 * Puts files in the place of others that hold the same rows. Appends may get in between as they like (B135). Premises, on
 * the base of each attempt: the outputs' schema, spec and order are known; every input is live, under whichever manifest
 * (C2); no delete file touches an input (C3, B130); and where the newest of two rows of one key wins, no other live file of
 * the partition, nor one under another spec, has a data sequence number between those of a run: its rows would change sides
 * with older ones.
 */
export function decideReplace(
  context: SinkContext,
  operation: ReplaceOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity, layout, inputs } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  if (!isKnownLayout(metadata, layout)) {
    const message = `table does not know the outputs' schema, spec or sort order any more: ${layout.schemaId}`;
    return { kind: 'conflict', type: 'layout-gone', message };
  }
  const parentRows = liveRows(context, base, seen);
  const rows = rowsOfInterest(operation, metadata, parentRows);
  const refusal = tooMany(rows);
  if (refusal !== null) return refusal;
  const known = seenOf(context, base, seen);
  const selected = select(context, operation, base, seen);
  const gone = inputs.filter(({ path }) => !selected.live.has(path));
  if (gone.length > 0) {
    const message = `files to be replaced are not live any more: count=${gone.length} first=${gone[0].path}`;
    return { kind: 'conflict', type: 'inputs-gone', message };
  }
  if (selected.unnumbered !== null) return unnumberedRefusal(selected.unnumbered);
  const broken = selected.between ?? touchingDelete(context, operation, metadata, rows, known);
  if (broken !== null) return broken;

  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const { touched, removed } = selected;
  const matcher = inputsMatcher(operation);
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
      operation: 'replace',
      schemaId: metadata['current-schema-id'],
      parentRows,
      made,
      carried,
      counts: countsOf(operation.added, removed),
      epochs: 'carry',
      // The rows that readers see are the same: so is the newest of each series (C10).
      lastValueIndex: 'carry',
      extra: reportKeys({ made, replaced: touched.length, kept: carried.length }),
    },
    known,
    nowMs,
  );
}

/** Why a replace of these files would be refused on this base whatever took their place; null: nothing is known to be in its way. */
export function refusalBefore(
  change: Interest,
  metadata: TableMetadata,
  rows: readonly ManifestFile[],
): Extract<Decision<IcebergBase>, { kind: 'refused' }> | null {
  return tooMany(rowsOfInterest(change, metadata, rows));
}

/** See `selectionNeeds`. */
export function replaceNeeds(
  context: SinkContext,
  operation: ReplaceOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (otherTable(base, operation.identity.tableUuid) !== null) return [];
  return selectionNeeds(
    context,
    base,
    seen,
    ({ metadata }, rows) => rowsOfInterest(operation, metadata, rows),
    (newest) => countsOf(operation.added, select(context, operation, newest, seen).removed),
  );
}

/** What tells which manifests a replace reads. */
interface Interest {
  inputs: readonly Pick<ReplaceInput, 'partition' | 'sequenceNumber'>[];
  layout: Pick<ReplaceOperation['layout'], 'specId'>;
  dedup: boolean;
}

/**
 * Manifests that may hold an input, a file between the inputs, or a delete file that touches one: of the inputs'
 * partitions, and not wholly newer than all of them; with dedup, of other specs too. What appends add meanwhile is never read.
 */
function rowsOfInterest(
  { inputs, layout, dedup }: Interest,
  metadata: TableMetadata,
  rows: readonly ManifestFile[],
): ManifestFile[] {
  const spec = specById(metadata, layout.specId);
  const matcher = spec === null ? null : tuplesMatcher(metadata, spec, distinctTuples(inputs));
  let highest = 0n;
  let lowest: bigint | null = null;
  for (const { sequenceNumber } of inputs) {
    if (sequenceNumber > highest) highest = sequenceNumber;
    if (lowest === null || sequenceNumber < lowest) lowest = sequenceNumber;
  }
  return rows.filter((row) => {
    const isOfSpec = row.partitionSpecId === layout.specId;
    const mayHold = isOfSpec && (matcher?.mayHold(row) ?? true);
    if (row.content === 0) {
      const mayBeBetween = dedup && !isOfSpec && row.sequenceNumber > (lowest ?? 0n);
      return (mayHold || mayBeBetween) && row.minSequenceNumber <= highest;
    }
    const isGlobal = specById(metadata, row.partitionSpecId)?.fields.length === 0;
    return (mayHold || isGlobal) && row.sequenceNumber >= (lowest ?? 0n);
  });
}

function distinctTuples(inputs: Interest['inputs']): ReplaceInput['partition'][] {
  return [...new Map(inputs.map(({ partition }) => [tupleKey(0, partition), partition])).values()];
}

/** What of the inputs is live, and a file that lies between them. */
interface InputSelection extends Selection {
  live: ReadonlySet<string>;
  between: Conflict | null;
}

function inputsMatcher({ inputs, layout }: ReplaceOperation): FileMatcher {
  const paths = new Set(inputs.map(({ path }) => path));
  return {
    mayHold: () => true,
    match: (specId, file) => (specId === layout.specId && paths.has(file.filePath) ? 'inside' : 'outside'),
  };
}

function select(
  context: SinkContext,
  operation: ReplaceOperation,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
): InputSelection {
  return selectOnce({ base, seen, change: operation }, () => {
    const { metadata } = base;
    const { inputs, layout, dedup } = operation;
    const matcher = inputsMatcher(operation);
    const spans = dedup ? spansOf(inputs) : new Map<string, Span[]>();
    const all = [...spans.values()].flat();
    const live = new Set<string>();
    let between: Conflict | null = null;
    const visit = ({ dataFile, sequenceNumber }: ManifestEntry, specId: number) => {
      if (matcher.match(specId, dataFile) === 'inside') {
        live.add(dataFile.filePath);
        return;
      }
      // Which keys a file under another spec shares, its partition does not tell.
      const near = specId === layout.specId ? (spans.get(tupleKey(0, dataFile.partition)) ?? []) : all;
      if (sequenceNumber === null || !near.some((span) => isBetween(sequenceNumber, span))) return;
      const message = `a file lies between those to be replaced: ${dataFile.filePath}`;
      between ??= { kind: 'conflict', type: 'run-not-contiguous', message };
    };
    const rows = rowsOfInterest(operation, metadata, liveRows(context, base, seen));
    const data = rows.filter((row) => row.content === 0);
    const selection = selectFiles(context, metadata, data, seenOf(context, base, seen), matcher, visit);
    return { ...selection, live, between };
  });
}

/**
 * A delete file that applies to an input (spec: scan planning): of its partition, or an equality delete of an
 * unpartitioned spec; and for equality deletes newer, for position deletes not older than the file.
 */
function touchingDelete(
  context: SinkContext,
  { inputs, layout }: ReplaceOperation,
  metadata: TableMetadata,
  rows: readonly ManifestFile[],
  known: Seen,
): Conflict | null {
  const paths = new Set(inputs.map(({ path }) => path));
  const lowest = new Map<string, bigint>();
  for (const { partition, sequenceNumber } of inputs) {
    const key = tupleKey(0, partition);
    const before = lowest.get(key);
    if (before === undefined || sequenceNumber < before) lowest.set(key, sequenceNumber);
  }
  const touches = (file: DataFile, specId: number, sequenceNumber: bigint): boolean => {
    if (file.referencedDataFile !== null && !paths.has(file.referencedDataFile)) return false;
    const isGlobal = file.content === 2 && specById(metadata, specId)?.fields.length === 0;
    const hit = (number: bigint) => (file.content === 2 ? sequenceNumber > number : sequenceNumber >= number);
    if (isGlobal) return [...lowest.values()].some(hit);
    const number = specId === layout.specId ? lowest.get(tupleKey(0, file.partition)) : undefined;
    return number !== undefined && hit(number);
  };
  for (const row of rows) {
    if (row.content !== 1) continue;
    const { entries } = readManifest(known.bytesOf(row), {
      deflate: context.deflate,
      row,
      schema: currentSchema(metadata),
      specs: metadata['partition-specs'],
    });
    for (const { status, dataFile, sequenceNumber } of entries) {
      if (status === DELETED || !touches(dataFile, row.partitionSpecId, sequenceNumber ?? row.sequenceNumber)) continue;
      const message = `a delete file applies to files to be replaced: ${dataFile.filePath}`;
      return { kind: 'conflict', type: 'inputs-have-deletes', message };
    }
  }
  return null;
}
