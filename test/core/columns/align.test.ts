import { describe, expect, it } from 'vitest';
import { type AlignOptions, rowAligner } from '../../../src/core/columns/align.ts';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { NUMBER_MARK, type RowFault } from '../../../src/core/columns/fault.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { schemaOf, valuesOf } from '../../http/bodies.ts';

function aligned(fields: Record<string, Type>, rows: unknown[], options: Partial<AlignOptions> = {}) {
  const builder = new ColumnsBuilder(schemaOf(fields));
  const add = rowAligner(builder, { epochUnit: 'ms', textual: false, filledField: null, ...options });
  const faults: RowFault[] = [];
  for (const row of rows) {
    const fault = add(row);
    if (fault !== null) faults.push(fault);
  }
  const columns: Columns = builder.finish();
  return { faults, columns, rows: columns.rows, column: (i = 0) => valuesOf(columns.columns[i]) };
}

/** What one value becomes in a column of this type: the value, or the type of the fault. */
function cast(type: Type, value: unknown, options: Partial<AlignOptions> = {}): unknown {
  const { faults, column } = aligned({ v: type }, [{ v: value }], options);
  return faults.length > 0 ? faults[0].type : column()[0];
}

const marked = (digits: string) => NUMBER_MARK + digits;

describe('casts', () => {
  it.each([
    ['boolean', true, true],
    ['boolean', 'true', 'wrong-type'],
    ['boolean', 1, 'wrong-type'],

    ['int', 7, 7],
    ['int', 7.0, 7],
    ['int', '-7', -7],
    ['int', 2_147_483_647, 2_147_483_647],
    ['int', 2_147_483_648, 'out-of-range'],
    ['int', -2_147_483_649, 'out-of-range'],
    ['int', marked('9007199254740993'), 'out-of-range'],
    ['int', 1.5, 'wrong-type'],
    ['int', true, 'wrong-type'],
    ['int', '7.0', 'wrong-type'],
    ['int', '', 'wrong-type'],
    ['int', '0x10', 'wrong-type'],
    ['int', ' 7', 'wrong-type'],
    ['int', [7], 'wrong-type'],

    ['long', 9_007_199_254_740_991, 9_007_199_254_740_991n],
    ['long', '9007199254740993', 9_007_199_254_740_993n],
    ['long', marked('9223372036854775807'), 9_223_372_036_854_775_807n],
    ['long', marked('-9223372036854775808'), -9_223_372_036_854_775_808n],
    ['long', marked('9223372036854775808'), 'out-of-range'],
    ['long', '-9223372036854775809', 'out-of-range'],
    ['long', '99999999999999999999999999', 'out-of-range'],
    ['long', 9_007_199_254_740_993n, 9_007_199_254_740_993n],
    ['long', 1e17, 'inexact-number'],
    ['long', marked('9007199254740993.0'), 9_007_199_254_740_993n],
    ['long', marked('9007199254740993.5'), 'wrong-type'],
    ['long', Number.POSITIVE_INFINITY, 'out-of-range'],
    ['long', 'NaN', 'wrong-type'],

    ['double', 0.1, 0.1],
    ['double', -0, -0],
    ['double', 'NaN', Number.NaN],
    ['double', 'Infinity', Number.POSITIVE_INFINITY],
    ['double', '-Infinity', Number.NEGATIVE_INFINITY],
    ['double', 'nan', 'wrong-type'],
    ['double', 'inf', 'wrong-type'],
    ['double', '1.5', 1.5],
    ['double', '1,5', 'wrong-type'],
    ['double', '0x10', 'wrong-type'],
    ['double', ' 1', 'wrong-type'],
    ['double', '', 'wrong-type'],
    ['double', Number.POSITIVE_INFINITY, 'out-of-range'],
    ['double', marked('12345678901234567890'), 12_345_678_901_234_567_000],
    ['float', 0.5, 0.5],
    ['float', 0.1, Math.fround(0.1)],
    ['float', 'NaN', Number.NaN],
    ['float', '-Infinity', Number.NEGATIVE_INFINITY],
    ['float', 3.5e38, 'out-of-range'],
    ['float', 3.4028235e38, 3.4028234663852886e38],

    ['date', '2021-03-04', 18_690],
    ['date', '10000-01-01', 'out-of-range'],
    ['date', '2021-02-30', 'malformed-value'],
    ['date', 18_690, 'wrong-type'],
    ['time', '12:34:56.5', 45_296_500_000n],
    ['time', 5, 'wrong-type'],

    ['timestamptz', '2026-01-03T00:00:00Z', 1_767_398_400_000_000n],
    ['timestamp', '2026-01-03T00:00:00', 1_767_398_400_000_000n],
    ['timestamp', '2026-01-03T02:00:00+02:00', 1_767_398_400_000_000n],
    ['timestamptz', '0001-01-01T00:00:00Z', -62_135_596_800_000_000n],
    ['timestamptz', '10000-01-01T00:00:00Z', 'out-of-range'],
    ['timestamptz', 'yesterday', 'malformed-value'],
    ['timestamptz', true, 'wrong-type'],
    ['timestamptz', 1_767_398_400_000, 1_767_398_400_000_000n],
    ['timestamptz', 1_767_398_400_000.25, 1_767_398_400_000_250n],
    ['timestamptz', -1, -1000n],
    ['timestamptz', 1e17, 'inexact-number'],
    ['timestamptz', 1e300, 'inexact-number'],
    ['timestamptz', 1e15, 'out-of-range'],

    ['string', 'é', 'é'],
    ['string', '', ''],
    ['string', 7, 'wrong-type'],
    ['string', marked('12345678901234567890'), 'wrong-type'],
    ['string', 'x\ud83d', 'lone-surrogate'],
    ['string', '\udc00', 'lone-surrogate'],

    ['uuid', '550e8400-e29b-41d4-A716-446655440000', '550e8400e29b41d4a716446655440000'],
    ['uuid', '550e8400e29b41d4a716446655440000', 'malformed-value'],
    ['uuid', 5, 'wrong-type'],
    ['binary', 'aGk=', 'hi'],
    ['binary', '', ''],
    ['binary', 'aGk', 'malformed-value'],
    ['binary', 'aGl=', 'malformed-value'],
    ['binary', 'aG-=', 'malformed-value'],
    ['fixed[2]', 'aGk=', '6869'],
    ['fixed[3]', 'aGk=', 'malformed-value'],
  ])('%s takes %s as %s', (type, value, expected) => {
    expect(cast(type, value)).toEqual(expected);
  });

  it.each([
    ['decimal(19,2)', '12345678901234567.89', '00112210f47de98115'],
    ['decimal(9,2)', 1.25, 125],
    ['decimal(9,2)', -0.07, -7],
    ['decimal(9,2)', 1.1, 110],
    ['decimal(9,2)', '1.2500', 125],
    ['decimal(9,2)', '1e2', 10_000],
    ['decimal(9,2)', 1.255, 'inexact-number'],
    ['decimal(9,2)', '1.255', 'inexact-number'],
    ['decimal(5,2)', 999.99, 99_999],
    ['decimal(5,2)', 1000, 'out-of-range'],
    ['decimal(5,2)', '-1000', 'out-of-range'],
    ['decimal(5,2)', '1e999', 'out-of-range'],
    ['decimal(5,2)', '1.', 'malformed-value'],
    ['decimal(5,2)', 'NaN', 'malformed-value'],
    ['decimal(5,2)', true, 'wrong-type'],
    ['decimal(18,0)', marked('123456789012345678'), 123_456_789_012_345_678n],
    ['decimal(18,4)', marked('12345678901234.5678'), 123_456_789_012_345_678n],
    ['decimal(18,0)', 1e17, 'inexact-number'],
    ['decimal(18,17)', 0.1, 10_000_000_000_000_000n],
    ['decimal(38,0)', '-1', 'f'.repeat(32)],
    ['decimal(38,0)', 5, '5'.padStart(32, '0')],
  ])('B040 B041: %s takes %s as %s', (type, value, expected) => {
    expect(cast(type, value)).toEqual(expected);
  });

  it('timestamps: numbers count the unit of the table, with fractions floored', () => {
    expect(cast('timestamptz', 1_767_398_400, { epochUnit: 's' })).toBe(1_767_398_400_000_000n);
    expect(cast('timestamptz', 1_767_398_400.123, { epochUnit: 's' })).toBe(1_767_398_400_123_000n);
    expect(cast('timestamptz', -0.0000001, { epochUnit: 's' })).toBe(-1n);
    expect(cast('timestamptz', 1_767_398_400_000_001, { epochUnit: 'us' })).toBe(1_767_398_400_000_001n);
    expect(cast('timestamptz', marked('1767398400000001999'), { epochUnit: 'ns' })).toBe(1_767_398_400_000_001n);
    expect(cast('timestamptz', marked('-1767398400000001999'), { epochUnit: 'ns' })).toBe(-1_767_398_400_000_002n);
    expect(cast('timestamptz', marked('1767398400000001999'), { epochUnit: 's' })).toBe('out-of-range');
  });

  it('textual formats: numbers and truth values come as text', () => {
    expect(cast('double', '1.5', { textual: true })).toBe(1.5);
    expect(cast('float', '1e39', { textual: true })).toBe('out-of-range');
    expect(cast('double', '1.5x', { textual: true })).toBe('wrong-type');
    expect(cast('boolean', 'true', { textual: true })).toBe(true);
    expect(cast('boolean', 'yes', { textual: true })).toBe('wrong-type');
  });
});

