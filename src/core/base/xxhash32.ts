/**
 * xxHash32 (the public algorithm of that name, seed 0): a checksum against accidents, read four bytes at a time. Not a
 * digest: whoever wants to can forge it.
 */

const PRIME_1 = 0x9e3779b1 | 0;
const PRIME_2 = 0x85ebca77 | 0;
const PRIME_3 = 0xc2b2ae3d | 0;
const PRIME_4 = 0x27d4eb2f;
const PRIME_5 = 0x165667b1;

/** Hash of the bytes, an unsigned 32-bit number. Little endian, as every runtime here is. */
export function xxhash32(input: Uint8Array): number {
  // Words are read through an Int32Array, which wants them aligned.
  const bytes = input.byteOffset % 4 === 0 ? input : input.slice();
  const { length } = bytes;
  const words = new Int32Array(bytes.buffer, bytes.byteOffset, length >>> 2);
  let at = 0;
  let hash: number;
  if (length >= 16) {
    let a = (PRIME_1 + PRIME_2) | 0;
    let b = PRIME_2;
    let c = 0;
    let d = -PRIME_1 | 0;
    for (const end = words.length & ~3; at < end; at += 4) {
      // Written out: a call each would cost more than the arithmetic where the compiler does not inline it.
      a = (a + Math.imul(words[at], PRIME_2)) | 0;
      b = (b + Math.imul(words[at + 1], PRIME_2)) | 0;
      c = (c + Math.imul(words[at + 2], PRIME_2)) | 0;
      d = (d + Math.imul(words[at + 3], PRIME_2)) | 0;
      a = Math.imul((a << 13) | (a >>> 19), PRIME_1);
      b = Math.imul((b << 13) | (b >>> 19), PRIME_1);
      c = Math.imul((c << 13) | (c >>> 19), PRIME_1);
      d = Math.imul((d << 13) | (d >>> 19), PRIME_1);
    }
    hash = (rotated(a, 1) + rotated(b, 7) + rotated(c, 12) + rotated(d, 18)) | 0;
  } else hash = PRIME_5;
  hash = (hash + length) | 0;
  for (; at < words.length; at++) {
    hash = Math.imul(rotated((hash + Math.imul(words[at], PRIME_3)) | 0, 17), PRIME_4);
  }
  for (let i = 4 * at; i < length; i++) {
    hash = Math.imul(rotated((hash + Math.imul(bytes[i], PRIME_5)) | 0, 11), PRIME_1);
  }
  hash = Math.imul(hash ^ (hash >>> 15), PRIME_2);
  hash = Math.imul(hash ^ (hash >>> 13), PRIME_3);
  return (hash ^ (hash >>> 16)) >>> 0;
}

function rotated(value: number, bits: number): number {
  return (value << bits) | (value >>> (32 - bits));
}
