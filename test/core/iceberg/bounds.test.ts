import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hex } from '../../../src/core/base/bytes.ts';
import { type ColumnFacts, metricsOf, truncateLower, truncateUpper } from '../../../src/core/iceberg/bounds.ts';
import { compareValues, decodeValue } from '../../../src/core/iceberg/single-value.ts';
import type { Schema, Value } from '../../../src/core/iceberg/types.ts';
import { field } from './fixtures.ts';

const schemaOf = (type: Schema['fields'][number]['type']): Schema => ({
  type: 'struct',
  'schema-id': 0,
  fields: [field(1, 'c', type)],
});
const facts = (lower: Value, upper: Value, more: Partial<ColumnFacts> = {}): ColumnFacts => ({
  compressedBytes: 10,
  valueCount: 5,
  nullCount: 0,
  nanCount: null,
  lower,
  upper,
  ...more,
});
const NONE = { sortAndPartitionIds: new Set<number>() };
/** Bounds of one column of this type, decoded; undefined where there is none. */
function bounds(type: string, columnFacts: ColumnFacts): { lower?: Value; upper?: Value } {
  const metrics = metricsOf(schemaOf(type), new Map([[1, columnFacts]]), NONE);
  const lower = metrics.lowerBounds?.get(1);
  const upper = metrics.upperBounds?.get(1);
  return {
    ...(lower === undefined ? {} : { lower: decodeValue(type, lower) }),
    ...(upper === undefined ? {} : { upper: decodeValue(type, upper) }),
  };
}

describe('truncated text bounds', () => {
  it('B001, B9, B11: the upper bound is rounded up, the lower is a prefix', () => {
    expect(truncateLower('string', 'device-0000-alpha-1')).toBe('device-0000-alph');
    expect(truncateUpper('string', 'device-0000-alpha-9')).toBe('device-0000-alpi');
  });
  it('B13: sixteen code points stay as they are', () => {
    expect(truncateUpper('string', 'x'.repeat(16))).toBe('x'.repeat(16));
    expect(truncateUpper('string', '😀'.repeat(16))).toBe('😀'.repeat(16));
    expect(truncateLower('string', '😀'.repeat(17))).toBe('😀'.repeat(16));
  });
  it('B005, B006, B10: cuts between characters, never inside one', () => {
    const text = `${'a'.repeat(15)}€ and more`;
    expect(truncateLower('string', text)).toBe(`${'a'.repeat(15)}€`);
    expect(truncateUpper('string', text)).toBe(`${'a'.repeat(15)}\u20AD`);
    expect(truncateUpper('string', 'aaaaaaaaaaaaaaaéz')).toBe('aaaaaaaaaaaaaaaê');
  });
  it('B11: steps over the surrogates, drops what cannot be raised, gives up when nothing can', () => {
    expect(truncateUpper('string', `${'a'.repeat(15)}\uD7FFz`)).toBe(`${'a'.repeat(15)}\uE000`);
    expect(truncateUpper('string', `${'a'.repeat(15)}\u{10FFFF}z`)).toBe(`${'a'.repeat(14)}b`);
    expect(truncateUpper('string', `${'a'.repeat(15)}\uFFFFz`)).toBe(`${'a'.repeat(15)}\u{10000}`);
    expect(truncateUpper('string', '\u{10FFFF}'.repeat(17))).toBe(null);
  });
  it('B181: a pair of surrogates around the cut leaves an upper bound that is valid and not below', () => {
    for (const letters of [14, 15, 16, 31, 32]) {
      const text = `${'a'.repeat(letters)}😀😀`;
      const upper = truncateUpper('string', text) as string;
      expect(compareValues('string', upper, text)).toBeGreaterThanOrEqual(0);
      expect(upper.isWellFormed()).toBe(true);
    }
    expect(truncateUpper('string', `${'a'.repeat(15)}😀😀`)).toBe(`${'a'.repeat(15)}😁`);
    expect(truncateUpper('string', `${'a'.repeat(15)}\u{1F3FF}x`)).toBe(`${'a'.repeat(15)}\u{1F400}`);
  });
  it('bound every text they are made from, and are valid UTF-8', () => {
    const unit = fc.oneof(
      fc.constantFrom('\uD7FF', '\uE000', '\uFFFF', '\u{10000}', '\u{10FFFF}', 'a', '😀', '\u0000'),
      fc.string({ unit: 'binary', minLength: 1, maxLength: 1 }),
    );
    fc.assert(
      fc.property(fc.string({ unit, minLength: 0, maxLength: 24 }), (text) => {
        const lower = truncateLower('string', text) as string;
        const upper = truncateUpper('string', text) as string | null;
        expect(compareValues('string', lower, text)).toBeLessThanOrEqual(0);
        expect(lower.isWellFormed()).toBe(true);
        expect(Array.from(lower).length).toBeLessThanOrEqual(16);
        if (upper === null) return;
        expect(compareValues('string', upper, text)).toBeGreaterThanOrEqual(0);
        expect(upper.isWellFormed()).toBe(true);
        expect(Array.from(upper).length).toBeLessThanOrEqual(16);
      }),
      { numRuns: 1000 },
    );
  });
});

