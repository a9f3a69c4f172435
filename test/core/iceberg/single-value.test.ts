import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { compareBytes, fromHex, hex, utf8 } from '../../../src/core/base/bytes.ts';
import {
  compareCodePoints,
  compareFloats,
  compareValues,
  decodeValue,
  encodeValue,
} from '../../../src/core/iceberg/single-value.ts';
import type { Value } from '../../../src/core/iceberg/types.ts';

const bytes = (text: string) => fromHex(text)!;

describe('encodeValue', () => {
  const cases: [string, Value, string][] = [
    ['boolean', true, '01'],
    ['boolean', false, '00'],
    ['int', 34, '22000000'],
    ['int', -2147483648, '00000080'],
    ['date', -1, 'ffffffff'],
    ['long', 34n, '2200000000000000'],
    ['long', 9007199254740993n, '0100000000002000'],
    ['long', -(2n ** 63n), '0000000000000080'],
    ['time', 36000000000n, '0068c46108000000'],
    ['timestamp', -1n, 'ffffffffffffffff'],
    ['timestamptz', 1_700_000_000_000_000n, '00401e18240a0600'],
    ['float', -4.5, '000090c0'],
    ['double', 6.25, '0000000000001940'],
    ['string', 'ABC', '414243'],
    ['string', '', ''],
    ['string', '€', 'e282ac'],
    ['binary', bytes('00ff'), '00ff'],
    ['fixed[3]', bytes('010203'), '010203'],
    ['uuid', bytes('f79c3e09677c4bbda4793f349cb785e7'), 'f79c3e09677c4bbda4793f349cb785e7'],
    ['decimal(9, 2)', 0n, '00'],
    ['decimal(9, 2)', 1420n, '058c'],
    ['decimal(9, 2)', 128n, '0080'],
    ['decimal(9, 2)', -128n, '80'],
    ['decimal(9, 2)', -129n, 'ff7f'],
    ['decimal(38, 0)', 10n ** 38n - 1n, '4b3b4ca85a86c47a098a223fffffffff'],
  ];
  for (const [type, value, expected] of cases) {
    it(`B1, B2, B3: ${type} ${String(value)} has the spec's bytes`, () => {
      expect(hex(encodeValue(type, value))).toBe(expected);
    });
  }

  it('B011: int and date take four bytes, never eight', () => {
    expect(encodeValue('date', 18690)).toHaveLength(4);
    expect(encodeValue('int', 7)).toHaveLength(4);
  });

  it('refuses a value outside its type instead of cutting it', () => {
    const wrong: [string, Value][] = [
      ['int', 2147483648],
      ['int', 1.5],
      ['long', 2n ** 63n],
      ['long', 5],
      ['float', 0.1],
      ['decimal(3, 0)', 1000n],
      ['decimal(3, 0)', -1000n],
      ['fixed[3]', bytes('0102')],
      ['uuid', bytes('01')],
      ['string', null],
    ];
    for (const [type, value] of wrong) {
      expect(() => encodeValue(type, value), `${type} ${String(value)}`).toThrow(
        expect.objectContaining({ type: 'bad-value' }),
      );
    }
  });
});

describe('decodeValue', () => {
  it('B19: reads narrow bounds written before a promotion, by length', () => {
    expect(decodeValue('long', encodeValue('int', -7))).toBe(-7n);
    expect(decodeValue('double', encodeValue('float', -4.5))).toBe(-4.5);
    expect(decodeValue('decimal(20, 2)', encodeValue('decimal(3, 2)', -128n))).toBe(-128n);
  });

  it('reads decimals with superfluous sign bytes of other writers', () => {
    expect(decodeValue('decimal(9, 2)', bytes('00000001'))).toBe(1n);
    expect(decodeValue('decimal(9, 2)', bytes('ffffffff'))).toBe(-1n);
  });

  it('refuses widths the type cannot have', () => {
    const wrong: [string, string][] = [
      ['int', '0000000000000000'],
      ['date', '0000000000000000'],
      ['timestamp', '00000000'],
      ['boolean', ''],
      ['decimal(9, 2)', ''],
      ['decimal(9, 2)', '00'.repeat(17)],
      ['uuid', '00'],
      ['fixed[2]', '000000'],
      ['float', '0000000000000000'],
    ];
    for (const [type, text] of wrong) {
      expect(() => decodeValue(type, bytes(text)), `${type} ${text}`).toThrow(
        expect.objectContaining({ kind: 'corrupt', type: 'bad-single-value' }),
      );
    }
  });

  it('B005: refuses text cut in the middle of a character', () => {
    expect(() => decodeValue('string', bytes('61e282'))).toThrow(expect.objectContaining({ kind: 'corrupt' }));
  });

  it('gives back what was encoded, for every type', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const values: [string, fc.Arbitrary<Value>][] = [
      ['boolean', fc.boolean()],
      ['int', fc.integer()],
      ['long', int64],
      ['timestamptz', int64],
      ['float', fc.float()],
      ['double', fc.double()],
      ['string', fc.string({ unit: 'grapheme' })],
      ['binary', fc.uint8Array()],
      ['fixed[4]', fc.uint8Array({ minLength: 4, maxLength: 4 })],
      ['decimal(38, 5)', fc.bigInt({ min: -(10n ** 38n) + 1n, max: 10n ** 38n - 1n })],
    ];
    for (const [type, arbitrary] of values) {
      fc.assert(
        fc.property(arbitrary, (value) => {
          expect(decodeValue(type, encodeValue(type, value))).toEqual(value);
        }),
      );
    }
  });
});

describe('compareValues', () => {
  it('B003, B5: orders text by code point, where UTF-16 order differs', () => {
    expect(compareValues('string', '\uFFFDx', '😀x')).toBeLessThan(0);
    expect('\uFFFDx' < '😀x').toBe(false);
  });

  it('orders text as its UTF-8 bytes, always', () => {
    const text = fc.string({ unit: 'binary' });
    fc.assert(
      fc.property(text, text, (a, b) => {
        expect(Math.sign(compareCodePoints(a, b))).toBe(Math.sign(compareBytes(utf8(a), utf8(b))));
      }),
    );
  });

  it('B6: orders uuid, fixed and binary by unsigned bytes, shorter first', () => {
    expect(compareValues('uuid', bytes(`7f${'00'.repeat(15)}`), bytes(`80${'00'.repeat(15)}`))).toBeLessThan(0);
    expect(compareValues('binary', bytes('01'), bytes('0100'))).toBeLessThan(0);
  });

  it('B8, B016: puts -0 before +0 and NaN last', () => {
    const sorted = [Number.NaN, 0, -0, Infinity, -Infinity, 1, -1].sort(compareFloats);
    expect(sorted).toEqual([-Infinity, -1, -0, 0, 1, Infinity, Number.NaN]);
    expect(compareFloats(Number.NaN, Number.NaN)).toBe(0);
  });

  it('orders longs beyond 2^53 exactly', () => {
    expect(compareValues('long', 9007199254740993n, 9007199254740992n)).toBeGreaterThan(0);
    expect(compareValues('decimal(38, 2)', -2n, -1n)).toBeLessThan(0);
    expect(compareValues('boolean', false, true)).toBeLessThan(0);
    expect(compareValues('date', -1, 3)).toBeLessThan(0);
  });
});
