import { describe, expect, test } from 'vitest';
import { changedSchema, type SchemaChange } from '../../../src/core/iceberg/schema-change.ts';
import type { Schema } from '../../../src/core/iceberg/types.ts';
import { field, SCHEMA } from './fixtures.ts';

const NESTED: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    field(1, 'id', 'int', true),
    field(2, 'address', { type: 'struct', fields: [field(4, 'city', 'string'), field(5, 'zip', 'int')] }),
    field(3, 'tags', { type: 'list', 'element-id': 6, element: 'int', 'element-required': true }),
    field(7, 'labels', {
      type: 'map',
      'key-id': 8,
      key: 'int',
      'value-id': 9,
      value: { type: 'struct', fields: [field(10, 'text', 'string')] },
      'value-required': false,
    }),
  ],
};

const add = (name: string, parent: string | null = null): SchemaChange => ({
  kind: 'add',
  parent,
  field: field(1, name, 'string'),
});

function apply(schema: Schema, ...changes: SchemaChange[]): Schema {
  return changedSchema(schema, changes, 10);
}

function fails(schema: Schema, ...changes: SchemaChange[]) {
  return expect(() => apply(schema, ...changes));
}

describe('schema-change', () => {
  test('add: ids go on above the highest ever given, nested ones behind their column', () => {
    const point: SchemaChange = {
      kind: 'add',
      parent: null,
      field: field(1, 'p', { type: 'struct', fields: [field(2, 'x', 'double'), field(3, 'y', 'double')] }),
    };
    const { fields } = apply(SCHEMA, point, add('last'));
    expect(fields[3]).toEqual(
      field(11, 'p', { type: 'struct', fields: [field(12, 'x', 'double'), field(13, 'y', 'double')] }),
    );
    expect(fields[4]).toEqual(field(14, 'last', 'string'));
    expect(SCHEMA.fields).toHaveLength(3);
  });

  test('add: into a struct, also one inside a map’s value', () => {
    expect(apply(NESTED, add('street', 'address')).fields[1].type).toEqual({
      type: 'struct',
      fields: [field(4, 'city', 'string'), field(5, 'zip', 'int'), field(11, 'street', 'string')],
    });
    const labels = apply(NESTED, add('note', 'labels.value')).fields[3].type;
    expect(labels).toMatchObject({ value: { fields: [{ id: 10 }, { id: 11, name: 'note' }] } });
    fails(NESTED, add('x', 'id')).toThrow('is no struct: id');
    fails(NESTED, add('city', 'address')).toThrow('is in the schema already: address.city');
    fails(NESTED, add('x', 'nowhere')).toThrow('is not in the schema: nowhere');
  });

  test('rename: keeps the id; a sibling’s name is taken', () => {
    expect(apply(NESTED, { kind: 'rename', column: 'address.city', to: 'town' }).fields[1].type).toMatchObject({
      fields: [{ id: 4, name: 'town' }, { id: 5 }],
    });
    fails(NESTED, { kind: 'rename', column: 'address.city', to: 'zip' }).toThrow('already');
    fails(NESTED, { kind: 'rename', column: 'tags.element', to: 'tag' }).toThrow('fixed name');
  });

  test('drop: a column goes with its insides; parts of lists, maps and identifiers stay', () => {
    expect(apply(NESTED, { kind: 'drop', column: 'address' }).fields.map(({ name }) => name)).toEqual([
      'id',
      'tags',
      'labels',
    ]);
    fails(NESTED, { kind: 'drop', column: 'tags.element' }).toThrow('fixed name');
    fails(NESTED, { kind: 'drop', column: 'labels.key' }).toThrow('is a key of a map');
    fails({ ...NESTED, 'identifier-field-ids': [1] }, { kind: 'drop', column: 'id' }).toThrow('identifies rows');
  });

  test('promote: only to wider types (M23), also of an element', () => {
    const change = (column: string, type: string): SchemaChange => ({ kind: 'promote', column, type });
    expect(apply(NESTED, change('id', 'long')).fields[0].type).toBe('long');
    expect(apply(NESTED, change('tags.element', 'long')).fields[2].type).toMatchObject({ element: 'long' });
    fails(NESTED, change('id', 'string')).toThrow('cannot change');
    fails(NESTED, change('address', 'long')).toThrow('cannot change');
    fails(NESTED, change('labels.key', 'long')).toThrow('is a key of a map');
  });

  test('optional: columns, elements and values; never what identifies rows', () => {
    expect(apply(NESTED, { kind: 'optional', column: 'id' }).fields[0].required).toBe(false);
    expect(apply(NESTED, { kind: 'optional', column: 'tags.element' }).fields[2].type).toMatchObject({
      'element-required': false,
    });
    fails({ ...NESTED, 'identifier-field-ids': [1] }, { kind: 'optional', column: 'id' }).toThrow('identifies rows');
  });

  test('several: in order, each on what the one before left', () => {
    const { fields } = apply(SCHEMA, { kind: 'rename', column: 'v', to: 'w' }, add('v'), { kind: 'drop', column: 'w' });
    expect(fields.map(({ id, name }) => [id, name])).toEqual([
      [1, 'time'],
      [2, 'device'],
      [11, 'v'],
    ]);
  });

  test('name: a foreign schema’s dotted names may stand for more than one column', () => {
    const schema = { ...NESTED, fields: [...NESTED.fields, field(11, 'address.city', 'string')] };
    fails(schema, { kind: 'drop', column: 'address.city' }).toThrow('more than one');
  });
});
