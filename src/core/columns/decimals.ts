/** Decimal text to integers, without a double on the way. */

const DECIMAL_TEXT = /^([+-]?)(\d+)(?:\.(\d+))?(?:[eE]([+-]?\d{1,5}))?$/;

/** Longest decimal text that is looked at: 38 digits of precision and many idle zeros fit. */
const DECIMAL_TEXT_LENGTH_MAX = 400;
/** Digits of the largest result. A decimal has 38 at most, a time in microseconds 18. */
const RESULT_DIGITS_MAX = 40;

/**
 * The number times 10^scale as an integer: "12.50" with scale 2 is 1250n.
 *
 * What does not come out whole is `inexact`, or is floored. `malformed`: not a decimal number. `out-of-range`: more
 * digits than any column holds.
 */
export function scaledInteger(
  text: string,
  scale: number,
  rest: 'refuse' | 'floor' = 'refuse',
): bigint | 'malformed' | 'inexact' | 'out-of-range' {
  if (text.length > DECIMAL_TEXT_LENGTH_MAX) return /^[+-]?[\d.]/.test(text) ? 'out-of-range' : 'malformed';
  const match = DECIMAL_TEXT.exec(text);
  if (match === null) return 'malformed';
  const [, sign, whole, fraction = '', exponent = '0'] = match;
  const digits = (whole + fraction).replace(/^0+/, '');
  if (digits === '') return 0n;
  const shift = Number(exponent) - fraction.length + scale;
  if (digits.length + shift > RESULT_DIGITS_MAX) return 'out-of-range';
  const negative = sign === '-';
  let magnitude: bigint;
  if (shift >= 0) magnitude = BigInt(digits) * 10n ** BigInt(shift);
  else {
    const kept = Math.max(0, digits.length + shift);
    magnitude = BigInt(digits.slice(0, kept) || '0');
    if (/[1-9]/.test(digits.slice(kept))) {
      if (rest === 'refuse') return 'inexact';
      if (negative) magnitude++;
    }
  }
  return negative ? -magnitude : magnitude;
}

/** Powers of ten that a double holds exactly. */
const POWERS = Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);

/**
 * `value` times 10^scale, when at most 15 digits are in play; NaN otherwise. Exact: a decimal number of up to 15 digits
 * has a double of its own, so the one that divides back to `value` is the one that was written.
 */
export function scaledNumber(value: number, scale: number): number {
  if (scale > 15) return Number.NaN;
  const scaled = Math.round(value * POWERS[scale]);
  return Math.abs(scaled) < 1e15 && scaled / POWERS[scale] === value ? scaled : Number.NaN;
}
