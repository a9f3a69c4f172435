import { assert } from '../base/assert.ts';
import type { Decompress } from '../base/codecs.ts';
import { corrupt, SluiceError } from '../base/errors.ts';
import { PAGE_ROWS, PARQUET_READ_ROWS_MAX } from '../base/limits.ts';
import type { Column, Columns } from '../columns/columns.ts';
import { promoteColumn } from '../columns/promote.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, PrimitiveType, Schema } from '../iceberg/types.ts';
import { readChunk } from './column-reader.ts';
import { type ByteRange, type FileColumn, type ParquetFooter, type Piece, unsupported } from './footer-read.ts';
import { BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, storageOf } from './layout.ts';

export {
  addIndexes,
  type ByteRange,
  footerLength,
  indexRange,
  PARQUET_UNSUPPORTED,
  type ParquetFooter,
  type Piece,
  parseFooter,
} from './footer-read.ts';

/**
 * The stretches of the file that hold rows `from` to `to` (exclusive) of a row group, of the fields given by id;
 * sorted, and joined where no more than `gapBytesMax` lies between. Without an offset index a column is read whole.
 * Fields that the file does not have need no bytes.
 */
export function planWindow(
  footer: ParquetFooter,
  rowGroup: number,
  fieldIds: readonly number[],
  from: number,
  to: number,
  gapBytesMax = 0,
): ByteRange[] {
  const { rows, chunks } = groupOf(footer, rowGroup);
  const wanted = new Set(fieldIds);
  const ranges: ByteRange[] = [];
  footer.columns.forEach((column, i) => {
    if (column.id === null || !wanted.has(column.id)) return;
    const { offset, length, pages } = chunks[i];
    if (pages === null || pages.length === 0) {
      ranges.push({ offset, length });
      return;
    }
    if (pages[0].offset > offset) ranges.push({ offset, length: pages[0].offset - offset });
    pages.forEach((page, at) => {
      const end = at + 1 < pages.length ? pages[at + 1].firstRow : rows;
      if (page.firstRow < to && end > from) ranges.push({ offset: page.offset, length: page.size });
    });
  });
  return coalesce(ranges, gapBytesMax);
}

/** Pages of a field in a row group; 0 where the offset index is not known, or the file has no such field. */
export function pageCount(footer: ParquetFooter, rowGroup: number, fieldId: number): number {
  const at = footer.columns.findIndex(({ id }) => id === fieldId);
  return at === -1 ? 0 : (groupOf(footer, rowGroup).chunks[at].pages ?? []).length;
}

/**
 * Ranges that hold these rows of a row group, which ascend; two are apart where no page of these fields has rows of both, so
 * that none is decoded twice.
 */
export function rangesOf(
  footer: ParquetFooter,
  rowGroup: number,
  fieldIds: readonly number[],
  rows: Int32Array,
): { from: number; to: number }[] {
  const { chunks } = groupOf(footer, rowGroup);
  const indexes = footer.columns.flatMap(({ id }, i) =>
    id !== null && fieldIds.includes(id) ? [chunks[i].pages ?? []] : [],
  );
  const at = new Int32Array(indexes.length);
  const ranges: { from: number; to: number }[] = [];
  for (const row of rows) {
    // Columns that are not there have no pages to be apart by.
    let isApart = indexes.length > 0;
    indexes.forEach((pages, i) => {
      const before = at[i];
      while (at[i] + 1 < pages.length && pages[at[i] + 1].firstRow <= row) at[i]++;
      if (at[i] === before) isApart = false;
    });
    const last = ranges[ranges.length - 1];
    if (last === undefined || isApart) ranges.push({ from: row, to: row + 1 });
    else last.to = row + 1;
  }
  return ranges;
}

/** True when a column of these ids has no offset index, so that any window of it takes all of its pages. */
export function isReadWhole(footer: ParquetFooter, rowGroup: number, fieldIds: readonly number[]): boolean {
  const { chunks } = groupOf(footer, rowGroup);
  return footer.columns.some(
    ({ id }, i) => id !== null && fieldIds.includes(id) && (chunks[i].pages ?? []).length === 0,
  );
}

/** About what rows of a row group take in memory while they are decoded, whole pages and all, as the footer tells it. */
export function windowBytes(
  footer: ParquetFooter,
  rowGroup: number,
  fieldIds: readonly number[],
  { from, to }: { from: number; to: number },
): number {
  const { rows, chunks } = groupOf(footer, rowGroup);
  const share = Math.min(1, (to - from + PAGE_ROWS) / Math.max(1, rows));
  return footer.columns.reduce((sum, { id }, i) => {
    return id === null || !fieldIds.includes(id) ? sum : sum + share * chunks[i].inflatedLength;
  }, 0);
}

/** The one stretch of the file that holds a whole row group, all columns. */
export function rowGroupRange(footer: ParquetFooter, rowGroup: number): ByteRange {
  const { chunks } = groupOf(footer, rowGroup);
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { offset, length } of chunks) {
    from = Math.min(from, offset);
    to = Math.max(to, offset + length);
  }
  return to === 0 ? { offset: 0, length: 0 } : { offset: from, length: to - from };
}

