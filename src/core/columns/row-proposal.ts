import { SluiceError } from '../base/errors.ts';
import { NEW_COLUMNS_MAX } from '../base/limits.ts';
import { primitive } from '../iceberg/primitive.ts';
import { nextProposedId } from '../iceberg/proposal.ts';
import { checkNewColumnNames } from '../iceberg/schema.ts';
import type { NestedField, Schema, Type } from '../iceberg/types.ts';
import { type AlignOptions, rowAligner } from './align.ts';
import { ColumnsBuilder } from './builder.ts';
import { primitiveCast, unknownNames } from './casts.ts';
import type { Column, Columns } from './columns.ts';
import { concat } from './concat.ts';
import { scaledInteger } from './decimals.ts';
import { faultOf, Misfit, markedNumber, type RowFault } from './fault.ts';
import { gather } from './gather.ts';
import { type Guess, guessOf, joinedGuess, mixed, NO_GUESS, type NumberRule, typeOfGuess } from './guess.ts';

/** Values that wait for their column until its type is known: it is known when all rows are. */
interface Waiting {
  rows: number[];
  values: unknown[];
}

interface NewColumn extends Waiting {
  guess: Guess;
}

interface WiderColumn extends Waiting {
  field: NestedField;
  type: string;
}

/** A row that is found to be none when its batch is whole. */
export interface LateFault {
  /** Counted from 0, among the ended rows. */
  row: number;
  fault: RowFault;
}

/**
 * What rows bring that their table's schema does not have: values under new names, and values wider than their column. Kept
 * beside the columns of the table while rows are read, and made columns at the end.
 *
 * | value of a new column     | its type                                                                       |
 * |---------------------------|--------------------------------------------------------------------------------|
 * | null                      | none: where all are null there is no column                                    |
 * | true, false               | boolean                                                                        |
 * | a number                  | long where all are whole and of 64 bits, else double (`NumberRule`)            |
 * | text                      | string, whatever is written in it: no text is guessed to be a time or a number |
 * | a list, an object         | a list, a struct of all fields that were met                                   |
 *
 * Values of different types under one name are refused, with the row that has the second. A column gets wider where a value
 * is out of its range and in that of the wider type: int → long, float → double, decimal(P, S) → decimal(P', S).
 */
export class RowProposal {
  private readonly schema: Schema;
  private readonly options: AlignOptions;
  private readonly rule: NumberRule;
  private readonly added = new Map<string, NewColumn>();
  private readonly widened = new Map<number, WiderColumn>();
  private readonly near: (name: string) => Misfit;
  private readonly lowerCase = new Map<string, string>();
  /** What the row being built has changed, to be taken back. */
  private journal: (() => void)[] = [];

  constructor(schema: Schema, options: AlignOptions, rule: NumberRule) {
    this.schema = schema;
    this.options = options;
    this.rule = rule;
    this.near = unknownNames(
      'column',
      schema.fields.map(({ name }) => name),
    );
    for (const { name } of schema.fields) this.lowerCase.set(name.toLowerCase(), name);
  }

  /** New columns that rows have so far. */
  get size(): number {
    return this.added.size;
  }

  /** Takes a value, not null, under a name that the table does not have. `row`: ended rows before it. */
  take(name: string, value: unknown, row: number): Misfit | null {
    const column = this.added.get(name) ?? this.begin(name);
    if (column instanceof Misfit) return column;
    const guess = guessOf(value, this.rule);
    if (guess instanceof Misfit) return guess;
    const before = column.guess;
    const both = joinedGuess(before, guess, this.rule);
    if (both === null) return mixed(before, guess, value);
    column.guess = both;
    column.rows.push(row);
    column.values.push(value);
    this.journal.push(() => {
      column.guess = before;
      column.rows.pop();
      column.values.pop();
    });
    return null;
  }

  /** Takes a value that its column did not take, if a wider column does; else gives the misfit back. */
  widen(field: NestedField, value: unknown, misfit: Misfit, row: number): Misfit | null {
    if (misfit.type !== 'out-of-range' || misfit.path !== '') return misfit;
    const before = this.widened.get(field.id);
    const type = widerType(field.type, before?.type ?? null, value, this.options);
    if (type === null) return misfit;
    const column = before ?? { field, type, rows: [], values: [] };
    const typeBefore = column.type;
    column.type = type;
    column.rows.push(row);
    column.values.push(value);
    this.widened.set(field.id, column);
    this.journal.push(() => {
      column.type = typeBefore;
      column.rows.pop();
      column.values.pop();
      if (before === undefined) this.widened.delete(field.id);
    });
    return null;
  }

  endRow(): void {
    if (this.journal.length > 0) this.journal = [];
  }

  rollbackRow(): void {
    for (const undo of this.journal.reverse()) undo();
    this.journal = [];
  }

