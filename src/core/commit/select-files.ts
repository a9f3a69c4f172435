import { corrupt } from '../base/errors.ts';
import { OPERATION_MANIFEST_BYTES_MAX, OPERATION_MANIFESTS_MAX } from '../base/limits.ts';
import { DELETED, readManifest } from '../iceberg/manifest-read.ts';
import { currentSchema, specById } from '../iceberg/metadata.ts';
import { type Counts, NO_COUNTS } from '../iceberg/summary.ts';
import type { ManifestEntry, ManifestFile, PartitionSpec, Schema, TableMetadata, Value } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import type { FileMatcher } from './file-filter.ts';
import { type IcebergBase, listNeed, manifestsOf, type Seen, seenOf } from './iceberg-base.ts';
import { liveFiles } from './manifest-policy.ts';
import type { SinkContext } from './sink-context.ts';
import { rowsToCount } from './snapshot-of.ts';

/** A manifest of the parent that holds files to be removed, with its live entries. */
export interface TouchedManifest {
  row: ManifestFile;
  spec: PartitionSpec;
  /** The table schema it was written with. */
  schema: Schema;
  removed: ManifestEntry[];
  survivors: ManifestEntry[];
}

/** What a filter chose on one base. */
export interface Selection {
  touched: TouchedManifest[];
  removed: Changed;
  /** Files that the filter meets without covering them. */
  overlapping: { files: number; records: bigint };
  /** Removed files whose numbers their manifest does not tell: they can be neither deleted nor kept rightly. */
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
  const bytes = rows.reduce((sum, row) => sum + Number(row.manifestLength), 0);
  if (rows.length <= OPERATION_MANIFESTS_MAX && bytes <= OPERATION_MANIFEST_BYTES_MAX) return null;
  return {
    kind: 'refused',
    type: 'too-many-manifests',
    message:
      `operation would read too many manifests, narrow it or rewrite them first: manifests=${rows.length} bytes=${bytes} ` +
      `most=${OPERATION_MANIFESTS_MAX}, ${OPERATION_MANIFEST_BYTES_MAX}`,
  };
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
  countsOf: (base: IcebergBase, rows: readonly ManifestFile[], known: Seen) => Counts,
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
  return known.missing(rowsToCount(base, rows, countsOf(base, rows, known)));
}

/**
 * Chooses files of the candidates: a pure function of the base, made anew on each. `visit` sees every live entry of them.
 *
 * @throws corrupt `manifest-missing` and what reading manifests throws
 */
export function selectFiles(
  context: SinkContext,
  metadata: TableMetadata,
  candidates: readonly ManifestFile[],
  known: Seen,
  matcher: FileMatcher,
  visit: (entry: ManifestEntry, specId: number) => void = () => undefined,
): Selection {
  const touched: TouchedManifest[] = [];
  const removed = new ChangedFiles();
  const overlapping = { files: 0, records: 0n };
  let unnumbered: string | null = null;
  for (const row of candidates) {
    const specId = row.partitionSpecId;
    const read = readManifest(known.bytesOf(row), {
      deflate: context.deflate,
      row,
      schema: currentSchema(metadata),
      specs: metadata['partition-specs'],
    });
    const manifest: TouchedManifest = {
      row,
      spec: knownSpec(metadata, row),
      schema: read.schema,
      removed: [],
      survivors: [],
    };
    for (const entry of read.entries) {
      if (entry.status === DELETED) continue;
      visit(entry, specId);
      const match = matcher.match(specId, entry.dataFile);
      if (match === 'inside') {
        manifest.removed.push(entry);
        removed.add(specId, entry.dataFile);
        continue;
      }
      if (match === 'overlapping') {
        overlapping.files++;
        overlapping.records += entry.dataFile.recordCount;
      }
      manifest.survivors.push(entry);
    }
    if (manifest.removed.length === 0) continue;
    touched.push(manifest);
    const odd = read.entries.find(
      (entry) => entry.status !== DELETED && (entry.fileSequenceNumber === null || entry.sequenceNumber === null),
    );
    if (odd !== undefined) unnumbered ??= odd.dataFile.filePath;
  }
  return { touched, removed: removed.sums(), overlapping, unnumbered };
}

function knownSpec(metadata: TableMetadata, row: ManifestFile): PartitionSpec {
  const spec = specById(metadata, row.partitionSpecId);
  if (spec !== null) return spec;
  throw corrupt('metadata-corrupt', `manifest has a spec that the table lacks: ${row.partitionSpecId}`);
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
