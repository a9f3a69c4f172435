import { invalid } from '../base/errors.ts';
import { release } from '../base/release.ts';
import type { SortField, Type } from '../iceberg/types.ts';
import { ranksOf } from './byte-ranks.ts';
import { type ByteStrings, type Column, int32Pairs } from './columns.ts';
import { int64Differences, int64Range, int64Span } from './int64-range.ts';

/** A column by which rows are ordered, and how. */
export interface SortKey {
  column: Column;
  /** Type of the column's values: a decimal held as bytes has a sign, other bytes have none. */
  type: Type;
  direction: SortField['direction'];
  nullOrder: SortField['null-order'];
}

/** One unsigned number a row, below 2^bits. Rows are ordered by the first word, then by the second, and so on. */
export interface Word {
  values: Uint32Array;
  bits: number;
}

/**
 * The sort keys as words, whose order as unsigned numbers is the order of the keys (spec: sorting). Integers count from
 * the least value; texts and bytes are ranked by unsigned bytes; floats go -Infinity .. -0, +0 .. Infinity, NaN, all
 * NaN being equal. Two rows are equal in all words exactly when they are equal in all keys, null being equal to null.
 */
export function wordsOf(rows: number, keys: readonly SortKey[]): Word[] {
  const words: Word[] = [];
  for (const key of keys) words.push(...keyWords(rows, key));
  return packed(rows, words);
}

/** True when the two rows have equal keys. */
export function equalWords(words: readonly Word[], a: number, b: number): boolean {
  for (let k = 0; k < words.length; k++) if (words[k].values[a] !== words[k].values[b]) return false;
  return true;
}

/** Order of two rows: negative, zero or positive. */
export function compareWords(words: readonly Word[], a: number, b: number): number {
  for (let k = 0; k < words.length; k++) {
    const { values } = words[k];
    if (values[a] !== values[b]) return values[a] - values[b];
  }
  return 0;
}

function keyWords(rows: number, { column, type, direction, nullOrder }: SortKey): Word[] {
  const validity = column.validity;
  const words = valueWords(rows, column, type, direction === 'desc');
  if (validity === null || !validity.includes(0)) return words;
  const flags = new Uint32Array(rows);
  const ofNull = nullOrder === 'nulls-first' ? 0 : 1;
  for (let row = 0; row < rows; row++) flags[row] = validity[row] === 0 ? ofNull : 1 - ofNull;
  for (const { values } of words) for (let row = 0; row < rows; row++) if (validity[row] === 0) values[row] = 0;
  return [{ values: flags, bits: 1 }, ...words];
}

/** What the words of null rows are does not matter. */
function valueWords(rows: number, column: Column, type: Type, descending: boolean): Word[] {
  const { validity } = column;
  switch (column.kind) {
    case 'boolean': {
      const values = new Uint32Array(rows);
      for (let row = 0; row < rows; row++) values[row] = column.values[row] ^ (descending ? 1 : 0);
      return [{ values, bits: 1 }];
    }
    case 'int32':
      return int32Words(column.values, validity, descending);
    case 'int64':
      return int64Words(int32Pairs(column.values), validity, descending);
    case 'float32':
      return int32Words(orderedFloats(column.values), validity, descending);
    case 'float64':
      return int64Words(orderedDoubles(column.values), validity, descending);
    case 'dictionary': {
      const { ranks, distinct } = ranksOf(column.dictionary);
      const values = new Uint32Array(rows);
      for (let row = 0; row < rows; row++) if (column.codes[row] >= 0) values[row] = ranks[column.codes[row]];
      release(ranks);
      return rankWords(values, distinct, descending);
    }
    case 'bytes': {
      const { ranks, distinct } = ranksOf(column.values);
      return rankWords(ranks, distinct, descending);
    }
    case 'fixed': {
      const signed = typeof type === 'string' && type.startsWith('decimal');
      const { ranks, distinct } = ranksOf(fixedStrings(column.values, column.width, rows, signed));
      return rankWords(ranks, distinct, descending);
    }
    case 'nested':
      throw invalid(
        'unsortable-column',
        `rows cannot be ordered by a column of lists, structs or maps: ${typeName(type)}`,
      );
  }
}

