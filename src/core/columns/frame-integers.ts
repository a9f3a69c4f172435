import type { FrameReader, FrameWriter } from './frame-bytes.ts';

/**
 * Integers in a frame: the least value, the width of the differences from it in bytes (0, 1, 2, 3, 4, 5, 6 or 8), and
 * the differences, unsigned, as one or two planes: 3 is 2 + 1, 5 is 4 + 1, 6 is 4 + 2. Of width 8 are the values
 * themselves. All equal values take no bytes each, nor does one.
 */

const TWO_32 = 4294967296;

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
  const differences = writer.scratch.take(values.length);
  for (let i = 0; i < differences.length; i++) differences[i] = values[i] - min;
  writer.unsigned(differences, width);
}

/** `length` int32 values, each from `lowest` to `highest`. */
export function readInt32s(
  reader: FrameReader,
  length: number,
  lowest = -2_147_483_648,
  highest = 2_147_483_647,
): Int32Array {
  const min = Number(reader.int64());
  const width = reader.byte();
  if (width > 4) throw reader.broken(`holds an int32 column of width ${width}`);
  const out = new Int32Array(length);
  if (length === 0) return out;
  if (min < lowest || min > highest) throw reader.broken('holds a number out of range');
  const differences = reader.unsigned(length, width);
  // Doubles hold every sum exactly, and one comparison a value keeps wrong ones out.
  let most = 0;
  for (let i = 0; i < length; i++) {
    const difference = differences[i];
    if (difference > most) most = difference;
    out[i] = difference + min;
  }
  if (most > highest - min) throw reader.broken('holds a number out of range');
  return out;
}

/** `pairs` are (lo, hi) halves. */
export function writeInt64s(writer: FrameWriter, pairs: Int32Array): void {
  const length = pairs.length / 2;
  let [minLo, minHi] = length === 0 ? [0, 0] : [pairs[0] >>> 0, pairs[1]];
  let [maxLo, maxHi] = [minLo, minHi];
  for (let i = 1; i < length; i++) {
    const lo = pairs[2 * i] >>> 0;
    const hi = pairs[2 * i + 1];
    if (hi < minHi || (hi === minHi && lo < minLo)) {
      minLo = lo;
      minHi = hi;
    } else if (hi > maxHi || (hi === maxHi && lo > maxLo)) {
      maxLo = lo;
      maxHi = hi;
    }
  }
  const borrow = maxLo < minLo ? 1 : 0;
  const width = widthOf(maxLo - minLo + borrow * TWO_32, maxHi - minHi - borrow);
  writer.int64(width === 8 ? 0n : (BigInt(minHi) << 32n) | BigInt(minLo));
  writer.byte(width);
  if (width === 8) writer.plane(pairs);
  if (width === 8 || width === 0) return;
  const differences = writer.scratch.take(length);
  for (let i = 0; i < length; i++) differences[i] = pairs[2 * i] - minLo;
  writer.unsigned(differences, Math.min(width, 4));
  if (width <= 4) return;
  for (let i = 0; i < length; i++) {
    differences[i] = pairs[2 * i + 1] - minHi - (pairs[2 * i] >>> 0 < minLo ? 1 : 0);
  }
  writer.unsigned(differences, width - 4);
}

/** `length` int64 values as (lo, hi) halves. */
export function readInt64s(reader: FrameReader, length: number): Int32Array {
  const min = reader.int64();
  const width = reader.byte();
  if (width > 8 || width === 7) throw reader.broken(`holds an int64 column of width ${width}`);
  if (width === 8) return new Int32Array(reader.plane(8 * length));
  const minLo = Number(BigInt.asUintN(32, min));
  const minHi = Number(min >> 32n);
  const out = new Int32Array(2 * length);
  const low = reader.unsigned(length, Math.min(width, 4));
  for (let i = 0; i < length; i++) {
    const lo = low[i] + minLo;
    out[2 * i] = lo;
    out[2 * i + 1] = lo < TWO_32 ? minHi : minHi + 1;
  }
  if (width <= 4) return out;
  const high = reader.unsigned(length, width - 4);
  for (let i = 0; i < length; i++) out[2 * i + 1] += high[i];
  return out;
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
