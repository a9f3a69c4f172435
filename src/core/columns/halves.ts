/** IEEE 754 binary16 numbers, each of which a float holds. */
export function halvesOf(halves: Uint16Array): Float32Array {
  const out = new Float32Array(halves.length);
  for (let i = 0; i < out.length; i++) {
    const size = magnitude((halves[i] >> 10) & 0x1f, halves[i] & 0x3ff);
    out[i] = halves[i] & 0x8000 ? -size : size;
  }
  return out;
}

function magnitude(exponent: number, fraction: number): number {
  if (exponent === 31) return fraction === 0 ? Number.POSITIVE_INFINITY : Number.NaN;
  return exponent === 0 ? fraction * 2 ** -24 : (1024 + fraction) * 2 ** (exponent - 25);
}
