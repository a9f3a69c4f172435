import type { Schema } from '../iceberg/types.ts';

/**
 * Typed columns: the form in which rows live between a request's body and a Parquet page. No object, string or
 * bigint per row on hot paths.
 *
 * | Iceberg type                                             | data                                                 |
 * |----------------------------------------------------------|------------------------------------------------------|
 * | boolean                                                  | `boolean`, one byte a row, 0 or 1                    |
 * | int, date, decimal of precision ≤ 9 (unscaled)           | `int32`                                              |
 * | long, time, timestamp, timestamptz, decimal ≤ 18         | `int64`; its buffer is also (lo, hi) int32 pairs     |
 * | float / double                                           | `float32` / `float64`                                |
 * | uuid, fixed[L], decimal > 18 (big-endian, least width)   | `fixed`, `width` bytes a row                         |
 * | string, binary                                           | `dictionary` while few distinct values, else `bytes` |
 * | list, struct, map                                        | `nested`, one JavaScript value a row                 |
 *
 * Values at null slots are zero (code -1 in a dictionary column) and never read. Times are UTC microseconds.
 */
export interface Columns {
  schema: Schema;
  rows: number;
  /** One per top-level field of the schema, in its order. */
  columns: Column[];
}

/** A list of byte strings: entry `i` is `bytes[offsets[i] .. offsets[i + 1]]`. `offsets` has one more than the entries. */
export interface ByteStrings {
  bytes: Uint8Array;
  offsets: Int32Array;
}

export type ColumnData =
  | { kind: 'boolean'; values: Uint8Array }
  | { kind: 'int32'; values: Int32Array }
  | { kind: 'int64'; values: BigInt64Array }
  | { kind: 'float32'; values: Float32Array }
  | { kind: 'float64'; values: Float64Array }
  | { kind: 'fixed'; width: number; values: Uint8Array }
  | { kind: 'dictionary'; codes: Int32Array; dictionary: ByteStrings }
  | { kind: 'bytes'; values: ByteStrings }
  | { kind: 'nested'; values: unknown[] };

/** `validity[i]` is 1 where row `i` has a value, 0 where it is null. Null instead of an array: no nulls. */
export type Column = ColumnData & { validity: Uint8Array | null };

/** The (lo, hi) pairs behind an int64 column, for arithmetic without bigints. Little endian, as every runtime here is. */
export function int32Pairs(values: BigInt64Array): Int32Array {
  return new Int32Array(values.buffer, values.byteOffset, values.length * 2);
}

/** Number of entries in a list of byte strings. */
export function countOf(strings: ByteStrings): number {
  return strings.offsets.length - 1;
}

/** Entry `index` as a view, not a copy. */
export function entry(strings: ByteStrings, index: number): Uint8Array {
  return strings.bytes.subarray(strings.offsets[index], strings.offsets[index + 1]);
}

/** True when row `index` of the column is null. */
export function isNull(column: Column, index: number): boolean {
  return column.validity !== null && column.validity[index] === 0;
}

/** Number of rows of one column. */
export function rowsOf(column: Column): number {
  switch (column.kind) {
    case 'fixed':
      return column.values.length / column.width;
    case 'dictionary':
      return column.codes.length;
    case 'bytes':
      return countOf(column.values);
    default:
      return column.values.length;
  }
}
