import { corrupt, type SluiceError } from '../base/errors.ts';

/**
 * Decoders of Parquet's value encodings into typed arrays; the counterparts of `encoding.ts`. Every length is checked
 * against the page, and a page must be used up exactly. Errors: corrupt `parquet-corrupt`.
 */

export function broken(what: string): SluiceError {
  return corrupt('parquet-corrupt', `parquet page: ${what}`);
}

/** A position in a page, and the last integer of 64 bits read from it. */
export class Cursor {
  readonly bytes: Uint8Array;
  readonly end: number;
  at: number;
  lo = 0;
  hi = 0;

  constructor(bytes: Uint8Array, at: number, end: number) {
    if (at > end || end > bytes.length) throw broken('ends early');
    this.bytes = bytes;
    this.at = at;
    this.end = end;
  }

  byte(): number {
    if (this.at >= this.end) throw broken('ends early');
    return this.bytes[this.at++];
  }

  /** Unsigned varint of at most 32 bits. */
  varint(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) {
        if (value > 0xffffffff) break;
        return value;
      }
    }
    throw broken('count is too large');
  }

  /** Zigzag varint of at most 64 bits, left in `lo` and `hi`. */
  zigzag64(): void {
    let lo = 0;
    let hi = 0;
    for (let shift = 0; ; shift += 7) {
      if (shift > 63) throw broken('integer is too long');
      const byte = this.byte();
      const low = byte & 0x7f;
      if (shift < 32) lo |= low << shift;
      if (shift >= 32) hi |= low << (shift - 32);
      else if (shift > 25) hi |= low >>> (32 - shift);
      if (byte < 0x80) break;
    }
    const sign = -(lo & 1);
    this.lo = ((lo >>> 1) | (hi << 31)) ^ sign;
    this.hi = (hi >>> 1) ^ sign;
  }

  /** Little-endian unsigned 32-bit integer. */
  int32(): number {
    const { bytes, at } = this;
    if (at + 4 > this.end) throw broken('ends early');
    this.at = at + 4;
    return (bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24)) >>> 0;
  }

  /** Ends the page: what is left over is a sign of a wrong count. */
  finish(): void {
    if (this.at !== this.end) throw broken(`${this.end - this.at} bytes are left over`);
  }
}

/**
 * RLE / bit-packing hybrid: `count` integers below 2^width into `out` from `offset` on. Only the last bit-packed run
 * may hold more values than are wanted: the format fills it up to eight, DuckDB to more.
 */
export function decodeHybrid(
  cursor: Cursor,
  width: number,
  out: Int32Array | Uint8Array,
  offset: number,
  count: number,
): void {
  if (width > 24) throw broken(`integers of ${width} bits are not expected`);
  const { bytes, end } = cursor;
  let at = offset;
  const stop = offset + count;
  while (at < stop) {
    const head = cursor.varint();
    const length = Math.floor(head / 2);
    if (head % 2 === 0) {
      let value = 0;
      for (let bits = 0; bits < width; bits += 8) value |= cursor.byte() << bits;
      if (length > stop - at || value >= 2 ** width) throw broken('run does not fit');
      out.fill(value, at, at + length);
      at += length;
      continue;
    }
    const packed = length * width;
    if (packed > end - cursor.at) throw broken('packed run does not fit');
    const take = Math.min(length * 8, stop - at);
    unpack(bytes, cursor.at, width, out, at, take);
    cursor.at += packed;
    at += take;
  }
}

function unpack(
  bytes: Uint8Array,
  from: number,
  width: number,
  out: Int32Array | Uint8Array,
  offset: number,
  count: number,
): void {
  if (width === 0) {
    out.fill(0, offset, offset + count);
    return;
  }
  const mask = 2 ** width - 1;
  let at = from;
  let pending = 0;
  let bits = 0;
  for (let i = offset; i < offset + count; i++) {
    while (bits < width) {
      pending |= bytes[at++] << bits;
      bits += 8;
    }
    out[i] = pending & mask;
    pending >>>= width;
    bits -= width;
  }
}

/** PLAIN booleans. */
export function decodeBooleans(cursor: Cursor, out: Uint8Array, offset: number, count: number): void {
  const length = (count + 7) >> 3;
  if (cursor.end - cursor.at !== length) throw broken(`${count} booleans take ${length} bytes`);
  for (let i = 0; i < count; i++) out[offset + i] = (cursor.bytes[cursor.at + (i >> 3)] >> (i & 7)) & 1;
  cursor.at += length;
}

