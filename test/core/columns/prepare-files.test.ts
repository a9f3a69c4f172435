import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countOf } from '../../../src/core/columns/columns.ts';
import { gather } from '../../../src/core/columns/gather.ts';
import {
  type Dedup,
  ordersByKey,
  type PrepareOptions,
  planFiles,
  prepareFiles,
} from '../../../src/core/columns/prepare-files.ts';
import { compareCodePoints } from '../../../src/core/iceberg/single-value.ts';
import type { PartitionSpec, SortField, SortOrder } from '../../../src/core/iceberg/types.ts';
import { columnsOf, rowsOf, schemaOf } from './rows.ts';

const schema = schemaOf([
  ['time', 'timestamptz'],
  ['device', 'string'],
  ['port', 'int'],
  ['value', 'int'],
  ['_ingest_ts', 'timestamptz'],
]);
type Row = [time: bigint | null, device: string | null, port: number | null, value: number, ingest: bigint | null];

const DAY = 86_400_000_000n;
const byDay: PartitionSpec = {
  'spec-id': 0,
  fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }],
};
const unpartitioned: PartitionSpec = { 'spec-id': 0, fields: [] };
const dedup: Dedup = { seriesIds: [2, 3], timeId: 1, ingestTimeId: 5 };

function orderBy(...fields: [id: number, direction?: SortField['direction']][]): SortOrder {
  return {
    'order-id': 1,
    fields: fields.map(([id, direction = 'asc']) => ({
      transform: 'identity',
      'source-id': id,
      direction,
      'null-order': 'nulls-first',
    })),
  };
}

const timelake = orderBy([2], [3], [1]);

function options(changes: Partial<PrepareOptions> = {}): PrepareOptions {
  return { spec: byDay, sortOrder: timelake, dedup, targetRows: 1e9, targetBytes: 1e12, ...changes };
}

/** All rows of all files, partition by partition. */
function prepared(rows: Row[], changes: Partial<PrepareOptions> = {}): unknown[][] {
  return prepareFiles(columnsOf(schema, rows), options(changes)).flatMap(({ columns }) => rowsOf(columns));
}

const row: fc.Arbitrary<Row> = fc.tuple(
  fc.option(fc.oneof(fc.bigInt({ min: -2n, max: 2n }), fc.bigInt({ min: -2n * DAY, max: 2n * DAY }))),
  fc.option(fc.constantFrom('a', 'b', '\uffff', '😀')),
  fc.option(fc.integer({ min: 0, max: 1 })),
  fc.nat(1000),
  fc.option(fc.bigInt({ min: 0n, max: 2n })),
);

/** Winners by a map over the key, the obvious way. */
function naiveWinners(rows: Row[]): Row[] {
  const winners = new Map<string, Row>();
  for (const candidate of rows) {
    const [time, device, port, , ingest] = candidate;
    const key = JSON.stringify([String(time), device, port]);
    const held = winners.get(key);
    if (held === undefined || (ingest ?? -1n) >= (held[4] ?? -1n)) winners.set(key, candidate);
  }
  return [...winners.values()];
}

function compareRows(a: unknown[], b: unknown[]): number {
  const compare = (x: unknown, y: unknown) => {
    if (x === null || y === null) return Number(x !== null) - Number(y !== null);
    if (typeof x === 'string') return compareCodePoints(x, y as string);
    return (x as bigint) < (y as bigint) ? -1 : (x as bigint) > (y as bigint) ? 1 : 0;
  };
  return compare(a[1], b[1]) || compare(a[2], b[2]) || compare(a[0], b[0]);
}

function dayOf(time: unknown): number | null {
  if (time === null) return null;
  return Number(((time as bigint) - ((((time as bigint) % DAY) + DAY) % DAY)) / DAY);
}