function typeName(type: Type): string {
  return typeof type === 'string' ? type : type.type;
}

function rankWords(values: Uint32Array, distinct: number, descending: boolean): Word[] {
  const max = Math.max(0, distinct - 1);
  if (descending) for (let row = 0; row < values.length; row++) values[row] = max - values[row];
  return [{ values, bits: bitsOf(max) }];
}

function int32Words(numbers: Int32Array, validity: Uint8Array | null, descending: boolean): Word[] {
  let min = 2_147_483_647;
  let max = -2_147_483_648;
  for (let row = 0; row < numbers.length; row++) {
    if (validity !== null && validity[row] === 0) continue;
    const value = numbers[row];
    if (value < min) min = value;
    if (value > max) max = value;
  }
  if (min > max) return [];
  const values = new Uint32Array(numbers.length);
  if (descending) for (let row = 0; row < values.length; row++) values[row] = (max - numbers[row]) | 0;
  else for (let row = 0; row < values.length; row++) values[row] = (numbers[row] - min) | 0;
  return [{ values, bits: bitsOf(max - min) }];
}

/** `pairs` are (lo, hi) halves. */
function int64Words(pairs: Int32Array, validity: Uint8Array | null, descending: boolean): Word[] {
  const range = int64Range(pairs, validity);
  if (range === null) return [];
  const rows = pairs.length / 2;
  const low = new Uint32Array(rows);
  const high = new Uint32Array(rows);
  int64Differences(pairs, range, descending ? 'max' : 'min', low, high);
  const span = int64Span(range);
  if (span.hi === 0) {
    release(high);
    return [{ values: low, bits: bitsOf(span.lo) }];
  }
  return [
    { values: high, bits: bitsOf(span.hi) },
    { values: low, bits: 32 },
  ];
}

/** Floats as integers of the same order: those below zero have all bits but the sign turned around. */
function orderedFloats(floats: Float32Array): Int32Array {
  const out = new Int32Array(floats.buffer, floats.byteOffset, floats.length).slice();
  for (let row = 0; row < out.length; row++) {
    if (Number.isNaN(floats[row])) out[row] = 0x7fc00000;
    else if (out[row] < 0) out[row] ^= 0x7fffffff;
  }
  return out;
}

function orderedDoubles(doubles: Float64Array): Int32Array {
  const out = new Int32Array(doubles.buffer, doubles.byteOffset, 2 * doubles.length).slice();
  for (let row = 0; row < doubles.length; row++) {
    if (Number.isNaN(doubles[row])) {
      out[2 * row] = 0;
      out[2 * row + 1] = 0x7ff80000;
    } else if (out[2 * row + 1] < 0) {
      out[2 * row] = ~out[2 * row];
      out[2 * row + 1] ^= 0x7fffffff;
    }
  }
  return out;
}

/** Rows of a fixed column as byte strings; of a decimal with the sign bit turned, so that unsigned order is its order. */
function fixedStrings(values: Uint8Array, width: number, rows: number, signed: boolean): ByteStrings {
  const offsets = new Int32Array(rows + 1);
  for (let row = 1; row <= rows; row++) offsets[row] = row * width;
  if (!signed) return { bytes: values, offsets };
  const bytes = values.slice();
  for (let row = 0; row < rows; row++) bytes[row * width] ^= 0x80;
  return { bytes, offsets };
}

function bitsOf(max: number): number {
  return 32 - Math.clz32(max);
}

/** Joins neighbours that fit one word, and drops words that tell nothing. */
function packed(rows: number, words: Word[]): Word[] {
  const out: Word[] = [];
  for (let i = words.length - 1; i >= 0; i--) {
    const word = words[i];
    if (word.bits === 0) {
      release(word.values);
      continue;
    }
    const lower = out[0];
    if (lower !== undefined && lower.bits + word.bits <= 32) {
      const values = new Uint32Array(rows);
      for (let row = 0; row < rows; row++) values[row] = lower.values[row] | (word.values[row] << lower.bits);
      release(lower.values);
      release(word.values);
      out[0] = { values, bits: lower.bits + word.bits };
    } else out.unshift(word);
  }
  return out;
}
