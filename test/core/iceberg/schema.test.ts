import { describe, expect, it } from 'vitest';
import {
  assignFreshIds,
  canPromote,
  checkNewColumnNames,
  fieldById,
  fieldByName,
  fieldsById,
  highestFieldId,
  parseSchema,
  parseType,
  primitive,
  sameSchema,
} from '../../../src/core/iceberg/schema.ts';
import type { NestedField, Schema, Type } from '../../../src/core/iceberg/types.ts';

const field = (id: number, name: string, type: Type, required = false): NestedField => ({ id, name, required, type });
const struct = (...fields: NestedField[]): Type => ({ type: 'struct', fields });
const schema = (...fields: NestedField[]): Schema => ({ type: 'struct', 'schema-id': 0, fields });
const list = (id: number, element: Type): Type => ({
  type: 'list',
  'element-id': id,
  element,
  'element-required': false,
});
const map = (key: number, value: number, valueType: Type): Type => ({
  type: 'map',
  'key-id': key,
  key: 'string',
  'value-id': value,
  value: valueType,
  'value-required': false,
});

const nested = schema(
  field(1, 'id', 'long', true),
  field(2, 'where', struct(field(5, 'lat', 'double'), field(6, 'tags', list(7, 'string')))),
  field(3, 'labels', map(8, 9, struct(field(10, 'x', 'int')))),
  field(4, 'note', 'string'),
);

describe('parseSchema', () => {
  it('accepts nested types and gives them back unchanged', () => {
    expect(parseSchema(JSON.parse(JSON.stringify(nested)))).toEqual(nested);
  });

  it('writes decimal and fixed in the spelling of the reference writer', () => {
    expect(parseType('decimal(9,2)')).toBe('decimal(9, 2)');
    expect(parseType('fixed[16]')).toBe('fixed[16]');
    expect(primitive('decimal( 38 , 38 )')).toEqual({ name: 'decimal', precision: 38, scale: 38 });
  });

  it('refuses malformed input and names the place', () => {
    const bad: [unknown, string][] = [
      [null, 'schema'],
      [{ type: 'struct', fields: 3 }, 'schema.fields'],
      [{ type: 'struct', fields: [{ id: 1, name: 'a', required: 1, type: 'int' }] }, 'schema.fields[0].required'],
      [
        { type: 'struct', fields: [{ id: 1, name: 'a', required: true, type: 'decimal(39, 2)' }] },
        'schema.fields[0].type',
      ],
      [{ type: 'struct', fields: [{ id: -1, name: 'a', required: true, type: 'int' }] }, 'schema.fields[0].id'],
      [{ type: 'struct', fields: [{ id: 2147483448, name: 'a', required: true, type: 'int' }] }, 'schema.fields[0].id'],
      [
        { type: 'struct', fields: [{ id: 1, name: 'a', required: true, type: { type: 'list' } }] },
        'schema.fields[0].type.element-id',
      ],
    ];
    for (const [json, path] of bad) {
      expect(() => parseSchema(json), path).toThrow(
        expect.objectContaining({ kind: 'invalid', detail: expect.objectContaining({ path }) }),
      );
    }
  });

  it('names types of later format versions as such', () => {
    const later = schema(field(1, 't', 'timestamp_ns'));
    expect(() => parseSchema(later)).toThrow(expect.objectContaining({ type: 'unsupported-type' }));
    const defaulted = { ...later, fields: [{ ...field(1, 'a', 'int'), 'initial-default': 5 }] };
    expect(() => parseSchema(defaulted)).toThrow(expect.objectContaining({ type: 'unsupported-type' }));
  });

  it('refuses an id or a name that occurs twice', () => {
    expect(() => parseSchema(schema(field(1, 'a', 'int'), field(1, 'b', 'int')))).toThrow(/one id/);
    expect(() => parseSchema(schema(field(1, 'a', list(1, 'int'))))).toThrow(/one id/);
    expect(() => parseSchema(schema(field(1, 'a', 'int'), field(2, 'a', 'int')))).toThrow(/one name/);
  });

  it('bounds depth and number of fields', () => {
    let deep: Type = 'int';
    for (let i = 0; i < 40; i++) deep = list(100 + i, deep);
    expect(() => parseSchema(schema(field(1, 'a', deep)))).toThrow(/nested deeper/);
    const wide = Array.from({ length: 5_100 }, (_, i) => field(2 * i, `c${i}`, list(2 * i + 1, 'int')));
    expect(() => parseSchema(schema(...wide))).toThrow(/more than 10000 fields/);
  });

  it('M22: refuses identifier fields that cannot identify', () => {
    const base = schema(
      field(1, 'a', 'int', true),
      field(2, 'b', 'double', true),
      field(3, 'c', 'int'),
      field(4, 'd', struct(field(5, 'e', 'int', true)), false),
      field(6, 'f', { type: 'list', 'element-id': 7, element: 'int', 'element-required': true }, true),
    );
    expect(parseSchema({ ...base, 'identifier-field-ids': [1] })['identifier-field-ids']).toEqual([1]);
    for (const id of [2, 3, 5, 7, 4, 99]) {
      expect(() => parseSchema({ ...base, 'identifier-field-ids': [id] }), String(id)).toThrow(
        expect.objectContaining({ type: 'bad-schema' }),
      );
    }
  });

  it('B202: takes __proto__ and constructor as ordinary names', () => {
    const json = JSON.parse(
      '{"type":"struct","schema-id":1,"fields":[{"id":1,"name":"__proto__","required":false,"type":"int"},' +
        '{"id":2,"name":"constructor","required":false,"type":"int"}]}',
    );
    const parsed = parseSchema(json);
    expect(fieldByName(parsed, '__proto__')?.id).toBe(1);
    expect(fieldByName(parsed, 'constructor')?.id).toBe(2);
    expect(fieldByName(parsed, 'toString')).toBe(null);
    checkNewColumnNames(parsed);
  });
});

