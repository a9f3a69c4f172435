import { invalid, type SluiceError } from '../base/errors.ts';
import { describe } from '../base/shape.ts';
import { assignFreshIds, canPromote, childFields, type FieldFacts, fieldsById, highestFieldId } from './schema.ts';
import type { NestedField, Schema, Type } from './types.ts';

/** One change of a schema. Columns are named by their path: `city`, `address.city`, `tags.element`. */
export type SchemaChange =
  /** A new column behind the others of `parent` (null: at top level). Its ids are given by the table. */
  | { kind: 'add'; parent: string | null; field: NestedField }
  | { kind: 'rename'; column: string; to: string }
  | { kind: 'drop'; column: string }
  /** Widens a type: see `canPromote`. */
  | { kind: 'promote'; column: string; type: string }
  /** Lets a required column hold nulls. */
  | { kind: 'optional'; column: string };

/**
 * The schema after the changes, in order; new columns get ids above `lastColumnId`. Whether the table may go on with it
 * is for `checkEvolution` to say.
 *
 * @throws invalid `bad-evolution` (detail: field) for a column that is not there, or there already
 */
export function changedSchema(schema: Schema, changes: readonly SchemaChange[], lastColumnId: number): Schema {
  let next = schema;
  let lastId = lastColumnId;
  for (const change of changes) {
    if (change.kind === 'add') {
      const field = numbered(change.field, lastId);
      lastId = highestFieldId({ type: 'struct', fields: [field] });
      next = added(next, change.parent, field);
    } else {
      next = changed(next, change);
    }
  }
  return next;
}

/** The field with this path, and its place. @throws invalid `bad-evolution` */
export function fieldAt(schema: Schema, path: string): FieldFacts {
  const found = [...fieldsById(schema).values()].filter((facts) => facts.path === path);
  // foreign schemas may have dots in names
  if (found.length > 1) throw bad(path, 'name stands for more than one');
  if (found.length === 0) throw bad(path, 'is not in the schema');
  return found[0];
}

function added(schema: Schema, parent: string | null, field: NestedField): Schema {
  if (parent === null) {
    checkFree(schema.fields, field.name, field.name);
    return { ...schema, fields: [...schema.fields, field] };
  }
  return edited(schema, parent, (struct) => {
    if (typeof struct.type === 'string' || struct.type.type !== 'struct') throw bad(parent, 'is no struct');
    checkFree(struct.type.fields, field.name, `${parent}.${field.name}`);
    return { ...struct, type: { type: 'struct', fields: [...struct.type.fields, field] } };
  });
}

function changed(schema: Schema, change: Exclude<SchemaChange, { kind: 'add' }>): Schema {
  const { column } = change;
  switch (change.kind) {
    case 'drop': {
      const { field } = fieldAt(schema, column);
      if ((schema['identifier-field-ids'] ?? []).includes(field.id)) throw bad(column, 'identifies rows');
      return edited(schema, column, () => null);
    }
    case 'rename': {
      const { parent } = fieldAt(schema, column);
      const siblings = parent === null ? schema.fields : childFields(fieldsById(schema).get(parent)?.field.type ?? '');
      checkFree(siblings, change.to, change.to);
      return edited(schema, column, (field) => ({ ...field, name: change.to }));
    }
    case 'promote':
      return edited(schema, column, (field) => {
        if (typeof field.type !== 'string' || !canPromote(field.type, change.type)) {
          throw bad(column, `cannot change to ${describe(change.type)}`);
        }
        return { ...field, type: change.type };
      });
    case 'optional':
      return edited(schema, column, (field) => {
        if ((schema['identifier-field-ids'] ?? []).includes(field.id)) throw bad(column, 'identifies rows');
        return { ...field, required: false };
      });
  }
}

type Edit = (field: NestedField) => NestedField | null;

/** The schema with one field changed, or taken out for null. */
function edited(schema: Schema, path: string, edit: Edit): Schema {
  const { id } = fieldAt(schema, path).field;
  const inside = (type: Type): Type => {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') return { ...type, fields: fieldsAfter(type.fields) };
    if (type.type === 'list') {
      const [element] = childFields(type).map(partAfter);
      return { ...type, element: element.type, 'element-required': element.required };
    }
    const [key, value] = childFields(type);
    // what a key is equal to must not change under the maps that are written
    if (key.id === id || holds(key.type, id)) throw bad(path, 'is a key of a map, or part of one');
    const after = partAfter(value);
    return { ...type, value: after.type, 'value-required': after.required };
  };
  const fieldsAfter = (fields: NestedField[]): NestedField[] =>
    fields.flatMap((field) => {
      if (field.id === id) return edit(field) ?? [];
      return [{ ...field, type: inside(field.type) }];
    });
  const partAfter = (part: NestedField): NestedField => {
    if (part.id !== id) return { ...part, type: inside(part.type) };
    const after = edit(part);
    if (after === null || after.name !== part.name) throw bad(path, 'is a part of a list or map and has a fixed name');
    return after;
  };
  return { ...schema, fields: fieldsAfter(schema.fields) };
}

function holds(type: Type, id: number): boolean {
  return childFields(type).some((field) => field.id === id || holds(field.type, id));
}

function checkFree(siblings: readonly NestedField[], name: string, path: string): void {
  if (siblings.some((field) => field.name === name)) throw bad(path, 'is in the schema already');
}

/** The field with ids from `lastId` + 1, in the reference writer's order. */
function numbered(field: NestedField, lastId: number): NestedField {
  const { schema } = assignFreshIds({ type: 'struct', 'schema-id': 0, fields: [field] });
  return shiftedField(schema.fields[0], lastId);
}

/** The field with all its ids moved by as much. */
export function shiftedField(field: NestedField, by: number): NestedField {
  const shift = (type: Type): Type => {
    if (typeof type === 'string') return type;
    if (type.type === 'struct') return { ...type, fields: type.fields.map(shiftField) };
    if (type.type === 'list') return { ...type, 'element-id': type['element-id'] + by, element: shift(type.element) };
    const ids = { 'key-id': type['key-id'] + by, 'value-id': type['value-id'] + by };
    return { ...type, ...ids, key: shift(type.key), value: shift(type.value) };
  };
  const shiftField = (one: NestedField): NestedField => ({ ...one, id: one.id + by, type: shift(one.type) });
  return shiftField(field);
}

function bad(path: string, why: string): SluiceError {
  return invalid('bad-evolution', `column ${why}: ${path}`, { field: path });
}
