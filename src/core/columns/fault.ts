/**
 * Why a row is no row of the table. Kebab case, stable: clients see it in `errors[].type`.
 *
 * - `malformed-json`, `malformed-utf8`, `trailing-data`, `not-an-object`: the line is not one JSON object.
 * - `malformed-csv`, `ragged-row`: the line is no CSV, or has another number of values than the header.
 * - `malformed-line`: the line is no line protocol.
 * - `unknown-column`, `unknown-field`: a name that the table, or a struct in it, does not have. Names are compared exactly.
 * - `bad-column-name`: a new column cannot have this name.
 * - `missing-required`, `null-in-required`: a required column, field, element or value is not there.
 * - `wrong-type`: JSON of another type than the column takes.
 * - `malformed-value`: text that is no date, time, number, uuid or base64.
 * - `out-of-range`: outside what the type holds.
 * - `inexact-number`: digits would be lost.
 * - `lone-surrogate`: text without a UTF-8 form.
 * - `duplicate-key`: a map names a key twice.
 */
export const ROW_FAULT_TYPES = [
  'malformed-json',
  'malformed-utf8',
  'trailing-data',
  'not-an-object',
  'malformed-csv',
  'ragged-row',
  'malformed-line',
  'unknown-column',
  'unknown-field',
  'bad-column-name',
  'missing-required',
  'null-in-required',
  'wrong-type',
  'malformed-value',
  'out-of-range',
  'inexact-number',
  'lone-surrogate',
  'duplicate-key',
] as const;

export type RowFaultType = (typeof ROW_FAULT_TYPES)[number];

/** What is wrong with one row. The first fault of a row is the one that is told. */
export interface RowFault {
  type: RowFaultType;
  /** Path of the column: `price`, `address.city`, `tags[2]`. Null when the row as a whole is at fault. */
  field: string | null;
  /** Lower case, subject first, offending value last. */
  message: string;
  /** The offending value as JSON, cut to `FAULT_VALUE_LENGTH_MAX`. */
  value?: string;
}

/** A value that does not fit. `path` grows from the inside out while nested casts return. */
export class Misfit {
  readonly type: RowFaultType;
  /** What is asked: "must be a whole number". */
  readonly problem: string;
  /** Undefined when there is no value to show. */
  readonly value: unknown;
  path = '';

  constructor(type: RowFaultType, problem: string, value?: unknown) {
    this.type = type;
    this.problem = problem;
    this.value = value;
  }

  /** The same misfit seen from one level further out. */
  at(step: string): this {
    this.path = step + this.path;
    return this;
  }
}

/** Characters of an offending value that are repeated to the client. */
export const FAULT_VALUE_LENGTH_MAX = 100;

/**
 * Marks the text of a JSON number whose digits a double does not hold: a string of this mark and the digits as they
 * were sent. No text of a body can begin so and be stored, since a lone surrogate is refused.
 */
export const NUMBER_MARK = '\udc00';

/** The digits behind the mark; null for any other text. */
export function markedNumber(text: string): string | null {
  return text.charCodeAt(0) === 0xdc00 ? text.slice(1) : null;
}

/** The fault of a column, with its value shown short. */
export function faultOf(column: string, misfit: Misfit): RowFault {
  const field = shorten(column + misfit.path);
  if (misfit.value === undefined) return { type: misfit.type, field, message: `${field} ${misfit.problem}` };
  const value = preview(misfit.value);
  return { type: misfit.type, field, message: `${field} ${misfit.problem}: ${value}`, value };
}

/** A value as short, well-formed JSON. Objects and lists are only named, for they may be deep. */
export function preview(value: unknown): string {
  switch (typeof value) {
    case 'string':
      return shorten(markedNumber(value) ?? JSON.stringify(value.slice(0, FAULT_VALUE_LENGTH_MAX + 1)));
    case 'object':
      return value === null ? 'null' : Array.isArray(value) ? `a list of ${value.length}` : 'an object';
    default:
      return shorten(String(value));
  }
}

/** Text cut to the length that is repeated to a client, well formed. */
export function shorten(text: string): string {
  const cut = text.length > FAULT_VALUE_LENGTH_MAX ? `${text.slice(0, FAULT_VALUE_LENGTH_MAX)}...` : text;
  return cut.toWellFormed();
}
