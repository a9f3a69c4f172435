import { release } from '../base/release.ts';
import type { ByteStrings } from './columns.ts';
import { countOf } from './columns.ts';

/** Segments up to this size are sorted by insertion. */
const INSERTION_MAX = 24;

/** Segments up to this size are sorted by comparing their keys; larger ones by radix. */
const COMPARE_MAX = 1024;

/** Bytes of a string that one key holds, beside how many there are. */
const KEY_BYTES = 3;

/**
 * Place of every entry in the order of unsigned bytes, which for UTF-8 is the order of code points. Equal entries have
 * the same rank; ranks are dense.
 *
 * A most-significant-first radix sort: time is linear in the bytes, also for texts made to be alike.
 */
export function ranksOf(strings: ByteStrings): { ranks: Uint32Array; distinct: number } {
  const order = orderOf(strings);
  const ranks = new Uint32Array(order.length);
  let distinct = 0;
  for (let i = 0; i < order.length; i++) {
    if (i > 0 && compareEntries(strings, order[i - 1], order[i], 0) !== 0) distinct++;
    ranks[order[i]] = distinct;
  }
  release(order);
  return { ranks, distinct: ranks.length === 0 ? 0 : distinct + 1 };
}

/** Entry numbers in ascending order of their bytes. */
function orderOf(strings: ByteStrings): Uint32Array {
  const count = countOf(strings);
  const order = new Uint32Array(count);
  for (let i = 0; i < count; i++) order[i] = i;
  const keys = new Uint32Array(count);
  const scratch = new Uint32Array(count);
  // Segments whose strings agree on the bytes before `depth`: from, to, depth, from, to, depth, ...
  const open = [0, count, 0];
  while (open.length > 0) {
    const shared = open.pop() as number;
    const to = open.pop() as number;
    const from = open.pop() as number;
    if (to - from <= INSERTION_MAX) {
      insertionSort(strings, order, from, to, shared);
      continue;
    }
    const depth = shared + commonLength(strings, order, from, to, shared);
    for (let i = from; i < to; i++) keys[order[i]] = keyAt(strings, order[i], depth);
    sortByKeys(order, from, to, keys, scratch);
    for (let start = from; start < to; ) {
      const key = keys[order[start]];
      let end = start + 1;
      while (end < to && keys[order[end]] === key) end++;
      // Strings that end inside the key are equal when their keys are.
      if (end - start > 1 && (key & 0xff) > KEY_BYTES) open.push(start, end, depth + KEY_BYTES);
      start = end;
    }
  }
  release(keys);
  release(scratch);
  return order;
}

/** Three bytes at `depth`, then how many there are, four for more: so that a string comes before its extensions. */
function keyAt({ bytes, offsets }: ByteStrings, index: number, depth: number): number {
  const at = offsets[index] + depth;
  const left = offsets[index + 1] - at;
  let key = left > KEY_BYTES ? KEY_BYTES + 1 : left;
  if (left > 0) key |= bytes[at] << 24;
  if (left > 1) key |= bytes[at + 1] << 16;
  if (left > 2) key |= bytes[at + 2] << 8;
  return key >>> 0;
}

/** Number of bytes from `depth` on that all strings of the segment share. */
function commonLength(
  { bytes, offsets }: ByteStrings,
  order: Uint32Array,
  from: number,
  to: number,
  depth: number,
): number {
  const first = offsets[order[from]] + depth;
  let common = offsets[order[from] + 1] - first;
  for (let i = from + 1; i < to && common > 0; i++) {
    const at = offsets[order[i]] + depth;
    const length = Math.min(common, offsets[order[i] + 1] - at);
    common = 0;
    while (common < length && bytes[at + common] === bytes[first + common]) common++;
  }
  return common;
}

function sortByKeys(order: Uint32Array, from: number, to: number, keys: Uint32Array, scratch: Uint32Array): void {
  if (to - from <= COMPARE_MAX) {
    order.subarray(from, to).sort((a, b) => keys[a] - keys[b]);
    return;
  }
  for (let shift = 0; shift < 32; shift += 8) {
    const ends = new Uint32Array(257);
    for (let i = from; i < to; i++) ends[((keys[order[i]] >>> shift) & 0xff) + 1]++;
    for (let digit = 0; digit < 256; digit++) ends[digit + 1] += ends[digit];
    for (let i = from; i < to; i++) scratch[from + ends[(keys[order[i]] >>> shift) & 0xff]++] = order[i];
    order.set(scratch.subarray(from, to), from);
  }
}

function insertionSort(strings: ByteStrings, order: Uint32Array, from: number, to: number, depth: number): void {
  for (let i = from + 1; i < to; i++) {
    const inserted = order[i];
    let at = i;
    for (; at > from && compareEntries(strings, order[at - 1], inserted, depth) > 0; at--) order[at] = order[at - 1];
    order[at] = inserted;
  }
}

/** Order of two entries that agree on the bytes before `depth`. */
function compareEntries({ bytes, offsets }: ByteStrings, a: number, b: number, depth: number): number {
  const startA = offsets[a] + depth;
  const startB = offsets[b] + depth;
  const lengthA = offsets[a + 1] - startA;
  const lengthB = offsets[b + 1] - startB;
  const shared = Math.min(lengthA, lengthB);
  for (let i = 0; i < shared; i++) {
    const difference = bytes[startA + i] - bytes[startB + i];
    if (difference !== 0) return difference;
  }
  return lengthA - lengthB;
}
