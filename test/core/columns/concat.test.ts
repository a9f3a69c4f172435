import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countOf } from '../../../src/core/columns/columns.ts';
import { concat } from '../../../src/core/columns/concat.ts';
import type { NestedField, Schema, Type } from '../../../src/core/iceberg/types.ts';
import { columnsOf, everyKind, rowsOf, schemaOf } from './rows.ts';

function withFields(fields: NestedField[], schemaId = 1): Schema {
  return { type: 'struct', 'schema-id': schemaId, fields };
}

function optional(id: number, name: string, type: Type): NestedField {
  return { id, name, required: false, type };
}

describe('concat', () => {
  test('concat: rows of every kind follow each other, dictionaries are merged', () => {
    fc.assert(
      fc.property(
        fc.array(fc.tuple(fc.array(everyKind.row, { maxLength: 12 }), fc.nat(6)), { maxLength: 5 }),
        fc.nat(8),
        (parts, limit) => {
          const built = parts.map(([rows, entries]) => columnsOf(everyKind.schema, rows, entries));
          const joined = concat(built, everyKind.schema, limit);
          expect(rowsOf(joined)).toEqual(parts.flatMap(([rows]) => rows));
          expect(joined.rows).toBe(parts.flatMap(([rows]) => rows).length);
        },
      ),
    );
  });

  test('concat: equal texts of two parts share one dictionary entry', () => {
    const schema = schemaOf([['s', 'string']]);
    const joined = concat([columnsOf(schema, [['a'], ['b']]), columnsOf(schema, [['b'], [null], ['c']])], schema);
    const [column] = joined.columns;
    expect(column.kind === 'dictionary' && countOf(column.dictionary)).toBe(3);
    expect(column.kind === 'dictionary' && [...column.codes]).toEqual([0, 1, 1, -1, 2]);
    expect(rowsOf(joined)).toEqual([['a'], ['b'], ['b'], [null], ['c']]);
  });

  test('concat: more distinct texts than a dictionary may hold become bytes', () => {
    const schema = schemaOf([['s', 'string']]);
    const parts = [columnsOf(schema, [['a'], ['b']]), columnsOf(schema, [['c'], [null]])];
    expect(concat(parts, schema, 3).columns[0].kind).toBe('dictionary');
    const joined = concat(parts, schema, 2);
    expect(joined.columns[0].kind).toBe('bytes');
    expect(rowsOf(joined)).toEqual([['a'], ['b'], ['c'], [null]]);
  });

  test('concat: columns are matched by field id, whatever they are called and wherever they stand (B033)', () => {
    const old = withFields([optional(1, 'a', 'int'), optional(2, 'b', 'string'), optional(3, 'c', 'int')], 0);
    const now = withFields([optional(3, 'renamed', 'int'), optional(4, 'b', 'string'), optional(1, 'a', 'int')]);
    const joined = concat([columnsOf(old, [[1, 'x', 10]]), columnsOf(now, [[20, 'new', 2]])], now);
    expect(rowsOf(joined)).toEqual([
      [10, null, 1],
      [20, 'new', 2],
    ]);
    expect(joined.schema).toBe(now);
  });

  test('concat: a single old part is aligned too', () => {
    const old = schemaOf([['a', 'int']], 0);
    const now = withFields([
      optional(1, 'a', 'long'),
      optional(2, 'b', 'string'),
      optional(9, 'tags', { type: 'list', 'element-id': 10, element: 'int', 'element-required': false }),
    ]);
    expect(rowsOf(concat([columnsOf(old, [[-1], [null], [7]])], now))).toEqual([
      [-1n, null, null],
      [null, null, null],
      [7n, null, null],
    ]);
  });

  test.each([
    ['int', 'long', [0, -1, 2147483647, -2147483648], [0n, -1n, 2147483647n, -2147483648n]],
    ['float', 'double', [0.5, -0, Number.POSITIVE_INFINITY], [0.5, -0, Number.POSITIVE_INFINITY]],
    ['decimal(4,2)', 'decimal(9, 2)', [-9999, 9999], [-9999, 9999]],
    ['decimal(9,2)', 'decimal(18,2)', [-999999999, 999999999], [-999999999n, 999999999n]],
  ])('concat: %s is promoted to %s', (from, to, values, expected) => {
    const joined = concat(
      [
        columnsOf(schemaOf([['a', from]], 0), [[null], ...values.map((v) => [v])]),
        columnsOf(schemaOf([['a', to]], 1), [[expected[0]]]),
      ],
      schemaOf([['a', to]], 1),
    );
    expect(rowsOf(joined).map(([v]) => v)).toEqual([null, ...expected, expected[0]]);
  });

  test.each([
    ['decimal(9,0)', -2],
    ['decimal(9,0)', 999_999_999],
    ['decimal(18,0)', -2n],
    ['decimal(18,0)', 999_999_999_999_999_999n],
  ])('concat: %s of %s widens to sign-extended big-endian bytes', (from, value) => {
    const joined = concat([columnsOf(schemaOf([['a', from]]), [[value]])], schemaOf([['a', 'decimal(38,0)']]));
    const expected = new Uint8Array(16);
    new DataView(expected.buffer).setBigInt64(0, BigInt(value) < 0n ? -1n : 0n);
    new DataView(expected.buffer).setBigInt64(8, BigInt(value));
    expect(rowsOf(joined)).toEqual([[expected]]);
  });

  test('concat: wide decimals grow wider', () => {
    const nine = Uint8Array.of(0xff, 0, 0, 0, 0, 0, 0, 0, 1);
    const joined = concat(
      [columnsOf(schemaOf([['a', 'decimal(20,0)']]), [[nine]])],
      schemaOf([['a', 'decimal(38,0)']]),
    );
    expect(rowsOf(joined)).toEqual([[Uint8Array.of(255, 255, 255, 255, 255, 255, 255, ...nine)]]);
  });

  test.each([
    ['long', 'int', 1n],
    ['string', 'int', 'x'],
    ['string', 'binary', 'x'],
    ['int', 'date', 1],
    ['decimal(9,2)', 'decimal(9,3)', 1],
    ['decimal(9,2)', 'decimal(8,2)', 1],
    ['timestamp', 'timestamptz', 1n],
  ])('concat: %s is not promoted to %s', (from, to, value) => {
    const part = columnsOf(schemaOf([['a', from]]), [[value]]);
    expect(() => concat([part], schemaOf([['a', to]]))).toThrow('cannot take values of type');
  });

  test('concat: rows without a value for a column that is required by now are refused, naming column and row (B028)', () => {
    const old = schemaOf([['a', 'int']], 0);
    const now = withFields([optional(1, 'a', 'int'), { id: 2, name: 'b', required: true, type: 'int' }]);
    const parts = [columnsOf(now, [[1, 1]]), columnsOf(old, [[1]])];
    expect(() => concat(parts, now)).toThrow('column b is required and null in row 1');
    expect(rowsOf(concat(parts.slice(0, 1), now))).toEqual([[1, 1]]);
  });

  test('concat: nested values follow renamed, new and promoted fields', () => {
    const struct = (fields: NestedField[]): Type => ({ type: 'struct', fields });
    const list = (element: Type): Type => ({ type: 'list', 'element-id': 5, element, 'element-required': false });
    const map = (value: Type): Type => ({
      type: 'map',
      'key-id': 6,
      key: 'string',
      'value-id': 7,
      value,
      'value-required': false,
    });
    const old = schemaOf(
      [
        [
          's',
          struct([optional(10, 'x', 'int'), optional(11, 'gone', 'string'), optional(12, '__proto__', list('int'))]),
        ],
        ['m', map('int')],
        ['same', list('string')],
      ],
      0,
    );
    const now = schemaOf(
      [
        [
          's',
          struct([optional(12, 'y', list('long')), optional(13, 'new', 'string'), optional(10, '__proto__', 'long')]),
        ],
        ['m', map('long')],
        ['same', list('string')],
      ],
      1,
    );
    const oldStruct = JSON.parse('{"x":1,"gone":"g","__proto__":[1,null]}');
    const rows = [
      [oldStruct, new Map([['k', 1]]), ['a']],
      [null, { k: 2 }, null],
      [{ x: null }, [{ key: 'k', value: 3 }], []],
    ];
    const [first, second, third] = rowsOf(concat([columnsOf(old, rows)], now));
    expect(Object.entries(first[0] as object)).toEqual([
      ['y', [1n, null]],
      ['new', null],
      ['__proto__', 1n],
    ]);
    expect([first[1], second[1], third[1]]).toEqual([new Map([['k', 1n]]), { k: 2n }, [{ key: 'k', value: 3n }]]);
    expect([first[2], second[2], third[2]]).toEqual([['a'], null, []]);
    expect(second[0]).toBe(null);
    expect(Object.entries(third[0] as object)).toEqual([
      ['y', null],
      ['new', null],
      ['__proto__', null],
    ]);
  });

  test('concat: no parts, and parts without rows', () => {
    expect(rowsOf(concat([], everyKind.schema))).toEqual([]);
    const empty = columnsOf(everyKind.schema, []);
    expect(concat([empty, empty], everyKind.schema).columns.map((column) => column.kind)).toEqual(
      empty.columns.map((column) => column.kind),
    );
  });
});
