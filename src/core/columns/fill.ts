import type { Column, Columns } from './columns.ts';

/**
 * The same rows with the nulls of an int64 column (a timestamp) filled in; the columns as they are when it has none,
 * or when the schema does not have the column.
 */
export function fillNulls(columns: Columns, name: string, value: bigint): Columns {
  const place = columns.schema.fields.findIndex((field) => field.name === name);
  const column = columns.columns[place];
  if (column === undefined || column.kind !== 'int64' || column.validity === null) return columns;
  const values = column.values.slice();
  for (let row = 0; row < columns.rows; row++) if (column.validity[row] === 0) values[row] = value;
  const filled: Column = { kind: 'int64', values, validity: null };
  return { ...columns, columns: columns.columns.map((other, index) => (index === place ? filled : other)) };
}
