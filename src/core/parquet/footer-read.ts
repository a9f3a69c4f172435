import { textOf } from '../base/bytes.ts';
import { corrupt, invalid, type SluiceError } from '../base/errors.ts';
import { PARQUET_FOOTER_BYTES_MAX } from '../base/limits.ts';
import type { PrimitiveType } from '../iceberg/types.ts';
import { MAGIC } from './footer-write.ts';
import { BOOLEAN, BYTE_ARRAY, DOUBLE, FIXED_LEN_BYTE_ARRAY, FLOAT, INT32, INT64, storageOf } from './layout.ts';
import {
  binaryAt,
  booleanAt,
  listAt,
  numberAt,
  readStruct,
  sizeAt,
  structAt,
  structsAt,
  type ThriftStruct,
} from './thrift.ts';

/** Bytes of a file at an offset. */
export interface Piece {
  offset: number;
  bytes: Uint8Array;
}

export interface ByteRange {
  offset: number;
  length: number;
}

/** A leaf column of a file. */
export interface FileColumn {
  /** Absent in files whose writer knew no field ids. */
  id: number | null;
  name: string;
  /** True for a primitive top-level column; only those can be read here. */
  flat: boolean;
  required: boolean;
  physical: number;
  length: number;
  /** The Iceberg v2 type that is stored in exactly this way, or null: then another reader has to be asked. */
  type: PrimitiveType | null;
}

export interface PageLocation {
  offset: number;
  /** With the header. */
  size: number;
  firstRow: number;
}

export interface ColumnChunk {
  codec: number;
  encodings: number[];
  /** Where dictionary page or first data page begins, and the compressed bytes of all pages. */
  offset: number;
  length: number;
  /** Of all pages, levels included, before compression. */
  inflatedLength: number;
  /** Nulls and empty lists included. */
  values: number;
  dataOffset: number;
  offsetIndex: ByteRange | null;
  columnIndex: ByteRange | null;
  /** Pages by the offset index, once it was read. */
  pages: PageLocation[] | null;
  /** As the footer has them: bounds are bytes as PLAIN stores a value, maybe cut. */
  statistics: ChunkStatistics | null;
}

export interface ChunkStatistics {
  min: Uint8Array | null;
  max: Uint8Array | null;
  nulls: number | null;
}

export interface RowGroup {
  rows: number;
  /** By leaf column. */
  chunks: ColumnChunk[];
}

export interface ParquetFooter {
  rows: number;
  createdBy: string | null;
  keyValues: Map<string, string>;
  /** The schema as it stands in the file, depth first; the first is the root. */
  elements: ThriftStruct[];
  columns: FileColumn[];
  /** Field ids of lists, structs and maps, which cannot be read here. */
  groupIds: Set<number>;
  rowGroups: RowGroup[];
}

const broken = (what: string): SluiceError => corrupt('parquet-corrupt', `parquet footer: ${what}`);

/** `type` of errors that mean: a valid file, but not for this reader; ask the general one. */
export const PARQUET_UNSUPPORTED = 'parquet-unsupported';

/** The error of kind invalid and type `PARQUET_UNSUPPORTED`. */
export function unsupported(what: string): SluiceError {
  return invalid(PARQUET_UNSUPPORTED, `parquet file: ${what}`);
}

/** Bytes from the footer's first to the file's last, told by the last eight bytes of the file. */
export function footerLength(tail: Uint8Array): number {
  const end = tail.length;
  if (end < 8) throw broken(`file is too short: ${end} bytes`);
  for (let i = 0; i < 4; i++) if (tail[end - 4 + i] !== MAGIC[i]) throw broken('magic bytes are missing at the end');
  const length = new DataView(tail.buffer, tail.byteOffset + end - 8, 4).getUint32(0, true);
  if (length > PARQUET_FOOTER_BYTES_MAX) throw broken(`footer is too large: ${length} bytes`);
  return length + 8;
}

/**
 * Reads the footer out of the last bytes of a file, at least `footerLength` of them. Offset indexes that lie within
 * these bytes are read too. Errors: corrupt `parquet-corrupt`.
 */
export function parseFooter(tail: Uint8Array, fileSize: number): ParquetFooter {
  const length = footerLength(tail);
  if (length > tail.length) throw broken(`${length} bytes expected, given ${tail.length}`);
  if (fileSize < length + MAGIC.length) throw broken(`file of ${fileSize} bytes has a footer of ${length}`);
  const { struct, end } = readStruct(tail.subarray(0, tail.length - 8), tail.length - length);
  if (end !== tail.length - 8) throw broken('length is wrong');
  const elements = structsAt(struct, 2);
  const { columns, groupIds } = columnsOf(elements);
  const rows = sizeAt(struct, 3);
  const dataEnd = fileSize - length;
  const rowGroups = structsAt(struct, 4).map((group) => rowGroupOf(group, columns, dataEnd));
  let sum = 0;
  for (const group of rowGroups) sum += group.rows;
  if (sum !== rows) throw broken(`row groups hold ${sum} rows of ${rows}`);
  const keyValues = new Map<string, string>();
  for (const entry of structsAt(struct, 5)) keyValues.set(textAt(entry, 1) ?? '', textAt(entry, 2) ?? '');
  const footer = { rows, createdBy: textAt(struct, 6), keyValues, elements, columns, groupIds, rowGroups };
  addIndexes(footer, { offset: fileSize - tail.length, bytes: tail });
  return footer;
}

