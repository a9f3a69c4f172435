import { primitive } from '../iceberg/primitive.ts';
import { fitsPrecision } from '../iceberg/single-value.ts';
import type { ListType, MapType, PrimitiveType, StructType, Type } from '../iceberg/types.ts';
import { BIGINT_TYPES, type Cast, type CastOptions, mapOf, primitiveCast } from './casts.ts';
import { Misfit } from './fault.ts';
import { type ForeignField, type ForeignType, foreignTypeText } from './foreign.ts';
import { DATE_DAYS_MAX, DATE_DAYS_MIN, DAY_MICROS, epochMicros } from './times.ts';

/**
 * Values of other formats to those of a column. Nothing is rounded, cut or guessed, except where this table says so.
 *
 * | column           | takes                                                                                         |
 * |------------------|-----------------------------------------------------------------------------------------------|
 * | boolean          | booleans                                                                                      |
 * | int, long        | integers of all widths in range; whole floats up to 2^53; whole decimals                      |
 * | float, double    | floats, integers and decimals, rounded to the nearest                                         |
 * | decimal(P, S)    | decimals, integers and floats whose digits fit, the last by their shortest decimal digits     |
 * | date             | dates                                                                                         |
 * | time             | times, floored to microseconds                                                                |
 * | timestamp(tz)    | timestamps of any unit and zone, floored to microseconds; dates; integers and floats, which   |
 * |                  | count `epochUnit`s since 1970                                                                 |
 * | string           | text, and bytes that are UTF-8                                                                |
 * | uuid             | uuids, 16 bytes                                                                               |
 * | fixed[L], binary | bytes, uuids                                                                                  |
 * | list             | a list of what the element takes                                                              |
 * | struct           | a struct of fields by name, in any order, each of which the table has                         |
 * | map              | a map, or a list of structs of two, the key first                                             |
 *
 * Text is taken by all but list, struct and map, as CSV's text is (`casts.ts`). Of dates and times the years run from 0001
 * to 9999.
 */
export type ForeignCast = { cast: Cast<unknown> } | { problem: string };

/**
 * The cast from a type to another, or what is wrong with all values of it. Takes what `foreignReader` gives, but null, and
 * makes what `Value` says, or inside of nested columns what `nestedCast` does.
 */
export function foreignCast(from: ForeignType, to: Type, options: CastOptions): ForeignCast {
  if (from.kind === 'null') return { cast: (value) => value };
  if (typeof to === 'string') {
    const cast = primitiveForeignCast(from, to, options);
    if (cast !== null) return { cast };
  } else if (to.type === 'list' && from.kind === 'list') return listCast(from.element, to, options);
  else if (to.type === 'struct' && from.kind === 'struct') return structCast(from.fields, to, options);
  else if (to.type === 'map') {
    if (from.kind === 'map') return mapCast(from.key, from.value, to, options);
    if (from.kind === 'list' && from.element.type.kind === 'struct' && from.element.type.fields.length === 2) {
      const [key, value] = from.element.type.fields;
      return mapCast(key, value, to, options);
    }
  }
  const wanted = typeof to === 'string' ? to : to.type;
  return { problem: `comes as ${foreignTypeText(from)}, of which no ${wanted} is made` };
}

function primitiveForeignCast(from: ForeignType, to: PrimitiveType, options: CastOptions): Cast<unknown> | null {
  const target = primitive(to);
  const isTimestamp = target.name === 'timestamp' || target.name === 'timestamptz';
  const byDigits = (textual = false): Cast<unknown> => {
    const cast = primitiveCast(to, { ...options, textual });
    if (!BIGINT_TYPES.has(target.name)) return cast;
    return (value) => {
      const result = cast(value);
      return typeof result === 'number' ? BigInt(result) : result;
    };
  };
  switch (from.kind) {
    case 'boolean':
      return target.name === 'boolean' ? (value) => value : null;
    case 'text': {
      const cast = byDigits(true);
      return (value) => (value === undefined ? new Misfit('malformed-utf8', 'is not UTF-8') : cast(value));
    }
    case 'integer':
      return isTimestamp || isNumber(target.name) ? byDigits() : null;
    case 'float':
      if (target.name === 'double') return (value) => value;
      if (target.name === 'float') return nearestFloat;
      return isTimestamp || isNumber(target.name) ? byDigits() : null;
    case 'decimal':
      return decimalCast(from.scale, target, byDigits());
    case 'date':
      if (target.name === 'date') return (value) => days(value as number | bigint, from.unit);
      if (!isTimestamp) return null;
      return (value) => {
        const day = days(value as number | bigint, from.unit);
        return day instanceof Misfit ? day : BigInt(day) * BigInt(DAY_MICROS);
      };
    case 'time':
      return target.name === 'time' ? (value) => timeOfDay(value as number | bigint, from.unit) : null;
    case 'timestamp':
      return isTimestamp ? (value) => instant(value as number | bigint, from.unit) : null;
    case 'bytes':
    case 'uuid':
      switch (target.name) {
        case 'binary':
          return (value) => value;
        case 'fixed':
          return bytesOfLength(target.length);
        case 'uuid':
          return bytesOfLength(16);
        case 'string':
          return from.kind === 'bytes' ? utf8Text : null;
        default:
          return null;
      }
    default:
      return null;
  }
}

function isNumber(name: string): boolean {
  return name === 'int' || name === 'long' || name === 'float' || name === 'double' || name === 'decimal';
}

const nearestFloat: Cast<unknown> = (value) => {
  const number = value as number;
  const float = Math.fround(number);
  return Number.isFinite(number) && !Number.isFinite(float)
    ? new Misfit('out-of-range', 'must be within the range of a float', value)
    : float;
};

