import type { Compress, Decompress, Deflate, Digest } from '../base/codecs.ts';
import type { IndexMemory } from '../lastvalue/memory.ts';

/** What deciding needs to know besides change and base: where the table is, and the runtime's codecs. */
export interface SinkContext {
  /** `s3://bucket/prefix/namespace/table` */
  location: string;
  deflate: Deflate;
  digest: Digest;
  compress: Compress;
  decompress: Decompress;
  /** Last-value indexes that were read or made lately. */
  indexes: IndexMemory;
  /** Object key of a location inside the table. Throws corrupt `foreign-location` for any other. */
  keyOf(location: string): string;
  /** Location of a version's metadata file. */
  versionLocation(version: number): string;
}
