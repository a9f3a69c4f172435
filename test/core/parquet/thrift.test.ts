import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { ByteSink } from '../../../src/core/parquet/sink.ts';
import { readStruct, ThriftWriter } from '../../../src/core/parquet/thrift.ts';

describe('thrift: compact protocol', () => {
  test('every kind of field comes back', () => {
    const sink = new ByteSink(1);
    const thrift = new ThriftWriter(sink);
    thrift.bool(1, true);
    thrift.bool(2, false);
    thrift.i16(3, -7);
    thrift.i32(4, -(2 ** 31));
    thrift.i64(5, 2 ** 52);
    thrift.text(6, 'é');
    thrift.struct(7);
    thrift.i32(1, 1);
    thrift.struct(9);
    thrift.end();
    thrift.end();
    thrift.structs(8, [10, 20], (value) => thrift.i32(2, value));
    thrift.i32s(9, [1, -1]);
    thrift.i64s(10, [0, 300]);
    thrift.bools(11, [true, false]);
    thrift.binaries(12, [Uint8Array.of(1), Uint8Array.of()]);
    thrift.i32s(
      13,
      Array.from({ length: 20 }, (_, i) => i),
    );
    thrift.end();
    const { struct, end } = readStruct(sink.copy(), 0);
    expect(end).toBe(sink.length);
    expect([...struct.keys()]).toEqual([1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13]);
    expect(struct.get(1)).toBe(true);
    expect(struct.get(2)).toBe(false);
    expect(struct.get(3)).toBe(-7);
    expect(struct.get(4)).toBe(-(2 ** 31));
    expect(struct.get(5)).toBe(2 ** 52);
    expect(struct.get(6)).toEqual(Uint8Array.of(0xc3, 0xa9));
    expect(struct.get(7)).toEqual(
      new Map<number, unknown>([
        [1, 1],
        [9, new Map()],
      ]),
    );
    expect(struct.get(8)).toEqual([new Map([[2, 10]]), new Map([[2, 20]])]);
    expect(struct.get(9)).toEqual([1, -1]);
    expect(struct.get(10)).toEqual([0, 300]);
    expect(struct.get(11)).toEqual([true, false]);
    expect(struct.get(12)).toEqual([Uint8Array.of(1), Uint8Array.of()]);
    expect((struct.get(13) as number[]).length).toBe(20);
  });

  test('integers beyond 2^53 stay exact', () => {
    // Field 1, i64: zigzag of -2^63 and of 2^63 - 1.
    const least = Uint8Array.of(0x16, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0);
    const most = Uint8Array.of(0x16, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 0);
    expect(readStruct(least, 0).struct.get(1)).toBe(-(2n ** 63n));
    expect(readStruct(most, 0).struct.get(1)).toBe(2n ** 63n - 1n);
  });

  test('any bytes end in a struct or a clear error', () => {
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 300 }), (bytes) => {
        try {
          readStruct(bytes, 0);
        } catch (error) {
          expect(error).toBeInstanceOf(SluiceError);
        }
      }),
    );
  });

  test('a list that claims more elements than there are bytes is refused', () => {
    expect(() => readStruct(Uint8Array.of(0x19, 0xf5, 0xff, 0xff, 0xff, 0xff, 0x0f, 0), 0)).toThrow(
      'runs past the end',
    );
  });

  test('structs nested without end are refused', () => {
    expect(() => readStruct(new Uint8Array(1000).fill(0x1c), 0)).toThrow('nested too deeply');
  });
});
