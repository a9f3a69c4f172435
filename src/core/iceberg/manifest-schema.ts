import { primitive } from './primitive.ts';
import type { PartitionSpec, PrimitiveType } from './types.ts';

/**
 * Avro schemas of manifests and manifest lists, format version 2, laid out exactly as the reference writer does (A8-A15,
 * ML2): some readers go by record name (`r2`, `r102`), some by position, some refuse a nullable field that should be
 * required. The order of keys is the reference's too, so that the texts can be compared.
 */

type Json = string | number | boolean | null | Json[] | { [key: string]: Json };

interface Field {
  name: string;
  type: Json;
  id: number;
  doc?: string;
}

function required({ name, type, id, doc }: Field): Json {
  return { name, type, ...(doc === undefined ? {} : { doc }), 'field-id': id };
}

function optional({ name, type, id, doc }: Field): Json {
  return { name, type: ['null', type], ...(doc === undefined ? {} : { doc }), default: null, 'field-id': id };
}

function record(name: string, fields: Json[]): Json {
  return { type: 'record', name, fields };
}

/** Iceberg's map with int keys: an array of entries (spec: Avro, map type mapping). */
function map(keyId: number, valueId: number, value: Json): Json {
  const entry = record(`k${keyId}_v${valueId}`, [
    required({ name: 'key', type: 'int', id: keyId }),
    required({ name: 'value', type: value, id: valueId }),
  ]);
  return { type: 'array', items: entry, logicalType: 'map' };
}

function list(elementId: number, items: Json): Json {
  return { type: 'array', items, 'element-id': elementId };
}

/** Schema of a manifest's entries. `types` are the transforms' result types in spec order. */
export function manifestEntrySchema(spec: PartitionSpec, types: readonly PrimitiveType[]): Json {
  const dataFile = record('r2', [
    required({
      name: 'content',
      type: 'int',
      id: 134,
      doc: 'Contents of the file: 0=data, 1=position deletes, 2=equality deletes',
    }),
    required({ name: 'file_path', type: 'string', id: 100, doc: 'Location URI with FS scheme' }),
    required({ name: 'file_format', type: 'string', id: 101, doc: 'File format name: avro, orc, or parquet' }),
    required({
      name: 'partition',
      type: partitionSchema(spec, types),
      id: 102,
      doc: 'Partition data tuple, schema based on the partition spec',
    }),
    required({ name: 'record_count', type: 'long', id: 103, doc: 'Number of records in the file' }),
    required({ name: 'file_size_in_bytes', type: 'long', id: 104, doc: 'Total file size in bytes' }),
    optional({
      name: 'column_sizes',
      type: map(117, 118, 'long'),
      id: 108,
      doc: 'Map of column id to total size on disk',
    }),
    optional({
      name: 'value_counts',
      type: map(119, 120, 'long'),
      id: 109,
      doc: 'Map of column id to total count, including null and NaN',
    }),
    optional({
      name: 'null_value_counts',
      type: map(121, 122, 'long'),
      id: 110,
      doc: 'Map of column id to null value count',
    }),
    optional({
      name: 'nan_value_counts',
      type: map(138, 139, 'long'),
      id: 137,
      doc: 'Map of column id to number of NaN values in the column',
    }),
    optional({ name: 'lower_bounds', type: map(126, 127, 'bytes'), id: 125, doc: 'Map of column id to lower bound' }),
    optional({ name: 'upper_bounds', type: map(129, 130, 'bytes'), id: 128, doc: 'Map of column id to upper bound' }),
    optional({ name: 'key_metadata', type: 'bytes', id: 131, doc: 'Encryption key metadata blob' }),
    optional({ name: 'split_offsets', type: list(133, 'long'), id: 132, doc: 'Splittable offsets' }),
    optional({ name: 'equality_ids', type: list(136, 'int'), id: 135, doc: 'Equality comparison field IDs' }),
    optional({ name: 'sort_order_id', type: 'int', id: 140, doc: 'Sort order ID' }),
    optional({
      name: 'referenced_data_file',
      type: 'string',
      id: 143,
      doc: 'Fully qualified location (URI with FS scheme) of a data file that all deletes reference',
    }),
  ]);
  return record('manifest_entry', [
    required({ name: 'status', type: 'int', id: 0 }),
    optional({ name: 'snapshot_id', type: 'long', id: 1 }),
    optional({ name: 'sequence_number', type: 'long', id: 3 }),
    optional({ name: 'file_sequence_number', type: 'long', id: 4 }),
    required({ name: 'data_file', type: dataFile, id: 2 }),
  ]);
}

/**
 * The tuple's record: every field nullable, in spec order, by its partition field id (A11). The real name stays in
 * `iceberg-field-name` where Avro's grammar does not take it (A12).
 */
