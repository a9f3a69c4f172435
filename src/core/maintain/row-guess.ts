import { TEXT_BYTES_GUESSED } from '../base/limits.ts';
import { GENERAL_VALUE_BYTES } from '../base/read-limits.ts';
import { storageOf } from '../columns/storage.ts';
import type { Schema, Type } from '../iceberg/types.ts';

/** Bytes a row takes in memory, as far as the schema tells. */
export function rowBytesGuessed(schema: Schema): number {
  let bytes = 0;
  for (const { type } of schema.fields) {
    const storage = storageOf(type);
    bytes += 1;
    switch (storage.kind) {
      case 'boolean':
        bytes += 1;
        break;
      case 'int32':
      case 'float32':
        bytes += 4;
        break;
      case 'int64':
      case 'float64':
        bytes += 8;
        break;
      case 'fixed':
        bytes += storage.width;
        break;
      case 'nested':
        bytes += valuesGuessed(type) * GENERAL_VALUE_BYTES;
        break;
      default:
        bytes += 4 + TEXT_BYTES_GUESSED;
    }
  }
  return bytes;
}

/** The same of its nested columns alone. */
export function nestedBytesGuessed(schema: Schema): number {
  return nestedValuesGuessed(schema) * GENERAL_VALUE_BYTES;
}

/** Values of the nested columns of a row. */
export function nestedValuesGuessed({ fields }: Schema): number {
  return fields.reduce((sum, { type }) => sum + (typeof type === 'string' ? 0 : valuesGuessed(type)), 0);
}

/** One of each leaf: how long lists are no schema tells. */
function valuesGuessed(type: Type): number {
  if (typeof type === 'string') return 1;
  switch (type.type) {
    case 'list':
      return valuesGuessed(type.element);
    case 'map':
      return valuesGuessed(type.key) + valuesGuessed(type.value);
    case 'struct':
      return type.fields.reduce((sum, field) => sum + valuesGuessed(field.type), 0);
  }
}
