import { textOf } from '../base/bytes.ts';
import { BOUND_LENGTH_MAX } from '../base/limits.ts';
import { fromTwosComplement } from '../iceberg/single-value.ts';
import type { Value } from '../iceberg/types.ts';
import type { Dense } from './dense.ts';
import { bytesOf } from './encoding.ts';
import type { Leaf } from './layout.ts';

/** Where the extremes of some values stand, as indices into the dense values; -1 when there are none but NaN. */
export interface Extremes {
  min: number;
  max: number;
  nans: number;
}

/** True when byte strings of this leaf are ordered as two's complement numbers: decimals of high precision. */
function isSigned(leaf: Leaf): boolean {
  return leaf.logical?.name === 'decimal';
}

/**
 * Positions of least and greatest value in `from` to `to` (exclusive), by the order of the type: bytes unsigned (which
 * is code point order in UTF-8, B5), decimals signed, NaN left out (B7), both zeros equal.
 */
export function extremesOf(leaf: Leaf, dense: Dense, from: number, to: number): Extremes {
  switch (dense.kind) {
    case 'boolean':
      return extremesOfBooleans(dense.values, from, to);
    case 'word':
      return dense.floats === null ? extremesOfWords(dense.words, from, to) : extremesOfFloats(dense.floats, from, to);
    case 'pair':
      return dense.floats === null ? extremesOfPairs(dense.words, from, to) : extremesOfFloats(dense.floats, from, to);
    default: {
      let min = -1;
      let max = -1;
      for (let i = from; i < to; i++) {
        if (min === -1) {
          min = i;
          max = i;
        } else if (compareAt(leaf, dense, i, min) < 0) min = i;
        else if (compareAt(leaf, dense, i, max) > 0) max = i;
      }
      return { min, max, nans: 0 };
    }
  }
}

/**
 * As `extremesOf` for values given as indices of dictionary entries, each compared once however often it appears; the
 * positions are those of entries.
 */
export function extremesOfIndices(leaf: Leaf, entries: Dense, indices: Int32Array, from: number, to: number): Extremes {
  const seen = new Uint8Array(entries.count);
  let min = -1;
  let max = -1;
  for (let i = from; i < to; i++) {
    const index = indices[i];
    if (seen[index] !== 0) continue;
    seen[index] = 1;
    if (min === -1) {
      min = index;
      max = index;
    } else if (compareAt(leaf, entries, index, min) < 0) min = index;
    else if (compareAt(leaf, entries, index, max) > 0) max = index;
  }
  return { min, max, nans: 0 };
}

function extremesOfBooleans(values: Uint8Array, from: number, to: number): Extremes {
  let min = -1;
  let max = -1;
  for (let i = from; i < to; i++) {
    if (min === -1 || values[i] < values[min]) min = i;
    if (max === -1 || values[i] > values[max]) max = i;
  }
  return { min, max, nans: 0 };
}

function extremesOfWords(words: Int32Array, from: number, to: number): Extremes {
  if (from === to) return { min: -1, max: -1, nans: 0 };
  let min = from;
  let max = from;
  let least = words[from];
  let greatest = least;
  for (let i = from + 1; i < to; i++) {
    const word = words[i];
    if (word < least) {
      least = word;
      min = i;
    } else if (word > greatest) {
      greatest = word;
      max = i;
    }
  }
  return { min, max, nans: 0 };
}

function extremesOfPairs(words: Int32Array, from: number, to: number): Extremes {
  if (from === to) return { min: -1, max: -1, nans: 0 };
  let min = from;
  let max = from;
  let leastLo = words[2 * from] >>> 0;
  let leastHi = words[2 * from + 1];
  let greatestLo = leastLo;
  let greatestHi = leastHi;
  for (let i = from + 1; i < to; i++) {
    const lo = words[2 * i] >>> 0;
    const hi = words[2 * i + 1];
    if (hi < leastHi || (hi === leastHi && lo < leastLo)) {
      leastLo = lo;
      leastHi = hi;
      min = i;
    } else if (hi > greatestHi || (hi === greatestHi && lo > greatestLo)) {
      greatestLo = lo;
      greatestHi = hi;
      max = i;
    }
  }
  return { min, max, nans: 0 };
}

