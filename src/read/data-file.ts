import { corrupt, rejected, SluiceError } from '../core/base/errors.ts';
import { COMPACT_GAP_BYTES, PAGE_ROWS, PARQUET_TAIL_BYTES } from '../core/base/limits.ts';
import { ROWS_GENERAL_BYTES_MAX, ROWS_WINDOW_ROWS } from '../core/base/read-limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { gather, slice } from '../core/columns/gather.ts';
import type { NestedField, Schema } from '../core/iceberg/types.ts';
import type { ValueTest } from '../core/iceberg/value-test.ts';
import { giveIds } from '../core/parquet/name-ids.ts';
import { pruningRange, type RowRange, rowsToRead } from '../core/parquet/prune.ts';
import {
  addIndexes,
  type ByteRange,
  coalesce,
  footerLength,
  PARQUET_UNSUPPORTED,
  type ParquetFooter,
  type Piece,
  parseFooter,
  planWindow,
  readWindow,
} from '../core/parquet/reader.ts';
import { fieldsByReader, generalBytes, joinFields, planGeneral, readGeneral } from '../core/parquet/table-columns.ts';
import { persevere } from '../engine/uploader.ts';
import type { ReadBudget } from './budget.ts';
import type { Candidate } from './plan-files.ts';
import type { ReadPorts } from './ports.ts';

/** A data file of which some rows and columns are read, each by the pages that hold them. */
export class DataFileReader {
  readonly #ports: ReadPorts;
  readonly #budget: ReadBudget;
  readonly #key: string;
  readonly #footer: ParquetFooter;
  /** The end of the file, as it was read; a small file is whole in it. */
  readonly #tail: Piece;
  readonly #indexes: Piece | null;

  private constructor(
    ports: ReadPorts,
    budget: ReadBudget,
    key: string,
    read: { footer: ParquetFooter; tail: Piece; indexes: Piece | null },
  ) {
    this.#ports = ports;
    this.#budget = budget;
    this.#key = key;
    this.#footer = read.footer;
    this.#tail = read.tail;
    this.#indexes = read.indexes;
  }

  /**
   * Reads the footer, and the page indexes that the tests ask for.
   *
   * @throws rejected `too-much-to-read`, `unsupported-file`; corrupt `data-file-missing`, `parquet-corrupt`; StoreError
   */
  static async open(
    ports: ReadPorts,
    budget: ReadBudget,
    { key, file, names }: Candidate,
    tests: readonly ValueTest[],
  ): Promise<DataFileReader> {
    budget.open();
    const size = Number(file.fileSizeInBytes);
    const end = (length: number) =>
      read(ports, budget, key, { offset: Math.max(0, size - length), length: Math.min(length, size) });
    let tail = await end(PARQUET_TAIL_BYTES);
    const length = footerLength(tail.bytes);
    if (length > tail.bytes.length) tail = await end(length);
    const footer = named(key, () => parseFooter(tail.bytes, size));
    giveIds(footer, names);
    if (BigInt(footer.rows) !== file.recordCount) {
      throw corrupt(
        'parquet-corrupt',
        `data file has ${footer.rows} rows, its manifest says ${file.recordCount}: ${key}`,
      );
    }
    const range = pruningRange(footer, tests);
    let indexes: Piece | null = null;
    if (range !== null) {
      indexes = isWithin(range, tail) ? tail : await read(ports, budget, key, range);
      addIndexes(footer, indexes);
    }
    return new DataFileReader(ports, budget, key, { footer, tail, indexes });
  }

  get rowGroups(): number {
    return this.#footer.rowGroups.length;
  }

