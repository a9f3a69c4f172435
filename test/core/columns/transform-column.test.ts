import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { transformColumn } from '../../../src/core/columns/transform-column.ts';
import { valueAt } from '../../../src/core/columns/value.ts';
import { applyTransform, resultType } from '../../../src/core/iceberg/transform.ts';
import type { PrimitiveType, Value } from '../../../src/core/iceberg/types.ts';
import { columnsOf, schemaOf } from './rows.ts';

function transformed(
  type: PrimitiveType,
  transform: string,
  values: unknown[],
  dictionaryEntriesMax?: number,
): Value[] {
  const columns = columnsOf(
    schemaOf([['c', type]]),
    values.map((value) => [value]),
    dictionaryEntriesMax,
  );
  const result = transformColumn(columns.columns[0], columns.schema.fields[0], transform);
  expect(result.type).toBe(resultType(transform, type));
  return values.map((_, row) => valueAt(result.column, result.type, row));
}

const HOUR = 3_600_000_000n;
const DAY = 24n * HOUR;

describe('transform column', () => {
  test('transform column: hours, days, months and years floor below zero (B042, B043, B045)', () => {
    const times = [-1n, 0n, -HOUR, -HOUR - 1n, -DAY, -DAY - 1n, -618_105_600_000_000n, 1_709_164_800_000_000n, null];
    expect(transformed('timestamptz', 'hour', times)).toEqual([-1, 0, -1, -2, -24, -25, -171_696, 474_768, null]);
    expect(transformed('timestamptz', 'day', times)).toEqual([-1, 0, -1, -1, -1, -2, -7154, 19_782, null]);
    expect(transformed('timestamp', 'month', times)).toEqual([-1, 0, -1, -1, -1, -1, -235, 649, null]);
    expect(transformed('timestamp', 'year', times)).toEqual([-1, 0, -1, -1, -1, -1, -20, 54, null]);
    expect(transformed('date', 'year', [-1, 0, -366, null])).toEqual([-1, 0, -2, null]);
  });

  test('transform column: the day of an instant is the day in UTC (B048)', () => {
    // 2024-03-10T23:30:00Z, in whatever zone it was written
    expect(transformed('timestamptz', 'day', [1_710_113_400_000_000n])).toEqual([19_792]);
  });

  test.each(['year', 'month', 'day', 'hour'])('transform column: %s of any time, as one value at a time', (name) => {
    // Hours beyond int32 are refused: stay within 245,000 years.
    const micros = fc.oneof(
      fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }),
      fc.bigInt({ min: -3n * DAY, max: 3n * DAY }),
    );
    fc.assert(
      fc.property(fc.array(fc.option(micros), { maxLength: 20 }), (times) => {
        const expected = times.map((time) => applyTransform(name, 'timestamptz', time));
        expect(transformed('timestamptz', name, times)).toEqual(expected);
      }),
    );
  });

  test('transform column: an hour beyond int32 is refused, not wrapped', () => {
    expect(() => transformed('timestamptz', 'hour', [2n ** 63n - 1n])).toThrow('hour');
  });

  const unscaled = fc.bigInt({ min: -(10n ** 8n), max: 10n ** 8n });
  test.each<[PrimitiveType, string, fc.Arbitrary<Value>]>([
    ['string', 'bucket[16]', fc.string({ unit: 'binary', maxLength: 10 })],
    ['string', 'truncate[2]', fc.string({ unit: 'binary', maxLength: 10 })],
    ['binary', 'truncate[2]', fc.uint8Array({ maxLength: 5 })],
    ['binary', 'bucket[5]', fc.uint8Array({ maxLength: 5 })],
    ['long', 'bucket[7]', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
    ['long', 'truncate[100]', fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n })],
    ['int', 'truncate[100]', fc.integer({ min: -1_000_000 })],
    ['date', 'bucket[3]', fc.integer({ min: -1_000_000, max: 1_000_000 })],
    ['uuid', 'bucket[3]', fc.uint8Array({ minLength: 16, maxLength: 16 })],
    ['date', 'month', fc.integer({ min: -1_000_000, max: 1_000_000 })],
    ['string', 'void', fc.string({ unit: 'binary', maxLength: 3 })],
    ['string', 'identity', fc.string({ unit: 'binary', maxLength: 3 })],
    ['decimal(9, 2)', 'identity', unscaled],
  ])('transform column: %s, %s, as one value at a time', (type, transform, value) => {
    fc.assert(
      fc.property(fc.array(fc.option(value), { maxLength: 12 }), fc.nat(3), (values, limit) => {
        const held = type.startsWith('decimal') ? values.map((v) => (v === null ? null : Number(v))) : values;
        const expected = values.map((v) => applyTransform(transform, type, v));
        expect(transformed(type, transform, held, limit)).toEqual(expected);
      }),
    );
  });

  test.each<[PrimitiveType, string, bigint[]]>([
    ['decimal(9, 2)', 'truncate[50]', [1065n, -1n, 0n]],
    ['decimal(18, 2)', 'truncate[50]', [10n ** 17n + 65n, -1n]],
    ['decimal(18, 2)', 'bucket[9]', [10n ** 17n + 65n, -1n]],
  ])('transform column: %s, %s of unscaled values', (type, transform, values) => {
    const held = type === 'decimal(9, 2)' ? values.map(Number) : values;
    expect(transformed(type, transform, held)).toEqual(values.map((v) => applyTransform(transform, type, v)));
  });

  test('transform column: decimals wider than int64 are truncated by value', () => {
    const columns = columnsOf(schemaOf([['d', 'decimal(38, 0)']]), [[Uint8Array.from({ length: 16 }, () => 255)]]);
    const result = transformColumn(columns.columns[0], columns.schema.fields[0], 'truncate[10]');
    expect(valueAt(result.column, result.type, 0)).toBe(-10n);
  });

  test('transform column: a transform that does not take the type is refused', () => {
    expect(() => transformed('string', 'day', [])).toThrow('does not take');
    expect(() => transformed('double', 'bucket[4]', [])).toThrow('does not take');
    expect(() => transformed('long', 'sideways', [])).toThrow('not known');
  });
});
