import { assert } from '../base/assert.ts';
import { invalid } from '../base/errors.ts';
import { release, releaseBuffer } from '../base/release.ts';
import type { Columns } from '../columns/columns.ts';
import { compareRows } from '../columns/compare-rows.ts';
import { concat } from '../columns/concat.ts';
import { winnersOf } from '../columns/dedup.ts';
import { gather, slice } from '../columns/gather.ts';
import { sortByWords, sortKeysOf } from '../columns/order.ts';
import { type SortKey, wordsOf } from '../columns/order-words.ts';
import { releaseColumns } from '../columns/release.ts';
import type { Schema, SortOrder } from '../iceberg/types.ts';

/** What rows are merged by. */
export interface MergeBy {
  schema: Schema;
  /** Each input is in this order. */
  order: SortOrder;
  /**
   * Of rows with equal keys one stays: the latest by the column of this field id, of those the one of the later input,
   * of those the later row. `none`: every row stays.
   */
  dedup: 'none' | { ingestTimeId: number | null };
}

/** A window, of which the rows from `at` on were not merged yet. */
interface Window {
  rows: Columns;
  keys: SortKey[];
  at: number;
}

/** What was read of an input and not merged, in its order; and whether there is more behind it. */
interface Input {
  windows: Window[];
  isOver: boolean;
}

/**
 * Merges sorted inputs, of which only a window or two each are in memory. The caller feeds the inputs that `wanting` names
 * and takes what may be written, until it is done.
 *
 * All inputs have rows up to some *bound*: the least of their last rows in memory. What lies up to it is taken off every
 * window and sorted at once, by the same radix sort and the same rule for duplicates as an append: so the order of text,
 * NaN and nulls is one, and no row is handled on its own. Dictionaries are merged on the way. Each step uses up at least one window.
 *
 * Throws `invalid` `unsorted-input` when what comes out is not in order: an input's claim to be sorted is false. Nothing is
 * lost by then, since nothing was committed.
 */
export class Merger {
  readonly #by: MergeBy;
  readonly #inputs: Input[];
  /** With dedup, the last row so far: rows of its key may still come. `input` is where it was found. */
  #held: { row: Columns; input: number } | null = null;
  /** The last row that was taken. */
  #last: Columns | null = null;
  /** Rows that lost against another of their key. */
  duplicates = 0;

  /** Inputs in order of age, the oldest first. */
  constructor(by: MergeBy, inputs: number) {
    this.#by = by;
    this.#inputs = Array.from({ length: inputs }, () => ({ windows: [], isOver: false }));
  }

  /**
   * Inputs with fewer than `rowsMin` rows in memory and more behind them. Those without a row have to be fed before the next
   * step; feeding the others too makes for fewer and larger steps, since windows of similar inputs end close to each other.
   */
  wanting(rowsMin = 1): number[] {
    return this.#inputs.flatMap((input, i) => (!input.isOver && rowsLeft(input) < rowsMin ? [i] : []));
  }

