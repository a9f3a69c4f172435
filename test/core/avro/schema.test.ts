import { describe, expect, test } from 'vitest';
import { type AvroRecord, minimumBytes, parseSchema } from '../../../src/core/avro/schema.ts';
import { SluiceError } from '../../../src/core/base/errors.ts';

function problem(schema: unknown): SluiceError {
  try {
    parseSchema(schema);
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
  throw new Error('the schema was accepted');
}

const record = (name: string, ...fields: unknown[]) => ({ type: 'record', name, fields });

describe('schema: reading', () => {
  test('field ids: kept, and null where there are none', () => {
    const schema = record('r', { name: 'a', type: 'int', 'field-id': 7 }, { name: 'b', type: 'int' });
    expect((parseSchema(schema) as AvroRecord).fields.map((field) => field.id)).toEqual([7, null]);
  });

  test('a name in a namespace: found from inside it by its short name, from outside by the full one', () => {
    const inner = { type: 'fixed', name: 'id', size: 4 };
    const schema = record(
      'outer',
      { name: 'a', type: { ...record('a.b.c', { name: 'x', type: inner }, { name: 'y', type: 'id' }) } },
      { name: 'z', type: 'a.b.id' },
    );
    const { fields } = parseSchema(schema) as AvroRecord;
    const nested = (fields[0].type as AvroRecord).fields;
    expect(nested[1].type).toBe(nested[0].type);
    expect(fields[1].type).toBe(nested[0].type);
  });

  test('a type wrapped in a further object: taken as it is', () => {
    expect(parseSchema({ type: { type: { type: 'long', logicalType: 'time-micros' } } })).toEqual({ kind: 'long' });
  });

  test('names outside the grammar: accepted, since readers go by id (B091)', () => {
    expect((parseSchema(record('r', { name: 'price.€', type: 'int' })) as AvroRecord).fields[0].name).toBe('price.€');
  });

  test.each([
    ['an unknown type', 'integer'],
    ['null', null],
    ['a number', 5],
    ['a record without name', { type: 'record', fields: [] }],
    ['a record without fields', { type: 'record', name: 'r' }],
    ['a field without name', record('r', { type: 'int' })],
    ['a field without type', record('r', { name: 'a' })],
    ['a field twice', record('r', { name: 'a', type: 'int' }, { name: 'a', type: 'int' })],
    ['a field id that is no integer', record('r', { name: 'a', type: 'int', 'field-id': '7' })],
    ['a name defined twice', record('r', { name: 'a', type: record('r') })],
    ['an enum without symbols', { type: 'enum', name: 'e' }],
    ['a fixed of negative size', { type: 'fixed', name: 'f', size: -1 }],
    ['a fixed whose size is an object without text', { type: 'fixed', name: 'f', size: { toString: 1 } }],
    ['an array without items', { type: 'array' }],
    ['an empty union', []],
    ['a union in a union', ['null', ['int']]],
    ['a union with one type twice', ['int', 'int']],
  ])('%s: corrupt', (_what, schema) => {
    expect(problem(schema)).toMatchObject({ kind: 'corrupt', type: 'avro-corrupt' });
  });

  test('nesting and size beyond the bounds: corrupt, not a stack overflow or a long wait', () => {
    let deep: unknown = 'int';
    for (let i = 0; i < 100_000; i++) deep = { type: 'array', items: deep };
    expect(problem(deep).message).toContain('nested deeper than');
    const wide = record('r', ...Array.from({ length: 20_000 }, (_, i) => ({ name: `f${i}`, type: 'int' })));
    expect(problem(wide).message).toContain('more types than');
  });
});

describe('schema: fewest bytes', () => {
  test.each([
    ['null', 0],
    ['long', 1],
    ['double', 8],
    [{ type: 'fixed', name: 'f', size: 16 }, 16],
    [{ type: 'array', items: 'null' }, 1],
    [['null', 'double'], 1],
    [['float', 'double'], 5],
    [record('r', { name: 'a', type: 'int' }, { name: 'b', type: 'float' }, { name: 'c', type: 'null' }), 5],
    [record('r', { name: 'a', type: ['null', 'r'] }), 1],
  ])('%j: %i', (schema, bytes) => {
    expect(minimumBytes(parseSchema(schema))).toBe(bytes);
  });
});
