import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import type { FoundBy } from '../../../src/core/columns/found-rows.ts';
import { FoundRows, placesOf } from '../../../src/core/columns/found-rows.ts';
import { columnsOf, rowsOf, schemaOf } from './rows.ts';

const SCHEMA = schemaOf([
  ['time', 'timestamptz'],
  ['device', 'string'],
  ['_ingest_ts', 'timestamptz'],
]);
const [TIME, DEVICE, INGEST] = [1, 2, 3];
const by = (more: Partial<FoundBy>): FoundBy => ({
  fields: SCHEMA.fields,
  timeId: TIME,
  direction: 'asc',
  dedup: null,
  ...more,
});
const DEDUP = { seriesIds: [DEVICE], ingestTimeId: INGEST };

interface Row {
  time: bigint | null;
  device: string | null;
  ingest: bigint | null;
  /** File, row group, row. */
  place: [number, number, number];
}

function add(found: FoundRows, rows: readonly Row[]): void {
  const [{ place }] = rows;
  const columns = columnsOf(
    SCHEMA,
    rows.map(({ time, device, ingest }) => [time, device, ingest]),
  );
  found.add(
    place[0],
    place[1],
    columns.columns,
    Int32Array.from(rows, (row) => row.place[2]),
  );
}

function placesIn(found: FoundRows): { places: string[]; more: boolean } {
  const { rows, more } = found.finish();
  const at = placesOf(rows);
  return {
    places: Array.from({ length: rows.rows }, (_, i) => `${at.files[i]}/${at.groups[i]}/${at.rows[i]}`),
    more,
  };
}

const order = <T extends bigint | number | string>(a: T | null, b: T | null): number => {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? -1 : 1;
  return a < b ? -1 : 1;
};
const byPlace = (a: Row, b: Row) => a.place[0] - b.place[0] || a.place[1] - b.place[1] || a.place[2] - b.place[2];

/** The same by sorting everything. */
function expected(rows: readonly Row[], { timeId, direction, dedup }: FoundBy): Row[] {
  const sign = direction === 'asc' ? 1 : -1;
  if (dedup === null) {
    const timeOf = ({ time }: Row) => (timeId === null ? null : time);
    return [...rows].sort((a, b) => sign * (order(timeOf(a), timeOf(b)) || byPlace(a, b)));
  }
  const newest = new Map<string, Row>();
  for (const row of rows) {
    const key = JSON.stringify([row.device, row.time?.toString() ?? null]);
    const held = newest.get(key);
    if (held === undefined || (order(held.ingest, row.ingest) || byPlace(held, row)) < 0) newest.set(key, row);
  }
  return [...newest.values()].sort((a, b) => sign * order(a.time, b.time) || order(a.device, b.device));
}

const time = fc.option(fc.constantFrom(-(2n ** 63n), -5n, -1n, 0n, 1n, 2n, 3n, 2n ** 63n - 1n), { freq: 5 });
const row = fc.record({
  time,
  device: fc.option(fc.constantFrom('', 'a', 'b'), { freq: 4 }),
  ingest: fc.option(fc.constantFrom(-(2n ** 63n), 0n, 1n), { freq: 4 }),
});
/** Row groups with their rows, in the order in which they are read. */
const reading = fc.array(fc.array(row, { minLength: 1, maxLength: 12 }), { maxLength: 8 }).chain((groups) => {
  const placed = groups.map((rows, i) => rows.map((one, n): Row => ({ ...one, place: [i >> 1, i % 2, 3 * n] })));
  return fc.shuffledSubarray(placed, { minLength: placed.length });
});

describe('found rows: the first ones, in whatever order they come', () => {
  test.each<[string, Partial<FoundBy>]>([
    ['oldest first', {}],
    ['newest first', { direction: 'desc' }],
    ['the latest of each key', { dedup: DEDUP }],
    ['the latest of each key, newest first', { dedup: DEDUP, direction: 'desc' }],
    ['in the order of their files', { timeId: null }],
  ])('%s', (_, which) => {
    const how = by(which);
    fc.assert(
      fc.property(reading, fc.integer({ min: 1, max: 20 }), (groups, limit) => {
        const found = new FoundRows(how, limit);
        const wanted = expected(groups.flat(), how);
        for (const rows of groups) {
          // As a reader would: what is beyond the bound is left out.
          const worst = found.worst();
          const kept = rows.filter(({ time: at, place }) => {
            if (found.isBeyond(...place)) return false;
            if (worst === undefined) return true;
            return how.direction === 'asc' ? order(at, worst as bigint) <= 0 : order(at, worst as bigint) >= 0;
          });
          if (kept.length > 0) add(found, kept);
        }
        const { places, more } = placesIn(found);
        expect(places).toEqual(wanted.slice(0, limit).map(({ place }) => place.join('/')));
        expect(more).toBe(wanted.length > limit);
      }),
      { numRuns: 150 },
    );
  });
});

