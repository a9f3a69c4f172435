import { describe, expect, test } from 'vitest';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { readerOf } from '../../../src/core/columns/value.ts';
import type { Schema } from '../../../src/core/iceberg/types.ts';
import { foldNewest, newestOf, notBefore, type Series } from '../../../src/core/lastvalue/fold.ts';

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'time', required: false, type: 'timestamptz' },
    { id: 2, name: 'site', required: false, type: 'string' },
    { id: 3, name: 'unit', required: false, type: 'int' },
    { id: 4, name: 'v', required: false, type: 'long' },
    { id: 5, name: '_ingest_ts', required: false, type: 'timestamptz' },
  ],
};
const BY_BOTH: Series = { keyIds: [2, 3], timeId: 1, ingestTimeId: 5 };

/** [time, site, unit, v, ingest time] */
type Given = [number | null, string | null, number | null, number, (number | null)?];

function columns(rows: readonly Given[], schema = SCHEMA): Columns {
  const builder = new ColumnsBuilder(schema);
  for (const row of rows) {
    schema.fields.forEach((_field, i) => {
      const value = row[i] ?? null;
      const column = builder.fields[i];
      if (value === null) column.pushNull();
      else if (column.kind === 'text') column.pushString(String(value));
      else if (column.kind === 'int64') column.pushBigint(BigInt(value));
      else if (column.kind === 'int32') column.push(Number(value));
    });
    builder.endRow();
  }
  return builder.finish();
}

function values(given: Columns, name: string): unknown[] {
  const place = given.schema.fields.findIndex((field) => field.name === name);
  const column = given.columns[place];
  const read = readerOf(column, given.schema.fields[place].type as string);
  return Array.from({ length: given.rows }, (_, row) => (column.validity?.[row] === 0 ? null : read(row)));
}

const newest = (rows: readonly Given[], series = BY_BOTH) =>
  Array.from(newestOf(columns(rows), series), (row) => rows[row][3]);

describe('newest rows', () => {
  test('one a series, in the order of the key, nulls first, whatever the order of the rows', () => {
    const rows: Given[] = [
      [5, 'b', 1, 1],
      [9, 'a', 2, 2],
      [7, 'b', 1, 3],
      [1, null, 1, 4],
      [8, 'a', null, 5],
      [6, 'b', 1, 6],
      [3, 'a', 2, 7],
    ];
    expect(newest(rows)).toEqual([4, 5, 2, 3]);
    expect(newest([...rows].reverse())).toEqual([4, 5, 2, 3]);
  });

  test('of equal times the later ingest time wins, then the later row; null is older than anything', () => {
    expect(
      newest([
        [5, 'a', 1, 1, 20],
        [5, 'a', 1, 2, 10],
      ]),
    ).toEqual([1]);
    expect(
      newest([
        [5, 'a', 1, 1, 10],
        [5, 'a', 1, 2, 10],
      ]),
    ).toEqual([2]);
    expect(
      newest([
        [5, 'a', 1, 1, 10],
        [5, 'a', 1, 2, null],
      ]),
    ).toEqual([1]);
    expect(
      newest([
        [5, 'a', 1, 1, 10],
        [null, 'a', 1, 2, 99],
      ]),
    ).toEqual([1]);
    // Time counts before ingest time.
    expect(
      newest([
        [6, 'a', 1, 1, 10],
        [5, 'a', 1, 2, 20],
      ]),
    ).toEqual([1]);
  });

  test('without a key the table is one series; without rows there is none', () => {
    expect(
      newest(
        [
          [5, 'a', 1, 1],
          [7, 'b', 2, 2],
          [6, 'c', 3, 3],
        ],
        { ...BY_BOTH, keyIds: [] },
      ),
    ).toEqual([2]);
    expect(newest([])).toEqual([]);
    expect(newest([], { ...BY_BOTH, keyIds: [] })).toEqual([]);
  });

  test('without an ingest time the later row of equal times wins', () => {
    const series = { ...BY_BOTH, ingestTimeId: null };
    expect(
      newest(
        [
          [5, 'a', 1, 1, 99],
          [5, 'a', 1, 2, 10],
        ],
        series,
      ),
    ).toEqual([2]);
  });

  test('they are those that a row by row search finds', () => {
    let state = 5;
    const draw = (below: number) => {
      state = (Math.imul(state, 1103515245) + 12345) >>> 0;
      return (state >>> 8) % below;
    };
    for (let round = 0; round < 20; round++) {
      const rows = Array.from({ length: 200 }, (_, i): Given => {
        const site = draw(6) === 0 ? null : `s${draw(5)}`;
        return [draw(9), site, draw(4), i, draw(5) === 0 ? null : draw(4)];
      });
      const found = new Map<string, Given>();
      for (const row of rows) {
        const known = found.get(`${row[1]} ${row[2]}`);
        const age = ([time, , , , ingest]: Given) => (time ?? -1) * 100 + (ingest ?? -1);
        if (known === undefined || age(row) >= age(known)) found.set(`${row[1]} ${row[2]}`, row);
      }
      expect(newest(rows).sort((a, b) => a - b)).toEqual(
        [...found.values()].map((row) => row[3]).sort((a, b) => a - b),
      );
    }
  });
});

describe('folding', () => {
  test('parts are folded in their order, each step or all at once', () => {
    const parts = [
      columns([
        [5, 'a', 1, 1, 1],
        [5, 'b', 1, 2, 1],
      ]),
      columns([
        [5, 'a', 1, 3, 1],
        [4, 'b', 1, 4, 1],
        [1, 'c', 1, 5, 1],
      ]),
      columns([[6, 'b', 1, 6, 1]]),
    ];
    const once = foldNewest(parts, SCHEMA, BY_BOTH);
    expect(values(once, 'v')).toEqual([3n, 6n, 5n]);
    const steps = parts.reduce((before, part) => foldNewest([before, part], SCHEMA, BY_BOTH));
    expect(values(steps, 'v')).toEqual(values(once, 'v'));
  });

  test('parts of an older schema have nulls where they have no column, and wider types', () => {
    const wider = SCHEMA.fields.map((field) => (field.name === 'unit' ? { ...field, type: 'long' as const } : field));
    const later: Schema = {
      ...SCHEMA,
      'schema-id': 1,
      fields: [...wider, { id: 6, name: 'w', required: false, type: 'string' }],
    };
    const folded = foldNewest([columns([[5, 'a', 1, 1]]), columns([[6, 'b', 1, 2]], later)], later, BY_BOTH);
    expect(values(folded, 'w')).toEqual([null, null]);
    expect(values(folded, 'unit')).toEqual([1n, 1n]);
  });

  test('rows before a time are cut off, also those without one', () => {
    const given = columns([
      [5, 'a', 1, 1],
      [null, 'b', 1, 2],
      [4, 'c', 1, 3],
      [9, 'd', 1, 4],
    ]);
    expect(values(notBefore(given, 1, 5n), 'v')).toEqual([1n, 4n]);
    expect(notBefore(given, 1, 100n).rows).toBe(0);
    const all = columns([[5, 'a', 1, 1]]);
    expect(notBefore(all, 1, 5n)).toBe(all);
  });
});
