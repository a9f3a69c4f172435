import { describe, expect, it } from 'vitest';
import type { Value } from '../../src/core/iceberg/types.ts';
import { applyTransform, hashInput, murmur3, resultType } from './transform.ts';
import {
  compareValues,
  decodeSingle,
  encodeSingle,
  leastBigEndian,
  lowerBoundOf,
  type Primitive,
  parsePrimitive,
  upperBoundOf,
} from './values.ts';

const type = (name: string) => parsePrimitive(name) as Primitive;
const bytesOf = (hex: string) => Uint8Array.from(hex.match(/../g) ?? [], (byte) => Number.parseInt(byte, 16));

describe('transform: hashes of Appendix B', () => {
  it.each<[string, string, Value, number]>([
    ['int', 'int', 34, 2017239379],
    ['long', 'long', 34n, 2017239379],
    ['decimal', 'decimal(9,2)', 1420n, -500754589],
    ['date', 'date', 17486, -653330422],
    ['time', 'time', 81_068_000_000n, -662762989],
    ['timestamp', 'timestamp', 1_510_871_468_000_000n, -2047944441],
    ['timestamp with micros', 'timestamp', 1_510_871_468_000_001n, -1207196810],
    ['string', 'string', 'iceberg', 1210000089],
    ['uuid', 'uuid', bytesOf('f79c3e09677c4bbda4793f349cb785e7'), 1488055340],
    ['fixed', 'fixed[4]', bytesOf('00010203'), -188683207],
    ['binary', 'binary', bytesOf('00010203'), -188683207],
  ])('%s', (_, name, value, expected) => {
    expect(murmur3(hashInput(type(name), value)) | 0).toBe(expected);
  });
});

describe('transform: results', () => {
  it.each<[string, string, Value, Value]>([
    ['day', 'timestamptz', -1n, -1],
    ['hour', 'timestamptz', -1n, -1],
    ['month', 'timestamptz', -1n, -1],
    ['year', 'timestamptz', -1n, -1],
    ['day', 'timestamptz', 0n, 0],
    ['hour', 'timestamp', 3_600_000_000n, 1],
    ['month', 'date', 31, 1],
    ['year', 'date', -719162, -1969],
    ['month', 'date', -719162, -23628],
    ['truncate[10]', 'int', -1, -10],
    ['truncate[10]', 'long', -10n, -10n],
    ['truncate[50]', 'decimal(9,2)', 1065n, 1050n],
    ['truncate[2]', 'string', '\u{1F600}\u{1F600}x', '\u{1F600}\u{1F600}'],
    ['truncate[3]', 'string', 'ab', 'ab'],
    ['truncate[1]', 'binary', Uint8Array.of(1, 2), Uint8Array.of(1)],
    ['identity', 'string', 'x', 'x'],
    ['void', 'string', 'x', null],
    ['bucket[16]', 'string', null, null],
  ])('%s of %s %s is %s', (transform, name, value, expected) => {
    expect(applyTransform(transform, type(name), value)).toEqual(expected);
  });

  it('has the result type of the spec, or none', () => {
    expect(resultType('day', type('timestamptz'))?.name).toBe('date');
    expect(resultType('hour', type('timestamp'))?.name).toBe('int');
    expect(resultType('bucket[4]', type('uuid'))?.name).toBe('int');
    expect(resultType('truncate[4]', type('decimal(9,2)'))).toEqual(type('decimal(9,2)'));
    for (const [transform, name] of [
      ['hour', 'date'],
      ['day', 'long'],
      ['bucket[4]', 'double'],
      ['truncate[4]', 'uuid'],
      ['truncate[0]', 'int'],
    ])
      expect(resultType(transform, type(name))).toBeNull();
  });
});