  /** The columns with those that wait; the schema of the result has them too. Rows with a late fault have nulls in them. */
  finish(columns: Columns, report: (late: LateFault) => void): Columns {
    this.rollbackRow();
    const fields = [...columns.schema.fields];
    const all = [...columns.columns];
    for (const { field, type, rows, values } of this.widened.values()) {
      const place = fields.findIndex(({ id }) => id === field.id);
      const wider = { ...field, type, required: false };
      const late = this.column(wider, { rows: rows.map((_, i) => i), values }, rows.length, (one) =>
        report({ ...one, row: rows[one.row] }),
      );
      all[place] = replaced(field, all[place], wider, late, rows, columns.rows);
      fields[place] = { ...fields[place], type };
    }
    const ids = { next: nextProposedId(columns.schema) };
    for (const [name, { guess, rows, values }] of this.added) {
      if (rows.length === 0) continue;
      const id = ids.next++;
      const type = typeOfGuess(guess, ids);
      if (type === null) {
        const misfit = new Misfit('wrong-type', 'is new, and no value tells what is in it');
        for (const row of rows) report({ row, fault: faultOf(name, misfit) });
        continue;
      }
      const field: NestedField = { id, name, required: false, type };
      fields.push(field);
      all.push(this.column(field, { rows, values }, columns.rows, report));
    }
    if (fields.length === columns.schema.fields.length && this.widened.size === 0) return columns;
    return { schema: { ...columns.schema, fields }, rows: columns.rows, columns: all };
  }

  private begin(name: string): NewColumn | Misfit {
    const folded = name.toLowerCase();
    const other = this.lowerCase.get(folded);
    if (other !== undefined && !this.added.has(other)) return this.near(name);
    if (other !== undefined) {
      return new Misfit('bad-column-name', `is new, and so is ${other}: names that differ by case alone are one`);
    }
    if (this.added.size === NEW_COLUMNS_MAX) {
      return new Misfit('unknown-column', `is new, and a batch brings at most ${NEW_COLUMNS_MAX} new columns`);
    }
    const misfit = badName(name);
    if (misfit !== null) return misfit;
    const column: NewColumn = { guess: NO_GUESS, rows: [], values: [] };
    this.added.set(name, column);
    this.lowerCase.set(folded, name);
    return column;
  }

  /** A column of `rows` rows with the values in theirs. */
  private column(field: NestedField, waiting: Waiting, rows: number, report: (late: LateFault) => void): Column {
    const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': this.schema['schema-id'], fields: [field] });
    const align = rowAligner(builder, { ...this.options, filledField: null, proposal: undefined });
    waiting.rows.forEach((row, i) => {
      while (builder.rows < row) builder.endRow();
      // Computed, so that it is an own member also when it is called __proto__.
      const fault = align({ [field.name]: waiting.values[i] });
      if (fault === null) return;
      report({ row, fault });
      builder.endRow();
    });
    while (builder.rows < rows) builder.endRow();
    return builder.finish().columns[0];
  }
}

function badName(name: string): Misfit | null {
  try {
    const field = { id: 1, name, required: false, type: 'string' };
    checkNewColumnNames({ type: 'struct', 'schema-id': 0, fields: [field] });
    return null;
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return new Misfit('bad-column-name', `cannot be a new column: ${error.message}`);
  }
}

/** The least type, at least `floor`, that takes the values of `type` and this one; null: there is none. */
function widerType(type: Type, floor: string | null, value: unknown, options: AlignOptions): string | null {
  if (typeof type !== 'string') return null;
  const shape = primitive(type);
  switch (shape.name) {
    case 'int':
      return primitiveCast('long', options)(value) instanceof Misfit ? null : 'long';
    case 'float':
      return primitiveCast('double', options)(value) instanceof Misfit ? null : 'double';
    case 'decimal': {
      const text = typeof value === 'string' ? (markedNumber(value) ?? value) : String(value);
      const unscaled = scaledInteger(text, shape.scale);
      if (typeof unscaled !== 'bigint') return null;
      const known = floor === null ? shape : primitive(floor);
      const least = known.name === 'decimal' ? known.precision : shape.precision;
      const digits = Math.max(least, String(unscaled < 0n ? -unscaled : unscaled).length);
      return digits > DECIMAL_PRECISION_MAX ? null : `decimal(${digits}, ${shape.scale})`;
    }
    default:
      return null;
  }
}

/** Iceberg's. */
const DECIMAL_PRECISION_MAX = 38;

/** A column of a wider type, with values of its own in some rows. */
function replaced(
  field: NestedField,
  column: Column,
  wider: NestedField,
  late: Column,
  lateRows: readonly number[],
  rows: number,
): Column {
  const of = (one: NestedField): Schema => ({ type: 'struct', 'schema-id': 0, fields: [one] });
  const both = concat(
    [
      { schema: of(field), rows, columns: [column] },
      { schema: of(wider), rows: lateRows.length, columns: [late] },
    ],
    of(wider),
  );
  const order = Int32Array.from({ length: rows }, (_, row) => row);
  lateRows.forEach((row, i) => {
    order[row] = rows + i;
  });
  return gather(both, order).columns[0];
}
