import { primitive } from '../iceberg/schema.ts';
import { fitsPrecision } from '../iceberg/single-value.ts';
import type { ListType, MapType, PrimitiveType, StructType, Type } from '../iceberg/types.ts';
import { scaledInteger, scaledNumber } from './decimals.ts';
import { Misfit, markedNumber } from './fault.ts';
import {
  EPOCH_EXPONENT,
  type EpochUnit,
  epochMicros,
  inRange,
  parseDate,
  parseTime,
  parseTimestamp,
  type TimeFault,
} from './times.ts';

/**
 * JSON values to the values of a column. Strict: nothing is rounded, cut or guessed, except where this table says so.
 *
 * | type             | takes                                                                                        |
 * |------------------|----------------------------------------------------------------------------------------------|
 * | boolean          | true, false                                                                                  |
 * | int, long        | a whole number (1.0 and 1e3 are whole), or its digits as text                                |
 * | float, double    | a number, or one as text, rounded to the nearest; "NaN", "Infinity", "-Infinity"             |
 * | decimal(P, S)    | a number or text, whose digits fit: more than S digits behind the point only if they are 0   |
 * | date             | "2026-01-03"                                                                                 |
 * | time             | "12:34[:56[.789012]]"                                                                        |
 * | timestamp(tz)    | ISO 8601 text; a number counts `epochUnit`s since 1970. Both are UTC unless an offset is given |
 * | string           | text                                                                                         |
 * | uuid             | 36 characters of text, letters in either case                                                |
 * | fixed[L], binary | base64 with padding (RFC 4648 section 4)                                                     |
 * | list             | a list                                                                                       |
 * | struct           | an object; unknown names are refused                                                         |
 * | map              | an object, whose names are the keys as text; or a list of [key, value] or {"key", "value"}   |
 *
 * Times finer than microseconds are floored; years run from 0001 to 9999. A number beyond 2^53 is exact when it comes
 * as a bigint or as marked text (`NUMBER_MARK`), and refused as a double.
 */
export type Cast<T> = (value: unknown) => T | Misfit;

export interface CastOptions {
  /** What a number counts in a timestamp column. */
  epochUnit: EpochUnit;
  /** Values come from a format of text alone (CSV): "true" and "false" are taken as text too. */
  textual: boolean;
}

const INT_MIN = -2_147_483_648;
const INT_MAX = 2_147_483_647;
const WHOLE_TEXT = /^-?(0|[1-9]\d*)$/;
const NUMBER_TEXT = /^-?\d+(\.\d+)?([eE][+-]?\d+)?$/;

export const castInt: Cast<number> = (value) => {
  if (typeof value === 'number' && Number.isInteger(value)) {
    return value >= INT_MIN && value <= INT_MAX
      ? value
      : new Misfit('out-of-range', 'must be an int of 32 bits', value);
  }
  const whole = wholeNumber(value);
  if (whole instanceof Misfit) return whole;
  return whole >= INT_MIN && whole <= INT_MAX
    ? Number(whole)
    : new Misfit('out-of-range', 'must be an int of 32 bits', value);
};

/** A number while it is a safe integer and came as one, else a bigint. */
export const castLong: Cast<number | bigint> = (value) => {
  if (typeof value === 'number' && Number.isSafeInteger(value)) return value;
  const whole = wholeNumber(value);
  if (whole instanceof Misfit) return whole;
  return BigInt.asIntN(64, whole) === whole ? whole : new Misfit('out-of-range', 'must be a long of 64 bits', value);
};

/** Every digit of a whole number. Not for safe integers, which need no bigint. */
function wholeNumber(value: unknown): bigint | Misfit {
  if (typeof value === 'bigint') return value;
  if (typeof value === 'number') {
    if (Number.isSafeInteger(value)) return BigInt(value);
    if (!Number.isFinite(value)) return new Misfit('out-of-range', 'must be a whole number within 64 bits', value);
    return Number.isInteger(value)
      ? new Misfit('inexact-number', 'must be written in digits beyond 2^53', value)
      : new Misfit('wrong-type', 'must be a whole number', value);
  }
  if (typeof value !== 'string') return new Misfit('wrong-type', 'must be a whole number', value);
  const digits = markedNumber(value);
  if (digits === null && !WHOLE_TEXT.test(value)) return new Misfit('wrong-type', 'must be a whole number', value);
  // The usual case, 64-bit ids, without the detour over powers of ten.
  if (value.length <= 21 && WHOLE_TEXT.test(digits ?? value)) return BigInt(digits ?? value);
  const whole = scaledInteger(digits ?? value, 0);
  if (typeof whole === 'bigint') return whole;
  return whole === 'out-of-range'
    ? new Misfit('out-of-range', 'must be a whole number within 64 bits', value)
    : new Misfit('wrong-type', 'must be a whole number', value);
}

