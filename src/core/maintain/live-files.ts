import { COMPACT_NESTED_GROUP_ROWS } from '../base/compact-limits.ts';
import { ordersByKey } from '../columns/prepare-files.ts';
import { currentOf, dedupOf } from '../commit/make-files.ts';
import { tupleKey } from '../commit/select-files.ts';
import { specById } from '../iceberg/metadata.ts';
import { boundOf } from '../iceberg/single-value.ts';
import { startOfOrdinal, type TimeTransform } from '../iceberg/transform.ts';
import type {
  DataFile,
  ManifestEntry,
  ManifestFile,
  PartitionSpec,
  Schema,
  TableMetadata,
  Value,
} from '../iceberg/types.ts';
import { tableSettings } from '../table/properties.ts';
import { nestedBytesGuessed, rowBytesGuessed } from './row-guess.ts';
import type { TierFile } from './tiers.ts';

/** A live data file as compaction knows it: what a manifest says of it, without its metrics. */
export interface LiveFile {
  entry: ManifestEntry;
  specId: number;
  partition: string;
  /** Latest time in it, UTC microseconds; null when no bound tells. */
  newestMicros: bigint | null;
  /** Its manifest list says that all numbers of its manifest are higher: a replace would not look for it there. */
  isMisnumbered: boolean;
}

/** Why files are not compacted here. */
export type LeftAlone =
  | 'order-not-by-key'
  | 'other-spec'
  | 'other-format'
  | 'no-sequence-number'
  /** Outside of the table's folder. */
  | 'foreign-location'
  /** Live twice: its rows count twice, and a replace of one would be a replace of both. */
  | 'listed-twice'
  /** The commit would read more of manifests than fits in memory. */
  | 'too-many-manifests'
  | 'delete-files'
  | 'unreadable'
  /** It has to be sorted, for which it is too large. */
  | 'unsorted-too-large'
  /** Columns of one of its row groups, read as a whole, take too much memory. */
  | 'row-group-too-large';

export function liveFileOf(
  entry: ManifestEntry,
  { partitionSpecId: specId, minSequenceNumber }: Pick<ManifestFile, 'partitionSpecId' | 'minSequenceNumber'>,
  timeId: number | null,
): LiveFile {
  const { dataFile, sequenceNumber } = entry;
  const newest = timeId === null ? null : boundOf('timestamptz', dataFile.upperBounds?.get(timeId));
  return {
    entry: { ...entry, dataFile: withoutMetrics(dataFile) },
    specId,
    partition: tupleKey(specId, dataFile.partition),
    newestMicros: typeof newest === 'bigint' ? newest : null,
    isMisnumbered: sequenceNumber !== null && sequenceNumber < minSequenceNumber,
  };
}

function withoutMetrics(file: DataFile): DataFile {
  return {
    ...file,
    columnSizes: null,
    valueCounts: null,
    nullValueCounts: null,
    nanValueCounts: null,
    lowerBounds: null,
    upperBounds: null,
    splitOffsets: null,
  };
}

/** Id of the time column; null in tables without one. */
export function timeIdOf(metadata: TableMetadata): number | null {
  const { timeColumn } = tableSettings(metadata.properties);
  const field = currentOf(metadata).schema.fields.find(({ name }) => name === timeColumn);
  return field?.type === 'timestamptz' || field?.type === 'timestamp' ? field.id : null;
}

/** Why nothing of this table can be compacted here; null when it can. */
export function tableLeftAlone(metadata: TableMetadata): LeftAlone | null {
  const { schema, spec, sortOrder } = currentOf(metadata);
  const dedup = dedupOf(schema, tableSettings(metadata.properties));
  return dedup === undefined || ordersByKey(spec, sortOrder, dedup) ? null : 'order-not-by-key';
}

/** Why a file is not compacted here; null when it is. `deleted`: partitions that delete files may touch. */
export function leftAlone(
  { entry, specId, partition, isMisnumbered }: LiveFile,
  metadata: TableMetadata,
  deleted: ReadonlySet<string> | 'all',
): LeftAlone | null {
  const { spec } = currentOf(metadata);
  const { filePath, fileFormat, keyMetadata } = entry.dataFile;
  if (!filePath.startsWith(`${metadata.location}/`)) return 'foreign-location';
  if (specId !== spec['spec-id']) return 'other-spec';
  if (deleted === 'all' || deleted.has(partition)) return 'delete-files';
  if (fileFormat.toUpperCase() !== 'PARQUET' || keyMetadata !== null) return 'other-format';
  const isNumbered = entry.sequenceNumber !== null && entry.fileSequenceNumber !== null && !isMisnumbered;
  return isNumbered ? null : 'no-sequence-number';
}

/** Paths that are live more than once: another writer has registered a file again (B105, B110). */
export function listedTwice(files: readonly LiveFile[]): ReadonlySet<string> {
  const once = new Set<string>();
  const twice = new Set<string>();
  for (const { entry } of files) {
    const { filePath } = entry.dataFile;
    if (once.has(filePath)) twice.add(filePath);
    once.add(filePath);
  }
  return twice;
}

/** True for a file that claims another order than the table's, or none: it is sorted before it is merged. */
export function claimsOtherOrder({ entry }: LiveFile, metadata: TableMetadata): boolean {
  const { sortOrder } = currentOf(metadata);
  return (entry.dataFile.sortOrderId ?? 0) !== sortOrder['order-id'];
}

/**
 * Memory that a file takes while it is merged, besides its windows, as far as the schema tells: all of it when it has to be
 * sorted, and else the nested columns of a row group of this service's files. What it really takes its footer tells.
 */
export function heldBytesGuessed({ entry }: LiveFile, schema: Schema, mustSort: boolean): number {
  const rows = Number(entry.dataFile.recordCount);
  return mustSort
    ? rows * rowBytesGuessed(schema)
    : Math.min(rows, COMPACT_NESTED_GROUP_ROWS) * nestedBytesGuessed(schema);
}

/** Partitions that delete files may touch: their own, and all when one is of another spec or of no partition. */
export function deletedPartitions(
  deletes: readonly { file: DataFile; specId: number }[],
  metadata: TableMetadata,
): ReadonlySet<string> | 'all' {
  const { spec } = currentOf(metadata);
  const partitions = new Set<string>();
  for (const { file, specId } of deletes) {
    if (specId !== spec['spec-id'] || spec.fields.length === 0) return 'all';
    partitions.add(tupleKey(specId, file.partition));
  }
  return partitions;
}

export function tierFileOf(
  file: LiveFile,
  metadata: TableMetadata,
  { isUsable, heldBytes }: Pick<TierFile, 'isUsable' | 'heldBytes'>,
): TierFile {
  const { dataFile, sequenceNumber } = file.entry;
  const spec = specById(metadata, file.specId);
  return {
    path: dataFile.filePath,
    bytes: Number(dataFile.fileSizeInBytes),
    rows: Number(dataFile.recordCount),
    sequenceNumber: sequenceNumber ?? 0n,
    partition: file.partition,
    specId: file.specId,
    endMicros: spec === null ? null : endOf(spec, dataFile.partition),
    heldBytes,
    isUsable,
  };
}

/** First instant after a partition by hour, day or month; null for any other. */
function endOf(spec: PartitionSpec, tuple: readonly Value[]): bigint | null {
  const [field] = spec.fields;
  const [ordinal] = tuple;
  if (spec.fields.length !== 1 || !/^(hour|day|month|year)$/.test(field.transform)) return null;
  return typeof ordinal === 'number' ? startOfOrdinal(field.transform as TimeTransform, ordinal + 1) : null;
}
