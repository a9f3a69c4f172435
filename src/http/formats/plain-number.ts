/** Powers of ten that a double holds exactly. */
const POWERS = Array.from({ length: 16 }, (_, exponent) => 10 ** exponent);

/**
 * The number in `text[from .. to]` when it is written plainly: an optional minus, at most 15 digits without idle zeros in
 * front, no exponent. NaN for anything else, numbers too.
 *
 * Exact, without making a text of it: 15 digits are a whole number that a double holds, so is the power of ten behind
 * the point, and one division rounds once, to the double nearest to what was written.
 */
export function plainNumber(text: string, from: number, to: number): number {
  const isNegative = text.charCodeAt(from) === 0x2d;
  const start = isNegative ? from + 1 : from;
  if (to - start < 1 || to - start > 16) return Number.NaN;
  let digits = 0;
  let point = -1;
  for (let at = start; at < to; at++) {
    const digit = text.charCodeAt(at) - 0x30;
    if (digit >= 0 && digit <= 9) digits = digits * 10 + digit;
    else if (digit === -2 && point < 0) point = at;
    else return Number.NaN;
  }
  const whole = (point < 0 ? to : point) - start;
  if (whole === 0 || point === to - 1 || (whole > 1 && text.charCodeAt(start) === 0x30)) return Number.NaN;
  // Sixteen places are fifteen digits and a point, or too many.
  if (point < 0 && to - start > 15) return Number.NaN;
  const value = point < 0 ? digits : digits / POWERS[to - point - 1];
  return isNegative ? -value : value;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** True for a number as JSON writes it. */
export function isJsonNumber(text: string): boolean {
  return JSON_NUMBER.test(text);
}
