import { type Detail, invalid } from '../base/errors.ts';
import { BATCH_COLUMN_BYTES_MAX, ROW_ERRORS_REPORTED_MAX } from '../base/limits.ts';
import type { NestedField, Schema } from '../iceberg/types.ts';
import type { AlignOptions } from './align.ts';
import { type Cast, unknownNames } from './casts.ts';
import type { Column, Columns } from './columns.ts';
import { nullColumn } from './concat.ts';
import { faultOf, Misfit, type RowFault, shorten } from './fault.ts';
import type { ForeignBatch, ForeignField } from './foreign.ts';
import { foreignCast } from './foreign-casts.ts';
import { foreignColumn } from './foreign-column.ts';
import { batchTooLarge } from './foreign-text.ts';
import { rowBytesOf } from './row-bytes.ts';

/** Told of a row, counted from 0 in its batch, that is none of the table. Of one row the first fault is told, or more. */
export type ReportFault = (row: number, fault: RowFault) => void;

/** A batch as columns of the table's schema. Rows with a fault are in it too, with nulls. */
export type AlignBatch = (batch: ForeignBatch, report: ReportFault) => Columns;

type ForeignAlignOptions = Pick<AlignOptions, 'epochUnit' | 'epochUnits' | 'filledField'> & {
  /** A column of nulls alone, of no type, is nothing that the table lacks. */
  evolves?: boolean;
};

/**
 * Batches of columns as another format holds them → columns of the table's schema, by exact name. A missing optional column
 * is null. `foreign` are the columns of all batches, in their order.
 *
 * Throws `invalid` `schema-mismatch` for columns that no value of can be taken (unknown, of a type that is not cast,
 * missing and required), with `errors` that name them all; and, batch by batch, `too-large`.
 */
export function batchAligner(
  foreign: readonly ForeignField[],
  schema: Schema,
  options: ForeignAlignOptions,
): AlignBatch {
  const { fields } = schema;
  const places = new Map(foreign.map((field, place) => [field.name, place]));
  const mismatches: Mismatch[] = [];
  const steps = fields.map((field) => {
    const place = places.get(field.name);
    const required = field.required && field.name !== options.filledField;
    if (place === undefined) {
      if (required) mismatches.push(mismatch(field.name, 'missing-required', 'is required and missing'));
      return { field, place: -1, required, cast: nothing };
    }
    const epochUnit = options.epochUnits?.get(field.name) ?? options.epochUnit;
    const made = foreignCast(foreign[place].type, field.type, { epochUnit, textual: true });
    if ('cast' in made) return { field, place, required, cast: made.cast };
    mismatches.push(mismatch(field.name, 'wrong-type', made.problem));
    return { field, place, required, cast: nothing };
  });
  const names = new Set<string>();
  const unknown = unknownNames(
    'column',
    fields.map((field) => field.name),
  );
  for (const { name, type } of foreign) {
    if (names.has(name)) mismatches.push(mismatch(name, 'duplicate-column', 'is in the body twice'));
    names.add(name);
    const isNothing = options.evolves === true && type.kind === 'null';
    if (!isNothing && !fields.some((field) => field.name === name)) {
      mismatches.push(mismatch(name, 'unknown-column', unknown(name).problem));
    }
  }
  if (mismatches.length > 0) throw schemaMismatch(mismatches);

  /** Of all batches together. */
  let left = BATCH_COLUMN_BYTES_MAX;
  return (batch, report) => {
    const { rows } = batch;
    const columns = steps.map(({ field, place, required, cast }) => {
      const column = place < 0 ? nullColumn(field, rows) : castColumn(batch, place, field, cast, report);
      if (required) reportNulls(column, field, report);
      left -= plainBytes(column, field, rows);
      if (left < 0) throw batchTooLarge();
      return column;
    });
    return { schema, rows, columns };
  };
}

const nothing: Cast<unknown> = () => null;

function castColumn(
  batch: ForeignBatch,
  place: number,
  field: NestedField,
  cast: Cast<unknown>,
  report: ReportFault,
): Column {
  const source = batch.columns[place];
  if (source.type.kind === 'null') return nullColumn(field, source.rows);
  return foreignColumn(source, field, cast, (row, misfit) => report(row, faultOf(field.name, misfit)));
}

/** A value that did not fit is null too by now; the fault of its row was told before this one. */
function reportNulls(column: Column, field: NestedField, report: ReportFault): void {
  const { validity } = column;
  if (validity === null) return;
  const fault = faultOf(field.name, new Misfit('null-in-required', 'is required and null'));
  for (let row = validity.indexOf(0); row >= 0; row = validity.indexOf(0, row + 1)) report(row, fault);
}

function plainBytes(column: Column, field: NestedField, rows: number): number {
  const one = { type: 'struct' as const, 'schema-id': 0, fields: [field] };
  return rowBytesOf({ schema: one, rows, columns: [column] }).reduce((sum, bytes) => sum + bytes, 0);
}

interface Mismatch {
  field: string;
  type: string;
  message: string;
}

function mismatch(name: string, type: string, problem: string): Mismatch {
  const field = shorten(name);
  return { field, type, message: `${field} ${problem}` };
}

function schemaMismatch(mismatches: readonly Mismatch[]) {
  const [first] = mismatches;
  const count = mismatches.length;
  const errors = mismatches.slice(0, ROW_ERRORS_REPORTED_MAX).map((one): { [key: string]: Detail } => ({ ...one }));
  const message = `body has ${count} column${count === 1 ? '' : 's'} that do not fit the table, first: ${first.message}`;
  return invalid('schema-mismatch', message, { errors, errorCount: count });
}
