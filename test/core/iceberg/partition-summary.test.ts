import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { PartitionSummaries } from '../../../src/core/iceberg/partition-summary.ts';
import { compareValues, decodeValue } from '../../../src/core/iceberg/single-value.ts';
import type { FieldSummary, Value } from '../../../src/core/iceberg/types.ts';

function summary(type: string, ...values: Value[]): FieldSummary {
  const summaries = new PartitionSummaries([type]);
  for (const value of values) summaries.add([value]);
  return summaries.summaries()[0];
}

function bounds(type: string, ...values: Value[]): [Value, Value] {
  const { lowerBound, upperBound } = summary(type, ...values);
  return [lowerBound && decodeValue(type, lowerBound), upperBound && decodeValue(type, upperBound)];
}

describe('partition summary', () => {
  test('ML7 one per field, in spec order; none when unpartitioned', () => {
    const summaries = new PartitionSummaries(['int', 'string']);
    summaries.add([1, 'x']);
    summaries.add([2, null]);
    expect(summaries.summaries().map((field) => field.containsNull)).toEqual([false, true]);
    const none = new PartitionSummaries([]);
    none.add([]);
    expect(none.summaries()).toEqual([]);
  });

  test('ML8 null values: said, and left out of the bounds', () => {
    expect(summary('int', null, 3, null)).toMatchObject({ containsNull: true, containsNan: false });
    expect(bounds('int', null, 3, null)).toEqual([3, 3]);
    expect(summary('int', null)).toEqual({
      containsNull: true,
      containsNan: false,
      lowerBound: null,
      upperBound: null,
    });
  });

  test('ML8 NaN: said, and never a bound', () => {
    for (const type of ['float', 'double']) {
      expect(bounds(type, Number.NaN, 1.5, Number.NaN, -2)).toEqual([-2, 1.5]);
      expect(summary(type, Number.NaN)).toEqual({
        containsNull: false,
        containsNan: true,
        lowerBound: null,
        upperBound: null,
      });
      expect(bounds(type, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY)).toEqual([
        Number.NEGATIVE_INFINITY,
        Number.POSITIVE_INFINITY,
      ]);
    }
  });

  test('ML11 both zeros, in either order: lower is -0, upper is +0', () => {
    for (const zeros of [
      [0, -0],
      [-0, 0],
    ]) {
      const [lower, upper] = bounds('double', ...zeros);
      expect(lower).toBe(-0);
      expect(upper).toBe(0);
    }
    expect(bounds('double', -0)[1]).toBe(-0);
    expect(bounds('double', 0)[0]).toBe(0);
  });

  test('ML10 B009 long values: never cut', () => {
    const tenant = 'tenant-eu-west-000000017';
    expect(bounds('string', tenant)).toEqual([tenant, tenant]);
    const long = 'x'.repeat(500);
    expect(bounds('string', `${long}b`, `${long}a`)).toEqual([`${long}a`, `${long}b`]);
  });

  test('B16 the empty string: a bound like any other', () => {
    expect(summary('string', '', 'a').lowerBound).toEqual(new Uint8Array(0));
  });

  test('B5 B6 order: by code point and by unsigned byte', () => {
    expect(bounds('string', '\u{1f600}', '\uffff')).toEqual(['\uffff', '\u{1f600}']);
    expect(bounds('uuid', new Uint8Array(16).fill(0xff), new Uint8Array(16).fill(1))).toEqual([
      new Uint8Array(16).fill(1),
      new Uint8Array(16).fill(0xff),
    ]);
  });

  test('any longs: every value is within the bounds, and both bounds occur', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    fc.assert(
      fc.property(fc.array(int64, { minLength: 1 }), (values) => {
        const [lower, upper] = bounds('long', ...values);
        expect(values).toContain(lower);
        expect(values).toContain(upper);
        for (const value of values) {
          expect(compareValues('long', lower, value)).toBeLessThanOrEqual(0);
          expect(compareValues('long', upper, value)).toBeGreaterThanOrEqual(0);
        }
      }),
    );
  });
});
