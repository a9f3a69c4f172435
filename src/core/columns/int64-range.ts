/** The least and the largest of some int64 values, as int32 halves. */
export interface Int64Range {
  minLo: number;
  minHi: number;
  maxLo: number;
  maxHi: number;
}

const SIGN = -2_147_483_648;

/**
 * Range of the values behind (lo, hi) pairs, those of null rows left out; null when there are none.
 *
 * Everything stays within int32, where the engine is fast: low halves, which are unsigned, are compared with their sign
 * bit turned.
 */
export function int64Range(pairs: Int32Array, validity: Uint8Array | null): Int64Range | null {
  const rows = pairs.length / 2;
  let first = 0;
  if (validity !== null) while (first < rows && validity[first] === 0) first++;
  if (first >= rows) return null;
  let minLo = pairs[2 * first] ^ SIGN;
  let minHi = pairs[2 * first + 1];
  let maxLo = minLo;
  let maxHi = minHi;
  for (let row = first + 1; row < rows; row++) {
    if (validity !== null && validity[row] === 0) continue;
    const lo = pairs[2 * row] ^ SIGN;
    const hi = pairs[2 * row + 1];
    if (hi < minHi || (hi === minHi && lo < minLo)) {
      minLo = lo;
      minHi = hi;
    } else if (hi > maxHi || (hi === maxHi && lo > maxLo)) {
      maxLo = lo;
      maxHi = hi;
    }
  }
  return { minLo: minLo ^ SIGN, minHi, maxLo: maxLo ^ SIGN, maxHi };
}

/** Halves of max - min, unsigned. */
export function int64Span({ minLo, minHi, maxLo, maxHi }: Int64Range): { lo: number; hi: number } {
  const borrow = maxLo >>> 0 < minLo >>> 0 ? 1 : 0;
  return { lo: (maxLo - minLo) >>> 0, hi: (maxHi - minHi - borrow) >>> 0 };
}

/** `lows[i]` and `highs[i]` become the halves of value - min, or of max - value. Of null rows they are anything. */
export function int64Differences(
  pairs: Int32Array,
  range: Int64Range,
  from: 'min' | 'max',
  lows: Uint32Array,
  highs: Uint32Array,
): void {
  const rows = pairs.length / 2;
  if (from === 'min') {
    const { minLo, minHi } = range;
    const least = minLo ^ SIGN;
    for (let row = 0; row < rows; row++) {
      const lo = pairs[2 * row];
      lows[row] = (lo - minLo) | 0;
      highs[row] = (pairs[2 * row + 1] - minHi - ((lo ^ SIGN) < least ? 1 : 0)) | 0;
    }
  } else {
    const { maxLo, maxHi } = range;
    const largest = maxLo ^ SIGN;
    for (let row = 0; row < rows; row++) {
      const lo = pairs[2 * row];
      lows[row] = (maxLo - lo) | 0;
      highs[row] = (maxHi - pairs[2 * row + 1] - (largest < (lo ^ SIGN) ? 1 : 0)) | 0;
    }
  }
}
