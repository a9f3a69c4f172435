import { fromHex } from '../base/bytes.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { parseUuid } from '../base/ids.ts';
import { describe } from '../base/shape.ts';
import { civilOfDay, dayOfCivil } from './calendar.ts';
import { primitive } from './primitive.ts';
import { parseTransform } from './transform.ts';
import type { PrimitiveType, Transform, Value } from './types.ts';

const INT32_MIN = -2_147_483_648;
const INT32_MAX = 2_147_483_647;
const INT64_MIN = -(2n ** 63n);
const INT64_MAX = 2n ** 63n - 1n;
const INTEGER = /^-?[0-9]{1,39}$/;

/**
 * The partition value that a caller means: the label of its folder (`2026-01-03` of a day, `2026-01` of a month,
 * `2026-01-03-14` of an hour, `2026` of a year; see `partitionLabel`), or the value itself, for time transforms their
 * number since 1970. Null means null; the text `null` is a text.
 *
 * @throws invalid `bad-partition-value`
 */
export function parsePartitionValue(
  transform: Transform,
  type: PrimitiveType,
  given: string | number | bigint | boolean | null,
): Value {
  if (given === null) return null;
  const bad = () => invalid('bad-partition-value', `partition value does not fit ${transform}: ${describe(given)}`);
  const { name } = parseTransform(transform);
  if (name === 'year' || name === 'month' || name === 'hour') {
    return (typeof given === 'string' ? ordinalOf(name, given) : null) ?? int32(given, bad);
  }
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
      if (given === true || given === 'true') return true;
      if (given === false || given === 'false') return false;
      throw bad();
    case 'date':
      return (typeof given === 'string' ? dayOf(given) : null) ?? int32(given, bad);
    case 'int':
      return int32(given, bad);
    case 'long':
    case 'time':
    case 'timestamp':
    case 'timestamptz': {
      const value = integer(given, bad);
      if (value < INT64_MIN || value > INT64_MAX) throw bad();
      return value;
    }
    case 'decimal':
      return integer(given, bad);
    case 'float':
    case 'double': {
      if (typeof given === 'boolean') throw bad();
      const value = given === 'NaN' ? Number.NaN : Number(given);
      if (given !== 'NaN' && (given === '' || Number.isNaN(value))) throw bad();
      return value;
    }
    case 'string':
      if (typeof given !== 'string') throw bad();
      return given;
    default: {
      const bytes = typeof given !== 'string' ? null : shape.name === 'uuid' ? parseUuid(given) : fromHex(given);
      if (bytes === null) throw bad();
      return bytes;
    }
  }
}

function ordinalOf(name: 'year' | 'month' | 'hour', label: string): number | null {
  if (name === 'year') return /^[0-9]{4}$/.test(label) ? Number(label) - 1970 : null;
  if (name === 'month') {
    const match = /^([0-9]{4})-([0-9]{2})$/.exec(label);
    const month = match === null ? 0 : Number(match[2]);
    return match === null || month < 1 || month > 12 ? null : (Number(match[1]) - 1970) * 12 + month - 1;
  }
  const match = /^([0-9]{4}-[0-9]{2}-[0-9]{2})-([0-9]{2})$/.exec(label);
  const day = match === null ? null : dayOf(match[1]);
  return match === null || day === null || Number(match[2]) > 23 ? null : day * 24 + Number(match[2]);
}

/** Day number of `2026-01-03`; null for a day that no calendar has. */
function dayOf(label: string): number | null {
  const match = /^([0-9]{4})-([0-9]{2})-([0-9]{2})$/.exec(label);
  if (match === null) return null;
  const [year, month, day] = [Number(match[1]), Number(match[2]), Number(match[3])];
  const number = dayOfCivil(year, month, day);
  const civil = civilOfDay(number);
  return civil.year === year && civil.month === month && civil.day === day ? number : null;
}

function integer(given: unknown, bad: () => SluiceError): bigint {
  if (typeof given === 'bigint') return given;
  if (typeof given === 'number' && Number.isSafeInteger(given)) return BigInt(given);
  if (typeof given === 'string' && INTEGER.test(given)) return BigInt(given);
  throw bad();
}

function int32(given: unknown, bad: () => SluiceError): number {
  const value = integer(given, bad);
  if (value < BigInt(INT32_MIN) || value > BigInt(INT32_MAX)) throw bad();
  return Number(value);
}
