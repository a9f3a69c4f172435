import { castLong } from '../../core/columns/casts.ts';
import { scaledInteger } from '../../core/columns/decimals.ts';
import { Misfit, markedNumber } from '../../core/columns/fault.ts';
import { guessOf, joinedGuess, NO_GUESS, type NumberRule, typeOfGuess } from '../../core/columns/guess.ts';
import { EPOCH_EXPONENT, type EpochUnit, parseDate, parseTimestamp } from '../../core/columns/times.ts';
import type { Type } from '../../core/iceberg/types.ts';
import { isJsonNumber } from '../formats/plain-number.ts';

/** The type proposed for a column, and why. */
export interface ProposedType {
  type: Type;
  /** What its numbers count, for a timestamp that comes as numbers. */
  unit: EpochUnit | null;
  because: string;
}

/** How values of a format tell their types. `text`: all of them are text (CSV). */
export type ValueRule = NumberRule | 'text';

/**
 * The type of a column by its values. Unlike the type of a column that comes with rows, it is looked at by a person before it
 * counts: so text that is a time throughout makes a time.
 */
export function proposedType(name: string, all: readonly unknown[], rule: ValueRule): ProposedType {
  const values = all.filter((value) => value !== null && value !== undefined && value !== '');
  if (values.length === 0)
    return { type: 'string', unit: null, because: 'no value in the sample; text takes anything' };
  const simple = rule === 'text' ? textType(name, values as string[]) : valueType(name, values, rule);
  if (simple !== null) return simple;
  const type = nestedType(values, rule === 'typed' ? 'typed' : 'json');
  if (type !== null) return { type, unit: null, because: 'what is in the lists and objects of the sample' };
  return { type: 'string', unit: null, because: 'values are of several types: those that are no text will be refused' };
}

function textType(name: string, values: readonly string[]): ProposedType | null {
  if (values.every((value) => /^(true|True|TRUE|false|False|FALSE)$/.test(value))) return plain('boolean');
  if (values.every(isJsonNumber)) return numberType(name, values);
  return stringType(values);
}

function valueType(name: string, values: readonly unknown[], rule: NumberRule): ProposedType | null {
  if (values.every((value) => typeof value === 'boolean')) return plain('boolean');
  if (values.every((value) => typeof value === 'string' && markedNumber(value) === null)) {
    return stringType(values as string[]);
  }
  if (rule === 'typed') {
    if (values.every((value) => typeof value === 'bigint')) return numberType(name, values.map(String));
    return values.every((value) => typeof value === 'number') ? plain('double', 'floats') : null;
  }
  const digits = values.map((value) => {
    if (typeof value === 'number') return String(value);
    return typeof value === 'string' ? markedNumber(value) : null;
  });
  return digits.every((one) => one !== null) ? numberType(name, digits as string[]) : null;
}

function plain(type: string, because = `all values are ${type}`): ProposedType {
  return { type, unit: null, because };
}

/** Numbers by their digits. */
function numberType(name: string, digits: readonly string[]): ProposedType {
  const whole = digits.every((one) => /^-?\d+$/.test(one));
  if (whole && digits.every((one) => !(castLong(one) instanceof Misfit))) {
    const unit = TIME_NAME.test(name) ? unitOf(digits) : null;
    if (unit === null) return plain('long', 'whole numbers of 64 bits');
    const because = `named like a time, and all values are times of our age, counted in ${unit}`;
    return { type: 'timestamptz', unit, because };
  }
  const scale = Math.max(...digits.map((one) => /^-?\d+(?:\.(\d+))?$/.exec(one)?.[1]?.length ?? (whole ? 0 : 99)));
  const most = Math.max(...digits.map((one) => one.replace('-', '').split('.')[0].length)) + scale;
  if (most <= 38 && (whole || !digits.every((one) => isDouble(one, scale)))) {
    return plain(`decimal(38, ${scale})`, `digits that a double does not hold, at most ${scale} behind the point`);
  }
  return plain(
    'double',
    'numbers with a fraction or an exponent; a decimal would keep their digits as they are written',
  );
}

/** True when these digits are what the nearest double is written as: so are nearly all numbers that programs write. */
function isDouble(digits: string, scale: number): boolean {
  return scaledInteger(digits, scale) === scaledInteger(String(Number(digits)), scale);
}

/** Names of columns that hold a time. */
const TIME_NAME = /(^|_)(time|timestamp|ts|date|datetime|at|epoch|when)$|(time|timestamp|date)(_?(utc|ms|us|ns|s))?$/i;

/** The one unit in which all are times from 1990 to 2100; null: there is none. */
function unitOf(digits: readonly string[]): EpochUnit | null {
  for (const unit of ['s', 'ms', 'us', 'ns'] as const) {
    const scale = 10 ** (EPOCH_EXPONENT.s - EPOCH_EXPONENT[unit]);
    if (digits.every((one) => Number(one) >= 631_152_000 * scale && Number(one) < 4_102_444_800 * scale)) return unit;
  }
  return null;
}

const ZONE = /([zZ]|[+-]\d\d(:?\d\d)?)$/;

function stringType(values: readonly string[]): ProposedType {
  if (values.every((value) => typeof parseDate(value) === 'number')) return plain('date', 'all texts are dates');
  const isTime = (value: string) => value.length > 10 && typeof parseTimestamp(value) !== 'string';
  if (!values.every(isTime)) return plain('string', 'texts');
  const zoned = values.filter((value) => ZONE.test(value.slice(11))).length;
  if (zoned === 0) return plain('timestamp', 'all texts are times without a zone');
  const rest = zoned === values.length ? '' : '; those without are taken as UTC';
  return plain('timestamptz', `all texts are times with a zone${rest}`);
}

function nestedType(values: readonly unknown[], rule: NumberRule): Type | null {
  let guess = NO_GUESS;
  for (const value of values) {
    const one = guessOf(value, rule);
    const both = one instanceof Misfit ? null : joinedGuess(guess, one, rule);
    if (both === null) return null;
    guess = both;
  }
  return typeOfGuess(guess, { next: 1 });
}
