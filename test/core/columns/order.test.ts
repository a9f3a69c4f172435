import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { sortKeysOf, sortRows } from '../../../src/core/columns/order.ts';
import { valueAt } from '../../../src/core/columns/value.ts';
import { compareValues } from '../../../src/core/iceberg/single-value.ts';
import { resultType, transformOf } from '../../../src/core/iceberg/transform.ts';
import type { PrimitiveType, SortField, SortOrder } from '../../../src/core/iceberg/types.ts';
import { columnsOf, everyKind, rowsOf, schemaOf } from './rows.ts';

function orderOf(...fields: [id: number, ...rest: string[]][]): SortOrder {
  return {
    'order-id': 1,
    fields: fields.map(([id, direction = 'asc', nulls = 'nulls-first', transform = 'identity']) => ({
      transform,
      'source-id': id,
      direction: direction as SortField['direction'],
      'null-order': nulls as SortField['null-order'],
    })),
  };
}

/** The slow, obvious sort: stable, by comparing single values. */
function naiveOrder(columns: Columns, order: SortOrder): number[] {
  const keys = order.fields.map((field) => {
    const place = columns.schema.fields.findIndex(({ id }) => id === field['source-id']);
    const type = columns.schema.fields[place].type as PrimitiveType;
    const apply = transformOf(field.transform, type);
    const values = Array.from({ length: columns.rows }, (_, row) => apply(valueAt(columns.columns[place], type, row)));
    return { field, values, type: resultType(field.transform, type) };
  });
  return Array.from({ length: columns.rows }, (_, row) => row).sort((a, b) => {
    for (const { field, values, type } of keys) {
      const [x, y] = [values[a], values[b]];
      if (x === null || y === null) {
        if (x === y) continue;
        return (x === null) === (field['null-order'] === 'nulls-first') ? -1 : 1;
      }
      const difference = compareValues(type, x, y);
      if (difference !== 0) return field.direction === 'asc' ? difference : -difference;
    }
    return 0;
  });
}

function sorted(columns: Columns, order: SortOrder): number[] {
  return Array.from(sortRows(columns.rows, sortKeysOf(columns, order)));
}

const sortable = everyKind.schema.fields.filter((field) => typeof field.type === 'string').map((field) => field.id);
const sortFields = fc.uniqueArray(
  fc.record({
    transform: fc.constant('identity'),
    'source-id': fc.constantFrom(...sortable),
    direction: fc.constantFrom('asc' as const, 'desc' as const),
    'null-order': fc.constantFrom('nulls-first' as const, 'nulls-last' as const),
  }),
  { maxLength: 4, selector: (field) => field['source-id'] },
);

