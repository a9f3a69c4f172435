import { nestedBytes } from './builder.ts';
import { type ByteStrings, type Columns, isNull } from './columns.ts';

/**
 * Bytes each row takes as typed columns: what is stored per row, validity included, and the text it names, even when a
 * dictionary holds that once for many rows. So it bounds memory from above, and files too, before compression.
 */
export function rowBytesOf(columns: Columns): Float64Array {
  const { rows } = columns;
  const out = new Float64Array(rows);
  let fixed = 0;
  for (const column of columns.columns) {
    if (column.validity !== null) fixed += 1;
    switch (column.kind) {
      case 'boolean':
        fixed += 1;
        break;
      case 'int32':
      case 'float32':
        fixed += 4;
        break;
      case 'int64':
      case 'float64':
        fixed += 8;
        break;
      case 'fixed':
        fixed += column.width;
        break;
      case 'dictionary': {
        fixed += 4;
        const { codes } = column;
        const lengths = lengthsOf(column.dictionary);
        for (let row = 0; row < rows; row++) if (codes[row] >= 0) out[row] += lengths[codes[row]];
        break;
      }
      case 'bytes': {
        fixed += 4;
        const lengths = lengthsOf(column.values);
        for (let row = 0; row < rows; row++) out[row] += lengths[row];
        break;
      }
      case 'nested':
        for (let row = 0; row < rows; row++) out[row] += isNull(column, row) ? 8 : nestedBytes(column.values[row]);
        break;
    }
  }
  for (let row = 0; row < rows; row++) out[row] += fixed;
  return out;
}

/** No row of `rowBytesOf` is larger. At once, but for nested columns, of which nothing is known: infinite. */
export function rowBytesBound(columns: Columns): number {
  let bound = 0;
  for (const column of columns.columns) {
    if (column.validity !== null) bound += 1;
    switch (column.kind) {
      case 'boolean':
        bound += 1;
        break;
      case 'int32':
      case 'float32':
        bound += 4;
        break;
      case 'int64':
      case 'float64':
        bound += 8;
        break;
      case 'fixed':
        bound += column.width;
        break;
      case 'dictionary':
        bound += 4 + longestOf(column.dictionary);
        break;
      case 'bytes':
        bound += 4 + longestOf(column.values);
        break;
      case 'nested':
        return Number.POSITIVE_INFINITY;
    }
  }
  return bound;
}

function longestOf({ offsets }: ByteStrings): number {
  let longest = 0;
  for (let i = 1; i < offsets.length; i++) longest = Math.max(longest, offsets[i] - offsets[i - 1]);
  return longest;
}

function lengthsOf({ offsets }: ByteStrings): Int32Array {
  const out = new Int32Array(offsets.length - 1);
  for (let i = 0; i < out.length; i++) out[i] = offsets[i + 1] - offsets[i];
  return out;
}

/** Bytes of memory that columns hold. */
export function byteSizeOf(columns: Columns): number {
  let bytes = 0;
  for (const column of columns.columns) {
    bytes += column.validity?.byteLength ?? 0;
    switch (column.kind) {
      case 'dictionary':
        bytes += column.codes.byteLength + column.dictionary.bytes.byteLength + column.dictionary.offsets.byteLength;
        break;
      case 'bytes':
        bytes += column.values.bytes.byteLength + column.values.offsets.byteLength;
        break;
      case 'nested':
        for (const value of column.values) bytes += 8 + (value === null ? 0 : nestedBytes(value));
        break;
      default:
        bytes += column.values.byteLength;
    }
  }
  return bytes;
}
