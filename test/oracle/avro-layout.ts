import type { PartitionSpec } from '../../src/core/iceberg/types.ts';
import { type AvroField, type AvroNode, type AvroSchema, branch } from './avro.ts';
import type { Report } from './finding.ts';
import type { Primitive } from './values.ts';

/** A field as the reference writer lays it out. `type` is a primitive, or what `kind` says. */
interface Expected {
  id: number;
  name: string;
  required: boolean;
  type: string;
  /** Record name of a struct, or of the pairs of a map. */
  record?: string;
  fields?: Expected[];
  elementId?: number;
  logical?: string;
  attributes?: Record<string, unknown>;
}

const required = (id: number, name: string, type: string): Expected => ({ id, name, required: true, type });
const optional = (id: number, name: string, type: string): Expected => ({ id, name, required: false, type });
const map = (id: number, name: string, key: number, value: number, type: string): Expected => ({
  id,
  name,
  required: false,
  type: 'map',
  record: `k${key}_v${value}`,
  fields: [required(key, 'key', 'int'), required(value, 'value', type)],
});

const SUMMARY: Expected[] = [
  required(509, 'contains_null', 'boolean'),
  optional(518, 'contains_nan', 'boolean'),
  optional(510, 'lower_bound', 'bytes'),
  optional(511, 'upper_bound', 'bytes'),
];

/** Rows of a manifest list (spec: manifest-lists), in the reference order. */
const LIST: Expected[] = [
  required(500, 'manifest_path', 'string'),
  required(501, 'manifest_length', 'long'),
  required(502, 'partition_spec_id', 'int'),
  required(517, 'content', 'int'),
  required(515, 'sequence_number', 'long'),
  required(516, 'min_sequence_number', 'long'),
  required(503, 'added_snapshot_id', 'long'),
  required(504, 'added_files_count', 'int'),
  required(505, 'existing_files_count', 'int'),
  required(506, 'deleted_files_count', 'int'),
  required(512, 'added_rows_count', 'long'),
  required(513, 'existing_rows_count', 'long'),
  required(514, 'deleted_rows_count', 'long'),
  { ...optional(507, 'partitions', 'array'), elementId: 508, record: 'r508', fields: SUMMARY },
  optional(519, 'key_metadata', 'bytes'),
];

/** Avro names: letters, digits, underscore, not beginning with a digit (reference: AvroSchemaUtil). */
export function avroName(name: string): string {
  const safe = name.replace(/[^A-Za-z0-9_]/g, (unit) => `_x${unit.charCodeAt(0).toString(16).toUpperCase()}`);
  return /^[0-9]/.test(safe) ? `_${safe}` : safe;
}

function partitionField(name: string, id: number, type: Primitive): Expected {
  const of = (avro: string, logical?: string, attributes: Record<string, unknown> = {}): Expected => ({
    ...optional(id, avroName(name), avro),
    ...(logical === undefined ? {} : { logical }),
    attributes,
  });
  switch (type.name) {
    case 'date':
      return of('int', 'date');
    case 'time':
      return of('long', 'time-micros');
    case 'timestamp':
    case 'timestamptz':
      return of('long', 'timestamp-micros', { 'adjust-to-utc': type.name === 'timestamptz' });
    case 'uuid':
      return of('fixed', 'uuid', { size: 16 });
    case 'fixed':
      return of('fixed', undefined, { size: type.length });
    case 'decimal':
      return of('fixed', 'decimal', { precision: type.precision, scale: type.scale });
    case 'binary':
      return of('bytes');
    default:
      return of(type.name);
  }
}

function manifestFields(spec: PartitionSpec, types: readonly Primitive[]): Expected[] {
  const partition = spec.fields.map((field, i) => partitionField(field.name, field['field-id'], types[i]));
  const file: Expected[] = [
    required(134, 'content', 'int'),
    required(100, 'file_path', 'string'),
    required(101, 'file_format', 'string'),
    { ...required(102, 'partition', 'record'), record: 'r102', fields: partition },
    required(103, 'record_count', 'long'),
    required(104, 'file_size_in_bytes', 'long'),
    map(108, 'column_sizes', 117, 118, 'long'),
    map(109, 'value_counts', 119, 120, 'long'),
    map(110, 'null_value_counts', 121, 122, 'long'),
    map(137, 'nan_value_counts', 138, 139, 'long'),
    map(125, 'lower_bounds', 126, 127, 'bytes'),
    map(128, 'upper_bounds', 129, 130, 'bytes'),
    optional(131, 'key_metadata', 'bytes'),
    { ...optional(132, 'split_offsets', 'array'), elementId: 133, fields: [required(133, 'element', 'long')] },
    { ...optional(135, 'equality_ids', 'array'), elementId: 136, fields: [required(136, 'element', 'int')] },
    optional(140, 'sort_order_id', 'int'),
    optional(143, 'referenced_data_file', 'string'),
  ];
  return [
    required(0, 'status', 'int'),
    optional(1, 'snapshot_id', 'long'),
    optional(3, 'sequence_number', 'long'),
    optional(4, 'file_sequence_number', 'long'),
    { ...required(2, 'data_file', 'record'), record: 'r2', fields: file },
  ];
}