describe('truncated binary bounds', () => {
  it('B12: raises the last byte that can be and drops what follows', () => {
    expect(truncateUpper('binary', new Uint8Array(17).fill(1))).toEqual(Uint8Array.of(...Array(15).fill(1), 2));
    const high = new Uint8Array(17).fill(0xff);
    high[3] = 7;
    expect(truncateUpper('binary', high)).toEqual(Uint8Array.of(0xff, 0xff, 0xff, 8));
    expect(truncateUpper('binary', new Uint8Array(17).fill(0xff))).toBe(null);
    expect(truncateUpper('binary', new Uint8Array(16).fill(0xff))).toEqual(new Uint8Array(16).fill(0xff));
  });
  it('bound every value they are made from', () => {
    const byte = fc.constantFrom(0, 1, 0x7f, 0x80, 0xfe, 0xff);
    fc.assert(
      fc.property(fc.array(byte, { maxLength: 20 }), (list) => {
        const value = Uint8Array.from(list);
        expect(compareValues('binary', truncateLower('binary', value), value)).toBeLessThanOrEqual(0);
        const upper = truncateUpper('binary', value);
        if (upper !== null) expect(compareValues('binary', upper, value)).toBeGreaterThanOrEqual(0);
      }),
    );
  });
  it('fixed and uuid are never cut: their length is their type', () => {
    const value = new Uint8Array(20).fill(5);
    expect(truncateLower('fixed[20]', value)).toEqual(value);
    expect(truncateUpper('fixed[20]', value)).toEqual(value);
  });
});

