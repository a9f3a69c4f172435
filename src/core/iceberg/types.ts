/**
 * Shapes of Iceberg table metadata, format version 2, in the spellings of the spec's JSON
 * (https://iceberg.apache.org/spec/). Manifest shapes, which the spec gives as Avro, use camel case.
 *
 * Integers: field, schema, spec and order ids are numbers (int32). Snapshot ids, sequence numbers and counts in
 * manifests are bigint. Times in milliseconds are numbers: they are far below 2^53.
 */

/** `boolean int long float double date time timestamp timestamptz string uuid binary`, `fixed[L]`, `decimal(P, S)`. */
export type PrimitiveType = string;

export interface NestedField {
  id: number;
  name: string;
  required: boolean;
  type: Type;
  doc?: string;
}

export interface StructType {
  type: 'struct';
  fields: NestedField[];
}

export interface ListType {
  type: 'list';
  'element-id': number;
  element: Type;
  'element-required': boolean;
}

export interface MapType {
  type: 'map';
  'key-id': number;
  key: Type;
  'value-id': number;
  value: Type;
  'value-required': boolean;
}

export type Type = PrimitiveType | StructType | ListType | MapType;

export interface Schema extends StructType {
  'schema-id': number;
  'identifier-field-ids'?: number[];
}

/** `identity void year month day hour`, `bucket[N]`, `truncate[W]`. */
export type Transform = string;

export interface PartitionField {
  'source-id': number;
  'field-id': number;
  name: string;
  transform: Transform;
}

export interface PartitionSpec {
  'spec-id': number;
  fields: PartitionField[];
}

export interface SortField {
  transform: Transform;
  'source-id': number;
  direction: 'asc' | 'desc';
  'null-order': 'nulls-first' | 'nulls-last';
}

export interface SortOrder {
  'order-id': number;
  fields: SortField[];
}

/** All values are strings, counters too. */
export type Summary = { operation: 'append' | 'replace' | 'overwrite' | 'delete' } & Record<string, string>;

export interface Snapshot {
  'snapshot-id': bigint;
  'parent-snapshot-id'?: bigint;
  'sequence-number': bigint;
  'timestamp-ms': number;
  'manifest-list': string;
  summary: Summary;
  'schema-id'?: number;
}

export interface SnapshotRef {
  'snapshot-id': bigint;
  type: 'branch' | 'tag';
  'min-snapshots-to-keep'?: number;
  'max-snapshot-age-ms'?: number;
  'max-ref-age-ms'?: number;
}

export interface SnapshotLogEntry {
  'timestamp-ms': number;
  'snapshot-id': bigint;
}

export interface MetadataLogEntry {
  'timestamp-ms': number;
  'metadata-file': string;
}

/** Entries of `statistics` and `partition-statistics` are carried as they are; only the snapshot id is read. */
export interface StatisticsFile {
  'snapshot-id': bigint;
  [key: string]: unknown;
}

export interface TableMetadata {
  'format-version': 2;
  'table-uuid': string;
  location: string;
  'last-sequence-number': bigint;
  'last-updated-ms': number;
  'last-column-id': number;
  schemas: Schema[];
  'current-schema-id': number;
  'partition-specs': PartitionSpec[];
  'default-spec-id': number;
  'last-partition-id': number;
  'sort-orders': SortOrder[];
  'default-sort-order-id': number;
  properties: Record<string, string>;
  /** Left out while the table has no snapshot. Null and -1 on reading mean the same. */
  'current-snapshot-id'?: bigint;
  snapshots: Snapshot[];
  'snapshot-log': SnapshotLogEntry[];
  'metadata-log': MetadataLogEntry[];
  refs: Record<string, SnapshotRef>;
  statistics: StatisticsFile[];
  'partition-statistics': StatisticsFile[];
}

/**
 * One value in memory. boolean → boolean; int, date, float, double → number; long, time, timestamp, timestamptz and
 * the unscaled decimal → bigint; string → string; uuid, fixed, binary → Uint8Array; absent → null.
 */
export type Value = boolean | number | bigint | string | Uint8Array | null;

/** Spec: data-file-fields. Maps are keyed by field id; absent statistics are null. */
export interface DataFile {
  content: 0 | 1 | 2;
  filePath: string;
  fileFormat: string;
  /** One value per field of the manifest's partition spec, in spec order, of the transform's result type. */
  partition: Value[];
  recordCount: bigint;
  fileSizeInBytes: bigint;
  columnSizes: Map<number, bigint> | null;
  valueCounts: Map<number, bigint> | null;
  nullValueCounts: Map<number, bigint> | null;
  nanValueCounts: Map<number, bigint> | null;
  lowerBounds: Map<number, Uint8Array> | null;
  upperBounds: Map<number, Uint8Array> | null;
  keyMetadata: Uint8Array | null;
  splitOffsets: bigint[] | null;
  equalityIds: number[] | null;
  sortOrderId: number | null;
  referencedDataFile: string | null;
}

/** 0 existing, 1 added, 2 deleted. */
export type EntryStatus = 0 | 1 | 2;

/** Spec: manifest-entry-fields. Null numbers are inherited from the manifest list (only on added entries). */
export interface ManifestEntry {
  status: EntryStatus;
  snapshotId: bigint | null;
  sequenceNumber: bigint | null;
  fileSequenceNumber: bigint | null;
  dataFile: DataFile;
}

/** Spec: field summary of a manifest list row. Bounds are single values of the transform's result type. */
export interface FieldSummary {
  containsNull: boolean;
  containsNan: boolean | null;
  lowerBound: Uint8Array | null;
  upperBound: Uint8Array | null;
}

/** One row of a manifest list (spec: manifest-lists). */
export interface ManifestFile {
  manifestPath: string;
  manifestLength: bigint;
  partitionSpecId: number;
  content: 0 | 1;
  sequenceNumber: bigint;
  minSequenceNumber: bigint;
  addedSnapshotId: bigint;
  addedFilesCount: number;
  existingFilesCount: number;
  deletedFilesCount: number;
  addedRowsCount: bigint;
  existingRowsCount: bigint;
  deletedRowsCount: bigint;
  partitions: FieldSummary[] | null;
  keyMetadata: Uint8Array | null;
  /** The writer left file counts out, as format version 1 allows: they are a guess, and some files are assumed live (ML6). */
  isUncounted?: true;
}
