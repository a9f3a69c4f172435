import type { ByteSink } from './sink.ts';

/**
 * Encoders of Parquet's value encodings (https://parquet.apache.org/docs/file-format/data-pages/encodings/) over typed
 * arrays. 8-byte values are `words`: (lo, hi) int32 pairs, so that no bigint is made per value.
 */

/** The bytes behind `count` values of `width` bytes, without a copy. Runtimes are little endian, and so is PLAIN. */
export function bytesOf(values: ArrayBufferView, from: number, count: number, width: number): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset + from * width, count * width);
}

/** PLAIN booleans: one bit each, least significant first. */
export function encodeBooleans(sink: ByteSink, values: Uint8Array, from: number, to: number): void {
  const length = (to - from + 7) >> 3;
  const at = sink.ensure(length);
  const out = sink.bytes;
  for (let i = 0; i < length; i++) {
    const base = from + 8 * i;
    const end = Math.min(8, to - base);
    let byte = 0;
    for (let bit = 0; bit < end; bit++) byte |= values[base + bit] << bit;
    out[at + i] = byte;
  }
  sink.length += length;
}

/** PLAIN byte strings: each with its length in four bytes before it. `codes[i]` names the entry of value `i`. */
export function encodeStrings(
  sink: ByteSink,
  bytes: Uint8Array,
  offsets: Int32Array,
  codes: Int32Array,
  from: number,
  to: number,
): void {
  for (let i = from; i < to; i++) {
    const start = offsets[codes[i]];
    const length = offsets[codes[i] + 1] - start;
    let at = sink.ensure(4 + length);
    sink.setInt32(at, length);
    at += 4;
    const out = sink.bytes;
    // A call per short string costs more than its bytes.
    if (length > 32) out.set(bytes.subarray(start, start + length), at);
    else for (let k = 0; k < length; k++) out[at + k] = bytes[start + k];
    sink.length = at + length;
  }
}

/** BYTE_STREAM_SPLIT: first byte of every value, then the second of every value, and so on. */
export function encodeByteStreamSplit(sink: ByteSink, values: Uint8Array, width: number): void {
  const count = values.length / width;
  let at = sink.ensure(values.length);
  const out = sink.bytes;
  for (let k = 0; k < width; k++) {
    for (let i = k; i < values.length; i += width) out[at++] = values[i];
  }
  sink.length += count * width;
}

/** Bits that an unsigned 32-bit integer needs: 0 for 0. */
export function bitsOf(value: number): number {
  return 32 - Math.clz32(value);
}

/**
 * RLE / bit-packing hybrid of non-negative integers below 2^width, width 1 to 24, without a length before it. Runs of
 * eight and more become RLE; the rest is packed in groups of eight, of which only the last may be padded.
 */
export function encodeHybrid(
  sink: ByteSink,
  values: Int32Array | Uint8Array,
  from: number,
  to: number,
  width: number,
): void {
  let packed = from;
  let at = from;
  while (at < to) {
    const value = values[at];
    let end = at + 1;
    while (end < to && values[end] === value) end++;
    // Values that wait for packing are filled up to a whole group out of this run before an RLE run may follow.
    const missing = (8 - ((at - packed) & 7)) & 7;
    if (end - at - missing >= 8) {
      at += missing;
      if (at > packed) packBits(sink, values, packed, at, width);
      sink.varint((end - at) * 2);
      for (let bits = 0; bits < width; bits += 8) sink.byte(value >>> bits);
      packed = end;
    }
    at = end;
  }
  if (to > packed) packBits(sink, values, packed, to, width);
}

function packBits(sink: ByteSink, values: Int32Array | Uint8Array, from: number, to: number, width: number): void {
  const groups = (to - from + 7) >> 3;
  sink.varint(groups * 2 + 1);
  let at = sink.ensure(groups * width);
  const end = at + groups * width;
  const out = sink.bytes;
  let pending = 0;
  let bits = 0;
  for (let i = from; i < to; i++) {
    pending |= values[i] << bits;
    bits += width;
    while (bits >= 8) {
      out[at++] = pending;
      pending >>>= 8;
      bits -= 8;
    }
  }
  if (bits > 0) out[at++] = pending;
  while (at < end) out[at++] = 0;
  sink.length = end;
}

/** Values of one block and of one miniblock of DELTA_BINARY_PACKED, as other writers choose them. */
export const DELTA_BLOCK = 128;
export const DELTA_MINIBLOCK = 32;

const deltaLo = new Int32Array(DELTA_BLOCK);
const deltaHi = new Int32Array(DELTA_BLOCK);
const packed = new Int32Array(2 * DELTA_MINIBLOCK);
const packedBytes = new Uint8Array(packed.buffer);

