import { describe, expect, test } from 'vitest';
import { equalBytes } from '../../src/core/base/bytes.ts';
import { AVRO_INFLATED_BYTES_MAX } from '../../src/core/base/limits.ts';
import { compressZstd, decompressZstd, deflateRaw } from '../../src/platform/zlib.ts';

/** The runtime's codecs are not Node's: they have bounds of their own on what an option may say. */
describe('codecs in the runtime', () => {
  const bytes = Uint8Array.from({ length: 50_000 }, (_, index) => (index * index) >>> 7);

  test('inflate: takes the largest bound that the service asks for', () => {
    for (const lengthMax of [bytes.length, AVRO_INFLATED_BYTES_MAX]) {
      expect(equalBytes(deflateRaw.inflate(deflateRaw.deflate(bytes), lengthMax), bytes)).toBe(true);
    }
  });

  test('inflate: more than the bound is corrupt', () => {
    const block = deflateRaw.deflate(bytes);
    expect(() => deflateRaw.inflate(block, bytes.length - 1)).toThrow(/deflate block/);
  });

  test('zstd: output of any size around the runtime’s buffer comes back', () => {
    for (const length of [0, 1, 40_959, 40_960, 40_961, 50_000]) {
      const piece = bytes.subarray(0, length);
      expect(equalBytes(decompressZstd(compressZstd(piece), length), piece), String(length)).toBe(true);
    }
  });
});
