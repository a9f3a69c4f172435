import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concat } from '../../../src/core/base/bytes.ts';
import { ByteInterner } from '../../../src/core/columns/byte-interner.ts';
import { countOf, entry } from '../../../src/core/columns/columns.ts';
import { PairInterner } from '../../../src/core/columns/pair-interner.ts';

describe('byte interner', () => {
  test('byte interner: numbers by first appearance, and gives the entries back', () => {
    fc.assert(
      fc.property(fc.array(fc.uint8Array({ maxLength: 3, max: 3 }), { maxLength: 300 }), fc.nat(40), (strings, max) => {
        const interner = new ByteInterner(max);
        const numbers = new Map<string, number>();
        for (const string of strings) {
          const key = string.join();
          const known = numbers.get(key);
          const expected = known ?? (numbers.size < max ? numbers.size : -1);
          expect(interner.intern(concat([Uint8Array.of(9), string]), 1, 1 + string.length)).toBe(expected);
          if (expected >= 0) numbers.set(key, expected);
        }
        const entries = interner.finish();
        expect(Array.from({ length: countOf(entries) }, (_, i) => entry(entries, i).join())).toEqual([
          ...numbers.keys(),
        ]);
      }),
    );
  });

  test('byte interner: thousands of entries, long ones too', () => {
    const interner = new ByteInterner(100_000);
    const bytes = (i: number) => new TextEncoder().encode(`${'x'.repeat(i % 50)}${i}`);
    for (let i = 0; i < 20_000; i++) expect(interner.intern(bytes(i), 0, bytes(i).length)).toBe(i);
    for (let i = 0; i < 20_000; i += 997) expect(interner.intern(bytes(i), 0, bytes(i).length)).toBe(i);
    expect(interner.size).toBe(20_000);
  });
});

test('pair interner: numbers by first appearance up to its limit, and finds known pairs when full', () => {
  const pair = fc.tuple(fc.integer({ min: -2, max: 2 }), fc.constantFrom(0, -1, 2 ** 31 - 1, -(2 ** 31)));
  fc.assert(
    fc.property(fc.array(pair, { maxLength: 100 }), fc.nat(12), (pairs, max) => {
      const interner = new PairInterner(max);
      const numbers = new Map<string, number>();
      for (const [first, second] of pairs) {
        const key = `${first},${second}`;
        const expected = numbers.get(key) ?? (numbers.size < max ? numbers.size : -1);
        expect(interner.intern(first, second)).toBe(expected);
        if (expected >= 0) numbers.set(key, expected);
      }
      expect(interner.size).toBe(numbers.size);
    }),
  );
});