describe('found rows', () => {
  const at = (n: number, place: Row['place'], device = 'a'): Row => ({ time: BigInt(n), device, ingest: 0n, place });

  test('the values come with their places', () => {
    const found = new FoundRows(by({}), 10);
    add(found, [{ time: -1n, device: null, ingest: null, place: [4, 2, 7] }]);
    expect(rowsOf(found.finish().rows)).toEqual([[-1n, null, null, 4, 2, 7]]);
    expect(new FoundRows(by({}), 10).finish()).toMatchObject({ rows: { rows: 0 }, more: false });
  });

  test('the bound: none while there is room, then the last row that tells of more, and never later again', () => {
    const found = new FoundRows(by({}), 2);
    add(found, [at(5, [0, 0, 0]), at(9, [0, 0, 1])]);
    expect(found.worst()).toBeUndefined();
    add(found, [at(7, [0, 0, 2])]);
    expect(found.worst()).toBe(9n);
    add(found, [at(1, [0, 0, 3]), at(2, [0, 0, 4])]);
    // What is pending is not sorted for a bound that is good enough.
    expect(found.worst()).toBe(9n);
    expect(placesIn(found)).toEqual({ places: ['0/0/3', '0/0/4'], more: true });
    expect(found.worst()).toBe(5n);
  });

  test('copies of a key take one place of the limit', () => {
    const found = new FoundRows(by({ dedup: DEDUP }), 2);
    add(found, [at(1, [0, 0, 0]), at(1, [0, 0, 1]), at(1, [0, 0, 2])]);
    expect(found.worst()).toBeUndefined();
    add(found, [at(3, [1, 0, 0])]);
    expect(placesIn(found)).toEqual({ places: ['0/0/2', '1/0/0'], more: false });
  });

  test('rows without a time come first, and are no bound', () => {
    const found = new FoundRows(by({}), 1);
    const none = (n: number): Row => ({ time: null, device: 'a', ingest: null, place: [0, 0, n] });
    add(found, [at(1, [0, 0, 9]), none(1), none(2)]);
    expect(found.worst()).toBeUndefined();
    expect(placesIn(found)).toEqual({ places: ['0/0/1'], more: true });
  });

  test('without a time: a file that is read first takes no place of one before it', () => {
    const found = new FoundRows(by({ timeId: null }), 2);
    add(found, [at(0, [3, 0, 0]), at(0, [3, 0, 1]), at(0, [3, 0, 2])]);
    expect([found.isBeyond(3, 0, 2), found.isBeyond(3, 0, 3), found.isBeyond(3, 1, 0)]).toEqual([false, true, true]);
    expect([found.isBeyond(2, 5, 5), found.isBeyond(4, 0, 0)]).toEqual([false, true]);
    add(found, [at(0, [1, 0, 5])]);
    expect(placesIn(found)).toEqual({ places: ['1/0/5', '3/0/0'], more: true });
    expect(new FoundRows(by({}), 1).isBeyond(9, 9, 9)).toBe(false);
  });

  test('many rows and a small limit: what does not count is dropped on the way', () => {
    const found = new FoundRows(by({ direction: 'desc' }), 3);
    for (let file = 0; file < 20; file++) {
      add(
        found,
        Array.from({ length: 1000 }, (_, n) => at((n * 7919 + file) % 20_011, [file, 0, n])),
      );
    }
    const { rows, more } = found.finish();
    expect([rows.rows, more]).toEqual([3, true]);
    expect(rowsOf(rows).map(([value]) => value)).toEqual(
      Array.from({ length: 20_000 }, (_, i) => BigInt(((i % 1000) * 7919 + Math.floor(i / 1000)) % 20_011))
        .sort((a, b) => Number(b - a))
        .slice(0, 3),
    );
  });
});