describe('rows', () => {
  it('missing optional columns are null, in any order of names', () => {
    const { column, faults } = aligned({ a: 'int', b: 'string' }, [
      { b: 'x', a: 1 },
      {},
      { a: null, b: null },
      { b: 'y' },
    ]);
    expect(faults).toEqual([]);
    expect([column(0), column(1)]).toEqual([
      [1, null, null, null],
      ['x', null, null, 'y'],
    ]);
  });

  it('B031: a column of nulls alone keeps its declared type', () => {
    const { columns } = aligned({ id: 'int', note: 'string' }, [
      { id: 1, note: null },
      { id: 1, note: null },
    ]);
    expect(valuesOf(columns.columns[1])).toEqual([null, null]);
  });

  it('B028: a null or nothing in a required column is refused, naming the column', () => {
    const { faults, rows } = aligned({ a: 'string!' }, [{ a: 'x' }, { a: null }, {}]);
    expect(rows).toBe(1);
    expect(faults).toEqual([
      { type: 'null-in-required', field: 'a', message: 'a is required and null' },
      { type: 'missing-required', field: 'a', message: 'a is required and missing' },
    ]);
  });

  it('the column that the flush fills may be missing or null though it is required', () => {
    const rows = [{ a: 1 }, { a: 2, _ingest_ts: null }, { a: 3, _ingest_ts: '2026-01-03T00:00:00Z' }];
    const { faults, column } = aligned({ a: 'int', _ingest_ts: 'timestamptz!' }, rows, { filledField: '_ingest_ts' });
    expect(faults).toEqual([]);
    expect(column(1)).toEqual([null, null, 1_767_398_400_000_000n]);
  });

  it('B201: an unknown column is refused by name', () => {
    const { faults, rows } = aligned({ id: 'int' }, [{ id: 1, extra: true }, { id: 2 }]);
    expect(rows).toBe(1);
    expect(faults).toEqual([
      { type: 'unknown-column', field: 'extra', message: 'extra is a column that the table does not have' },
    ]);
  });

  it('B089 B090: names that differ by case are not the same, and the fault says so', () => {
    const { faults } = aligned({ orderRef: 'string' }, [{ orderref: 'z' }]);
    expect(faults[0].type).toBe('unknown-column');
    expect(faults[0].message).toContain('it has orderRef, and names differ by case');
  });

  it('B202: __proto__ and constructor are ordinary names', () => {
    const fields = { constructor: 'string', n: 'long', toString: 'int' };
    const { faults, column } = aligned({ ...fields, ['__proto__']: 'string' } as Record<string, Type>, [
      JSON.parse('{"constructor":"acme","n":1}'),
      JSON.parse('{"n":2}'),
    ]);
    expect(faults).toEqual([]);
    expect(column(0)).toEqual(['acme', null]);
    expect(column(2)).toEqual([null, null]);
    const proto = aligned({ n: 'int' }, [JSON.parse('{"n":1,"__proto__":{"x":1}}'), JSON.parse('{"constructor":5}')]);
    expect(proto.faults.map(({ type, field }) => [type, field])).toEqual([
      ['unknown-column', '__proto__'],
      ['unknown-column', 'constructor'],
    ]);
  });

  it('a column named __proto__ takes its values', () => {
    const schema = { ...schemaOf({ x: 'int' }), fields: [{ id: 1, name: '__proto__', required: false, type: 'int' }] };
    const builder = new ColumnsBuilder(schema);
    const add = rowAligner(builder, { epochUnit: 'ms', textual: false, filledField: null });
    expect([add(JSON.parse('{"__proto__":5}')), add({})]).toEqual([null, null]);
    expect(valuesOf(builder.finish().columns[0])).toEqual([5, null]);
  });

  it('a refused row leaves nothing behind, whatever came before the fault', () => {
    const { faults, column, rows } = aligned({ a: 'string', b: 'long', c: 'int' }, [
      { a: 'one', b: 1, c: 1 },
      { a: 'two', b: 2, c: 'bad' },
      { a: 'three', b: 3, c: 3 },
    ]);
    expect(faults).toEqual([
      { type: 'wrong-type', field: 'c', message: 'c must be a whole number: "bad"', value: '"bad"' },
    ]);
    expect(rows).toBe(2);
    expect([column(0), column(1), column(2)]).toEqual([
      ['one', 'three'],
      [1n, 3n],
      [1, 3],
    ]);
  });

  it('what is no object is no row', () => {
    const { faults } = aligned({ a: 'int' }, [null, 5, 'text', [1, 2], true]);
    expect(faults.map((fault) => [fault.type, fault.value])).toEqual([
      ['not-an-object', 'null'],
      ['not-an-object', '5'],
      ['not-an-object', '"text"'],
      ['not-an-object', 'a list of 2'],
      ['not-an-object', 'true'],
    ]);
  });

  it('values in faults are short and well formed', () => {
    const { faults } = aligned({ a: 'int', s: 'string' }, [
      { a: 'x'.repeat(10_000) },
      { s: `${'y'.repeat(500)}\ud800` },
    ]);
    for (const { value, message } of faults) {
      expect(value!.length).toBeLessThan(110);
      expect(message.isWellFormed()).toBe(true);
    }
  });
});

