import { invalid } from '../base/errors.ts';
import { COLUMN_BYTES_MAX } from '../base/limits.ts';
import { release } from '../base/release.ts';
import { type ByteStrings, type Column, type Columns, countOf, int32Pairs } from './columns.ts';

/** Row numbers in an order of their own: a permutation, or any selection. */
export type RowIndexes = Int32Array | Uint32Array;

/**
 * The rows `rowIndexes[from .. to]`, in that order. Dictionaries keep only entries in use, in their old order, so what
 * is true of the entries is true of the rows. The result shares no memory with the input.
 */
export function gather(columns: Columns, rowIndexes: RowIndexes, from = 0, to = rowIndexes.length): Columns {
  const rows = rowIndexes.subarray(from, to);
  return {
    schema: columns.schema,
    rows: rows.length,
    columns: columns.columns.map((column) => gatherColumn(column, rows)),
  };
}

/** Row numbers `0 .. rows`. */
export function allRows(rows: number): Uint32Array {
  const out = new Uint32Array(rows);
  for (let row = 0; row < rows; row++) out[row] = row;
  return out;
}

/** One column of `gather`. */
export function gatherColumn(column: Column, rows: RowIndexes): Column {
  const validity = column.validity === null ? null : gatherValidity(column.validity, rows);
  switch (column.kind) {
    case 'boolean':
      return { kind: 'boolean', values: gatherBytes(column.values, rows), validity };
    case 'int32':
      return { kind: 'int32', values: gatherInt32(column.values, rows), validity };
    case 'int64': {
      // Pairs, not bigints; and not doubles, which may change bits of a NaN on their way.
      const source = int32Pairs(column.values);
      const values = new BigInt64Array(rows.length);
      const target = int32Pairs(values);
      for (let i = 0; i < rows.length; i++) {
        const at = 2 * rows[i];
        target[2 * i] = source[at];
        target[2 * i + 1] = source[at + 1];
      }
      return { kind: 'int64', values, validity };
    }
    case 'float32': {
      const values = new Float32Array(rows.length);
      for (let i = 0; i < rows.length; i++) values[i] = column.values[rows[i]];
      return { kind: 'float32', values, validity };
    }
    case 'float64': {
      const source = column.values;
      const values = new Float64Array(rows.length);
      for (let i = 0; i < rows.length; i++) values[i] = source[rows[i]];
      return { kind: 'float64', values, validity };
    }
    case 'fixed': {
      const { width, values: source } = column;
      const values = new Uint8Array(rows.length * width);
      for (let i = 0; i < rows.length; i++) copyBytes(source, rows[i] * width, values, i * width, width);
      return { kind: 'fixed', width, values, validity };
    }
    case 'dictionary': {
      const codes = gatherInt32(column.codes, rows);
      return { kind: 'dictionary', ...withUsedEntries(codes, column.dictionary), validity };
    }
    case 'bytes':
      return { kind: 'bytes', values: gatherStrings(column.values, rows), validity };
    case 'nested':
      return { kind: 'nested', values: Array.from(rows, (row) => column.values[row]), validity };
  }
}

/** The rows `from .. to`. Values are views of the input where that is possible; dictionaries are shared as they are. */
export function slice(columns: Columns, from: number, to: number): Columns {
  return {
    schema: columns.schema,
    rows: to - from,
    columns: columns.columns.map((column) => sliceColumn(column, from, to)),
  };
}

function sliceColumn(column: Column, from: number, to: number): Column {
  const validity = column.validity === null ? null : withNulls(column.validity.subarray(from, to));
  switch (column.kind) {
    case 'boolean':
      return { ...column, values: column.values.subarray(from, to), validity };
    case 'int32':
      return { ...column, values: column.values.subarray(from, to), validity };
    case 'int64':
      return { ...column, values: column.values.subarray(from, to), validity };
    case 'float32':
      return { ...column, values: column.values.subarray(from, to), validity };
    case 'float64':
      return { ...column, values: column.values.subarray(from, to), validity };
    case 'fixed':
      return { ...column, values: column.values.subarray(from * column.width, to * column.width), validity };
    case 'dictionary':
      return { ...column, codes: column.codes.subarray(from, to), validity };
    case 'bytes':
      return { ...column, values: sliceStrings(column.values, from, to), validity };
    case 'nested':
      return { ...column, values: column.values.slice(from, to), validity };
  }
}

