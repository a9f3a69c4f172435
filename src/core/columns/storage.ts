import { primitive } from '../iceberg/primitive.ts';
import type { Type } from '../iceberg/types.ts';

/** The kind of column a type is held in. `text` is `dictionary` or `bytes`, whichever the values ask for. */
export type Storage = FixedWidthStorage | { kind: 'text' } | { kind: 'nested' };

/** The kinds whose values all take the same number of bytes. */
export type FixedWidthStorage =
  | { kind: 'boolean' | 'int32' | 'int64' | 'float32' | 'float64' }
  | { kind: 'fixed'; width: number };

/** Bytes of the least two's complement number that holds every decimal of this precision (spec: Parquet, decimal). */
export function decimalWidth(precision: number): number {
  const largest = 10n ** BigInt(precision) - 1n;
  let width = 1;
  while (largest >= 1n << BigInt(8 * width - 1)) width++;
  return width;
}

/**
 * How the values of an Iceberg type are held (the table in `columns.ts`).
 *
 * Throws `unknown-type` or `unsupported-type` for what is no type of format version 2.
 */
export function storageOf(type: Type): Storage {
  if (typeof type !== 'string') return { kind: 'nested' };
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
      return { kind: 'boolean' };
    case 'int':
    case 'date':
      return { kind: 'int32' };
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return { kind: 'int64' };
    case 'float':
      return { kind: 'float32' };
    case 'double':
      return { kind: 'float64' };
    case 'string':
    case 'binary':
      return { kind: 'text' };
    case 'uuid':
      return { kind: 'fixed', width: 16 };
    case 'fixed':
      return { kind: 'fixed', width: shape.length };
    case 'decimal':
      if (shape.precision <= 9) return { kind: 'int32' };
      if (shape.precision <= 18) return { kind: 'int64' };
      return { kind: 'fixed', width: decimalWidth(shape.precision) };
  }
}
