import type { FrameReader, FrameWriter } from './frame-bytes.ts';
import { int64Differences, int64Range, int64Span } from './int64-range.ts';

/**
 * Integers in a frame: the least value, the width of the differences from it in bytes (0, 1, 2, 3, 4, 5, 6 or 8), and
 * the differences, unsigned, as one or two planes: 3 is 2 + 1, 5 is 4 + 1, 6 is 4 + 2. Of width 8 are the values
 * themselves. All equal values take no bytes each, nor does one.
 */

const SIGN = -2_147_483_648;

export function writeInt32s(writer: FrameWriter, values: Int32Array): void {
  let min = values.length === 0 ? 0 : values[0];
  let max = min;
  for (let i = 1; i < values.length; i++) {
    const value = values[i];
    if (value < min) min = value;
    else if (value > max) max = value;
  }
  const width = widthOf(max - min, 0);
  writer.int64(BigInt(min));
  writer.byte(width);
  if (width === 0) return;
  const differences = new Uint32Array(writer.scratch.differences.take(4 * values.length), 0, values.length);
  for (let i = 0; i < differences.length; i++) differences[i] = (values[i] - min) | 0;
  writer.unsigned(differences, width);
}

/** Fills `out` with int32 values, each from `lowest` to `highest`. */
export function readInt32s(
  reader: FrameReader,
  out: Int32Array,
  lowest = -2_147_483_648,
  highest = 2_147_483_647,
): Int32Array {
  const { length } = out;
  const min = Number(reader.int64());
  const width = reader.byte();
  if (width > 4) throw reader.broken(`holds an int32 column of width ${width}`);
  if (length === 0) return out;
  if (min < lowest || min > highest) throw reader.broken('holds a number out of range');
  const differences = reader.unsigned(length, width);
  // Doubles hold every sum exactly, and one comparison a value keeps wrong ones out.
  let most = 0;
  for (let i = 0; i < length; i++) {
    const difference = differences[i];
    if (difference > most) most = difference;
    out[i] = (difference + min) | 0;
  }
  if (most > highest - min) throw reader.broken('holds a number out of range');
  return out;
}

/** `pairs` are (lo, hi) halves. */
export function writeInt64s(writer: FrameWriter, pairs: Int32Array): void {
  const length = pairs.length / 2;
  const range = int64Range(pairs, null) ?? { minLo: 0, minHi: 0, maxLo: 0, maxHi: 0 };
  const span = int64Span(range);
  const width = widthOf(span.lo, span.hi);
  writer.int64(width === 8 ? 0n : (BigInt(range.minHi) << 32n) | BigInt(range.minLo >>> 0));
  writer.byte(width);
  if (width === 8) writer.plane(pairs);
  if (width === 8 || width === 0) return;
  const memory = writer.scratch.differences.take(8 * length);
  const lows = new Uint32Array(memory, 0, length);
  const highs = new Uint32Array(memory, 4 * length, length);
  int64Differences(pairs, range, 'min', lows, highs);
  writer.unsigned(lows, Math.min(width, 4));
  if (width > 4) writer.unsigned(highs, width - 4);
}

/** Fills `out` with int64 values as (lo, hi) halves. */
export function readInt64s(reader: FrameReader, out: Int32Array): void {
  const length = out.length / 2;
  const min = reader.int64();
  const width = reader.byte();
  if (width > 8 || width === 7) throw reader.broken(`holds an int64 column of width ${width}`);
  if (width === 8) {
    reader.fill(out);
    return;
  }
  const minLo = Number(BigInt.asIntN(32, min));
  const minHi = Number(min >> 32n);
  const lows = reader.unsigned(length, Math.min(width, 4));
  // A sum below what was added has carried over: unsigned, so compared with the sign bit turned.
  const least = minLo ^ SIGN;
  for (let i = 0; i < length; i++) {
    const lo = (lows[i] + minLo) | 0;
    out[2 * i] = lo;
    out[2 * i + 1] = (lo ^ SIGN) < least ? minHi + 1 : minHi;
  }
  if (width <= 4) return;
  const highs = reader.unsigned(length, width - 4);
  for (let i = 0; i < length; i++) out[2 * i + 1] += highs[i];
}

/** Least width for an unsigned difference given as two halves. */
function widthOf(lo: number, hi: number): number {
  if (hi > 0xffff) return 8;
  if (hi > 0xff) return 6;
  if (hi > 0) return 5;
  if (lo > 0xffffff) return 4;
  if (lo > 0xffff) return 3;
  if (lo > 0xff) return 2;
  return lo > 0 ? 1 : 0;
}
