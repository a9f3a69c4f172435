import { hex, utf8 } from '../base/bytes.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { formatUuid } from '../base/ids.ts';
import { METADATA_LIST_MAX } from '../base/limits.ts';
import { murmur3 } from '../base/murmur3.ts';
import { arrayAt, describe, idAt, malformed, objectAt, stringAt } from '../base/shape.ts';
import { civilOfDay, dateText, pad } from './calendar.ts';
import { primitive } from './primitive.ts';
import { fieldById, fieldByName, fieldsById } from './schema.ts';
import { parseTransform, resultType, startOfOrdinal, transformOf } from './transform.ts';
import type { PartitionField, PartitionSpec, PrimitiveType, Schema, StructType, Transform, Value } from './types.ts';

/** Partition field ids start here (spec: partition specs); a table that never had one has 999 as its last. */
export const PARTITION_ID_FIRST = 1000;

/** Checks the shape of one partition field. `field-id` is null where a client leaves it to us. */
export function parsePartitionField(
  json: unknown,
  path: string,
): Omit<PartitionField, 'field-id'> & { id: number | null } {
  const object = objectAt(json, path);
  const transform = stringAt(object['transform'], `${path}.transform`);
  parseTransform(transform);
  const id = object['field-id'];
  return {
    'source-id': idAt(object['source-id'], `${path}.source-id`),
    id: id === undefined || id === null ? null : idAt(id, `${path}.field-id`),
    name: stringAt(object['name'], `${path}.name`),
    transform,
  };
}

/**
 * Checks the JSON of a spec in table metadata. Field ids may be missing in all fields, as tables that began in format
 * version 1 have it: they then count from 1000. Throws invalid `malformed`, `unknown-transform` or `bad-spec`.
 */
export function parsePartitionSpec(json: unknown, path = 'spec'): PartitionSpec {
  const object = objectAt(json, path);
  const parsed = arrayAt(object['fields'], `${path}.fields`, METADATA_LIST_MAX).map((field, i) =>
    parsePartitionField(field, `${path}.fields[${i}]`),
  );
  const unnumbered = parsed.every((field) => field.id === null);
  const fields = parsed.map(({ id, ...field }, i): PartitionField => {
    if (id === null && !unnumbered) throw malformed(`${path}.fields[${i}].field-id`, 'an integer', undefined);
    return {
      'source-id': field['source-id'],
      'field-id': id ?? PARTITION_ID_FIRST + i,
      name: field.name,
      transform: field.transform,
    };
  });
  const spec = { 'spec-id': idAt(object['spec-id'], `${path}.spec-id`), fields };
  checkDistinct(spec, path);
  return spec;
}

function checkDistinct(spec: PartitionSpec, path: string): void {
  const names = new Set<string>();
  const ids = new Set<number>();
  for (const field of spec.fields) {
    if (names.has(field.name)) throw badSpec(path, `two fields of one name: ${describe(field.name)}`);
    if (ids.has(field['field-id'])) throw badSpec(path, `two fields of one id: ${field['field-id']}`);
    names.add(field.name);
    ids.add(field['field-id']);
  }
}

/**
 * Checks that a spec can partition rows of a schema: sources exist, have one value a row, and suit their transforms;
 * names collide with no column unless the field is identity (or void) over it (T7); no two fields say the same. The
 * default spec of every table must pass; an older spec may name columns that are gone. Throws invalid `bad-spec`.
 */
export function checkSpec(spec: PartitionSpec, schema: Schema, path = 'spec'): void {
  checkDistinct(spec, path);
  const said = new Set<string>();
  for (const field of spec.fields) {
    const source = fieldsById(schema).get(field['source-id']);
    const { name } = parseTransform(field.transform);
    if (source === undefined) {
      if (name === 'void') continue;
      throw badSpec(path, `source of ${describe(field.name)} is not in the schema: ${field['source-id']}`);
    }
    if (source.repeated) throw badSpec(path, `source of ${describe(field.name)} is inside a list or map`);
    try {
      resultType(field.transform, source.field.type);
    } catch (cause) {
      throw invalid('bad-spec', `${path}: ${(cause as Error).message}`, { path }, cause);
    }
    const column = fieldByName(schema, field.name);
    const own = column !== null && column.id === field['source-id'] && (name === 'identity' || name === 'void');
    if (column !== null && !own) throw badSpec(path, `field collides with a column: ${describe(field.name)}`);
    const statement = `${field['source-id']} ${field.transform}`;
    if (name !== 'void' && said.has(statement)) throw badSpec(path, `two fields are equal: ${describe(field.name)}`);
    said.add(statement);
  }
}

/** Further rules for specs we let in: ids from 1000, no empty name, none called `partition` (M25b, B205). */
export function checkNewSpec(spec: PartitionSpec, schema: Schema, path = 'spec'): void {
  checkSpec(spec, schema, path);
  for (const field of spec.fields) {
    if (field['field-id'] < PARTITION_ID_FIRST) throw badSpec(path, `field id is below 1000: ${field['field-id']}`);
    if (field.name === '' || !field.name.isWellFormed()) throw badSpec(path, 'field has no usable name');
    if (field.name.toLowerCase() === 'partition') throw badSpec(path, `name is reserved by engines: ${field.name}`);
  }
}

/** Highest field id of a spec; 999 when it has none. */
export function highestPartitionId(spec: PartitionSpec): number {
  return spec.fields.reduce((highest, field) => Math.max(highest, field['field-id']), PARTITION_ID_FIRST - 1);
}