/** By digits as text: exact, and the casts of text know what does not fit. */
function decimalCast(scale: number, to: ReturnType<typeof primitive>, byDigits: Cast<unknown>): Cast<unknown> | null {
  if (to.name === 'decimal' && to.scale === scale) {
    const { precision } = to;
    return (value) =>
      fitsPrecision(value as bigint, precision)
        ? value
        : new Misfit('out-of-range', `must be a decimal(${precision}, ${scale})`, decimalText(value as bigint, scale));
  }
  if (!isNumber(to.name)) return null;
  if (to.name === 'decimal') return (value) => byDigits(`${value}e${-scale}`);
  if (to.name === 'float' || to.name === 'double') return (value) => byDigits(Number(`${value}e${-scale}`));
  return (value) => {
    const unscaled = value as bigint;
    if (scale <= 0) return byDigits(unscaled * 10n ** BigInt(-scale));
    const one = 10n ** BigInt(scale);
    if (unscaled % one === 0n) return byDigits(unscaled / one);
    return new Misfit('wrong-type', 'must be a whole number', decimalText(unscaled, scale));
  };
}

/** `12.50` of 1250 with scale 2, cut short by whoever shows it. */
function decimalText(unscaled: bigint, scale: number): string {
  if (scale <= 0) return `${unscaled}${'0'.repeat(-scale)}`;
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  return `${unscaled < 0n ? '-' : ''}${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
}

const DAY_MS = 86_400_000;
const FAR = 'must be in the years 0001 to 9999';

function days(value: number | bigint, unit: 'd' | 'ms'): number | Misfit {
  let day = Number(value);
  if (unit === 'ms') {
    if (day % DAY_MS !== 0)
      return new Misfit('inexact-number', 'must be midnight, as a date of milliseconds is', value);
    day /= DAY_MS;
  }
  return day >= DATE_DAYS_MIN && day <= DATE_DAYS_MAX ? day : new Misfit('out-of-range', FAR, value);
}

function timeOfDay(value: number | bigint, unit: 's' | 'ms' | 'us' | 'ns'): bigint | Misfit {
  const micros = epochMicros(value, unit);
  return micros !== 'out-of-range' && micros >= 0 && micros < DAY_MICROS
    ? BigInt(micros)
    : new Misfit('out-of-range', 'must be within one day', value);
}

function instant(value: number | bigint, unit: 's' | 'ms' | 'us' | 'ns'): bigint | Misfit {
  const micros = epochMicros(BigInt(value), unit);
  return micros === 'out-of-range' ? new Misfit('out-of-range', FAR, value) : BigInt(micros);
}

function bytesOfLength(length: number): Cast<unknown> {
  return (value) => {
    const bytes = value as Uint8Array;
    return bytes.length === length
      ? bytes
      : new Misfit('malformed-value', `must be ${length} bytes long, not ${bytes.length}`);
  };
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

const utf8Text: Cast<unknown> = (value) => {
  try {
    return decoder.decode(value as Uint8Array);
  } catch {
    return new Misfit('malformed-utf8', 'is not UTF-8');
  }
};

/** The same for a value that may be null, and is not where it is required. */
function optional(from: ForeignType, to: Type, required: boolean, options: CastOptions): ForeignCast {
  const held = foreignCast(from, to, options);
  if ('problem' in held) return held;
  const { cast } = held;
  return {
    cast: (value) => {
      if (value !== null) return cast(value);
      return required ? new Misfit('null-in-required', 'is required and null') : null;
    },
  };
}

function listCast(from: ForeignField, to: ListType, options: CastOptions): ForeignCast {
  const element = optional(from.type, to.element, to['element-required'], options);
  if ('problem' in element) return { problem: `has an element that ${element.problem}` };
  return {
    cast: (value) => {
      const out: unknown[] = [];
      for (const held of value as unknown[]) {
        const result = element.cast(held);
        if (result instanceof Misfit) return result.at(`[${out.length}]`);
        out.push(result);
      }
      return out;
    },
  };
}

function structCast(from: readonly ForeignField[], to: StructType, options: CastOptions): ForeignCast {
  const places = new Map(from.map((field, place) => [field.name, place]));
  if (places.size < from.length) return { problem: 'has two fields of one name' };
  const steps: { name: string; place: number; cast: Cast<unknown> }[] = [];
  const absent: string[] = [];
  for (const { name, type, required } of to.fields) {
    const place = places.get(name);
    if (place === undefined) {
      if (required) return { problem: `has no field ${name}, which is required` };
      absent.push(name);
      continue;
    }
    const field = optional(from[place].type, type, required, options);
    if ('problem' in field) return { problem: `has a field ${name} that ${field.problem}` };
    steps.push({ name, place, cast: field.cast });
    places.delete(name);
  }
  for (const name of places.keys()) return { problem: `has a field ${name} that the table does not have` };
  return {
    cast: (value) => {
      const given = value as unknown[];
      const out: Record<string, unknown> = Object.create(null);
      for (const { name, place, cast } of steps) {
        const result = cast(given[place]);
        if (result instanceof Misfit) return result.at(`.${name}`);
        out[name] = result;
      }
      for (const name of absent) out[name] = null;
      return out;
    },
  };
}

function mapCast(fromKey: ForeignField, fromValue: ForeignField, to: MapType, options: CastOptions): ForeignCast {
  const key = optional(fromKey.type, to.key, true, options);
  if ('problem' in key) return { problem: `has a key that ${key.problem}` };
  const held = optional(fromValue.type, to.value, to['value-required'], options);
  if ('problem' in held) return { problem: `has a value that ${held.problem}` };
  return { cast: (value) => mapOf(value as [unknown, unknown][], key.cast, held.cast) };
}
