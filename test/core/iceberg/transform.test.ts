import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { fromHex } from '../../../src/core/base/bytes.ts';
import { civilOfDay, dateText, dayOfCivil } from '../../../src/core/iceberg/calendar.ts';
import {
  applyTransform,
  bucketHash,
  ordinalOfMicros,
  ordinalOfPair,
  parseTransform,
  resultType,
  startOfOrdinal,
  type TimeTransform,
} from '../../../src/core/iceberg/transform.ts';
import type { Value } from '../../../src/core/iceberg/types.ts';

const micros = (iso: string) => BigInt(Date.parse(iso)) * 1000n;
const TIME: TimeTransform[] = ['year', 'month', 'day', 'hour'];

describe('time transforms', () => {
  it('T1, B042, B045: floor below 1970: the last microsecond of 1969 is -1 in every unit', () => {
    for (const name of TIME) expect(applyTransform(name, 'timestamptz', -1n)).toBe(-1);
    expect(applyTransform('hour', 'timestamptz', micros('1969-12-31T23:59:59Z'))).toBe(-1);
    for (const name of ['year', 'month', 'day'] as const) expect(applyTransform(name, 'date', -1)).toBe(-1);
  });

  it('B043: 1950-06-01 has a negative day, neither wrapped nor clamped', () => {
    expect(applyTransform('day', 'timestamp', micros('1950-06-01T00:00:00Z'))).toBe(-7154);
    expect(applyTransform('month', 'timestamp', micros('1950-06-01T00:00:00Z'))).toBe(-235);
    expect(applyTransform('year', 'timestamp', micros('1950-06-01T00:00:00Z'))).toBe(-20);
  });

  it('T2, B048, B049: the day is the UTC day, with zone or without, whatever the host is set to', () => {
    const late = micros('2024-03-10T23:30:00Z');
    const before = process.env['TZ'];
    try {
      for (const zone of ['UTC', 'Asia/Tokyo', 'America/Los_Angeles']) {
        process.env['TZ'] = zone;
        expect(applyTransform('day', 'timestamptz', late)).toBe(19792);
        expect(applyTransform('day', 'timestamp', late)).toBe(19792);
      }
    } finally {
      if (before === undefined) delete process.env['TZ'];
      else process.env['TZ'] = before;
    }
    expect(dateText(19792)).toBe('2024-03-10');
  });

  it('agrees with the calendar of the runtime over years 0001 to 9999', () => {
    const day = fc.integer({ min: -719162, max: 2932896 });
    fc.assert(
      fc.property(day, (value) => {
        const date = new Date(value * 86_400_000);
        expect(civilOfDay(value)).toEqual({
          year: date.getUTCFullYear(),
          month: date.getUTCMonth() + 1,
          day: date.getUTCDate(),
        });
        expect(dayOfCivil(date.getUTCFullYear(), date.getUTCMonth() + 1, date.getUTCDate())).toBe(value);
      }),
    );
    expect(dateText(-719162)).toBe('0001-01-01');
    expect(dateText(-719163)).toBe(null);
    expect(dateText(2932896)).toBe('9999-12-31');
    expect(dateText(2932897)).toBe(null);
  });

  it('every instant lies between the start of its ordinal and the next start, over all of int64', () => {
    const value = fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n });
    fc.assert(
      fc.property(value, fc.constantFrom(...TIME), (at, name) => {
        const ordinal = ordinalOfMicros(name, at);
        expect(startOfOrdinal(name, ordinal) <= at).toBe(true);
        expect(startOfOrdinal(name, ordinal + 1) > at).toBe(true);
      }),
    );
  });

  it('the borders of every unit are exact to the microsecond', () => {
    const ordinal = fc.integer({ min: -17_259_888, max: 70_389_527 });
    fc.assert(
      fc.property(ordinal, fc.constantFrom(...TIME), (hours, name) => {
        const scale = { year: 8766, month: 730, day: 24, hour: 1 }[name];
        const unit = Math.trunc(hours / scale) + 0;
        const start = startOfOrdinal(name, unit);
        expect(ordinalOfMicros(name, start)).toBe(unit);
        expect(ordinalOfMicros(name, start - 1n)).toBe(unit - 1);
      }),
    );
  });

  it('the pair form equals the bigint form', () => {
    fc.assert(
      fc.property(fc.bigInt({ min: -(2n ** 62n), max: 2n ** 62n }), fc.constantFrom(...TIME), (at, name) => {
        const column = BigInt64Array.of(at);
        const [low, high] = new Int32Array(column.buffer);
        expect(ordinalOfPair(name, low, high)).toBe(ordinalOfMicros(name, at));
      }),
    );
    expect(ordinalOfMicros('hour', -1)).toBe(-1);
  });

  it('refuses an hour beyond int32 instead of wrapping', () => {
    expect(() => ordinalOfMicros('hour', 2n ** 63n - 1n)).toThrow(expect.objectContaining({ type: 'bad-value' }));
  });
});

