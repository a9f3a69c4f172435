import { type EpochUnit, epochMicros } from '../../core/columns/times.ts';

/**
 * Timestamps of points. A client that posts seconds as nanoseconds, or the other way round, gets no error from a parser:
 * its points only lie in January 1970 or in the year 55,000. So a time that a table cannot hold is refused, and so is one
 * that lies in early 1970 as it was posted and in our time if its digits were of a coarser unit.
 */

const UNITS: readonly EpochUnit[] = ['ns', 'us', 'ms', 's'];
/** Years 2000 to 2100 in seconds: what is taken for our time. */
const OURS_MIN_S = 946_684_800n;
const OURS_MAX_S = 4_102_444_800n;
const OURS_MIN_MICROS = Number(OURS_MIN_S) * 1e6;
const OURS_MAX_MICROS = Number(OURS_MAX_S) * 1e6;
const PER_SECOND: Readonly<Record<EpochUnit, bigint>> = { ns: 1_000_000_000n, us: 1_000_000n, ms: 1000n, s: 1n };

export type PointTime = { ok: true; micros: number | bigint } | { ok: false; problem: string };

/** Microseconds since 1970, floored, of the digits of a timestamp. */
export function pointTime(digits: string, unit: EpochUnit): PointTime {
  const value = BigInt(digits);
  const micros = epochMicros(value, unit);
  const meant = UNITS.find((other) => other !== unit && isOurs(value, other));
  if (micros === 'out-of-range') {
    const hint = meant === undefined ? '' : `; in ${meant} it would be of our time`;
    return { ok: false, problem: `in ${unit} is outside the years 0001 to 9999${hint}` };
  }
  // Of a finer unit it is no mistake: those are the years behind 9999.
  if (meant !== undefined && PER_SECOND[meant] < PER_SECOND[unit] && !isOurs(value, unit)) {
    return {
      ok: false,
      problem: `in ${unit} is in early 1970, and in ${meant} it would be of our time: give precision`,
    };
  }
  return { ok: true, micros: Number.isSafeInteger(Number(micros)) ? Number(micros) : micros };
}

/**
 * The same for what nearly every point has, a time of ours with few enough digits, without making a bigint of it. NaN for
 * any other.
 */
export function microsAt(text: string, from: number, to: number, unit: EpochUnit): number {
  const end = unit === 'ns' ? to - 3 : to;
  if (end - from < 1 || end - from > 16) return Number.NaN;
  let value = 0;
  for (let at = from; at < end; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit < 0 || digit > 9) return Number.NaN;
    value = value * 10 + digit;
  }
  const micros = unit === 's' ? value * 1e6 : unit === 'ms' ? value * 1e3 : value;
  return micros >= OURS_MIN_MICROS && micros <= OURS_MAX_MICROS ? micros : Number.NaN;
}

function isOurs(value: bigint, unit: EpochUnit): boolean {
  return value >= OURS_MIN_S * PER_SECOND[unit] && value <= OURS_MAX_S * PER_SECOND[unit];
}
