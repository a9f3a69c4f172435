import type { Decompress } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { COMPACT_GAP_BYTES, PARQUET_TAIL_BYTES } from '../core/base/limits.ts';
import { release } from '../core/base/release.ts';
import { type Column, type Columns, countOf } from '../core/columns/columns.ts';
import { allRows, gatherColumn } from '../core/columns/gather.ts';
import { releaseColumn } from '../core/columns/release.ts';
import type { DataFile, Schema } from '../core/iceberg/types.ts';
import {
  addIndexes,
  type ByteRange,
  footerLength,
  indexRange,
  type ParquetFooter,
  type Piece,
  parseFooter,
  planWindow,
  readWindow,
  rowGroupRange,
} from '../core/parquet/reader.ts';
import type { Store } from '../store/store.ts';
import type { Clock, Random } from './ports.ts';
import { persevere } from './uploader.ts';

export interface WindowPorts {
  store: Store;
  clock: Clock;
  random: Random;
  decompress: Decompress;
}

/** A data file that is read from its beginning to its end by windows of rows, each with one or a few range requests. */
export class FileWindows {
  readonly #ports: WindowPorts;
  readonly #key: string;
  readonly #schema: Schema;
  readonly #footer: ParquetFooter;
  readonly #pieceBytesMax: number;
  #group = 0;
  #row = 0;
  /** The present row group, when it is small enough to be held. */
  #piece: Piece | null = null;

  private constructor(ports: WindowPorts, key: string, schema: Schema, footer: ParquetFooter, pieceBytesMax: number) {
    this.#ports = ports;
    this.#key = key;
    this.#schema = schema;
    this.#footer = footer;
    this.#pieceBytesMax = pieceBytesMax;
  }

  /**
   * Reads footer and page indexes. Row groups of at most `pieceBytesMax` are then read whole, larger ones page by page.
   *
   * @throws corrupt `data-file-missing`, `parquet-corrupt`; StoreError
   */
  static async open(
    ports: WindowPorts,
    key: string,
    file: DataFile,
    schema: Schema,
    pieceBytesMax: number,
  ): Promise<FileWindows> {
    const size = Number(file.fileSizeInBytes);
    let tail = await read(
      ports,
      key,
      { offset: Math.max(0, size - PARQUET_TAIL_BYTES), length: PARQUET_TAIL_BYTES },
      size,
    );
    const length = footerLength(tail);
    if (length > tail.length) tail = await read(ports, key, { offset: Math.max(0, size - length), length }, size);
    const footer = parseFooter(tail, size);
    if (BigInt(footer.rows) !== file.recordCount) {
      throw corrupt(
        'parquet-corrupt',
        `data file has ${footer.rows} rows, its manifest says ${file.recordCount}: ${key}`,
      );
    }
    const index = indexRange(footer);
    if (index !== null) addIndexes(footer, { offset: index.offset, bytes: await read(ports, key, index, size) });
    return new FileWindows(ports, key, schema, footer, pieceBytesMax);
  }

  /** The next rows, at most `rowsMax`; `isLast` when the file has none behind them. */
  async next(rowsMax: number): Promise<{ window: Columns; isLast: boolean }> {
    const { rowGroups } = this.#footer;
    while (this.#group < rowGroups.length && rowGroups[this.#group].rows === 0) this.#group++;
    const rows = rowGroups[this.#group]?.rows ?? 0;
    const from = this.#row;
    const to = Math.min(rows, from + rowsMax);
    const window = rows === 0 ? this.#empty() : await this.#window(from, to);
    this.#row = to;
    if (to === rows) {
      this.#group++;
      this.#row = 0;
      if (this.#piece !== null) release(this.#piece.bytes);
      this.#piece = null;
    }
    return { window, isLast: rowGroups.slice(this.#group).every((group) => group.rows === 0) };
  }

  async #window(from: number, to: number): Promise<Columns> {
    const pieces = await this.#pieces(from, to);
    const columns = readWindow(this.#footer, this.#group, this.#schema, from, to, pieces, this.#ports.decompress);
    if (this.#piece === null) for (const { bytes } of pieces) release(bytes);
    return { ...columns, columns: columns.columns.map((column) => withoutUnused(column, to - from)) };
  }

  async #pieces(from: number, to: number): Promise<Piece[]> {
    if (this.#piece !== null) return [this.#piece];
    const whole = rowGroupRange(this.#footer, this.#group);
    if (whole.length <= this.#pieceBytesMax) {
      this.#piece = await this.#read(whole);
      return [this.#piece];
    }
    const ids = this.#schema.fields.map(({ id }) => id);
    const pieces: Piece[] = [];
    for (const range of planWindow(this.#footer, this.#group, ids, from, to, COMPACT_GAP_BYTES)) {
      pieces.push(await this.#read(range));
    }
    return pieces;
  }

  async #read(range: ByteRange): Promise<Piece> {
    return { offset: range.offset, bytes: await read(this.#ports, this.#key, range, Number.POSITIVE_INFINITY) };
  }

  #empty(): Columns {
    return { schema: this.#schema, rows: 0, columns: [] };
  }
}

async function read(ports: WindowPorts, key: string, { offset, length }: ByteRange, size: number): Promise<Uint8Array> {
  const bytes = await persevere(ports, () => ports.store.getRange(key, offset, length));
  if (bytes === null) throw corrupt('data-file-missing', `data file of the current snapshot is missing: ${key}`);
  if (bytes.length < Math.min(length, size - offset)) {
    throw corrupt('parquet-corrupt', `data file is shorter than its manifest says: ${key}`);
  }
  return bytes;
}

/** A window of a large row group names few entries of its dictionary: the others would be held once for each input. */
function withoutUnused(column: Column, rows: number): Column {
  if (column.kind !== 'dictionary' || countOf(column.dictionary) <= rows) return column;
  const used = gatherColumn(column, allRows(rows));
  releaseColumn(column);
  return used;
}
