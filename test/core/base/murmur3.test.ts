import { describe, expect, it } from 'vitest';
import { utf8 } from '../../../src/core/base/bytes.ts';
import { murmur3 } from '../../../src/core/base/murmur3.ts';

describe('murmur3', () => {
  it('hashes every tail length as the reference does', () => {
    expect(murmur3(utf8(''))).toBe(0);
    expect(murmur3(utf8('a'))).toBe(0x3c2569b2);
    expect(murmur3(utf8('ab'))).toBe(0x9bbfd75f | 0);
    expect(murmur3(utf8('abc'))).toBe(0xb3dd93fa | 0);
    expect(murmur3(utf8('abcd'))).toBe(0x43ed676a);
    expect(murmur3(utf8('iceberg'))).toBe(1210000089);
  });
});