  /** Rows of a row group that may meet the tests, in windows; one of them all where a field is not read by windows. */
  windows(rowGroup: number, tests: readonly ValueTest[], schema: Schema): RowRange[] {
    const { rows } = this.#footer.rowGroups[rowGroup];
    if (fieldsByReader(this.#footer, schema).general.length > 0) return rows === 0 ? [] : [{ from: 0, to: rows }];
    return rowsToRead(this.#footer, rowGroup, tests, this.#indexes).flatMap(({ from, to }) =>
      Array.from({ length: Math.ceil((to - from) / ROWS_WINDOW_ROWS) }, (_, i) => ({
        from: from + i * ROWS_WINDOW_ROWS,
        to: Math.min(to, from + (i + 1) * ROWS_WINDOW_ROWS),
      })),
    );
  }

  /** Rows of a window, as columns of `schema`. */
  async window(rowGroup: number, { from, to }: RowRange, schema: Schema): Promise<Columns> {
    const [columns] = await this.#stretches(rowGroup, [{ from, to }], schema);
    return columns;
  }

  /** Rows of one row group by their numbers, which ascend. Only pages that hold one of them are read. */
  async rowsAt(rowGroup: number, rows: Int32Array, schema: Schema): Promise<Columns> {
    const ranges = stretchesOf(rows);
    const parts = await this.#stretches(rowGroup, ranges, schema);
    let at = 0;
    const gathered = parts.map((part, i) => {
      const { from, to } = ranges[i];
      const start = at;
      while (at < rows.length && rows[at] < to) at++;
      return gather(
        part,
        Uint32Array.from(rows.subarray(start, at), (row) => row - from),
      );
    });
    return concat(gathered, schema);
  }

  async #stretches(rowGroup: number, ranges: readonly RowRange[], schema: Schema): Promise<Columns[]> {
    const { windowed, general } = fieldsByReader(this.#footer, schema);
    const parts = await this.#windowed(rowGroup, ranges, { ...schema, fields: windowed });
    if (general.length === 0) return parts;
    const whole = await this.#general(rowGroup, { ...schema, fields: general });
    return parts.map((part, i) => joinFields(schema, [part, slice(whole, ranges[i].from, ranges[i].to)]));
  }

  async #windowed(rowGroup: number, ranges: readonly RowRange[], schema: Schema): Promise<Columns[]> {
    const ids = schema.fields.map(({ id }) => id);
    const pieces = await this.#pieces(
      ranges.flatMap(({ from, to }) => planWindow(this.#footer, rowGroup, ids, from, to)),
    );
    const { decompress } = this.#ports.codecs;
    return named(this.#key, () =>
      ranges.map(({ from, to }) => readWindow(this.#footer, rowGroup, schema, from, to, pieces, decompress)),
    );
  }

  /** Columns of a whole row group: one at a time, since they take more memory than all else. */
  #general(rowGroup: number, schema: Schema): Promise<Columns> {
    return this.#budget.inTurn(async () => {
      this.#checkMemory(rowGroup, schema.fields);
      const pieces = await this.#pieces(planGeneral(this.#footer, rowGroup, schema.fields));
      const { decompress: zstd, gunzip: gzip } = this.#ports.codecs;
      const options = { codecs: { zstd, gzip }, bytesMax: ROWS_GENERAL_BYTES_MAX };
      return named(this.#key, () => readGeneral(this.#footer, rowGroup, schema, pieces, options));
    });
  }

  #checkMemory(rowGroup: number, fields: readonly NestedField[]): void {
    const bytes = generalBytes(this.#footer, rowGroup, fields);
    if (bytes <= ROWS_GENERAL_BYTES_MAX) return;
    const names = fields.map(({ name }) => name).join(', ');
    const message = `columns of a row group would take too much memory, ask for others: ${names}: ${this.#key}`;
    throw rejected('unsupported-file', message, { bytes, bytesMax: ROWS_GENERAL_BYTES_MAX });
  }

  async #pieces(wanted: ByteRange[]): Promise<Piece[]> {
    const pieces: Piece[] = [];
    for (const range of coalesce(wanted, COMPACT_GAP_BYTES)) {
      pieces.push(isWithin(range, this.#tail) ? this.#tail : await read(this.#ports, this.#budget, this.#key, range));
    }
    return pieces;
  }
}

/** What is not read here is told with the file that has it. */
function named<T>(key: string, read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (!(error instanceof SluiceError && error.type === PARQUET_UNSUPPORTED)) throw error;
    throw rejected('unsupported-file', `${error.message}: ${key}`, error.detail, error);
  }
}

/** Ranges that hold the rows; one ends where no row follows for the length of a page. */
function stretchesOf(rows: Int32Array): RowRange[] {
  const ranges: RowRange[] = [];
  for (const row of rows) {
    const last = ranges[ranges.length - 1];
    if (last !== undefined && row - last.to < PAGE_ROWS) last.to = row + 1;
    else ranges.push({ from: row, to: row + 1 });
  }
  return ranges;
}

function isWithin({ offset, length }: ByteRange, piece: Piece): boolean {
  return offset >= piece.offset && offset + length <= piece.offset + piece.bytes.length;
}

async function read(ports: ReadPorts, budget: ReadBudget, key: string, range: ByteRange): Promise<Piece> {
  budget.spend(range.length);
  const bytes = await persevere(ports, () => ports.store.getRange(key, range.offset, range.length));
  if (bytes === null) throw corrupt('data-file-missing', `data file of the snapshot is missing: ${key}`);
  if (bytes.length < range.length)
    throw corrupt('parquet-corrupt', `data file is shorter than its manifest says: ${key}`);
  return { offset: range.offset, bytes };
}
