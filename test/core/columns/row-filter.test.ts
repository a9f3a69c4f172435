import { describe, expect, test } from 'vitest';
import { matchingRows } from '../../../src/core/columns/row-filter.ts';
import type { PrimitiveType, Value } from '../../../src/core/iceberg/types.ts';
import { columnsOf, schemaOf } from './rows.ts';

function matches(type: PrimitiveType, rows: Value[], values: Value[], entriesMax?: number): number[] {
  const columns = columnsOf(
    schemaOf([['v', type]]),
    rows.map((value) => [value]),
    entriesMax,
  );
  return [...matchingRows(columns, [{ fieldId: 1, type, values }])];
}

describe('rows that meet a filter', () => {
  test('of every kind of column: any of the values, null when it is asked for', () => {
    expect(matches('boolean', [true, null, false], [true])).toEqual([0]);
    expect(matches('int', [1, 2, null, 1], [1, null])).toEqual([0, 2, 3]);
    expect(matches('long', [2n ** 60n, 2n ** 60n + 1n, null], [2n ** 60n + 1n])).toEqual([1]);
    expect(matches('double', [Number.NaN, 0, -0, 1], [Number.NaN, 0])).toEqual([0, 1, 2]);
    expect(matches('decimal(9, 2)', [150, 151], [150n])).toEqual([0]);
    expect(matches('uuid', [new Uint8Array(16), new Uint8Array(16).fill(1)], [new Uint8Array(16).fill(1)])).toEqual([
      1,
    ]);
    expect(matches('string', ['a', 'b', null, 'a'], ['a', 'c'])).toEqual([0, 3]);
    expect(matches('string', ['a', 'b', null, 'a'], ['a', null], 1)).toEqual([0, 2, 3]);
    expect(matches('binary', [Uint8Array.of(1), Uint8Array.of(2)], [Uint8Array.of(2)])).toEqual([1]);
  });

  test('text of other writers that is no UTF-8 meets what it is shown as, and nothing else', () => {
    const values = { bytes: Uint8Array.of(0x61, 0xff, 0x61), offsets: Int32Array.of(0, 2, 3) };
    const schema = schemaOf([['v', 'string']]);
    const plain = { schema, rows: 2, columns: [{ kind: 'bytes' as const, values, validity: null }] };
    const column = { kind: 'dictionary' as const, codes: Int32Array.of(0, 1), dictionary: values, validity: null };
    for (const columns of [plain, { ...plain, columns: [column] }]) {
      const meet = (...texts: string[]) => [...matchingRows(columns, [{ fieldId: 1, type: 'string', values: texts }])];
      expect([meet('a'), meet('a\uFFFD'), meet('b')]).toEqual([[1], [0], []]);
    }
  });

  test('of several columns: all of them; a column that is not there is null', () => {
    const columns = columnsOf(
      schemaOf([
        ['a', 'string'],
        ['b', 'int'],
      ]),
      [
        ['x', 1],
        ['x', 2],
        ['y', 1],
      ],
    );
    const a = { fieldId: 1, type: 'string', values: ['x'] } as const;
    const b = { fieldId: 2, type: 'int', values: [1] } as const;
    expect([...matchingRows(columns, [a, b])]).toEqual([0]);
    expect([...matchingRows(columns, [])]).toEqual([0, 1, 2]);
    expect([...matchingRows(columns, [a, { ...b, fieldId: 9 }])]).toEqual([]);
    expect([...matchingRows(columns, [a, { ...b, fieldId: 9, values: [null] }])]).toEqual([0, 1]);
  });
});
