import { assert } from '../base/assert.ts';
import type { Decompress } from '../base/codecs.ts';
import { BATCH_COLUMN_BYTES_MAX, PARQUET_READ_ROWS_MAX } from '../base/limits.ts';
import { type Releasable, release } from '../base/release.ts';
import type { ByteStrings, Column } from '../columns/columns.ts';
import { releaseStrings } from '../columns/release.ts';
import {
  broken,
  Cursor,
  decodeBooleans,
  decodeByteStreamSplit,
  decodeDelta,
  decodeFixedWidth,
  decodeHybrid,
} from './decoding.ts';
import { type ColumnChunk, type FileColumn, type Piece, unsupported } from './footer-read.ts';
import {
  BOOLEAN,
  BYTE_ARRAY,
  BYTE_STREAM_SPLIT,
  DELTA_BINARY_PACKED,
  DOUBLE,
  FIXED_LEN_BYTE_ARRAY,
  FLOAT,
  INT32,
  INT64,
  PLAIN,
  PLAIN_DICTIONARY,
  RLE,
  RLE_DICTIONARY,
} from './layout.ts';
import { canInflate, type DataPage, type DictionaryPage, findPages, inflate, openPage } from './page-reader.ts';

/** How the values of a page are decoded. */
type Form = 'plain' | 'dictionary' | 'runs' | 'deltas' | 'streams';

/** The form of an encoding of a physical type; null: it is not read here. What is not named here is not decoded. */
function formOf(encoding: number, physical: number): Form | null {
  switch (encoding) {
    case PLAIN:
      return 'plain';
    case RLE_DICTIONARY:
    case PLAIN_DICTIONARY:
      return 'dictionary';
    case RLE:
      return physical === BOOLEAN ? 'runs' : null;
    case DELTA_BINARY_PACKED:
      return physical === INT32 || physical === INT64 ? 'deltas' : null;
    case BYTE_STREAM_SPLIT:
      return physical === FLOAT || physical === DOUBLE ? 'streams' : null;
    default:
      return null;
  }
}

/** Encodings that a footer names for levels, RLE; and BIT_PACKED, by old writers, for levels that are not there. */
const LEVELS: readonly number[] = [RLE, 4];

/** True when `readChunk` knows all that the footer says of a chunk's pages. */
export function canReadChunk({ codec, encodings }: ColumnChunk, { physical }: FileColumn): boolean {
  return (
    canInflate(codec) && encodings.every((encoding) => LEVELS.includes(encoding) || formOf(encoding, physical) !== null)
  );
}

/** One chunk's rows `from` to `to` of a row group of `groupRows`, in the file's own type. */
export function readChunk(
  chunk: ColumnChunk,
  column: FileColumn,
  groupRows: number,
  from: number,
  to: number,
  pieces: readonly Piece[],
  decompress: Decompress,
): Column {
  const { dictionary, pages } = findPages(chunk, column, groupRows, from, to, pieces);
  // Whole pages are decoded; what lies outside of the window is cut off afterwards.
  const base = pages.length === 0 ? from : pages[0].firstRow;
  const last = pages[pages.length - 1];
  const rows = last === undefined ? 0 : last.firstRow + last.rows - base;
  if (base > from || base + rows < to) throw broken(`pages of column ${column.name} do not cover the rows`);
  if (rows > PARQUET_READ_ROWS_MAX) throw unsupported(`pages of ${rows} rows are too large`);
  const reader: ChunkReader = { chunk, column, base, rows, pages, dictionary, decompress };
  const whole = column.physical === BYTE_ARRAY ? readStrings(reader) : readFixed(reader);
  return cut(whole, from - base, to - base, rows);
}

interface ChunkReader {
  chunk: ColumnChunk;
  column: FileColumn;
  base: number;
  rows: number;
  pages: DataPage[];
  dictionary: DictionaryPage | null;
  decompress: Decompress;
}

function isDictionary({ encoding }: DataPage, { physical }: FileColumn): boolean {
  return formOf(encoding, physical) === 'dictionary';
}

function openDictionary(reader: ChunkReader): { cursor: Cursor; count: number } {
  const { dictionary, chunk, decompress } = reader;
  if (dictionary === null) throw broken(`column ${reader.column.name} has no dictionary page`);
  const bytes = inflate(chunk, dictionary.body, dictionary.uncompressedSize, decompress);
  return { cursor: new Cursor(bytes, 0, bytes.length), count: dictionary.values };
}

