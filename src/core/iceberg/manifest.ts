import { writeContainer } from '../avro/container.ts';
import { type Encode, encoderOf, type Get } from '../avro/encode.ts';
import { type AvroField, type AvroRecord, parseSchema as parseAvroSchema } from '../avro/schema.ts';
import { assert } from '../base/assert.ts';
import type { Deflate } from '../base/codecs.ts';
import { ADDED, DELETED, EXISTING } from './manifest-read.ts';
import { decimalBytes, manifestEntrySchema } from './manifest-schema.ts';
import { PartitionSummaries } from './partition-summary.ts';
import { primitive } from './primitive.ts';
import { fieldById } from './schema.ts';
import { resultType } from './transform.ts';
import type {
  DataFile,
  FieldSummary,
  ManifestEntry,
  ManifestFile,
  PartitionField,
  PartitionSpec,
  PrimitiveType,
  Schema,
  Value,
} from './types.ts';

export { ADDED, DELETED, EXISTING, type Manifest, type ManifestReadOptions, readManifest } from './manifest-read.ts';

export interface ManifestWrite {
  /** The table schema that goes into the header. It knows every source column of the spec, but of void fields. */
  schema: Schema;
  spec: PartitionSpec;
  /** 0 data (default), 1 deletes. */
  content?: 0 | 1;
  /** The snapshot that adds the manifest. */
  snapshotId: bigint;
  /** The commit's number where it is known already; it only completes `stats.minSequenceNumber`. */
  sequenceNumber?: bigint | null;
  /** At least one. ADDED entries without snapshot id get `snapshotId`. */
  entries: readonly ManifestEntry[];
  syncMarker: Uint8Array;
  /** Null leaves the blocks uncompressed. */
  deflate: Deflate | null;
}

export interface ManifestCounts {
  addedFilesCount: number;
  existingFilesCount: number;
  deletedFilesCount: number;
  addedRowsCount: bigint;
  existingRowsCount: bigint;
  deletedRowsCount: bigint;
}

/** What a manifest list row tells of a manifest, apart from where it lies. */
export interface ManifestStats extends ManifestCounts {
  content: 0 | 1;
  /** Smallest data sequence number of live entries; null: that of the commit (Q6). */
  minSequenceNumber: bigint | null;
  /** One per field of the spec, in its order; empty when unpartitioned, never null (ML7). */
  partitions: FieldSummary[];
}

/**
 * A manifest in the layout of the reference writer, format version 2. Equal arguments give equal bytes; maps are
 * written in ascending order of field id.
 *
 * Throws AssertionError on entries that no reader may see: none at all (E4), null numbers on EXISTING or DELETED (Q2),
 * a file sequence number or another snapshot's id on ADDED (Q1, B134), another snapshot's id on DELETED (Q3), an added
 * file without rows or bytes (E9, E10), one live path twice (E2), a tuple of another length or type than the spec's.
 */
export function writeManifest(options: ManifestWrite): { bytes: Uint8Array; stats: ManifestStats } {
  const { schema, spec, content = 0, snapshotId, entries, syncMarker, deflate } = options;
  assert(entries.length > 0, 'a manifest has at least one entry');
  const types = spec.fields.map((field) => partitionFieldType(schema, field));
  const stats = statsOf(options, types);
  const json = manifestEntrySchema(spec, types);
  const metadata = {
    schema: JSON.stringify(schemaHeader(schema)),
    'schema-id': String(schema['schema-id']),
    'partition-spec': JSON.stringify(spec.fields.map(specFieldHeader)),
    'partition-spec-id': String(spec['spec-id']),
    'format-version': '2',
    content: content === 0 ? 'data' : 'deletes',
  };
  const schemaJson = JSON.stringify(json);
  const bytes = writeContainer(
    { schemaJson, metadata, syncMarker, deflate },
    entryEncoder(json, types, snapshotId),
    entries,
  );
  return { bytes, stats };
}

/** The manifest list row of a manifest that `snapshotId` adds. `length` is the exact size of the object (ML5). */
export function manifestFileOf(
  stats: ManifestStats,
  where: { path: string; length: bigint; specId: number; snapshotId: bigint; sequenceNumber: bigint },
): ManifestFile {
  const { minSequenceNumber, content, partitions, ...counts } = stats;
  return {
    manifestPath: where.path,
    manifestLength: where.length,
    partitionSpecId: where.specId,
    content,
    sequenceNumber: where.sequenceNumber,
    minSequenceNumber: minSequenceNumber ?? where.sequenceNumber,
    addedSnapshotId: where.snapshotId,
    ...counts,
    partitions,
    keyMetadata: null,
  };
}

/** Type of a partition field's values. The schema must have its source column, but of a void field, which has no values. */
function partitionFieldType(schema: Schema, field: PartitionField): PrimitiveType {
  const source = fieldById(schema, field['source-id']);
  if (source === null && field.transform === 'void') return 'int';
  assert(source !== null, `the schema has the source column of partition field ${field.name}`);
  return resultType(field.transform, source.type);
}

/** Keys in the reference's order, `schema-id` within (A2). */
function schemaHeader(schema: Schema): object {
  const { 'schema-id': id, 'identifier-field-ids': identifiers, fields } = schema;
  return {
    type: 'struct',
    'schema-id': id,
    ...(identifiers === undefined ? {} : { 'identifier-field-ids': identifiers }),
    fields,
  };
}

function specFieldHeader(field: PartitionField): object {
  const { name, transform, 'source-id': sourceId, 'field-id': fieldId } = field;
  return { name, transform, 'source-id': sourceId, 'field-id': fieldId };
}

