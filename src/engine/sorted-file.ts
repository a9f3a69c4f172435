import { COMPACT_WINDOW_ROWS } from '../core/base/limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { compareRows } from '../core/columns/compare-rows.ts';
import { concat } from '../core/columns/concat.ts';
import { gather } from '../core/columns/gather.ts';
import { sortByWords, sortKeysOf } from '../core/columns/order.ts';
import { wordsOf } from '../core/columns/order-words.ts';
import { releaseColumns } from '../core/columns/release.ts';
import { rowBytesOf } from '../core/columns/row-bytes.ts';
import type { Schema, SortOrder } from '../core/iceberg/types.ts';

/** Rows of a file from its beginning to its end. */
export interface Windows {
  /** The next rows, at most `rowsMax`; `isLast` when there are none behind them. */
  next(rowsMax: number): Promise<{ window: Columns; isLast: boolean }>;
}

/** A file in another order, or in none: read whole, and given out in order. Rows that are equal in it stay as they lay. */
export class SortedFile implements Windows {
  /** What its rows take, texts spelled out. */
  readonly bytes: number;
  #rows: Columns;
  readonly #order: Uint32Array;
  #at = 0;

  private constructor(rows: Columns, order: Uint32Array, bytes: number) {
    this.#rows = rows;
    this.#order = order;
    this.bytes = bytes;
  }

  /** Reads it; null when its rows take more than `bytesMax`. */
  static async load(
    file: Windows,
    { schema, order }: { schema: Schema; order: SortOrder },
    bytesMax: number,
  ): Promise<SortedFile | null> {
    const parts: Columns[] = [];
    let bytes = 0;
    for (let isLast = false; !isLast; ) {
      const next = await file.next(COMPACT_WINDOW_ROWS.max);
      isLast = next.isLast;
      if (next.window.rows === 0) continue;
      // As if no text stood in a dictionary: the parts together may have too many for one.
      for (const size of rowBytesOf(next.window)) bytes += size;
      parts.push(next.window);
      if (bytes > bytesMax) return null;
    }
    const rows = concat(parts, schema);
    if (parts.length > 1) for (const part of parts) releaseColumns(part);
    return new SortedFile(rows, sortByWords(rows.rows, wordsOf(rows.rows, sortKeysOf(rows, order))), bytes);
  }

  async next(rowsMax: number): Promise<{ window: Columns; isLast: boolean }> {
    const from = this.#at;
    this.#at = Math.min(this.#order.length, from + rowsMax);
    const window = gather(this.#rows, this.#order, from, this.#at);
    const isLast = this.#at === this.#order.length;
    if (isLast) {
      releaseColumns(this.#rows);
      this.#rows = window;
    }
    return { window, isLast };
  }
}

/** True when the rows of a file ascend in the order. */
export async function isSorted(file: Windows, order: SortOrder): Promise<boolean> {
  let before: Columns | null = null;
  for (let isLast = false; !isLast; ) {
    const next = await file.next(COMPACT_WINDOW_ROWS.max);
    isLast = next.isLast;
    const { window } = next;
    if (window.rows === 0) continue;
    const keys = sortKeysOf(window, order);
    if (before !== null && compareRows(sortKeysOf(before, order), 0, keys, 0) > 0) return false;
    for (let row = 1; row < window.rows; row++) if (compareRows(keys, row - 1, keys, row) > 0) return false;
    before = gather(window, Uint32Array.of(window.rows - 1));
  }
  return true;
}