describe('values: single values', () => {
  it.each<[string, string, Value]>([
    ['boolean', '01', true],
    ['int', 'ffffffff', -1],
    ['long', 'fffffffffffff7ff', -(2n ** 51n) - 1n],
    ['float', '000000bf', -0.5],
    ['double', '0000000000000080', -0],
    ['date', '00000080', -(2 ** 31)],
    ['string', '', ''],
    ['decimal(9,2)', '00', 0n],
    ['decimal(9,2)', '80', -128n],
    ['decimal(9,2)', '0080', 128n],
    ['decimal(38,0)', '4b3b4ca85a86c47a098a223fffffffff', 10n ** 38n - 1n],
  ])('%s 0x%s is %s', (name, hex, value) => {
    if (name !== 'long') expect(encodeSingle(type(name), value)).toEqual(bytesOf(hex));
    expect(decodeSingle(type(name), encodeSingle(type(name), value))).toEqual(value);
  });

  it.each([
    ['int', '0000000000000000'],
    ['date', '0000000000000000'],
    ['long', '00000000'],
    ['boolean', '02'],
    ['string', 'f09f'],
    ['decimal(9,2)', '0001'],
    ['decimal(9,2)', 'ffff'],
    ['decimal(9,2)', ''],
    ['uuid', '00'],
    ['fixed[2]', '000000'],
  ])('%s 0x%s is refused', (name, hex) => {
    expect(() => decodeSingle(type(name), bytesOf(hex))).toThrow();
  });

  it('takes the fewest bytes for a decimal', () => {
    for (const [value, length] of [
      [0n, 1],
      [127n, 1],
      [128n, 2],
      [-128n, 1],
      [-129n, 2],
      [2n ** 63n, 9],
    ] as const)
      expect(leastBigEndian(value).length).toBe(length);
  });

  it('knows no type of another version', () => {
    for (const name of ['timestamp_ns', 'variant', 'unknown', 'decimal(39,0)', 'decimal(4,5)', 'fixed', 'string[4]'])
      expect(parsePrimitive(name)).toBeNull();
  });
});

describe('values: order', () => {
  it.each<[string, Value, Value]>([
    ['supplementary characters after U+FFFD', '\uFFFD', '\u{1F600}'],
    ['U+D7FF before a supplementary character', '\uD7FF', '\u{10000}'],
    ['a prefix before its extension', 'a', 'aa'],
    ['bytes unsigned', Uint8Array.of(0x7f), Uint8Array.of(0x80)],
    ['negative zero before zero', -0, 0],
    ['NaN after infinity', Number.POSITIVE_INFINITY, Number.NaN],
    ['longs beyond 2^53', 2n ** 53n, 2n ** 53n + 1n],
    ['false before true', false, true],
  ])('%s', (_, less, more) => {
    expect(compareValues(less, more)).toBeLessThan(0);
    expect(compareValues(more, less)).toBeGreaterThan(0);
    expect(compareValues(less, less)).toBe(0);
  });
});

describe('values: bounds by truncate(16)', () => {
  const string = type('string');
  it.each<[string, string, string, string | null]>([
    ['B13 sixteen code points stay', 'a'.repeat(16), 'a'.repeat(16), 'a'.repeat(16)],
    ['B11 the sixteenth of seventeen is raised', 'a'.repeat(17), 'a'.repeat(16), `${'a'.repeat(15)}b`],
    [
      'B10 sixteen emoji are sixteen',
      '\u{1F600}'.repeat(17),
      '\u{1F600}'.repeat(16),
      `${'\u{1F600}'.repeat(15)}\u{1F601}`,
    ],
    ['B11 surrogates are skipped', '\uD7FF'.repeat(17), '\uD7FF'.repeat(16), `${'\uD7FF'.repeat(15)}\uE000`],
    ['B11 the greatest code point is dropped', `a${'\u{10FFFF}'.repeat(16)}`, `a${'\u{10FFFF}'.repeat(15)}`, 'b'],
    ['B11 nothing left means no bound', '\u{10FFFF}'.repeat(17), '\u{10FFFF}'.repeat(16), null],
    ['B16 empty text is a bound', '', '', ''],
  ])('%s', (_, value, lower, upper) => {
    expect(lowerBoundOf(string, value)).toBe(lower);
    expect(upperBoundOf(string, value)).toBe(upper);
  });

  it('B12 raises the last byte that can be raised', () => {
    const binary = type('binary');
    const ones = new Uint8Array(17).fill(255);
    expect(upperBoundOf(binary, ones)).toBeNull();
    expect(upperBoundOf(binary, Uint8Array.of(1, ...ones))).toEqual(Uint8Array.of(2));
    expect(upperBoundOf(binary, ones.slice(1))).toEqual(ones.slice(1));
    expect(lowerBoundOf(binary, ones)).toEqual(ones.slice(1));
  });
});
