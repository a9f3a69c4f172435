import {
  constants,
  createZstdCompress,
  deflateRawSync,
  inflateRawSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import type { Compress, Decompress, Deflate } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { ZSTD_INPUT_BYTES_MAX } from '../core/base/limits.ts';

// The checksum is not measurable beside the compression, and without it a flipped byte decompresses without an error.
const PARAMS = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 };

/** The synchronous core of a zlib stream, which Node and workerd share but the type declarations leave out. */
interface ChunkProcessor {
  _processChunk(chunk: Uint8Array, flush: number): Uint8Array;
}

/**
 * One zstd frame of level 3 with a content checksum.
 *
 * workerd before 1.20261117 throws when the output of the one-shot call passes 40,960 bytes, whatever its
 * `chunkSize`. Larger input takes the stream's synchronous core with room for the whole output in one chunk (the
 * bound of ZSTD_compressBound, rounded up), which is right there too and costs a fresh compressor.
 */
export const compressZstd: Compress = (bytes) => {
  if (bytes.length <= ZSTD_INPUT_BYTES_MAX) return zstdCompressSync(bytes, { params: PARAMS });
  const chunkSize = bytes.length + (bytes.length >>> 7) + 512;
  const stream = createZstdCompress({ chunkSize, params: PARAMS }) as unknown as ChunkProcessor;
  return stream._processChunk(bytes, constants.ZSTD_e_end);
};

/**
 * Decompresses one frame of exactly `length` bytes. Errors: corrupt `zstd-corrupt` when the input is damaged, cut
 * short, or holds another number of bytes. The output is capped at `length`, so a bomb costs no memory.
 */
export const decompressZstd: Decompress = (bytes, length) => {
  let out: Uint8Array;
  try {
    // zlib wants a positive cap; an empty frame still has to decode to nothing.
    out = zstdDecompressSync(bytes, { maxOutputLength: Math.max(length, 1) });
  } catch (error) {
    throw corrupt('zstd-corrupt', `zstd frame: does not decode to ${length} bytes`, { length }, error);
  }
  if (out.length !== length) {
    throw corrupt('zstd-corrupt', `zstd frame: ${length} bytes expected, found ${out.length}`, { length });
  }
  return out;
};

/** Raw deflate, as Avro's `deflate` codec wants it. `inflate` throws corrupt `deflate-corrupt` on damage or excess. */
export const deflateRaw: Deflate = {
  deflate: (bytes) => deflateRawSync(bytes),
  inflate: (bytes, lengthMax) => {
    try {
      return inflateRawSync(bytes, { maxOutputLength: Math.max(lengthMax, 1) });
    } catch (error) {
      throw corrupt(
        'deflate-corrupt',
        `deflate block: does not inflate within ${lengthMax} bytes`,
        { lengthMax },
        error,
      );
    }
  },
};
