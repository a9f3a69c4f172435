import { sha256 } from '../platform/hash.ts';
import { compressZstd, decompressZstd, deflateRaw } from '../platform/zlib.ts';

/** The runtime's synchronous codecs, as the core takes them. */
export const codecs = { compress: compressZstd, decompress: decompressZstd, deflate: deflateRaw, digest: sha256 };