const castDouble: Cast<number> = (value) => {
  const number = typeof value === 'number' ? value : numberOf(value);
  if (number === null) return new Misfit('wrong-type', 'must be a number', value);
  if (Number.isFinite(number) || value === 'Infinity' || value === '-Infinity' || value === 'NaN') return number;
  return new Misfit('out-of-range', 'must be within the range of a double', value);
};

const castFloat: Cast<number> = (value) => {
  const number = castDouble(value);
  if (number instanceof Misfit) return number;
  const float = Math.fround(number);
  return Number.isFinite(number) && !Number.isFinite(float)
    ? new Misfit('out-of-range', 'must be within the range of a float', value)
    : float;
};

/** The nearest double of what is no plain number; null when it is none at all. */
function numberOf(value: unknown): number | null {
  if (typeof value === 'bigint') return Number(value);
  if (typeof value !== 'string') return null;
  if (value === 'NaN' || value === 'Infinity' || value === '-Infinity') return Number(value);
  const text = markedNumber(value) ?? value;
  return NUMBER_TEXT.test(text) ? Number(text) : null;
}

function castBoolean(textual: boolean): Cast<boolean> {
  return (value) => {
    if (typeof value === 'boolean') return value;
    if (textual && (value === 'true' || value === 'false')) return value === 'true';
    return new Misfit('wrong-type', 'must be true or false', value);
  };
}

/** The unscaled value; a number while it has at most 15 digits and came as a number, else a bigint. */
function castDecimal(precision: number, scale: number): Cast<number | bigint> {
  const type = `decimal(${precision}, ${scale})`;
  const limit = 10 ** Math.min(precision, 15);
  return (value) => {
    if (typeof value === 'number') {
      const scaled = scaledNumber(value, scale);
      if (Math.abs(scaled) < limit) return scaled;
    } else if (typeof value !== 'string' && typeof value !== 'bigint') {
      return new Misfit('wrong-type', `must be a ${type}`, value);
    }
    if (typeof value === 'number' && !Number.isFinite(value))
      return new Misfit('out-of-range', `must be a ${type}`, value);
    if (typeof value === 'number' && Number.isInteger(value) && !Number.isSafeInteger(value)) {
      return new Misfit('inexact-number', 'must be written in digits beyond 2^53', value);
    }
    const text = typeof value === 'string' ? (markedNumber(value) ?? value) : String(value);
    const unscaled = scaledInteger(text, scale);
    if (unscaled === 'malformed') return new Misfit('malformed-value', `must be a ${type}`, value);
    if (unscaled === 'inexact') return new Misfit('inexact-number', `must fit ${scale} digits behind the point`, value);
    if (unscaled === 'out-of-range' || !fitsPrecision(unscaled, precision)) {
      return new Misfit('out-of-range', `must be a ${type}`, value);
    }
    return unscaled;
  };
}

/** Refuses text that has no UTF-8 form. */
export const castString: Cast<string> = (value) => {
  if (typeof value === 'string' && value.isWellFormed()) return value;
  return typeof value !== 'string' || (markedNumber(value)?.length ?? 0) >= 16
    ? new Misfit('wrong-type', 'must be text', value)
    : new Misfit('lone-surrogate', 'holds a lone surrogate', value);
};

const castDate: Cast<number> = (value) =>
  typeof value === 'string'
    ? timeOr(parseDate(value), 'must be a date like 2026-01-03', value)
    : new Misfit('wrong-type', 'must be a date like 2026-01-03', value);

const castTime: Cast<number> = (value) =>
  typeof value === 'string'
    ? timeOr(parseTime(value), 'must be a time like 12:34:56.789', value)
    : new Misfit('wrong-type', 'must be a time like 12:34:56.789', value);

/** UTC microseconds; a number while it is a safe integer, else a bigint. */
export function castTimestamp(unit: EpochUnit): Cast<number | bigint> {
  const asked = 'must be a time like 2026-01-03T12:34:56.789Z';
  return (value) => {
    if (typeof value === 'string') {
      const digits = markedNumber(value);
      return timeOr(digits === null ? parseTimestamp(value) : epochText(digits, unit), asked, value);
    }
    if (typeof value === 'bigint') return timeOr(epochMicros(value, unit), asked, value);
    if (typeof value !== 'number') return new Misfit('wrong-type', `${asked} or a number`, value);
    if (Number.isSafeInteger(value)) return timeOr(epochMicros(value, unit), asked, value);
    if (Number.isInteger(value)) return new Misfit('inexact-number', 'must be written in digits beyond 2^53', value);
    return timeOr(epochText(String(value), unit), asked, value);
  };
}

