import { dayOfCivil } from '../iceberg/calendar.ts';

/**
 * Dates and times out of text, digit by digit: no Date, which knows only milliseconds and accepts much that is no time,
 * and no regular expression on the way of good values.
 *
 * All times are UTC microseconds. Digits finer than that are dropped, which floors also below 1970, since the fraction
 * counts upwards from its second. Years run from 0001 to 9999.
 */

export const DAY_MICROS = 86_400_000_000;
/** 0001-01-01 and 9999-12-31 */
export const DATE_DAYS_MIN = -719_162;
export const DATE_DAYS_MAX = 2_932_896;
/** 0001-01-01T00:00:00Z */
export const TIMESTAMP_MICROS_MIN = -62_135_596_800_000_000n;
/** 9999-12-31T23:59:59.999999Z */
export const TIMESTAMP_MICROS_MAX = 253_402_300_799_999_999n;
/** Days between which microseconds are safe integers whatever the time of day: years 1685 to 2255. */
const SAFE_DAY_MAX = Math.floor(Number.MAX_SAFE_INTEGER / DAY_MICROS) - 1;

/** Why a text is no time: its form, or a time that a table does not hold. */
export type TimeFault = 'malformed' | 'out-of-range';

const MONTH_DAYS = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];

/** Days since 1970-01-01 of `2026-01-03`. */
export function parseDate(text: string): number | TimeFault {
  if (text.length !== 10) return dateFault(text);
  const day = dayAt(text);
  return day === INVALID ? dateFault(text) : day;
}

/** Microseconds since midnight of `12:34`, `12:34:56` or `12:34:56.789`, with up to nine digits of a fraction. */
export function parseTime(text: string): number | TimeFault {
  const micros = timeOfDayAt(text, 0, text.length);
  return micros === INVALID ? 'malformed' : micros;
}

/**
 * Microseconds since 1970 of an ISO 8601 time: `2026-01-03T12:34:56.789Z`. The parts may be set apart by a space,
 * seconds may be missing, the zone is `Z`, `+hh`, `+hhmm` or `+hh:mm`, and a text without zone is UTC. A bigint beyond
 * the safe integers (before 1685, after 2255).
 */
export function parseTimestamp(text: string): number | bigint | TimeFault {
  const separator = text.charCodeAt(10);
  if (separator !== 84 && separator !== 32 && separator !== 116) return dateFault(text);
  const day = dayAt(text);
  if (day === INVALID) return dateFault(text);
  const { length } = text;
  let end = length;
  let offsetMinutes = 0;
  const last = text.charCodeAt(length - 1);
  if (last === 90 || last === 122) end = length - 1;
  else {
    const sign = signBefore(text, length);
    if (sign > 0) {
      offsetMinutes = offsetAt(text, sign);
      if (offsetMinutes === INVALID) return 'malformed';
      end = sign;
    }
  }
  const ofDay = timeOfDayAt(text, 11, end);
  if (ofDay === INVALID) return 'malformed';
  const micros = ofDay - offsetMinutes * 60_000_000;
  if (day < SAFE_DAY_MAX && day > -SAFE_DAY_MAX) return day * DAY_MICROS + micros;
  return inRange(BigInt(day) * BigInt(DAY_MICROS) + BigInt(micros));
}

/**
 * `parseTimestamp` of `2026-01-03T12:34:56.789Z`, the form that nearly all writers use, out of bytes without making a text
 * of them. NaN for anything else, be it a time or not.
 */
export function timestampAt(bytes: Uint8Array, from: number, to: number): number {
  const digits = to - from - 21;
  if (digits < -1 || digits === 0 || digits > 9 || bytes[to - 1] !== 90) return Number.NaN;
  if (bytes[from + 4] !== 45 || bytes[from + 7] !== 45 || bytes[from + 10] !== 84) return Number.NaN;
  if (bytes[from + 13] !== 58 || bytes[from + 16] !== 58) return Number.NaN;
  if (digits > 0 && bytes[from + 19] !== 46) return Number.NaN;
  const year = twoDigitsAt(bytes, from) * 100 + twoDigitsAt(bytes, from + 2);
  const day = dayOf(year, twoDigitsAt(bytes, from + 5), twoDigitsAt(bytes, from + 8));
  const hour = twoDigitsAt(bytes, from + 11);
  const minute = twoDigitsAt(bytes, from + 14);
  const second = twoDigitsAt(bytes, from + 17);
  if (!(day < SAFE_DAY_MAX && day > -SAFE_DAY_MAX && hour <= 23 && minute <= 59 && second <= 59)) return Number.NaN;
  let fraction = 0;
  for (let i = 0; i < digits; i++) {
    const digit = bytes[from + 20 + i] - 48;
    if (!(digit >= 0 && digit <= 9)) return Number.NaN;
    if (i < 6) fraction = fraction * 10 + digit;
  }
  for (let i = Math.max(0, digits); i < 6; i++) fraction *= 10;
  return day * DAY_MICROS + ((hour * 60 + minute) * 60 + second) * 1_000_000 + fraction;
}

