import { expect, test } from 'vitest';
import { utf8 } from '../../../src/core/base/bytes.ts';
import { xxhash32 } from '../../../src/core/base/xxhash32.ts';

test.each([
  ['', 0x02cc5d05],
  ['a', 0x550d7456],
  ['abc', 0x32d153ff],
  ['Nobody inspects the spammish repetition', 0xe2293b2f],
])('xxhash32: published value of "%s"', (text, hash) => {
  expect(xxhash32(utf8(text))).toBe(hash);
});

test('xxhash32: an unaligned view hashes as its bytes do', () => {
  const bytes = Uint8Array.from({ length: 103 }, (_, i) => (i * 37) & 255);
  const shifted = new Uint8Array(200);
  for (let offset = 0; offset < 8; offset++) {
    shifted.set(bytes, offset);
    expect(xxhash32(shifted.subarray(offset, offset + bytes.length))).toBe(xxhash32(bytes));
  }
});