describe('nested columns', () => {
  const list: Type = { type: 'list', 'element-id': 10, element: 'long', 'element-required': false };
  const struct: Type = {
    type: 'struct',
    fields: [
      { id: 11, name: 'city', required: true, type: 'string' },
      { id: 12, name: 'zip', required: false, type: 'int' },
    ],
  };
  const map = (key: Type, valueRequired = false): Type => ({
    type: 'map',
    'key-id': 13,
    key,
    'value-id': 14,
    value: 'double',
    'value-required': valueRequired,
  });

  it('B032: a null list, an empty list and a list of null are three values', () => {
    const { column } = aligned({ tags: list }, [
      { tags: null },
      { tags: [] },
      { tags: [null] },
      { tags: [1, marked('9007199254740993')] },
    ]);
    expect(column()).toEqual([null, [], [null], [1n, 9_007_199_254_740_993n]]);
  });

  it('B037: a number where a list belongs is refused, and the row before stays', () => {
    const { faults, column } = aligned({ v: list }, [{ v: [1, 2] }, { v: 7 }]);
    expect(column()).toEqual([[1n, 2n]]);
    expect(faults[0]).toMatchObject({ type: 'wrong-type', field: 'v', value: '7' });
  });

  it('structs check their fields by name and give the path', () => {
    const { faults, column } = aligned({ at: struct }, [
      { at: { city: 'Bern' } },
      { at: { zip: 3000 } },
      { at: { city: null } },
      { at: { city: 'Bern', Zip: 3 } },
      { at: { city: 'Bern', zip: 'x' } },
      { at: 'Bern' },
    ]);
    expect(column()).toEqual([{ city: 'Bern', zip: null }]);
    expect(faults.map(({ type, field }) => [type, field])).toEqual([
      ['missing-required', 'at.city'],
      ['null-in-required', 'at.city'],
      ['unknown-field', 'at.Zip'],
      ['wrong-type', 'at.zip'],
      ['wrong-type', 'at'],
    ]);
  });

  it('maps come as objects or as lists of entries', () => {
    const { column, faults } = aligned({ m: map('string') }, [
      { m: { a: 1, constructor: 2 } },
      {
        m: [
          ['a', 1],
          ['b', null],
        ],
      },
      { m: [{ key: 'a', value: 1 }, { key: 'b' }] },
      { m: {} },
    ]);
    expect(faults).toEqual([]);
    expect(column()).toEqual([
      new Map([
        ['a', 1],
        ['constructor', 2],
      ]),
      new Map([
        ['a', 1],
        ['b', null],
      ]),
      new Map([
        ['a', 1],
        ['b', null],
      ]),
      new Map(),
    ]);
  });

  it('maps of numbers take their keys as text, and refuse what is no map', () => {
    const { column, faults } = aligned({ m: map('int', true) }, [
      { m: { 1: 0.5 } },
      { m: { x: 0.5 } },
      {
        m: [
          [1, 2],
          [1, 3],
        ],
      },
      { m: [[null, 2]] },
      { m: [[1, null]] },
      { m: [[1]] },
      { m: [{ key: 1, other: 2 }] },
      { m: 5 },
    ]);
    expect(column()).toEqual([new Map([[1, 0.5]])]);
    expect(faults.map(({ type, field }) => [type, field])).toEqual([
      ['wrong-type', 'm.key'],
      ['duplicate-key', 'm.key'],
      ['null-in-required', 'm.key'],
      ['null-in-required', 'm.value'],
      ['wrong-type', 'm'],
      ['wrong-type', 'm'],
      ['wrong-type', 'm'],
    ]);
  });
});
