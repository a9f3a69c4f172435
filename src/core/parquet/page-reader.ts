import type { Decompress } from '../base/codecs.ts';
import { PARQUET_PAGE_BYTES_MAX } from '../base/limits.ts';
import { broken, Cursor, decodeHybrid } from './decoding.ts';
import { type ColumnChunk, type FileColumn, type Piece, unsupported } from './footer-read.ts';
import { PLAIN, PLAIN_DICTIONARY, RLE, RLE_DICTIONARY, SNAPPY, UNCOMPRESSED, ZSTD } from './layout.ts';
import { DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE } from './page.ts';
import { decompressSnappy } from './snappy.ts';
import { booleanAt, readStruct, sizeAt, structAt, type ThriftStruct } from './thrift.ts';

/** A data page found in a chunk, its body still compressed. */
export interface DataPage {
  firstRow: number;
  rows: number;
  encoding: number;
  /** Version 2 keeps the levels outside of the compressed part. */
  version: 1 | 2;
  levelBytes: number;
  compressed: boolean;
  uncompressedSize: number;
  body: Uint8Array;
}

export interface DictionaryPage {
  values: number;
  uncompressedSize: number;
  body: Uint8Array;
}

/** The bytes of a stretch of the file, out of what was read. Errors: corrupt when they were not. */
export function bytesAt(pieces: readonly Piece[], offset: number, length: number): Uint8Array {
  for (const piece of pieces) {
    const at = offset - piece.offset;
    if (at >= 0 && at + length <= piece.bytes.length) return piece.bytes.subarray(at, at + length);
  }
  throw broken(`bytes ${offset} to ${offset + length} of the file were not read`);
}

/**
 * The pages of a chunk that hold rows `from` to `to`, and its dictionary page if it has one. With an offset index only
 * those pages need be in `pieces`, else the whole chunk.
 */
export function findPages(
  chunk: ColumnChunk,
  column: FileColumn,
  groupRows: number,
  from: number,
  to: number,
  pieces: readonly Piece[],
): { dictionary: DictionaryPage | null; pages: DataPage[] } {
  const found: { dictionary: DictionaryPage | null; pages: DataPage[] } = { dictionary: null, pages: [] };
  const locations = chunk.pages;
  if (locations === null) {
    const bytes = bytesAt(pieces, chunk.offset, chunk.length);
    let at = 0;
    let row = 0;
    while (at < bytes.length) {
      const page = readPage(bytes, at, chunk, column, row);
      at = page.end;
      if (page.dictionary !== null) {
        if (row > 0 || found.dictionary !== null) throw broken('dictionary page is not the first');
        found.dictionary = page.dictionary;
      } else if (page.data !== null) {
        if (row < to && row + page.data.rows > from) found.pages.push(page.data);
        row += page.data.rows;
      }
    }
    if (row !== groupRows) throw broken(`pages of column ${column.name} hold ${row} rows of ${groupRows}`);
    return found;
  }
  if (locations.length > 0 && locations[0].offset > chunk.offset) {
    const length = locations[0].offset - chunk.offset;
    const page = readPage(bytesAt(pieces, chunk.offset, length), 0, chunk, column, 0);
    if (page.dictionary === null || page.end !== length) throw broken('no dictionary page before the first page');
    found.dictionary = page.dictionary;
  }
  locations.forEach((location, i) => {
    const { firstRow, offset, size } = location;
    const nextRow = i + 1 < locations.length ? locations[i + 1].firstRow : groupRows;
    if (nextRow <= from || firstRow >= to) return;
    const page = readPage(bytesAt(pieces, offset, size), 0, chunk, column, firstRow);
    if (page.data === null || page.end !== size || page.data.rows !== nextRow - firstRow) {
      throw broken('page is not what the offset index says');
    }
    found.pages.push(page.data);
  });
  return found;
}

interface FoundPage {
  end: number;
  data: DataPage | null;
  dictionary: DictionaryPage | null;
}

