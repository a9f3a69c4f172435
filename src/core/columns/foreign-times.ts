import { type Column, int32Pairs } from './columns.ts';
import { Misfit } from './fault.ts';
import type { ReportMisfit } from './foreign-column.ts';
import { type EpochUnit, TIMESTAMP_MICROS_MAX, TIMESTAMP_MICROS_MIN } from './times.ts';

const WORD = 4_294_967_296;
/** High halves of the first and the last microsecond that a table holds: strictly between them all is well. */
const HIGH_MIN = Number(TIMESTAMP_MICROS_MIN >> 32n);
const HIGH_MAX = Number(TIMESTAMP_MICROS_MAX >> 32n);

/**
 * Times since 1970 in a unit as microseconds, floored, in arithmetic on halves: no bigint, and no double beyond 2^53. A view
 * where they are microseconds already and none is null.
 */
export function foreignTimestamps(
  given: BigInt64Array,
  unit: EpochUnit,
  validity: Uint8Array | null,
  report: ReportMisfit,
): Column {
  const rows = given.length;
  const values = unit === 'us' && validity === null ? given : new BigInt64Array(rows);
  const source = int32Pairs(given);
  const pairs = int32Pairs(values);
  const factor = unit === 's' ? 1_000_000 : 1000;
  for (let row = 0; row < rows; row++) {
    if (validity !== null && validity[row] === 0) continue;
    let lo = source[2 * row] >>> 0;
    let hi = source[2 * row + 1];
    if (unit === 'ns') {
      const whole = Math.floor(hi / 1000);
      lo = Math.floor(((hi - whole * 1000) * WORD + lo) / 1000);
      hi = whole;
    } else if (unit !== 'us') {
      // Below 2^53 both: a factor of 20 bits, halves of 32.
      const product = lo * factor;
      const carry = Math.floor(product / WORD);
      lo = product - carry * WORD;
      hi = hi * factor + carry;
    }
    if (!(hi > HIGH_MIN && hi < HIGH_MAX) && !isInRange(hi, lo)) {
      report(row, new Misfit('out-of-range', 'must be in the years 0001 to 9999', given[row]));
      continue;
    }
    if (values === given) continue;
    pairs[2 * row] = lo;
    pairs[2 * row + 1] = hi;
  }
  return { kind: 'int64', values, validity };
}

/** `hi` may lie far beyond an int32. */
function isInRange(hi: number, lo: number): boolean {
  const micros = BigInt(hi) * 4_294_967_296n + BigInt(lo);
  return micros >= TIMESTAMP_MICROS_MIN && micros <= TIMESTAMP_MICROS_MAX;
}
