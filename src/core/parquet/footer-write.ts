import { utf8 } from '../base/bytes.ts';
import { type Leaf, PLAIN, RLE, RLE_DICTIONARY, ZSTD } from './layout.ts';
import { DATA_PAGE, DICTIONARY_PAGE } from './page.ts';
import type { ByteSink } from './sink.ts';
import type { BoundBytes } from './statistics.ts';
import { ThriftWriter } from './thrift.ts';

/** What the footer and the page index say about one page. `size` counts the header too. */
export interface PageFacts {
  offset: number;
  size: number;
  firstRow: number;
  nulls: number;
  /** Null for a page of nothing but nulls, or nothing but nulls and NaN. */
  bounds: { min: BoundBytes; max: BoundBytes } | null;
  /** All rows null. */
  empty: boolean;
}

/** `BoundaryOrder` of parquet.thrift. */
export type BoundaryOrder = 0 | 1 | 2;

/** What the footer says about one column chunk. Sizes count the page headers. */
export interface ChunkFacts {
  leaf: Leaf;
  encoding: number;
  dictionaryOffset: number | null;
  dataOffset: number;
  uncompressed: number;
  compressed: number;
  values: number;
  nulls: number;
  bounds: { min: BoundBytes; max: BoundBytes } | null;
  boundaryOrder: BoundaryOrder;
  pages: PageFacts[];
}

export interface RowGroupFacts {
  rows: number;
  offset: number;
  chunks: ChunkFacts[];
}

/** One key of the order of rows. `columnIndex` is that of a primitive top-level field in the schema. */
export interface SortingColumn {
  columnIndex: number;
  descending: boolean;
  nullsFirst: boolean;
}

interface IndexPlace {
  columnIndexOffset: number;
  columnIndexLength: number;
  offsetIndexOffset: number;
  offsetIndexLength: number;
}

export const CREATED_BY = 'sluice version 0.1.0';
export const MAGIC = utf8('PAR1');

/**
 * Writes what stands behind the row groups: all column indexes, all offset indexes, the footer, its length and the
 * magic bytes. `position` is the file offset of the sink's first byte.
 */
export function writeFooter(
  sink: ByteSink,
  position: number,
  file: {
    leaves: readonly Leaf[];
    rowGroups: readonly RowGroupFacts[];
    sortingColumns: readonly SortingColumn[];
    keyValues: readonly (readonly [string, string])[];
  },
): void {
  const places = writeIndexes(sink, position, file.rowGroups);
  const start = sink.length;
  const thrift = new ThriftWriter(sink);
  thrift.i32(1, 1);
  const root = null;
  thrift.structs<Leaf | null>(2, [root, ...file.leaves], (leaf) => {
    if (leaf === root) {
      thrift.text(4, 'table');
      thrift.i32(5, file.leaves.length);
    } else writeElement(thrift, leaf);
  });
  let rows = 0;
  for (const group of file.rowGroups) rows += group.rows;
  thrift.i64(3, rows);
  let ordinal = 0;
  thrift.structs(4, file.rowGroups, (group) => {
    writeRowGroup(thrift, group, places, file.sortingColumns, ordinal++);
  });
  thrift.structs(5, file.keyValues, ([key, value]) => {
    thrift.text(1, key);
    thrift.text(2, value);
  });
  thrift.text(6, CREATED_BY);
  // All columns are ordered as their type says; without this readers must not use min and max of strings.
  thrift.structs(7, file.leaves, () => {
    thrift.struct(1);
    thrift.end();
  });
  thrift.end();
  sink.int32(sink.length - start);
  sink.append(MAGIC);
}

function writeElement(thrift: ThriftWriter, leaf: Leaf): void {
  thrift.i32(1, leaf.physical);
  if (leaf.length > 0) thrift.i32(2, leaf.length);
  thrift.i32(3, leaf.required ? 0 : 1);
  thrift.text(4, leaf.name);
  if (leaf.converted !== null) thrift.i32(6, leaf.converted);
  const { logical } = leaf;
  if (logical?.name === 'decimal') {
    thrift.i32(7, logical.scale);
    thrift.i32(8, logical.precision);
  }
  thrift.i32(9, leaf.id);
  if (logical === null) return;
  thrift.struct(10);
  switch (logical.name) {
    case 'string':
      thrift.struct(1);
      break;
    case 'decimal':
      thrift.struct(5);
      thrift.i32(1, logical.scale);
      thrift.i32(2, logical.precision);
      break;
    case 'date':
      thrift.struct(6);
      break;
    case 'time':
    case 'timestamp':
      thrift.struct(logical.name === 'time' ? 7 : 8);
      thrift.bool(1, logical.adjustedToUtc);
      thrift.struct(2);
      // TimeUnit: microseconds
      thrift.struct(2);
      thrift.end();
      thrift.end();
      break;
    case 'uuid':
      thrift.struct(14);
      break;
  }
  thrift.end();
  thrift.end();
}