describe('order', () => {
  test('order: any keys over every type, both directions and null orders, as a comparing stable sort', () => {
    fc.assert(
      fc.property(fc.array(everyKind.row, { maxLength: 30 }), sortFields, fc.nat(6), (rows, fields, limit) => {
        const columns = columnsOf(everyKind.schema, rows, limit);
        const order = { 'order-id': 1, fields };
        expect(sorted(columns, order)).toEqual(naiveOrder(columns, order));
      }),
      { numRuns: 500 },
    );
  });

  test.each([1, 2, 3])('order: thousands of rows with many ties (seed %d)', (seed) => {
    const schema = schemaOf([
      ['device', 'string'],
      ['time', 'timestamptz'],
      ['value', 'double'],
      ['n', 'int'],
    ]);
    const row = fc.tuple(
      fc.option(fc.constantFrom('a', 'b', '\uffff', '😀', 'aa')),
      fc.option(fc.oneof(fc.bigInt({ min: -5n, max: 5n }), fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }))),
      fc.option(fc.double()),
      fc.option(fc.integer({ min: -3, max: 3 })),
    );
    const columns = columnsOf(schema, fc.sample(row, { seed, numRuns: 5000 }));
    for (const order of [
      orderOf([1], [2]),
      orderOf([4, 'desc', 'nulls-last'], [1, 'desc', 'nulls-first'], [2, 'asc', 'nulls-last']),
      orderOf([3, 'desc', 'nulls-last'], [4]),
      orderOf([2, 'desc', 'nulls-first']),
    ]) {
      expect(sorted(columns, order)).toEqual(naiveOrder(columns, order));
    }
  });

  test('order: texts go by code point, not by UTF-16 unit (B003)', () => {
    const texts = ['\uffff', '😀', '\ue000', 'z', '\u{10ffff}', '\ud7ff', 'é', ''];
    for (const limit of [0, 100]) {
      const columns = columnsOf(
        schemaOf([['s', 'string']]),
        texts.map((text) => [text]),
        limit,
      );
      expect(columns.columns[0].kind).toBe(limit === 0 ? 'bytes' : 'dictionary');
      expect(sorted(columns, orderOf([1])).map((row) => texts[row])).toEqual([
        '',
        'z',
        'é',
        '\ud7ff',
        '\ue000',
        '\uffff',
        '😀',
        '\u{10ffff}',
      ]);
    }
    expect([...texts].sort()).not.toEqual(['', 'z', 'é', '\ud7ff', '\ue000', '\uffff', '😀', '\u{10ffff}']);
  });

  test('order: times before 1970 and the extremes of int64 (B043, B047)', () => {
    const times = [
      0n,
      -1n,
      2n ** 63n - 1n,
      -(2n ** 63n),
      1n,
      2n ** 53n + 1n,
      -(2n ** 53n) - 1n,
      2n ** 32n,
      -(2n ** 32n),
    ];
    const columns = columnsOf(
      schemaOf([['t', 'timestamptz']]),
      times.map((time) => [time]),
    );
    const ascending = [...times].sort((a, b) => (a < b ? -1 : 1));
    expect(sorted(columns, orderOf([1])).map((row) => times[row])).toEqual(ascending);
    expect(sorted(columns, orderOf([1, 'desc'])).map((row) => times[row])).toEqual(ascending.reverse());
  });

  test('order: decimals wider than int64 go by value, also below zero', () => {
    const values = [1n, -1n, 10n ** 37n, -(10n ** 37n), 0n];
    const bytes = (value: bigint) =>
      Uint8Array.from({ length: 16 }, (_, i) => Number((BigInt.asUintN(128, value) >> BigInt(8 * (15 - i))) & 255n));
    const columns = columnsOf(
      schemaOf([['d', 'decimal(38,0)']]),
      values.map((value) => [bytes(value)]),
    );
    expect(sorted(columns, orderOf([1])).map((row) => values[row])).toEqual([-(10n ** 37n), -1n, 0n, 1n, 10n ** 37n]);
  });

  test('order: -0 comes before 0, NaN after Infinity, in either width', () => {
    const values = [Number.NaN, 0, -0, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -1, 1];
    for (const type of ['float', 'double']) {
      const columns = columnsOf(
        schemaOf([['f', type]]),
        values.map((value) => [value]),
      );
      expect(sorted(columns, orderOf([1])).map((row) => values[row])).toEqual([
        Number.NEGATIVE_INFINITY,
        -1,
        -0,
        0,
        1,
        Number.POSITIVE_INFINITY,
        Number.NaN,
      ]);
    }
  });

  test('order: rows with equal keys keep their order, in descending order too', () => {
    const columns = columnsOf(
      schemaOf([
        ['k', 'int'],
        ['i', 'int'],
      ]),
      [
        [2, 0],
        [1, 1],
        [2, 2],
        [null, 3],
        [1, 4],
        [null, 5],
      ],
    );
    expect(sorted(columns, orderOf([1]))).toEqual([3, 5, 1, 4, 0, 2]);
    expect(sorted(columns, orderOf([1, 'desc', 'nulls-last']))).toEqual([0, 2, 1, 4, 3, 5]);
    expect(sorted(columns, orderOf())).toEqual([0, 1, 2, 3, 4, 5]);
  });

  test('order: rows that arrive in order, altogether or by the last keys only', () => {
    const schema = schemaOf([
      ['device', 'string'],
      ['time', 'timestamptz'],
    ]);
    const byTime = Array.from({ length: 300 }, (_, i) => [`d${(i * 7) % 10}`, BigInt(i) * 2n ** 34n]);
    const columns = columnsOf(schema, byTime);
    const order = orderOf([1], [2]);
    expect(sorted(columns, order)).toEqual(naiveOrder(columns, order));
    const inOrder = columnsOf(
      schema,
      naiveOrder(columns, order).map((row) => rowsOf(columns)[row]),
    );
    expect(sorted(inOrder, order)).toEqual(byTime.map((_, i) => i));
  });

  test('order: a dictionary that holds a text twice does not tell its rows apart', () => {
    const columns = columnsOf(
      schemaOf([
        ['s', 'string'],
        ['n', 'int'],
      ]),
      [
        ['b', 2],
        ['a', 1],
        ['b', 1],
      ],
    );
    const bytes = new TextEncoder().encode('bab');
    columns.columns[0] = {
      kind: 'dictionary',
      codes: Int32Array.of(2, 1, 0),
      dictionary: { bytes, offsets: Int32Array.of(0, 1, 2, 3) },
      validity: null,
    };
    expect(sorted(columns, orderOf([1], [2]))).toEqual([1, 2, 0]);
  });

  test('order: transforms of the sort order are applied', () => {
    const columns = columnsOf(
      schemaOf([
        ['t', 'timestamptz'],
        ['s', 'string'],
        ['n', 'long'],
      ]),
      Array.from({ length: 60 }, (_, i) => [
        BigInt((i * 37) % 60) * 3_600_000_000n - 10n ** 11n,
        i % 7 === 0 ? null : `text ${i % 11}`,
        BigInt(i) - 30n,
      ]),
    );
    for (const order of [
      orderOf([1, 'desc', 'nulls-last', 'day'], [3]),
      orderOf([2, 'asc', 'nulls-last', 'bucket[4]']),
      orderOf([2, 'desc', 'nulls-first', 'truncate[6]'], [3, 'asc', 'nulls-first', 'truncate[10]']),
    ]) {
      expect(sorted(columns, order)).toEqual(naiveOrder(columns, order));
    }
  });

  test('order: keys no row can be ordered by are refused', () => {
    const columns = columnsOf(everyKind.schema, []);
    expect(() => sortKeysOf(columns, orderOf([99]))).toThrow('does not have: 99');
    expect(() => sortKeysOf(columns, orderOf([10]))).toThrow('list');
    expect(() =>
      sortRows(0, [
        {
          column: columns.columns[9],
          type: everyKind.schema.fields[9].type,
          direction: 'asc',
          nullOrder: 'nulls-first',
        },
      ]),
    ).toThrow('lists');
  });
});
