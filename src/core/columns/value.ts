import { assert } from '../base/assert.ts';
import { textOf } from '../base/bytes.ts';
import { primitive } from '../iceberg/primitive.ts';
import { fromTwosComplement } from '../iceberg/single-value.ts';
import type { PrimitiveType, Value } from '../iceberg/types.ts';
import type { FieldBuilder } from './builder.ts';
import { type Column, entry, isNull } from './columns.ts';

/** Value of row `row`, as the rest of the code knows single values. Bytes are a copy. Not for hot loops. */
export function valueAt(column: Column, type: PrimitiveType, row: number): Value {
  if (isNull(column, row)) return null;
  return readerOf(column, type)(row);
}

/** `valueAt` for rows that are not null, with kind and type resolved once. */
export function readerOf(column: Column, type: PrimitiveType): (row: number) => Value {
  const { name } = primitive(type);
  switch (column.kind) {
    case 'boolean':
      return (row) => column.values[row] === 1;
    case 'int32':
      return name === 'decimal' ? (row) => BigInt(column.values[row]) : (row) => column.values[row];
    case 'int64':
    case 'float32':
    case 'float64':
      return (row) => column.values[row];
    case 'fixed': {
      const { values, width } = column;
      if (name === 'decimal') return (row) => fromTwosComplement(values.subarray(row * width, (row + 1) * width));
      return (row) => values.slice(row * width, (row + 1) * width);
    }
    case 'dictionary':
      if (name === 'string') return (row) => textOf(entry(column.dictionary, column.codes[row]));
      return (row) => entry(column.dictionary, column.codes[row]).slice();
    case 'bytes':
      if (name === 'string') return (row) => textOf(entry(column.values, row));
      return (row) => entry(column.values, row).slice();
    case 'nested':
      assert(false, 'a value of a primitive type is read from a primitive column');
  }
}

/** Pushes a value as `valueAt` gives it. Not for hot loops. */
export function pushValue(field: FieldBuilder, value: Value): void {
  if (value === null) {
    field.pushNull();
    return;
  }
  switch (field.kind) {
    case 'boolean':
      field.push(value as boolean);
      return;
    case 'int32':
    case 'float32':
    case 'float64':
      field.push(Number(value));
      return;
    case 'int64':
      field.pushBigint(value as bigint);
      return;
    case 'fixed':
      field.push(typeof value === 'bigint' ? bigEndian(value, field.width) : (value as Uint8Array));
      return;
    case 'text':
      if (typeof value === 'string') field.pushString(value);
      else field.pushBytes(value as Uint8Array);
      return;
    case 'nested':
      assert(false, 'a value of a primitive type is pushed into a primitive column');
  }
}

/** Two's complement of `width` bytes, the form of decimals too wide for int64. */
export function bigEndian(value: bigint, width: number): Uint8Array {
  const out = new Uint8Array(width);
  let rest = value;
  for (let i = width - 1; i >= 0; i--) {
    out[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  assert(rest === (out[0] >= 0x80 ? -1n : 0n), 'a decimal fits the width of its type');
  return out;
}