function deltaHeader(sink: ByteSink, count: number): void {
  sink.varint(DELTA_BLOCK);
  sink.varint(DELTA_BLOCK / DELTA_MINIBLOCK);
  sink.varint(count);
}

/** DELTA_BINARY_PACKED of int32 values; differences wrap at 32 bits, as the format wants. */
export function encodeDelta32(sink: ByteSink, values: Int32Array, from: number, to: number): void {
  deltaHeader(sink, to - from);
  const first = to > from ? values[from] : 0;
  sink.zigzag64(first, first >> 31);
  let previous = first;
  for (let at = from + 1; at < to; at += DELTA_BLOCK) {
    const count = Math.min(DELTA_BLOCK, to - at);
    let least = 0x7fffffff;
    for (let i = 0; i < count; i++) {
      const value = values[at + i];
      const delta = (value - previous) | 0;
      previous = value;
      deltaLo[i] = delta;
      if (delta < least) least = delta;
    }
    for (let i = 0; i < count; i++) deltaLo[i] = (deltaLo[i] - least) | 0;
    sink.zigzag64(least, least >> 31);
    miniblocks(sink, count, false);
  }
}

/** DELTA_BINARY_PACKED of int64 values given as pairs; differences wrap at 64 bits. */
export function encodeDelta64(sink: ByteSink, words: Int32Array, from: number, to: number): void {
  deltaHeader(sink, to - from);
  let lo = to > from ? words[2 * from] : 0;
  let hi = to > from ? words[2 * from + 1] : 0;
  sink.zigzag64(lo, hi);
  for (let at = from + 1; at < to; at += DELTA_BLOCK) {
    const count = Math.min(DELTA_BLOCK, to - at);
    let leastLo = -1;
    let leastHi = 0x7fffffff;
    for (let i = 0; i < count; i++) {
      const nextLo = words[2 * (at + i)];
      const nextHi = words[2 * (at + i) + 1];
      const dLo = (nextLo - lo) | 0;
      const dHi = (nextHi - hi - (nextLo >>> 0 < lo >>> 0 ? 1 : 0)) | 0;
      lo = nextLo;
      hi = nextHi;
      deltaLo[i] = dLo;
      deltaHi[i] = dHi;
      if (dHi < leastHi || (dHi === leastHi && dLo >>> 0 < leastLo >>> 0)) {
        leastLo = dLo;
        leastHi = dHi;
      }
    }
    let wide = 0;
    for (let i = 0; i < count; i++) {
      const dLo = deltaLo[i];
      const high = (deltaHi[i] - leastHi - (dLo >>> 0 < leastLo >>> 0 ? 1 : 0)) | 0;
      deltaLo[i] = (dLo - leastLo) | 0;
      deltaHi[i] = high;
      wide |= high;
    }
    sink.zigzag64(leastLo, leastHi);
    miniblocks(sink, count, wide !== 0);
  }
}

/** Bit widths and packed values of the block in `deltaLo` (and `deltaHi` when `wide`). */
function miniblocks(sink: ByteSink, count: number, wide: boolean): void {
  const minis = DELTA_BLOCK / DELTA_MINIBLOCK;
  let widthsAt = sink.ensure(minis);
  sink.length += minis;
  for (let from = 0; from < DELTA_BLOCK; from += DELTA_MINIBLOCK) {
    // A miniblock beyond the last value has width 0 and no bytes; one that is begun is padded.
    const to = Math.min(count, from + DELTA_MINIBLOCK);
    let orLo = 0;
    let orHi = 0;
    for (let i = from; i < to; i++) orLo |= deltaLo[i];
    if (wide) for (let i = from; i < to; i++) orHi |= deltaHi[i];
    const width = orHi !== 0 ? 32 + bitsOf(orHi) : bitsOf(orLo);
    sink.bytes[widthsAt++] = width;
    if (width === 0) continue;
    // 32 values of `width` bits fill exactly `width` words.
    packed.fill(0, 0, width);
    for (let i = from; i < to; i++) {
      const bit = (i - from) * width;
      putBits(bit, deltaLo[i]);
      if (width > 32) putBits(bit + 32, deltaHi[i]);
    }
    sink.append(packedBytes.subarray(0, 4 * width));
  }
}

function putBits(bit: number, value: number): void {
  const word = bit >> 5;
  const shift = bit & 31;
  packed[word] |= value << shift;
  if (shift !== 0 && word + 1 < packed.length) packed[word + 1] |= value >>> (32 - shift);
}