function writeRowGroup(
  thrift: ThriftWriter,
  group: RowGroupFacts,
  places: ReadonlyMap<ChunkFacts, IndexPlace>,
  sortingColumns: readonly SortingColumn[],
  ordinal: number,
): void {
  let uncompressed = 0;
  let compressed = 0;
  for (const chunk of group.chunks) {
    uncompressed += chunk.uncompressed;
    compressed += chunk.compressed;
  }
  thrift.structs(1, group.chunks, (chunk) => {
    // Deprecated, and 0 by the format's own advice: no column metadata stands at any offset but here.
    thrift.i64(2, 0);
    thrift.struct(3);
    writeChunk(thrift, chunk);
    thrift.end();
    const place = places.get(chunk)!;
    thrift.i64(4, place.offsetIndexOffset);
    thrift.i32(5, place.offsetIndexLength);
    if (place.columnIndexLength > 0) {
      thrift.i64(6, place.columnIndexOffset);
      thrift.i32(7, place.columnIndexLength);
    }
  });
  thrift.i64(2, uncompressed);
  thrift.i64(3, group.rows);
  if (sortingColumns.length > 0) {
    thrift.structs(4, sortingColumns, (column) => {
      thrift.i32(1, column.columnIndex);
      thrift.bool(2, column.descending);
      thrift.bool(3, column.nullsFirst);
    });
  }
  thrift.i64(5, group.offset);
  thrift.i64(6, compressed);
  // 16 bits; a file with more row groups goes without.
  if (ordinal < 0x8000) thrift.i16(7, ordinal);
}

function writeChunk(thrift: ThriftWriter, chunk: ChunkFacts): void {
  const { leaf, encoding, dictionaryOffset } = chunk;
  thrift.i32(1, leaf.physical);
  const encodings = dictionaryOffset === null ? [encoding] : [PLAIN, RLE_DICTIONARY];
  thrift.i32s(2, leaf.required ? encodings : [...encodings, RLE]);
  thrift.binaries(3, [utf8(leaf.name)]);
  thrift.i32(4, ZSTD);
  thrift.i64(5, chunk.values);
  thrift.i64(6, chunk.uncompressed);
  thrift.i64(7, chunk.compressed);
  thrift.i64(9, chunk.dataOffset);
  if (dictionaryOffset !== null) thrift.i64(11, dictionaryOffset);
  thrift.struct(12);
  thrift.i64(3, chunk.nulls);
  if (chunk.bounds !== null) {
    const { min, max } = chunk.bounds;
    thrift.binary(5, max.bytes);
    thrift.binary(6, min.bytes);
    // Floats: a zero bound need not be a value of the column.
    if (leaf.logical?.name === 'string' || leaf.type === 'binary') {
      thrift.bool(7, max.exact);
      thrift.bool(8, min.exact);
    }
  }
  thrift.end();
  const counts: [number, number, number][] = [[DATA_PAGE, encoding, chunk.pages.length]];
  if (dictionaryOffset !== null) counts.unshift([DICTIONARY_PAGE, PLAIN, 1]);
  // Lets readers use the dictionary as a filter: all data pages refer to it.
  thrift.structs(13, counts, ([type, pageEncoding, count]) => {
    thrift.i32(1, type);
    thrift.i32(2, pageEncoding);
    thrift.i32(3, count);
  });
}

/**
 * Column indexes first, then offset indexes, as other writers place them. A chunk with a page that has values but no
 * bounds (all NaN) gets no column index: readers would skip that page (P13).
 */
function writeIndexes(sink: ByteSink, position: number, groups: readonly RowGroupFacts[]): Map<ChunkFacts, IndexPlace> {
  const places = new Map<ChunkFacts, IndexPlace>();
  const none = new Uint8Array();
  for (const { chunks } of groups) {
    for (const chunk of chunks) {
      const place = { columnIndexOffset: 0, columnIndexLength: 0, offsetIndexOffset: 0, offsetIndexLength: 0 };
      places.set(chunk, place);
      const { pages } = chunk;
      if (pages.some((page) => page.bounds === null && !page.empty)) continue;
      place.columnIndexOffset = position + sink.length;
      const thrift = new ThriftWriter(sink);
      thrift.bools(
        1,
        pages.map((page) => page.empty),
      );
      thrift.binaries(
        2,
        pages.map((page) => page.bounds?.min.bytes ?? none),
      );
      thrift.binaries(
        3,
        pages.map((page) => page.bounds?.max.bytes ?? none),
      );
      thrift.i32(4, chunk.boundaryOrder);
      thrift.i64s(
        5,
        pages.map((page) => page.nulls),
      );
      thrift.end();
      place.columnIndexLength = position + sink.length - place.columnIndexOffset;
    }
  }
  for (const [chunk, place] of places) {
    place.offsetIndexOffset = position + sink.length;
    const thrift = new ThriftWriter(sink);
    thrift.structs(1, chunk.pages, (page) => {
      thrift.i64(1, page.offset);
      thrift.i32(2, page.size);
      thrift.i64(3, page.firstRow);
    });
    thrift.end();
    place.offsetIndexLength = position + sink.length - place.offsetIndexOffset;
  }
  return places;
}