/** True when both partition alike: same sources, transforms, names and field ids in order; `spec-id` is not compared. */
export function sameSpec(a: PartitionSpec, b: PartitionSpec): boolean {
  return (
    a.fields.length === b.fields.length &&
    a.fields.every((x, i) => {
      const y = b.fields[i];
      return (
        x['source-id'] === y['source-id'] &&
        x['field-id'] === y['field-id'] &&
        x.name === y.name &&
        x.transform === y.transform
      );
    })
  );
}

/** A spec over the columns of one schema, moved to the schema with fresh ids that `ids` maps to; field ids from 1000. */
export function rebindSpec(spec: PartitionSpec, ids: ReadonlyMap<number, number>): PartitionSpec {
  return {
    'spec-id': spec['spec-id'],
    fields: spec.fields.map((field, i) => ({
      'source-id': sourceIn(ids, field['source-id'], field.name),
      'field-id': PARTITION_ID_FIRST + i,
      name: field.name,
      transform: field.transform,
    })),
  };
}

function sourceIn(ids: ReadonlyMap<number, number>, source: number, name: string): number {
  const fresh = ids.get(source);
  if (fresh === undefined) throw badSpec('spec', `source of ${describe(name)} is not in the schema: ${source}`);
  return fresh;
}

/**
 * Type of the partition tuple: one optional field per field of the spec, in its order, named and numbered as there
 * (A11, T6). Sources are looked up in the schemas in order, so that a spec over a dropped column still has a type:
 * give the current schema first, then all others. A void field whose source is in none of them is an int.
 */
export function partitionTupleType(spec: PartitionSpec, schemas: readonly Schema[]): StructType {
  return {
    type: 'struct',
    fields: spec.fields.map((field) => ({
      id: field['field-id'],
      name: field.name,
      required: false,
      type: tupleFieldType(field, schemas),
    })),
  };
}

function tupleFieldType(field: PartitionField, schemas: readonly Schema[]): PrimitiveType {
  for (const schema of schemas) {
    const source = fieldById(schema, field['source-id']);
    if (source !== null) return resultType(field.transform, source.type);
  }
  if (parseTransform(field.transform).name === 'void') return 'int';
  throw badSpec('spec', `source of ${describe(field.name)} is in no schema: ${field['source-id']}`);
}

/** Function from a row's source values (one per field of the spec) to its partition tuple. */
export function tupleOf(spec: PartitionSpec, schema: Schema): (sources: readonly Value[]) => Value[] {
  const transforms = spec.fields.map((field) => {
    const source = fieldById(schema, field['source-id']);
    if (source === null) return () => null;
    if (typeof source.type !== 'string') throw badSpec('spec', `source of ${describe(field.name)} is not primitive`);
    return transformOf(field.transform, source.type);
  });
  return (sources) => transforms.map((transform, i) => transform(sources[i]));
}

/**
 * Folder of a partition under `data/`: `time_day=2026-01-03`, several fields joined by `/`; empty for an unpartitioned
 * table. Decoration only (T11): readers take the tuple from the manifest. Characters outside `[A-Za-z0-9_.-]` become
 * `_`, and then a hash of the true text follows, so that different values keep different folders.
 */
export function partitionPath(spec: PartitionSpec, schemas: readonly Schema[], tuple: readonly Value[]): string {
  const types = partitionTupleType(spec, schemas).fields;
  return spec.fields
    .map((field, i) => {
      const label = partitionLabel(field.transform, types[i].type as PrimitiveType, tuple[i]);
      return `${safeText(field.name)}=${safeText(label)}`;
    })
    .join('/');
}

/**
 * Text of one partition value: `2026`, `2026-01`, `2026-01-03`, `2026-01-03-14` for the time transforms, the plain
 * number outside years 0001 to 9999; `null` for null.
 */
export function partitionLabel(transform: Transform, type: PrimitiveType, value: Value): string {
  if (value === null) return 'null';
  const { name } = parseTransform(transform);
  if (name === 'year' || name === 'month' || name === 'hour') return timeLabel(name, value as number);
  const shape = primitive(type);
  if (shape.name === 'date') return dateText(value as number) ?? String(value);
  if (value instanceof Uint8Array) return shape.name === 'uuid' ? formatUuid(value) : hex(value);
  return String(value);
}

const DAY_MICROS = 86_400_000_000n;

function timeLabel(name: 'year' | 'month' | 'hour', ordinal: number): string {
  const start = startOfOrdinal(name, ordinal);
  const day = Number((start - (((start % DAY_MICROS) + DAY_MICROS) % DAY_MICROS)) / DAY_MICROS);
  const date = dateText(day);
  if (date === null) return String(ordinal);
  const { year, month } = civilOfDay(day);
  if (name === 'year') return pad(year, 4);
  if (name === 'month') return `${pad(year, 4)}-${pad(month, 2)}`;
  return `${date}-${pad(ordinal - day * 24, 2)}`;
}

/** Longer texts are cut: a key has 1,024 bytes for everything. */
const SAFE_LENGTH_MAX = 48;

function safeText(text: string): string {
  if (text.length <= SAFE_LENGTH_MAX && /^[A-Za-z0-9_.-]+$/.test(text)) return text;
  const hash = (murmur3(utf8(text)) >>> 0).toString(16).padStart(8, '0');
  return `${text.slice(0, SAFE_LENGTH_MAX - 9).replace(/[^A-Za-z0-9_.-]/g, '_')}-${hash}`;
}

function badSpec(path: string, why: string): SluiceError {
  return invalid('bad-spec', `${path}: ${why}`, { path });
}
