import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { mayHoldBigInteger, parseJson, stringifyJson } from '../../../src/core/base/int64-json.ts';

describe('parseJson', () => {
  it('J1, B057, B058: keeps every digit of integers beyond 2^53', () => {
    expect(parseJson('{"id":4611686018427387905}')).toEqual({ id: 4611686018427387905n });
    expect(parseJson('[144115188075855873,-9223372036854775808]')).toEqual([144115188075855873n, -(2n ** 63n)]);
    expect(parseJson('9007199254740993')).toBe(9007199254740993n);
    expect(parseJson('[-9007199254740992]')).toEqual([-9007199254740992n]);
  });

  it('leaves integers a double holds as numbers, also in the exact path', () => {
    expect(parseJson('[9007199254740991,-9007199254740991,1234567890123456,7]')).toEqual([
      9007199254740991, -9007199254740991, 1234567890123456, 7,
    ]);
    expect(parseJson('[1,12345678901234567890]')).toEqual([1, 12345678901234567890n]);
  });

  it('leaves numbers with a point or an exponent as doubles', () => {
    expect(parseJson('[1.0,1e20,9007199254740993.0,0.12345678901234567,12345678901234567890]')).toEqual([
      1,
      1e20,
      9007199254740992,
      Number('0.12345678901234567'),
      12345678901234567890n,
    ]);
  });

  it('leaves digits inside strings alone', () => {
    expect(parseJson('{"12345678901234567890":"x 12345678901234567890 \\" 99999999999999999999"}')).toEqual({
      '12345678901234567890': 'x 12345678901234567890 " 99999999999999999999',
    });
  });

  it('B202: keys named constructor or __proto__ are data, on both paths', () => {
    for (const tail of ['', ',"n":9007199254740995']) {
      const value = parseJson(`{"constructor":"acme","__proto__":{"x":1}${tail}}`) as Record<string, unknown>;
      expect(Object.keys(value).slice(0, 2)).toEqual(['constructor', '__proto__']);
      expect(Object.getOwnPropertyDescriptor(value, '__proto__')?.value).toEqual({ x: 1 });
      expect((value as { x?: number }).x).toBe(undefined);
    }
  });

  it('bounds depth and the length of integers', () => {
    expect(parseJson('['.repeat(128) + ']'.repeat(128))).toBeInstanceOf(Array);
    const bad = [
      '['.repeat(129) + ']'.repeat(129),
      '['.repeat(1e6) + ']'.repeat(1e6),
      `[${'9'.repeat(2000)}]`,
      '{"a":1}{',
    ];
    bad.push(`${'{"a":'.repeat(5000)}12345678901234567890${'}'.repeat(5000)}`);
    for (const text of bad) {
      expect(() => parseJson(text)).toThrow(expect.objectContaining({ kind: 'invalid', type: 'malformed-json' }));
    }
  });

  it('agrees with JSON.parse on everything without such integers', () => {
    fc.assert(
      fc.property(fc.jsonValue(), (value) => {
        const text = JSON.stringify(value);
        fc.pre(!mayHoldBigInteger(text));
        expect(parseJson(text)).toEqual(JSON.parse(text));
      }),
    );
  });

  it('finds such an integer wherever it stands', () => {
    for (let at = 0; at < 70; at++) {
      const before = `"${'x'.repeat(at)}":`;
      expect(mayHoldBigInteger(`${before}9007199254740993}`), String(at)).toBe(true);
      expect(mayHoldBigInteger(`${before}9007199254740993`), String(at)).toBe(true);
      expect(mayHoldBigInteger(`${before}10000000000000001,`), String(at)).toBe(true);
      expect(mayHoldBigInteger(`${before}8999999999999999,`), String(at)).toBe(false);
    }
  });

  it('finds every run of digits that could be such an integer, and no digits of a name', () => {
    const unit = fc.constantFrom(...'0123456789999999999 "a:-[');
    fc.assert(
      fc.property(fc.string({ unit, maxLength: 120, size: 'max' }), (text) => {
        const runs = [...text.matchAll(/[0-9]+/g)].filter(({ 0: run, index }) => {
          const isBig = run.length > 16 || (run.length === 16 && BigInt(run) >= 2n ** 53n);
          return isBig && /(^|[ :[])-?$/.test(text.slice(0, index));
        });
        expect(mayHoldBigInteger(text)).toBe(runs.length > 0);
      }),
      { numRuns: 2000 },
    );
  });

  it('digits of a hexadecimal id are not taken for an integer', () => {
    expect(mayHoldBigInteger('{"commit":"12345678901234567890abcdefabcdef"}')).toBe(false);
    expect(mayHoldBigInteger('{"commit":"abcdefabcdef12345678901234567890"}')).toBe(false);
    expect(mayHoldBigInteger('{"id":9007199254740991}')).toBe(false);
    for (const before of ['', ' ', '-', '[', '{"id":', '{"id": -', '[1,', '[\n', '[\t', '[\r']) {
      expect(mayHoldBigInteger(`${before}9007199254740992`), before).toBe(true);
    }
  });
});

describe('stringifyJson', () => {
  it('prints bigints as digits without quotes, in insertion order', () => {
    expect(stringifyJson({ b: 9007199254740993n, a: [1n, -2n, null], c: undefined })).toBe(
      '{"b":9007199254740993,"a":[1,-2,null]}',
    );
  });

  it('gives back what it was given', () => {
    const leaf = fc.oneof(
      fc.bigInt({ min: 2n ** 53n, max: 2n ** 63n }),
      fc.integer(),
      fc.string(),
      fc.boolean(),
      fc.constant(null),
    );
    const tree = fc.letrec((tie) => ({
      node: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('node')), fc.dictionary(fc.string(), tie('node'))),
    })).node;
    fc.assert(
      fc.property(tree, (value) => {
        expect(parseJson(stringifyJson(value))).toEqual(value);
      }),
    );
  });

  it('refuses what JSON cannot hold', () => {
    expect(() => stringifyJson({ a: Number.NaN })).toThrow();
    let deep: unknown = 1;
    for (let i = 0; i < 200; i++) deep = [deep];
    expect(() => stringifyJson(deep)).toThrow(expect.objectContaining({ type: 'malformed-json' }));
  });

  it('leaves the value as it was', () => {
    const value = { list: [1n, { id: 2n ** 60n }], same: { text: 'x' } };
    expect(stringifyJson(value)).toBe('{"list":[1,{"id":1152921504606846976}],"same":{"text":"x"}}');
    expect(value).toEqual({ list: [1n, { id: 2n ** 60n }], same: { text: 'x' } });
  });

  it('keeps a key called __proto__', () => {
    expect(stringifyJson(JSON.parse('{"__proto__":1,"a":2}'))).toBe('{"__proto__":1,"a":2}');
    const value = JSON.parse('{"__proto__":{"n":9},"a":2}');
    value.b = 2n ** 53n;
    Object.getOwnPropertyDescriptor(value, '__proto__')!.value.n = 1n;
    expect(stringifyJson(value)).toBe('{"__proto__":{"n":1},"a":2,"b":9007199254740992}');
  });
});
