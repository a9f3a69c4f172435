import { describe, expect, test } from 'vitest';
import { parsePartitionValue } from '../../../src/core/iceberg/partition-label.ts';
import { partitionLabel } from '../../../src/core/iceberg/partition-spec.ts';

describe('partition values', () => {
  test('label: what a folder says is read back, for every time transform and sign', () => {
    for (const transform of ['year', 'month', 'day', 'hour'] as const) {
      const type = transform === 'day' ? 'date' : 'int';
      for (const ordinal of [-719_162, -1000, -13, -1, 0, 1, 11, 12, 56, 672, 20_454, 490_901]) {
        const label = partitionLabel(transform, type, ordinal);
        const isText = !/^-?[0-9]+$/.test(label) || transform === 'year';
        if (transform === 'year' && (ordinal < -1969 || ordinal > 8029)) continue;
        expect(isText ? parsePartitionValue(transform, type, label) : ordinal).toBe(ordinal);
        expect(parsePartitionValue(transform, type, ordinal)).toBe(ordinal);
      }
    }
  });

  test('label: values of identity partitions', () => {
    expect(parsePartitionValue('identity', 'string', 'null')).toBe('null');
    expect(parsePartitionValue('identity', 'string', null)).toBeNull();
    expect(parsePartitionValue('identity', 'long', '9007199254740993')).toBe(9007199254740993n);
    expect(parsePartitionValue('identity', 'boolean', 'false')).toBe(false);
    expect(parsePartitionValue('identity', 'double', 'NaN')).toBeNaN();
    expect(parsePartitionValue('bucket[16]', 'int', 3)).toBe(3);
    expect(parsePartitionValue('identity', 'date', '2026-01-03')).toBe(20_456);
    expect(parsePartitionValue('identity', 'fixed[2]', '0aff')).toEqual(Uint8Array.of(10, 255));
    const uuid = '0c9b5e1e-8f3d-4f6d-9a33-2f0c5f6b7a11';
    expect(partitionLabel('identity', 'uuid', parsePartitionValue('identity', 'uuid', uuid))).toBe(uuid);
  });

  test.each([
    ['day', 'date', '2026-02-30'],
    ['day', 'date', 'yesterday'],
    ['month', 'int', '2026-13'],
    ['hour', 'int', '2026-01-03-24'],
    ['identity', 'int', 2_147_483_648],
    ['identity', 'int', 1.5],
    ['identity', 'string', 7],
    ['identity', 'uuid', 'x'],
    ['identity', 'double', ''],
    ['identity', 'long', '9223372036854775808'],
  ])('label: %s of %s refuses %s', (transform, type, given) => {
    expect(() => parsePartitionValue(transform, type, given)).toThrow(/partition value does not fit/);
  });
});
