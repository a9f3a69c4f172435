import type { Decompress } from '../base/codecs.ts';
import { invalid, SluiceError } from '../base/errors.ts';
import { BATCH_COLUMN_BYTES_MAX, FOREIGN_ELEMENTS_MAX } from '../base/limits.ts';
import type { Column } from '../columns/columns.ts';
import { entry } from '../columns/columns.ts';
import type { ForeignBatch, ForeignColumn, ForeignData, ForeignField, ForeignType } from '../columns/foreign.ts';
import { integerAt } from '../columns/foreign.ts';
import { halvesOf } from '../columns/halves.ts';
import { readChunk } from './column-reader.ts';
import { broken } from './decoding.ts';
import {
  type ColumnChunk,
  footerLength,
  PARQUET_UNSUPPORTED,
  type ParquetFooter,
  type Piece,
  parseFooter,
  type RowGroup,
} from './footer-read.ts';
import { MAGIC } from './footer-write.ts';
import { nodesOf, type ParquetNode, typed } from './foreign-schema.ts';
import { type Inflaters, readValues } from './foreign-values.ts';
import { GZIP, RLE, SNAPPY, UNCOMPRESSED, ZSTD } from './layout.ts';
import { DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE } from './page.ts';
import { bytesAt } from './page-reader.ts';
import { decompressSnappy } from './snappy.ts';
import { readStruct, sizeAt, structAt } from './thrift.ts';

/** A Parquet file of any writer that is in memory as a whole. */
export interface ParquetBody {
  fields: ForeignField[];
  /** Rows of all row groups, told before any is read. */
  rows: number;
  /** The row groups, each read when it is asked for. */
  batches(): Generator<ForeignBatch>;
}

export interface ParquetCodecs {
  zstd: Decompress;
  gzip: Decompress;
}

/**
 * Takes a Parquet file apart. Columns that the reader of this package knows are read into typed arrays; the others, nested
 * ones among them, value by value.
 *
 * Throws `invalid`: `empty-body`, `malformed-body`, `truncated-body`; the row groups also `unsupported-compression` and
 * `too-large`.
 */
export function readParquet(bytes: Uint8Array, codecs: ParquetCodecs): ParquetBody {
  if (bytes.length === 0)
    throw invalid('empty-body', 'body is empty; a batch without rows is a file without row groups');
  if (!hasMagic(bytes, 0))
    throw invalid('malformed-body', 'parquet body: is no Parquet file: it does not begin with PAR1');
  if (bytes.length < 12 || !hasMagic(bytes, bytes.length - 4)) {
    throw invalid('truncated-body', 'parquet body: ends too early, before its footer');
  }
  const { footer, nodes } = guarded(() => {
    // No more than the footer, so that offset indexes, which nothing here needs, are not read.
    const parsed = parseFooter(
      bytes.subarray(bytes.length - Math.min(footerLength(bytes), bytes.length)),
      bytes.length,
    );
    return { footer: parsed, nodes: nodesOf(parsed.elements) };
  });
  return {
    fields: nodes.map(typed),
    rows: footer.rows,
    batches: () => batchesOf(bytes, footer, nodes, codecs),
  };
}

function hasMagic(bytes: Uint8Array, at: number): boolean {
  return MAGIC.every((byte, i) => bytes[at + i] === byte);
}

/**
 * What is wrong with a body is wrong with the request, not with what is stored. Anything but our own errors comes of reading
 * beyond the end of damaged bytes.
 */
function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof SluiceError && error.kind !== 'corrupt' && error.type !== PARQUET_UNSUPPORTED) throw error;
    const reason = error instanceof SluiceError ? error.message : 'is damaged';
    throw invalid('malformed-body', `parquet body: ${reason}`, {}, error);
  }
}

function* batchesOf(
  bytes: Uint8Array,
  footer: ParquetFooter,
  nodes: readonly ParquetNode[],
  codecs: ParquetCodecs,
): Generator<ForeignBatch> {
  const left = new InflatedLeft(BATCH_COLUMN_BYTES_MAX);
  for (const group of footer.rowGroups) {
    const { rows } = group;
    if (rows === 0) continue;
    for (const node of nodes) {
      for (const { place } of leavesOf(node))
        if (group.chunks[place] !== undefined) checkCodec(group.chunks[place], node.name);
    }
    const source = { footer, group, pieces: [{ offset: 0, bytes }], codecs, left };
    yield { rows, columns: nodes.map((node) => guarded(() => columnOf(source, node))) };
  }
}