/** The ranges sorted, and joined where no more than `gapBytesMax` lies between. */
export function coalesce(ranges: ByteRange[], gapBytesMax: number): ByteRange[] {
  const out: ByteRange[] = [];
  for (const range of ranges.sort((a, b) => a.offset - b.offset)) {
    const last = out[out.length - 1];
    if (last !== undefined && range.offset <= last.offset + last.length + gapBytesMax) {
      last.length = Math.max(last.length, range.offset + range.length - last.offset);
    } else out.push({ ...range });
  }
  return out;
}

/**
 * Rows `from` to `to` (exclusive) of a row group, as columns of `schema`: fields are found by id, narrower types are
 * widened (M23), fields that the file does not have are null (P18). Dictionary-encoded strings stay codes. `pieces`
 * hold at least the stretches of `planWindow`.
 *
 * Errors: corrupt `parquet-corrupt`; invalid `parquet-unsupported` for nested columns, other codecs than zstd and snappy, and
 * other encodings than this package writes: read those files with the general reader.
 */
export function readWindow(
  footer: ParquetFooter,
  rowGroup: number,
  schema: Schema,
  from: number,
  to: number,
  pieces: readonly Piece[],
  decompress: Decompress,
): Columns {
  const { rows: groupRows, chunks } = groupOf(footer, rowGroup);
  assert(from >= 0 && from <= to && to <= groupRows, `rows ${from} to ${to} lie in a row group of ${groupRows}`);
  if (to - from > PARQUET_READ_ROWS_MAX) throw unsupported(`${to - from} rows are too many for one window`);
  // Without ids every field would seem absent.
  if (footer.columns.every((column) => column.id === null)) throw unsupported('columns have no field ids');
  const columns = schema.fields.map((field) => {
    if (footer.groupIds.has(field.id)) throw unsupported(`column ${field.name} is nested`);
    const at = footer.columns.findIndex((column) => column.id === field.id);
    if (at === -1) return absent(field, to - from);
    const column = footer.columns[at];
    const stored = storedType(column, field);
    if (from === to) return empty(field);
    const read = guarded(() => readChunk(chunks[at], column, groupRows, from, to, pieces, decompress));
    return stored === field.type ? read : promoteColumn(read, field, stored);
  });
  return { schema, rows: to - from, columns };
}

function groupOf(footer: ParquetFooter, rowGroup: number) {
  const group = footer.rowGroups[rowGroup];
  assert(group !== undefined, `row group ${rowGroup} is one of ${footer.rowGroups.length}`);
  return group;
}

/** Damage that shows in the decompressor is damage of the file. */
function guarded(read: () => Column): Column {
  try {
    return read();
  } catch (error) {
    if (error instanceof SluiceError && error.kind === 'corrupt' && error.type !== 'parquet-corrupt') {
      throw corrupt('parquet-corrupt', `parquet page: ${error.message}`, {}, error);
    }
    throw error;
  }
}

/** The type of a column in the file, when its values can be read as those of the field. */
function storedType(column: FileColumn, field: NestedField): PrimitiveType {
  if (!column.flat || typeof field.type !== 'string') throw unsupported(`column ${field.name} is nested`);
  if (column.type === null || !canWiden(column.type, field.type)) {
    throw unsupported(`column ${field.name} of type ${field.type} is stored as ${column.type ?? 'something else'}`);
  }
  return column.type;
}

/** True when the values of a column of a file are those of the field as they lie, or by being widened. */
export function canRead(column: FileColumn, field: NestedField): boolean {
  return column.flat && typeof field.type === 'string' && column.type !== null && canWiden(column.type, field.type);
}

/** True when values of a column in a file can be read as those of a wider type (M23), or of the type itself in whatever spelling. */
export function canWiden(from: PrimitiveType, to: PrimitiveType): boolean {
  const a = primitive(from);
  const b = primitive(to);
  if (a.name === 'decimal') return b.name === 'decimal' && a.scale === b.scale && a.precision <= b.precision;
  if (a.name === 'fixed') return b.name === 'fixed' && a.length === b.length;
  return a.name === b.name || (a.name === 'int' && b.name === 'long') || (a.name === 'float' && b.name === 'double');
}

function absent(field: NestedField, rows: number): Column {
  if (field.required) throw corrupt('parquet-corrupt', `parquet file: required column ${field.name} is missing`);
  return blank(field, rows, new Uint8Array(rows));
}

function empty(field: NestedField): Column {
  return blank(field, 0, null);
}

/** A column of the field's kind with zeros throughout. */
function blank(field: NestedField, rows: number, validity: Uint8Array | null): Column {
  if (typeof field.type !== 'string') return { kind: 'nested', values: new Array(rows).fill(null), validity };
  const { physical, length } = storageOf(field.type);
  switch (physical) {
    case BOOLEAN:
      return { kind: 'boolean', values: new Uint8Array(rows), validity };
    case INT32:
      return { kind: 'int32', values: new Int32Array(rows), validity };
    case FLOAT:
      return { kind: 'float32', values: new Float32Array(rows), validity };
    case DOUBLE:
      return { kind: 'float64', values: new Float64Array(rows), validity };
    case FIXED_LEN_BYTE_ARRAY:
      return { kind: 'fixed', width: length, values: new Uint8Array(rows * length), validity };
    case BYTE_ARRAY: {
      const dictionary = { bytes: new Uint8Array(), offsets: new Int32Array(1) };
      return { kind: 'dictionary', codes: new Int32Array(rows).fill(-1), dictionary, validity };
    }
    default:
      return { kind: 'int64', values: new BigInt64Array(rows), validity };
  }
}
