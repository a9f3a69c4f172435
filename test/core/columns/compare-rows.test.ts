import fc from 'fast-check';
import { expect, test } from 'vitest';
import { compareRows } from '../../../src/core/columns/compare-rows.ts';
import { compareWords, type SortKey, wordsOf } from '../../../src/core/columns/order-words.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { columnsOf, schemaOf } from './rows.ts';

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const KINDS: [Type, fc.Arbitrary<unknown>][] = [
  ['boolean', fc.boolean()],
  ['int', fc.integer({ min: -3, max: 3 })],
  ['long', fc.constantFrom(-(2n ** 63n), -1n, 0n, 1n, 2n ** 53n, 2n ** 53n + 1n, 2n ** 63n - 1n)],
  ['float', fc.constantFrom(Number.NEGATIVE_INFINITY, -1.5, -0, 0, 1.5, Number.POSITIVE_INFINITY, Number.NaN)],
  ['double', fc.constantFrom(Number.NEGATIVE_INFINITY, -1.5, -0, 0, 1.5, Number.POSITIVE_INFINITY, Number.NaN)],
  ['string', fc.constantFrom('', 'a', 'ab', 'b', '\uffff', '😀', '\ue000')],
  ['binary', fc.uint8Array({ maxLength: 3 })],
  ['fixed[2]', bytes(2)],
  ['decimal(20, 2)', bytes(9)],
];

test('compare rows: as the words of both, for each type, direction and place of nulls', () => {
  for (const [type, value] of KINDS) {
    const rows = fc.array(fc.option(value, { freq: 5 }), { minLength: 2, maxLength: 12 });
    fc.assert(
      fc.property(
        rows,
        fc.boolean(),
        fc.boolean(),
        fc.constantFrom(0, 100),
        (values, isDescending, nullsFirst, entries) => {
          const [column] = columnsOf(
            schemaOf([['v', type]]),
            values.map((one) => [one]),
            entries,
          ).columns;
          const direction = isDescending ? 'desc' : 'asc';
          const key: SortKey = { column, type, direction, nullOrder: nullsFirst ? 'nulls-first' : 'nulls-last' };
          const words = wordsOf(values.length, [key]);
          for (let a = 0; a < values.length; a++) {
            for (let b = 0; b < values.length; b++) {
              expect(Math.sign(compareRows([key], a, [key], b))).toBe(Math.sign(compareWords(words, a, b)));
            }
          }
        },
      ),
      { numRuns: 60 },
    );
  }
});
