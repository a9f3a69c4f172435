import { assert } from '../base/assert.ts';
import type { Compress } from '../base/codecs.ts';
import { ROW_GROUP_BYTES_MAX } from '../base/limits.ts';
import type { Columns } from '../columns/columns.ts';
import type { ColumnFacts } from '../iceberg/bounds.ts';
import { comparatorOf } from '../iceberg/single-value.ts';
import type { Schema, Value } from '../iceberg/types.ts';
import { checkColumns, cutRowGroup } from './check.ts';
import { ChunkWriter, type WrittenChunk } from './chunk-writer.ts';
import type { FileFacts, ParquetOptions } from './facts.ts';
import { MAGIC, type RowGroupFacts, writeFooter } from './footer-write.ts';
import { type Leaf, leafOf } from './layout.ts';
import { ByteSink } from './sink.ts';

/** Writes schemas of primitive fields from typed columns. See `ParquetWriter`. */
export class FlatWriter {
  readonly #leaves: Leaf[];
  readonly #options: ParquetOptions;
  readonly #chunkWriters: ChunkWriter[];
  readonly #columns: FileColumn[];
  readonly #rowGroups: RowGroupFacts[] = [];
  readonly #sink = new ByteSink(64 * 1024);
  /** Scratch for one page of any column. */
  readonly #page = new ByteSink(48 * 1024);
  #chunks: Uint8Array[] = [MAGIC];
  #length = MAGIC.length;
  #rows = 0;

  constructor(schema: Schema, options: ParquetOptions, compress: Compress) {
    this.#leaves = schema.fields.map(leafOf);
    this.#options = options;
    this.#chunkWriters = this.#leaves.map((leaf) => new ChunkWriter(leaf, options.encodings, compress, this.#page));
    this.#columns = this.#leaves.map((leaf) => new FileColumn(leaf));
  }

  append(columns: Columns, from: number, to: number): void {
    assert(columns.columns.length === this.#leaves.length, 'columns and schema have the same fields');
    assert(from >= 0 && from <= to && to <= columns.rows, `rows ${from} to ${to} lie in ${columns.rows}`);
    checkColumns(this.#leaves, columns, from, to);
    const bytesMax = this.#options.rowGroupBytesMax ?? ROW_GROUP_BYTES_MAX;
    for (let start = from; start < to; ) {
      const end = cutRowGroup(columns, start, this.#options.rowGroupRows, bytesMax, to);
      this.#writeRowGroup(columns, start, end);
      start = end;
    }
  }

  takeChunks(): Uint8Array[] {
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  get byteLength(): number {
    return this.#length;
  }

  finish(keyValues: readonly (readonly [string, string])[]): FileFacts {
    this.#sink.clear();
    writeFooter(this.#sink, this.#length, {
      leaves: this.#leaves,
      rowGroups: this.#rowGroups,
      sortingColumns: this.#options.sortingColumns,
      keyValues,
    });
    this.#emit();
    this.#sink.release();
    this.#page.release();
    return {
      recordCount: this.#rows,
      fileSizeInBytes: this.#length,
      splitOffsets: this.#rowGroups.map((group) => group.offset),
      columns: new Map(this.#columns.map((column) => [column.id, column.facts()])),
    };
  }

  #writeRowGroup(columns: Columns, from: number, to: number): void {
    this.#sink.clear();
    const group: RowGroupFacts = { rows: to - from, offset: this.#length, chunks: [] };
    columns.columns.forEach((column, i) => {
      const written = this.#chunkWriters[i].write(this.#sink, this.#length, column, from, to);
      group.chunks.push(written.facts);
      this.#columns[i].add(written);
    });
    this.#rowGroups.push(group);
    this.#rows += to - from;
    this.#emit();
  }

  /** A copy of exact size: the scratch buffer is larger and lives on. */
  #emit(): void {
    this.#chunks.push(this.#sink.copy());
    this.#length += this.#sink.length;
  }
}

/** Adds up the chunks of one column over the file. */
class FileColumn {
  readonly id: number;
  readonly #compare: (a: Value, b: Value) => number;
  #compressedBytes = 0;
  #valueCount = 0;
  #nullCount = 0;
  #nanCount: number | null = null;
  #lower: Value = null;
  #upper: Value = null;
  #bounded = true;

  constructor(leaf: Leaf) {
    this.id = leaf.id;
    this.#compare = comparatorOf(leaf.type);
  }

  add(chunk: WrittenChunk): void {
    const { facts, nans, lower, upper } = chunk;
    this.#compressedBytes += facts.compressed;
    this.#valueCount += facts.values;
    this.#nullCount += facts.nulls;
    if (nans !== null) this.#nanCount = (this.#nanCount ?? 0) + nans;
    // Values without a bound (text that is not UTF-8) take the bounds of the whole column with them (B15).
    if (facts.bounds !== null && (lower === null || upper === null)) this.#bounded = false;
    if (lower !== null && (this.#lower === null || this.#compare(lower, this.#lower) < 0)) this.#lower = lower;
    if (upper !== null && (this.#upper === null || this.#compare(upper, this.#upper) > 0)) this.#upper = upper;
  }

  facts(): ColumnFacts {
    return {
      compressedBytes: this.#compressedBytes,
      valueCount: this.#valueCount,
      nullCount: this.#nullCount,
      nanCount: this.#nanCount,
      lower: this.#bounded ? this.#lower : null,
      upper: this.#bounded ? this.#upper : null,
    };
  }
}
