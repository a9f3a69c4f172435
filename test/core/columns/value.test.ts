import fc from 'fast-check';
import { expect, test } from 'vitest';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import { bigEndian, pushValue, valueAt } from '../../../src/core/columns/value.ts';
import { twosComplement } from '../../../src/core/iceberg/single-value.ts';
import type { PrimitiveType, Value } from '../../../src/core/iceberg/types.ts';
import { schemaOf } from './rows.ts';

const unscaled = (digits: number) => fc.bigInt({ min: 1n - 10n ** BigInt(digits), max: 10n ** BigInt(digits) - 1n });

test.each<[PrimitiveType, fc.Arbitrary<Value>]>([
  ['boolean', fc.boolean()],
  ['int', fc.integer()],
  ['date', fc.integer()],
  ['long', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  ['timestamptz', fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n })],
  ['float', fc.float()],
  ['double', fc.double()],
  ['uuid', fc.uint8Array({ minLength: 16, maxLength: 16 })],
  ['fixed[3]', fc.uint8Array({ minLength: 3, maxLength: 3 })],
  ['string', fc.string({ unit: 'binary' })],
  ['binary', fc.uint8Array({ maxLength: 9 })],
  ['decimal(9, 2)', unscaled(9)],
  ['decimal(18, 2)', unscaled(18)],
  ['decimal(19, 2)', unscaled(19)],
  ['decimal(38, 2)', unscaled(38)],
])('value: what is pushed into a column of %s is what is read', (type, value) => {
  fc.assert(
    fc.property(fc.array(fc.option(value), { maxLength: 8 }), fc.nat(3), (values, limit) => {
      const builder = new ColumnsBuilder(schemaOf([['c', type]]), limit);
      for (const one of values) {
        pushValue(builder.fields[0], one);
        builder.endRow();
      }
      const [column] = builder.finish().columns;
      expect(values.map((_, row) => valueAt(column, type, row))).toEqual(values);
    }),
  );
});

test('value: decimals as bytes of a width, extended by their sign', () => {
  expect(bigEndian(-2n, 9)).toEqual(Uint8Array.of(255, 255, 255, 255, 255, 255, 255, 255, 254));
  expect(bigEndian(10n ** 38n - 1n, 16)).toEqual(twosComplement(10n ** 38n - 1n));
  expect(() => bigEndian(128n, 1)).toThrow('width');
  expect(() => bigEndian(-129n, 1)).toThrow('width');
});
