import { PAGE_ROWS, ZSTD_INPUT_BYTES_MAX } from '../base/limits.ts';
import type { Dense } from './dense.ts';
import type { LocalDictionary } from './dictionary.ts';
import {
  bitsOf,
  bytesOf,
  encodeBooleans,
  encodeByteStreamSplit,
  encodeDelta32,
  encodeDelta64,
  encodeHybrid,
  encodeStrings,
} from './encoding.ts';
import { BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, type Leaf, PLAIN, RLE, RLE_DICTIONARY } from './layout.ts';
import type { ByteSink } from './sink.ts';
import { ThriftWriter } from './thrift.ts';

/**
 * Data pages are of version 1: every reader takes them, the vectorised one of Spark too, and version 2 would save
 * nothing, since flat columns have few levels and zstd is applied to every page anyway (P15).
 */

/** `PageType` of parquet.thrift. */
export const DATA_PAGE = 0;
export const DICTIONARY_PAGE = 2;
export const DATA_PAGE_V2 = 3;

/** Definition levels of a whole page: their length, and at worst a bit a row and a run header now and then. */
const LEVEL_BYTES_MAX = 4 + PAGE_ROWS / 8 + 64;

/** One column of one row group, nulls apart. `validity` covers exactly its rows; null when none is null. */
export interface Chunk {
  leaf: Leaf;
  rows: number;
  validity: Uint8Array | null;
  dense: Dense;
}

/**
 * Rows at which the pages of a chunk begin, and the row count behind them. Every column has a boundary at each
 * multiple of `PAGE_ROWS`, so that a window of rows is whole pages; within, pages are cut further so that none passes
 * `ZSTD_INPUT_BYTES_MAX` before compression (but for one value that does so alone).
 */
export function cutPages(chunk: Chunk, encoding: number): number[] {
  const { dense, rows } = chunk;
  if (dense.kind === 'strings' && encoding === PLAIN) return cutByBytes(chunk);
  const width = encoding === RLE_DICTIONARY ? 4 : dense.kind === 'fixed' ? dense.width : dense.kind === 'pair' ? 8 : 4;
  let step = PAGE_ROWS;
  while (step > 1 && step * width + LEVEL_BYTES_MAX > ZSTD_INPUT_BYTES_MAX) step >>= 1;
  const starts: number[] = [];
  for (let row = 0; row < rows; row += step) starts.push(row);
  starts.push(rows);
  return starts;
}

function cutByBytes(chunk: Chunk): number[] {
  const { dense, validity, rows } = chunk;
  if (dense.kind !== 'strings') return [0, rows];
  const { offsets } = dense.strings;
  const starts: number[] = [];
  let bytes = 0;
  let at = 0;
  for (let row = 0; row < rows; row++) {
    let length = 0;
    if (validity === null || validity[row] !== 0) {
      const code = dense.codes[at++];
      length = 4 + offsets[code + 1] - offsets[code];
    }
    if (row % PAGE_ROWS === 0 || bytes + length + LEVEL_BYTES_MAX > ZSTD_INPUT_BYTES_MAX) {
      starts.push(row);
      bytes = 0;
    }
    bytes += length;
  }
  starts.push(rows);
  return starts;
}

/** Definition levels of a version 1 page, none for a required column: four bytes of length, then RLE runs. */
export function encodeLevels(sink: ByteSink, chunk: Chunk, from: number, to: number): void {
  if (chunk.leaf.required) return;
  const lengthAt = sink.length;
  sink.int32(0);
  if (chunk.validity === null) {
    sink.varint((to - from) * 2);
    sink.byte(1);
  } else encodeHybrid(sink, chunk.validity, from, to, 1);
  sink.setInt32(lengthAt, sink.length - lengthAt - 4);
}

/** Values `from` to `to` (exclusive) of the dense ones, in an encoding that suits their kind. */
export function encodeValues(
  sink: ByteSink,
  dense: Dense,
  encoding: number,
  dictionary: LocalDictionary | null,
  from: number,
  to: number,
): void {
  if (dictionary !== null) {
    // One entry would need no bits at all; some readers trip over that, and one bit costs two bytes a page.
    const width = Math.max(1, bitsOf(dictionary.entries.count - 1));
    sink.byte(width);
    encodeHybrid(sink, dictionary.indices, from, to, width);
    return;
  }
  switch (dense.kind) {
    case 'boolean':
      encodeBooleans(sink, dense.values, from, to);
      return;
    case 'word':
      if (encoding === DELTA_BINARY_PACKED) encodeDelta32(sink, dense.words, from, to);
      else encodeFixedWidth(sink, bytesOf(dense.words, from, to - from, 4), encoding, 4);
      return;
    case 'pair':
      if (encoding === DELTA_BINARY_PACKED) encodeDelta64(sink, dense.words, from, to);
      else encodeFixedWidth(sink, bytesOf(dense.words, 2 * from, 2 * (to - from), 4), encoding, 8);
      return;
    case 'fixed':
      sink.append(dense.bytes.subarray(from * dense.width, to * dense.width));
      return;
    case 'strings':
      encodeStrings(sink, dense.strings.bytes, dense.strings.offsets, dense.codes, from, to);
      return;
  }
}

function encodeFixedWidth(sink: ByteSink, bytes: Uint8Array, encoding: number, width: number): void {
  if (encoding === BYTE_STREAM_SPLIT) encodeByteStreamSplit(sink, bytes, width);
  else sink.append(bytes);
}

/** Sizes of one page that a header tells. `rows` is the number of values with nulls; of entries in a dictionary. */
export interface PageSizes {
  rows: number;
  uncompressed: number;
  compressed: number;
}

/** Header of a version 1 data page. */
export function writeDataPageHeader(sink: ByteSink, sizes: PageSizes, encoding: number): void {
  const thrift = new ThriftWriter(sink);
  thrift.i32(1, DATA_PAGE);
  thrift.i32(2, sizes.uncompressed);
  thrift.i32(3, sizes.compressed);
  thrift.struct(5);
  thrift.i32(1, sizes.rows);
  thrift.i32(2, encoding);
  thrift.i32(3, RLE);
  thrift.i32(4, RLE);
  thrift.end();
  thrift.end();
}

/** Header of a dictionary page; its entries are PLAIN and in no order. */
export function writeDictionaryPageHeader(sink: ByteSink, sizes: PageSizes): void {
  const thrift = new ThriftWriter(sink);
  thrift.i32(1, DICTIONARY_PAGE);
  thrift.i32(2, sizes.uncompressed);
  thrift.i32(3, sizes.compressed);
  thrift.struct(7);
  thrift.i32(1, sizes.rows);
  thrift.i32(2, PLAIN);
  thrift.end();
  thrift.end();
}