/** A number of units with a fraction, or too long for a double: floored from its digits. */
function epochText(text: string, unit: EpochUnit): bigint | TimeFault {
  const micros = scaledInteger(text, EPOCH_EXPONENT[unit], 'floor');
  if (typeof micros === 'bigint') return inRange(micros);
  return micros === 'malformed' ? 'malformed' : 'out-of-range';
}

function timeOr<T extends number | bigint>(time: T | TimeFault, asked: string, value: unknown): T | Misfit {
  if (time === 'malformed') return new Misfit('malformed-value', asked, value);
  if (time === 'out-of-range') return new Misfit('out-of-range', 'must be in the years 0001 to 9999', value);
  return time;
}

const UUID_TEXT = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

const castUuid: Cast<Uint8Array> = (value) => {
  if (typeof value !== 'string') return new Misfit('wrong-type', 'must be a uuid as text', value);
  if (!UUID_TEXT.test(value)) return new Misfit('malformed-value', 'must be a uuid', value);
  const digits = value.replaceAll('-', '');
  return Uint8Array.from({ length: 16 }, (_, i) => Number.parseInt(digits.slice(2 * i, 2 * i + 2), 16));
};

/** `length` null: of any length. */
function castBytes(length: number | null): Cast<Uint8Array> {
  return (value) => {
    if (typeof value !== 'string') return new Misfit('wrong-type', 'must be base64 text', value);
    const bytes = fromBase64(value);
    if (bytes === null) return new Misfit('malformed-value', 'must be base64 with padding', value);
    return length === null || bytes.length === length
      ? bytes
      : new Misfit('malformed-value', `must be base64 of ${length} bytes, not of ${bytes.length}`, value);
  };
}

const BASE64 = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const SEXTETS = new Int8Array(128).fill(-1);
for (let i = 0; i < 64; i++) SEXTETS[BASE64.charCodeAt(i)] = i;

/** Bytes of canonical base64 with padding (RFC 4648 sections 4 and 3.5); null when it is not that. */
export function fromBase64(text: string): Uint8Array | null {
  if (text.length % 4 !== 0) return null;
  const padding = text.endsWith('==') ? 2 : text.endsWith('=') ? 1 : 0;
  const out = new Uint8Array((text.length / 4) * 3 - padding);
  let bits = 0;
  let held = 0;
  let at = 0;
  for (let i = 0; i < text.length - padding; i++) {
    const code = text.charCodeAt(i);
    const sextet = code < 128 ? SEXTETS[code] : -1;
    if (sextet < 0) return null;
    bits = ((bits & 0x3ff) << 6) | sextet;
    held += 6;
    if (held >= 8) {
      held -= 8;
      out[at++] = bits >> held;
    }
  }
  return (bits & ((1 << held) - 1)) === 0 ? out : null;
}

/** The cast of a primitive type. Throws as `primitive` for a type of no Iceberg v2 table. */
export function primitiveCast(
  type: PrimitiveType,
  { epochUnit, textual }: CastOptions,
): Cast<boolean | number | bigint | string | Uint8Array> {
  const parsed = primitive(type);
  switch (parsed.name) {
    case 'boolean':
      return castBoolean(textual);
    case 'int':
      return castInt;
    case 'long':
      return castLong;
    case 'float':
      return castFloat;
    case 'double':
      return castDouble;
    case 'decimal':
      return castDecimal(parsed.precision, parsed.scale);
    case 'date':
      return castDate;
    case 'time':
      return castTime;
    case 'timestamp':
    case 'timestamptz':
      return castTimestamp(epochUnit);
    case 'string':
      return castString;
    case 'uuid':
      return castUuid;
    case 'fixed':
      return castBytes(parsed.length);
    case 'binary':
      return castBytes(null);
  }
}

/** Types that are a bigint in memory, whatever their size (`Value`). */
export const BIGINT_TYPES: ReadonlySet<string> = new Set(['long', 'time', 'timestamp', 'timestamptz', 'decimal']);

/**
 * The cast of a type inside a nested column. Primitives become what `Value` says; a list becomes an array, a struct an
 * object with a null or value for each of its fields and no prototype, a map a `Map` in the order given.
 */
export function nestedCast(type: Type, options: CastOptions): Cast<unknown> {
  if (typeof type === 'string') {
    const cast = primitiveCast(type, options);
    if (!BIGINT_TYPES.has(primitive(type).name)) return cast;
    return (value) => {
      const result = cast(value);
      return typeof result === 'number' ? BigInt(result) : result;
    };
  }
  switch (type.type) {
    case 'list':
      return listCast(type, options);
    case 'map':
      return mapCast(type, options);
    case 'struct':
      return structCast(type, options);
  }
}