/** Indices of dictionary entries, `count` of them, each below `size`. */
function readIndices(cursor: Cursor, out: Int32Array, offset: number, count: number, size: number): void {
  // A page of nulls may lack even the width.
  if (count === 0) return;
  const width = cursor.byte();
  decodeHybrid(cursor, width, out, offset, count);
  cursor.finish();
  for (let i = offset; i < offset + count; i++) {
    if (out[i] >= size) throw broken(`index ${out[i]} is not in a dictionary of ${size}`);
  }
}

/** Columns of fixed width: decoded into place, then spread over the nulls. */
function readFixed(reader: ChunkReader): Column {
  const { column, rows, base, pages } = reader;
  const { physical } = column;
  const validity = column.required ? null : new Uint8Array(rows);
  const width = widthOf(column);
  const buffer = new ArrayBuffer(rows * width);
  const bytes = new Uint8Array(buffer);
  const words = width % 4 === 0 ? new Int32Array(buffer) : null;
  const dictionary = pages.some((page) => isDictionary(page, column)) ? readFixedDictionary(reader, width) : null;
  const indices = dictionary === null ? null : new Int32Array(Math.max(...pages.map((page) => page.rows)));
  let valid = 0;
  for (const page of pages) {
    const at = page.firstRow - base;
    const { cursor, count } = openPage(page, reader.chunk, column, reader.decompress, validity, at);
    switch (formOf(page.encoding, physical)) {
      case 'dictionary':
        assert(dictionary !== null && indices !== null, 'a page with indices has a dictionary');
        readIndices(cursor, indices, 0, count, dictionary.length / width);
        gather(dictionary, indices, count, width, bytes, words, at);
        break;
      case 'plain':
        if (physical === BOOLEAN) decodeBooleans(cursor, bytes, at, count);
        else decodeFixedWidth(cursor, width, bytes, at, count);
        break;
      case 'runs':
        readRuns(cursor, bytes, at, count);
        break;
      case 'streams':
        decodeByteStreamSplit(cursor, width, bytes, at, count);
        break;
      case 'deltas':
        assert(words !== null, 'integers are whole words');
        if (count === 0 && cursor.at === cursor.end) break;
        decodeDelta(cursor, physical === INT64, words, at, count);
        cursor.finish();
        break;
      default:
        throw unsupported(`encoding ${page.encoding} of column ${column.name}`);
    }
    if (count < page.rows && validity !== null) spread(bytes, words, width, validity, at, page.rows, count);
    release(cursor.bytes);
    valid += count;
  }
  if (indices !== null) release(indices);
  if (dictionary !== null) release(dictionary);
  const nulls = validityOf(validity, valid, rows);
  switch (physical) {
    case BOOLEAN:
      return { kind: 'boolean', values: bytes, validity: nulls };
    case INT32:
      return { kind: 'int32', values: new Int32Array(buffer), validity: nulls };
    case INT64:
      return { kind: 'int64', values: new BigInt64Array(buffer), validity: nulls };
    case FLOAT:
      return { kind: 'float32', values: new Float32Array(buffer), validity: nulls };
    case DOUBLE:
      return { kind: 'float64', values: new Float64Array(buffer), validity: nulls };
    default:
      return { kind: 'fixed', width, values: bytes, validity: nulls };
  }
}

function widthOf(column: FileColumn): number {
  switch (column.physical) {
    case BOOLEAN:
      return 1;
    case INT32:
    case FLOAT:
      return 4;
    case INT64:
    case DOUBLE:
      return 8;
    case FIXED_LEN_BYTE_ARRAY:
      return column.length;
  }
  throw unsupported(`physical type ${column.physical} of column ${column.name}`);
}

/** PLAIN entries, copied so that they begin at a multiple of four bytes. */
function readFixedDictionary(reader: ChunkReader, width: number): Uint8Array {
  const { cursor, count } = openDictionary(reader);
  if (cursor.end - cursor.at !== count * width) throw broken(`dictionary of ${count} values has ${cursor.end} bytes`);
  // Not by `slice`: what the decompressor gives is a Buffer, whose slices are views.
  const values = new Uint8Array(cursor.end - cursor.at);
  values.set(cursor.bytes.subarray(cursor.at, cursor.end));
  release(cursor.bytes);
  return values;
}

