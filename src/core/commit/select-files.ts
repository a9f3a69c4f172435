import {
  MANIFEST_HELD_BYTES_MAX,
  MANIFEST_HELD_FILES_MAX,
  OPERATION_MANIFEST_BYTES_MAX,
  OPERATION_MANIFESTS_MAX,
} from '../base/limits.ts';
import { DELETED, readManifest } from '../iceberg/manifest-read.ts';
import { type Counts, NO_COUNTS } from '../iceberg/summary.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata, Value } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import type { FileMatcher } from './file-filter.ts';
import { type IcebergBase, listNeed, manifestsOf, type Seen, seenOf } from './iceberg-base.ts';
import { rewrittenSchema } from './made-manifest.ts';
import { liveFiles } from './manifest-policy.ts';
import type { SinkContext } from './sink-context.ts';
import { rowsToCount } from './snapshot-of.ts';

/** What a filter chose on one base. Entries are not kept: what is chosen is read again, one manifest at a time. */
export interface Selection {
  /** Manifests that hold files to be removed. */
  touched: ManifestFile[];
  removed: Changed;
  /** Files that the filter meets without covering them. */
  overlapping: { files: number; records: bigint };
  /** A file in a touched manifest whose numbers are not told: it can be neither deleted nor kept rightly. */
  unnumbered: string | null;
}

/** Sums over files that a commit adds or removes. */
export interface Changed {
  files: number;
  records: bigint;
  bytes: bigint;
  /** `tupleKey` of each. */
  partitions: ReadonlySet<string>;
}

/** Rows of the parent's list that go on or are read: those that still hold something. */
export function liveRows(
  context: SinkContext,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
): readonly ManifestFile[] {
  return manifestsOf(base, seen, context.keyOf, context.deflate).filter((row) => liveFiles(row) > 0);
}

/** Data manifests that may hold a file the matcher wants: all that a decision reads. */
export function candidateRows(rows: readonly ManifestFile[], matcher: FileMatcher): ManifestFile[] {
  return rows.filter((row) => row.content === 0 && matcher.mayHold(row));
}

/**
 * The refusal when an operation would read more manifests than fit beside everything else; null when it does not. It is
 * told from the list alone, before anything is read.
 */
export function tooMany(rows: readonly ManifestFile[]): Extract<Decision<IcebergBase>, { kind: 'refused' }> | null {
  const sizes = rows.map((row) => Number(row.manifestLength));
  const bytes = sizes.reduce((sum, size) => sum + size, 0);
  const type = 'too-many-manifests';
  const large = rows.find((row) => !isHoldable(row));
  if (large !== undefined) {
    const message = `manifest is too large for this service: bytes=${large.manifestLength} path=${large.manifestPath}`;
    return { kind: 'refused', type, message };
  }
  if (rows.length <= OPERATION_MANIFESTS_MAX && bytes <= OPERATION_MANIFEST_BYTES_MAX) return null;
  const most = `most=${OPERATION_MANIFESTS_MAX} of ${OPERATION_MANIFEST_BYTES_MAX} bytes`;
  const message = `operation would read too many manifests, narrow its filter: manifests=${rows.length} bytes=${bytes} ${most}`;
  return { kind: 'refused', type, message };
}

/** True when a manifest's entries fit in memory. */
function isHoldable(row: ManifestFile): boolean {
  const entries = row.addedFilesCount + row.existingFilesCount + row.deletedFilesCount;
  return Number(row.manifestLength) <= MANIFEST_HELD_BYTES_MAX && entries <= MANIFEST_HELD_FILES_MAX;
}

/**
 * Keys an operation on files reads, asked again until there are none: the manifest list; what `wanted` picks from its rows
 * (nothing when that is too much: the decision refuses it); and all manifests where the parent's totals cannot be relied on.
 */
export function selectionNeeds(
  context: SinkContext,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  wanted: (base: IcebergBase, rows: readonly ManifestFile[]) => readonly ManifestFile[],
  countsOf: (base: IcebergBase) => Counts,
): string[] {
  if (base === null) return [];
  const list = listNeed(context, base, seen);
  if (list !== null) return [list];
  const rows = liveRows(context, base, seen);
  const picked = wanted(base, rows);
  if (tooMany(picked) !== null) return [];
  const known = seenOf(context, base, seen);
  const missing = known.missing([...new Set([...picked, ...rowsToCount(base, rows)])]);
  if (missing.length > 0) return missing;
  return known.missing(rowsToCount(base, rows, countsOf(base)));
}

const selections = new WeakMap<object, { base: IcebergBase; change: object; selection: unknown }>();

/**
 * A selection made once for asking what is needed and for deciding: both are asked about the same change, base and bytes
 * seen, and reading manifests is what costs. Only a cache: made anew it comes out the same.
 */
