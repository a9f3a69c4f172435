import { assert } from '../base/assert.ts';
import { invalid } from '../base/errors.ts';
import { nestedBytes } from '../columns/builder.ts';
import { type ByteStrings, type Column, type Columns, int32Pairs } from '../columns/columns.ts';
import { fits } from './dense.ts';
import type { Leaf } from './layout.ts';

/**
 * Checks what typed columns cannot promise by themselves, before anything is encoded: no null in a required column
 * (B028), decimals within their precision (P16), dictionary codes within their dictionary. Errors: invalid
 * `null-in-required-column`, `decimal-overflow`, with `column` and `row` in the detail.
 */
export function checkColumns(leaves: readonly Leaf[], columns: Columns, from: number, to: number): void {
  leaves.forEach((leaf, i) => {
    const column = columns.columns[i];
    assert(fits(leaf, column), `column ${leaf.name} of type ${leaf.type} has data of kind ${column.kind}`);
    checkRequired(leaf.name, leaf.required, column, from, to);
    if (column.kind === 'dictionary') checkCodes(leaf, column.codes, column.dictionary, column.validity, from, to);
    if (leaf.logical?.name === 'decimal') checkPrecision(leaf, leaf.logical.precision, column, from, to);
  });
}

/** Refuses a null in a required column, which a dictionary encoder would turn into its first entry (B028). */
export function checkRequired(name: string, required: boolean, column: Column, from: number, to: number): void {
  if (!required || column.validity === null) return;
  const row = column.validity.indexOf(0, from);
  if (row !== -1 && row < to) {
    throw invalid('null-in-required-column', `column ${name}: null in a required column at row ${row}`, {
      column: name,
      row,
    });
  }
}

function checkCodes(
  leaf: Leaf,
  codes: Int32Array,
  dictionary: ByteStrings,
  validity: Uint8Array | null,
  from: number,
  to: number,
): void {
  const size = dictionary.offsets.length - 1;
  for (let row = from; row < to; row++) {
    if (codes[row] >>> 0 < size || (validity !== null && validity[row] === 0)) continue;
    assert(false, `column ${leaf.name}: code ${codes[row]} of row ${row} is not in its dictionary of ${size}`);
  }
}

function checkPrecision(leaf: Leaf, precision: number, column: Column, from: number, to: number): void {
  const { validity } = column;
  const limit = 10n ** BigInt(precision);
  const fail = (row: number): never => {
    throw invalid('decimal-overflow', `column ${leaf.name}: row ${row} has more digits than ${leaf.type}`, {
      column: leaf.name,
      row,
    });
  };
  if (column.kind === 'int32') {
    const bound = Number(limit);
    for (let row = from; row < to; row++) {
      const value = column.values[row];
      if ((value >= bound || value <= -bound) && (validity === null || validity[row] !== 0)) fail(row);
    }
  } else if (column.kind === 'int64') {
    // Only near the limit does a double not tell; then the exact value is looked at.
    const words = int32Pairs(column.values);
    const safe = Number(limit) - 4096;
    for (let row = from; row < to; row++) {
      const about = words[2 * row + 1] * 2 ** 32 + (words[2 * row] >>> 0);
      if (about < safe && about > -safe) continue;
      const value = column.values[row];
      if ((value >= limit || value <= -limit) && (validity === null || validity[row] !== 0)) fail(row);
    }
  } else if (column.kind === 'fixed') {
    const { width, values } = column;
    const most = bigEndian(limit - 1n, width);
    const least = bigEndian(1n - limit, width);
    for (let row = from; row < to; row++) {
      if (validity !== null && validity[row] === 0) continue;
      const negative = values[row * width] >= 0x80;
      const order = compareFixed(values, row * width, negative ? least : most);
      if (negative ? order < 0 : order > 0) fail(row);
    }
  }
}

/** Numbers of one sign in two's complement are ordered as their bytes are. */
function compareFixed(values: Uint8Array, at: number, limit: Uint8Array): number {
  for (let k = 0; k < limit.length; k++) {
    const difference = values[at + k] - limit[k];
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Two's complement, big endian, in exactly `width` bytes. */
export function bigEndian(value: bigint, width: number): Uint8Array {
  const out = new Uint8Array(width);
  let rest = value;
  for (let k = width - 1; k >= 0; k--) {
    out[k] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return out;
}

/**
 * End of the row group that begins at row `from`: at most `rowsMax` rows and, once it has a row, at most `bytesMax`
 * bytes as plain values (P17, B103).
 */
export function cutRowGroup(columns: Columns, from: number, rowsMax: number, bytesMax: number, to: number): number {
  const end = Math.min(to, from + rowsMax);
  let rowBytes = 0;
  const sizes: ((row: number) => number)[] = [];
  // Columns of short strings cannot reach the limit; then nothing has to be summed up row by row.
  let atMost = 0;
  for (const column of columns.columns) {
    if (column.kind === 'bytes') {
      const { offsets } = column.values;
      sizes.push((row) => offsets[row + 1] - offsets[row]);
      atMost += offsets[end] - offsets[from];
    } else if (column.kind === 'dictionary') {
      const { codes, dictionary } = column;
      const { offsets } = dictionary;
      sizes.push((row) => (codes[row] < 0 ? 0 : offsets[codes[row] + 1] - offsets[codes[row]]));
      atMost += longestEntry(dictionary) * (end - from);
    } else if (column.kind === 'nested') {
      const { values } = column;
      sizes.push((row) => (values[row] === null ? 0 : nestedBytes(values[row])));
      atMost = Number.POSITIVE_INFINITY;
    }
    rowBytes += widthOf(column);
  }
  if (rowBytes * (end - from) + atMost <= bytesMax) return end;
  let bytes = 0;
  for (let row = from; row < end; row++) {
    bytes += rowBytes;
    for (const sizeOf of sizes) bytes += sizeOf(row);
    if (bytes > bytesMax && row > from) return row;
  }
  return end;
}

function longestEntry(strings: ByteStrings): number {
  let longest = 0;
  const { offsets } = strings;
  for (let i = 1; i < offsets.length; i++) {
    const length = offsets[i] - offsets[i - 1];
    if (length > longest) longest = length;
  }
  return longest;
}

/** Bytes of a row that the column takes whatever its value. */
function widthOf(column: Column): number {
  switch (column.kind) {
    case 'boolean':
      return 1;
    case 'fixed':
      return column.width;
    case 'int64':
    case 'float64':
      return 8;
    default:
      return 4;
  }
}
