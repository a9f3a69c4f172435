import { ordersByKey } from '../columns/prepare-files.ts';
import { currentOf, dedupOf } from '../commit/make-files.ts';
import { tupleKey } from '../commit/select-files.ts';
import { specById } from '../iceberg/metadata.ts';
import { decodeValue } from '../iceberg/single-value.ts';
import { startOfOrdinal, type TimeTransform } from '../iceberg/transform.ts';
import type { DataFile, ManifestEntry, PartitionSpec, TableMetadata, Value } from '../iceberg/types.ts';
import { isFlat } from '../parquet/layout.ts';
import { tableSettings } from '../table/properties.ts';
import type { TierFile } from './tiers.ts';

/** A live data file as compaction knows it: what a manifest says of it, without its metrics. */
export interface LiveFile {
  entry: ManifestEntry;
  specId: number;
  partition: string;
  /** Latest time in it, UTC microseconds; null when no bound tells. */
  newestMicros: bigint | null;
}

/** Why files are not compacted here. */
export type LeftAlone =
  | 'nested-columns'
  | 'order-not-by-key'
  | 'other-spec'
  | 'other-order'
  | 'other-format'
  | 'no-sequence-number'
  | 'delete-files'
  | 'too-large'
  | 'unreadable'
  | 'unsorted';

export function liveFileOf(entry: ManifestEntry, specId: number, timeId: number | null): LiveFile {
  const { dataFile } = entry;
  const upper = timeId === null ? undefined : dataFile.upperBounds?.get(timeId);
  const newest = upper === undefined ? null : decodeValue('timestamptz', upper);
  return {
    entry: { ...entry, dataFile: withoutMetrics(dataFile) },
    specId,
    partition: tupleKey(specId, dataFile.partition),
    newestMicros: typeof newest === 'bigint' ? newest : null,
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
  if (!isFlat(schema)) return 'nested-columns';
  const dedup = dedupOf(schema, tableSettings(metadata.properties));
  return dedup === undefined || ordersByKey(spec, sortOrder, dedup) ? null : 'order-not-by-key';
}

/** Why a file is not compacted here; null when it is. `deleted`: partitions that delete files may touch. */
export function leftAlone(
  { entry, specId, partition }: LiveFile,
  metadata: TableMetadata,
  deleted: ReadonlySet<string> | 'all',
): LeftAlone | null {
  const { spec, sortOrder } = currentOf(metadata);
  const { fileFormat, sortOrderId, keyMetadata } = entry.dataFile;
  if (specId !== spec['spec-id']) return 'other-spec';
  if (deleted === 'all' || deleted.has(partition)) return 'delete-files';
  if (fileFormat.toUpperCase() !== 'PARQUET' || keyMetadata !== null) return 'other-format';
  if ((sortOrderId ?? 0) !== sortOrder['order-id']) return 'other-order';
  return entry.sequenceNumber === null || entry.fileSequenceNumber === null ? 'no-sequence-number' : null;
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

export function tierFileOf(file: LiveFile, metadata: TableMetadata, isUsable: boolean): TierFile {
  const { dataFile, sequenceNumber } = file.entry;
  const spec = specById(metadata, file.specId);
  return {
    path: dataFile.filePath,
    bytes: Number(dataFile.fileSizeInBytes),
    sequenceNumber: sequenceNumber ?? 0n,
    partition: file.partition,
    endMicros: spec === null ? null : endOf(spec, dataFile.partition),
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
