import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { slice } from '../../../src/core/columns/gather.ts';
import type { SortOrder } from '../../../src/core/iceberg/types.ts';
import { type MergeBy, Merger } from '../../../src/core/maintain/merge.ts';
import { columnsOf, rowsOf, schemaOf } from '../columns/rows.ts';

const SCHEMA = schemaOf([
  ['time', 'timestamptz'],
  ['device', 'string'],
  ['level', 'double'],
  ['ingest', 'timestamptz'],
  ['v', 'long'],
  ['x', 'double'],
]);

/** [time, device, level, ingest, v, x]; the key is (device, level, time). */
type Row = [bigint, string | null, number | null, bigint, bigint, number | null];

const ORDER: SortOrder = {
  'order-id': 1,
  fields: [2, 3, 1].map((id) => ({
    transform: 'identity',
    'source-id': id,
    direction: 'asc',
    'null-order': 'nulls-first',
  })),
};

const DEDUP: MergeBy = { schema: SCHEMA, order: ORDER, dedup: { ingestTimeId: 4 } };
const KEEP: MergeBy = { schema: SCHEMA, order: ORDER, dedup: 'none' };

// The order of the model, from nothing of the product's: text by code points, -0 before 0, NaN last, null first.
function order<T>(a: T | null, b: T | null, values: (a: T, b: T) => number): number {
  if (a === null || b === null) return Number(b === null) - Number(a === null);
  return values(a, b);
}
const byText = (a: string, b: string) => Buffer.compare(Buffer.from(a), Buffer.from(b));
const floatRank = (x: number) => (Number.isNaN(x) ? [2, 0] : Object.is(x, -0) ? [1, -1] : [1, 0]);
function byFloat(a: number, b: number): number {
  const [ra, rb] = [floatRank(a), floatRank(b)];
  if (ra[0] !== rb[0] || ra[0] === 2) return ra[0] - rb[0];
  return a < b ? -1 : a > b ? 1 : ra[1] - rb[1];
}
const byKey = (a: Row, b: Row): number =>
  order(a[1], b[1], byText) || order(a[2], b[2], byFloat) || (a[0] < b[0] ? -1 : a[0] > b[0] ? 1 : 0);

/** All rows of all files in order; with dedup the latest of each key, the later one at a tie. */
function model(files: readonly Row[][], dedup: boolean): Row[] {
  const sorted = files.flat().sort(byKey);
  if (!dedup) return sorted;
  const out: Row[] = [];
  for (const row of sorted) {
    const before = out.at(-1);
    if (before === undefined || byKey(before, row) !== 0) out.push(row);
    else if (row[3] >= before[3]) out[out.length - 1] = row;
  }
  return out;
}

/** Merges files by windows of the given rows; each file may have its own dictionary. */
function merged(by: MergeBy, files: readonly Row[][], windowRows: number, dictionary?: number, rowsMin = 1) {
  const columns = files.map((rows) => columnsOf(SCHEMA, rows, dictionary));
  const at = files.map(() => 0);
  const merger = new Merger(by, files.length);
  const out: Columns[] = [];
  while (!merger.isDone) {
    for (const input of merger.wanting(rowsMin)) {
      const to = Math.min(at[input] + windowRows, files[input].length);
      merger.feed(input, slice(columns[input], at[input], to), to === files[input].length);
      at[input] = to;
    }
    out.push(merger.take());
  }
  return { rows: out.flatMap(rowsOf), duplicates: merger.duplicates };
}

const row: fc.Arbitrary<Row> = fc.tuple(
  fc.oneof(
    fc.bigInt({ min: 0n, max: 3n }),
    fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, 2n ** 53n, -1n),
  ),
  fc.constantFrom(null, '', 'a', 'ab', '\uffff', '😀', '\ue000'),
  fc.constantFrom(null, -0, 0, Number.NaN, Number.NEGATIVE_INFINITY, 1.5),
  fc.bigInt({ min: 0n, max: 2n }),
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.oneof(fc.constantFrom(null, Number.NaN, -0), fc.double()),
);
/** Sorted files; with few keys, so that the same ones are in several files and reach over windows. */
const files = fc.array(
  fc.array(row, { maxLength: 12 }).map((rows) => rows.sort(byKey)),
  { minLength: 1, maxLength: 6 },
);

describe('merge', () => {
  test('merge: every row once and in order, whatever the windows', () => {
    fc.assert(
      fc.property(
        files,
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(0, 2, 100),
        (given, windowRows, dictionary) => {
          const key = (r: unknown[]) => r.map(spell).join(' ');
          const { rows, duplicates } = merged(KEEP, given, windowRows, dictionary, windowRows / 2);
          expect(rows.map(key).sort()).toEqual(given.flat().map(key).sort());
          expect(duplicates).toBe(0);
          for (let i = 1; i < rows.length; i++)
            expect(byKey(rows[i - 1] as Row, rows[i] as Row)).toBeLessThanOrEqual(0);
        },
      ),
      { numRuns: 300 },
    );
  });

  test('merge: with dedup exactly the winner of each key, by ingest time, then file, then position', () => {
    fc.assert(
      fc.property(
        files,
        fc.integer({ min: 1, max: 5 }),
        fc.constantFrom(0, 100),
        fc.integer({ min: 1, max: 4 }),
        (given, windowRows, dictionary, rowsMin) => {
          const wanted = model(given, true);
          const { rows, duplicates } = merged(DEDUP, given, windowRows, dictionary, rowsMin);
          expect(rows.map((r) => r.map(spell))).toEqual(wanted.map((r) => r.map(spell)));
          expect(duplicates).toBe(given.flat().length - wanted.length);
        },
      ),
      { numRuns: 500 },
    );
  });

  test('merge: the winner is found across windows, and an older file with the later ingest time wins', () => {
    const at = (ingest: bigint, v: bigint): Row => [1n, 'a', 0, ingest, v, null];
    expect(merged(DEDUP, [[at(2n, 1n), at(2n, 2n)], [at(1n, 3n)]], 1).rows).toEqual([at(2n, 2n)]);
    expect(merged(DEDUP, [[at(1n, 1n), at(1n, 2n)], [at(1n, 3n)]], 1).rows).toEqual([at(1n, 3n)]);
  });

  test('merge: an input that is not sorted is found out', () => {
    const at = (time: bigint): Row => [time, 'a', 0, 0n, 0n, null];
    expect(() => merged(KEEP, [[at(2n), at(1n)], [at(3n)]], 1)).toThrow('claims to be sorted');
    expect(() => merged(DEDUP, [[at(3n), at(2n), at(1n)], [at(5n)]], 1)).toThrow('claims to be sorted');
  });

  test('merge: inputs without rows, and none with rows', () => {
    expect(merged(DEDUP, [[], []], 4).rows).toEqual([]);
    expect(merged(DEDUP, [[], [[1n, 'a', 0, 0n, 7n, 1]]], 4).rows).toHaveLength(1);
  });
});

/** One value as text in which -0 and 0, and NaN and null, differ. */
function spell(value: unknown): string {
  return Object.is(value, -0) ? '-0' : `${typeof value} ${String(value)}`;
}