function extremesOfFloats(floats: Float32Array | Float64Array, from: number, to: number): Extremes {
  let min = -1;
  let max = -1;
  let nans = 0;
  let least = Number.POSITIVE_INFINITY;
  let greatest = Number.NEGATIVE_INFINITY;
  for (let i = from; i < to; i++) {
    const value = floats[i];
    if (Number.isNaN(value)) {
      nans++;
      continue;
    }
    if (value < least || min === -1) {
      least = value;
      min = i;
    }
    if (value > greatest || max === -1) {
      greatest = value;
      max = i;
    }
  }
  return { min, max, nans };
}

/** Order of the values at two positions, neither of them NaN. */
export function compareAt(leaf: Leaf, dense: Dense, a: number, b: number): number {
  switch (dense.kind) {
    case 'boolean':
      return dense.values[a] - dense.values[b];
    case 'word': {
      const values = dense.floats ?? dense.words;
      return values[a] < values[b] ? -1 : values[a] > values[b] ? 1 : 0;
    }
    case 'pair': {
      const { floats, words } = dense;
      if (floats !== null) return floats[a] < floats[b] ? -1 : floats[a] > floats[b] ? 1 : 0;
      const high = words[2 * a + 1] - words[2 * b + 1];
      return high !== 0 ? high : (words[2 * a] >>> 0) - (words[2 * b] >>> 0);
    }
    case 'fixed': {
      const { bytes, width } = dense;
      return compareRanges(bytes, a * width, (a + 1) * width, b * width, (b + 1) * width, isSigned(leaf));
    }
    case 'strings': {
      const { bytes, offsets } = dense.strings;
      const codeA = dense.codes[a];
      const codeB = dense.codes[b];
      return compareRanges(bytes, offsets[codeA], offsets[codeA + 1], offsets[codeB], offsets[codeB + 1], false);
    }
  }
}

function compareRanges(bytes: Uint8Array, a: number, aEnd: number, b: number, bEnd: number, signed: boolean): number {
  if (signed && a < aEnd && b < bEnd) {
    const difference = ((bytes[a] << 24) >> 24) - ((bytes[b] << 24) >> 24);
    if (difference !== 0) return difference;
  }
  const shared = Math.min(aEnd - a, bEnd - b);
  for (let i = 0; i < shared; i++) {
    const difference = bytes[a + i] - bytes[b + i];
    if (difference !== 0) return difference;
  }
  return aEnd - a - (bEnd - b);
}

/** A bound as it stands in footer and page index: PLAIN without a length, cut when long. */
export interface BoundBytes {
  bytes: Uint8Array;
  /** False when the bound was cut, so that no row need hold it (B14). */
  exact: boolean;
}

/**
 * The bound at a position. A zero becomes the zero that bounds both (B8). Strings are cut to `BOUND_LENGTH_MAX` code
 * points, binary to as many bytes; a cut upper bound is rounded up, and kept whole when there is nothing to round.
 */
export function boundBytes(leaf: Leaf, dense: Dense, at: number, upper: boolean): BoundBytes {
  switch (dense.kind) {
    case 'boolean':
      return { bytes: Uint8Array.of(dense.values[at]), exact: true };
    case 'word':
    case 'pair': {
      const width = dense.kind === 'word' ? 4 : 8;
      const bytes = bytesOf(dense.words, at, 1, width).slice();
      if (dense.floats !== null && dense.floats[at] === 0) bytes[width - 1] = upper ? 0 : 0x80;
      return { bytes, exact: true };
    }
    case 'fixed':
      return { bytes: dense.bytes.slice(at * dense.width, (at + 1) * dense.width), exact: true };
    case 'strings': {
      const { bytes, offsets } = dense.strings;
      const whole = bytes.subarray(offsets[dense.codes[at]], offsets[dense.codes[at] + 1]);
      const cut = leaf.type === 'string' ? cutText(whole, upper) : cutBytes(whole, upper);
      return cut === null ? { bytes: whole.slice(), exact: true } : { bytes: cut, exact: false };
    }
  }
}

