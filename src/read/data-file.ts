import { corrupt, rejected, SluiceError } from '../core/base/errors.ts';
import { COMPACT_GAP_BYTES, PARQUET_TAIL_BYTES } from '../core/base/limits.ts';
import {
  ROWS_GENERAL_BYTES_MAX,
  ROWS_STEP_BYTES,
  ROWS_WINDOW_ROWS,
  ROWS_WORK_BYTES_MAX,
} from '../core/base/read-limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import { gather, slice } from '../core/columns/gather.ts';
import type { NestedField, Schema } from '../core/iceberg/types.ts';
import type { ValueTest } from '../core/iceberg/value-test.ts';
import { applyHints } from '../core/parquet/column-hints.ts';
import { pruningRange, type RowRange, rowsToRead } from '../core/parquet/prune.ts';
import {
  addIndexes,
  type ByteRange,
  coalesce,
  footerLength,
  isReadWhole,
  PARQUET_UNSUPPORTED,
  type ParquetFooter,
  type Piece,
  pageCount,
  parseFooter,
  planWindow,
  rangesOf,
  readWindow,
  windowBytes,
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
    { key, file, hints }: Candidate,
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
    named(key, () => applyHints(footer, hints));
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
    return rowsToRead(this.#footer, rowGroup, tests, this.#indexes).flatMap(inWindows);
  }

  /**
   * Reads windows of a row group, which ascend, as columns of `schema`, one after the other as long as they are wanted.
   *
   * @throws rejected `too-much-to-read`, `unsupported-file`; corrupt `data-file-missing`, `parquet-corrupt`; StoreError; and
   * what `take` throws
   */
  async read(
    rowGroup: number,
    windows: readonly RowRange[],
    schema: Schema,
    { isWanted, take }: { isWanted(window: RowRange): boolean; take(columns: Columns, window: RowRange): void },
  ): Promise<void> {
    const { windowed, general } = fieldsByReader(this.#footer, schema);
    for (const step of this.#steps(rowGroup, windows, windowed, general)) {
      if (!isWanted(step.windows[0])) return;
      await this.#budget.holding(step.bytes, async () => {
        const pieces = await this.#pieces(step.plan);
        const whole = general.length === 0 ? null : await this.#general(rowGroup, { ...schema, fields: general });
        for (const window of step.windows) {
          if (!isWanted(window)) return;
          const part = this.#window(rowGroup, window, { ...schema, fields: windowed }, pieces);
          take(whole === null ? part : joinFields(schema, [part, slice(whole, window.from, window.to)]), window);
        }
      });
    }
  }

  /** Rows of one row group by their numbers, which ascend. Only pages that hold one of them are read. */
  async rowsAt(rowGroup: number, rows: Int32Array, schema: Schema): Promise<Columns> {
    // Columns of wide values have more pages than others, and most of them hold none of a few rows.
    const alike = Map.groupBy(schema.fields, ({ id }) => pageCount(this.#footer, rowGroup, id));
    const parts: Columns[] = [];
    for (const fields of alike.values()) parts.push(await this.#rowsAt(rowGroup, rows, { ...schema, fields }));
    return joinFields(schema, parts);
  }

  async #rowsAt(rowGroup: number, rows: Int32Array, schema: Schema): Promise<Columns> {
    const parts: Columns[] = [];
    let at = 0;
    const take = (part: Columns, { from, to }: RowRange) => {
      const start = at;
      while (at < rows.length && rows[at] < to) at++;
      const own = Uint32Array.from(rows.subarray(start, at), (row) => row - from);
      parts.push(gather(part, own));
    };
    const ids = schema.fields.map(({ id }) => id);
    const windows = rangesOf(this.#footer, rowGroup, ids, rows).flatMap(inWindows);
    await this.read(rowGroup, windows, schema, { isWanted: () => true, take });
    return concat(parts, schema);
  }

  /** The windows in steps that take little memory each; all in one where a column is read whole, which each step would do again. */
  #steps(
    rowGroup: number,
    windows: readonly RowRange[],
    windowed: readonly NestedField[],
    general: readonly NestedField[],
  ): Step[] {
    if (windows.length === 0) return [];
    const ids = windowed.map(({ id }) => id);
    const planOf = (some: readonly RowRange[]) =>
      coalesce(
        some.flatMap(({ from, to }) => planWindow(this.#footer, rowGroup, ids, from, to)),
        0,
      );
    const stepOf = (some: readonly RowRange[]): Step => {
      const plan = planOf(some);
      const decoded = Math.max(...some.map((window) => windowBytes(this.#footer, rowGroup, ids, window)));
      const bytes = lengthOf(plan) + decoded + generalBytes(this.#footer, rowGroup, general);
      this.#checkMemory(bytes, 2 * ROWS_WORK_BYTES_MAX, [...windowed, ...general]);
      return { windows: some, plan, bytes };
    };
    if (general.length > 0 || isReadWhole(this.#footer, rowGroup, ids)) return [stepOf(windows)];
    const steps: RowRange[][] = [];
    let bytes = Number.POSITIVE_INFINITY;
    for (const window of windows) {
      const more = lengthOf(planOf([window]));
      bytes += more;
      if (bytes <= ROWS_STEP_BYTES) steps[steps.length - 1].push(window);
      else {
        steps.push([window]);
        bytes = more;
      }
    }
    return steps.map(stepOf);
  }

  #window(rowGroup: number, { from, to }: RowRange, schema: Schema, pieces: readonly Piece[]): Columns {
    const { decompress } = this.#ports.codecs;
    return named(this.#key, () => readWindow(this.#footer, rowGroup, schema, from, to, pieces, decompress));
  }

  /** Columns of a whole row group. */
  async #general(rowGroup: number, schema: Schema): Promise<Columns> {
    this.#checkMemory(generalBytes(this.#footer, rowGroup, schema.fields), ROWS_GENERAL_BYTES_MAX, schema.fields);
    const pieces = await this.#pieces(planGeneral(this.#footer, rowGroup, schema.fields));
    const { decompress: zstd, gunzip: gzip } = this.#ports.codecs;
    const options = { codecs: { zstd, gzip }, bytesMax: ROWS_GENERAL_BYTES_MAX };
    return named(this.#key, () => readGeneral(this.#footer, rowGroup, schema, pieces, options));
  }

  #checkMemory(bytes: number, bytesMax: number, fields: readonly NestedField[]): void {
    if (bytes <= bytesMax) return;
    const names = fields.map(({ name }) => name).join(', ');
    const message = `columns of a row group would take too much memory, ask for others: ${names}: ${this.#key}`;
    throw rejected('unsupported-file', message, { bytes, bytesMax });
  }

  async #pieces(wanted: ByteRange[]): Promise<Piece[]> {
    const pieces: Piece[] = [];
    for (const range of coalesce(wanted, COMPACT_GAP_BYTES)) {
      pieces.push(isWithin(range, this.#tail) ? this.#tail : await read(this.#ports, this.#budget, this.#key, range));
    }
    return pieces;
  }
}

/** Windows whose bytes are read at once. */
interface Step {
  windows: readonly RowRange[];
  plan: ByteRange[];
  /** What it takes of memory: what is read, and the largest window. */
  bytes: number;
}

function lengthOf(plan: readonly ByteRange[]): number {
  return plan.reduce((sum, { length }) => sum + length, 0);
}

function inWindows({ from, to }: RowRange): RowRange[] {
  return Array.from({ length: Math.ceil((to - from) / ROWS_WINDOW_ROWS) }, (_, i) => ({
    from: from + i * ROWS_WINDOW_ROWS,
    to: Math.min(to, from + (i + 1) * ROWS_WINDOW_ROWS),
  }));
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
