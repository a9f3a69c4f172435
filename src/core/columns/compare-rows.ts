import { assert } from '../base/assert.ts';
import { compareFloats } from '../iceberg/single-value.ts';
import { type ByteStrings, type Column, isNull } from './columns.ts';
import type { SortKey } from './order-words.ts';

/**
 * Order of two rows that may be of different columns, by the same keys: negative, zero or positive. The order is that of
 * `wordsOf`, which is for many rows at once; this is for a few. Not for hot loops.
 */
export function compareRows(a: readonly SortKey[], rowA: number, b: readonly SortKey[], rowB: number): number {
  for (let k = 0; k < a.length; k++) {
    const { direction, nullOrder, type } = a[k];
    const [nullA, nullB] = [isNull(a[k].column, rowA), isNull(b[k].column, rowB)];
    if (nullA || nullB) {
      if (nullA && nullB) continue;
      return nullA === (nullOrder === 'nulls-first') ? -1 : 1;
    }
    const order = compareValues(a[k].column, rowA, b[k].column, rowB, type);
    if (order !== 0) return direction === 'desc' ? -order : order;
  }
  return 0;
}

function compareValues(a: Column, rowA: number, b: Column, rowB: number, type: SortKey['type']): number {
  switch (a.kind) {
    case 'boolean':
    case 'int32':
    case 'int64':
      assert(b.kind === a.kind, 'keys of one field have one kind');
      return a.values[rowA] < b.values[rowB] ? -1 : a.values[rowA] > b.values[rowB] ? 1 : 0;
    case 'float32':
    case 'float64':
      assert(b.kind === a.kind, 'keys of one field have one kind');
      return compareFloats(a.values[rowA], b.values[rowB]);
    case 'fixed': {
      assert(b.kind === 'fixed' && b.width === a.width, 'keys of one field have one kind');
      const { width } = a;
      const isSigned = typeof type === 'string' && type.startsWith('decimal');
      return compareBytes(a.values, rowA * width, b.values, rowB * width, width, width, isSigned ? 0x80 : 0);
    }
    case 'dictionary':
    case 'bytes': {
      const [from, to, bytes] = stretch(a, rowA);
      const [fromB, toB, bytesB] = stretch(b, rowB);
      return compareBytes(bytes, from, bytesB, fromB, to - from, toB - fromB, 0);
    }
    case 'nested':
      assert(false, 'rows are not ordered by nested columns');
  }
}

function stretch(column: Column, row: number): [number, number, Uint8Array] {
  assert(column.kind === 'dictionary' || column.kind === 'bytes', 'keys of one field have one kind');
  const strings: ByteStrings = column.kind === 'bytes' ? column.values : column.dictionary;
  const index = column.kind === 'bytes' ? row : column.codes[row];
  return [strings.offsets[index], strings.offsets[index + 1], strings.bytes];
}

/** By unsigned bytes, the first one with the bits of `flip` turned; then by length. */
function compareBytes(
  a: Uint8Array,
  fromA: number,
  b: Uint8Array,
  fromB: number,
  lengthA: number,
  lengthB: number,
  flip: number,
): number {
  const length = Math.min(lengthA, lengthB);
  for (let i = 0; i < length; i++) {
    const turned = i === 0 ? flip : 0;
    const order = (a[fromA + i] ^ turned) - (b[fromB + i] ^ turned);
    if (order !== 0) return order;
  }
  return lengthA - lengthB;
}
