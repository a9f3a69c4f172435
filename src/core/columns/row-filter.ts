import { assert } from '../base/assert.ts';
import { hex, shownText } from '../base/bytes.ts';
import type { PrimitiveType, Value } from '../iceberg/types.ts';
import { type Column, type Columns, entry, isNull } from './columns.ts';
import { readerOf } from './value.ts';

/** Rows whose column has one of the values; null stands for rows without one. NaN equals itself, and -0 equals 0. */
export interface ColumnFilter {
  fieldId: number;
  type: PrimitiveType;
  values: readonly Value[];
}

/** The rows that meet all filters, in their order. Columns that are not there are null. */
export function matchingRows({ schema, rows, columns }: Columns, filters: readonly ColumnFilter[]): Uint32Array {
  const tests = filters.map((filter) => {
    const place = schema.fields.findIndex(({ id }) => id === filter.fieldId);
    return place === -1 ? () => filter.values.includes(null) : rowTest(columns[place], filter);
  });
  const out = new Uint32Array(rows);
  let count = 0;
  for (let row = 0; row < rows; row++) if (tests.every((test) => test(row))) out[count++] = row;
  return out.subarray(0, count);
}

function rowTest(column: Column, { type, values }: ColumnFilter): (row: number) => boolean {
  const wanted = new Set(values.map(keyOf));
  const takesNull = wanted.has(null);
  const read = type === 'string' ? shownReader(column) : readerOf(column, type);
  const isWanted = (row: number) => wanted.has(keyOf(read(row)));
  const test = column.kind === 'dictionary' ? oncePerEntry(column.codes, isWanted) : isWanted;
  return (row) => (isNull(column, row) ? takesNull : test(row));
}

/** Texts as rows are shown with: other writers' need not be UTF-8. */
function shownReader(column: Column): (row: number) => Value {
  assert(column.kind === 'dictionary' || column.kind === 'bytes', 'a column has the kind of its type');
  if (column.kind === 'bytes') return (row) => shownText(entry(column.values, row));
  return (row) => shownText(entry(column.dictionary, column.codes[row]));
}

function oncePerEntry(codes: Int32Array, test: (row: number) => boolean): (row: number) => boolean {
  const verdicts: boolean[] = [];
  return (row) => {
    const code = codes[row];
    verdicts[code] ??= test(row);
    return verdicts[code];
  };
}

/** What a set finds equal values by. */
function keyOf(value: Value): Exclude<Value, Uint8Array> {
  return value instanceof Uint8Array ? hex(value) : value;
}
