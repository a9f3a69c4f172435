import type { ColumnFacts } from '../iceberg/bounds.ts';
import type { Encodings } from './choose.ts';
import type { SortingColumn } from './footer-write.ts';

/** How a Parquet file is written. */
export interface ParquetOptions {
  /** Rows of a row group; the last of each append may be smaller. */
  rowGroupRows: number;
  /** Plain bytes at which a row group is closed earlier; `ROW_GROUP_BYTES_MAX` when left out (P17). */
  rowGroupBytesMax?: number;
  encodings: Encodings;
  /** The order that the rows of each row group are in. Recorded, not made. */
  sortingColumns: SortingColumn[];
  /** Entries of the footer's key-value metadata besides `iceberg.schema`. */
  keyValues: [string, string][];
}

/** What a manifest says about a file just written. */
export interface FileFacts {
  recordCount: number;
  fileSizeInBytes: number;
  /** Start of each row group, ascending (E12). */
  splitOffsets: number[];
  /** By field id; primitive fields that are not inside a list or map (E17). */
  columns: Map<number, ColumnFacts>;
}
