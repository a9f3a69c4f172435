import type { RowFaultType } from '../../core/columns/fault.ts';
import type { Digits } from './long-numbers.ts';

/** Takes what a format finds in a body. A call may throw to end the reading. */
export interface RowSink {
  /**
   * One row, as `JSON.parse` gives it (numbers may be marked text, see `NUMBER_MARK`). `line` counts from 1: the line of
   * the body, or the element of an array. `bytes`: the row as it was sent, from readers of JSON that are asked for it; a
   * view of the window.
   */
  row(row: unknown, line: number, bytes?: Uint8Array): void;
  /** A line that is no row. `text` is its beginning, as far as it can be shown; `field` the column at fault, if it is one. */
  fault(line: number, type: RowFaultType, message: string, text?: string, field?: string): void;
  /**
   * Takes plain rows out of newline-delimited JSON, from `from` on and beginning with line `line`, up to the first that is
   * not plain. Absent where rows are wanted as values.
   */
  plain?(bytes: Uint8Array, from: number, line: number): PlainTaken;
}

/** Rows that were taken, each a line, and where they end. */
export interface PlainTaken {
  rows: number;
  end: number;
}

export interface JsonOptions {
  digits: Digits;
  /** Rows are read one by one, a fifth slower, and given with their bytes. */
  withBytes?: boolean;
}

/**
 * Finds the rows in a body that arrives in windows. Where the windows end makes no difference to what is found.
 *
 * A reader is made for one body and keeps what it must know between the windows.
 */
export interface RowReader {
  /**
   * Takes all rows that are whole in `bytes`, which begin right behind what was consumed so far. Returns how many bytes
   * are consumed; the rest is given again, with more. `last`: nothing follows, so all is consumed.
   *
   * Throws `invalid` for a body that cannot be gone on with: `malformed-body`, `truncated-body`, `trailing-data`,
   * `malformed-utf8`, `empty-body`, `line-too-long`.
   */
  take(bytes: Uint8Array, last: boolean): number;
}
