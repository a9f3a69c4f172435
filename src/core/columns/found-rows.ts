import type { NestedField, Schema, Value } from '../iceberg/types.ts';
import type { Column, Columns } from './columns.ts';
import { concat } from './concat.ts';
import { gather } from './gather.ts';
import { sortByWords } from './order.ts';
import { compareWords, equalWords, type SortKey, type Word, wordsOf } from './order-words.ts';
import { byteSizeOf } from './row-bytes.ts';
import { valueAt } from './value.ts';

/** Where a row stands: number of its file, the oldest first, row group, and row in it. Ids that no table has. */
const PLACE: readonly NestedField[] = ['file', 'group', 'row'].map((name, i) => ({
  id: -1 - i,
  name: `\0${name}`,
  required: true,
  type: 'int',
}));

/** How found rows are ordered, and which of them are one row. */
export interface FoundBy {
  /** Fields by which rows are ordered, chosen and compared. */
  fields: readonly NestedField[];
  /** Null: rows are in the order of their files. */
  timeId: number | null;
  direction: 'asc' | 'desc';
  /** Of rows with one series and time the latest by ingest time stays, of those the one in the later file, of those the later row. */
  dedup: { seriesIds: readonly number[]; ingestTimeId: number | null } | null;
}

/**
 * The first rows of a table, by time, out of rows that come in any order: what is read of them is where they stand and what
 * orders them. Rows beyond the limit are dropped on the way; a row that another of its key displaces is dropped too, and
 * takes no place of the limit.
 */
export class FoundRows {
  readonly schema: Schema;
  readonly #by: FoundBy;
  readonly #limit: number;
  #held: Columns;
  #heldBytes = 0;
  #pending: Columns[] = [];
  #pendingRows = 0;
  #pendingBytes = 0;

  constructor(by: FoundBy, limit: number) {
    this.schema = { type: 'struct', 'schema-id': 0, fields: [...by.fields, ...PLACE] };
    this.#by = by;
    this.#limit = limit;
    this.#held = concat([], this.schema);
  }

  /** Adds rows of one row group: columns of `by.fields`, and the numbers of the rows. */
  add(file: number, group: number, columns: readonly Column[], rows: Int32Array): void {
    if (rows.length === 0) return;
    const place = [new Int32Array(rows.length).fill(file), new Int32Array(rows.length).fill(group), rows];
    const added = place.map((values): Column => ({ kind: 'int32', values, validity: null }));
    const pending = { schema: this.schema, rows: rows.length, columns: [...columns, ...added] };
    this.#pending.push(pending);
    this.#pendingRows += rows.length;
    this.#pendingBytes += byteSizeOf(pending);
    // Sorting once for as many rows as are held makes the whole linear.
    if (this.#pendingRows > Math.max(this.#limit, SETTLE_ROWS_MIN)) this.#settle();
  }

  /** Time of the last row that counts; rows beyond it need not be read. Undefined while there is room, or it has no time. */
  worst(): Value | undefined {
    if (this.#by.timeId === null || !this.#isFull()) return undefined;
    const place = this.#by.fields.findIndex(({ id }) => id === this.#by.timeId);
    return valueAt(this.#held.columns[place], 'timestamptz', this.#held.rows - 1) ?? undefined;
  }

  /** True when that row and those after it take no place of the limit, since rows are in the order of their files. */
  isBeyond(file: number, group: number, row: number): boolean {
    if (this.#by.timeId !== null || !this.#isFull()) return false;
    const { files, groups, rows } = placesOf(this.#held);
    const last = this.#held.rows - 1;
    if (file !== files[last]) return file > files[last];
    return group === groups[last] ? row > rows[last] : group > groups[last];
  }

  /** Whether there are more rows than the limit. What is pending beside them can only bring the last one forward. */
  #isFull(): boolean {
    if (this.#held.rows <= this.#limit && this.#held.rows + this.#pendingRows > this.#limit) this.#settle();
    return this.#held.rows > this.#limit;
  }

  /** Whether the rows take more bytes than that. Those beyond the limit are dropped before it is said. */
  isLargerThan(bytes: number): boolean {
    if (this.#heldBytes + this.#pendingBytes > bytes) this.#settle();
    return this.#heldBytes > bytes;
  }

  /** The rows in their order, and whether there are more. */
  finish(): { rows: Columns; more: boolean } {
    this.#settle();
    const more = this.#held.rows > this.#limit;
    const all = Uint32Array.from({ length: this.#held.rows }, (_, row) => row);
    return { rows: more ? gather(this.#held, all.subarray(0, this.#limit)) : this.#held, more };
  }

  #settle(): void {
    if (this.#pendingRows === 0) return;
    const rows = concat([this.#held, ...this.#pending], this.schema);
    this.#pending = [];
    this.#pendingRows = 0;
    this.#pendingBytes = 0;
    // One more than the limit tells whether there are more.
    this.#held = gather(rows, this.#sorted(rows).subarray(0, this.#limit + 1));
    this.#heldBytes = byteSizeOf(this.#held);
  }

  #sorted(rows: Columns): Uint32Array {
    const { timeId, direction, dedup } = this.#by;
    const time = timeId === null ? [] : [keyOf(rows, timeId, direction)];
    const place = (way: SortKey['direction']) => PLACE.map(({ id }) => keyOf(rows, id, way));
    if (dedup === null) return sortByWords(rows.rows, wordsOf(rows.rows, [...time, ...place(direction)]));
    const { seriesIds, ingestTimeId } = dedup;
    const key = wordsOf(rows.rows, [...time, ...seriesIds.map((id) => keyOf(rows, id, 'asc'))]);
    const ingest = ingestTimeId === null ? [] : [keyOf(rows, ingestTimeId, 'asc')];
    return latestOf(sortByWords(rows.rows, key), key, wordsOf(rows.rows, [...ingest, ...place('asc')]));
  }
}

/** Rows below this are not sorted on their own. */
const SETTLE_ROWS_MIN = 4096;

/** Nulls come first going up: a row without a time is older than any. */
function keyOf({ schema, columns }: Columns, id: number, direction: SortKey['direction']): SortKey {
  const place = schema.fields.findIndex((field) => field.id === id);
  const nullOrder = direction === 'asc' ? 'nulls-first' : 'nulls-last';
  return { column: columns[place], type: schema.fields[place].type, direction, nullOrder };
}

/** One row of each key: the latest by `age`. */
function latestOf(sorted: Uint32Array, key: readonly Word[], age: readonly Word[]): Uint32Array {
  let count = 0;
  for (const row of sorted) {
    if (count === 0 || !equalWords(key, sorted[count - 1], row)) sorted[count++] = row;
    else if (compareWords(age, sorted[count - 1], row) < 0) sorted[count - 1] = row;
  }
  return sorted.subarray(0, count);
}

/** Where the found rows stand, by the columns of their places. */
export function placesOf({ columns }: Columns): { files: Int32Array; groups: Int32Array; rows: Int32Array } {
  const [files, groups, rows] = columns.slice(-PLACE.length).map((column) => (column as { values: Int32Array }).values);
  return { files, groups, rows };
}
