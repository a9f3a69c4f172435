import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import {
  Cursor,
  decodeBooleans,
  decodeByteStreamSplit,
  decodeDelta,
  decodeHybrid,
} from '../../../src/core/parquet/decoding.ts';
import {
  bitsOf,
  encodeBooleans,
  encodeByteStreamSplit,
  encodeDelta32,
  encodeDelta64,
  encodeHybrid,
} from '../../../src/core/parquet/encoding.ts';
import { ByteSink } from '../../../src/core/parquet/sink.ts';

function encoded(write: (sink: ByteSink) => void): Cursor {
  const sink = new ByteSink(1);
  write(sink);
  return new Cursor(sink.copy(), 0, sink.length);
}

/** Lists in which values come in runs, as they do in columns. */
function runsOf<T>(value: fc.Arbitrary<T>): fc.Arbitrary<T[]> {
  return fc.array(fc.tuple(value, fc.integer({ min: 1, max: 40 })), { maxLength: 40 }).map((runs) => {
    return runs.flatMap(([held, length]) => new Array<T>(length).fill(held));
  });
}

describe('hybrid of runs and packed bits', () => {
  test('integers of every width come back', () => {
    fc.assert(
      fc.property(
        fc.integer({ min: 1, max: 24 }).chain((width) => {
          return fc.tuple(fc.constant(width), runsOf(fc.integer({ min: 0, max: 2 ** width - 1 })));
        }),
        ([width, values]) => {
          const cursor = encoded((sink) => encodeHybrid(sink, Int32Array.from(values), 0, values.length, width));
          const out = new Int32Array(values.length);
          decodeHybrid(cursor, width, out, 0, values.length);
          cursor.finish();
          expect([...out]).toEqual(values);
        },
      ),
    );
  });

  test('a run that is too long is refused', () => {
    const cursor = encoded((sink) => encodeHybrid(sink, new Int32Array(20), 0, 20, 1));
    expect(() => decodeHybrid(cursor, 1, new Int32Array(19), 0, 19)).toThrow('run does not fit');
  });
});

describe('booleans', () => {
  test('bits come back', () => {
    fc.assert(
      fc.property(fc.array(fc.boolean(), { maxLength: 100 }), (values) => {
        const bits = Uint8Array.from(values, Number);
        const cursor = encoded((sink) => encodeBooleans(sink, bits, 0, bits.length));
        const out = new Uint8Array(bits.length);
        decodeBooleans(cursor, out, 0, bits.length);
        expect([...out]).toEqual([...bits]);
      }),
    );
  });
});

describe('delta', () => {
  const int64 = fc.oneof(
    fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
    fc.bigInt({ min: -1000n, max: 1000n }),
    fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 32n, -(2n ** 32n), 2n ** 53n + 1n),
  );
  const int32 = fc.oneof(fc.integer(), fc.integer({ min: -9, max: 9 }), fc.constantFrom(-(2 ** 31), 2 ** 31 - 1));

  test('64-bit integers come back, whatever wraps', () => {
    fc.assert(
      fc.property(fc.oneof(fc.array(int64, { maxLength: 400 }), runsOf(int64)), (values) => {
        const words = new Int32Array(BigInt64Array.from(values).buffer);
        const cursor = encoded((sink) => encodeDelta64(sink, words, 0, values.length));
        const out = new BigInt64Array(values.length);
        decodeDelta(cursor, true, new Int32Array(out.buffer), 0, values.length);
        cursor.finish();
        expect([...out]).toEqual(values);
      }),
    );
  });

  test('32-bit integers come back, whatever wraps', () => {
    fc.assert(
      fc.property(fc.oneof(fc.array(int32, { maxLength: 400 }), runsOf(int32)), (values) => {
        const cursor = encoded((sink) => encodeDelta32(sink, Int32Array.from(values), 0, values.length));
        const out = new Int32Array(values.length);
        decodeDelta(cursor, false, out, 0, values.length);
        cursor.finish();
        expect([...out]).toEqual(values);
      }),
    );
  });

  test('another count than the page has is refused', () => {
    const cursor = encoded((sink) => encodeDelta32(sink, Int32Array.of(1, 2, 3), 0, 3));
    expect(() => decodeDelta(cursor, false, new Int32Array(4), 0, 4)).toThrow('4 values expected, found 3');
  });
});

describe('byte stream split', () => {
  test('bytes come back', () => {
    fc.assert(
      fc.property(fc.constantFrom(4, 8), fc.uint8Array({ maxLength: 200 }), (width, raw) => {
        const bytes = raw.subarray(0, raw.length - (raw.length % width));
        const cursor = encoded((sink) => encodeByteStreamSplit(sink, bytes, width));
        const out = new Uint8Array(bytes.length);
        decodeByteStreamSplit(cursor, width, out, 0, bytes.length / width);
        expect([...out]).toEqual([...bytes]);
      }),
    );
  });
});

describe('bits', () => {
  test('an integer needs as many as its highest one', () => {
    expect([0, 1, 2, 3, 255, 256, 0xffffffff].map(bitsOf)).toEqual([0, 1, 2, 2, 8, 9, 32]);
  });
});
