import {
  MANIFEST_HELD_BYTES_MAX,
  MANIFEST_HELD_FILES_MAX,
  MANIFEST_TARGET_BYTES,
  MANIFEST_TARGET_FILES,
  OPERATION_MANIFESTS_MAX,
} from '../base/limits.ts';
import { specById } from '../iceberg/metadata.ts';
import { boundOf, comparatorOf } from '../iceberg/single-value.ts';
import { NO_COUNTS } from '../iceberg/summary.ts';
import type { ManifestEntry, ManifestFile, PrimitiveType, Schema, TableMetadata, Value } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import { tupleTypesOf } from './file-filter.ts';
import { type IcebergBase, type Seen, seenOf } from './iceberg-base.ts';
import { headerSchema, type MadeManifest } from './made-manifest.ts';
import type { CommitIdentity, RewriteManifestsOperation } from './operation.ts';
import { otherTable } from './premises.ts';
import { reportKeys } from './report.ts';
import { EntryWriter, entryBytesOf, existing } from './rewrite-files.ts';
import { isNumbered, liveEntriesOf, liveRows, selectionNeeds } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { snapshotOf } from './snapshot-of.ts';

export function prepareRewriteManifests(identity: CommitIdentity): RewriteManifestsOperation {
  return { kind: 'rewrite-manifests', commitId: identity.commitId, uploads: [], identity };
}

/**
 * Lists the same files anew: the data manifests of each partition spec become manifests of the target size whose entries
 * are clustered by partition, so that a reader of one partition opens few. Entries keep snapshot and numbers, deleted ones
 * drop out. Chosen anew on each base. Where the manifests together are more than one operation reads, the smallest are
 * taken: running it again goes on. Nothing to gain makes no snapshot.
 */
export function decideRewriteManifests(
  context: SinkContext,
  operation: RewriteManifestsOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { identity } = operation;
  const other = otherTable(base, identity.tableUuid);
  if (base === null || other !== null) return other as Decision<IcebergBase>;
  const { metadata } = base;
  const parentRows = liveRows(context, base, seen);
  const known = seenOf(context, base, seen);
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const made: MadeManifest[] = [];
  const replaced = new Set<ManifestFile>();
  for (const group of groupsToRewrite(metadata, parentRows)) {
    const entries = readGroup(context, metadata, group, known);
    const specId = group[0].partitionSpecId;
    const spec = specById(metadata, specId);
    // A file whose numbers are not known cannot be listed as existing (Q2), nor one of a spec whose column is gone
    // from all schemas: such manifests stay as they are.
    if (entries === null || spec === null || headerSchema(metadata, spec, []) === null) continue;
    const writer = new EntryWriter(context, { metadata, identity, sequenceNumber }, 'merged', specId);
    for (const { entry, schema, bytes } of clustered(metadata, specId, entries))
      writer.add(existing(entry), schema, bytes);
    made.push(...writer.finish());
    for (const row of group) replaced.add(row);
  }
  if (made.length === 0) {
    const detail = { manifests: parentRows.length };
    return { kind: 'nothing', message: 'manifests are as few and as clustered as they can be', detail };
  }
  const carried = parentRows.filter((row) => !replaced.has(row));
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
      counts: NO_COUNTS,
      epochs: 'carry',
      lastValueIndex: 'carry',
      extra: reportKeys({ made, replaced: replaced.size, kept: carried.length }),
    },
    known,
    nowMs,
  );
}

/** See `selectionNeeds`. */
export function rewriteManifestsNeeds(
  context: SinkContext,
  operation: RewriteManifestsOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (otherTable(base, operation.identity.tableUuid) !== null) return [];
  const wanted = ({ metadata }: IcebergBase, rows: readonly ManifestFile[]) => groupsToRewrite(metadata, rows).flat();
  return selectionNeeds(context, base, seen, wanted, () => NO_COUNTS);
}