/** The stretch of the file that holds the offset indexes not read yet, or null. */
export function indexRange(footer: ParquetFooter): ByteRange | null {
  let from = Number.POSITIVE_INFINITY;
  let to = 0;
  for (const { chunks } of footer.rowGroups) {
    for (const { offsetIndex, pages } of chunks) {
      if (offsetIndex === null || pages !== null) continue;
      from = Math.min(from, offsetIndex.offset);
      to = Math.max(to, offsetIndex.offset + offsetIndex.length);
    }
  }
  return to === 0 ? null : { offset: from, length: to - from };
}

/** Reads the offset indexes that lie within the piece. Errors: corrupt `parquet-corrupt`. */
export function addIndexes(footer: ParquetFooter, piece: Piece): void {
  for (const group of footer.rowGroups) {
    for (const chunk of group.chunks) {
      const { offsetIndex } = chunk;
      if (offsetIndex === null || chunk.pages !== null) continue;
      const at = offsetIndex.offset - piece.offset;
      if (at < 0 || at + offsetIndex.length > piece.bytes.length) continue;
      const { struct, end } = readStruct(piece.bytes.subarray(0, at + offsetIndex.length), at);
      if (end !== at + offsetIndex.length) throw broken('length of an offset index is wrong');
      chunk.pages = pagesOf(structsAt(struct, 1), chunk, group.rows);
    }
  }
}

function pagesOf(locations: ThriftStruct[], chunk: ColumnChunk, rows: number): PageLocation[] {
  const pages = locations.map((location) => ({
    offset: sizeAt(location, 1),
    size: sizeAt(location, 2),
    firstRow: sizeAt(location, 3),
  }));
  let offset = chunk.dataOffset;
  let row = -1;
  for (const page of pages) {
    // Pages follow each other without a gap; rows only rise, from the first.
    if (page.offset !== offset || page.firstRow <= row || page.firstRow >= rows) throw broken('offset index is wrong');
    if (row === -1 && page.firstRow !== 0) throw broken('offset index does not begin at row 0');
    offset += page.size;
    row = page.firstRow;
  }
  if (offset !== chunk.offset + chunk.length) throw broken('offset index does not cover its pages');
  return pages;
}

function textAt(struct: ThriftStruct, id: number): string | null {
  const bytes = binaryAt(struct, id);
  if (bytes === null) return null;
  try {
    return textOf(bytes);
  } catch {
    throw broken(`field ${id} is not text`);
  }
}

/** The leaves of the schema, depth first. `elements[0]` is the root. */
export function columnsOf(elements: ThriftStruct[]): Pick<ParquetFooter, 'columns' | 'groupIds'> {
  if (elements.length === 0) throw broken('schema is missing');
  const columns: FileColumn[] = [];
  const groupIds = new Set<number>();
  let at = 1;
  // Depth is tracked by the children still to come at each level, without recursion.
  const open: number[] = [numberAt(elements[0], 5) ?? 0];
  while (at < elements.length) {
    while (open.length > 0 && open[open.length - 1] === 0) open.pop();
    if (open.length === 0) throw broken('schema has more elements than its groups name');
    open[open.length - 1]--;
    const element = elements[at++];
    const children = numberAt(element, 5) ?? 0;
    if (children < 0) throw broken(`group has ${children} children`);
    if (children > 0) {
      open.push(children);
      const id = numberAt(element, 9);
      if (id !== null) groupIds.add(id);
    } else if (element.has(1)) columns.push(leafOf(element, open.length === 1));
    else throw broken('schema element is neither a column nor a group');
  }
  if (open.some((left) => left !== 0)) throw broken('schema has fewer elements than its groups name');
  return { columns, groupIds };
}

function leafOf(element: ThriftStruct, top: boolean): FileColumn {
  const physical = sizeAt(element, 1);
  const length = numberAt(element, 2) ?? 0;
  const repetition = numberAt(element, 3) ?? 0;
  const type = typeOf(element, physical, length);
  return {
    id: numberAt(element, 9),
    name: textAt(element, 4) ?? '',
    flat: top && repetition !== 2,
    required: repetition === 0,
    physical,
    length: physical === FIXED_LEN_BYTE_ARRAY ? length : 0,
    type: type !== null && isStoredSo(type, physical, length) ? type : null,
  };
}

function isStoredSo(type: PrimitiveType, physical: number, length: number): boolean {
  const storage = storageOf(type);
  return storage.physical === physical && (physical !== FIXED_LEN_BYTE_ARRAY || storage.length === length);
}