describe('prepare files', () => {
  test('prepare files: one partition a file, sorted, one winner a key, nothing else lost', () => {
    fc.assert(
      fc.property(fc.array(row, { maxLength: 40 }), (rows) => {
        const files = prepareFiles(columnsOf(schema, rows), options());
        for (const { tuple, columns } of files) {
          const held = rowsOf(columns);
          expect(held.map((values) => dayOf(values[0]))).toEqual(held.map(() => tuple[0]));
          expect([...held].sort(compareRows)).toEqual(held);
        }
        const expected = naiveWinners(rows);
        const all = files.flatMap(({ columns }) => rowsOf(columns));
        expect(all.length).toBe(expected.length);
        expect([...all].sort(compareRows)).toEqual([...expected].sort(compareRows));
        expect(planFiles(columnsOf(schema, rows), options()).duplicates).toBe(rows.length - expected.length);
        expect(new Set(files.map(({ tuple }) => tuple[0])).size).toBe(files.length);
      }),
      { numRuns: 300 },
    );
  });

  test('prepare files: any sort order and spec has the same winners as the one made for them', () => {
    const specs: PartitionSpec[] = [
      unpartitioned,
      byDay,
      { 'spec-id': 1, fields: [{ 'source-id': 4, 'field-id': 1000, name: 'value_trunc', transform: 'truncate[100]' }] },
    ];
    const orders = [timelake, orderBy([1, 'desc'], [3], [2]), orderBy([4]), orderBy(), orderBy([2], [3], [1], [4])];
    fc.assert(
      fc.property(
        fc.array(row, { maxLength: 30 }),
        fc.constantFrom(...specs),
        fc.constantFrom(...orders),
        (rows, spec, sortOrder) => {
          const all = prepared(rows, { spec, sortOrder });
          expect(all.sort(compareRows)).toEqual(naiveWinners(rows).sort(compareRows));
        },
      ),
      { numRuns: 300 },
    );
  });

  test('dedup: the latest ingest time wins, whatever came last', () => {
    const rows: Row[] = [
      [0n, 'a', 1, 1, 5n],
      [0n, 'a', 1, 2, 9n],
      [0n, 'a', 1, 3, 7n],
      [0n, 'a', 1, 4, null],
    ];
    expect(prepared(rows)).toEqual([rows[1]]);
  });

  test('dedup: of equal or no ingest times the last row wins (B196)', () => {
    const rows: Row[] = [
      [5n, 'a', 1, 1, 9n],
      [5n, 'a', 1, 2, 9n],
      [7n, 'a', 1, 3, null],
      [7n, 'a', 1, 4, null],
    ];
    expect(prepared(rows)).toEqual([rows[1], rows[3]]);
    expect(prepared(rows, { dedup: { ...dedup, ingestTimeId: null } })).toEqual([rows[1], rows[3]]);
    const older: Row[] = [
      [5n, 'a', 1, 1, 9n],
      [5n, 'a', 1, 2, 1n],
    ];
    expect(prepared(older, { dedup: { ...dedup, ingestTimeId: null } })).toEqual([older[1]]);
  });

  test('dedup: null in a key equals null, and nothing else (B100)', () => {
    const rows: Row[] = [
      [1n, 'a', null, 1, 1n],
      [1n, 'a', null, 2, 1n],
      [1n, 'a', 0, 3, 1n],
      [1n, null, null, 4, 1n],
      [1n, null, null, 5, 1n],
      [null, null, null, 6, 1n],
      [null, null, null, 7, 1n],
    ];
    expect(prepared(rows, { spec: unpartitioned }).map((values) => values[3])).toEqual([7, 5, 2, 3]);
  });

  test('dedup: a key whose rows fall into two partitions still has one winner (B099)', () => {
    const spec: PartitionSpec = {
      'spec-id': 0,
      fields: [{ 'source-id': 4, 'field-id': 1000, name: 'value', transform: 'identity' }],
    };
    const rows: Row[] = [
      [1n, 'a', 0, 1, 1n],
      [1n, 'a', 0, 2, 2n],
      [2n, 'a', 0, 1, 1n],
    ];
    const files = prepareFiles(columnsOf(schema, rows), options({ spec }));
    expect(files.map(({ tuple, columns }) => [tuple, rowsOf(columns)])).toEqual([
      [[1], [rows[2]]],
      [[2], [rows[1]]],
    ]);
  });

  test('dedup: off, every row stays, in input order among equals', () => {
    const rows: Row[] = [
      [1n, 'a', 0, 1, 1n],
      [1n, 'a', 0, 2, 2n],
      [0n, 'a', 0, 3, 2n],
      [1n, 'a', 0, 4, 0n],
    ];
    expect(prepared(rows, { dedup: undefined })).toEqual([rows[2], rows[0], rows[1], rows[3]]);
  });

  test('prepare files: rolled over at a number of rows, without losing any', () => {
    const rows = Array.from({ length: 25 }, (_, i): Row => [BigInt(i % 5) * DAY, `d${i}`, 0, i, 1n]);
    const { files } = planFiles(columnsOf(schema, rows), options({ targetRows: 2 }));
    expect(files.map(({ rowIndexes }) => rowIndexes.length)).toEqual([0, 1, 2, 3, 4].flatMap(() => [2, 2, 1]));
    expect(files.map(({ tuple }) => tuple[0])).toEqual([0, 1, 2, 3, 4].flatMap((day) => [day, day, day]));
    expect(new Set(files.flatMap(({ rowIndexes }) => [...rowIndexes])).size).toBe(25);
  });

  test('prepare files: rolled over by bytes, so that huge rows do not gather (B103)', () => {
    const text = 'x'.repeat(40_000);
    const rows = Array.from(
      { length: 10 },
      (_, i): Row => [BigInt(i), i % 2 === 0 ? `${i}${text}` : 'small', i, i, 1n],
    );
    for (const limit of [0, 1000]) {
      const { files } = planFiles(columnsOf(schema, rows, limit), options({ targetBytes: 100_000 }));
      expect(files.map(({ rowIndexes }) => rowIndexes.length)).toEqual([2, 2, 6]);
      const alone = planFiles(columnsOf(schema, rows, limit), options({ targetBytes: 10_000 }));
      expect(alone.files.map(({ rowIndexes }) => rowIndexes.length)).toEqual([1, 1, 1, 1, 1, 5]);
    }
  });

  test('prepare files: files of a plan hold only their own dictionary entries', () => {
    const rows = Array.from({ length: 6 }, (_, i): Row => [BigInt(i) * DAY, `d${i}`, 0, i, 1n]);
    const columns = columnsOf(schema, rows);
    for (const { rowIndexes } of planFiles(columns, options()).files) {
      const [, device] = gather(columns, rowIndexes).columns;
      expect(device.kind === 'dictionary' && countOf(device.dictionary)).toBe(1);
    }
  });

  test('prepare files: a partition by another column than the key may part rows of one key, a void one does not', () => {
    const by = (...transforms: string[]): PartitionSpec => ({
      'spec-id': 0,
      fields: transforms.map((transform, i) => ({ 'source-id': 4, 'field-id': 1000 + i, name: `p${i}`, transform })),
    });
    expect(ordersByKey(by('void'), timelake, dedup)).toBe(true);
    expect(ordersByKey(by('void', 'identity'), timelake, dedup)).toBe(false);
  });

  test('prepare files: no rows, no files', () => {
    expect(planFiles(columnsOf(schema, []), options())).toEqual({ files: [], duplicates: 0 });
  });

  test('prepare files: dedup by a column that is not there is refused', () => {
    const columns = columnsOf(schema, [[0n, 'a', 1, 1, 1n]]);
    expect(() => planFiles(columns, options({ dedup: { ...dedup, timeId: 77 } }))).toThrow('does not have: 77');
    expect(() => planFiles(columns, options({ dedup: { ...dedup, ingestTimeId: 78 } }))).toThrow('does not have: 78');
  });
});