/** A cast that also takes null, unless the value is required. */
function optional(type: Type, required: boolean, options: CastOptions): Cast<unknown> {
  const cast = nestedCast(type, options);
  return (value) => {
    if (value !== null) return cast(value);
    return required ? new Misfit('null-in-required', 'is required and null') : null;
  };
}

function listCast(type: ListType, options: CastOptions): Cast<unknown[]> {
  const element = optional(type.element, type['element-required'], options);
  return (value) => {
    if (!Array.isArray(value)) return new Misfit('wrong-type', 'must be a list', value);
    const out: unknown[] = [];
    for (const held of value) {
      const cast = element(held);
      if (cast instanceof Misfit) return cast.at(`[${out.length}]`);
      out.push(cast);
    }
    return out;
  };
}

function structCast(type: StructType, options: CastOptions): Cast<Record<string, unknown>> {
  const fields = type.fields.map(({ name, required, type: held }) => ({
    name,
    required,
    cast: optional(held, required, options),
  }));
  const unknown = unknownNames(
    'field',
    type.fields.map((field) => field.name),
  );
  return (value) => {
    if (!isObject(value)) return new Misfit('wrong-type', 'must be an object', value);
    const out: Record<string, unknown> = Object.create(null);
    for (const { name, required, cast } of fields) {
      const held = Object.hasOwn(value, name) ? value[name] : undefined;
      if (held === undefined) {
        if (required) return new Misfit('missing-required', 'is required and missing').at(`.${name}`);
        out[name] = null;
        continue;
      }
      const result = cast(held);
      if (result instanceof Misfit) return result.at(`.${name}`);
      out[name] = result;
    }
    for (const name of Object.keys(value)) {
      if (!Object.hasOwn(out, name)) return unknown(name).at(`.${name}`);
    }
    return out;
  };
}

function mapCast(type: MapType, options: CastOptions): Cast<Map<unknown, unknown>> {
  const castKey = optional(type.key, true, options);
  const castValue = optional(type.value, type['value-required'], options);
  return (value) => {
    const entries = mapEntries(value);
    if (entries === null) return new Misfit('wrong-type', 'must be an object or a list of keys and values', value);
    return mapOf(entries, castKey, castValue);
  };
}

/** The map of the entries, in their order. An entry that is null itself has no key. */
export function mapOf(
  entries: readonly ([unknown, unknown] | null)[],
  castKey: Cast<unknown>,
  castValue: Cast<unknown>,
): Map<unknown, unknown> | Misfit {
  const out = new Map<unknown, unknown>();
  const seen = new Set<string>();
  for (const entry of entries) {
    const [givenKey, givenValue] = entry ?? [null, null];
    const key = castKey(givenKey);
    if (key instanceof Misfit) return key.at('.key');
    const held = castValue(givenValue);
    if (held instanceof Misfit) return held.at('.value');
    const identity = identityOf(key);
    if (seen.has(identity)) return new Misfit('duplicate-key', 'must name each key once', givenKey).at('.key');
    seen.add(identity);
    out.set(key, held);
  }
  return out;
}

/** Text that two keys of one type share when they are equal. */
function identityOf(key: unknown): string {
  if (key instanceof Uint8Array || typeof key !== 'object') return String(key);
  return JSON.stringify(key, (_, held) => (typeof held === 'bigint' ? String(held) : held));
}

/** Keys and values as given; null when it is no map. */
function mapEntries(value: unknown): [unknown, unknown][] | null {
  if (isObject(value)) return Object.entries(value);
  if (!Array.isArray(value)) return null;
  const out: [unknown, unknown][] = [];
  for (const entry of value) {
    if (Array.isArray(entry) && entry.length === 2) out.push([entry[0], entry[1]]);
    else if (isObject(entry) && Object.hasOwn(entry, 'key') && Object.keys(entry).length <= 2) {
      const given = Object.hasOwn(entry, 'value') ? entry['value'] : null;
      if (Object.keys(entry).length === 2 && !Object.hasOwn(entry, 'value')) return null;
      out.push([entry['key'], given]);
    } else return null;
  }
  return out;
}

/** True for what JSON calls an object. */
export function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Misfits of unknown names, which also say when a known one differs by case alone. */
export function unknownNames(what: 'column' | 'field', known: readonly string[]): (name: string) => Misfit {
  const problem = `is a ${what} that the table does not have`;
  // Made at the first unknown name, and once: every row of a batch may have one.
  let byLowerCase: Map<string, string> | null = null;
  return (name) => {
    byLowerCase ??= new Map(known.map((other) => [other.toLowerCase(), other]));
    const near = byLowerCase.get(name.toLowerCase());
    const hint = near === undefined ? '' : `; it has ${near}, and names differ by case`;
    return new Misfit(`unknown-${what}`, problem + hint);
  };
}
