import { invalid } from '../base/errors.ts';
import { release } from '../base/release.ts';
import type { SortOrder } from '../iceberg/types.ts';
import type { Columns } from './columns.ts';
import { compareWords, type SortKey, type Word, wordsOf } from './order-words.ts';
import { transformColumn } from './transform-column.ts';

/**
 * The rows in the order of `keys`, the first key counting most; equal rows keep their order. A radix sort, linear in
 * the rows. Input that is in order already costs one look.
 *
 * Throws `invalid` `unsortable-column` for a key that is a list, struct or map.
 */
export function sortRows(rows: number, keys: readonly SortKey[]): Uint32Array {
  return sortByWords(rows, wordsOf(rows, keys));
}

/**
 * Sort keys of an Iceberg sort order. Transforms other than identity are applied; columns are found by field id.
 *
 * Throws `invalid` `unknown-sort-field` for a source that is no top-level field of the schema.
 */
export function sortKeysOf(columns: Columns, order: SortOrder): SortKey[] {
  return order.fields.map((field) => {
    const place = columns.schema.fields.findIndex(({ id }) => id === field['source-id']);
    if (place < 0) {
      throw invalid('unknown-sort-field', `sort order names a field the schema does not have: ${field['source-id']}`);
    }
    const source = columns.schema.fields[place];
    const { column, type } = transformColumn(columns.columns[place], source, field.transform);
    return { column, type, direction: field.direction, nullOrder: field['null-order'] };
  });
}

/** `sortRows` over words made before. */
export function sortByWords(rows: number, words: readonly Word[]): Uint32Array {
  let from = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) from[row] = row;
  const unsorted = unsortedWords(rows, words);
  if (unsorted === 0) return from;
  let to = new Uint32Array(rows);
  // A table of counts is to be small beside the rows.
  const digitBitsMax = rows < 4096 ? 8 : 11;
  for (let i = unsorted - 1; i >= 0; i--) {
    const { values, bits } = words[i];
    const digitBits = Math.ceil(bits / Math.ceil(bits / digitBitsMax));
    for (let shift = 0; shift < bits; shift += digitBits) {
      if (!scatter(values, shift, digitBits, from, to)) continue;
      [from, to] = [to, from];
    }
  }
  release(to);
  return from;
}

/** One stable pass by `bits` bits from `shift` on. False, and nothing done, when all rows have the same digit. */
function scatter(values: Uint32Array, shift: number, bits: number, from: Uint32Array, to: Uint32Array): boolean {
  const rows = from.length;
  const digits = 1 << bits;
  const mask = digits - 1;
  const starts = new Uint32Array(digits + 1);
  for (let row = 0; row < rows; row++) starts[((values[row] >>> shift) & mask) + 1]++;
  if (starts[((values[0] >>> shift) & mask) + 1] === rows) return false;
  for (let digit = 0; digit < digits; digit++) starts[digit + 1] += starts[digit];
  for (let i = 0; i < rows; i++) {
    const row = from[i];
    to[starts[(values[row] >>> shift) & mask]++] = row;
  }
  return true;
}

/**
 * How many leading words still need sorting: the rows as they stand are in order by the words after those. Zero means
 * they are in order altogether. Rows often arrive by time, and then only the series is left to sort by.
 */
function unsortedWords(rows: number, words: readonly Word[]): number {
  // Bit k: no two neighbours seen so far are out of order by words k, k + 1, ... The empty suffix is always in order.
  let sorted = 2 ** (words.length + 1) - 1;
  const onlyEmpty = 2 ** words.length;
  if (words.length > 30) return compareAll(rows, words) ? 0 : words.length;
  for (let row = 1; row < rows && sorted !== onlyEmpty; row++) {
    let inOrder = true;
    for (let k = words.length - 1; k >= 0; k--) {
      const { values } = words[k];
      if (values[row - 1] !== values[row]) inOrder = values[row - 1] < values[row];
      if (!inOrder) sorted &= ~(1 << k);
    }
  }
  return 31 - Math.clz32(sorted & -sorted);
}

function compareAll(rows: number, words: readonly Word[]): boolean {
  for (let row = 1; row < rows; row++) if (compareWords(words, row - 1, row) > 0) return false;
  return true;
}
