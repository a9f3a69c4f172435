import { invalid } from '../base/errors.ts';
import { civilOfDay } from '../iceberg/calendar.ts';
import { ordinalOfPair, parseTransform, resultType, type TimeTransform, transformOf } from '../iceberg/transform.ts';
import type { NestedField, PrimitiveType, Transform, Value } from '../iceberg/types.ts';
import { ColumnsBuilder } from './builder.ts';
import { type Column, type ColumnData, countOf, int32Pairs, isNull, rowsOf } from './columns.ts';
import { pushValue, readerOf } from './value.ts';

/** A column and the type of its values. */
export interface TypedColumn {
  column: Column;
  type: PrimitiveType;
}

/**
 * A transform applied to every row of a column. Null gives null. Years, months, days and hours are computed on the two
 * halves of the microseconds, floored, exact over the whole of int64; the other transforms once per dictionary entry,
 * or once per row where there is no dictionary.
 *
 * Throws `bad-transform` or `unknown-transform` when the transform does not take the field's type, `bad-value` when a
 * result is beyond its type.
 */
export function transformColumn(column: Column, field: NestedField, transform: Transform): TypedColumn {
  const type = resultType(transform, field.type);
  const source = field.type as PrimitiveType;
  const parsed = parseTransform(transform);
  switch (parsed.name) {
    case 'identity':
      return { column, type };
    case 'void':
      return { column: builtColumn(type, rowsOf(column), () => null), type };
    case 'year':
    case 'month':
    case 'day':
    case 'hour':
      return { column: { ...timeOrdinals(column, parsed.name), validity: column.validity }, type };
    default: {
      const apply = transformOf(transform, source);
      if (column.kind !== 'dictionary') {
        const read = readerOf(column, source);
        const built = builtColumn(type, rowsOf(column), (row) => (isNull(column, row) ? null : apply(read(row))));
        return { column: built, type };
      }
      const entries: Column = { kind: 'bytes', values: column.dictionary, validity: null };
      const read = readerOf(entries, source);
      const results: Value[] = [];
      for (let code = 0; code < countOf(column.dictionary); code++) results.push(apply(read(code)));
      const { codes } = column;
      return { column: builtColumn(type, codes.length, (row) => (codes[row] < 0 ? null : results[codes[row]])), type };
    }
  }
}

function timeOrdinals(column: Column, name: TimeTransform): ColumnData {
  const rows = rowsOf(column);
  const values = new Int32Array(rows);
  if (column.kind === 'int32') {
    if (name === 'day') return { kind: 'int32', values: column.values };
    for (let row = 0; row < rows; row++) values[row] = column.values[row];
  } else if (column.kind === 'int64') {
    const pairs = int32Pairs(column.values);
    const unit = name === 'hour' ? 'hour' : 'day';
    for (let row = 0; row < rows; row++) values[row] = ordinalOfPair(unit, pairs[2 * row], pairs[2 * row + 1]);
  } else throw invalid('bad-transform', `transform ${name} does not take a column of ${column.kind}`);
  if (name === 'year' || name === 'month') daysToMonths(values, name === 'year');
  return { kind: 'int32', values };
}

/** Days from 1970 to months or years from 1970, in place. Neighbours mostly share the day. */
function daysToMonths(values: Int32Array, years: boolean): void {
  let lastDay = Number.NaN;
  let ordinal = 0;
  for (let row = 0; row < values.length; row++) {
    if (values[row] !== lastDay) {
      lastDay = values[row];
      const { year, month } = civilOfDay(lastDay);
      ordinal = years ? year - 1970 : (year - 1970) * 12 + month - 1;
    }
    values[row] = ordinal;
  }
}

function builtColumn(type: PrimitiveType, rows: number, valueAt: (row: number) => Value): Column {
  const field = { id: 1, name: 'result', required: false, type };
  const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': 0, fields: [field] });
  const [target] = builder.fields;
  for (let row = 0; row < rows; row++) {
    const value = valueAt(row);
    if (value !== null) pushValue(target, value);
    builder.endRow();
  }
  return builder.finish().columns[0];
}
