import { sha256 } from '../platform/hash.ts';
import { compressZstd, decompressGzip, decompressZstd, deflateRaw } from '../platform/zlib.ts';

/** The runtime's synchronous codecs, as the core takes them. */
export const codecs = {
  compress: compressZstd,
  decompress: decompressZstd,
  gunzip: decompressGzip,
  deflate: deflateRaw,
  digest: sha256,
};
