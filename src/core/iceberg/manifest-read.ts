import { type Container, headerJson, headerText, openContainer, readItems } from '../avro/container.ts';
import { type RecordTarget, resolve, type Target, type TargetField } from '../avro/resolve.ts';
import type { AvroType } from '../avro/schema.ts';
import type { Deflate } from '../base/codecs.ts';
import { corrupt, SluiceError } from '../base/errors.ts';
import { SCHEMA_FIELDS_MAX } from '../base/limits.ts';
import { arrayAt, describe, idAt, objectAt, stringAt } from '../base/shape.ts';
import { primitive } from './primitive.ts';
import { fieldById, parseSchema } from './schema.ts';
import { resultType } from './transform.ts';
import type {
  DataFile,
  EntryStatus,
  ManifestEntry,
  ManifestFile,
  PartitionField,
  PartitionSpec,
  PrimitiveType,
  Schema,
  Value,
} from './types.ts';

/** Entry statuses (spec: manifest-entry-fields). */
export const EXISTING = 0;
export const ADDED = 1;
export const DELETED = 2;

export interface ManifestReadOptions {
  deflate: Deflate;
  /** The manifest list row it was found by. With it, null ids and numbers are inherited (Q1-Q4). */
  row?: ManifestFile;
  /** The table's current schema: tuples are read in the types that its source columns have now. */
  schema?: Schema;
  /** The table's partition specs. One that has the manifest's spec id is used in place of the header's. */
  specs?: readonly PartitionSpec[];
}

export interface Manifest {
  /** The table schema when the manifest was written. */
  schema: Schema;
  spec: PartitionSpec;
  content: 0 | 1;
  entries: ManifestEntry[];
}

/**
 * Reads a manifest of any writer, fields found by id, those of other versions skipped.
 *
 * Inheritance (spec: sequence-number-inheritance): a null snapshot id becomes the row's; null numbers of ADDED entries
 * become the row's, and stay null without a row; null numbers of EXISTING or DELETED entries are corrupt, but for
 * manifests of a version 1 table, where all numbers are 0, and but for a file sequence number that the writer's schema
 * did not know yet, which stays null.
 *
 * Throws corrupt `avro-corrupt`, `avro-codec-unsupported` or `manifest-corrupt`, which name the file.
 */
export function readManifest(bytes: Uint8Array, options: ManifestReadOptions): Manifest {
  const path = options.row?.manifestPath;
  if (path === undefined) return read(bytes, options);
  try {
    return read(bytes, options);
  } catch (error) {
    if (!(error instanceof SluiceError) || error.kind !== 'corrupt' || error.message.includes(path)) throw error;
    throw corrupt(error.type, `${error.message}: ${path}`, error.detail, error);
  }
}

function read(bytes: Uint8Array, options: ManifestReadOptions): Manifest {
  const { deflate, row } = options;
  const container = openContainer(bytes);
  const { spec, schema, content, version } = readHeader(container, options);
  const sources = options.schema === undefined ? [schema] : [options.schema, schema];
  const partition: TargetField[] = spec.fields.map((field) => ({
    id: field['field-id'],
    name: field.name,
    target: tupleTarget(fieldType(field, sources), partitionWriter(container.schema, field['field-id'])),
    missing: null,
    ...(field.transform === 'void' ? {} : { declared: true }),
  }));
  const entries = readItems(container, resolve(container.schema, entryTarget(partition)), deflate) as ManifestEntry[];
  const old = row === undefined ? version === 1 : row.sequenceNumber === 0n;
  inherit(entries, { row, old, fileNumbers: hasField(container.schema, 4) });
  for (const { dataFile } of entries) {
    if ((dataFile.content === 0) !== (content === 0)) {
      throw malformed(`of content ${content} lists a file of content ${dataFile.content}: ${dataFile.filePath}`);
    }
  }
  return { schema, spec, content, entries };
}

function malformed(problem: string, cause?: unknown): SluiceError {
  return corrupt('manifest-corrupt', `manifest ${problem}`, {}, cause);
}

interface Header {
  schema: Schema;
  spec: PartitionSpec;
  content: 0 | 1;
  version: number;
}

