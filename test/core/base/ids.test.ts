import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { fromHex, hex } from '../../../src/core/base/bytes.ts';
import type { Digest } from '../../../src/core/base/codecs.ts';
import {
  contentName,
  formatUuid,
  parseUuid,
  snapshotIdOf,
  syncMarker,
  uuidV4,
  uuidV7,
} from '../../../src/core/base/ids.ts';

const digest: Digest = (parts) => {
  const hash = createHash('sha256');
  for (const part of parts) hash.update(part);
  return new Uint8Array(hash.digest());
};

describe('uuid', () => {
  it('version 7 carries the time in front, as in RFC 9562', () => {
    const text = uuidV7(0x017f22e279b0, fromHex('0cc318c4dc0c0c07398f')!);
    expect(text).toBe('017f22e2-79b0-7cc3-98c4-dc0c0c07398f');
  });
  it('later times sort later', () => {
    const random = new Uint8Array(10).fill(255);
    expect(uuidV7(1_700_000_000_000, random) < uuidV7(1_700_000_000_001, new Uint8Array(10))).toBe(true);
  });
  it('version 4 has its marks', () => {
    expect(uuidV4(new Uint8Array(16))).toBe('00000000-0000-4000-8000-000000000000');
  });
  it('text and bytes turn into each other, any case', () => {
    const text = 'f79c3e09-677c-4bbd-a479-3f349cb785e7';
    expect(formatUuid(parseUuid(text.toUpperCase())!)).toBe(text);
    for (const bad of ['', text.slice(1), text.replaceAll('-', ''), `${text}0`, text.replace('f', 'g')]) {
      expect(parseUuid(bad)).toBe(null);
    }
  });
});

describe('snapshotIdOf', () => {
  it('stays positive and below 2^53 at both ends', () => {
    expect(snapshotIdOf(new Uint8Array(8))).toBe(1n);
    expect(snapshotIdOf(new Uint8Array(8).fill(255))).toBe(2n ** 53n - 1n);
    expect(snapshotIdOf(Uint8Array.of(0, 0, 0, 0, 0, 1, 2))).toBe(258n);
  });
});

describe('derived names', () => {
  it('a sync marker depends on seed and label and nothing else', () => {
    const seed = Uint8Array.of(1, 2, 3);
    expect(syncMarker(seed, 'a', digest)).toEqual(syncMarker(seed, 'a', digest));
    expect(syncMarker(seed, 'a', digest)).toHaveLength(16);
    expect(hex(syncMarker(seed, 'a', digest))).not.toBe(hex(syncMarker(seed, 'b', digest)));
    expect(hex(syncMarker(seed, 'a', digest))).not.toBe(hex(syncMarker(Uint8Array.of(1, 2), 'a', digest)));
  });
  it('a content name follows the bytes', () => {
    const a = contentName(1_700_000_000_000, digest([Uint8Array.of(1)]));
    expect(a).toBe(contentName(1_700_000_000_000, digest([Uint8Array.of(1)])));
    expect(a).not.toBe(contentName(1_700_000_000_000, digest([Uint8Array.of(2)])));
    expect(a).toMatch(/^018bcfe5-6800-7/);
  });
});