function gather(
  dictionary: Uint8Array,
  indices: Int32Array,
  count: number,
  width: number,
  bytes: Uint8Array,
  words: Int32Array | null,
  at: number,
): void {
  if (words !== null && width === 8) {
    const entries = new Int32Array(dictionary.buffer, dictionary.byteOffset, dictionary.length >> 2);
    for (let i = 0; i < count; i++) {
      const entry = 2 * indices[i];
      words[2 * (at + i)] = entries[entry];
      words[2 * (at + i) + 1] = entries[entry + 1];
    }
  } else if (words !== null && width === 4) {
    const entries = new Int32Array(dictionary.buffer, dictionary.byteOffset, dictionary.length >> 2);
    for (let i = 0; i < count; i++) words[at + i] = entries[indices[i]];
  } else {
    for (let i = 0; i < count; i++) {
      const from = indices[i] * width;
      for (let k = 0; k < width; k++) bytes[(at + i) * width + k] = dictionary[from + k];
    }
  }
}

/** Booleans as runs, with their length before them. */
function readRuns(cursor: Cursor, out: Uint8Array, at: number, count: number): void {
  if (count === 0 && cursor.at === cursor.end) return;
  if (cursor.int32() !== cursor.end - cursor.at) throw broken('length of booleans is wrong');
  decodeHybrid(cursor, 1, out, at, count);
  cursor.finish();
}

/** Moves the values, which stand together at the start of the page, to the rows that have one; zeroes the others. */
function spread(
  bytes: Uint8Array,
  words: Int32Array | null,
  width: number,
  validity: Uint8Array,
  at: number,
  rows: number,
  count: number,
): void {
  let from = at + count - 1;
  if (words !== null && width === 8) {
    for (let row = at + rows - 1; row > from; row--) {
      const valid = validity[row] !== 0;
      words[2 * row] = valid ? words[2 * from] : 0;
      words[2 * row + 1] = valid ? words[2 * from + 1] : 0;
      if (valid) from--;
    }
    return;
  }
  if (words !== null && width === 4) {
    for (let row = at + rows - 1; row > from; row--) words[row] = validity[row] !== 0 ? words[from--] : 0;
    return;
  }
  for (let row = at + rows - 1; row > from; row--) {
    const valid = validity[row] !== 0;
    for (let k = 0; k < width; k++) bytes[row * width + k] = valid ? bytes[from * width + k] : 0;
    if (valid) from--;
  }
}

/** Byte strings of one page: indices of dictionary entries (`codes`), or the strings themselves (`cursor`). */
interface StringPage {
  at: number;
  rows: number;
  count: number;
  cursor: Cursor | null;
}

function readStrings(reader: ChunkReader): Column {
  const { column, rows, base, pages } = reader;
  const validity = column.required ? null : new Uint8Array(rows);
  const dictionary = pages.some((page) => isDictionary(page, column)) ? readStringDictionary(reader) : null;
  const codes = dictionary === null ? null : new Int32Array(rows);
  const parts: StringPage[] = [];
  let valid = 0;
  for (const page of pages) {
    const at = page.firstRow - base;
    const { cursor, count } = openPage(page, reader.chunk, column, reader.decompress, validity, at);
    valid += count;
    const form = formOf(page.encoding, column.physical);
    if (codes !== null && dictionary !== null && form === 'dictionary') {
      readIndices(cursor, codes, at, count, dictionary.offsets.length - 1);
      if (count < page.rows && validity !== null) spreadCodes(codes, validity, at, page.rows, count);
      release(cursor.bytes);
      parts.push({ at, rows: page.rows, count, cursor: null });
    } else if (form === 'plain') {
      parts.push({ at, rows: page.rows, count, cursor });
    } else throw unsupported(`encoding ${page.encoding} of column ${column.name}`);
  }
  const nulls = validityOf(validity, valid, rows);
  if (codes !== null && dictionary !== null && parts.every((part) => part.cursor === null)) {
    return { kind: 'dictionary', codes, dictionary, validity: nulls };
  }
  const values = joinStrings(parts, rows, nulls, codes, dictionary);
  for (const { cursor } of parts) if (cursor !== null) release(cursor.bytes);
  if (codes !== null) release(codes);
  if (dictionary !== null) releaseStrings(dictionary);
  return { kind: 'bytes', values, validity: nulls };
}

function spreadCodes(codes: Int32Array, validity: Uint8Array, at: number, rows: number, count: number): void {
  let from = at + count - 1;
  for (let row = at + rows - 1; row >= at; row--) codes[row] = validity[row] !== 0 ? codes[from--] : -1;
}

function readStringDictionary(reader: ChunkReader): ByteStrings {
  const { cursor, count } = openDictionary(reader);
  // Four bytes of length an entry: bounds the allocation by the page.
  if (count * 4 > cursor.end - cursor.at) throw broken(`dictionary of ${count} values has ${cursor.end} bytes`);
  const offsets = new Int32Array(count + 1);
  const bytes = new Uint8Array(cursor.end - cursor.at - 4 * count);
  copyStrings(cursor, count, bytes, 0, offsets, 0, null);
  release(cursor.bytes);
  return { bytes, offsets };
}

