import { type Detail, invalid, type SluiceError } from '../core/base/errors.ts';
import { BATCH_COLUMN_BYTES_MAX, ROW_ERRORS_REPORTED_MAX } from '../core/base/limits.ts';
import { type AlignOptions, placesOf, rowAligner, slotBytesOf } from '../core/columns/align.ts';
import { ColumnsBuilder } from '../core/columns/builder.ts';
import type { Columns } from '../core/columns/columns.ts';
import type { RowFault } from '../core/columns/fault.ts';
import { gather } from '../core/columns/gather.ts';
import type { NumberRule } from '../core/columns/guess.ts';
import { type LateFault, RowProposal } from '../core/columns/row-proposal.ts';
import type { Schema } from '../core/iceberg/types.ts';
import type { RowSink } from './formats/format.ts';
import { PlainRows } from './formats/plain-rows.ts';

/** Why a line of the body is not in the columns. */
export interface RowError extends RowFault {
  /** Counted from 1: the line of the body, or the element of a JSON array. */
  line: number;
}

/** What a request may still bring, whichever of its tables it goes to. */
export interface RowBudget {
  rows: number;
  rowsMax: number;
  /** Memory of the rows in typed columns, without texts. */
  columnBytes: number;
}

export function rowBudget(rowsMax: number): RowBudget {
  return { rows: 0, rowsMax, columnBytes: 0 };
}

/** Memory of one row of nulls in typed columns. */
export function rowBytesOf(schema: Schema): number {
  return Math.max(1, slotBytesOf(schema.fields));
}

/** Takes rows of `rowBytes` out of the budget. Throws `invalid` `too-many-rows`. */
export function takeRows(budget: RowBudget, schema: Schema, rowBytes: number, rows: number): void {
  const { rowsMax } = budget;
  budget.rows += rows;
  if (budget.rows > rowsMax) {
    throw invalid('too-many-rows', `batch has more than ${rowsMax} rows: split it`, { rowsMax });
  }
  budget.columnBytes += rows * rowBytes;
  if (budget.columnBytes > BATCH_COLUMN_BYTES_MAX) {
    const rowsFit = Math.floor(BATCH_COLUMN_BYTES_MAX / rowBytes);
    const message = `batch into ${schema.fields.length} columns has more than ${rowsFit} rows: split it`;
    throw invalid('too-many-rows', message, { rowsMax: rowsFit });
  }
}

export interface CollectOptions extends Omit<AlignOptions, 'proposal'> {
  /** `refuse`: one bad row refuses the batch. `skip`: bad rows are left out and reported. */
  onError: 'refuse' | 'skip';
  /** Rows bring new columns and wider types with them, their numbers read by this rule. Absent: they are refused. */
  evolve?: NumberRule;
}

export interface Collected {
  /** Of the table's schema, behind whose columns new ones may stand (`proposalOf`). */
  columns: Columns;
  /** Rows given, bad ones included. */
  rowsRead: number;
  /** The first `ROW_ERRORS_REPORTED_MAX`. */
  errors: RowError[];
  errorCount: number;
}

/** Memory of a value of a new column, or of its absence, beside texts: a place in typed columns, and the value until then. */
const NEW_COLUMN_ROW_BYTES = 32;

/** Takes rows of one table and makes typed columns of them. */
export interface RowCollector extends RowSink {
  /**
   * The columns; the collector is spent.
   *
   * Throws `invalid` `invalid-rows` when a row was bad and bad rows refuse the batch.
   */
  finish(): Collected;
}

/**
 * Rows → columns of the schema, counted and checked one by one.
 *
 * Its calls throw `invalid`: `too-many-rows`, and, with `refuse`, `invalid-rows` once `ROW_ERRORS_REPORTED_MAX` rows are
 * bad, whose detail has `errors`, `errorCount` and `complete`: false when there may be more.
 */
export function rowCollector(schema: Schema, budget: RowBudget, options: CollectOptions): RowCollector {
  const { onError, evolve } = options;
  const builder = new ColumnsBuilder(schema);
  const proposal = evolve === undefined ? undefined : new RowProposal(schema, options, evolve);
  const alignment = { ...options, proposal };
  const places = placesOf(builder, alignment);
  const align = rowAligner(builder, alignment, places);
  const plainRows = new PlainRows(builder, places);
  const tableRowBytes = rowBytesOf(schema);
  /** Lines of the rows in the builder, where a row may be found bad later. */
  const lines: number[] = [];
  const errors: RowError[] = [];
  let errorCount = 0;
  let rowsRead = 0;

  function report(line: number, fault: RowFault): void {
    errorCount++;
    if (errors.length < ROW_ERRORS_REPORTED_MAX) errors.push({ line, ...fault });
    else if (onError === 'refuse') throw invalidRows(errors, errorCount, false);
  }

  function count(rows: number): void {
    rowsRead += rows;
    takeRows(budget, schema, tableRowBytes + NEW_COLUMN_ROW_BYTES * (proposal?.size ?? 0), rows);
  }

  return {
    row(row, line) {
      count(1);
      const fault = align(row);
      if (fault !== null) report(line, fault);
      else if (proposal !== undefined) lines.push(line);
    },
    fault(line, type, message, text, field) {
      count(1);
      report(line, { type, field: field ?? null, message, ...(text === undefined ? {} : { value: text }) });
    },
    plain(bytes, from, line) {
      const rows = plainRows.take(bytes, from);
      count(rows);
      if (proposal !== undefined) for (let i = 0; i < rows; i++) lines.push(line + i);
      return { rows, end: plainRows.end };
    },
    finish() {
      if (proposal === undefined) {
        if (onError === 'refuse' && errorCount > 0) throw invalidRows(errors, errorCount, true);
        return { columns: builder.finish(), rowsRead, errors, errorCount };
      }
      const late = new Map<number, LateFault>();
      const columns = proposal.finish(builder.finish(), (one) => {
        if (!late.has(one.row)) late.set(one.row, one);
      });
      for (const { row, fault } of late.values()) report(lines[row], fault);
      errors.sort((a, b) => a.line - b.line);
      if (onError === 'refuse' && errorCount > 0) throw invalidRows(errors, errorCount, true);
      const good = Int32Array.from(lines.keys()).filter((row) => !late.has(row));
      return { columns: late.size === 0 ? columns : gather(columns, good), rowsRead, errors, errorCount };
    },
  };
}

/** The refusal of a batch for its rows. `complete`: all bad rows are counted. */
export function invalidRows(errors: RowError[], errorCount: number, complete: boolean): SluiceError {
  const first = errors[0];
  const message = `batch has ${complete ? errorCount : `at least ${errorCount}`} bad rows, first at line ${first.line}: ${first.message}`;
  return invalid('invalid-rows', message, {
    errors: errors.map((error): { [key: string]: Detail } => ({ ...error })),
    errorCount,
    complete,
  });
}
