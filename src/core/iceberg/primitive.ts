import { invalid } from '../base/errors.ts';
import type { PrimitiveType } from './types.ts';

/** A primitive type taken apart. */
export type Primitive =
  | { name: 'decimal'; precision: number; scale: number }
  | { name: 'fixed'; length: number }
  | { name: PlainName };

export type PlainName =
  | 'boolean'
  | 'int'
  | 'long'
  | 'float'
  | 'double'
  | 'date'
  | 'time'
  | 'timestamp'
  | 'timestamptz'
  | 'string'
  | 'uuid'
  | 'binary';

const PLAIN: ReadonlyMap<string, Primitive> = new Map(
  (
    [
      'boolean',
      'int',
      'long',
      'float',
      'double',
      'date',
      'time',
      'timestamp',
      'timestamptz',
      'string',
      'uuid',
      'binary',
    ] as const
  ).map((name) => [name, { name }]),
);
const DECIMAL = /^decimal\(\s*(\d{1,3})\s*,\s*(\d{1,3})\s*\)$/;
const FIXED = /^fixed\[\s*(\d{1,10})\s*\]$/;
/** Types of format version 3. Named in the error, since the table is fine and only this version is not. */
const LATER = /^(timestamp_ns|timestamptz_ns|unknown|variant|geometry.*|geography.*)$/;

/**
 * Takes the text of a primitive type apart (spec: primitive types, format version 2). Spaces inside the brackets are
 * accepted, as other writers differ there. Throws `unknown-type` or `unsupported-type`.
 */
export function primitive(type: PrimitiveType): Primitive {
  const plain = PLAIN.get(type);
  if (plain !== undefined) return plain;
  const decimal = DECIMAL.exec(type);
  if (decimal !== null) {
    const precision = Number(decimal[1]);
    const scale = Number(decimal[2]);
    if (precision >= 1 && precision <= 38 && scale <= precision) return { name: 'decimal', precision, scale };
    throw invalid('unknown-type', `decimal must have precision 1 to 38 and a scale within it: ${type}`);
  }
  const fixed = FIXED.exec(type);
  if (fixed !== null) {
    const length = Number(fixed[1]);
    if (length >= 1 && length <= 2_147_483_647) return { name: 'fixed', length };
    throw invalid('unknown-type', `fixed must be 1 to 2147483647 bytes long: ${type}`);
  }
  if (LATER.test(type)) throw invalid('unsupported-type', `type needs a later format version than 2: ${clip(type)}`);
  throw invalid('unknown-type', `type is not a primitive type: ${clip(type)}`);
}

/** The spelling of the reference writer: `decimal(9, 2)`, `fixed[16]`. */
export function primitiveText(type: Primitive): PrimitiveType {
  if (type.name === 'decimal') return `decimal(${type.precision}, ${type.scale})`;
  if (type.name === 'fixed') return `fixed[${type.length}]`;
  return type.name;
}

function clip(text: string): string {
  return text.length > 60 ? `${text.slice(0, 60)}...` : text;
}