describe('fields', () => {
  it('are found by id at any depth, with their path', () => {
    expect(fieldById(nested, 6)?.name).toBe('tags');
    expect(fieldById(nested, 7)).toEqual({ id: 7, name: 'element', required: false, type: 'string' });
    expect(fieldById(nested, 77)).toBe(null);
    expect(fieldsById(nested).get(10)).toMatchObject({ path: 'labels.value.x', repeated: true, parent: 9 });
    expect(fieldsById(nested).get(5)).toMatchObject({ path: 'where.lat', repeated: false, required: false });
    expect(highestFieldId(nested)).toBe(10);
  });

  it('are found by exact name only', () => {
    expect(fieldByName(nested, 'note')?.id).toBe(4);
    expect(fieldByName(nested, 'Note')).toBe(null);
    expect(fieldByName(nested, 'lat')).toBe(null);
  });
});

describe('assignFreshIds', () => {
  it('numbers all fields of a struct before their insides, as the reference does', () => {
    const given = {
      ...schema(
        field(40, 'where', struct(field(41, 'lat', 'double'), field(42, 'tags', list(43, 'string'))), true),
        field(50, 'labels', map(51, 52, struct(field(53, 'x', 'int')))),
        field(60, 'id', 'long', true),
      ),
      'identifier-field-ids': [60],
    };
    const { schema: fresh, ids } = assignFreshIds(given);
    expect(fresh.fields.map((f) => f.id)).toEqual([1, 2, 3]);
    expect(fieldsById(fresh).get(4)?.path).toBe('where.lat');
    expect(fieldsById(fresh).get(5)?.path).toBe('where.tags');
    expect(fieldsById(fresh).get(6)?.path).toBe('where.tags.element');
    expect(fieldsById(fresh).get(7)?.path).toBe('labels.key');
    expect(fieldsById(fresh).get(8)?.path).toBe('labels.value');
    expect(fieldsById(fresh).get(9)?.path).toBe('labels.value.x');
    expect(fresh['identifier-field-ids']).toEqual([3]);
    expect(ids.get(53)).toBe(9);
    expect(given.fields[0].id).toBe(40);
  });

  it('accepts ids from zero, as some clients send them', () => {
    expect(assignFreshIds(parseSchema(schema(field(0, 'a', 'int'), field(1, 'b', 'int')))).schema.fields[0].id).toBe(1);
  });
});

