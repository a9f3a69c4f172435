import { COMPACT_HELD_FILE_BYTES_MAX } from '../core/base/compact-limits.ts';
import { SluiceError } from '../core/base/errors.ts';
import { INDEX_BYTES_MAX, INDEX_FOLD_BYTES, INDEX_WINDOW_ROWS } from '../core/base/index-limits.ts';
import { COMPACT_PIECE_BYTES } from '../core/base/limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { gather } from '../core/columns/gather.ts';
import { byteSizeOf } from '../core/columns/row-bytes.ts';
import type { Schema, TableMetadata } from '../core/iceberg/types.ts';
import { foldNewest, newestOf, type Series } from '../core/lastvalue/fold.ts';
import type { LiveFile } from '../core/maintain/live-files.ts';
import { columnHints } from '../core/parquet/column-hints.ts';
import { FileWindows, type WindowPorts } from './file-windows.ts';
import { keyAt, type TableFilesNow } from './live-files.ts';
import type { TablePlace } from './open-table.ts';

/** Why the newest rows cannot be found by looking through the files. */
export type NoScan =
  /** Rows that delete files take away are in the data files still. */
  | 'delete-files'
  /** Files that are no Parquet, are encrypted, or that are not read here; or row groups of nested columns beyond the memory. */
  | 'unreadable-file'
  | 'table-too-large'
  | 'too-many-series'
  | 'too-large';

/** What is looked for, and the bounds of it. */
export interface NewestOf {
  schema: Schema;
  series: Series;
  metadata: TableMetadata;
  seriesMax: number;
  /** Bytes of the files, and how many they are. */
  bytesMax: number;
  filesMax: number;
}

/**
 * The newest row of each series, found by reading data files window by window, in the order of their commits. What is in
 * memory is a window, what was gathered since the last fold, and the newest rows themselves.
 */
export class NewestRows {
  readonly #ports: WindowPorts;
  readonly #place: TablePlace;
  readonly #of: NewestOf;
  readonly #scanned = new Set<string>();
  #parts: Columns[] = [];
  #partBytes = 0;
  #bytes = 0;

  constructor(ports: WindowPorts, place: TablePlace, of: NewestOf) {
    this.#ports = ports;
    this.#place = place;
    this.#of = of;
  }

  get filesRead(): number {
    return this.#scanned.size;
  }

  /**
   * Looks through the files that it has not seen yet. Null when it went through; else it is of no more use.
   *
   * @throws corrupt `data-file-missing`, `parquet-corrupt`; StoreError
   */
  async add({ files, deletes }: TableFilesNow): Promise<NoScan | null> {
    if (deletes.length > 0) return 'delete-files';
    const fresh = files
      .filter(({ entry }) => !this.#scanned.has(entry.dataFile.filePath))
      .sort((a, b) => Number((a.entry.sequenceNumber ?? 0n) - (b.entry.sequenceNumber ?? 0n)));
    for (const file of fresh) this.#bytes += Number(file.entry.dataFile.fileSizeInBytes);
    const { bytesMax, filesMax } = this.#of;
    if (this.#bytes > bytesMax || this.#scanned.size + fresh.length > filesMax) return 'table-too-large';
    for (const file of fresh) {
      const problem = await this.#file(file);
      if (problem !== null) return problem;
      this.#scanned.add(file.entry.dataFile.filePath);
    }
    try {
      return this.#fold();
    } catch (error) {
      if (isUnreadable(error)) return 'unreadable-file';
      throw error;
    }
  }

  /** The newest rows of all files seen. Called after `add`. */
  get rows(): Columns {
    const { schema, series } = this.#of;
    return this.#parts.length === 1 ? this.#parts[0] : foldNewest(this.#parts, schema, series);
  }

  async #file({ entry: { dataFile }, specId }: LiveFile): Promise<NoScan | null> {
    const { schema, series, metadata } = this.#of;
    if (dataFile.fileFormat.toUpperCase() !== 'PARQUET' || dataFile.keyMetadata !== null) return 'unreadable-file';
    const key = keyAt(this.#place, dataFile.filePath);
    try {
      const hints = columnHints(metadata, specId);
      const file = await FileWindows.open(this.#ports, key, dataFile, schema, COMPACT_PIECE_BYTES, hints);
      if (file.heldBytes > COMPACT_HELD_FILE_BYTES_MAX) return 'unreadable-file';
      for (let isLast = dataFile.recordCount === 0n; !isLast; ) {
        const next = await file.next(INDEX_WINDOW_ROWS);
        isLast = next.isLast;
        const newest = gather(next.window, newestOf(next.window, series));
        this.#parts.push(newest);
        this.#partBytes += byteSizeOf(newest);
        const problem = this.#partBytes >= INDEX_FOLD_BYTES ? this.#fold() : null;
        if (problem !== null) return problem;
      }
    } catch (error) {
      if (isUnreadable(error)) return 'unreadable-file';
      throw error;
    }
    return null;
  }

  #fold(): NoScan | null {
    const { schema, series, seriesMax } = this.#of;
    const newest = foldNewest(this.#parts, schema, series);
    this.#parts = [newest];
    this.#partBytes = 0;
    if (newest.rows > seriesMax) return 'too-many-series';
    return byteSizeOf(newest) > INDEX_BYTES_MAX ? 'too-large' : null;
  }
}

/** Not read here, or with nulls in a required column, which shows when rows of several files are put together. */
function isUnreadable(error: unknown): boolean {
  return error instanceof SluiceError && (error.kind === 'invalid' || error.kind === 'rejected');
}
