import { invalid, type SluiceError } from './errors.ts';

/**
 * Checked steps into parsed JSON. Each takes the value and its path (`schema.fields[2].type`) and throws `malformed`
 * naming that path, so that a client or an operator finds the place. Only own properties are read: a key such as
 * `constructor` or `__proto__` is data like any other.
 */

const INT32_MAX = 2_147_483_647;
const INT64_MAX = 2n ** 63n - 1n;

/** The error of every function here. */
export function malformed(path: string, expected: string, value: unknown): SluiceError {
  return invalid('malformed', `${path} must be ${expected}: ${describe(value)}`, { path });
}

/** A short description of any value for a message. */
export function describe(value: unknown): string {
  if (value === undefined) return 'missing';
  if (value === null) return 'null';
  if (Array.isArray(value)) return `list of ${value.length}`;
  if (typeof value === 'object') return 'object';
  const text = typeof value === 'string' ? JSON.stringify(value) : String(value);
  return text.length > 80 ? `${text.slice(0, 80)}...` : text;
}

/** Own property `key`, or undefined. Never something inherited. */
export function own<T>(record: Readonly<Record<string, T>>, key: string): T | undefined {
  return Object.hasOwn(record, key) ? record[key] : undefined;
}

export function objectAt(value: unknown, path: string): Record<string, unknown> {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) throw malformed(path, 'an object', value);
  return value as Record<string, unknown>;
}

/** A list of at most `lengthMax` elements. */
export function arrayAt(value: unknown, path: string, lengthMax: number): unknown[] {
  if (!Array.isArray(value)) throw malformed(path, 'a list', value);
  if (value.length > lengthMax) throw malformed(path, `a list of at most ${lengthMax}`, value);
  return value;
}

export function stringAt(value: unknown, path: string): string {
  if (typeof value !== 'string') throw malformed(path, 'a string', value);
  return value;
}

export function booleanAt(value: unknown, path: string): boolean {
  if (typeof value !== 'boolean') throw malformed(path, 'a boolean', value);
  return value;
}

/** An integer of 0 .. 2^31 - 1, the range of every id of schemas, specs, orders and fields. */
export function idAt(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < 0 || value > INT32_MAX) {
    throw malformed(path, 'an integer from 0 to 2147483647', value);
  }
  return value;
}

/** A whole number that a double holds exactly: milliseconds and the like. Not negative. */
export function millisAt(value: unknown, path: string): number {
  if (typeof value !== 'number' || !Number.isSafeInteger(value) || value < 0) {
    throw malformed(path, 'a whole number of milliseconds', value);
  }
  return value;
}

/** A 64-bit integer, from a number or a bigint. */
export function int64At(value: unknown, path: string): bigint {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return BigInt(value);
  if (typeof value === 'bigint' && value >= -INT64_MAX - 1n && value <= INT64_MAX) return value;
  throw malformed(path, 'a 64-bit integer', value);
}

/** An object whose values are all strings. Null values are refused: readers in Java cannot load them. */
export function stringMapAt(value: unknown, path: string): Record<string, string> {
  const object = objectAt(value, path);
  const keys = Object.keys(object);
  for (const key of keys)
    if (typeof object[key] !== 'string') throw malformed(`${path}.${key}`, 'a string', object[key]);
  // spread defines own properties, also one called __proto__; assignment would not
  return { ...object } as Record<string, string>;
}