/** Strings of all pages as one list, for chunks with pages that refer to no dictionary. */
function joinStrings(
  parts: StringPage[],
  rows: number,
  validity: Uint8Array | null,
  codes: Int32Array | null,
  dictionary: ByteStrings | null,
): ByteStrings {
  let length = 0;
  for (const { cursor, count, at, rows: partRows } of parts) {
    if (cursor !== null) {
      if (count * 4 > cursor.end - cursor.at) throw broken(`${count} strings are longer than their page`);
      length += cursor.end - cursor.at - 4 * count;
    } else if (codes !== null && dictionary !== null) {
      for (let row = at; row < at + partRows; row++) {
        if (codes[row] >= 0) length += dictionary.offsets[codes[row] + 1] - dictionary.offsets[codes[row]];
      }
    }
  }
  // A dictionary of few bytes, spelled out row by row, may be any size.
  if (length > BATCH_COLUMN_BYTES_MAX) throw unsupported(`strings of ${length} bytes are too large for one window`);
  const bytes = new Uint8Array(length);
  const offsets = new Int32Array(rows + 1);
  let end = 0;
  for (const { cursor, count, at, rows: partRows } of parts) {
    if (cursor !== null) {
      end = copyStrings(cursor, count, bytes, end, offsets, at, validity, partRows);
      continue;
    }
    for (let row = at; row < at + partRows; row++) {
      if (codes !== null && dictionary !== null && codes[row] >= 0) {
        const from = dictionary.offsets[codes[row]];
        const to = dictionary.offsets[codes[row] + 1];
        bytes.set(dictionary.bytes.subarray(from, to), end);
        end += to - from;
      }
      offsets[row + 1] = end;
    }
  }
  return { bytes, offsets };
}

/** Copies PLAIN strings into `bytes` and their ends into `offsets`; null rows get empty ones. Returns the end. */
function copyStrings(
  cursor: Cursor,
  count: number,
  bytes: Uint8Array,
  start: number,
  offsets: Int32Array,
  at: number,
  validity: Uint8Array | null,
  rows = count,
): number {
  const source = cursor.bytes;
  let end = start;
  for (let row = at; row < at + rows; row++) {
    if (validity === null || validity[row] !== 0) {
      const length = cursor.int32();
      const from = cursor.at;
      if (length > cursor.end - from || end + length > bytes.length) throw broken('string runs past its page');
      if (length > 32) bytes.set(source.subarray(from, from + length), end);
      else for (let k = 0; k < length; k++) bytes[end + k] = source[from + k];
      cursor.at = from + length;
      end += length;
    }
    offsets[row + 1] = end;
  }
  cursor.finish();
  return end;
}

/** The validity, or null when no row is null. */
function validityOf(validity: Uint8Array | null, valid: number, rows: number): Uint8Array | null {
  if (validity === null || valid < rows) return validity;
  release(validity);
  return null;
}

/** Rows `from` to `to` of a column of `rows` rows, whose memory is given back. Values at null slots stay zero. */
function cut(column: Column, from: number, to: number, rows: number): Column {
  if (from === 0 && to === rows) return column;
  let validity = column.validity === null ? null : cutOut(column.validity, from, to);
  if (validity !== null && !validity.includes(0)) validity = null;
  switch (column.kind) {
    case 'boolean':
      return { ...column, values: cutOut(column.values, from, to), validity };
    case 'int32':
      return { ...column, values: cutOut(column.values, from, to), validity };
    case 'int64':
      return { ...column, values: cutOut(column.values, from, to), validity };
    case 'float32':
      return { ...column, values: cutOut(column.values, from, to), validity };
    case 'float64':
      return { ...column, values: cutOut(column.values, from, to), validity };
    case 'fixed':
      return { ...column, values: cutOut(column.values, from * column.width, to * column.width), validity };
    case 'dictionary':
      return { ...column, codes: cutOut(column.codes, from, to), validity };
    case 'bytes': {
      const { bytes, offsets } = column.values;
      const start = offsets[from];
      const kept = cutOut(bytes, start, offsets[to]);
      const ends = cutOut(offsets, from, to + 1);
      for (let i = 0; i < ends.length; i++) ends[i] -= start;
      return { kind: 'bytes', values: { bytes: kept, offsets: ends }, validity };
    }
    case 'nested':
      return { ...column, values: column.values.slice(from, to), validity };
  }
}

function cutOut<A extends Releasable>(array: A, from: number, to: number): A {
  const part = array.slice(from, to) as A;
  release(array);
  return part;
}
