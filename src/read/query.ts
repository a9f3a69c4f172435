import { type Detail, invalid, type SluiceError } from '../core/base/errors.ts';
import { QUERY_VALUES_MAX } from '../core/base/limits.ts';
import { nestedCast } from '../core/columns/casts.ts';
import { Misfit } from '../core/columns/fault.ts';
import type { ColumnFilter } from '../core/columns/row-filter.ts';
import { parseTimestamp } from '../core/columns/times.ts';
import type { NestedField, Schema, Value } from '../core/iceberg/types.ts';

/**
 * Which rows a request asks for, by the parameters of its address:
 *
 *     ?device=a&device=b        rows of the series a or b
 *     ?is_null=device           rows without a value there; with device=a, those too
 *     ?where.limit=3            a column that is named like a parameter
 *
 * Values are told as the JSON of rows has them, without quotes.
 */
export interface QueryFilters {
  /** Texts of wanted values by column, null for none. */
  columns: ReadonlyMap<string, readonly (string | null)[]>;
}

/**
 * Takes the filters out of the parameters: all that are not `reserved`, which are given apart, each once.
 *
 * @throws invalid `malformed`
 */
export function splitQuery(
  query: URLSearchParams,
  reserved: readonly string[],
): { parameters: ReadonlyMap<string, string>; filters: QueryFilters } {
  const parameters = new Map<string, string>();
  const columns = new Map<string, (string | null)[]>();
  let count = 0;
  for (const [name, value] of query) {
    if (reserved.includes(name)) {
      if (parameters.has(name)) throw malformedQuery(`parameter is given twice: ${name}`, { parameter: name });
      parameters.set(name, value);
      continue;
    }
    const isNull = name === 'is_null';
    const column = isNull ? value : name.startsWith('where.') ? name.slice('where.'.length) : name;
    const values = columns.get(column);
    if (values === undefined) columns.set(column, [isNull ? null : value]);
    else values.push(isNull ? null : value);
    if (++count > QUERY_VALUES_MAX) throw malformedQuery(`request asks for more than ${QUERY_VALUES_MAX} values`, {});
  }
  return { parameters, filters: { columns } };
}

/**
 * The filters, for the columns of a table. `among`: the columns that may be filtered by.
 *
 * @throws invalid `malformed`
 */
export function bindFilters({ columns }: QueryFilters, schema: Schema, among: readonly string[]): ColumnFilter[] {
  return Array.from(columns, ([name, texts]) => {
    const field = schema.fields.find((candidate) => candidate.name === name);
    if (field === undefined || typeof field.type !== 'string' || !among.includes(name)) {
      const message = `rows are not chosen by ${JSON.stringify(name.slice(0, 100))}, but by ${among.join(', ') || 'no column'}`;
      throw malformedQuery(message, { parameter: name, expected: [...among] });
    }
    return { fieldId: field.id, type: field.type, values: texts.map((text) => wantedValue(field, text)) };
  });
}

function wantedValue(field: NestedField, text: string | null): Value {
  if (text === null) return null;
  // Numbers count no time here: a unit of the table would make one address mean two times.
  const value = nestedCast(field.type, { epochUnit: 'us', textual: true })(text);
  if (!(value instanceof Misfit)) return value as Value;
  throw malformedQuery(`column ${field.name} ${value.problem}: ${text.slice(0, 100)}`, { parameter: field.name });
}

/**
 * A time of the address as microseconds: ISO 8601, UTC when no zone is given, a date being its midnight; null when it is left
 * out.
 *
 * @throws invalid `malformed`
 */
export function timeParameter(parameters: ReadonlyMap<string, string>, name: string): bigint | null {
  const text = parameters.get(name);
  if (text === undefined) return null;
  const micros = parseTimestamp(wholeTime(text));
  if (typeof micros === 'string') {
    throw malformedQuery(`${name} is not a time such as 2026-01-03T00:00:00Z: ${text.slice(0, 100)}`, {
      parameter: name,
    });
  }
  return BigInt(micros);
}

function wholeTime(text: string): string {
  if (/^\d{4}-\d\d-\d\d$/.test(text)) return `${text}T00:00:00Z`;
  // A plus that was not encoded arrives as a space, and begins a zone here.
  return /^\S+T\S+ \d\d:?\d\d$/.test(text) ? text.replace(' ', '+') : text;
}

export function malformedQuery(message: string, detail: Record<string, Detail>): SluiceError {
  return invalid('malformed', message, detail);
}
