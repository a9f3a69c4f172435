import { SluiceError } from '../base/errors.ts';
import { primitive } from '../iceberg/primitive.ts';
import { decodeValue, fromTwosComplement } from '../iceberg/single-value.ts';
import type { PrimitiveType, Value } from '../iceberg/types.ts';
import type { KnownValues, ValueTest } from '../iceberg/value-test.ts';
import type { ByteRange, ColumnChunk, FileColumn, ParquetFooter, Piece } from './footer-read.ts';
import { canWiden } from './reader.ts';
import { listAt, readStruct } from './thrift.ts';

/** Rows `from` to `to` (exclusive) of a row group. */
export interface RowRange {
  from: number;
  to: number;
}

/** The stretch of the file with the column and offset indexes that the tests ask for, and all offset indexes; or null. */
export function pruningRange(footer: ParquetFooter, tests: readonly ValueTest[]): ByteRange | null {
  const wanted = new Set(tests.map(({ fieldId }) => fieldId));
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  const cover = (range: ByteRange | null) => {
    if (range === null) return;
    from = Math.min(from, range.offset);
    to = Math.max(to, range.offset + range.length);
  };
  for (const { chunks } of footer.rowGroups) {
    chunks.forEach((chunk, i) => {
      cover(chunk.offsetIndex);
      if (wanted.has(footer.columns[i].id ?? Number.NaN)) cover(chunk.columnIndex);
    });
  }
  return to === 0 ? null : { offset: from, length: to - from };
}

/**
 * The rows of a row group that may meet all tests: none by the bounds of the chunks, or those of pages by the column indexes,
 * as far as `piece` holds them and the offset indexes were read. What does not tell its values is read.
 */
export function rowsToRead(
  footer: ParquetFooter,
  rowGroup: number,
  tests: readonly ValueTest[],
  piece: Piece | null,
): RowRange[] {
  const { rows, chunks } = footer.rowGroups[rowGroup];
  let ranges: RowRange[] = rows === 0 ? [] : [{ from: 0, to: rows }];
  // Without ids every column would seem younger than the file.
  if (footer.columns.every(({ id }) => id === null)) return ranges;
  for (const test of tests) {
    const at = footer.columns.findIndex(({ id }) => id === test.fieldId);
    if (at === -1) {
      // The file is older than the column.
      if (!test.mayHold({ lower: null, upper: null, hasNull: true, hasValue: false })) return [];
      continue;
    }
    const column = footer.columns[at];
    if (column.type === null || !column.flat || !canWiden(column.type, test.type)) continue;
    if (!test.mayHold(chunkValues(chunks[at], column, column.type, test.type, rows))) return [];
    ranges = intersect(ranges, pageRanges(chunks[at], column.type, test, rows, piece));
  }
  return ranges;
}

function chunkValues(
  { statistics }: ColumnChunk,
  column: FileColumn,
  stored: PrimitiveType,
  type: PrimitiveType,
  rows: number,
): KnownValues {
  if (statistics === null) return UNKNOWN;
  const { min, max } = statistics;
  const nulls = column.required ? 0 : statistics.nulls;
  return {
    lower: min === null ? null : boundOf(stored, type, min),
    upper: max === null ? null : boundOf(stored, type, max),
    hasNull: nulls === null ? null : nulls > 0,
    hasValue: nulls === null ? null : nulls < rows,
  };
}

const UNKNOWN: KnownValues = { lower: null, upper: null, hasNull: null, hasValue: null };

/** Ranges of the pages that may hold rows of the test. */
function pageRanges(
  chunk: ColumnChunk,
  stored: PrimitiveType,
  test: ValueTest,
  rows: number,
  piece: Piece | null,
): RowRange[] {
  const whole = [{ from: 0, to: rows }];
  const { pages } = chunk;
  const known = pages === null ? null : pageValues(chunk, pages.length, stored, test.type, piece);
  if (pages === null || known === null) return whole;
  const ranges: RowRange[] = [];
  pages.forEach(({ firstRow }, i) => {
    if (!test.mayHold(known[i])) return;
    const to = i + 1 < pages.length ? pages[i + 1].firstRow : rows;
    const last = ranges[ranges.length - 1];
    if (last?.to === firstRow) last.to = to;
    else ranges.push({ from: firstRow, to });
  });
  return ranges;
}

/** What the column index says of each page; null when it was not read or does not fit the pages. */
function pageValues(
  { columnIndex }: ColumnChunk,
  count: number,
  stored: PrimitiveType,
  type: PrimitiveType,
  piece: Piece | null,
): KnownValues[] | null {
  if (columnIndex === null || piece === null) return null;
  const at = columnIndex.offset - piece.offset;
  if (at < 0 || at + columnIndex.length > piece.bytes.length) return null;
  const { struct } = readStruct(piece.bytes.subarray(0, at + columnIndex.length), at);
  const [empty, mins, maxs, nulls] = [1, 2, 3, 5].map((id) => listAt(struct, id));
  if (empty.length !== count || mins.length !== count || maxs.length !== count) return null;
  return empty.map((isEmpty, i) => {
    const counted = nulls.length === count ? nulls[i] : null;
    const hasNull = typeof counted === 'number' ? counted > 0 : null;
    if (isEmpty === true) return { lower: null, upper: null, hasNull, hasValue: false };
    return { lower: boundAt(mins[i]), upper: boundAt(maxs[i]), hasNull, hasValue: true };
  });

  function boundAt(bytes: unknown): Value {
    return bytes instanceof Uint8Array ? boundOf(stored, type, bytes) : null;
  }
}

/** A bound as a value of the column's present type; null when it is none. */
function boundOf(stored: PrimitiveType, type: PrimitiveType, bytes: Uint8Array): Value {
  try {
    const shape = primitive(stored);
    if (shape.name === 'decimal') {
      // Up to 18 digits stand as integers, little endian.
      return fromTwosComplement(shape.precision <= 18 && bytes.length >= 4 ? bytes.slice().reverse() : bytes);
    }
    const value = decodeValue(stored, bytes);
    return typeof value === 'number' && primitive(type).name === 'long' ? BigInt(value) : value;
  } catch (error) {
    // Text that was cut inside of a character: a bound all the same, but none that can be compared.
    if (error instanceof SluiceError) return null;
    throw error;
  }
}

function intersect(a: readonly RowRange[], b: readonly RowRange[]): RowRange[] {
  const out: RowRange[] = [];
  let i = 0;
  let j = 0;
  while (i < a.length && j < b.length) {
    const from = Math.max(a[i].from, b[j].from);
    const to = Math.min(a[i].to, b[j].to);
    if (from < to) out.push({ from, to });
    if (a[i].to < b[j].to) i++;
    else j++;
  }
  return out;
}
