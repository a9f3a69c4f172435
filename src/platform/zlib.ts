import {
  constants,
  createZstdCompress,
  createZstdDecompress,
  deflateRawSync,
  gunzipSync,
  inflateRawSync,
  zstdCompressSync,
  zstdDecompressSync,
} from 'node:zlib';
import type { Compress, Decompress, Deflate } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { ZSTD_INPUT_BYTES_MAX } from '../core/base/limits.ts';

// The checksum is not measurable beside the compression, and without it a flipped byte decompresses without an error.
const PARAMS = { [constants.ZSTD_c_compressionLevel]: 3, [constants.ZSTD_c_checksumFlag]: 1 };

/**
 * The synchronous core of a zlib stream, which Node and workerd share but the type declarations leave out. The
 * one-shot calls of workerd do not do for large input or output:
 *
 * - `zstdCompressSync` throws when its output passes 40,960 bytes (before 1.20261117);
 * - `zstdDecompressSync` throws when its output is exactly 40,960 bytes times a power of two (1.20261117.1 still);
 * - `maxOutputLength` is held against the capacity of a buffer that doubles, so it refuses output well below itself.
 */
interface ChunkProcessor {
  _processChunk(chunk: Uint8Array, flush: number): Uint8Array;
}

/** Room behind the expected end, so that the decoder sees the end of the frame within the first chunk. */
const SLACK = 64;

/**
 * One zstd frame of level 3 with a content checksum. Input above `ZSTD_INPUT_BYTES_MAX` takes the stream, with room
 * for the whole output in one chunk (the bound of ZSTD_compressBound, rounded up); it costs a fresh compressor.
 */
export const compressZstd: Compress = (bytes) => {
  if (bytes.length <= ZSTD_INPUT_BYTES_MAX) return zstdCompressSync(bytes, { params: PARAMS });
  const chunkSize = bytes.length + (bytes.length >>> 7) + 512;
  const stream = createZstdCompress({ chunkSize, params: PARAMS }) as unknown as ChunkProcessor;
  return stream._processChunk(bytes, constants.ZSTD_e_end);
};

/**
 * Decompresses one frame of exactly `length` bytes. Errors: corrupt `zstd-corrupt` when the input is damaged, cut
 * short, or holds another number of bytes. The output is capped near `length`, so a bomb costs no memory.
 */
export const decompressZstd: Decompress = (bytes, length) => {
  let out: Uint8Array;
  try {
    out = decompressed(bytes, length);
  } catch (error) {
    throw corrupt('zstd-corrupt', `zstd frame: does not decode to ${length} bytes`, { length }, error);
  }
  if (out.length !== length) {
    throw corrupt('zstd-corrupt', `zstd frame: ${length} bytes expected, found ${out.length}`, { length });
  }
  return out;
};

function decompressed(bytes: Uint8Array, length: number): Uint8Array {
  const room = length + SLACK;
  if (length <= ZSTD_INPUT_BYTES_MAX) return zstdDecompressSync(bytes, { maxOutputLength: room });
  const stream = createZstdDecompress({ chunkSize: room, maxOutputLength: room }) as unknown as ChunkProcessor;
  return stream._processChunk(bytes, constants.ZSTD_e_end);
}

/** Inflates gzip of exactly `length` bytes. Errors: corrupt `deflate-corrupt` when it is damaged or of another length. */
export const decompressGzip: Decompress = (bytes, length) => {
  let out: Uint8Array;
  try {
    out = gunzipSync(bytes, { maxOutputLength: Math.min(2 * length + 65_536, OUTPUT_BYTES_MAX) });
  } catch (error) {
    throw corrupt('deflate-corrupt', 'gzip block: damaged or too large', { length }, error);
  }
  if (out.length !== length) {
    throw corrupt('deflate-corrupt', `gzip block: ${length} bytes expected, found ${out.length}`, { length });
  }
  return out;
};

/** The largest `maxOutputLength` that workerd takes: it throws a RangeError above 128 MiB, whatever the output. */
const OUTPUT_BYTES_MAX = 128 * 1024 * 1024;

/** Raw deflate, as Avro's `deflate` codec wants it. `inflate` throws corrupt `deflate-corrupt` on damage or excess. */
export const deflateRaw: Deflate = {
  deflate: (bytes) => deflateRawSync(bytes),
  inflate: (bytes, lengthMax) => {
    let out: Uint8Array;
    try {
      // Twice the bound, since workerd compares a doubling capacity with it; the bound itself is checked below.
      out = inflateRawSync(bytes, { maxOutputLength: Math.min(2 * lengthMax + 65_536, OUTPUT_BYTES_MAX) });
    } catch (error) {
      throw corrupt('deflate-corrupt', 'deflate block: damaged or too large', { lengthMax }, error);
    }
    if (out.length > lengthMax) {
      throw corrupt('deflate-corrupt', `deflate block: ${out.length} bytes are more than ${lengthMax}`, { lengthMax });
    }
    return out;
  },
};
