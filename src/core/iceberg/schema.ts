import { utf8 } from '../base/bytes.ts';
import { invalid } from '../base/errors.ts';
import { COLUMN_NAME_BYTES_MAX, SCHEMA_DEPTH_MAX, SCHEMA_FIELDS_MAX } from '../base/limits.ts';
import { arrayAt, booleanAt, describe, idAt, malformed, objectAt, stringAt } from '../base/shape.ts';
import { primitive, primitiveText } from './primitive.ts';
import type { NestedField, PrimitiveType, Schema, StructType, Type } from './types.ts';

export { type Primitive, primitive, primitiveText } from './primitive.ts';

/** Ids above are reserved for metadata columns (spec: reserved field ids; M21). */
export const FIELD_ID_MAX = 2_147_483_447;

/** What is known of a field beyond its own entry. Elements, keys and values of lists and maps are fields too. */
export interface FieldFacts {
  field: NestedField;
  /** Names from the root, joined by dots: `address.city`, `tags.element`, `labels.value`. */
  path: string;
  /** Field id of the enclosing field; null at top level. */
  parent: number | null;
  /** Inside a list or a map: it has no single value per row. */
  repeated: boolean;
  /** The field and all that encloses it are required. */
  required: boolean;
}

/**
 * Checks a schema's JSON deeply: a client's or another writer's. Unknown keys are dropped; `schema-id` is 0 when left
 * out. Ids are unique, names are unique within a struct, default values (format version 3) are refused. Throws
 * invalid `malformed`, `unknown-type`, `unsupported-type` or `bad-schema`, with the path in the detail.
 */
export function parseSchema(json: unknown, path = 'schema'): Schema {
  const object = objectAt(json, path);
  const type = parseType(json, path);
  if (typeof type === 'string' || type.type !== 'struct') throw malformed(path, 'a struct', json);
  const schema: Schema = {
    type: 'struct',
    'schema-id': object['schema-id'] === undefined ? 0 : idAt(object['schema-id'], `${path}.schema-id`),
    fields: type.fields,
  };
  const identifiers = object['identifier-field-ids'];
  if (identifiers !== undefined && identifiers !== null) {
    const at = `${path}.identifier-field-ids`;
    const ids = arrayAt(identifiers, at, SCHEMA_FIELDS_MAX).map((id, i) => idAt(id, `${at}[${i}]`));
    if (ids.length > 0) schema['identifier-field-ids'] = ids;
  }
  const fields = indexOf(schema, path);
  for (const id of schema['identifier-field-ids'] ?? []) checkIdentifier(fields, id, path);
  return schema;
}

/** Checks a type's JSON; see `parseSchema`. Primitive types get the reference writer's spelling. */
export function parseType(json: unknown, path = 'type'): Type {
  const budget = { fields: SCHEMA_FIELDS_MAX };
  return parseTypeAt(json, path, 0, budget);
}

function parseTypeAt(json: unknown, path: string, depth: number, budget: { fields: number }): Type {
  if (typeof json === 'string') return parsePrimitive(json, path);
  if (depth >= SCHEMA_DEPTH_MAX) {
    throw invalid('bad-schema', `${path} is nested deeper than ${SCHEMA_DEPTH_MAX} types`, { path });
  }
  const object = objectAt(json, path);
  const spend = (count: number) => {
    budget.fields -= count;
    if (budget.fields < 0) throw invalid('bad-schema', `schema has more than ${SCHEMA_FIELDS_MAX} fields`, { path });
  };
  switch (object['type']) {
    case 'struct': {
      const list = arrayAt(object['fields'], `${path}.fields`, SCHEMA_FIELDS_MAX);
      spend(list.length);
      const names = new Set<string>();
      const fields = list.map((item, i): NestedField => {
        const field = parseField(item, `${path}.fields[${i}]`, depth, budget);
        if (names.has(field.name)) {
          throw invalid('bad-schema', `${path} has two fields of one name: ${describe(field.name)}`, { path });
        }
        names.add(field.name);
        return field;
      });
      return { type: 'struct', fields };
    }
    case 'list':
      spend(1);
      return {
        type: 'list',
        'element-id': fieldId(object['element-id'], `${path}.element-id`),
        element: parseTypeAt(object['element'], `${path}.element`, depth + 1, budget),
        'element-required': booleanAt(object['element-required'], `${path}.element-required`),
      };
    case 'map':
      spend(2);
      return {
        type: 'map',
        'key-id': fieldId(object['key-id'], `${path}.key-id`),
        key: parseTypeAt(object['key'], `${path}.key`, depth + 1, budget),
        'value-id': fieldId(object['value-id'], `${path}.value-id`),
        value: parseTypeAt(object['value'], `${path}.value`, depth + 1, budget),
        'value-required': booleanAt(object['value-required'], `${path}.value-required`),
      };
    default:
      throw malformed(`${path}.type`, 'struct, list or map', object['type']);
  }
}