function readPage(bytes: Uint8Array, at: number, chunk: ColumnChunk, column: FileColumn, firstRow: number): FoundPage {
  const { struct, end: start } = readStruct(bytes, at);
  const type = sizeAt(struct, 1);
  const uncompressedSize = sizeAt(struct, 2);
  const end = start + sizeAt(struct, 3);
  if (end > bytes.length) throw broken('page runs past its column');
  if (uncompressedSize > PARQUET_PAGE_BYTES_MAX) throw broken(`page of ${uncompressedSize} bytes is too large`);
  const body = bytes.subarray(start, end);
  if (type === DICTIONARY_PAGE) {
    const header = headerOf(struct, 7);
    const encoding = sizeAt(header, 2);
    if (encoding !== PLAIN && encoding !== PLAIN_DICTIONARY) throw broken(`dictionary page has encoding ${encoding}`);
    return { end, data: null, dictionary: { values: sizeAt(header, 1), uncompressedSize, body } };
  }
  // Index pages and pages of later versions hold no rows of this one.
  if (type !== DATA_PAGE && type !== DATA_PAGE_V2) return { end, data: null, dictionary: null };
  const header = headerOf(struct, type === DATA_PAGE ? 5 : 8);
  const rows = sizeAt(header, 1);
  const page = { firstRow, rows, uncompressedSize, body };
  let data: DataPage;
  if (type === DATA_PAGE) {
    if (!column.required && sizeAt(header, 3) !== RLE) throw unsupported('levels are not RLE');
    data = { ...page, encoding: sizeAt(header, 2), version: 1, levelBytes: 0, compressed: true };
  } else {
    const levelBytes = sizeAt(header, 5);
    if (sizeAt(header, 6) !== 0 || sizeAt(header, 3) !== rows) throw broken('flat column has repetition levels');
    if (levelBytes > body.length || levelBytes > uncompressedSize) throw broken('levels run past their page');
    const compressed = booleanAt(header, 7) !== false;
    data = { ...page, encoding: sizeAt(header, 4), version: 2, levelBytes, compressed };
  }
  // Guards against a damaged header: the footer names the encodings too.
  if (!chunk.encodings.includes(data.encoding) && !isDictionary(data.encoding, chunk)) {
    throw broken(`encoding ${data.encoding} is not among those of column ${column.name}`);
  }
  return { end, data, dictionary: null };
}

/** Writers that name the one dictionary encoding in the footer and the other in the page mean the same. */
function isDictionary(encoding: number, chunk: ColumnChunk): boolean {
  if (encoding !== RLE_DICTIONARY && encoding !== PLAIN_DICTIONARY) return false;
  return chunk.encodings.includes(RLE_DICTIONARY) || chunk.encodings.includes(PLAIN_DICTIONARY);
}

function headerOf(struct: ThriftStruct, id: number): ThriftStruct {
  const header = structAt(struct, id);
  if (header === null) throw broken('page has no header for its type');
  return header;
}

/** What undoes the compression of a codec; what is not named here is not read here. `zstd` is passed in. */
function inflaterOf(codec: number, zstd: Decompress): Decompress | null {
  switch (codec) {
    case UNCOMPRESSED:
      return asItIs;
    case ZSTD:
      return zstd;
    case SNAPPY:
      return decompressSnappy;
    default:
      return null;
  }
}

function asItIs(body: Uint8Array, length: number): Uint8Array {
  if (body.length !== length) throw broken(`${length} bytes expected, found ${body.length}`);
  return body;
}

export function canInflate(codec: number): boolean {
  return inflaterOf(codec, asItIs) !== null;
}

/** Undoes the compression of a stretch. Errors: corrupt; `PARQUET_UNSUPPORTED` for other codecs than zstd and snappy. */
export function inflate(chunk: ColumnChunk, body: Uint8Array, length: number, decompress: Decompress): Uint8Array {
  const inflater = inflaterOf(chunk.codec, decompress);
  if (inflater === null) throw unsupported(`compression codec ${chunk.codec}`);
  // Version 2 pages without values may have nothing to decompress.
  return length === 0 && body.length === 0 ? body : inflater(body, length);
}

/**
 * The values of a page, decompressed, with its levels written into `validity` from `offset` on. Returns a cursor at
 * the first value and the number of values that are not null.
 */
export function openPage(
  page: DataPage,
  chunk: ColumnChunk,
  column: FileColumn,
  decompress: Decompress,
  validity: Uint8Array | null,
  offset: number,
): { cursor: Cursor; count: number } {
  const { rows } = page;
  if (page.version === 1) {
    const bytes = inflate(chunk, page.body, page.uncompressedSize, decompress);
    const cursor = new Cursor(bytes, 0, bytes.length);
    if (validity === null) return { cursor, count: rows };
    const length = cursor.int32();
    const levels = new Cursor(bytes, cursor.at, cursor.at + length);
    decodeHybrid(levels, 1, validity, offset, rows);
    levels.finish();
    cursor.at = levels.end;
    return { cursor, count: ones(validity, offset, rows) };
  }
  const { body, levelBytes } = page;
  const length = page.uncompressedSize - levelBytes;
  const packed = body.subarray(levelBytes);
  const bytes = page.compressed ? inflate(chunk, packed, length, decompress) : packed;
  if (bytes.length !== length) throw broken(`${length} bytes expected, found ${bytes.length}`);
  const cursor = new Cursor(bytes, 0, bytes.length);
  if (validity === null) {
    if (levelBytes !== 0) throw broken(`required column ${column.name} has levels`);
    return { cursor, count: rows };
  }
  const levels = new Cursor(body, 0, levelBytes);
  decodeHybrid(levels, 1, validity, offset, rows);
  levels.finish();
  return { cursor, count: ones(validity, offset, rows) };
}

function ones(validity: Uint8Array, from: number, rows: number): number {
  let count = 0;
  for (let row = from; row < from + rows; row++) count += validity[row];
  return count;
}
