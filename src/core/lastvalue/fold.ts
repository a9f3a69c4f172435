import type { Columns } from '../columns/columns.ts';
import { concat } from '../columns/concat.ts';
import { gather } from '../columns/gather.ts';
import { sortByWords, sortKeysOf } from '../columns/order.ts';
import { compareWords, equalWords, type Word, wordsOf } from '../columns/order-words.ts';
import type { Schema, SortField } from '../iceberg/types.ts';

/** What makes rows a series, and which of its rows is the newest; field ids of top-level columns. */
export interface Series {
  /** Empty: the whole table is one series. */
  keyIds: readonly number[];
  timeId: number;
  /** Null in tables that have none. */
  ingestTimeId: number | null;
}

/**
 * The newest row of each series: the one with the latest time, of those the one with the latest ingest time, of those
 * the one that comes last. It is the rule of dedup, one step further. Null is a key like any other, and a null time older
 * than all. Row numbers come back in the order of the key, nulls first, as the index is sorted.
 */
export function newestOf(columns: Columns, { keyIds, timeId, ingestTimeId }: Series): Uint32Array {
  const { rows } = columns;
  const key = wordsBy(columns, keyIds);
  const when = wordsBy(columns, ingestTimeId === null ? [timeId] : [timeId, ingestTimeId]);
  const sorted = sortByWords(rows, key);
  const newest = new Uint32Array(rows);
  let count = 0;
  for (let i = 0; i < rows; i++) {
    const row = sorted[i];
    if (count === 0 || !equalWords(key, newest[count - 1], row)) newest[count++] = row;
    else if (compareWords(when, newest[count - 1], row) <= 0) newest[count - 1] = row;
  }
  return newest.subarray(0, count);
}

/**
 * The newest rows of all parts together, in the order of the key, as columns of `schema`; of rows with equal times the one
 * of the later part wins. Parts may be of older schemas.
 *
 * Throws `rejected` as `concat` does.
 */
export function foldNewest(parts: readonly Columns[], schema: Schema, series: Series): Columns {
  const rows = concat(parts, schema);
  return gather(rows, newestOf(rows, series));
}

/** Rows whose time is not before `micros`, in their order. */
export function notBefore(columns: Columns, timeId: number, micros: bigint): Columns {
  const time = columns.columns[columns.schema.fields.findIndex(({ id }) => id === timeId)];
  const kept = new Uint32Array(columns.rows);
  let count = 0;
  for (let row = 0; row < columns.rows; row++) {
    // A row without a time is older than any.
    const isKept = time.kind === 'int64' && time.validity?.[row] !== 0 && time.values[row] >= micros;
    if (isKept) kept[count++] = row;
  }
  return count === columns.rows ? columns : gather(columns, kept, 0, count);
}

function wordsBy(columns: Columns, ids: readonly number[]): Word[] {
  const fields = ids.map(
    (id): SortField => ({ transform: 'identity', 'source-id': id, direction: 'asc', 'null-order': 'nulls-first' }),
  );
  return wordsOf(columns.rows, sortKeysOf(columns, { 'order-id': 0, fields }));
}
