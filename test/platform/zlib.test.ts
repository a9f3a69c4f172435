import { randomBytes } from 'node:crypto';
import { zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../src/core/base/errors.ts';
import { ZSTD_INPUT_BYTES_MAX } from '../../src/core/base/limits.ts';
import { compressZstd, decompressZstd, deflateRaw } from '../../src/platform/zlib.ts';

const LENGTHS = [0, 1, 4096, 16_384, 32_768, 39_999, ZSTD_INPUT_BYTES_MAX, 40_001, 40_960, 65_536, 81_920, 1_000_000];

function typeOf(work: () => unknown): string {
  try {
    work();
  } catch (error) {
    return error instanceof SluiceError ? `${error.kind} ${error.type}` : String(error);
  }
  return 'no error';
}

describe('zstd: one frame that any decoder reads', () => {
  for (const [name, make] of [
    ['random bytes', (length: number) => new Uint8Array(randomBytes(length))],
    ['zeros', (length: number) => new Uint8Array(length)],
    ['noise of four bits', (length: number) => Uint8Array.from(randomBytes(length), (byte) => byte & 15)],
  ] as const) {
    test(`${name} of every length`, () => {
      for (const length of LENGTHS) {
        const bytes = make(length);
        const frame = compressZstd(bytes);
        expect(Buffer.compare(zstdDecompressSync(frame), bytes), `${length} by the runtime`).toBe(0);
        expect(Buffer.compare(decompressZstd(frame, length), bytes), `${length}`).toBe(0);
      }
    });
  }

  test('the output of the one-shot call stays below the bound of old runtimes', () => {
    expect(compressZstd(new Uint8Array(randomBytes(ZSTD_INPUT_BYTES_MAX))).length).toBeLessThan(40_960);
  });
});

describe('zstd: damaged input is refused', () => {
  for (const length of [1000, 100_000]) {
    test(`frame of ${length} bytes`, () => {
      const frame = compressZstd(new Uint8Array(randomBytes(length)));
      expect(typeOf(() => decompressZstd(frame, length + 1))).toBe('corrupt zstd-corrupt');
      expect(typeOf(() => decompressZstd(frame, length - 1))).toBe('corrupt zstd-corrupt');
      expect(typeOf(() => decompressZstd(frame.slice(0, -1), length))).toBe('corrupt zstd-corrupt');
      expect(typeOf(() => decompressZstd(frame.slice(1), length))).toBe('corrupt zstd-corrupt');
      const flipped = frame.slice();
      flipped[length >> 1] ^= 16;
      expect(typeOf(() => decompressZstd(flipped, length))).toBe('corrupt zstd-corrupt');
    });
  }

  test('two frames are not taken for one', () => {
    const frame = zstdCompressSync(new Uint8Array(100));
    expect(typeOf(() => decompressZstd(Buffer.concat([frame, frame]), 200))).toBe('corrupt zstd-corrupt');
  });

  test('a bomb is stopped at the expected length', () => {
    const bomb = compressZstd(new Uint8Array(64 * 1024 * 1024));
    expect(bomb.length).toBeLessThan(10_000);
    expect(typeOf(() => decompressZstd(bomb, 1000))).toBe('corrupt zstd-corrupt');
  });
});

describe('deflate: raw blocks', () => {
  test('what was deflated inflates, up to the bound', () => {
    for (const length of [0, 1, 65_536, 300_000]) {
      const bytes = new Uint8Array(randomBytes(length));
      const block = deflateRaw.deflate(bytes);
      expect(Buffer.compare(deflateRaw.inflate(block, length), bytes)).toBe(0);
      if (length > 0) expect(typeOf(() => deflateRaw.inflate(block, length - 1))).toBe('corrupt deflate-corrupt');
    }
  });

  test('damage and bombs are refused', () => {
    expect(typeOf(() => deflateRaw.inflate(Uint8Array.of(0xff, 0xff), 100))).toBe('corrupt deflate-corrupt');
    const bomb = deflateRaw.deflate(new Uint8Array(10_000_000));
    expect(typeOf(() => deflateRaw.inflate(bomb, 1000))).toBe('corrupt deflate-corrupt');
  });
});