export function selectOnce<S>(
  key: { base: IcebergBase; seen: ReadonlyMap<string, Uint8Array>; change: object },
  select: () => S,
): S {
  const kept = selections.get(key.seen);
  if (kept !== undefined && kept.base === key.base && kept.change === key.change) return kept.selection as S;
  const selection = select();
  selections.set(key.seen, { base: key.base, change: key.change, selection });
  return selection;
}

/**
 * Chooses files of the candidates: a pure function of the base, made anew on each. `visit` sees every live entry of them.
 *
 * @throws corrupt `manifest-missing`, `metadata-corrupt`, and what reading manifests throws
 */
export function selectFiles(
  context: SinkContext,
  metadata: TableMetadata,
  candidates: readonly ManifestFile[],
  known: Seen,
  matcher: FileMatcher,
  visit: (entry: ManifestEntry, specId: number) => void = () => undefined,
): Selection {
  const touched: ManifestFile[] = [];
  const removed = new ChangedFiles();
  const overlapping = { files: 0, records: 0n };
  let unnumbered: string | null = null;
  for (const row of candidates) {
    const specId = row.partitionSpecId;
    let isTouched = false;
    let odd: string | null = null;
    for (const entry of liveEntriesOf(context, metadata, row, known).entries) {
      visit(entry, specId);
      if (!isNumbered(entry)) odd ??= entry.dataFile.filePath;
      const match = matcher.match(specId, entry.dataFile);
      if (match === 'inside') {
        isTouched = true;
        removed.add(specId, entry.dataFile);
      } else if (match === 'overlapping') {
        overlapping.files++;
        overlapping.records += entry.dataFile.recordCount;
      }
    }
    if (!isTouched) continue;
    touched.push(row);
    unnumbered ??= odd;
  }
  return { touched, removed: removed.sums(), overlapping, unnumbered };
}

/** Rows that go on as they are. Told by their paths: rows of one list read twice are equal, not the same. */
export function untouchedRows(rows: readonly ManifestFile[], touched: readonly ManifestFile[]): ManifestFile[] {
  const paths = new Set(touched.map(({ manifestPath }) => manifestPath));
  return rows.filter(({ manifestPath }) => !paths.has(manifestPath));
}

/** Live entries of one manifest, and the table schema it was written with. */
export function liveEntriesOf(
  context: SinkContext,
  metadata: TableMetadata,
  row: ManifestFile,
  known: Seen,
): { entries: ManifestEntry[]; schema: Schema } {
  const { entries, schema } = readManifest(known.bytesOf(row), {
    deflate: context.deflate,
    row,
    schema: rewrittenSchema(metadata, row.partitionSpecId),
    specs: metadata['partition-specs'],
  });
  return { entries: entries.filter(({ status }) => status !== DELETED), schema };
}

/** True when a later manifest may list the file (Q2). */
export function isNumbered({ snapshotId, sequenceNumber, fileSequenceNumber }: ManifestEntry): boolean {
  return snapshotId !== null && sequenceNumber !== null && fileSequenceNumber !== null;
}

/** Sums up files, and counts the partitions they are in. */
export class ChangedFiles {
  #files = 0;
  #records = 0n;
  #bytes = 0n;
  readonly #partitions = new Set<string>();

  add(specId: number, file: { partition: readonly Value[]; recordCount: bigint; fileSizeInBytes: bigint }): void {
    this.#files++;
    this.#records += file.recordCount;
    this.#bytes += file.fileSizeInBytes;
    this.#partitions.add(tupleKey(specId, file.partition));
  }

  sums(): Changed {
    return { files: this.#files, records: this.#records, bytes: this.#bytes, partitions: this.#partitions };
  }
}

/** Counters of a commit that adds and removes these files. */
export function countsOf(added: Changed | null, removed: Changed | null): Counts {
  return {
    ...NO_COUNTS,
    addedDataFiles: BigInt(added?.files ?? 0),
    addedRecords: added?.records ?? 0n,
    addedFilesSize: added?.bytes ?? 0n,
    deletedDataFiles: BigInt(removed?.files ?? 0),
    deletedRecords: removed?.records ?? 0n,
    removedFilesSize: removed?.bytes ?? 0n,
    changedPartitionCount: BigInt(new Set([...(added?.partitions ?? []), ...(removed?.partitions ?? [])]).size),
  };
}

/** A text that two partition tuples share only when they are one partition: spec, and each value with its type. */
export function tupleKey(specId: number, tuple: readonly Value[]): string {
  const parts = tuple.map((value) =>
    value instanceof Uint8Array ? `x${value.join('.')}` : `${typeof value}:${JSON.stringify(String(value))}`,
  );
  return `${specId}|${parts.join('|')}`;
}