/** The short bound of a text in UTF-8, or null when the text is to be kept whole. */
function cutText(whole: Uint8Array, upper: boolean): Uint8Array | null {
  let end = 0;
  for (let points = 0; ; points++) {
    if (end === whole.length) return null;
    if (points === BOUND_LENGTH_MAX) break;
    end++;
    while (end < whole.length && (whole[end] & 0xc0) === 0x80) end++;
  }
  if (!upper) return whole.slice(0, end);
  while (end > 0) {
    let start = end - 1;
    while (start > 0 && (whole[start] & 0xc0) === 0x80) start--;
    const next = successor(codePointAt(whole, start, end));
    if (next !== null) {
      const out = new Uint8Array(start + next.length);
      out.set(whole.subarray(0, start));
      out.set(next, start);
      return out;
    }
    end = start;
  }
  return null;
}

function codePointAt(bytes: Uint8Array, start: number, end: number): number {
  const length = end - start;
  let point = length === 1 ? bytes[start] : bytes[start] & (0xff >> (length + 1));
  for (let i = start + 1; i < end; i++) point = (point << 6) | (bytes[i] & 0x3f);
  return point;
}

/** UTF-8 of the next code point, surrogates skipped; null after the last (B11). */
function successor(point: number): Uint8Array | null {
  if (point >= 0x10ffff) return null;
  const next = point === 0xd7ff ? 0xe000 : point + 1;
  if (next < 0x80) return Uint8Array.of(next);
  if (next < 0x800) return Uint8Array.of(0xc0 | (next >> 6), 0x80 | (next & 0x3f));
  if (next < 0x10000) return Uint8Array.of(0xe0 | (next >> 12), 0x80 | ((next >> 6) & 0x3f), 0x80 | (next & 0x3f));
  return Uint8Array.of(
    0xf0 | (next >> 18),
    0x80 | ((next >> 12) & 0x3f),
    0x80 | ((next >> 6) & 0x3f),
    0x80 | (next & 0x3f),
  );
}

/** The short bound of binary, or null when it is to be kept whole (B12). */
function cutBytes(whole: Uint8Array, upper: boolean): Uint8Array | null {
  if (whole.length <= BOUND_LENGTH_MAX) return null;
  let end = BOUND_LENGTH_MAX;
  if (!upper) return whole.slice(0, end);
  while (end > 0 && whole[end - 1] === 0xff) end--;
  if (end === 0) return null;
  const out = whole.slice(0, end);
  out[end - 1]++;
  return out;
}

/**
 * The value at a position, uncut, in the form that manifest bounds are computed from. Zeros as in `boundBytes`. Null
 * for a text that is not UTF-8, as a foreign file may hold it: no bound is right for it.
 */
export function valueAt(leaf: Leaf, dense: Dense, at: number, upper: boolean): Value {
  switch (dense.kind) {
    case 'boolean':
      return dense.values[at] !== 0;
    case 'word':
    case 'pair': {
      if (dense.floats !== null) return dense.floats[at] === 0 ? (upper ? 0 : -0) : dense.floats[at];
      if (dense.kind === 'word') return leaf.logical?.name === 'decimal' ? BigInt(dense.words[at]) : dense.words[at];
      return (BigInt(dense.words[2 * at + 1]) << 32n) | BigInt(dense.words[2 * at] >>> 0);
    }
    case 'fixed': {
      const bytes = dense.bytes.slice(at * dense.width, (at + 1) * dense.width);
      return isSigned(leaf) ? fromTwosComplement(bytes) : bytes;
    }
    case 'strings': {
      const { bytes, offsets } = dense.strings;
      const whole = bytes.slice(offsets[dense.codes[at]], offsets[dense.codes[at] + 1]);
      if (leaf.type !== 'string') return whole;
      try {
        return textOf(whole);
      } catch {
        return null;
      }
    }
  }
}
