import { compareBytes, hex, textOf, utf8 } from '../base/bytes.ts';
import { corrupt, invalid, SluiceError } from '../base/errors.ts';
import { type Primitive, primitive, primitiveText } from './primitive.ts';
import type { PrimitiveType, Value } from './types.ts';

/**
 * Binary single-value serialization (spec: appendix D): the bytes of bounds in manifests and manifest lists. And the
 * order of values by which bounds, sort orders and dictionaries are made.
 */

const INT32_MIN = -2_147_483_648;
const INT32_MAX = 2_147_483_647;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
/** A decimal of precision 38 takes 16 bytes at most. */
const DECIMAL_BYTES_MAX = 16;

/**
 * Bytes of one value, with the exact width of its type (B1-B3, B16). `value` must not be null and must be in the
 * range of the type; anything else throws `bad-value`: a bound of the wrong width makes the manifest unreadable.
 */
export function encodeValue(type: PrimitiveType, value: Value): Uint8Array {
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
      if (typeof value !== 'boolean') throw badValue(shape, value);
      return Uint8Array.of(value ? 1 : 0);
    case 'int':
    case 'date': {
      if (typeof value !== 'number' || !Number.isInteger(value) || value < INT32_MIN || value > INT32_MAX) {
        throw badValue(shape, value);
      }
      const view = new DataView(new ArrayBuffer(4));
      view.setInt32(0, value, true);
      return new Uint8Array(view.buffer);
    }
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz': {
      if (typeof value !== 'bigint' || value < INT64_MIN || value > INT64_MAX) throw badValue(shape, value);
      const view = new DataView(new ArrayBuffer(8));
      view.setBigInt64(0, value, true);
      return new Uint8Array(view.buffer);
    }
    case 'float': {
      // a rounded bound would no longer bound: only values a float holds exactly
      if (typeof value !== 'number' || !(Math.fround(value) === value || Number.isNaN(value))) {
        throw badValue(shape, value);
      }
      const view = new DataView(new ArrayBuffer(4));
      view.setFloat32(0, value, true);
      return new Uint8Array(view.buffer);
    }
    case 'double': {
      if (typeof value !== 'number') throw badValue(shape, value);
      const view = new DataView(new ArrayBuffer(8));
      view.setFloat64(0, value, true);
      return new Uint8Array(view.buffer);
    }
    case 'string':
      if (typeof value !== 'string') throw badValue(shape, value);
      return utf8(value);
    case 'uuid':
      if (!(value instanceof Uint8Array) || value.length !== 16) throw badValue(shape, value);
      return value.slice();
    case 'fixed':
      if (!(value instanceof Uint8Array) || value.length !== shape.length) throw badValue(shape, value);
      return value.slice();
    case 'binary':
      if (!(value instanceof Uint8Array)) throw badValue(shape, value);
      return value.slice();
    case 'decimal':
      if (typeof value !== 'bigint' || !fitsPrecision(value, shape.precision)) throw badValue(shape, value);
      return twosComplement(value);
  }
}

/**
 * The value behind `bytes`. Files written before a promotion keep narrow bounds, so the width decides: 4 bytes of a
 * long are an int, 4 bytes of a double a float (B19). Any other width, malformed UTF-8 or an over-long decimal throws
 * corrupt `bad-single-value`.
 */
export function decodeValue(type: PrimitiveType, bytes: Uint8Array): Value {
  const shape = primitive(type);
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  switch (shape.name) {
    case 'boolean':
      if (bytes.length !== 1) throw badBytes(shape, bytes);
      return bytes[0] !== 0;
    case 'int':
    case 'date':
      if (bytes.length !== 4) throw badBytes(shape, bytes);
      return view.getInt32(0, true);
    case 'long':
      if (bytes.length === 4) return BigInt(view.getInt32(0, true));
      if (bytes.length !== 8) throw badBytes(shape, bytes);
      return view.getBigInt64(0, true);
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      if (bytes.length !== 8) throw badBytes(shape, bytes);
      return view.getBigInt64(0, true);
    case 'float':
      if (bytes.length !== 4) throw badBytes(shape, bytes);
      return view.getFloat32(0, true);
    case 'double':
      if (bytes.length === 4) return view.getFloat32(0, true);
      if (bytes.length !== 8) throw badBytes(shape, bytes);
      return view.getFloat64(0, true);
    case 'string':
      try {
        return textOf(bytes);
      } catch {
        throw badBytes(shape, bytes);
      }
    case 'uuid':
      if (bytes.length !== 16) throw badBytes(shape, bytes);
      return bytes.slice();
    case 'fixed':
      if (bytes.length !== shape.length) throw badBytes(shape, bytes);
      return bytes.slice();
    case 'binary':
      return bytes.slice();
    case 'decimal': {
      if (bytes.length === 0 || bytes.length > DECIMAL_BYTES_MAX) throw badBytes(shape, bytes);
      return fromTwosComplement(bytes);
    }
  }
}

