/** MurmurHash3, x86, 32 bits, seed 0, as a signed integer. Iceberg's bucket transform is defined by it. */
export function murmur3(bytes: Uint8Array): number {
  const blocks = bytes.length & ~3;
  let h = 0;
  for (let i = 0; i < blocks; i += 4) {
    h ^= scramble(bytes[i] | (bytes[i + 1] << 8) | (bytes[i + 2] << 16) | (bytes[i + 3] << 24));
    h = (h << 13) | (h >>> 19);
    h = (Math.imul(h, 5) + 0xe6546b64) | 0;
  }
  let tail = 0;
  for (let i = bytes.length - 1; i >= blocks; i--) tail = (tail << 8) | bytes[i];
  if (blocks < bytes.length) h ^= scramble(tail);
  h ^= bytes.length;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}

function scramble(k: number): number {
  const mixed = Math.imul(k, 0xcc9e2d51);
  return Math.imul((mixed << 15) | (mixed >>> 17), 0x1b873593);
}