/** Compares a manifest's Avro schema with the reference layout: A8-A15. */
export function checkManifestLayout(
  schema: AvroSchema,
  spec: PartitionSpec,
  types: readonly Primitive[],
  key: string,
  report: Report,
): void {
  checkRecord(schema, 'manifest_entry', manifestFields(spec, types), '', key, report);
}

/** Compares a manifest list's Avro schema with the reference layout: ML2, ML3, A8-A10. */
export function checkListLayout(schema: AvroSchema, key: string, report: Report): void {
  checkRecord(schema, 'manifest_file', LIST, '', key, report);
}

function nodeOf(schema: AvroSchema): AvroNode {
  if (typeof schema === 'string' || Array.isArray(schema)) return { type: schema };
  return typeof schema.type === 'object' && !Array.isArray(schema.type)
    ? { ...schema.type, ...schema, type: schema.type.type }
    : schema;
}

function checkRecord(
  schema: AvroSchema,
  name: string,
  expected: readonly Expected[],
  path: string,
  key: string,
  report: Report,
): void {
  const node = nodeOf(schema);
  if (node.type !== 'record') report('A8 record', key, `a record at ${path || 'root'}`, node.type);
  if (node.name !== name) report('A9 record name', key, name, node.name);
  const fields = node.fields ?? [];
  for (const field of fields)
    if (typeof field['field-id'] !== 'number') report('A8 field-id', key, `on ${path}${field.name}`, field['field-id']);
  for (const field of expected) {
    const found = fields.find((candidate) => candidate['field-id'] === field.id);
    if (found === undefined) report('A14 field', key, `${path}${field.name} (${field.id})`, undefined);
    else checkField(found, field, `${path}${field.name}`, key, report);
  }
  const ids = fields.map((field) => field['field-id'] ?? -1);
  for (const id of ids)
    if (id >= 0 && !expected.some((field) => field.id === id))
      report(name === 'r102' ? 'A11 partition field' : 'A15 field', key, `no field ${id} in ${name}`, id);
  const order = expected.map((field) => field.id).filter((id) => ids.includes(id));
  const known = ids.filter((id) => order.includes(id));
  if (order.join() !== known.join()) report(name === 'r102' ? 'A11 order' : 'A14 order', key, order, known);
}

function checkField(found: AvroField, expected: Expected, path: string, key: string, report: Report): void {
  if (found.name !== expected.name)
    report(/^[A-Za-z_][A-Za-z0-9_]*$/.test(found.name) ? 'A14 name' : 'A12 name', key, expected.name, found.name);
  const { schema, nullable } = branch(found.type);
  if (nullable === expected.required)
    report('A10 nullability', key, expected.required ? `${path} required` : `${path} optional`, found.type);
  if (nullable && (!Array.isArray(found.type) || found.type[0] !== 'null' || found.default !== null))
    report('A10 union', key, `["null", T] with default null at ${path}`, { type: found.type, default: found.default });
  const node = nodeOf(schema);
  if (expected.type === 'record') {
    checkRecord(schema, expected.record ?? '', expected.fields ?? [], `${path}.`, key, report);
    return;
  }
  if (expected.type === 'map') {
    if (node.type !== 'array' || node.logicalType !== 'map')
      report('A8 map', key, `an array of pairs with logicalType map at ${path}`, node);
    else checkRecord(node.items ?? 'null', expected.record ?? '', expected.fields ?? [], `${path}.`, key, report);
    return;
  }
  if (expected.type === 'array') {
    if (node.type !== 'array' || node['element-id'] !== expected.elementId)
      report('A8 element-id', key, `an array with element-id ${expected.elementId} at ${path}`, node);
    else if (expected.record !== undefined)
      checkRecord(node.items ?? 'null', expected.record, expected.fields ?? [], `${path}.`, key, report);
    else if (node.items !== expected.fields?.[0].type)
      report('A16 element', key, `${expected.fields?.[0].type} at ${path}`, node.items);
    return;
  }
  if (node.type !== expected.type) report('A13 type', key, `${expected.type} at ${path}`, node.type);
  if (expected.attributes !== undefined && node.logicalType !== expected.logical)
    report('A13 logicalType', key, `${expected.logical} at ${path}`, node.logicalType);
  for (const [attribute, value] of Object.entries(expected.attributes ?? {}))
    if (node[attribute] !== value) report('A13 attribute', key, `${attribute} ${value} at ${path}`, node[attribute]);
}
