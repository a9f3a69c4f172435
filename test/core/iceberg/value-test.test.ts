import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { boundsOf } from '../../../src/core/iceberg/bounds.ts';
import { compareValues } from '../../../src/core/iceberg/single-value.ts';
import type { PrimitiveType, Value } from '../../../src/core/iceberg/types.ts';
import { equalsTest, type KnownValues, rangeTest } from '../../../src/core/iceberg/value-test.ts';
import { edgesOf, TYPES } from '../parquet/values.ts';

const UNKNOWN: KnownValues = { lower: null, upper: null, hasNull: null, hasValue: null };

/** What a writer would say of the values: bounds without NaN, cut where they are long. */
function known(type: PrimitiveType, values: readonly Value[]): KnownValues {
  const bounded = values.filter((value) => value !== null && !Number.isNaN(value));
  bounded.sort((a, b) => compareValues(type, a, b));
  const bounds = boundsOf(type, bounded[0] ?? null, bounded.at(-1) ?? null);
  return {
    lower: bounds?.lower ?? null,
    upper: bounds?.upper ?? null,
    hasNull: values.includes(null),
    hasValue: values.some((value) => value !== null),
  };
}

/** Equality of rows: NaN equals itself, both zeros are one. */
function isSame(type: PrimitiveType, a: Value, b: Value): boolean {
  if (a === null || b === null) return a === b;
  return a === b || compareValues(type, a, b) === 0;
}

const some = fc.constantFrom(...TYPES).chain((type) => {
  const value = fc.option(fc.constantFrom(...edgesOf(type)));
  return fc.record({
    type: fc.constant<PrimitiveType>(type),
    held: fc.array(value, { maxLength: 4 }),
    wanted: fc.array(value, { maxLength: 3 }),
    /** What the writer left out. */
    silent: fc.subarray(['lower', 'upper', 'hasNull', 'hasValue'] as const),
  });
});

function told(type: PrimitiveType, held: readonly Value[], silent: readonly (keyof KnownValues)[]): KnownValues {
  return { ...known(type, held), ...Object.fromEntries(silent.map((name) => [name, null])) };
}

describe('a test of values', () => {
  test('one of some values: never denied where a row has one, whatever the writer left out', () => {
    let denied = 0;
    fc.assert(
      fc.property(some, ({ type, held, wanted, silent }) => {
        const mayHold = equalsTest(1, type, wanted).mayHold(told(type, held, silent));
        const holds = held.some((value) => wanted.some((one) => isSame(type, value, one)));
        expect(mayHold || !holds).toBe(true);
        denied += mayHold ? 0 : 1;
      }),
      { numRuns: 1000 },
    );
    expect(denied).toBeGreaterThan(100);
  });

  test('a range: never denied where a row lies in it, its ends among them', () => {
    let denied = 0;
    fc.assert(
      fc.property(some, ({ type, held, wanted, silent }) => {
        fc.pre(type !== 'float' && type !== 'double');
        const [first = null, last = null] = wanted;
        const mayHold = rangeTest(1, type, first, last).mayHold(told(type, held, silent));
        const holds = held.some(
          (value) =>
            value !== null &&
            (first === null || compareValues(type, value, first) >= 0) &&
            (last === null || compareValues(type, value, last) <= 0),
        );
        expect(mayHold || !holds).toBe(true);
        denied += mayHold ? 0 : 1;
      }),
      { numRuns: 1000 },
    );
    expect(denied).toBeGreaterThan(100);
  });

  test.each<[string, PrimitiveType, Value[], Partial<KnownValues>, boolean]>([
    ['below the lower bound', 'long', [1n], { lower: 2n, upper: 3n }, false],
    ['above the upper bound', 'long', [4n], { lower: 2n, upper: 3n }, false],
    ['a bound itself', 'long', [3n], { lower: 2n, upper: 3n }, true],
    ['one of several', 'long', [1n, 2n], { lower: 2n, upper: 3n }, true],
    ['none wanted', 'long', [], { lower: 2n, upper: 3n }, false],
    ['the ends of int64', 'long', [2n ** 63n - 1n], { lower: -(2n ** 63n), upper: 2n ** 63n - 2n }, false],
    ['nothing known', 'long', [1n], {}, true],
    ['nulls alone', 'long', [1n], { hasNull: true, hasValue: false }, false],
    ['null among nulls', 'long', [null], { hasNull: true, hasValue: false }, true],
    ['null where there is none', 'long', [null], { hasNull: false, hasValue: true }, false],
    ['NaN, which bounds leave out', 'double', [Number.NaN], { lower: 1, upper: 2 }, true],
    ['a number where all are NaN', 'double', [5], { hasNull: false, hasValue: true }, true],
    ['bounds that are NaN', 'double', [5], { lower: Number.NaN, upper: Number.NaN }, true],
    ['the other zero below', 'double', [-0], { lower: 0, upper: 1 }, true],
    ['the other zero above', 'double', [0], { lower: -1, upper: -0 }, true],
    ['text by code points, not UTF-16 units', 'string', ['\u{1f600}'], { lower: 'a', upper: '\uffff' }, false],
    ['text between code points', 'string', ['\uffff'], { lower: '\ue000', upper: '\u{1f600}' }, true],
    [
      'bytes without a sign',
      'binary',
      [Uint8Array.of(0xff)],
      { lower: Uint8Array.of(0), upper: Uint8Array.of(0x7f) },
      false,
    ],
    ['a decimal below zero', 'decimal(38, 10)', [-1n], { lower: 0n, upper: 5n }, false],
  ])('%s', (_, type, wanted, values, mayHold) => {
    expect(equalsTest(1, type, wanted).mayHold({ ...UNKNOWN, ...values })).toBe(mayHold);
  });

  test.each<[string, Value, Value, Partial<KnownValues>, boolean]>([
    ['before it', 10n, 20n, { lower: 1n, upper: 9n }, false],
    ['after it', 10n, 20n, { lower: 21n, upper: 30n }, false],
    ['touching its first', 10n, 20n, { lower: 1n, upper: 10n }, true],
    ['touching its last', 10n, 20n, { lower: 20n, upper: 30n }, true],
    ['around it', 10n, 20n, { lower: 1n, upper: 30n }, true],
    ['open below', null, -1n, { lower: 0n, upper: 1n }, false],
    ['open above', 1n, null, { lower: -5n, upper: 0n }, false],
    ['rows without a value alone', null, null, { hasNull: true, hasValue: false }, false],
    ['nothing known', 10n, 20n, {}, true],
  ])('a range and values %s', (_, first, last, values, mayHold) => {
    expect(rangeTest(1, 'timestamptz', first, last).mayHold({ ...UNKNOWN, ...values })).toBe(mayHold);
  });
});