/** A bound of any writer; null when there is none, or none that can be read: then it tells nothing. */
export function boundOf(type: PrimitiveType, bytes: Uint8Array | null | undefined): Value {
  if (bytes === null || bytes === undefined) return null;
  try {
    return decodeValue(type, bytes);
  } catch (error) {
    if (error instanceof SluiceError) return null;
    throw error;
  }
}

/**
 * Order of two non-null values of a type: negative, zero or positive. Strings by code point (= by UTF-8 bytes, B5),
 * uuid, fixed and binary by unsigned bytes (B6), floats with -0 before +0 and NaN last (B8, T9).
 */
export function compareValues(type: PrimitiveType, a: Value, b: Value): number {
  return comparatorOf(type)(a, b);
}

/** `compareValues` with the type resolved once, for loops. */
export function comparatorOf(type: PrimitiveType): (a: Value, b: Value) => number {
  switch (primitive(type).name) {
    case 'boolean':
      return (a, b) => Number(a) - Number(b);
    case 'int':
    case 'date':
      return (a, b) => (a as number) - (b as number);
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
    case 'decimal':
      return (a, b) => ((a as bigint) < (b as bigint) ? -1 : (a as bigint) > (b as bigint) ? 1 : 0);
    case 'float':
    case 'double':
      return (a, b) => compareFloats(a as number, b as number);
    case 'string':
      return (a, b) => compareCodePoints(a as string, b as string);
    case 'uuid':
    case 'fixed':
    case 'binary':
      return (a, b) => compareBytes(a as Uint8Array, b as Uint8Array);
  }
}

/** Total order of doubles: -Infinity .. -0 < +0 .. +Infinity < NaN; all NaN are equal. */
export function compareFloats(a: number, b: number): number {
  if (a < b) return -1;
  if (a > b) return 1;
  if (a === b) {
    if (a !== 0 || Object.is(a, b)) return 0;
    return Object.is(a, -0) ? -1 : 1;
  }
  return Number(Number.isNaN(a)) - Number(Number.isNaN(b));
}

/** Order of well-formed texts by code point. `<` compares UTF-16 units and puts emoji before U+E000 .. U+FFFF. */
export function compareCodePoints(a: string, b: string): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const x = a.charCodeAt(i);
    const y = b.charCodeAt(i);
    if (x !== y) return rank(x) - rank(y);
  }
  return a.length - b.length;
}

/** Surrogates stand for code points above U+FFFF: they rank above all other units. */
function rank(unit: number): number {
  if (unit < 0xd800) return unit;
  return unit < 0xe000 ? unit + 0x2000 : unit - 0x800;
}

/** Big-endian two's complement of the least width: 0 → 00, 128 → 00 80, -128 → 80. */
export function twosComplement(value: bigint): Uint8Array {
  let width = 1;
  while (BigInt.asIntN(width * 8, value) !== value) width++;
  const out = new Uint8Array(width);
  let rest = value;
  for (let i = width - 1; i >= 0; i--) {
    out[i] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  return out;
}

/** The integer behind big-endian two's complement bytes of any width. */
export function fromTwosComplement(bytes: Uint8Array): bigint {
  let value = 0n;
  for (let i = 0; i < bytes.length; i++) value = (value << 8n) | BigInt(bytes[i]);
  return BigInt.asIntN(bytes.length * 8, value);
}

/** True when an unscaled decimal has at most `precision` digits. */
export function fitsPrecision(unscaled: bigint, precision: number): boolean {
  const bound = 10n ** BigInt(precision);
  return unscaled < bound && unscaled > -bound;
}

function badValue(shape: Primitive, value: Value): SluiceError {
  const text = value instanceof Uint8Array ? `${value.length} bytes` : `${typeof value} ${String(value)}`;
  return invalid('bad-value', `value does not fit ${primitiveText(shape)}: ${text.slice(0, 80)}`);
}

function badBytes(shape: Primitive, bytes: Uint8Array): SluiceError {
  const shown = hex(bytes.subarray(0, 24));
  return corrupt(
    'bad-single-value',
    `single value of ${primitiveText(shape)} is malformed: ${bytes.length} bytes ${shown}`,
  );
}
