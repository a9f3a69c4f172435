import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { NUMBER_MARK } from '../../../src/core/columns/fault.ts';
import { type Digits, longRuns, markLongNumbers } from '../../../src/http/formats/long-numbers.ts';
import { bytesOf } from '../bodies.ts';

const marked = (text: string, digits: Digits = 'integers') =>
  new TextDecoder().decode(markLongNumbers(bytesOf(text), digits)).replaceAll('"\\udc00', '"#');

describe('numbers that a double does not hold', () => {
  it.each([
    ['{"id":4611686018427387905}', '{"id":"#4611686018427387905"}'],
    ['{"id":-4611686018427387905,"b":1}', '{"id":"#-4611686018427387905","b":1}'],
    ['[9007199254740993 , 12345678901234567]', '["#9007199254740993" , "#12345678901234567"]'],
    ['9007199254740993', '"#9007199254740993"'],
    ['{"at":1767443696.123456999}', '{"at":"#1767443696.123456999"}'],
    ['[-12345678.12345678e3,12345678.12345678]', '["#-12345678.12345678e3","#12345678.12345678"]'],
  ])('are turned into marked text: %s', (text, expected) => {
    expect(marked(text)).toBe(expected);
  });

  it.each([
    ['{"us":1767398400000000}'],
    ['{"x":0.12345678901234567890,"y":-1.2345678901234567}'],
    ['{"ms":1767443696789.12,"s":1767443696.78912,"x":1234567.1234567891}'],
    ['{"s":"4611686018427387905"}'],
    ['{"s":"at 1767443696.123456999"}'],
    ['{"s":"id: 4611686018427387905, or \\" 4611686018427387905"}'],
    ['{"s":":4611686018427387905,"}'],
    ['{"s":"a\\\\"}'],
    ['{"s":"a\\":4611686018427387905,"}'],
    ['{"s":" x\\":4611686018427387905}"}'],
  ])('others stay as they are: %s', (text) => {
    expect(marked(text)).toBe(text);
  });

  it('decimals ask for the digits around the point too', () => {
    expect(marked('[0.1234567890123456,12345678.12345678,1.5]', 'decimals')).toBe(
      '["#0.1234567890123456","#12345678.12345678",1.5]',
    );
  });

  it.each([
    '{4611686018427387905:1}',
    '{4611686018427387905 :1}',
    '[04611686018427387905]',
    '[-]',
    '[4611686018427387905.]',
    '[4611686018427387905e]',
    '[4611686018427387905.5.5]',
    '[+4611686018427387905]',
    '["unterminated 4611686018427387905',
    '[4611686018427387905x]',
  ])('broken JSON stays broken: %s', (text) => {
    expect(() => JSON.parse(new TextDecoder().decode(markLongNumbers(bytesOf(text), 'decimals')))).toThrow();
  });

  it('a run of digits is seen wherever it stands', () => {
    for (let shift = 0; shift < 40; shift++) {
      expect(longRuns(bytesOf(`${' '.repeat(shift)}9007199254740993`), 'integers')).toEqual([shift]);
      expect(longRuns(bytesOf(`${' '.repeat(shift)}1234567.123456789`), 'decimals')).toEqual([shift]);
      expect(longRuns(bytesOf(`${' '.repeat(shift)}12345678.12345678`), 'integers')).toEqual([shift]);
      expect(longRuns(bytesOf(`${' '.repeat(shift)}1007199254740993`), 'integers')).toEqual([]);
    }
  });

  it('any JSON parses to the same values, with the digits of every integer', () => {
    const integer = fc.bigInt({ min: -(2n ** 70n), max: 2n ** 70n });
    const leaf = fc.oneof(integer, fc.string(), fc.double({ noNaN: true, noDefaultInfinity: true }), fc.boolean());
    const text = (value: unknown): string =>
      typeof value === 'bigint'
        ? String(value)
        : Array.isArray(value)
          ? `[${value.map(text).join(', ')}]`
          : JSON.stringify(value);
    const check = (given: unknown, read: unknown): void => {
      if (Array.isArray(given)) for (const [i, value] of given.entries()) check(value, (read as unknown[])[i]);
      else if (typeof given === 'bigint') {
        if (typeof read === 'string') expect(read).toBe(NUMBER_MARK + given);
        else expect([Number.isSafeInteger(read), BigInt(read as number)]).toEqual([true, given]);
      } else {
        // A double may be written in 16 digits, whole or with eight of them before the point, and is marked then.
        const value = typeof given === 'number' && typeof read === 'string' ? Number(read.slice(1)) : read;
        expect(value).toEqual(JSON.parse(text(given)));
      }
    };
    fc.assert(
      fc.property(fc.array(fc.oneof(leaf, fc.array(leaf))), (values) => {
        const bytes = markLongNumbers(bytesOf(text(values)), 'integers');
        check(values, JSON.parse(new TextDecoder().decode(bytes)));
      }),
      { numRuns: 300 },
    );
  });
});
