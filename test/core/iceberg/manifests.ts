import type { DataFile, ManifestEntry, PartitionSpec, Schema, Value } from '../../../src/core/iceberg/types.ts';

/** A table with a column of every primitive type, and entries of its manifests. */

export const schema: Schema = {
  type: 'struct',
  'schema-id': 3,
  fields: [
    { id: 1, name: 'ts', required: true, type: 'timestamptz' },
    { id: 2, name: 'local', required: false, type: 'timestamp' },
    { id: 3, name: 'day', required: false, type: 'date' },
    { id: 4, name: 'clock', required: false, type: 'time' },
    { id: 5, name: 'flag', required: false, type: 'boolean' },
    { id: 6, name: 'small', required: false, type: 'int' },
    { id: 7, name: 'large', required: false, type: 'long' },
    { id: 8, name: 'ratio', required: false, type: 'float' },
    { id: 9, name: 'value', required: false, type: 'double' },
    { id: 10, name: 'device', required: false, type: 'string' },
    { id: 11, name: 'key', required: false, type: 'uuid' },
    { id: 12, name: 'other key', required: false, type: 'uuid' },
    { id: 13, name: 'code', required: false, type: 'fixed[5]' },
    { id: 14, name: 'raw', required: false, type: 'binary' },
    { id: 15, name: 'price', required: false, type: 'decimal(9, 2)' },
    { id: 16, name: 'sum', required: false, type: 'decimal(38, 10)' },
  ],
};

export const unpartitioned: PartitionSpec = { 'spec-id': 0, fields: [] };

/** Fields by source id and transform, field ids from 1000. */
export function specOf(...fields: Array<[source: number, transform: string, name?: string]>): PartitionSpec {
  return {
    'spec-id': 4,
    fields: fields.map(([source, transform, name], index) => ({
      name: name ?? `p${index}`,
      transform,
      'source-id': source,
      'field-id': 1000 + index,
    })),
  };
}

export const byDay: PartitionSpec = specOf([1, 'day', 'ts_day']);

export function dataFile(change: Partial<DataFile> = {}): DataFile {
  return {
    content: 0,
    filePath: 's3://lake/ns/t/data/ts_day=2026-01-01/a.parquet',
    fileFormat: 'PARQUET',
    partition: [],
    recordCount: 100n,
    fileSizeInBytes: 12_345n,
    columnSizes: new Map([
      [1, 400n],
      [9, 2n ** 53n + 1n],
    ]),
    valueCounts: new Map([
      [1, 100n],
      [9, 100n],
    ]),
    nullValueCounts: new Map([
      [1, 0n],
      [9, 3n],
    ]),
    nanValueCounts: new Map([[9, 1n]]),
    lowerBounds: new Map([
      [1, Uint8Array.of(1, 2, 3, 4, 5, 6, 7, 8)],
      [10, new Uint8Array(0)],
    ]),
    upperBounds: new Map([[1, Uint8Array.of(8, 7, 6, 5, 4, 3, 2, 1)]]),
    keyMetadata: null,
    splitOffsets: [4n, 6000n],
    equalityIds: null,
    sortOrderId: 1,
    referencedDataFile: null,
    ...change,
  };
}

export function added(change: Partial<DataFile> = {}, entry: Partial<ManifestEntry> = {}): ManifestEntry {
  return {
    status: 1,
    snapshotId: SNAPSHOT,
    sequenceNumber: null,
    fileSequenceNumber: null,
    dataFile: dataFile(change),
    ...entry,
  };
}

export function existing(change: Partial<DataFile> = {}, entry: Partial<ManifestEntry> = {}): ManifestEntry {
  return {
    status: 0,
    snapshotId: 17n,
    sequenceNumber: 5n,
    fileSequenceNumber: 6n,
    dataFile: dataFile(change),
    ...entry,
  };
}

export function deleted(change: Partial<DataFile> = {}, entry: Partial<ManifestEntry> = {}): ManifestEntry {
  return existing(change, { status: 2, snapshotId: SNAPSHOT, ...entry });
}

/** Above 2^53: ids are exact or wrong. */
export const SNAPSHOT = 4_065_603_974_947_107_065n;
export const SYNC_MARKER = Uint8Array.from({ length: 16 }, (_, i) => 240 - i);

/** The entry as the manifest's Avro record, for another codec. */
export function avroRecord(entry: ManifestEntry, tuple: Record<string, unknown> = {}): unknown {
  const file = entry.dataFile;
  const pairs = (map: Map<number, Value> | null) =>
    map && [...map].sort(([a], [b]) => a - b).map(([key, value]) => ({ key, value: buffers(value) }));
  return {
    status: entry.status,
    snapshot_id: entry.snapshotId,
    sequence_number: entry.sequenceNumber,
    file_sequence_number: entry.fileSequenceNumber,
    data_file: {
      content: file.content,
      file_path: file.filePath,
      file_format: file.fileFormat,
      partition: tuple,
      record_count: file.recordCount,
      file_size_in_bytes: file.fileSizeInBytes,
      column_sizes: pairs(file.columnSizes),
      value_counts: pairs(file.valueCounts),
      null_value_counts: pairs(file.nullValueCounts),
      nan_value_counts: pairs(file.nanValueCounts),
      lower_bounds: pairs(file.lowerBounds),
      upper_bounds: pairs(file.upperBounds),
      key_metadata: buffers(file.keyMetadata),
      split_offsets: file.splitOffsets,
      equality_ids: file.equalityIds,
      sort_order_id: file.sortOrderId,
      referenced_data_file: file.referencedDataFile,
    },
  };
}

function buffers(value: Value): unknown {
  return value instanceof Uint8Array ? Buffer.from(value) : value;
}