describe('checkNewColumnNames', () => {
  const refuses = (...names: string[]) =>
    expect(
      () => checkNewColumnNames(schema(...names.map((name, i) => field(i + 1, name, 'int')))),
      names.join(),
    ).toThrow(expect.objectContaining({ type: 'bad-column-name' }));

  it('M25, B087: refuses names that differ by case alone', () => refuses('Id', 'id'));
  it('refuses empty, control, over-long and half-paired names', () => {
    refuses('');
    refuses('a\nb');
    refuses('x'.repeat(256));
    refuses('x\uD83D');
  });
  it('M25b, B204: refuses names of metadata columns', () => {
    refuses('_file');
    refuses('_POS');
    refuses('_row_id');
  });
  it('M25: refuses a dotted name that reads like a nested path', () => {
    const both = schema(field(1, 'a', struct(field(2, 'b', 'int'))), field(3, 'a.b', 'int'));
    expect(() => checkNewColumnNames(both)).toThrow(expect.objectContaining({ type: 'bad-column-name' }));
  });
  it('accepts spaces, dots, emoji and hash signs', () => {
    checkNewColumnNames(schema(field(1, 'order date', 'int'), field(2, 'price.€', 'int'), field(3, '😎#', 'int')));
  });
  it('leaves columns alone that were there before', () => {
    const old = schema(field(1, 'Id', 'int'), field(2, 'id', 'int'), field(3, '_file', 'int'));
    checkNewColumnNames(schema(...old.fields, field(4, 'fine', 'int')), old);
    expect(() => checkNewColumnNames(schema(...old.fields, field(4, 'ID', 'int')), old)).toThrow();
  });
});

describe('canPromote', () => {
  it('M23: allows the three promotions of version 2 and nothing else', () => {
    expect(canPromote('int', 'long')).toBe(true);
    expect(canPromote('float', 'double')).toBe(true);
    expect(canPromote('decimal(9, 2)', 'decimal(10, 2)')).toBe(true);
    expect(canPromote('string', 'string')).toBe(true);
    expect(canPromote('decimal(9, 2)', 'decimal(10, 3)')).toBe(false);
    expect(canPromote('decimal(9, 2)', 'decimal(8, 2)')).toBe(false);
    expect(canPromote('long', 'int')).toBe(false);
    expect(canPromote('int', 'double')).toBe(false);
    expect(canPromote('date', 'timestamp')).toBe(false);
    expect(canPromote('fixed[2]', 'fixed[3]')).toBe(false);
  });
});

describe('sameSchema', () => {
  it('compares fields and identifiers, not the schema id', () => {
    expect(sameSchema(nested, { ...nested, 'schema-id': 9 })).toBe(true);
    expect(sameSchema(nested, { ...nested, 'identifier-field-ids': [1] })).toBe(false);
    expect(sameSchema(nested, schema(...nested.fields.slice(1)))).toBe(false);
  });
  it('leaves field ids out on demand', () => {
    const { schema: fresh } = assignFreshIds(schema(field(7, 'a', 'int'), field(9, 'b', list(11, 'int'))));
    const other = schema(field(7, 'a', 'int'), field(9, 'b', list(11, 'int')));
    expect(sameSchema(fresh, other)).toBe(false);
    expect(sameSchema(fresh, other, { ignoreFieldIds: true })).toBe(true);
  });
});
