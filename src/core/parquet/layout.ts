import { invalid } from '../base/errors.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, PrimitiveType, Schema, Type } from '../iceberg/types.ts';

/** Physical types of Parquet, by their number in parquet.thrift (`Type`). INT96 (3) is never written (P7). */
export const BOOLEAN = 0;
export const INT32 = 1;
export const INT64 = 2;
export const INT96 = 3;
export const FLOAT = 4;
export const DOUBLE = 5;
export const BYTE_ARRAY = 6;
export const FIXED_LEN_BYTE_ARRAY = 7;

/** Encodings of Parquet, by their number in parquet.thrift (`Encoding`). */
export const PLAIN = 0;
export const PLAIN_DICTIONARY = 2;
export const RLE = 3;
export const DELTA_BINARY_PACKED = 5;
export const RLE_DICTIONARY = 8;
export const BYTE_STREAM_SPLIT = 9;

/** Codecs of Parquet, by their number in parquet.thrift (`CompressionCodec`). */
export const UNCOMPRESSED = 0;
export const SNAPPY = 1;
export const GZIP = 2;
export const ZSTD = 6;

/** `LogicalType` of parquet.thrift, as far as Iceberg v2 needs it (P4-P6). */
export type LogicalType =
  | { name: 'string' | 'date' | 'uuid' | 'list' | 'map' }
  | { name: 'decimal'; precision: number; scale: number }
  | { name: 'time' | 'timestamp'; adjustedToUtc: boolean };

/** How a primitive Iceberg type is stored. `length` is the width of FIXED_LEN_BYTE_ARRAY, else 0. */
export interface Storage {
  physical: number;
  length: number;
  logical: LogicalType | null;
  /** Deprecated `ConvertedType` for readers that know only that; null where it would say something else. */
  converted: number | null;
}

/** A primitive column of a flat schema. */
export interface Leaf extends Storage {
  id: number;
  name: string;
  required: boolean;
  type: PrimitiveType;
}

const CONVERTED_UTF8 = 0;
const CONVERTED_DECIMAL = 5;
const CONVERTED_DATE = 6;
const CONVERTED_TIMESTAMP_MICROS = 10;

/** Least number of bytes that hold every unscaled value of the precision in two's complement (spec: parquet, P5). */
export function decimalWidth(precision: number): number {
  const limit = 10n ** BigInt(precision) - 1n;
  let width = 1;
  while (limit >> BigInt(8 * width - 1) !== 0n) width++;
  return width;
}

/** Parquet form of a primitive Iceberg v2 type (spec: parquet). Errors: invalid `unknown-type`, `unsupported-type`. */
export function storageOf(type: PrimitiveType): Storage {
  const of = (physical: number, more: Partial<Storage> = {}): Storage => {
    return { physical, length: 0, logical: null, converted: null, ...more };
  };
  const parts = primitive(type);
  switch (parts.name) {
    case 'boolean':
      return of(BOOLEAN);
    case 'int':
      return of(INT32);
    case 'long':
      return of(INT64);
    case 'float':
      return of(FLOAT);
    case 'double':
      return of(DOUBLE);
    case 'binary':
      return of(BYTE_ARRAY);
    case 'string':
      return of(BYTE_ARRAY, { logical: { name: 'string' }, converted: CONVERTED_UTF8 });
    case 'date':
      return of(INT32, { logical: { name: 'date' }, converted: CONVERTED_DATE });
    // The converted types of time and timestamp mean instants in UTC, so values without a zone do not get one.
    case 'time':
      return of(INT64, { logical: { name: 'time', adjustedToUtc: false } });
    case 'timestamp':
      return of(INT64, { logical: { name: 'timestamp', adjustedToUtc: false } });
    case 'timestamptz':
      return of(INT64, {
        logical: { name: 'timestamp', adjustedToUtc: true },
        converted: CONVERTED_TIMESTAMP_MICROS,
      });
    case 'uuid':
      return of(FIXED_LEN_BYTE_ARRAY, { length: 16, logical: { name: 'uuid' } });
    case 'fixed':
      return of(FIXED_LEN_BYTE_ARRAY, { length: parts.length });
    case 'decimal': {
      const { precision, scale } = parts;
      const logical: LogicalType = { name: 'decimal', precision, scale };
      const more = { logical, converted: CONVERTED_DECIMAL };
      if (precision <= 9) return of(INT32, more);
      if (precision <= 18) return of(INT64, more);
      return of(FIXED_LEN_BYTE_ARRAY, { ...more, length: decimalWidth(precision) });
    }
  }
}

/** True for a primitive type, whose column is one Parquet leaf. */
export function isPrimitive(type: Type): type is PrimitiveType {
  return typeof type === 'string';
}

/** True when no field of the schema is a list, struct or map. */
export function isFlat(schema: Schema): boolean {
  return schema.fields.every((field) => isPrimitive(field.type));
}

/** The leaf of a primitive field. Errors: invalid `unknown-type`, also for a list, struct or map. */
export function leafOf(field: NestedField): Leaf {
  if (!isPrimitive(field.type)) {
    throw invalid('unknown-type', `field ${field.name} is not primitive: ${field.type.type}`);
  }
  const { id, name, required, type } = field;
  return { id, name, required, type, ...storageOf(type) };
}