/** PLAIN values of fixed width into the bytes of a typed array; `offset` and `count` in values. */
export function decodeFixedWidth(cursor: Cursor, width: number, out: Uint8Array, offset: number, count: number): void {
  if (cursor.end - cursor.at !== count * width) throw broken(`${count} values take ${count * width} bytes`);
  out.set(cursor.bytes.subarray(cursor.at, cursor.end), offset * width);
  cursor.at = cursor.end;
}

/** BYTE_STREAM_SPLIT into the bytes of a typed array. */
export function decodeByteStreamSplit(
  cursor: Cursor,
  width: number,
  out: Uint8Array,
  offset: number,
  count: number,
): void {
  if (cursor.end - cursor.at !== count * width) throw broken(`${count} values take ${count * width} bytes`);
  const { bytes } = cursor;
  let at = cursor.at;
  const stop = (offset + count) * width;
  for (let k = 0; k < width; k++) {
    for (let i = offset * width + k; i < stop; i += width) out[i] = bytes[at++];
  }
  cursor.at = cursor.end;
}

const MINIBLOCK_WORDS_MAX = 64;
/** One word more than 32 values of 64 bits take: a value is read as two words. */
const words = new Int32Array(MINIBLOCK_WORDS_MAX + 2);
const wordBytes = new Uint8Array(words.buffer);

/** Up to 32 bits at a bit position of `words`. */
function bitsAt(bit: number, width: number): number {
  const word = bit >> 5;
  const shift = bit & 31;
  const value = shift === 0 ? words[word] : (words[word] >>> shift) | (words[word + 1] << (32 - shift));
  return width >= 32 ? value : value & (2 ** width - 1);
}

/**
 * DELTA_BINARY_PACKED: exactly `count` values into `out` from value `offset` on; int64 as (lo, hi) pairs. Differences
 * wrap at the width of the type.
 */
export function decodeDelta(cursor: Cursor, wide: boolean, out: Int32Array, offset: number, count: number): void {
  const block = cursor.varint();
  const minis = cursor.varint();
  const total = cursor.varint();
  if (total !== count) throw broken(`${count} values expected, found ${total}`);
  if (minis === 0 || minis > 512 || block % minis !== 0 || (block / minis) % 32 !== 0 || block > 65_536) {
    throw broken(`block of ${block} values in ${minis} parts`);
  }
  const perMini = block / minis;
  cursor.zigzag64();
  let { lo, hi } = cursor;
  if (count === 0) return;
  let at = offset;
  const stop = offset + count;
  const put = (): void => {
    if (wide) {
      out[2 * at] = lo;
      out[2 * at + 1] = hi;
    } else out[at] = lo;
    at++;
  };
  put();
  const widths = new Uint8Array(minis);
  while (at < stop) {
    cursor.zigzag64();
    const leastLo = cursor.lo >>> 0;
    const leastHi = cursor.hi;
    for (let m = 0; m < minis; m++) widths[m] = cursor.byte();
    for (let m = 0; m < minis && at < stop; m++) {
      const width = widths[m];
      if (width > (wide ? 64 : 32)) throw broken(`differences of ${width} bits`);
      for (let part = 0; part < perMini; part += 32) {
        // 32 values of `width` bits fill `width` words; the last part is padded.
        const length = 4 * width;
        if (length > cursor.end - cursor.at) throw broken('ends early');
        if (at === stop) {
          cursor.at += length;
          continue;
        }
        wordBytes.set(cursor.bytes.subarray(cursor.at, cursor.at + length));
        cursor.at += length;
        const take = Math.min(32, stop - at);
        if (!wide) {
          for (let i = 0; i < take; i++) {
            lo = (lo + (width === 0 ? 0 : bitsAt(i * width, width)) + leastLo) | 0;
            out[at++] = lo;
          }
          continue;
        }
        for (let i = 0; i < take; i++) {
          const bit = i * width;
          const low = width === 0 ? 0 : bitsAt(bit, width) >>> 0;
          const high = width > 32 ? bitsAt(bit + 32, width - 32) : 0;
          const sum = low + leastLo + (lo >>> 0);
          // At most two carries out of the low half.
          hi = (hi + high + leastHi + Math.floor(sum / 0x100000000)) | 0;
          lo = sum | 0;
          out[2 * at] = lo;
          out[2 * at + 1] = hi;
          at++;
        }
      }
    }
  }
}