/** Entries `from .. to`, their offsets counted from zero again. */
export function sliceStrings(strings: ByteStrings, from: number, to: number): ByteStrings {
  const start = strings.offsets[from];
  const offsets = strings.offsets.slice(from, to + 1);
  for (let i = 0; i < offsets.length; i++) offsets[i] -= start;
  return { bytes: strings.bytes.subarray(start, strings.offsets[to]), offsets };
}

/** The validity, or null when it tells of no null. */
export function withNulls(validity: Uint8Array): Uint8Array | null {
  return validity.includes(0) ? validity : null;
}

function gatherValidity(validity: Uint8Array, rows: RowIndexes): Uint8Array | null {
  const gathered = gatherBytes(validity, rows);
  if (gathered.includes(0)) return gathered;
  release(gathered);
  return null;
}

/** Drops the entries that no code names. `codes` are rewritten in place. */
function withUsedEntries(codes: Int32Array, dictionary: ByteStrings): { codes: Int32Array; dictionary: ByteStrings } {
  const entries = countOf(dictionary);
  const newCodes = new Int32Array(entries);
  for (let i = 0; i < codes.length; i++) if (codes[i] >= 0) newCodes[codes[i]] = 1;
  let used = 0;
  for (let code = 0; code < entries; code++) used += newCodes[code];
  if (used === entries) {
    release(newCodes);
    const { bytes, offsets } = dictionary;
    return { codes, dictionary: { bytes: bytes.slice(), offsets: offsets.slice() } };
  }
  const kept = new Int32Array(used);
  let next = 0;
  for (let code = 0; code < entries; code++) {
    if (newCodes[code] === 0) continue;
    kept[next] = code;
    newCodes[code] = next++;
  }
  for (let i = 0; i < codes.length; i++) if (codes[i] >= 0) codes[i] = newCodes[codes[i]];
  const keptEntries = gatherStrings(dictionary, kept);
  release(newCodes);
  release(kept);
  return { codes, dictionary: keptEntries };
}

function gatherInt32(source: Int32Array, rows: RowIndexes): Int32Array {
  const out = new Int32Array(rows.length);
  for (let i = 0; i < rows.length; i++) out[i] = source[rows[i]];
  return out;
}

function gatherBytes(source: Uint8Array, rows: RowIndexes): Uint8Array {
  const out = new Uint8Array(rows.length);
  for (let i = 0; i < rows.length; i++) out[i] = source[rows[i]];
  return out;
}

/** The entries named by `rows`, in that order. */
export function gatherStrings(strings: ByteStrings, rows: RowIndexes): ByteStrings {
  const { bytes: source, offsets: sourceOffsets } = strings;
  const offsets = new Int32Array(rows.length + 1);
  let end = 0;
  for (let i = 0; i < rows.length; i++) {
    end += sourceOffsets[rows[i] + 1] - sourceOffsets[rows[i]];
    offsets[i + 1] = end;
  }
  checkColumnBytes(end);
  const bytes = new Uint8Array(end);
  for (let i = 0; i < rows.length; i++) {
    copyBytes(source, sourceOffsets[rows[i]], bytes, offsets[i], offsets[i + 1] - offsets[i]);
  }
  return { bytes, offsets };
}

/** Text that int32 offsets can address. Throws `invalid` `column-too-large`. */
export function checkColumnBytes(bytes: number): void {
  if (bytes > COLUMN_BYTES_MAX) {
    throw invalid('column-too-large', `column holds more than ${COLUMN_BYTES_MAX} bytes of text: ${bytes}`);
  }
}

/** Below this a loop is faster than making a view and calling `set`. */
const LOOP_BYTES_MAX = 48;

function copyBytes(source: Uint8Array, from: number, target: Uint8Array, to: number, length: number): void {
  if (length <= LOOP_BYTES_MAX) for (let i = 0; i < length; i++) target[to + i] = source[from + i];
  else target.set(source.subarray(from, from + length), to);
}
