import { utf8 } from '../base/bytes.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { murmur3 } from '../base/murmur3.ts';
import { civilOfDay, dayOfCivil } from './calendar.ts';
import { type Primitive, primitive } from './primitive.ts';
import { fitsPrecision, twosComplement } from './single-value.ts';
import type { PrimitiveType, Transform, Type, Value } from './types.ts';

/** Partition transforms (spec: partition transforms, appendix B). Everything is UTC and floors, also below zero. */

/** A transform taken apart. */
export type ParsedTransform =
  | { name: 'identity' | 'void' | TimeTransform }
  | { name: 'bucket'; buckets: number }
  | { name: 'truncate'; width: number };

export type TimeTransform = 'year' | 'month' | 'day' | 'hour';

const INT32_MIN = -2_147_483_648;
const INT32_MAX = 2_147_483_647;
const INT64_MIN = -(2n ** 63n);

const PLAIN: ReadonlyMap<string, ParsedTransform> = new Map(
  (['identity', 'void', 'year', 'month', 'day', 'hour'] as const).map((name) => [name, { name }]),
);
const PARAMETERISED = /^(bucket|truncate)\[(\d{1,10})\]$/;

/** Takes a transform's text apart. Throws `unknown-transform`. */
export function parseTransform(text: Transform): ParsedTransform {
  const plain = PLAIN.get(text);
  if (plain !== undefined) return plain;
  const match = PARAMETERISED.exec(text);
  const parameter = match === null ? 0 : Number(match[2]);
  if (match === null || parameter < 1 || parameter > INT32_MAX) {
    throw invalid('unknown-transform', `transform is not known: ${text.slice(0, 60)}`);
  }
  return match[1] === 'bucket' ? { name: 'bucket', buckets: parameter } : { name: 'truncate', width: parameter };
}

/**
 * Type of the transform's result. `day` gives `date`: the reference writer's choice, an int with a date annotation
 * (T3). Throws `bad-transform` when the transform does not take the source type.
 */
export function resultType(transform: Transform, source: Type): PrimitiveType {
  const parsed = parseTransform(transform);
  if (typeof source !== 'string') throw notApplicable(transform, source.type);
  const { name } = primitive(source);
  switch (parsed.name) {
    case 'identity':
    case 'void':
      return source;
    case 'bucket':
      if (name === 'boolean' || name === 'float' || name === 'double') throw notApplicable(transform, source);
      return 'int';
    case 'truncate':
      if (!(name === 'int' || name === 'long' || name === 'decimal' || name === 'string' || name === 'binary')) {
        throw notApplicable(transform, source);
      }
      return source;
    case 'year':
    case 'month':
    case 'day':
      if (!(name === 'date' || name === 'timestamp' || name === 'timestamptz')) throw notApplicable(transform, source);
      return parsed.name === 'day' ? 'date' : 'int';
    case 'hour':
      if (!(name === 'timestamp' || name === 'timestamptz')) throw notApplicable(transform, source);
      return 'int';
  }
}

/** Partition value of one source value. Null gives null, always (T6). */
export function applyTransform(transform: Transform, source: PrimitiveType, value: Value): Value {
  return transformOf(transform, source)(value);
}

/** `applyTransform` with transform and type resolved once, for loops. */
export function transformOf(transform: Transform, source: PrimitiveType): (value: Value) => Value {
  resultType(transform, source);
  const parsed = parseTransform(transform);
  const shape = primitive(source);
  switch (parsed.name) {
    case 'identity':
      return (value) => value;
    case 'void':
      return () => null;
    case 'bucket':
      return (value) => (value === null ? null : bucketOf(shape, parsed.buckets, value));
    case 'truncate':
      return (value) => (value === null ? null : truncated(shape, parsed.width, value));
    default: {
      const { name } = parsed;
      if (shape.name === 'date') return (value) => (value === null ? null : ordinalOfDay(name, value as number));
      return (value) => (value === null ? null : ordinalOfMicros(name, value as bigint));
    }
  }
}

/**
 * Years, months, days or hours from 1970 to an instant in UTC microseconds, floored: -1 µs is year, month, day and
 * hour -1 (T1). A number must be a safe integer. Throws `bad-value` beyond int32 (hours, past the year 246,000).
 */
