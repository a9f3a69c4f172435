import fc from 'fast-check';
import { ColumnsBuilder } from '../../../src/core/columns/builder.ts';
import { type Column, type Columns, entry, isNull } from '../../../src/core/columns/columns.ts';
import type { Schema, Type, Value } from '../../../src/core/iceberg/types.ts';

/** A schema of optional fields with ids 1, 2, ... */
export function schemaOf(fields: [name: string, type: Type][], schemaId = 0): Schema {
  return {
    type: 'struct',
    'schema-id': schemaId,
    fields: fields.map(([name, type], i) => ({ id: i + 1, name, required: false, type })),
  };
}

/** Value of one row, with texts as strings where the column's type is string. The slow, obvious reader of the tests. */
export function valueAt(column: Column, row: number, type: Type): unknown {
  if (isNull(column, row)) return null;
  switch (column.kind) {
    case 'boolean':
      return column.values[row] === 1;
    case 'int32':
    case 'int64':
    case 'float32':
    case 'float64':
    case 'nested':
      return column.values[row];
    case 'fixed':
      return column.values.slice(row * column.width, (row + 1) * column.width);
    case 'dictionary':
      return textOrBytes(entry(column.dictionary, column.codes[row]), type);
    case 'bytes':
      return textOrBytes(entry(column.values, row), type);
  }
}

function textOrBytes(bytes: Uint8Array, type: Type): unknown {
  return type === 'string' ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) : bytes.slice();
}

/** All rows, in schema order. */
export function rowsOf(columns: Columns): unknown[][] {
  return Array.from({ length: columns.rows }, (_, row) =>
    columns.columns.map((column, i) => valueAt(column, row, columns.schema.fields[i].type)),
  );
}

/** Columns of rows of values: boolean, number, bigint, string, bytes, or anything in a nested column. */
export function columnsOf(schema: Schema, rows: unknown[][], dictionaryEntriesMax?: number): Columns {
  const builder = new ColumnsBuilder(schema, dictionaryEntriesMax);
  for (const row of rows) {
    row.forEach((value, i) => {
      const field = builder.fields[i];
      if (value === null) field.pushNull();
      else if (field.kind === 'int64') field.pushBigint(value as bigint);
      else if (field.kind === 'text') {
        if (typeof value === 'string') field.pushString(value);
        else field.pushBytes(value as Uint8Array);
      } else (field.push as (value: Value) => void).call(field, value as Value);
    });
    builder.endRow();
  }
  return builder.finish();
}

const bytes = (length: number) => fc.uint8Array({ minLength: length, maxLength: length });
const tags: Type = { type: 'list', 'element-id': 100, element: 'long', 'element-required': false };
const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -3n, max: 3n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 53n + 1n, -(2n ** 53n) - 1n, 2n ** 32n, -(2n ** 32n)),
);
const text = fc.oneof(
  fc.constantFrom('', 'a', 'b', '\ue000', '\uffff', '😀', 'é'),
  fc.string({ unit: 'binary', maxLength: 80 }),
);

/** One column of every kind, and rows for them: extremes, nulls, few and many distinct texts. */
export const everyKind = {
  schema: schemaOf([
    ['flag', 'boolean'],
    ['int', 'int'],
    ['long', 'long'],
    ['float', 'float'],
    ['double', 'double'],
    ['uuid', 'uuid'],
    ['decimal', 'decimal(38,3)'],
    ['text', 'string'],
    ['blob', 'binary'],
    ['tags', tags],
  ]),
  row: fc.tuple(
    ...[
      fc.boolean(),
      fc.oneof(fc.integer(), fc.constantFrom(0, 1)),
      int64,
      fc.float(),
      fc.oneof(fc.double(), fc.constantFrom(0, -0, 1.5, 21.37, -0.1)),
      bytes(16),
      bytes(16),
      text,
      fc.oneof(fc.uint8Array({ maxLength: 60 }), bytes(1)),
      fc.array(fc.oneof(int64, fc.constant(null)), { maxLength: 3 }),
    ].map((value: fc.Arbitrary<unknown>) => fc.option(value, { freq: 4 })),
  ),
};