/** The Iceberg type that an annotated physical type stands for; null when there is none in format version 2. */
function typeOf(element: ThriftStruct, physical: number, length: number): PrimitiveType | null {
  const logical = structAt(element, 10);
  const converted = numberAt(element, 6);
  if (logical !== null && logical.size > 0) return logicalTypeOf(logical);
  switch (converted) {
    case null:
      break;
    case 0:
      return 'string';
    case 5: {
      const precision = numberAt(element, 8) ?? 0;
      return decimalText(precision, numberAt(element, 7) ?? 0);
    }
    case 6:
      return 'date';
    case 8:
      return 'time';
    case 10:
      return 'timestamptz';
    // INT_32, INT_64
    case 17:
      return 'int';
    case 18:
      return 'long';
    default:
      return null;
  }
  switch (physical) {
    case BOOLEAN:
      return 'boolean';
    case INT32:
      return 'int';
    case INT64:
      return 'long';
    case FLOAT:
      return 'float';
    case DOUBLE:
      return 'double';
    case BYTE_ARRAY:
      return 'binary';
    case FIXED_LEN_BYTE_ARRAY:
      return length > 0 ? `fixed[${length}]` : null;
  }
  return null;
}

function logicalTypeOf(logical: ThriftStruct): PrimitiveType | null {
  const [id] = logical.keys();
  const body = structAt(logical, id);
  if (body === null) return null;
  switch (id) {
    case 1:
      return 'string';
    case 5:
      return decimalText(numberAt(body, 2) ?? 0, numberAt(body, 1) ?? 0);
    case 6:
      return 'date';
    case 7:
      return isMicros(body) ? 'time' : null;
    case 8:
      return isMicros(body) ? (booleanAt(body, 1) === true ? 'timestamptz' : 'timestamp') : null;
    case 10: {
      const signed = booleanAt(body, 2) === true;
      const bits = numberAt(body, 1);
      return !signed ? null : bits === 32 ? 'int' : bits === 64 ? 'long' : null;
    }
    case 14:
      return 'uuid';
  }
  return null;
}

function isMicros(body: ThriftStruct): boolean {
  return structAt(body, 2)?.has(2) === true;
}

function decimalText(precision: number, scale: number): PrimitiveType | null {
  return precision >= 1 && precision <= 38 && scale >= 0 && scale <= precision
    ? `decimal(${precision}, ${scale})`
    : null;
}

function rowGroupOf(group: ThriftStruct, columns: FileColumn[], dataEnd: number): RowGroup {
  const rows = sizeAt(group, 3);
  const chunks = structsAt(group, 1);
  if (chunks.length !== columns.length) {
    throw broken(`row group has ${chunks.length} columns of ${columns.length}`);
  }
  return { rows, chunks: chunks.map((chunk, i) => chunkOf(chunk, columns[i], rows, dataEnd)) };
}

function chunkOf(chunk: ThriftStruct, column: FileColumn, rows: number, dataEnd: number): ColumnChunk {
  if (chunk.has(1)) throw unsupported('columns lie in another file');
  const meta = structAt(chunk, 3);
  if (meta === null) throw broken('column has no metadata');
  const physical = numberAt(meta, 1);
  if (physical !== column.physical) throw broken(`column ${column.name} has physical type ${physical}`);
  const values = sizeAt(meta, 5);
  if (column.flat && values !== rows) throw broken(`column ${column.name} has ${values} values in ${rows} rows`);
  const length = sizeAt(meta, 7);
  const dataOffset = sizeAt(meta, 9);
  const dictionaryOffset = numberAt(meta, 11) ?? 0;
  // Some writers put 0 where there is no dictionary.
  const offset = dictionaryOffset > 0 ? Math.min(dictionaryOffset, dataOffset) : dataOffset;
  if (offset < MAGIC.length || offset + length > dataEnd) throw broken(`column ${column.name} lies outside the file`);
  const offsetIndex = indexAt(chunk, 4, column.name, dataEnd);
  const columnIndex = indexAt(chunk, 6, column.name, dataEnd);
  const given = structAt(meta, 12);
  const statistics =
    given === null ? null : { min: binaryAt(given, 6), max: binaryAt(given, 5), nulls: numberAt(given, 3) };
  const encodings = listAt(meta, 2).map((encoding) => {
    if (typeof encoding !== 'number') throw broken('encodings are not numbers');
    return encoding;
  });
  const codec = sizeAt(meta, 4);
  const inflatedLength = sizeAt(meta, 6);
  return {
    codec,
    encodings,
    offset,
    length,
    inflatedLength,
    values,
    dataOffset,
    offsetIndex,
    columnIndex,
    pages: null,
    statistics,
  };
}

/** The index whose offset and length are fields `id` and `id + 1`. */
function indexAt(chunk: ThriftStruct, id: number, name: string, dataEnd: number): ByteRange | null {
  const offset = numberAt(chunk, id);
  const length = numberAt(chunk, id + 1);
  if (offset === null || length === null) return null;
  if (offset < MAGIC.length || length < 0 || offset + length > dataEnd) {
    throw broken(`index of column ${name} lies outside the file`);
  }
  return { offset, length };
}
