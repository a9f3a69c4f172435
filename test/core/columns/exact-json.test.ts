import { isDeepStrictEqual } from 'node:util';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { fromExactJson, toExactJson } from '../../../src/core/columns/exact-json.ts';

const value = fc.letrec((tie) => ({
  value: fc.oneof(
    { maxDepth: 3 },
    fc.constantFrom(null, true, false, -0, Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY),
    fc.double(),
    fc.bigInt(),
    fc.string({ unit: 'binary' }),
    fc.uint8Array({ maxLength: 5 }),
    fc.array(tie('value'), { maxLength: 3 }),
    fc.dictionary(
      fc.oneof(fc.constantFrom('$int', '$object', '$', '__proto__', 'constructor'), fc.string()),
      tie('value'),
      {
        maxKeys: 3,
        noNullPrototype: true,
      },
    ),
    fc.array(fc.tuple(fc.string(), tie('value')), { maxLength: 2 }).map((entries) => new Map(entries)),
  ),
})).value;

test('exact json: any nested value comes back as it was', () => {
  fc.assert(
    fc.property(value, (original) => {
      // toStrictEqual compares what is called `constructor`, which is a key like any other here.
      expect(isDeepStrictEqual(fromExactJson(toExactJson(original)), original)).toBe(true);
    }),
  );
});

test('exact json: keys named __proto__ and constructor are ordinary keys (B202)', () => {
  const original = JSON.parse('{"__proto__":{"a":1},"constructor":"acme"}');
  const back = fromExactJson(toExactJson(original)) as object;
  expect(Object.entries(back)).toEqual([
    ['__proto__', { a: 1 }],
    ['constructor', 'acme'],
  ]);
  expect((back as { a?: number }).a).toBe(undefined);
});

test('exact json: an unknown tag is refused', () => {
  expect(() => fromExactJson('{"$date":"x"}')).toThrow('tag');
  expect(() => fromExactJson('{"$bytes":"xyz"}')).toThrow('tag');
});
