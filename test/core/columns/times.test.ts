import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { epochMicros, parseDate, parseTime, parseTimestamp } from '../../../src/core/columns/times.ts';

describe('timestamps out of text', () => {
  it.each([
    ['1970-01-01T00:00:00Z', 0],
    ['2026-01-03T12:34:56.789012Z', 1_767_443_696_789_012],
    ['2026-01-03 12:34:56.5', 1_767_443_696_500_000],
    ['2026-01-03t12:34z', 1_767_443_640_000_000],
    ['2026-01-03T12:34:56+02:00', 1_767_436_496_000_000],
    ['2026-01-03T12:34:56-0230', 1_767_452_696_000_000],
    ['2026-01-03T12:34:56+02', 1_767_436_496_000_000],
    ['2024-02-29T00:00:00Z', 1_709_164_800_000_000],
    ['2000-02-29T00:00:00Z', 951_782_400_000_000],
  ])('forms: %s', (text, micros) => {
    expect(parseTimestamp(text)).toBe(micros);
  });

  it('one day after another, and the same again: each text has its own day', () => {
    const day = 86_400_000_000;
    const days = ['1970-01-01', '1970-01-02', '1970-01-02', '1970-02-01', '1970-01-02', '1971-01-02'];
    expect(days.map((date) => parseTimestamp(`${date}T00:00:00Z`))).toEqual(
      [0, 1, 1, 31, 1, 366].map((number) => number * day),
    );
    expect(parseTimestamp('1971-02-29T00:00:00Z')).toBe('malformed');
    expect(parseTimestamp('1971-01-02T00:00:00Z')).toBe(366 * day);
  });

  it('B045: below 1970 the fraction counts upwards from its second', () => {
    expect(parseTimestamp('1969-12-31T23:59:59.999999Z')).toBe(-1);
    expect(parseTimestamp('1969-12-31T23:59:58.000001Z')).toBe(-1_999_999);
  });

  it('B054: nanoseconds are floored to microseconds, below 1970 too', () => {
    expect(parseTimestamp('2024-01-01T00:00:00.123456789Z')).toBe(1_704_067_200_123_456);
    expect(parseTimestamp('1969-12-31T23:59:59.9999999Z')).toBe(-1);
    expect(parseTimestamp('1969-12-31T23:59:59.999998001Z')).toBe(-2);
  });

  it('B048 B049: an offset is applied, and no zone is UTC, whatever the zone of the machine', () => {
    expect(parseTimestamp('2024-03-10T23:30:00')).toBe(Date.UTC(2024, 2, 10, 23, 30) * 1000);
    expect(parseTimestamp('2024-03-11T01:30:00+02:00')).toBe(Date.UTC(2024, 2, 10, 23, 30) * 1000);
  });

  it('B052: the years are 0001 to 9999, also after the offset', () => {
    expect(parseTimestamp('0001-01-01T00:00:00Z')).toBe(-62_135_596_800_000_000n);
    expect(parseTimestamp('9999-12-31T23:59:59.999999Z')).toBe(253_402_300_799_999_999n);
    expect(parseTimestamp('0001-01-01T00:00:00+00:01')).toBe('out-of-range');
    expect(parseTimestamp('9999-12-31T23:59:59-00:01')).toBe('out-of-range');
    for (const text of [
      '10000-01-01T00:00:00Z',
      '+12026-01-01T00:00:00Z',
      '-0001-01-01T00:00:00Z',
      '0000-12-31T00:00:00Z',
      '0000-00-00T00:00:00Z',
    ]) {
      expect(parseTimestamp(text)).toBe('out-of-range');
    }
  });

  it.each([
    '',
    'now',
    '2026-01-03',
    '2026-1-3T00:00:00Z',
    '2026-13-01T00:00:00Z',
    '2026-00-01T00:00:00Z',
    '2026-02-29T00:00:00Z',
    '1900-02-29T00:00:00Z',
    '2026-04-31T00:00:00Z',
    '2026-01-03T24:00:00Z',
    '2026-01-03T12:60:00Z',
    '2026-01-03T12:34:60Z',
    '2026-01-03T12:34:56.Z',
    '2026-01-03T12:34:56.1234567890Z',
    '2026-01-03T12:34:56ZZ',
    '2026-01-03T12:34:56 Z',
    '2026-01-03T12:34:56+2',
    '2026-01-03T12:34:56+24:00',
    '2026-01-03T12:34:56+02:60',
    '2026-01-03T12:34:56+02:0',
    '2026-01-03T12Z',
    '2026-01-03X12:34:56Z',
    '2026-01-03T12:34:56.12a456Z',
    '２026-01-03T12:34:56Z',
  ])('malformed: %s', (text) => {
    expect(parseTimestamp(text)).toBe('malformed');
  });

  it('agrees with the engine on every millisecond of the years it can name', () => {
    const first = Date.UTC(1000, 0, 1);
    const time = fc.integer({ min: first, max: Date.UTC(9999, 11, 31) });
    fc.assert(
      fc.property(time, (ms) => {
        expect(BigInt(parseTimestamp(new Date(ms).toISOString()))).toBe(BigInt(ms) * 1000n);
      }),
      { numRuns: 500 },
    );
  });
});

describe('dates and times of day out of text', () => {
  it('B052: dates are days since 1970 of the years 0001 to 9999', () => {
    expect(parseDate('1970-01-01')).toBe(0);
    expect(parseDate('1969-12-31')).toBe(-1);
    expect(parseDate('0001-01-01')).toBe(-719_162);
    expect(parseDate('9999-12-31')).toBe(2_932_896);
    expect(parseDate('10000-01-01')).toBe('out-of-range');
    expect(parseDate('0000-12-31')).toBe('out-of-range');
    for (const text of ['2026-1-3', '2026-02-30', '20260103', '2026-01-03T00:00:00Z', '2026/01/03']) {
      expect(parseDate(text)).toBe('malformed');
    }
  });

  it('times of day', () => {
    expect(parseTime('00:00')).toBe(0);
    expect(parseTime('23:59:59.999999999')).toBe(86_399_999_999);
    expect(parseTime('12:34:56.5')).toBe(45_296_500_000);
    for (const text of ['24:00', '12:34:56Z', '12', '12:34:', '-1:00', '']) expect(parseTime(text)).toBe('malformed');
  });
});

describe('epoch numbers', () => {
  it('count units and are floored', () => {
    expect(epochMicros(1_700_000_000, 's')).toBe(1_700_000_000_000_000);
    expect(epochMicros(-1, 'ms')).toBe(-1000);
    expect(epochMicros(-1, 'ns')).toBe(-1);
    expect(epochMicros(-1001n, 'ns')).toBe(-2n);
    expect(epochMicros(1_700_000_000_123_456_789n, 'ns')).toBe(1_700_000_000_123_456n);
    expect(epochMicros(253_402_300_799_999_999n, 'us')).toBe(253_402_300_799_999_999n);
  });

  it('B082: a unit too large leads out of the years and is refused', () => {
    expect(epochMicros(1_700_000_000_000_000, 's')).toBe('out-of-range');
    expect(epochMicros(1_700_000_000_123_456_789n, 's')).toBe('out-of-range');
    expect(epochMicros(253_402_300_800_000_000n, 'us')).toBe('out-of-range');
  });
});
