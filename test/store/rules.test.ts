import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareBytes, utf8 } from '../../src/core/base/bytes.ts';
import { compareKeys, PartSizes } from '../../src/store/rules.ts';

test('compareKeys: has the sign of the comparison of UTF-8 bytes', () => {
  const text = fc.string({
    unit: fc.constantFrom('a', 'b', '/', '-', '\u00e9', '\ud7ff', '\ue000', '\uffff', '\u{10000}', '\u{10ffff}'),
  });
  fc.assert(
    fc.property(text, text, (a, b) => {
      expect(Math.sign(compareKeys(a, b))).toBe(Math.sign(compareBytes(utf8(a), utf8(b))));
    }),
    { numRuns: 2000 },
  );
});

test('part sizes: ten thousand parts, not one more', () => {
  const sizes = new PartSizes(1);
  for (let number = 1; number <= 10_000; number++) sizes.add(number, 1);
  expect(() => sizes.add(10_001, 1)).toThrow(/part number is within 1 to 10,000: 10001/);
  expect(sizes.count).toBe(10_000);
});

test('part sizes: an empty part is refused', () => {
  expect(() => new PartSizes().add(1, 0)).toThrow(/part is not empty: 1/);
});