describe('metricsOf', () => {
  it('B003, B5, B16: text bounds as given, the empty text included', () => {
    expect(bounds('string', facts('', '😀x'))).toEqual({ lower: '', upper: '😀x' });
  });

  it('B8: a zero at either end is spread to -0 and +0', () => {
    const nan = { nanCount: 0 };
    for (const [low, high] of [
      [0, 0],
      [-0, -0],
      [0, -0],
      [-0, 0],
    ]) {
      const { lower, upper } = bounds('double', facts(low, high, nan));
      expect(Object.is(lower, -0)).toBe(true);
      expect(Object.is(upper, 0)).toBe(true);
    }
    expect(bounds('float', facts(-1.5, 0, nan))).toEqual({ lower: -1.5, upper: 0 });
    expect(bounds('int', facts(0, 0))).toEqual({ lower: 0, upper: 0 });
  });

  it('B015, B016, E16: NaN is counted and never a bound', () => {
    const some = metricsOf(schemaOf('double'), new Map([[1, facts(4, 4, { nanCount: 1 })]]), NONE);
    expect(some.nanValueCounts).toEqual(new Map([[1, 1n]]));
    expect(bounds('double', facts(4, 4, { nanCount: 1 }))).toEqual({ lower: 4, upper: 4 });
    expect(bounds('double', facts(Number.NaN, 4, { nanCount: 1 }))).toEqual({});
    expect(bounds('double', facts(Number.NaN, Number.NaN, { nanCount: 5 }))).toEqual({});
    expect(bounds('double', facts(-Infinity, Infinity, { nanCount: 0 }))).toEqual({
      lower: -Infinity,
      upper: Infinity,
    });
    expect(metricsOf(schemaOf('int'), new Map([[1, facts(1, 2, { nanCount: 0 })]]), NONE).nanValueCounts).toEqual(
      new Map(),
    );
  });

  it('B022, E15: a column of nulls has counts and no bounds', () => {
    const metrics = metricsOf(schemaOf('string'), new Map([[1, facts(null, null, { nullCount: 5 })]]), NONE);
    expect(metrics.valueCounts).toEqual(new Map([[1, 5n]]));
    expect(metrics.nullValueCounts).toEqual(new Map([[1, 5n]]));
    expect(metrics.lowerBounds?.has(1)).toBe(false);
    expect(metrics.upperBounds?.has(1)).toBe(false);
  });

  it('B15: contradicting bounds are left out, both', () => {
    expect(bounds('int', facts(5, 3))).toEqual({});
    expect(bounds('int', facts(5, null))).toEqual({});
    expect(bounds('string', facts('a', '\u{10FFFF}'.repeat(20)))).toEqual({ lower: 'a' });
  });

  it('counts that contradict each other break an assertion', () => {
    expect(() => bounds('int', facts(1, 2, { nullCount: 6 }))).toThrow();
    expect(() => bounds('double', facts(1, 2, { nullCount: 3, nanCount: 3 }))).toThrow();
  });

  it('B011, B019: dates take four bytes and timestamps are microseconds', () => {
    const metrics = metricsOf(schemaOf('date'), new Map([[1, facts(18690, 18690)]]), NONE);
    expect(hex(metrics.lowerBounds?.get(1) as Uint8Array)).toBe('02490000');
    expect(bounds('timestamptz', facts(1714867200000000n, 1714867200000000n)).lower).toBe(1714867200000000n);
  });

  it('B179: a bound of times keeps its microseconds', () => {
    const lastMicros = BigInt(Date.UTC(2024, 1, 29, 10, 0, 12)) * 1000n + 345_678n;
    expect(bounds('timestamptz', facts(-1n, lastMicros))).toEqual({ lower: -1n, upper: lastMicros });
  });

  it('E14, E17, B18: columns in lists and maps keep their size alone; structs have theirs', () => {
    const schema: Schema = {
      type: 'struct',
      'schema-id': 0,
      fields: [
        field(1, 'l', { type: 'list', 'element-id': 2, element: 'int', 'element-required': false }),
        field(3, 's', { type: 'struct', fields: [field(4, 'x', 'int')] }),
      ],
    };
    const metrics = metricsOf(
      schema,
      new Map([
        [2, facts(1, 2)],
        [4, facts(1, 2)],
      ]),
      NONE,
    );
    expect([...(metrics.columnSizes?.keys() ?? [])]).toEqual([2, 4]);
    expect([...(metrics.valueCounts?.keys() ?? [])]).toEqual([4]);
    expect([...(metrics.lowerBounds?.keys() ?? [])]).toEqual([4]);
  });

  it('E18, E19: a wide table has metrics of its first hundred leaves, and of sort and partition columns', () => {
    const fields = Array.from({ length: 150 }, (_, i) => field(i + 1, `c${i}`, 'int'));
    const all = new Map(fields.map((f) => [f.id, facts(1, 2)] as const));
    all.set(999, facts(1, 2));
    const metrics = metricsOf({ type: 'struct', 'schema-id': 0, fields }, all, {
      sortAndPartitionIds: new Set([140, 3]),
    });
    expect([...(metrics.lowerBounds?.keys() ?? [])]).toEqual([...Array.from({ length: 100 }, (_, i) => i + 1), 140]);
    expect(metrics.columnSizes?.size).toBe(101);
  });
});