  /** The next rows of an input, whose memory is given back when they are merged; `isLast`: there are none behind them. */
  feed(input: number, rows: Columns, isLast: boolean): void {
    const { windows, isOver } = this.#inputs[input];
    assert(!isOver, 'an input is fed when it is wanting');
    assert(rows.rows > 0 || isLast, 'a window has rows');
    if (isLast) this.#inputs[input].isOver = true;
    if (rows.rows > 0) windows.push({ rows, keys: sortKeysOf(rows, this.#by.order), at: 0 });
  }

  get isDone(): boolean {
    return this.#held === null && this.#isUsedUp;
  }

  get #isUsedUp(): boolean {
    return this.#inputs.every(({ windows, isOver }) => isOver && windows.length === 0);
  }

  /** The next rows of the result; there may be none of them yet. All inputs without a row have been fed. */
  take(): Columns {
    const { schema, order, dedup } = this.#by;
    assert(this.wanting().length === 0, 'all inputs are fed');
    const bound = this.#bound();
    const { parts, inputs, usedUp } = this.#parts(bound);
    const rows = concat(parts, schema);
    const words = wordsOf(rows.rows, sortKeysOf(rows, order));
    let sorted = sortByWords(rows.rows, words);
    if (dedup !== 'none') {
      const place = schema.fields.findIndex(({ id }) => id === dedup.ingestTimeId);
      const winners = winnersOf(sorted, words, place === -1 ? null : rows.columns[place]);
      release(sorted);
      sorted = winners;
      this.duplicates += rows.rows - sorted.length;
      if (!this.#isUsedUp && sorted.length > 0) sorted = this.#hold(rows, sorted, parts, inputs);
    }
    const taken = gather(rows, sorted);
    releaseBuffer(sorted);
    // One part alone is not copied: its memory is that of the window, which may still have rows.
    if (parts.length > 1) releaseColumns(rows);
    for (const { values } of words) release(values);
    for (const window of usedUp) releaseColumns(window.rows);
    this.#checkOrder(taken);
    return taken;
  }

  /** The window that ends first among the last of inputs that have more behind them; null: none has. */
  #bound(): Window | null {
    let least: Window | null = null;
    for (const { windows, isOver } of this.#inputs) {
      if (isOver) continue;
      const end = windows[windows.length - 1];
      if (least === null || compareRows(end.keys, last(end), least.keys, last(least)) < 0) least = end;
    }
    return least;
  }

  /** Takes rows up to the bound off all windows, in order of the inputs; with the row that was held back at its place. */
  #parts(bound: Window | null): { parts: Columns[]; inputs: number[]; usedUp: Window[] } {
    const parts: Columns[] = [];
    const usedUp: Window[] = [];
    const inputs: number[] = [];
    this.#inputs.forEach((input, i) => {
      if (this.#held?.input === i) {
        // Its own input's rows come behind it, those of older inputs before.
        parts.push(this.#held.row);
        inputs.push(i);
        this.#held = null;
      }
      for (const window of input.windows) {
        const to = bound === null ? window.rows.rows : firstAbove(window, bound);
        if (to > window.at) {
          parts.push(slice(window.rows, window.at, to));
          inputs.push(i);
        }
        window.at = to;
        if (to === window.rows.rows) usedUp.push(window);
      }
      input.windows = input.windows.filter(({ rows, at }) => at < rows.rows);
    });
    return { parts, inputs, usedUp };
  }

  /** Keeps the last row back; returns the others. */
  #hold(rows: Columns, sorted: Uint32Array, parts: readonly Columns[], inputs: readonly number[]): Uint32Array {
    const row = sorted[sorted.length - 1];
    let part = 0;
    for (let end = parts[0].rows; end <= row; end += parts[part].rows) part++;
    this.#held = { row: gather(rows, sorted.subarray(sorted.length - 1)), input: inputs[part] };
    return sorted.subarray(0, sorted.length - 1);
  }

  #checkOrder(taken: Columns): void {
    if (taken.rows === 0) return;
    const { order, dedup } = this.#by;
    const keys = sortKeysOf(taken, order);
    if (this.#last !== null) {
      const way = compareRows(sortKeysOf(this.#last, order), 0, keys, 0);
      if (way > 0 || (way === 0 && dedup !== 'none')) {
        throw invalid('unsorted-input', 'a file that claims to be sorted is not');
      }
    }
    this.#last = gather(taken, Uint32Array.of(taken.rows - 1));
  }
}

function rowsLeft({ windows }: Input): number {
  return windows.reduce((sum, { rows, at }) => sum + rows.rows - at, 0);
}

function last({ rows }: Window): number {
  return rows.rows - 1;
}

/** The first row of a window that is above the last row of another. */
function firstAbove(window: Window, bound: Window): number {
  let from = window.at;
  let to = window.rows.rows;
  while (from < to) {
    const middle = (from + to) >>> 1;
    if (compareRows(window.keys, middle, bound.keys, last(bound)) <= 0) from = middle + 1;
    else to = middle;
  }
  return from;
}