function parseField(json: unknown, path: string, depth: number, budget: { fields: number }): NestedField {
  const object = objectAt(json, path);
  for (const key of ['initial-default', 'write-default']) {
    // rows of older files would read as null here and as the default elsewhere
    if (object[key] !== undefined && object[key] !== null) {
      throw invalid('unsupported-type', `${path}.${key} needs a later format version than 2`, { path });
    }
  }
  const field: NestedField = {
    id: fieldId(object['id'], `${path}.id`),
    name: stringAt(object['name'], `${path}.name`),
    required: booleanAt(object['required'], `${path}.required`),
    type: parseTypeAt(object['type'], `${path}.type`, depth + 1, budget),
  };
  if (typeof object['doc'] === 'string') field.doc = object['doc'];
  return field;
}

function parsePrimitive(text: string, path: string): PrimitiveType {
  try {
    return primitiveText(primitive(text));
  } catch (cause) {
    const known = cause as Error & { type?: string };
    throw invalid(known.type ?? 'unknown-type', `${path}: ${known.message}`, { path }, cause);
  }
}

function fieldId(value: unknown, path: string): number {
  const id = idAt(value, path);
  if (id > FIELD_ID_MAX) throw invalid('bad-schema', `${path} is a reserved field id: ${id}`, { path });
  return id;
}

/** M22: required all the way up, primitive, not a float, not inside a list or map. */
function checkIdentifier(fields: ReadonlyMap<number, FieldFacts>, id: number, path: string): void {
  const facts = fields.get(id);
  const type = facts?.field.type;
  const fine =
    facts?.required === true && !facts.repeated && typeof type === 'string' && type !== 'float' && type !== 'double';
  if (!fine) {
    const why = 'must be required, primitive, not a float, not in a list or map';
    throw invalid('bad-schema', `${path}: identifier field ${why}: ${facts?.path ?? `id ${id}`}`, { path });
  }
}

const indexes = new WeakMap<StructType, ReadonlyMap<number, FieldFacts>>();

/**
 * All fields by id, in document order, enclosing fields first. Kept per schema object, as schemas are never changed
 * in place. Throws `bad-schema` when an id occurs twice.
 */
export function fieldsById(schema: StructType): ReadonlyMap<number, FieldFacts> {
  return indexOf(schema, 'schema');
}

function indexOf(schema: StructType, at: string): ReadonlyMap<number, FieldFacts> {
  const kept = indexes.get(schema);
  if (kept !== undefined) return kept;
  const facts = new Map<number, FieldFacts>();
  const enter = (field: NestedField, outer: FieldFacts | null, repeated: boolean): void => {
    if (facts.has(field.id)) throw invalid('bad-schema', `${at} has two fields of one id: ${field.id}`, { path: at });
    const own: FieldFacts = {
      field,
      path: outer === null ? field.name : `${outer.path}.${field.name}`,
      parent: outer === null ? null : outer.field.id,
      repeated,
      required: field.required && (outer === null || outer.required),
    };
    facts.set(field.id, own);
    for (const child of childFields(field.type)) enter(child, own, repeated || typeOfChildren(field.type));
  };
  for (const field of schema.fields) enter(field, null, false);
  indexes.set(schema, facts);
  return facts;
}

function typeOfChildren(type: Type): boolean {
  return typeof type !== 'string' && type.type !== 'struct';
}

/** Fields directly inside a type. A list has `element`, a map has `key` and `value`. */
export function childFields(type: Type): NestedField[] {
  if (typeof type === 'string') return [];
  if (type.type === 'struct') return type.fields;
  if (type.type === 'list') {
    return [{ id: type['element-id'], name: 'element', required: type['element-required'], type: type.element }];
  }
  return [
    { id: type['key-id'], name: 'key', required: true, type: type.key },
    { id: type['value-id'], name: 'value', required: type['value-required'], type: type.value },
  ];
}

/** The field with this id at any depth, or null. */
export function fieldById(schema: StructType, id: number): NestedField | null {
  return fieldsById(schema).get(id)?.field ?? null;
}

/** The top-level field of exactly this name, or null. */
export function fieldByName(schema: StructType, name: string): NestedField | null {
  return schema.fields.find((field) => field.name === name) ?? null;
}

/** The highest id in the schema, nested ones counted; 0 for a schema without fields. */
export function highestFieldId(schema: StructType): number {
  let highest = 0;
  for (const id of fieldsById(schema).keys()) highest = Math.max(highest, id);
  return highest;
}

/**
 * Gives all fields new ids from 1, in the reference writer's order: all fields of a struct first, then the insides of
 * each in turn. `ids` maps old to new, for the partition spec and sort order that came along.
 */