function statsOf(options: ManifestWrite, types: readonly PrimitiveType[]): ManifestStats {
  const { content = 0, entries, snapshotId, sequenceNumber = null } = options;
  const live = new Set<string>();
  const summaries = new PartitionSummaries(types);
  let least: bigint | null = null;
  for (const entry of entries) {
    const { status, dataFile } = entry;
    checkEntry(entry, snapshotId, content);
    assert(
      dataFile.partition.length === types.length,
      `a partition tuple has ${types.length} values: ${dataFile.filePath}`,
    );
    // Those of deleted files too: their partitions are what a reader of the deletion looks for.
    summaries.add(dataFile.partition);
    if (status === DELETED) continue;
    assert(!live.has(dataFile.filePath), `a live path comes once in a manifest: ${dataFile.filePath}`);
    live.add(dataFile.filePath);
    const number = entry.sequenceNumber;
    if (number !== null && (least === null || number < least)) least = number;
  }
  return {
    content,
    ...countByStatus(entries),
    minSequenceNumber: least ?? sequenceNumber,
    partitions: summaries.summaries(),
  };
}

/** Files and rows of a manifest by the status of their entries, as its row in a list has them. */
export function countByStatus(entries: readonly ManifestEntry[]): ManifestCounts {
  const files = [0, 0, 0];
  const rows = [0n, 0n, 0n];
  for (const { status, dataFile } of entries) {
    files[status]++;
    rows[status] += dataFile.recordCount;
  }
  return {
    addedFilesCount: files[ADDED],
    existingFilesCount: files[EXISTING],
    deletedFilesCount: files[DELETED],
    addedRowsCount: rows[ADDED],
    existingRowsCount: rows[EXISTING],
    deletedRowsCount: rows[DELETED],
  };
}

function checkEntry(entry: ManifestEntry, snapshotId: bigint, content: 0 | 1): void {
  const { status, dataFile } = entry;
  const path = dataFile.filePath;
  assert((dataFile.content === 0) === (content === 0), `data and delete files are in manifests of their own: ${path}`);
  if (status === ADDED) {
    assert(entry.snapshotId === null || entry.snapshotId === snapshotId, `an added file is of this snapshot: ${path}`);
    assert(entry.fileSequenceNumber === null, `an added file inherits its file sequence number: ${path}`);
    assert(dataFile.recordCount > 0n, `an added file has rows: ${path}`);
    assert(dataFile.fileSizeInBytes > 0n, `an added file has bytes: ${path}`);
    return;
  }
  assert(entry.sequenceNumber !== null, `an existing or deleted file keeps its sequence number: ${path}`);
  assert(entry.fileSequenceNumber !== null, `an existing or deleted file keeps its file sequence number: ${path}`);
  if (status === DELETED)
    assert(entry.snapshotId === snapshotId, `a deleted file is deleted by this snapshot: ${path}`);
  else assert(entry.snapshotId !== null, `an existing file keeps its snapshot id: ${path}`);
}

/** Where the values of a record's fields are, by field id. */
type Getters<T> = Readonly<Record<number, (value: T) => unknown>>;

const DATA_FILE: Getters<DataFile> = {
  134: (file) => file.content,
  100: (file) => file.filePath,
  101: (file) => file.fileFormat,
  102: (file) => file.partition,
  103: (file) => file.recordCount,
  104: (file) => file.fileSizeInBytes,
  108: (file) => ascending(file.columnSizes),
  109: (file) => ascending(file.valueCounts),
  110: (file) => ascending(file.nullValueCounts),
  137: (file) => ascending(file.nanValueCounts),
  125: (file) => ascending(file.lowerBounds),
  128: (file) => ascending(file.upperBounds),
  131: (file) => file.keyMetadata,
  132: (file) => file.splitOffsets,
  135: (file) => file.equalityIds,
  140: (file) => file.sortOrderId,
  143: (file) => file.referencedDataFile,
};

function entryEncoder(json: unknown, types: readonly PrimitiveType[], snapshotId: bigint): Encode {
  const entry: Getters<ManifestEntry> = {
    0: (value) => value.status,
    1: (value) => value.snapshotId ?? snapshotId,
    3: (value) => value.sequenceNumber,
    4: (value) => value.fileSequenceNumber,
    2: (value) => value.dataFile,
  };
  return encoderOf(parseAvroSchema(json), (record: AvroRecord, field: AvroField, index: number): Get => {
    if (record.name === 'r102') return tupleGetter(types[index], index);
    const get = (record.name === 'manifest_entry' ? entry : DATA_FILE)[field.id ?? -1];
    // Entries of maps are records too, but come as Map entries: nothing is got from them by field.
    return get ?? ((value: Record<string, unknown>) => value[field.name]);
  });
}

function tupleGetter(type: PrimitiveType, index: number): (tuple: Value[]) => unknown {
  const shape = primitive(type);
  if (shape.name !== 'decimal') return (tuple) => tuple[index];
  const size = decimalBytes(shape.precision);
  return (tuple) => (tuple[index] === null ? null : signExtended(tuple[index], size, type));
}

/** Big-endian two's complement in exactly `size` bytes (A13). */
function signExtended(value: Value, size: number, type: PrimitiveType): Uint8Array {
  const fits = typeof value === 'bigint' && BigInt.asIntN(8 * size, value) === value;
  assert(fits, `a partition value fits ${type}: ${String(value)}`);
  const bytes = new Uint8Array(size);
  let rest = value;
  for (let i = size - 1; i >= 0; i--) {
    bytes[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return bytes;
}

/** The map in ascending order of its keys; itself when it already is. */
function ascending<V>(map: Map<number, V> | null): Map<number, V> | null {
  if (map === null) return null;
  let last = Number.NEGATIVE_INFINITY;
  for (const key of map.keys()) {
    if (key < last) return new Map([...map].sort(([a], [b]) => a - b));
    last = key;
  }
  return map;
}
