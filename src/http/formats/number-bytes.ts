const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;

/** Powers of ten that a double holds. */
const POWERS = Array.from({ length: 23 }, (_, exponent) => 10 ** exponent);

/** Digits of each half of a number: 18 together, and `head` times 10^9 is still exact. */
const HALF_DIGITS = 9;

/**
 * Reads a JSON number out of bytes, rounded to the nearest double as everywhere, without a text of it. One object for all
 * numbers, which tells of the one read last: an object a number would cost as much as the number.
 */
export class NumberReader {
  value = 0;
  /** False when `value` was not worked out: an exponent, too many digits, or two doubles are about as near. */
  isKnown = false;
  /** Significant digits, zeros at the end included. */
  digits = 0;

  /** Where the number ends that begins at `from`; negative when it is none by the grammar of JSON. */
  read(bytes: Uint8Array, from: number): number {
    let at = bytes[from] === MINUS ? from + 1 : from;
    let head = 0;
    let tail = 0;
    let digits = 0;
    let decimals = 0;
    let digit = bytes[at] - ZERO;
    if (!(digit >= 0 && digit <= 9)) return -1;
    if (digit === 0) digit = bytes[++at] - ZERO;
    else {
      for (; digit >= 0 && digit <= 9; digit = bytes[++at] - ZERO) {
        if (digits < HALF_DIGITS) head = head * 10 + digit;
        else if (digits < 2 * HALF_DIGITS) tail = tail * 10 + digit;
        digits++;
      }
    }
    // A zero in front of other digits.
    if (digits === 0 && digit >= 0 && digit <= 9) return -1;
    if (bytes[at] === POINT) {
      const point = at;
      for (digit = bytes[++at] - ZERO; digit >= 0 && digit <= 9; digit = bytes[++at] - ZERO) {
        if (digits === 0 && digit === 0) continue;
        if (digits < HALF_DIGITS) head = head * 10 + digit;
        else if (digits < 2 * HALF_DIGITS) tail = tail * 10 + digit;
        digits++;
      }
      decimals = at - point - 1;
      if (decimals === 0) return -1;
    }
    this.digits = digits;
    this.isKnown = false;
    if ((bytes[at] | 0x20) === 0x65) return endOfExponent(bytes, at + 1);
    if (digits <= 2 * HALF_DIGITS && decimals < POWERS.length) {
      // Exact, since `head` times 5^9 is below 2^53.
      const high = digits > HALF_DIGITS ? head * POWERS[digits - HALF_DIGITS] : head;
      const value = digits <= 15 ? (high + tail) / POWERS[decimals] : quotient(high, tail, POWERS[decimals]);
      this.value = bytes[from] === MINUS ? -value : value;
      this.isKnown = !Number.isNaN(value);
    }
    return at;
  }
}

function endOfExponent(bytes: Uint8Array, from: number): number {
  let at = from;
  if (bytes[at] === 0x2b || bytes[at] === MINUS) at++;
  const first = at;
  while (bytes[at] >= ZERO && bytes[at] <= ZERO + 9) at++;
  return at === first ? -1 : at;
}

/** Splits a double into two halves of 26 bits. */
const SPLITTER = 2 ** 27 + 1;

/** What the correction of a quotient may be wrong by: eight times the most that its rounding comes to. */
const DOUBT = 2 ** -48;

/**
 * The double nearest to (high + low) / power, all three whole numbers that doubles hold, `low` the smaller one; NaN when
 * that is not certain. The quotient of the rounded sum is corrected by its remainder, which is worked out exactly
 * (Dekker 1971); that is the answer unless a boundary between two doubles lies within the doubt about the correction.
 */
function quotient(high: number, low: number, power: number): number {
  const sum = high + low;
  const lost = low - (sum - high);
  const about = sum / power;
  const product = about * power;
  const aboutHigh = upperHalf(about);
  const aboutLow = about - aboutHigh;
  const powerHigh = upperHalf(power);
  const powerLow = power - powerHigh;
  const productLost =
    aboutHigh * powerHigh - product + aboutHigh * powerLow + aboutLow * powerHigh + aboutLow * powerLow;
  const correction = (sum - product - productLost + lost) / power;
  const nearest = about + correction * (1 - DOUBT);
  return nearest === about + correction * (1 + DOUBT) ? nearest : Number.NaN;
}

function upperHalf(value: number): number {
  const scaled = SPLITTER * value;
  return scaled - (scaled - value);
}