/** The number in two bytes; NaN when they are no digits. */
function twoDigitsAt(bytes: Uint8Array, at: number): number {
  const tens = bytes[at] - 48;
  const ones = bytes[at + 1] - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** The time itself when a table may hold it. */
export function inRange(micros: bigint): bigint | 'out-of-range' {
  return micros >= TIMESTAMP_MICROS_MIN && micros <= TIMESTAMP_MICROS_MAX ? micros : 'out-of-range';
}

/** Marks what is not a number in the helpers below: no day, time or offset is that large. */
const INVALID = 1e15;

/** The date last read, as a number of its digits, and its day: rows mostly share the day, and the calendar costs divisions. */
let lastDate = -1;
let lastDay = 0;

/** Day number of the date in the first ten characters. */
function dayAt(text: string): number {
  if (text.charCodeAt(4) !== 45 || text.charCodeAt(7) !== 45) return INVALID;
  return dayOf(twoDigits(text, 0) * 100 + twoDigits(text, 2), twoDigits(text, 5), twoDigits(text, 8));
}

/** Day number of a date, INVALID when there is no such day. */
function dayOf(year: number, month: number, day: number): number {
  const date = year * 10_000 + month * 100 + day;
  if (date === lastDate) return lastDay;
  if (!(year >= 1 && year <= 9999 && month >= 1 && month <= 12 && day >= 1 && day <= 31)) return INVALID;
  if (day > 28 && day > MONTH_DAYS[month - 1] && !(month === 2 && day === 29 && isLeap(year))) return INVALID;
  lastDate = date;
  lastDay = dayOfCivil(year, month, day);
  return lastDay;
}

function isLeap(year: number): boolean {
  return year % 4 === 0 && (year % 100 !== 0 || year % 400 === 0);
}

/** Microseconds of `hh:mm[:ss[.fraction]]` in `text[from .. to]`. Leap seconds and 24:00 are refused. */
function timeOfDayAt(text: string, from: number, to: number): number {
  const length = to - from;
  if (length < 5 || text.charCodeAt(from + 2) !== 58) return INVALID;
  const hour = twoDigits(text, from);
  const minute = twoDigits(text, from + 3);
  if (!(hour <= 23 && minute <= 59)) return INVALID;
  const minutes = hour * 60 + minute;
  if (length === 5) return minutes * 60_000_000;
  if (length < 8 || text.charCodeAt(from + 5) !== 58) return INVALID;
  const second = twoDigits(text, from + 6);
  if (!(second <= 59)) return INVALID;
  const micros = (minutes * 60 + second) * 1_000_000;
  if (length === 8) return micros;
  const digits = length - 9;
  const mark = text.charCodeAt(from + 8);
  if (digits < 1 || digits > 9 || (mark !== 46 && mark !== 44)) return INVALID;
  let fraction = 0;
  for (let i = 0; i < digits; i++) {
    const digit = text.charCodeAt(from + 9 + i) - 48;
    if (!(digit >= 0 && digit <= 9)) return INVALID;
    if (i < 6) fraction = fraction * 10 + digit;
  }
  for (let i = digits; i < 6; i++) fraction *= 10;
  return micros + fraction;
}

/** Place of the sign that begins a zone at the end of the text; 0 when there is none. */
function signBefore(text: string, end: number): number {
  for (let at = end - 3; at >= end - 6 && at > 11; at--) {
    const code = text.charCodeAt(at);
    if (code === 43 || code === 45) return at;
  }
  return 0;
}

/** Minutes east of UTC of `+hh`, `+hhmm`, `+hh:mm`. */
function offsetAt(text: string, sign: number): number {
  const length = text.length - sign;
  const hours = twoDigits(text, sign + 1);
  let minutes = 0;
  if (length === 5) minutes = twoDigits(text, sign + 3);
  else if (length === 6 && text.charCodeAt(sign + 3) === 58) minutes = twoDigits(text, sign + 4);
  else if (length !== 3) return INVALID;
  if (!(hours <= 23 && minutes <= 59)) return INVALID;
  const offset = hours * 60 + minutes;
  return text.charCodeAt(sign) === 45 ? -offset : offset;
}

/** The number in two characters; NaN when they are no digits. */
function twoDigits(text: string, at: number): number {
  const tens = text.charCodeAt(at) - 48;
  const ones = text.charCodeAt(at + 1) - 48;
  return tens >= 0 && tens <= 9 && ones >= 0 && ones <= 9 ? tens * 10 + ones : Number.NaN;
}

/** A year before 0001 or after 9999 is a range fault, anything else a matter of form. */
function dateFault(text: string): TimeFault {
  return /^(0000-|[+-]\d{4,}-|\d{5,}-)/.test(text) ? 'out-of-range' : 'malformed';
}

export type EpochUnit = 's' | 'ms' | 'us' | 'ns';

/** Power of ten from the unit to microseconds. */
export const EPOCH_EXPONENT: Readonly<Record<EpochUnit, number>> = { s: 6, ms: 3, us: 0, ns: -3 };

/** Microseconds of a whole number of units since 1970, floored. Out of range outside the years 0001 to 9999. */
export function epochMicros(value: number | bigint, unit: EpochUnit): number | bigint | 'out-of-range' {
  const exponent = EPOCH_EXPONENT[unit];
  if (typeof value === 'number') {
    const micros = exponent >= 0 ? value * 10 ** exponent : Math.floor(value / 1000);
    if (Number.isSafeInteger(micros)) return micros;
  }
  const units = BigInt(value);
  if (exponent >= 0) return inRange(units * 10n ** BigInt(exponent));
  return inRange(units >= 0n ? units / 1000n : -((-units + 999n) / 1000n));
}
