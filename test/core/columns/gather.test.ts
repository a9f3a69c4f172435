import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { countOf } from '../../../src/core/columns/columns.ts';
import { gather, slice } from '../../../src/core/columns/gather.ts';
import { columnsOf, everyKind, rowsOf, schemaOf } from './rows.ts';

describe('gather', () => {
  test('gather: any selection of rows of every kind, in the order asked for', () => {
    fc.assert(
      fc.property(
        fc.array(everyKind.row, { minLength: 1, maxLength: 20 }),
        fc.array(fc.nat(1000), { maxLength: 30 }),
        fc.nat(6),
        fc.tuple(fc.nat(30), fc.nat(30)),
        (rows, picks, limit, ends) => {
          const columns = columnsOf(everyKind.schema, rows, limit);
          const indexes = Uint32Array.from(picks, (pick) => pick % rows.length);
          const expected = Array.from(indexes, (row) => rows[row]);
          expect(rowsOf(gather(columns, indexes))).toEqual(expected);
          const [from, to] = ends.map((end) => Math.min(end, picks.length)).sort((a, b) => a - b);
          expect(rowsOf(gather(columns, Int32Array.from(indexes), from, to))).toEqual(expected.slice(from, to));
        },
      ),
    );
  });

  test('gather: the dictionary keeps only entries in use', () => {
    const columns = columnsOf(schemaOf([['s', 'string']]), [['a'], ['b'], [null], ['c'], ['b']]);
    const [column] = gather(columns, Int32Array.of(4, 3, 2)).columns;
    expect(column.kind === 'dictionary' && [...column.codes]).toEqual([0, 1, -1]);
    expect(column.kind === 'dictionary' && countOf(column.dictionary)).toBe(2);
  });

  test('gather: the result shares no memory, not even a dictionary whose entries are all in use', () => {
    const columns = columnsOf(schemaOf([['s', 'string']]), [['a'], ['b']]);
    const [source, column] = [columns.columns[0], gather(columns, Int32Array.of(0, 1)).columns[0]];
    if (source.kind !== 'dictionary' || column.kind !== 'dictionary') throw new Error('not a dictionary');
    expect(column.dictionary).toEqual(source.dictionary);
    expect(column.dictionary.bytes.buffer).not.toBe(source.dictionary.bytes.buffer);
    expect(column.dictionary.offsets.buffer).not.toBe(source.dictionary.offsets.buffer);
  });

  test('gather: rows without nulls have no validity, even from a column that has some', () => {
    const columns = columnsOf(schemaOf([['a', 'int']]), [[1], [null], [3]]);
    expect(gather(columns, Int32Array.of(2, 0)).columns[0].validity).toBe(null);
    expect(gather(columns, Int32Array.of(1, 0)).columns[0].validity).toEqual(Uint8Array.of(0, 1));
  });
});

describe('slice', () => {
  test('slice: rows of every kind between two positions, also of a slice', () => {
    fc.assert(
      fc.property(
        fc.array(everyKind.row, { maxLength: 20 }),
        fc.nat(6),
        fc.tuple(fc.nat(20), fc.nat(20)),
        (rows, limit, ends) => {
          const columns = columnsOf(everyKind.schema, rows, limit);
          const [from, to] = ends.map((end) => Math.min(end, rows.length)).sort((a, b) => a - b);
          const part = slice(columns, from, to);
          expect(rowsOf(part)).toEqual(rows.slice(from, to));
          const half = (to - from) >> 1;
          expect(rowsOf(slice(part, half, to - from))).toEqual(rows.slice(from + half, to));
        },
      ),
    );
  });

  test('slice: texts of a bytes column start at offset zero', () => {
    const columns = columnsOf(schemaOf([['s', 'string']]), [['aa'], ['bbb'], ['c']], 0);
    const [column] = slice(columns, 1, 3).columns;
    expect(column.kind === 'bytes' && [...column.values.offsets]).toEqual([0, 3, 4]);
    expect(column.kind === 'bytes' && column.values.bytes.length).toBe(4);
  });
});
