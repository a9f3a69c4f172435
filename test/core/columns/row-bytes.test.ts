import { expect, test } from 'vitest';
import { slice } from '../../../src/core/columns/gather.ts';
import { byteSizeOf, rowBytesBound, rowBytesOf } from '../../../src/core/columns/row-bytes.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { columnsOf, schemaOf } from './rows.ts';

test('row bytes: fixed widths, validity of columns with nulls, and the text of each row', () => {
  const schema = schemaOf([
    ['i', 'int'],
    ['l', 'long'],
    ['u', 'uuid'],
    ['s', 'string'],
    ['f', 'boolean'],
  ]);
  const rows = [
    [1, 1n, new Uint8Array(16), 'four', true],
    [1, null, new Uint8Array(16), '€', true],
  ];
  for (const limit of [0, 10]) {
    expect(Array.from(rowBytesOf(columnsOf(schema, rows, limit)))).toEqual([4 + 9 + 16 + 8 + 1, 4 + 9 + 16 + 7 + 1]);
  }
});

test('row bytes: no row is above the bound, which the row of the longest texts reaches', () => {
  const schema = schemaOf([
    ['l', 'long'],
    ['f', 'float'],
    ['u', 'uuid'],
    ['s', 'string'],
    ['b', 'binary'],
    ['o', 'boolean'],
  ]);
  const uuid = new Uint8Array(16);
  const rows = [
    [1n, 1, uuid, 'longest', new Uint8Array(9), true],
    [null, 2, uuid, 's', new Uint8Array(1), false],
    [3n, 3, uuid, null, new Uint8Array(3), true],
  ];
  for (const limit of [0, 10]) {
    const columns = columnsOf(schema, rows, limit);
    expect(Math.max(...rowBytesOf(columns))).toBe(rowBytesBound(columns));
  }
  const tags: Type = { type: 'list', 'element-id': 9, element: 'string', 'element-required': false };
  expect(rowBytesBound(columnsOf(schemaOf([['t', tags]]), [[['a']]]))).toBe(Number.POSITIVE_INFINITY);
});

test('row bytes: larger nested values count more', () => {
  const tags: Type = { type: 'list', 'element-id': 9, element: 'string', 'element-required': false };
  const [small, large, none] = rowBytesOf(columnsOf(schemaOf([['t', tags]]), [[['a']], [['a'.repeat(5000)]], [null]]));
  expect(large - small).toBe(4999);
  expect(none).toBeLessThan(small);
});

test('byte size: what the arrays hold, a dictionary once', () => {
  const schema = schemaOf([
    ['l', 'long'],
    ['s', 'string'],
  ]);
  const columns = columnsOf(
    schema,
    Array.from({ length: 100 }, () => [1n, 'same']),
  );
  expect(byteSizeOf(columns)).toBe(800 + 400 + 4 + 8);
  expect(byteSizeOf(slice(columns, 0, 10))).toBe(80 + 40 + 4 + 8);
});