/** Missing keys have the meaning they have in version 1 (A4). What the row says too must agree. */
function readHeader(container: Container, { row, schema: current, specs }: ManifestReadOptions): Header {
  const { metadata } = container;
  const specText = headerText(metadata, 'partition-spec-id');
  const specId = specText === null ? (row?.partitionSpecId ?? 0) : Number(specText);
  if (!Number.isSafeInteger(specId) || specId < 0) throw malformed(`has partition-spec-id ${describe(specText)}`);
  const contentText = headerText(metadata, 'content') ?? 'data';
  if (contentText !== 'data' && contentText !== 'deletes') throw malformed(`has content ${describe(contentText)}`);
  const content = contentText === 'data' ? 0 : 1;
  if (row !== undefined && row.content !== content) {
    throw malformed(`of content ${content} is listed as ${row.content}: ${row.manifestPath}`);
  }
  if (row !== undefined && row.partitionSpecId !== specId) {
    throw malformed(`of spec ${specText} is listed under spec ${row.partitionSpecId}: ${row.manifestPath}`);
  }
  const known = specs?.find((spec) => spec['spec-id'] === specId);
  const spec = known ?? header('partition-spec', () => specOf(headerJson(metadata, 'partition-spec'), specId));
  return {
    schema: headerSchema(container, current),
    spec,
    content,
    version: Number(headerText(metadata, 'format-version') ?? 1),
  };
}

/** Some writers put their manifest's own schema here (B168): then the table's must do. */
function headerSchema({ metadata }: Container, current: Schema | undefined): Schema {
  try {
    return header('schema', () => parseSchema(headerJson(metadata, 'schema')));
  } catch (error) {
    if (current === undefined) throw error;
    return current;
  }
}

function header<T>(key: string, parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    throw malformed(`header has a malformed ${key}: ${error.message}`, error);
  }
}

/** The list of fields, or the whole spec, which some writers put in its place (A3). Version 1 had no field ids. */
function specOf(json: unknown, specId: number): PartitionSpec {
  const list = Array.isArray(json) ? json : objectAt(json, 'partition-spec')['fields'];
  const fields = arrayAt(list, 'partition-spec', SCHEMA_FIELDS_MAX).map((item, index): PartitionField => {
    const field = objectAt(item, `partition-spec[${index}]`);
    return {
      name: stringAt(field['name'], `partition-spec[${index}].name`),
      transform: stringAt(field['transform'], `partition-spec[${index}].transform`),
      'source-id': idAt(field['source-id'], `partition-spec[${index}].source-id`),
      'field-id': field['field-id'] === undefined ? 1000 + index : idAt(field['field-id'], `partition-spec[${index}]`),
    };
  });
  return { 'spec-id': specId, fields };
}

/** Null when no schema has the source column any more, or the transform is unknown: the writer's type must do. */
function fieldType(field: PartitionField, schemas: readonly Schema[]): PrimitiveType | null {
  for (const schema of schemas) {
    const source = fieldById(schema, field['source-id']);
    if (source === null) continue;
    try {
      return resultType(field.transform, source.type);
    } catch (error) {
      if (!(error instanceof SluiceError)) throw error;
    }
  }
  return null;
}

function tupleTarget(type: PrimitiveType | null, writer: AvroType | null): Target {
  if (type === null) return writer === null ? { kind: 'bytes' } : targetOfWriter(writer);
  const shape = primitive(type);
  switch (shape.name) {
    case 'date':
      return { kind: 'int' };
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return { kind: 'long' };
    case 'float':
      return { kind: 'double' };
    case 'uuid':
      return { kind: 'fixed', size: 16 };
    case 'fixed':
      return { kind: 'fixed', size: shape.length };
    case 'binary':
      return { kind: 'bytes' };
    default:
      return { kind: shape.name };
  }
}

function targetOfWriter(writer: AvroType): Target {
  switch (writer.kind) {
    case 'union':
      return targetOfWriter(writer.branches.find((branch) => branch.kind !== 'null') ?? { kind: 'bytes' });
    case 'float':
      return { kind: 'double' };
    case 'boolean':
    case 'int':
    case 'long':
    case 'double':
    case 'string':
      return { kind: writer.kind };
    case 'fixed':
      return { kind: 'fixed', size: writer.size };
    default:
      return { kind: 'bytes' };
  }
}

/** The writer's declaration of a partition field: entry → data_file (2) → partition (102) → field. */
function partitionWriter(root: AvroType, fieldId: number): AvroType | null {
  let type: AvroType | undefined = root;
  for (const id of [2, 102, fieldId]) {
    type = type?.kind === 'record' ? type.fields.find((field) => field.id === id)?.type : undefined;
  }
  return type ?? null;
}

function hasField(root: AvroType, id: number): boolean {
  return root.kind === 'record' && root.fields.some((field) => field.id === id);
}

const LONG: Target = { kind: 'long' };
const BYTES: Target = { kind: 'bytes' };
const INT: Target = { kind: 'int' };
const STRING: Target = { kind: 'string' };