export function assignFreshIds(schema: Schema): { schema: Schema; ids: Map<number, number> } {
  const ids = new Map<number, number>();
  let last = 0;
  const next = (old: number): number => {
    last++;
    ids.set(old, last);
    return last;
  };
  const fresh = (type: Type): Type => {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') return { type: 'struct', fields: freshFields(type.fields) };
    if (type.type === 'list') {
      const id = next(type['element-id']);
      return { ...type, 'element-id': id, element: fresh(type.element) };
    }
    const keyId = next(type['key-id']);
    const valueId = next(type['value-id']);
    return { ...type, 'key-id': keyId, key: fresh(type.key), 'value-id': valueId, value: fresh(type.value) };
  };
  const freshFields = (fields: NestedField[]): NestedField[] => {
    const numbered = fields.map((field) => ({ ...field, id: next(field.id) }));
    return numbered.map((field) => ({ ...field, type: fresh(field.type) }));
  };
  const fields = freshFields(schema.fields);
  const out: Schema = { type: 'struct', 'schema-id': schema['schema-id'], fields };
  const identifiers = schema['identifier-field-ids'];
  if (identifiers !== undefined) out['identifier-field-ids'] = identifiers.map((id) => ids.get(id) ?? id);
  return { schema: out, ids };
}

/** Names that engines use for metadata columns (spec: reserved field ids), lower case. */
const RESERVED_NAMES = new Set([
  '_file',
  '_pos',
  '_deleted',
  '_spec_id',
  '_partition',
  '_row_id',
  '_last_updated_sequence_number',
  '_change_type',
  '_change_ordinal',
  '_commit_snapshot_id',
]);

/**
 * Rules for names we let in (other writers' tables may break them): not empty, not too long, well-formed, without
 * control characters, not reserved (M25b), no two in a struct that differ by case alone, none that reads like the
 * path of a nested field (M25). With `known`, only fields whose id is not in it are held to the rules of a single
 * name. Throws invalid `bad-column-name`.
 */
export function checkNewColumnNames(schema: Schema, known?: StructType): void {
  const knownFields = known === undefined ? new Map<number, FieldFacts>() : fieldsById(known);
  const all = fieldsById(schema);
  const seen = new Map<string, FieldFacts>();
  for (const [id, facts] of all) {
    const before = knownFields.get(id);
    const isNew = before === undefined || before.field.name !== facts.field.name;
    if (isNew) checkName(facts);
    if (isNew && isEmptyStruct(facts.field.type)) throw badName(facts, 'is of a struct without fields');
    const folded = facts.path.toLowerCase();
    const clash = seen.get(folded);
    if (clash !== undefined && (isNew || !knownFields.has(clash.field.id))) {
      throw badName(facts, `collides with ${describe(clash.path)} where case is ignored`);
    }
    seen.set(folded, facts);
  }
}

/** Parquet has no such column (P10). */
function isEmptyStruct(type: Type): boolean {
  return typeof type !== 'string' && type.type === 'struct' && type.fields.length === 0;
}

function checkName(facts: FieldFacts): void {
  const { name } = facts.field;
  if (name === '') throw badName(facts, 'is empty');
  if (utf8(name).length > COLUMN_NAME_BYTES_MAX) throw badName(facts, `is longer than ${COLUMN_NAME_BYTES_MAX} bytes`);
  if (!name.isWellFormed()) throw badName(facts, 'holds half of a surrogate pair');
  // biome-ignore lint/suspicious/noControlCharactersInRegex: control characters are what is looked for
  if (/[\u0000-\u001f\u007f]/.test(name)) throw badName(facts, 'holds a control character');
  if (facts.parent === null && RESERVED_NAMES.has(name.toLowerCase())) throw badName(facts, 'is a metadata column');
}

function badName(facts: FieldFacts, why: string): Error {
  return invalid('bad-column-name', `column name ${why}: ${describe(facts.path)}`, { field: facts.path });
}

/**
 * True when values of `from` may be read as `to`: the same type, or one of the promotions of format version 2 (M23):
 * int → long, float → double, a decimal to a higher precision of the same scale.
 */
export function canPromote(from: PrimitiveType, to: PrimitiveType): boolean {
  const a = primitive(from);
  const b = primitive(to);
  if (a.name === 'decimal' && b.name === 'decimal') return a.scale === b.scale && a.precision <= b.precision;
  if (a.name === 'fixed' && b.name === 'fixed') return a.length === b.length;
  return a.name === b.name || (a.name === 'int' && b.name === 'long') || (a.name === 'float' && b.name === 'double');
}

/** True when both have the same fields and identifier fields; `schema-id` is not compared, field ids on demand. */
export function sameSchema(a: Schema, b: Schema, options: { ignoreFieldIds?: boolean } = {}): boolean {
  const ids = options.ignoreFieldIds !== true;
  if (!sameType(a, b, ids)) return false;
  const named = (schema: Schema) =>
    (schema['identifier-field-ids'] ?? [])
      .map((id) => (ids ? String(id) : (fieldsById(schema).get(id)?.path ?? String(id))))
      .sort()
      .join('\n');
  return named(a) === named(b);
}

function sameType(a: Type, b: Type, ids: boolean): boolean {
  if (typeof a === 'string' || typeof b === 'string') return a === b;
  if (a.type !== b.type) return false;
  const left = childFields(a);
  const right = childFields(b);
  if (left.length !== right.length) return false;
  return left.every((x, i) => {
    const y = right[i];
    return (
      (!ids || x.id === y.id) &&
      x.name === y.name &&
      x.required === y.required &&
      x.doc === y.doc &&
      sameType(x.type, y.type, ids)
    );
  });
}
