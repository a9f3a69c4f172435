import type { PrimitiveType, Value } from '../../src/core/iceberg/types.ts';

/** A primitive type in parts. `scale`, `precision` only of decimals, `length` only of fixed. */
export interface Primitive {
  name: string;
  precision: number;
  scale: number;
  length: number;
}

const PLAIN = new Set('boolean int long float double date time timestamp timestamptz string uuid binary'.split(' '));

/** Parses the spelling of a primitive type; null when format version 2 does not know it. */
export function parsePrimitive(type: PrimitiveType): Primitive | null {
  if (PLAIN.has(type)) return { name: type, precision: 0, scale: 0, length: 0 };
  const fixed = /^fixed\[(\d+)\]$/.exec(type);
  if (fixed !== null) return { name: 'fixed', precision: 0, scale: 0, length: Number(fixed[1]) };
  const decimal = /^decimal\((\d+),\s*(\d+)\)$/.exec(type);
  if (decimal === null) return null;
  const [precision, scale] = [Number(decimal[1]), Number(decimal[2])];
  return precision < 1 || precision > 38 || scale > precision ? null : { name: 'decimal', precision, scale, length: 0 };
}

export function isFloating(type: Primitive): boolean {
  return type.name === 'float' || type.name === 'double';
}

/** True of types whose values have no natural truncation. */
export function isTruncatable(type: Primitive): boolean {
  return type.name === 'string' || type.name === 'binary';
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
const encoder = new TextEncoder();

/** Big-endian two's complement, any length. */
export function signedBigEndian(bytes: Uint8Array): bigint {
  let value = 0n;
  for (const byte of bytes) value = (value << 8n) | BigInt(byte);
  return BigInt.asIntN(8 * bytes.length, value);
}

/** The fewest big-endian bytes that hold a two's complement integer; zero is one zero byte. */
export function leastBigEndian(value: bigint): Uint8Array {
  let length = 1;
  while (BigInt.asIntN(8 * length, value) !== value) length++;
  return Uint8Array.from({ length }, (_, i) => Number((value >> BigInt(8 * (length - 1 - i))) & 0xffn));
}

/**
 * Decodes a single value (spec: binary-single-value-serialization) strictly: exact width, least bytes of a decimal,
 * well-formed UTF-8. Throws an Error that says what is wrong.
 */
export function decodeSingle(type: Primitive, bytes: Uint8Array): Value {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const width = (length: number) => {
    if (bytes.length !== length) throw new Error(`${type.name} in ${bytes.length} bytes instead of ${length}`);
  };
  switch (type.name) {
    case 'boolean':
      width(1);
      if (bytes[0] > 1) throw new Error(`boolean byte ${bytes[0]}`);
      return bytes[0] === 1;
    case 'int':
    case 'date':
      width(4);
      return view.getInt32(0, true);
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      width(8);
      return view.getBigInt64(0, true);
    case 'float':
      width(4);
      return view.getFloat32(0, true);
    case 'double':
      width(8);
      return view.getFloat64(0, true);
    case 'string':
      return decoder.decode(bytes);
    case 'uuid':
      width(16);
      return bytes;
    case 'fixed':
      width(type.length);
      return bytes;
    case 'binary':
      return bytes;
    case 'decimal': {
      const value = signedBigEndian(bytes);
      if (bytes.length !== leastBigEndian(value).length) throw new Error(`decimal ${value} in ${bytes.length} bytes`);
      return value;
    }
    default:
      throw new Error(`no single value of ${type.name}`);
  }
}

/** Encodes a single value; for fixtures broken on purpose. */
export function encodeSingle(type: Primitive, value: Value): Uint8Array {
  const bytes = new Uint8Array(8);
  const view = new DataView(bytes.buffer);
  if (typeof value === 'boolean') return Uint8Array.of(value ? 1 : 0);
  if (typeof value === 'string') return encoder.encode(value);
  if (value instanceof Uint8Array) return value;
  if (type.name === 'decimal') return leastBigEndian(value as bigint);
  if (typeof value === 'bigint') view.setBigInt64(0, value, true);
  else if (type.name === 'double') view.setFloat64(0, value as number, true);
  else if (type.name === 'float') view.setFloat32(0, value as number, true);
  else view.setInt32(0, value as number, true);
  return typeof value === 'bigint' || type.name === 'double' ? bytes : bytes.slice(0, 4);
}

function compareBytes(a: Uint8Array, b: Uint8Array): number {
  for (let i = 0; i < a.length && i < b.length; i++) if (a[i] !== b[i]) return a[i] < b[i] ? -1 : 1;
  return Math.sign(a.length - b.length);
}

/** Order of code points, which UTF-16 units do not give: surrogates stand for points above U+FFFF. */
function compareText(a: string, b: string): number {
  for (let i = 0; i < a.length && i < b.length; i++) {
    const [x, y] = [a.charCodeAt(i), b.charCodeAt(i)];
    if (x === y) continue;
    const rank = (unit: number) => (unit >= 0xd800 && unit <= 0xdfff ? unit + 0x10000 : unit);
    return rank(x) < rank(y) ? -1 : 1;
  }
  return Math.sign(a.length - b.length);
}

/** Iceberg's order of two values of one type: -0 before +0, NaN after everything, bytes unsigned. Nulls are not allowed. */
export function compareValues(a: Value, b: Value): number {
  if (typeof a === 'string' && typeof b === 'string') return compareText(a, b);
  if (a instanceof Uint8Array && b instanceof Uint8Array) return compareBytes(a, b);
  if (typeof a === 'number' && typeof b === 'number') {
    if (Number.isNaN(a) || Number.isNaN(b)) return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
    if (a === 0 && b === 0) return Number(Object.is(b, -0)) - Number(Object.is(a, -0));
    return a < b ? -1 : a > b ? 1 : 0;
  }
  if (a === null || b === null) throw new Error('null has no order');
  return a < b ? -1 : a > b ? 1 : 0;
}

export function sameValue(a: Value, b: Value): boolean {
  return a === null || b === null ? a === b : compareValues(a, b) === 0;
}

export function isNaNValue(value: Value): boolean {
  return typeof value === 'number' && Number.isNaN(value);
}

/** One spelling a value, for use as a key of a map. */
export function keyOfValue(value: Value): string {
  if (value instanceof Uint8Array) return `x${Array.from(value, (b) => b.toString(16).padStart(2, '0')).join('')}`;
  if (typeof value === 'string') return `s${value}`;
  return Object.is(value, -0) ? '-0' : `${typeof value}:${String(value)}`;
}

const CUT = 16;

/** The lower bound the rule gives for the least value: the first 16 code points or bytes. */
export function lowerBoundOf(type: Primitive, least: Value): Value {
  if (type.name === 'string')
    return Array.from(least as string)
      .slice(0, CUT)
      .join('');
  if (type.name === 'binary') return (least as Uint8Array).slice(0, CUT);
  return least;
}

/** The upper bound the rule gives for the greatest value; null when a value that must be cut cannot be rounded up. */
export function upperBoundOf(type: Primitive, greatest: Value): Value {
  if (type.name === 'string') {
    const points = Array.from(greatest as string, (c) => c.codePointAt(0) as number);
    if (points.length <= CUT) return greatest;
    for (let i = CUT - 1; i >= 0; i--) {
      const next = points[i] === 0xd7ff ? 0xe000 : points[i] + 1;
      if (next <= 0x10ffff) return String.fromCodePoint(...points.slice(0, i), next);
    }
    return null;
  }
  if (type.name === 'binary') {
    const bytes = greatest as Uint8Array;
    if (bytes.length <= CUT) return bytes;
    for (let i = CUT - 1; i >= 0; i--) if (bytes[i] < 0xff) return Uint8Array.of(...bytes.slice(0, i), bytes[i] + 1);
    return null;
  }
  return greatest;
}
