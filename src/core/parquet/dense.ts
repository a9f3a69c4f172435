import { assert } from '../base/assert.ts';
import { release } from '../base/release.ts';
import { type ByteStrings, type Column, int32Pairs } from '../columns/columns.ts';
import { BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, type Leaf } from './layout.ts';

/**
 * The values of a column chunk without its nulls: what Parquet's encodings work on. Chunks without nulls are views of
 * the column. `floats` looks at the same memory as `words`.
 */
export type Dense = { count: number } & (
  | { kind: 'boolean'; values: Uint8Array }
  | { kind: 'word'; words: Int32Array; floats: Float32Array | null }
  | { kind: 'pair'; words: Int32Array; floats: Float64Array | null }
  | { kind: 'fixed'; width: number; bytes: Uint8Array }
  /** Value `i` is entry `codes[i]`. `unique`: distinct codes mostly mean distinct strings, so codes serve as keys. */
  | { kind: 'strings'; strings: ByteStrings; codes: Int32Array; unique: boolean }
);

/** True when the column's data has the kind (and width) that the leaf's type is kept in (see `columns.ts`). */
export function fits(leaf: Leaf, column: Column): boolean {
  switch (leaf.physical) {
    case BOOLEAN:
      return column.kind === 'boolean';
    case INT32:
      return column.kind === 'int32';
    case INT64:
      return column.kind === 'int64';
    case FLOAT:
      return column.kind === 'float32';
    case DOUBLE:
      return column.kind === 'float64';
    case BYTE_ARRAY:
      return column.kind === 'dictionary' || column.kind === 'bytes';
    case FIXED_LEN_BYTE_ARRAY:
      return column.kind === 'fixed' && column.width === leaf.length;
  }
  return false;
}

/** Number of values in rows `from` to `to` (exclusive) that are not null. */
export function countValid(validity: Uint8Array | null, from: number, to: number): number {
  if (validity === null) return to - from;
  let count = 0;
  for (let row = from; row < to; row++) count += validity[row];
  return count;
}

/** Rows `from` to `to` of a column, nulls left out. `validity` is null, or one byte per row of which 0 means null. */
export function densify(column: Column, from: number, to: number): Dense {
  const valid = countValid(column.validity, from, to);
  const validity = valid === to - from ? null : column.validity;
  const count = valid;
  switch (column.kind) {
    case 'boolean': {
      if (validity === null) return { kind: 'boolean', count, values: column.values.subarray(from, to) };
      const values = new Uint8Array(count);
      for (let row = from, at = 0; row < to; row++) if (validity[row] !== 0) values[at++] = column.values[row];
      return { kind: 'boolean', count, values };
    }
    case 'int32':
      return { kind: 'word', count, words: compactWords(column.values, validity, from, to, count), floats: null };
    case 'float32': {
      const { buffer, byteOffset, length } = column.values;
      const words = compactWords(new Int32Array(buffer, byteOffset, length), validity, from, to, count);
      return { kind: 'word', count, words, floats: new Float32Array(words.buffer, words.byteOffset, count) };
    }
    case 'int64':
      return {
        kind: 'pair',
        count,
        words: compactPairs(int32Pairs(column.values), validity, from, to, count),
        floats: null,
      };
    case 'float64': {
      const { buffer, byteOffset, length } = column.values;
      const words = compactPairs(new Int32Array(buffer, byteOffset, 2 * length), validity, from, to, count);
      return { kind: 'pair', count, words, floats: new Float64Array(words.buffer, words.byteOffset, count) };
    }
    case 'fixed': {
      const { width, values } = column;
      if (validity === null) return { kind: 'fixed', count, width, bytes: values.subarray(from * width, to * width) };
      const bytes = new Uint8Array(count * width);
      for (let row = from, at = 0; row < to; row++) {
        if (validity[row] === 0) continue;
        for (let k = row * width; k < (row + 1) * width; k++) bytes[at++] = values[k];
      }
      return { kind: 'fixed', count, width, bytes };
    }
    case 'dictionary': {
      const codes = compactWords(column.codes, validity, from, to, count);
      return { kind: 'strings', count, strings: column.dictionary, codes, unique: true };
    }
    case 'bytes': {
      const codes = new Int32Array(count);
      for (let row = from, at = 0; row < to; row++) if (validity === null || validity[row] !== 0) codes[at++] = row;
      return { kind: 'strings', count, strings: column.values, codes, unique: false };
    }
    case 'nested':
      assert(false, 'a nested column has no dense form');
  }
}

/** Gives back what `densify` made of `rows` rows: only where some are null, or for texts without a dictionary, is it no view. */
export function releaseDense(dense: Dense, rows: number): void {
  const isOwn = dense.count < rows;
  switch (dense.kind) {
    case 'boolean':
      if (isOwn) release(dense.values);
      break;
    case 'word':
    case 'pair':
      if (isOwn) release(dense.words);
      break;
    case 'fixed':
      if (isOwn) release(dense.bytes);
      break;
    case 'strings':
      if (isOwn || !dense.unique) release(dense.codes);
      break;
  }
}

function compactWords(words: Int32Array, validity: Uint8Array | null, from: number, to: number, count: number) {
  if (validity === null) return words.subarray(from, to);
  const out = new Int32Array(count);
  for (let row = from, at = 0; row < to; row++) if (validity[row] !== 0) out[at++] = words[row];
  return out;
}

function compactPairs(words: Int32Array, validity: Uint8Array | null, from: number, to: number, count: number) {
  if (validity === null) return words.subarray(2 * from, 2 * to);
  const out = new Int32Array(2 * count);
  for (let row = from, at = 0; row < to; row++) {
    if (validity[row] === 0) continue;
    out[at++] = words[2 * row];
    out[at++] = words[2 * row + 1];
  }
  return out;
}
