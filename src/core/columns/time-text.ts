import { civilOfDay, pad } from '../iceberg/calendar.ts';
import { int32Pairs } from './columns.ts';
import { DAY_MICROS } from './times.ts';

/** Days whose microseconds are safe integers: years 1685 to 2255. */
const SAFE_DAY_MAX = Math.floor(Number.MAX_SAFE_INTEGER / DAY_MICROS) - 1;

/** `2026-01-03`; years that other writers put beyond 0001 to 9999 as ISO 8601 has them: `+012026-01-03`. */
export function dayText(day: number): string {
  const { year, month, day: date } = civilOfDay(day);
  const digits = year >= 1 && year <= 9999 ? pad(year, 4) : `${year < 0 ? '-' : '+'}${pad(Math.abs(year), 6)}`;
  return `${digits}-${pad(month, 2)}-${pad(date, 2)}`;
}

/** `12:34:56.789012`, always with six digits. */
export function timeOfDayText(micros: number): string {
  const seconds = Math.floor(micros / 1_000_000);
  const hour = Math.floor(seconds / 3600);
  const minute = Math.floor(seconds / 60) % 60;
  return `${pad(hour, 2)}:${pad(minute, 2)}:${pad(seconds % 60, 2)}.${pad(micros % 1_000_000, 6)}`;
}

/** `2026-01-03T12:34:56.789012` of microseconds since 1970. */
export function timestampText(micros: bigint): string {
  return clock()(micros);
}

/** Texts of the rows of a column of microseconds. Rows mostly share the day, and the calendar costs divisions. */
export function timestampTexts(values: BigInt64Array): (row: number) => string {
  const pairs = int32Pairs(values);
  const textOf = clock();
  const largest = SAFE_DAY_MAX * DAY_MICROS;
  return (row) => {
    const micros = pairs[2 * row + 1] * 2 ** 32 + (pairs[2 * row] >>> 0);
    return textOf(micros < largest && micros > -largest ? micros : values[row]);
  };
}

function clock(): (micros: number | bigint) => string {
  let lastDay = Number.NaN;
  let date = '';
  return (micros) => {
    const { day, ofDay } = split(micros);
    if (day !== lastDay) {
      lastDay = day;
      date = dayText(day);
    }
    return `${date}T${timeOfDayText(ofDay)}`;
  };
}

function split(micros: number | bigint): { day: number; ofDay: number } {
  if (typeof micros === 'number') {
    const day = Math.floor(micros / DAY_MICROS);
    return { day, ofDay: micros - day * DAY_MICROS };
  }
  const length = BigInt(DAY_MICROS);
  const ofDay = ((micros % length) + length) % length;
  return { day: Number((micros - ofDay) / length), ofDay: Number(ofDay) };
}
