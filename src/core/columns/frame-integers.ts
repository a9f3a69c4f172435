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
  if (width === 4) {
    const plane = new Uint32Array(values.length);
    for (let i = 0; i < plane.length; i++) plane[i] = values[i] - min;
    writer.plane(plane);
  } else if (width >= 2) {
    const plane = new Uint16Array(values.length);
    for (let i = 0; i < plane.length; i++) plane[i] = values[i] - min;
    writer.plane(plane);
    if (width === 3) {
      const high = new Uint8Array(values.length);
      for (let i = 0; i < high.length; i++) high[i] = (values[i] - min) >> 16;
      writer.plane(high);
    }
  } else if (width === 1) {
    const plane = new Uint8Array(values.length);
    for (let i = 0; i < plane.length; i++) plane[i] = values[i] - min;
    writer.plane(plane);
  }
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
  // Doubles hold every sum exactly, and one comparison a value keeps wrong ones out.
  const room = highest - min;
  let most = 0;
  if (width === 0) out.fill(min);
  else if (width === 4) {
    const plane = new Uint32Array(reader.plane(4 * length));
    for (let i = 0; i < length; i++) {
      if (plane[i] > most) most = plane[i];
      out[i] = plane[i] + min;
    }
  } else if (width === 1) {
    const plane = new Uint8Array(reader.plane(length));
    for (let i = 0; i < length; i++) {
      if (plane[i] > most) most = plane[i];
      out[i] = plane[i] + min;
    }
  } else {
    const plane = new Uint16Array(reader.plane(2 * length));
    const high = width === 3 ? new Uint8Array(reader.plane(length)) : null;
    for (let i = 0; i < length; i++) {
      const difference = high === null ? plane[i] : plane[i] | (high[i] << 16);
      if (difference > most) most = difference;
      out[i] = difference + min;
    }
  }
  if (most > room) throw reader.broken('holds a number out of range');
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
  else if (width === 1) {
    const plane = new Uint8Array(length);
    for (let i = 0; i < length; i++) plane[i] = pairs[2 * i] - minLo;
    writer.plane(plane);
  } else if (width === 2 || width === 3) {
    const plane = new Uint16Array(length);
    for (let i = 0; i < length; i++) plane[i] = pairs[2 * i] - minLo;
    writer.plane(plane);
    if (width === 3) {
      const high = new Uint8Array(length);
      for (let i = 0; i < length; i++) high[i] = (pairs[2 * i] - minLo) >> 16;
      writer.plane(high);
    }
  } else if (width >= 4) {
    const plane = new Uint32Array(length);
    for (let i = 0; i < length; i++) plane[i] = pairs[2 * i] - minLo;
    writer.plane(plane);
    if (width > 4) {
      const high = width === 5 ? new Uint8Array(length) : new Uint16Array(length);
      for (let i = 0; i < length; i++) {
        high[i] = pairs[2 * i + 1] - minHi - (pairs[2 * i] >>> 0 < minLo ? 1 : 0);
      }
      writer.plane(high);
    }
  }
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
  const low = lowPlane(reader, width, length);
  const high = highPlane(reader, width, length);
  const joined = width === 3;
  for (let i = 0; i < length; i++) {
    const difference = joined ? low[i] + high[i] * 65_536 : low[i];
    const lo = difference + minLo;
    out[2 * i] = lo;
    out[2 * i + 1] = minHi + (lo >= TWO_32 ? 1 : 0) + (joined ? 0 : high[i]);
  }
  return out;
}

type Unsigned = Uint8Array | Uint16Array | Uint32Array;

function lowPlane(reader: FrameReader, width: number, length: number): Unsigned {
  if (width === 0) return new Uint8Array(length);
  if (width === 1) return new Uint8Array(reader.plane(length));
  if (width <= 3) return new Uint16Array(reader.plane(2 * length));
  return new Uint32Array(reader.plane(4 * length));
}

function highPlane(reader: FrameReader, width: number, length: number): Unsigned {
  if (width === 3 || width === 5) return new Uint8Array(reader.plane(length));
  if (width === 6) return new Uint16Array(reader.plane(2 * length));
  return new Uint8Array(length);
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