function counts(id: number, name: string, keyId: number, value: Target): TargetField {
  return { id, name, target: { kind: 'map', keyId, key: INT, valueId: keyId + 1, value }, missing: null };
}

function entryTarget(partition: TargetField[]): RecordTarget {
  const tuple: RecordTarget = { kind: 'record', fields: partition, make: (values) => values.slice() };
  return {
    kind: 'record',
    fields: [
      { id: 0, name: 'status', target: INT },
      { id: 1, name: 'snapshot_id', target: LONG, missing: null },
      { id: 3, name: 'sequence_number', target: LONG, missing: null },
      { id: 4, name: 'file_sequence_number', target: LONG, missing: null },
      { id: 2, name: 'data_file', target: dataFileTarget(tuple) },
    ],
    make: ([status, snapshotId, sequenceNumber, fileSequenceNumber, dataFile]): ManifestEntry => ({
      status: oneOf('status', status as number, DELETED) as EntryStatus,
      snapshotId: snapshotId as bigint | null,
      sequenceNumber: sequenceNumber as bigint | null,
      fileSequenceNumber: fileSequenceNumber as bigint | null,
      dataFile: dataFile as DataFile,
    }),
  };
}

function oneOf(name: string, value: number, largest: number): number {
  if (value < 0 || value > largest) throw malformed(`entry has ${name} ${value}`);
  return value;
}

function dataFileTarget(partition: RecordTarget): RecordTarget {
  return {
    kind: 'record',
    fields: [
      { id: 134, name: 'content', target: INT, missing: 0 },
      { id: 100, name: 'file_path', target: STRING },
      { id: 101, name: 'file_format', target: STRING },
      { id: 102, name: 'partition', target: partition },
      { id: 103, name: 'record_count', target: LONG },
      { id: 104, name: 'file_size_in_bytes', target: LONG },
      counts(108, 'column_sizes', 117, LONG),
      counts(109, 'value_counts', 119, LONG),
      counts(110, 'null_value_counts', 121, LONG),
      counts(137, 'nan_value_counts', 138, LONG),
      counts(125, 'lower_bounds', 126, BYTES),
      counts(128, 'upper_bounds', 129, BYTES),
      { id: 131, name: 'key_metadata', target: BYTES, missing: null },
      { id: 132, name: 'split_offsets', target: { kind: 'list', element: LONG }, missing: null },
      { id: 135, name: 'equality_ids', target: { kind: 'list', element: INT }, missing: null },
      { id: 140, name: 'sort_order_id', target: INT, missing: null },
      { id: 143, name: 'referenced_data_file', target: STRING, missing: null },
    ],
    make: (values): DataFile => ({
      content: oneOf('content', values[0] as number, 2) as DataFile['content'],
      filePath: values[1] as string,
      fileFormat: values[2] as string,
      partition: values[3] as Value[],
      recordCount: values[4] as bigint,
      fileSizeInBytes: values[5] as bigint,
      columnSizes: values[6] as DataFile['columnSizes'],
      valueCounts: values[7] as DataFile['valueCounts'],
      nullValueCounts: values[8] as DataFile['nullValueCounts'],
      nanValueCounts: values[9] as DataFile['nanValueCounts'],
      lowerBounds: values[10] as DataFile['lowerBounds'],
      upperBounds: values[11] as DataFile['upperBounds'],
      keyMetadata: values[12] as Uint8Array | null,
      splitOffsets: values[13] as bigint[] | null,
      equalityIds: values[14] as number[] | null,
      sortOrderId: values[15] as number | null,
      referencedDataFile: values[16] as string | null,
    }),
  };
}

function inherit(
  entries: ManifestEntry[],
  { row, old, fileNumbers }: { row: ManifestFile | undefined; old: boolean; fileNumbers: boolean },
): void {
  for (const entry of entries) {
    if (row !== undefined) entry.snapshotId ??= row.addedSnapshotId;
    if (old) {
      entry.sequenceNumber ??= 0n;
      entry.fileSequenceNumber ??= 0n;
    } else if (entry.status === ADDED) {
      entry.sequenceNumber ??= row?.sequenceNumber ?? null;
      entry.fileSequenceNumber ??= row?.sequenceNumber ?? null;
    } else if (entry.sequenceNumber === null || (entry.fileSequenceNumber === null && fileNumbers)) {
      const status = entry.status === EXISTING ? 'existing' : 'deleted';
      throw malformed(`has no sequence number on ${status} file ${entry.dataFile.filePath}`);
    }
  }
}
