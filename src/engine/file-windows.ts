import type { Decompress } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { COMPACT_GAP_BYTES, PARQUET_TAIL_BYTES } from '../core/base/limits.ts';
import { release } from '../core/base/release.ts';
import { type Column, type Columns, countOf } from '../core/columns/columns.ts';
import { allRows, gather, gatherColumn } from '../core/columns/gather.ts';
import { releaseColumn, releaseColumns } from '../core/columns/release.ts';
import type { DataFile, Schema } from '../core/iceberg/types.ts';
import { applyHints, type ColumnHints } from '../core/parquet/column-hints.ts';
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
import {
  fieldsByReader,
  generalBytes,
  joinFields,
  planGeneral,
  readGeneral,
  typedBytes,
} from '../core/parquet/table-columns.ts';
import type { Store } from '../store/store.ts';
import type { Clock, Random } from './ports.ts';
import type { Windows } from './sorted-file.ts';
import { persevere } from './uploader.ts';

export interface WindowPorts {
  store: Store;
  clock: Clock;
  random: Random;
  decompress: Decompress;
  gunzip: Decompress;
}

/**
 * A data file that is read from its beginning to its end by windows of rows, each with one or a few range requests. Columns that only
 * the general reader knows are in memory a row group at a time.
 */
export class FileWindows implements Windows {
  readonly #ports: WindowPorts;
  readonly #key: string;
  readonly #schema: Schema;
  /** The fields of the schema by the reader that takes them. */
  readonly #windowed: Schema;
  readonly #general: Schema;
  readonly #footer: ParquetFooter;
  readonly #pieceBytesMax: number;
  #group = 0;
  #row = 0;
  /** The present row group, when it is small enough to be held. */
  #piece: Piece | null = null;
  /** Its columns by the general reader. */
  #whole: Columns | null = null;

  private constructor(ports: WindowPorts, key: string, schema: Schema, footer: ParquetFooter, pieceBytesMax: number) {
    this.#ports = ports;
    this.#key = key;
    this.#schema = schema;
    this.#footer = footer;
    this.#pieceBytesMax = pieceBytesMax;
    const { windowed, general } = fieldsByReader(footer, schema);
    this.#windowed = { ...schema, fields: windowed };
    this.#general = { ...schema, fields: general };
  }

  /**
   * Reads footer and page indexes. Row groups of at most `pieceBytesMax` are then read whole, larger ones page by page.
   *
   * @throws corrupt `data-file-missing`, `parquet-corrupt`; invalid `parquet-unsupported`; StoreError
   */
  static async open(
    ports: WindowPorts,
    key: string,
    file: DataFile,
    schema: Schema,
    pieceBytesMax: number,
    hints: ColumnHints = { names: null, spec: null },
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
    applyHints(footer, hints);
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

  /** Memory that columns of one row group take beside the windows: those of the general reader. */
  get heldBytes(): number {
    const { rowGroups } = this.#footer;
    return rowGroups.reduce((most, _, i) => Math.max(most, generalBytes(this.#footer, i, this.#general.fields)), 0);
  }

  /** Memory that all rows take, as far as the footer tells: a text that stands in a dictionary may be spelled out many times. */
  get wholeBytes(): number {
    return this.#footer.rowGroups.reduce(
      (sum, _, i) =>
        sum + typedBytes(this.#footer, i, this.#windowed.fields) + generalBytes(this.#footer, i, this.#general.fields),
      0,
    );
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
      if (this.#whole !== null) releaseColumns(this.#whole);
      this.#piece = null;
      this.#whole = null;
    }
    return { window, isLast: rowGroups.slice(this.#group).every((group) => group.rows === 0) };
  }

  async #window(from: number, to: number): Promise<Columns> {
    const pieces = await this.#pieces(from, to);
    const { decompress } = this.#ports;
    const columns = readWindow(this.#footer, this.#group, this.#windowed, from, to, pieces, decompress);
    if (this.#piece === null) for (const { bytes } of pieces) release(bytes);
    const windowed = { ...columns, columns: columns.columns.map((column) => withoutUnused(column, to - from)) };
    if (this.#general.fields.length === 0) return windowed;
    this.#whole ??= await this.#readWhole();
    // A copy, since memory of a window is given back when it is used up.
    const rows = Uint32Array.from({ length: to - from }, (_, i) => from + i);
    return joinFields(this.#schema, [windowed, gather(this.#whole, rows)]);
  }

  async #readWhole(): Promise<Columns> {
    const pieces = this.#piece === null ? [] : [this.#piece];
    if (this.#piece === null) {
      const ranges = planGeneral(this.#footer, this.#group, this.#general.fields, COMPACT_GAP_BYTES);
      for (const range of ranges) pieces.push(await this.#read(range));
    }
    const { decompress: zstd, gunzip: gzip } = this.#ports;
    return readGeneral(this.#footer, this.#group, this.#general, pieces, {
      codecs: { zstd, gzip },
      bytesMax: this.heldBytes,
    });
  }

  async #pieces(from: number, to: number): Promise<Piece[]> {
    if (this.#piece !== null) return [this.#piece];
    const whole = rowGroupRange(this.#footer, this.#group);
    if (whole.length <= this.#pieceBytesMax) {
      this.#piece = await this.#read(whole);
      return [this.#piece];
    }
    const ids = this.#windowed.fields.map(({ id }) => id);
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