describe('bucket', () => {
  const vectors: [string, Value, number][] = [
    ['int', 34, 2017239379],
    ['long', 34n, 2017239379],
    ['decimal(9, 2)', 1420n, -500754589],
    ['date', 17486, -653330422],
    ['time', 81068000000n, -662762989],
    ['timestamp', micros('2017-11-16T22:31:08Z'), -2047944441],
    ['timestamptz', micros('2017-11-16T14:31:08-08:00'), -2047944441],
    ['string', 'iceberg', 1210000089],
    ['uuid', fromHex('f79c3e09677c4bbda4793f349cb785e7'), 1488055340],
    ['fixed[4]', fromHex('00010203'), -188683207],
    ['binary', fromHex('00010203'), -188683207],
  ];
  for (const [type, value, hash] of vectors) {
    it(`T4: hashes ${type} to the value in the spec`, () => {
      expect(bucketHash(type, value)).toBe(hash);
      // the sign bit is dropped, not the sign
      const positive = hash < 0 ? hash + 2 ** 31 : hash;
      for (const buckets of [1, 16, 1000, 2_147_483_647]) {
        expect(applyTransform(`bucket[${buckets}]`, type, value)).toBe(positive % buckets);
      }
    });
  }
});

describe('truncate', () => {
  it('T5: goes down to a multiple, below zero too', () => {
    expect(applyTransform('truncate[10]', 'int', 1)).toBe(0);
    expect(applyTransform('truncate[10]', 'int', -1)).toBe(-10);
    expect(applyTransform('truncate[10]', 'long', -1n)).toBe(-10n);
    expect(applyTransform('truncate[50]', 'decimal(9, 2)', 1065n)).toBe(1050n);
    expect(applyTransform('truncate[50]', 'decimal(9, 2)', -5n)).toBe(-50n);
  });

  it('T5: cuts text by code points and binary by bytes', () => {
    expect(applyTransform('truncate[3]', 'string', 'iceberg')).toBe('ice');
    expect(applyTransform('truncate[2]', 'string', '😀😀😀')).toBe('😀😀');
    expect(applyTransform('truncate[2]', 'string', '😀')).toBe('😀');
    expect(applyTransform('truncate[2]', 'binary', Uint8Array.of(1, 2, 3))).toEqual(Uint8Array.of(1, 2));
  });

  it('refuses a result that leaves the type instead of wrapping around', () => {
    expect(() => applyTransform('truncate[10]', 'int', -2147483648)).toThrow();
    expect(() => applyTransform('truncate[10]', 'long', -(2n ** 63n))).toThrow();
    expect(() => applyTransform('truncate[50]', 'decimal(3, 0)', -999n)).toThrow();
  });
});

describe('transforms', () => {
  it('T6: null gives null, and void gives null for all', () => {
    const all = ['identity', 'void', 'bucket[4]', 'truncate[4]'];
    for (const text of all) expect(applyTransform(text, 'string', null)).toBe(null);
    for (const text of TIME) expect(applyTransform(text, 'timestamp', null)).toBe(null);
    expect(applyTransform('void', 'string', 'x')).toBe(null);
    expect(applyTransform('identity', 'double', -0)).toBe(-0);
  });

  it('T3: name the type of their result', () => {
    expect(resultType('day', 'timestamptz')).toBe('date');
    expect(resultType('hour', 'timestamptz')).toBe('int');
    expect(resultType('bucket[8]', 'string')).toBe('int');
    expect(resultType('truncate[8]', 'decimal(9, 2)')).toBe('decimal(9, 2)');
    expect(resultType('identity', 'uuid')).toBe('uuid');
  });

  it('refuse sources they do not take', () => {
    const wrong: [string, string][] = [
      ['hour', 'date'],
      ['day', 'long'],
      ['bucket[4]', 'double'],
      ['bucket[4]', 'boolean'],
      ['truncate[4]', 'uuid'],
      ['truncate[4]', 'double'],
      ['year', 'time'],
    ];
    for (const [transform, source] of wrong) {
      expect(() => resultType(transform, source)).toThrow(expect.objectContaining({ type: 'bad-transform' }));
    }
    expect(() => resultType('identity', { type: 'struct', fields: [] })).toThrow();
  });

  it('parse strictly', () => {
    expect(parseTransform('bucket[16]')).toEqual({ name: 'bucket', buckets: 16 });
    expect(parseTransform('truncate[1]')).toEqual({ name: 'truncate', width: 1 });
    for (const text of [
      '',
      'Day',
      'bucket',
      'bucket[0]',
      'bucket[-1]',
      'bucket[1.5]',
      'truncate[99999999999]',
      'zip',
    ]) {
      expect(() => parseTransform(text)).toThrow(expect.objectContaining({ type: 'unknown-transform' }));
    }
  });
});
