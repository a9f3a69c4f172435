import { concat } from '../base/bytes.ts';
import type { Compress } from '../base/codecs.ts';
import type { Columns } from '../columns/columns.ts';
import type { Schema } from '../iceberg/types.ts';
import type { FileFacts, ParquetOptions } from './facts.ts';
import { FlatWriter } from './flat-writer.ts';
import { isFlat } from './layout.ts';
import { NestedWriter } from './nested.ts';

export type { FileFacts, ParquetOptions } from './facts.ts';

/**
 * Writes one Parquet file, piece by piece.
 *
 * Each `append` cuts its rows into row groups of at most `rowGroupRows` rows and encodes them at once, so only finished
 * bytes are held between calls; take them with `takeChunks` to stream a large file. Compression is zstd throughout.
 */
export class ParquetWriter {
  readonly #writer: FlatWriter | NestedWriter;
  readonly #keyValues: [string, string][];

  constructor(schema: Schema, options: ParquetOptions, compress: Compress) {
    this.#writer = isFlat(schema)
      ? new FlatWriter(schema, options, compress)
      : new NestedWriter(schema, options, compress);
    // As the reference writer does (P19).
    this.#keyValues = [['iceberg.schema', JSON.stringify(schema)], ...options.keyValues];
  }

  /**
   * Encodes rows `from` to `to` (exclusive). The columns have the fields of the writer's schema, in its order. Errors,
   * before anything is encoded: invalid `null-in-required-column`, `decimal-overflow`.
   */
  append(columns: Columns, from = 0, to = columns.rows): void {
    this.#writer.append(columns, from, to);
  }

  /** The bytes made since the last call, in file order. */
  takeChunks(): Uint8Array[] {
    return this.#writer.takeChunks();
  }

  /** Bytes made so far, taken or not. */
  get byteLength(): number {
    return this.#writer.byteLength;
  }

  /** Writes page indexes and footer. The last chunks are to be taken after this; nothing may be appended any more. */
  finish(): FileFacts {
    return this.#writer.finish(this.#keyValues);
  }
}

/** A whole file of the columns' rows. Errors as in `ParquetWriter.append`. */
export function writeParquet(
  columns: Columns,
  options: ParquetOptions,
  compress: Compress,
): { bytes: Uint8Array; facts: FileFacts } {
  const writer = new ParquetWriter(columns.schema, options, compress);
  writer.append(columns);
  const facts = writer.finish();
  return { bytes: concat(writer.takeChunks()), facts };
}