export function ordinalOfMicros(name: TimeTransform, micros: bigint | number): number {
  const value = typeof micros === 'bigint' ? micros : BigInt(micros);
  return ordinalOfPair(name, Number(BigInt.asIntN(32, value)), Number(value >> 32n));
}

/**
 * The same from the two int32 halves of the microseconds (low, high), as a column's buffer holds them: exact, and no
 * bigint in the loop. An hour is 2^10 * 3,515,625 µs: after the shift by ten bits every quotient is exact in a double.
 */
export function ordinalOfPair(name: TimeTransform, low: number, high: number): number {
  const kibis = high * 4_194_304 + (low >>> 10);
  if (name === 'hour') {
    const hour = Math.floor(kibis / 3_515_625);
    if (hour > INT32_MAX || hour < INT32_MIN) throw outOfRange(name, hour);
    return hour;
  }
  return ordinalOfDay(name, Math.floor(kibis / 84_375_000));
}

/** The same from a day number (`date`). Hours are not defined there. */
function ordinalOfDay(name: TimeTransform, day: number): number {
  if (name === 'day') return day;
  const { year, month } = civilOfDay(day);
  return name === 'year' ? year - 1970 : (year - 1970) * 12 + month - 1;
}

/** First microsecond of the partition with this ordinal; the partition ends where the next one starts. */
export function startOfOrdinal(name: TimeTransform, ordinal: number): bigint {
  switch (name) {
    case 'hour':
      return BigInt(ordinal) * 3_600_000_000n;
    case 'day':
      return BigInt(ordinal) * 86_400_000_000n;
    case 'month':
      return BigInt(dayOfCivil(1970, 1 + ordinal, 1)) * 86_400_000_000n;
    case 'year':
      return BigInt(dayOfCivil(1970 + ordinal, 1, 1)) * 86_400_000_000n;
  }
}

/** Hash of a value as bucket sees it: integers, dates and times as 8 bytes little endian, decimals at least width (T4). */
export function bucketHash(source: PrimitiveType, value: Value): number {
  return hashOf(primitive(source), value);
}

function hashOf(shape: Primitive, value: Value): number {
  switch (shape.name) {
    case 'int':
    case 'date':
      return murmur3(longBytes(BigInt(value as number)));
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return murmur3(longBytes(value as bigint));
    case 'decimal':
      return murmur3(twosComplement(value as bigint));
    case 'string':
      return murmur3(utf8(value as string));
    default:
      return murmur3(value as Uint8Array);
  }
}

function bucketOf(shape: Primitive, buckets: number, value: Value): number {
  return (hashOf(shape, value) & 0x7fffffff) % buckets;
}

function longBytes(value: bigint): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  view.setBigInt64(0, value, true);
  return new Uint8Array(view.buffer);
}

/** Numbers down to a multiple of the width; strings by code points, binary by bytes (T5). */
function truncated(shape: Primitive, width: number, value: Value): Value {
  if (shape.name === 'string') return codePointPrefix(value as string, width);
  if (shape.name === 'binary') return (value as Uint8Array).slice(0, width);
  if (shape.name === 'int') {
    const result = Math.floor((value as number) / width) * width;
    // Java wraps around here and files the row under a huge positive value
    if (result < INT32_MIN) throw outOfRange('truncate', result);
    return result;
  }
  const step = BigInt(width);
  const whole = value as bigint;
  const result = whole - (((whole % step) + step) % step);
  const fits = shape.name === 'decimal' ? fitsPrecision(result, shape.precision) : result >= INT64_MIN;
  if (!fits) throw outOfRange('truncate', result);
  return result;
}

/** The first `count` code points of a well-formed text. */
export function codePointPrefix(text: string, count: number): string {
  if (text.length <= count) return text;
  let end = 0;
  for (let i = 0; i < count && end < text.length; i++) {
    const unit = text.charCodeAt(end);
    end += unit >= 0xd800 && unit < 0xdc00 ? 2 : 1;
  }
  return text.slice(0, end);
}

function notApplicable(transform: Transform, source: string): SluiceError {
  return invalid('bad-transform', `transform ${transform} does not take a source of type ${source}`);
}

function outOfRange(name: string, value: number | bigint): SluiceError {
  return invalid('bad-value', `result of ${name} does not fit its type: ${value}`);
}
