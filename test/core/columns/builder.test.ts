import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ColumnsBuilder, type FieldBuilder } from '../../../src/core/columns/builder.ts';
import { SEGMENT_ROWS_MAX } from '../../../src/core/columns/slots.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { rowsOf, schemaOf } from './rows.ts';

const ALL: [string, Type][] = [
  ['flag', 'boolean'],
  ['small', 'int'],
  ['day', 'date'],
  ['big', 'long'],
  ['at', 'timestamptz'],
  ['single', 'float'],
  ['double', 'double'],
  ['id', 'uuid'],
  ['price', 'decimal(9,2)'],
  ['amount', 'decimal(18,2)'],
  ['huge', 'decimal(38,2)'],
  ['name', 'string'],
  ['blob', 'binary'],
  ['tags', { type: 'list', 'element-id': 100, element: 'string', 'element-required': false }],
];

function field<K extends FieldBuilder['kind']>(builder: ColumnsBuilder, index: number, kind: K) {
  const found = builder.fields[index];
  if (found.kind !== kind) throw new Error(`field ${index} is ${found.kind}, not ${kind}`);
  return found as Extract<FieldBuilder, { kind: K }>;
}

describe('columns builder', () => {
  test('columns builder: a field not pushed in a row is null there, before and after rows that have it', () => {
    const builder = new ColumnsBuilder(
      schemaOf([
        ['a', 'int'],
        ['b', 'string'],
      ]),
    );
    const [a, b] = [field(builder, 0, 'int32'), field(builder, 1, 'text')];
    a.push(1);
    builder.endRow();
    b.pushString('x');
    expect([a.pushed, b.pushed]).toEqual([false, true]);
    builder.endRow();
    expect([a.pushed, b.pushed]).toEqual([false, false]);
    a.push(3);
    builder.endRow();
    builder.endRow();
    expect(builder.rows).toBe(4);
    const columns = builder.finish();
    expect(rowsOf(columns)).toEqual([
      [1, null],
      [null, 'x'],
      [3, null],
      [null, null],
    ]);
  });

  test('columns builder: every kind, nulls only (B031)', () => {
    const builder = new ColumnsBuilder(schemaOf(ALL));
    for (let i = 0; i < 3; i++) {
      if (i === 1) for (const f of builder.fields) f.pushNull();
      builder.endRow();
    }
    const columns = builder.finish();
    expect(rowsOf(columns)).toEqual([0, 1, 2].map(() => ALL.map(() => null)));
    for (const column of columns.columns) expect(column.validity).toEqual(new Uint8Array(3));
  });

  test('columns builder: no rows', () => {
    const columns = new ColumnsBuilder(schemaOf(ALL)).finish();
    expect(columns.rows).toBe(0);
    expect(columns.columns.map((column) => column.validity)).toEqual(ALL.map(() => null));
    expect(rowsOf(columns)).toEqual([]);
  });

  test('columns builder: int64 extremes keep every bit (B047)', () => {
    const values = [
      0n,
      -1n,
      1n,
      2n ** 63n - 1n,
      -(2n ** 63n),
      9007199254740993n,
      -9007199254740993n,
      4294967296n,
      -4294967297n,
    ];
    const builder = new ColumnsBuilder(schemaOf([['a', 'long']]));
    const a = field(builder, 0, 'int64');
    for (const value of values) {
      a.pushBigint(value);
      builder.endRow();
      a.pushPair(Number(BigInt.asUintN(32, value)), Number(BigInt.asIntN(32, value >> 32n)));
      builder.endRow();
      if (value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER) {
        a.pushNumber(Number(value));
        builder.endRow();
      }
    }
    const safe = values.flatMap((v) => (v >= -(2n ** 53n) && v <= 2n ** 53n ? [v, v, v] : [v, v]));
    expect(rowsOf(builder.finish()).flat()).toEqual(safe);
  });

  test('columns builder: values that would be stored wrongly are refused', () => {
    const builder = new ColumnsBuilder(schemaOf(ALL));
    expect(() => field(builder, 1, 'int32').push(2 ** 31)).toThrow('int32');
    expect(() => field(builder, 1, 'int32').push(1.5)).toThrow('int32');
    expect(() => field(builder, 3, 'int64').pushNumber(2 ** 53)).toThrow('safe integer');
    expect(() => field(builder, 3, 'int64').pushBigint(2n ** 63n)).toThrow('int64');
    expect(() => field(builder, 7, 'fixed').push(new Uint8Array(15))).toThrow('width');
    expect(() => field(builder, 11, 'text').pushString('x\ud83d')).toThrow('lone surrogate');
    expect(() => field(builder, 11, 'text').pushBytes(Uint8Array.of(0xc3))).toThrow('not UTF-8');
    builder.rollbackRow();
    field(builder, 1, 'int32').push(1);
    expect(() => field(builder, 1, 'int32').push(2)).toThrow('once a row');
  });

  test('columns builder: a row rolled back leaves nothing, a new dictionary entry neither', () => {
    const builder = new ColumnsBuilder(schemaOf(ALL));
    const name = field(builder, 11, 'text');
    const push = (i: number) => {
      field(builder, 0, 'boolean').push(true);
      field(builder, 1, 'int32').push(i);
      field(builder, 3, 'int64').pushNumber(i);
      field(builder, 6, 'float64').push(i);
      field(builder, 7, 'fixed').push(new Uint8Array(16).fill(i));
      name.pushString(`n${i}`);
      field(builder, 12, 'text').pushBytes(Uint8Array.of(i));
      field(builder, 13, 'nested').push([`t${i}`]);
    };
    push(1);
    builder.endRow();
    push(2);
    builder.rollbackRow();
    expect(name.pushed).toBe(false);
    builder.endRow();
    for (const f of builder.fields) f.pushNull();
    builder.rollbackRow();
    push(3);
    builder.endRow();
    const columns = builder.finish();
    expect(rowsOf(columns).map((row) => [row[0], row[1], row[3], row[11], row[13]])).toEqual([
      [true, 1, 1n, 'n1', ['t1']],
      [null, null, null, null, null],
      [true, 3, 3n, 'n3', ['t3']],
    ]);
    const column = columns.columns[11];
    expect(column.kind === 'dictionary' && column.dictionary.offsets.length - 1).toBe(2);
    // Null slots are zero, as consumers that ignore validity expect.
    expect(Array.from((columns.columns[1] as { values: Int32Array }).values)).toEqual([1, 0, 3]);
  });

  test('columns builder: a null that was rolled back leaves a column without nulls', () => {
    const builder = new ColumnsBuilder(schemaOf([['a', 'int']]));
    const a = field(builder, 0, 'int32');
    a.push(1);
    builder.endRow();
    a.pushNull();
    builder.rollbackRow();
    a.push(2);
    builder.endRow();
    expect(builder.finish().columns[0]).toEqual({ kind: 'int32', values: Int32Array.of(1, 2), validity: null });
  });

  test('columns builder: a row begun and not ended is dropped', () => {
    const builder = new ColumnsBuilder(schemaOf([['a', 'int']]));
    field(builder, 0, 'int32').push(1);
    expect(builder.finish().rows).toBe(0);
  });

  test('columns builder: a dictionary turns to bytes beyond its limit and keeps the rows before', () => {
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(fc.constant(null), fc.string({ unit: 'binary', maxLength: 100 }), fc.constantFrom('a', '', 'é😀')),
          {
            maxLength: 200,
          },
        ),
        fc.integer({ min: 0, max: 20 }),
        fc.array(fc.nat(200), { maxLength: 5 }),
        (values, limit, rolledBack) => {
          const builder = new ColumnsBuilder(
            schemaOf([
              ['s', 'string'],
              ['b', 'binary'],
            ]),
            limit,
          );
          const [s, b] = [field(builder, 0, 'text'), field(builder, 1, 'text')];
          values.forEach((value, i) => {
            if (rolledBack.includes(i)) {
              s.pushString(`rolled back ${i}`);
              b.pushBytes(Uint8Array.of(1, 2, 3, i));
              builder.rollbackRow();
            }
            if (value === null) s.pushNull();
            else if (i % 2 === 0) s.pushString(value);
            else s.pushBytes(new TextEncoder().encode(value));
            if (value !== null) b.pushBytes(new TextEncoder().encode(value));
            builder.endRow();
          });
          const columns = builder.finish();
          expect(rowsOf(columns)).toEqual(values.map((v) => [v, v === null ? null : new TextEncoder().encode(v)]));
          const distinct = new Set(values.filter((v) => v !== null)).size;
          if (rolledBack.length === 0) expect(columns.columns[0].kind).toBe(distinct > limit ? 'bytes' : 'dictionary');
        },
      ),
    );
  });

  test('columns builder: rows over several segments, long texts across chunks', () => {
    const rows = 2 * SEGMENT_ROWS_MAX + 1234;
    const builder = new ColumnsBuilder(
      schemaOf([
        ['i', 'int'],
        ['l', 'long'],
        ['s', 'string'],
        ['n', 'double'],
      ]),
      10,
    );
    const [i, l, s] = [field(builder, 0, 'int32'), field(builder, 1, 'int64'), field(builder, 2, 'text')];
    const long = 'ü'.repeat(300_000);
    for (let row = 0; row < rows; row++) {
      i.push(row);
      if (row % 3 !== 0) l.pushNumber(-row);
      s.pushString(row === 70_000 ? long : `text ${row}`);
      builder.endRow();
    }
    const columns = builder.finish();
    expect(columns.columns[3].validity).toEqual(new Uint8Array(rows));
    const values = rowsOf(columns);
    for (const row of [0, 1, 63, 64, 65, 65_535, 65_536, 69_999, 70_001, 131_072, rows - 1]) {
      expect(values[row]).toEqual([row, row % 3 === 0 ? null : BigInt(-row), `text ${row}`, null]);
    }
    expect(values[70_000][2]).toBe(long);
  });

  test('columns builder: one row holds little memory, many rows at most a segment more than their size', () => {
    const builder = new ColumnsBuilder(schemaOf(ALL));
    expect(builder.byteSize).toBe(0);
    field(builder, 1, 'int32').push(1);
    builder.endRow();
    expect(builder.byteSize).toBeLessThan(4096);
    const nulls = new ColumnsBuilder(schemaOf([['f', 'fixed[1000]']]));
    for (let row = 0; row < 10_000; row++) nulls.endRow();
    expect(nulls.byteSize).toBeGreaterThanOrEqual(10_000_000);
    const wide = new ColumnsBuilder(schemaOf([['l', 'long']]));
    for (let row = 0; row < 500_000; row++) {
      field(wide, 0, 'int64').pushNumber(row);
      wide.endRow();
    }
    expect(wide.byteSize).toBeLessThan(500_000 * 8 + SEGMENT_ROWS_MAX * 8);
  });
});