/** Bytes to which pages may still inflate. */
export class InflatedLeft {
  readonly #bytesMax: number;
  #left: number;

  constructor(bytesMax: number) {
    this.#bytesMax = bytesMax;
    this.#left = bytesMax;
  }

  /** Throws invalid `too-large`. */
  take(bytes: number): void {
    this.#left -= bytes;
    if (this.#left >= 0) return;
    const detail = { bytesMax: this.#bytesMax };
    throw invalid('too-large', `parquet body: inflates to more than ${this.#bytesMax} bytes: split it`, detail);
  }
}

/** A row group, of which the chunks that are asked for are in memory. */
export interface GroupSource {
  footer: ParquetFooter;
  group: RowGroup;
  pieces: readonly Piece[];
  codecs: ParquetCodecs;
  left: InflatedLeft;
}

/**
 * A top-level column of a row group: typed by the reader of this package where that knows how, else value by value. Its codecs
 * are among `CODECS_READ`.
 *
 * Throws corrupt `parquet-corrupt`; invalid `too-large`; anything where damaged bytes are read beyond their end.
 */
export function columnOf({ footer, group, pieces, codecs, left }: GroupSource, node: ParquetNode): ForeignColumn {
  const { rows } = group;
  const { type } = typed(node);
  const bytesOf = ({ offset, length }: ColumnChunk): Uint8Array => bytesAt(pieces, offset, length);
  for (const leaf of leavesOf(node)) {
    const chunk = group.chunks[leaf.place];
    if (chunk === undefined) throw broken(`column ${node.name} is missing in a row group`);
    checkPages(bytesOf(chunk), { name: node.name, rows, ...leaf.levels }, left);
  }
  const own = node.leaf === null ? null : readOwn(footer, group, node.leaf, pieces, codecs);
  if (own !== null) return { type, rows, validity: own.validity, data: dataOf(own, type) };
  const values = readValues(
    node,
    rows,
    (leaf) => ({ bytes: bytesOf(group.chunks[leaf]), codec: CODECS[group.chunks[leaf].codec] }),
    inflaters(codecs),
  );
  const validity = Uint8Array.from(values, (value) => (value === null ? 0 : 1));
  return { type, rows, validity: validity.includes(0) ? validity : null, data: { form: 'values', values } };
}

/** Which levels the pages of a leaf have. */
export interface Levels {
  defined: boolean;
  repeated: boolean;
}

/** The leaves of a column by their place in a row group. */
export function leavesOf(
  node: ParquetNode,
  above: Levels = { defined: false, repeated: false },
): { place: number; levels: Levels }[] {
  const levels = {
    defined: above.defined || node.repetition !== 'required',
    repeated: above.repeated || node.repetition === 'repeated',
  };
  return node.leaf === null
    ? node.children.flatMap((child) => leavesOf(child, levels))
    : [{ place: node.leaf, levels }];
}

/** The column by the reader of this package; null where it does not know how. */
function readOwn(
  footer: ParquetFooter,
  group: RowGroup,
  leaf: number,
  pieces: readonly Piece[],
  { zstd, gzip }: ParquetCodecs,
): Column | null {
  const column = footer.columns[leaf];
  if (!column.flat) return null;
  const given = group.chunks[leaf];
  // The reader knows one codec that is passed in, whichever it is.
  const chunk = { ...given, codec: given.codec === GZIP ? ZSTD : given.codec, pages: null };
  const decompress = given.codec === GZIP ? gzip : zstd;
  try {
    return readChunk(chunk, column, group.rows, 0, group.rows, pieces, decompress);
  } catch (error) {
    if (error instanceof SluiceError && error.type === PARQUET_UNSUPPORTED) return null;
    throw error;
  }
}

function dataOf(column: Column, type: ForeignType): ForeignData {
  switch (column.kind) {
    case 'boolean':
    case 'float32':
    case 'float64':
      return { form: 'numbers', values: column.values };
    case 'int32': {
      const { buffer, byteOffset, length } = column.values;
      const unsigned = type.kind === 'integer' && !type.signed;
      return { form: 'numbers', values: unsigned ? new Uint32Array(buffer, byteOffset, length) : column.values };
    }
    case 'int64': {
      const { buffer, byteOffset, length } = column.values;
      const unsigned = type.kind === 'integer' && !type.signed;
      return { form: 'int64', values: unsigned ? new BigUint64Array(buffer, byteOffset, length) : column.values };
    }
    case 'fixed':
      if (type.kind === 'float') {
        const { buffer, byteOffset, length } = column.values;
        return { form: 'numbers', values: halvesOf(new Uint16Array(buffer, byteOffset, length / 2)) };
      }
      return { form: 'fixed', width: column.width, bigEndian: true, values: column.values };
    case 'dictionary': {
      const { codes, dictionary: strings } = column;
      const rows = strings.offsets.length - 1;
      const entries: ForeignColumn = { type, rows, validity: null, data: { form: 'strings', strings } };
      if (type.kind !== 'decimal') return { form: 'dictionary', codes, entries };
      const values = Array.from({ length: rows }, (_, code) => bigEndian(entry(strings, code)));
      return { form: 'dictionary', codes, entries: { ...entries, data: { form: 'values', values } } };
    }
    case 'bytes': {
      const { values: strings } = column;
      if (type.kind !== 'decimal') return { form: 'strings', strings };
      const rows = strings.offsets.length - 1;
      return { form: 'values', values: Array.from({ length: rows }, (_, row) => bigEndian(entry(strings, row))) };
    }
    case 'nested':
      throw broken('flat column holds nested values');
  }
}

function bigEndian(bytes: Uint8Array): bigint {
  if (bytes.length > DECIMAL_BYTES_MAX) throw broken(`decimal of ${bytes.length} bytes`);
  return integerAt(bytes, 0, bytes.length, true);
}

/** A decimal of 76 digits takes 32. */
const DECIMAL_BYTES_MAX = 32;

const CODECS = ['UNCOMPRESSED', 'SNAPPY', 'GZIP', 'LZO', 'BROTLI', 'LZ4', 'ZSTD', 'LZ4_RAW'] as const;
export const CODECS_READ: ReadonlySet<number> = new Set([UNCOMPRESSED, SNAPPY, GZIP, ZSTD]);

/** The name of a codec, by its number. */
export function codecName(codec: number): string {
  return CODECS[codec] ?? `codec ${codec}`;
}

function inflaters({ zstd, gzip }: ParquetCodecs): Inflaters {
  return { ZSTD: zstd, GZIP: gzip, SNAPPY: decompressSnappy };
}

function checkCodec({ codec }: ColumnChunk, column: string): void {
  if (CODECS_READ.has(codec)) return;
  const message = `parquet body: column ${column} is compressed with ${codecName(codec)}; send it plain or with snappy, gzip or zstd`;
  throw invalid('unsupported-compression', message, { supported: ['none', 'snappy', 'gzip', 'zstd'] });
}

/**
 * Looks at what the pages of a chunk say of themselves, before anything is read by it: how large they inflate, how many
 * values they hold (a file of a few bytes may speak of billions), and that their levels are in the one encoding in use.
 */
function checkPages(bytes: Uint8Array, column: Levels & { name: string; rows: number }, left: InflatedLeft): void {
  let at = 0;
  let values = 0;
  while (at < bytes.length) {
    const { struct, end: start } = readStruct(bytes, at);
    const type = sizeAt(struct, 1);
    left.take(sizeAt(struct, 2));
    const header = structAt(struct, HEADERS[type] ?? -1);
    if (header === null) throw broken(`page of column ${column.name} has no header for its type ${type}`);
    const count = sizeAt(header, 1);
    if (type !== DICTIONARY_PAGE) values += count;
    if (Math.max(values, count) > FOREIGN_ELEMENTS_MAX) throw broken(`column ${column.name} has ${values} values`);
    if (type === DATA_PAGE) {
      const known = (!column.defined || sizeAt(header, 3) === RLE) && (!column.repeated || sizeAt(header, 4) === RLE);
      if (!known) throw broken(`levels of column ${column.name} are in an encoding that is not read`);
    }
    at = start + sizeAt(struct, 3);
  }
  if (at !== bytes.length) throw broken('page runs past its column');
  if (!column.repeated && values !== column.rows) {
    throw broken(`column ${column.name} has ${values} values in ${column.rows} rows`);
  }
}

/** Field of a page header that is there for the type of the page. */
const HEADERS: Readonly<Record<number, number>> = { [DATA_PAGE]: 5, [DICTIONARY_PAGE]: 7, [DATA_PAGE_V2]: 8 };