function partitionSchema(spec: PartitionSpec, types: readonly PrimitiveType[]): Json {
  const defined = new Set<string>();
  const taken = new Set<string>();
  const fields = spec.fields.map((field, index): Json => {
    let name = avroName(field.name);
    // `a b` and `a_x20b` meet; the second one to come gives way, since readers go by id.
    while (taken.has(name)) name = `${name}_${field['field-id']}`;
    taken.add(name);
    const type = partitionType(types[index], defined);
    const original: { [key: string]: Json } = name === field.name ? {} : { 'iceberg-field-name': field.name };
    return { name, type: ['null', type], default: null, ...original, 'field-id': field['field-id'] };
  });
  return record('r102', fields);
}

/** Avro's form of a primitive type (spec: Avro, data type mappings). A named type is spelt out only the first time. */
function partitionType(type: PrimitiveType, defined: Set<string>): Json {
  const fixed = (name: string, size: number, logical: { [key: string]: Json }): Json => {
    if (defined.has(name)) return name;
    defined.add(name);
    return { type: 'fixed', name, size, ...logical };
  };
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
    case 'int':
    case 'long':
    case 'float':
    case 'double':
    case 'string':
      return shape.name;
    case 'binary':
      return 'bytes';
    case 'date':
      return { type: 'int', logicalType: 'date' };
    case 'time':
      return { type: 'long', logicalType: 'time-micros' };
    case 'timestamp':
      return { type: 'long', logicalType: 'timestamp-micros', 'adjust-to-utc': false };
    case 'timestamptz':
      return { type: 'long', logicalType: 'timestamp-micros', 'adjust-to-utc': true };
    case 'uuid':
      return fixed('uuid_fixed', 16, { logicalType: 'uuid' });
    case 'fixed':
      return fixed(`fixed_${shape.length}`, shape.length, {});
    case 'decimal': {
      const { precision, scale } = shape;
      const logical = { logicalType: 'decimal', precision, scale };
      return fixed(`decimal_${precision}_${scale}`, decimalBytes(precision), logical);
    }
  }
}

/** Fewest bytes whose two's complement holds every unscaled value of the precision (spec: Avro, decimal). */
export function decimalBytes(precision: number): number {
  const largest = 10n ** BigInt(precision) - 1n;
  let size = 1;
  while (BigInt.asIntN(8 * size, largest) !== largest) size++;
  return size;
}

/** A leading digit gets `_` before it, any other character outside Avro's grammar becomes `_x` and its UTF-16 code. */
export function avroName(name: string): string {
  let out = '';
  for (let i = 0; i < name.length; i++) {
    const unit = name[i];
    if (/[A-Za-z_]/.test(unit) || (i > 0 && /[0-9]/.test(unit))) out += unit;
    else if (/[0-9]/.test(unit)) out += `_${unit}`;
    else out += `_x${name.charCodeAt(i).toString(16).toUpperCase()}`;
  }
  return out;
}

/** Schema of a manifest list's rows. */
export const MANIFEST_FILE_SCHEMA: Json = record('manifest_file', [
  required({ name: 'manifest_path', type: 'string', id: 500, doc: 'Location URI with FS scheme' }),
  required({ name: 'manifest_length', type: 'long', id: 501, doc: 'Total file size in bytes' }),
  required({ name: 'partition_spec_id', type: 'int', id: 502, doc: 'Spec ID used to write' }),
  required({ name: 'content', type: 'int', id: 517, doc: 'Contents of the manifest: 0=data, 1=deletes' }),
  required({ name: 'sequence_number', type: 'long', id: 515, doc: 'Sequence number when the manifest was added' }),
  required({ name: 'min_sequence_number', type: 'long', id: 516, doc: 'Lowest sequence number in the manifest' }),
  required({ name: 'added_snapshot_id', type: 'long', id: 503, doc: 'Snapshot ID that added the manifest' }),
  required({ name: 'added_files_count', type: 'int', id: 504, doc: 'Added entry count' }),
  required({ name: 'existing_files_count', type: 'int', id: 505, doc: 'Existing entry count' }),
  required({ name: 'deleted_files_count', type: 'int', id: 506, doc: 'Deleted entry count' }),
  required({ name: 'added_rows_count', type: 'long', id: 512, doc: 'Added rows count' }),
  required({ name: 'existing_rows_count', type: 'long', id: 513, doc: 'Existing rows count' }),
  required({ name: 'deleted_rows_count', type: 'long', id: 514, doc: 'Deleted rows count' }),
  optional({
    name: 'partitions',
    type: list(
      508,
      record('r508', [
        required({
          name: 'contains_null',
          type: 'boolean',
          id: 509,
          doc: 'True if any file has a null partition value',
        }),
        optional({ name: 'contains_nan', type: 'boolean', id: 518, doc: 'True if any file has a nan partition value' }),
        optional({ name: 'lower_bound', type: 'bytes', id: 510, doc: 'Partition lower bound for all files' }),
        optional({ name: 'upper_bound', type: 'bytes', id: 511, doc: 'Partition upper bound for all files' }),
      ]),
    ),
    id: 507,
    doc: 'Summary for each partition',
  }),
  optional({ name: 'key_metadata', type: 'bytes', id: 519, doc: 'Encryption key metadata blob' }),
]);
