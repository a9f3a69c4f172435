import { invalid } from '../base/errors.ts';
import type { Type } from '../iceberg/types.ts';

/** The kind of column a type is held in. `text` is `dictionary` or `bytes`, whichever the values ask for. */
export type Storage =
  | { kind: 'boolean' | 'int32' | 'int64' | 'float32' | 'float64' | 'text' | 'nested' }
  | { kind: 'fixed'; width: number };

const BY_TYPE = new Map<string, Storage>([
  ['boolean', { kind: 'boolean' }],
  ['int', { kind: 'int32' }],
  ['date', { kind: 'int32' }],
  ['long', { kind: 'int64' }],
  ['time', { kind: 'int64' }],
  ['timestamp', { kind: 'int64' }],
  ['timestamptz', { kind: 'int64' }],
  ['float', { kind: 'float32' }],
  ['double', { kind: 'float64' }],
  ['uuid', { kind: 'fixed', width: 16 }],
  ['string', { kind: 'text' }],
  ['binary', { kind: 'text' }],
]);

/** Precision and scale of `decimal(P, S)`; null for every other type. */
export function decimalOf(type: Type): { precision: number; scale: number } | null {
  if (typeof type !== 'string') return null;
  const match = /^decimal\(\s*(\d+)\s*,\s*(\d+)\s*\)$/.exec(type);
  return match === null ? null : { precision: Number(match[1]), scale: Number(match[2]) };
}

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
 * Throws `invalid` `unsupported-type` for a type of no Iceberg v2 table.
 */
export function storageOf(type: Type): Storage {
  if (typeof type !== 'string') return { kind: 'nested' };
  const simple = BY_TYPE.get(type);
  if (simple !== undefined) return simple;
  const decimal = decimalOf(type);
  if (decimal !== null && decimal.precision >= 1 && decimal.precision <= 38 && decimal.scale <= decimal.precision) {
    if (decimal.precision <= 9) return { kind: 'int32' };
    if (decimal.precision <= 18) return { kind: 'int64' };
    return { kind: 'fixed', width: decimalWidth(decimal.precision) };
  }
  const fixed = /^fixed\[(\d+)\]$/.exec(type);
  if (fixed !== null) return { kind: 'fixed', width: Number(fixed[1]) };
  throw invalid('unsupported-type', `type is not supported: ${type}`, { type });
}