/** Manifests to be written anew, one group a partition spec, within what one operation may read. */
export function groupsToRewrite(metadata: TableMetadata, rows: readonly ManifestFile[]): ManifestFile[][] {
  const groups: ManifestFile[][] = [];
  let bytes = 0;
  let files = 0;
  for (const specId of new Set(rows.map((row) => row.partitionSpecId))) {
    const group: ManifestFile[] = [];
    const bySize = rows
      .filter((row) => row.partitionSpecId === specId && row.content === 0)
      .sort((a, b) => Number(a.manifestLength - b.manifestLength));
    for (const row of bySize) {
      bytes += Number(row.manifestLength);
      files += row.addedFilesCount + row.existingFilesCount + row.deletedFilesCount;
      const isFull = bytes > MANIFEST_HELD_BYTES_MAX || files > MANIFEST_HELD_FILES_MAX;
      if (isFull || group.length >= OPERATION_MANIFESTS_MAX) break;
      group.push(row);
    }
    if (isWorthwhile(metadata, group)) groups.push(group);
  }
  return groups;
}

/** True when fewer manifests would do, or when as many would tell partitions better apart. */
function isWorthwhile(metadata: TableMetadata, group: readonly ManifestFile[]): boolean {
  if (group.length < 2) return false;
  const sum = (of: (row: ManifestFile) => number) => group.reduce((total, row) => total + of(row), 0);
  const files = sum((row) => row.addedFilesCount + row.existingFilesCount);
  const bytes = sum((row) => entryBytesOf(row) * (row.addedFilesCount + row.existingFilesCount));
  const needed = Math.max(Math.ceil(files / MANIFEST_TARGET_FILES), Math.ceil(bytes / MANIFEST_TARGET_BYTES));
  // Sizes are estimated: one more or less is no gain.
  if (needed < group.length && (needed === 1 || needed < group.length - 1)) return true;
  return rangesOverlap(metadata, group);
}

/** Whether two manifests hold a common range of partitions by the first field of their spec. In doubt they do not. */
function rangesOverlap(metadata: TableMetadata, group: readonly ManifestFile[]): boolean {
  const type = tupleTypes(metadata, group[0].partitionSpecId)[0];
  if (type === undefined) return false;
  const compare = comparatorOf(type);
  const ranges: { lower: Value; upper: Value }[] = [];
  for (const { partitions } of group) {
    const lower = boundOf(type, partitions?.[0]?.lowerBound);
    const upper = boundOf(type, partitions?.[0]?.upperBound);
    if (lower === null || upper === null) return false;
    ranges.push({ lower, upper });
  }
  ranges.sort((a, b) => compare(a.lower, b.lower));
  return ranges.some((range, i) => i > 0 && compare(range.lower, ranges[i - 1].upper) < 0);
}

interface SizedEntry {
  entry: ManifestEntry;
  schema: Schema;
  /** What it took in its manifest. */
  bytes: number;
}

function readGroup(
  context: SinkContext,
  metadata: TableMetadata,
  group: readonly ManifestFile[],
  known: Seen,
): SizedEntry[] | null {
  const all: SizedEntry[] = [];
  for (const row of group) {
    const { entries, schema } = liveEntriesOf(context, metadata, row, known);
    if (!entries.every(isNumbered)) return null;
    const bytes = entryBytesOf(row);
    for (const entry of entries) all.push({ entry, schema, bytes });
  }
  return all;
}

/** By partition tuple, nulls first; within one the newest first, as lists are (ML12). */
function clustered(metadata: TableMetadata, specId: number, entries: readonly SizedEntry[]): SizedEntry[] {
  const compares = tupleTypes(metadata, specId).map((type) => comparatorOf(type));
  const compareTuples = (a: readonly Value[], b: readonly Value[]): number => {
    for (let i = 0; i < compares.length; i++) {
      if (a[i] === null || b[i] === null) {
        if (a[i] !== b[i]) return a[i] === null ? -1 : 1;
        continue;
      }
      const order = compares[i](a[i], b[i]);
      if (order !== 0) return order;
    }
    return 0;
  };
  const number = ({ entry }: SizedEntry) => entry.sequenceNumber ?? 0n;
  return [...entries].sort((a, b) => {
    const order = compareTuples(a.entry.dataFile.partition, b.entry.dataFile.partition);
    if (order !== 0) return order;
    return number(a) === number(b) ? 0 : number(a) > number(b) ? -1 : 1;
  });
}

function tupleTypes(metadata: TableMetadata, specId: number): PrimitiveType[] {
  const spec = specById(metadata, specId);
  return spec === null ? [] : (tupleTypesOf(spec, metadata) ?? []);
}
