import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib';
import { type FileMetaData, parquetMetadata, parquetReadObjects, type SchemaElement } from 'hyparquet';
import { binary, bool, int, items, long, readThrift, str, sub, type ThriftStruct } from './thrift.ts';

/** One node of a Parquet schema. Leaves have a physical type. */
export interface ParquetNode {
  name: string;
  path: string[];
  fieldId: number | undefined;
  repetition: 'REQUIRED' | 'OPTIONAL' | 'REPEATED';
  physical: string | undefined;
  typeLength: number | undefined;
  converted: string | undefined;
  scale: number | undefined;
  precision: number | undefined;
  /** `STRING`, `DECIMAL(9,2)`, `TIMESTAMP(MICROS,true)`, ... */
  logical: string | undefined;
  children: ParquetNode[];
  definitionMax: number;
  repetitionMax: number;
}

export interface ChunkStatistics {
  nullCount: bigint | undefined;
  min: Uint8Array | undefined;
  max: Uint8Array | undefined;
  minExact: boolean | undefined;
  maxExact: boolean | undefined;
  deprecatedMin: Uint8Array | undefined;
  deprecatedMax: Uint8Array | undefined;
}

export interface Chunk {
  leaf: ParquetNode;
  codec: string;
  encodings: string[];
  values: bigint;
  compressedSize: bigint;
  uncompressedSize: bigint;
  dataPageOffset: bigint;
  dictionaryPageOffset: bigint | undefined;
  statistics: ChunkStatistics | undefined;
  offsetIndex: { offset: number; length: number } | undefined;
  columnIndex: { offset: number; length: number } | undefined;
}

export interface RowGroup {
  rows: bigint;
  totalByteSize: bigint;
  totalCompressedSize: bigint | undefined;
  fileOffset: bigint | undefined;
  ordinal: number | undefined;
  sorting: { column: number; descending: boolean; nullsFirst: boolean }[] | undefined;
  chunks: Chunk[];
}

export interface ParquetFooter {
  root: ParquetNode;
  leaves: ParquetNode[];
  rows: bigint;
  rowGroups: RowGroup[];
  createdBy: string | undefined;
  keyValues: Map<string, string | undefined>;
  /** One per leaf when the writer says how statistics are ordered. */
  columnOrders: number | undefined;
  raw: ThriftStruct;
  start: number;
}

const PHYSICAL = 'BOOLEAN INT32 INT64 INT96 FLOAT DOUBLE BYTE_ARRAY FIXED_LEN_BYTE_ARRAY'.split(' ');
const REPETITION = ['REQUIRED', 'OPTIONAL', 'REPEATED'] as const;
const CODECS = 'UNCOMPRESSED SNAPPY GZIP LZO BROTLI LZ4 ZSTD LZ4_RAW'.split(' ');
const ENCODINGS =
  'PLAIN - PLAIN_DICTIONARY RLE BIT_PACKED DELTA_BINARY_PACKED DELTA_LENGTH_BYTE_ARRAY DELTA_BYTE_ARRAY RLE_DICTIONARY BYTE_STREAM_SPLIT'.split(
    ' ',
  );
const CONVERTED =
  'UTF8 MAP MAP_KEY_VALUE LIST ENUM DECIMAL DATE TIME_MILLIS TIME_MICROS TIMESTAMP_MILLIS TIMESTAMP_MICROS UINT_8 UINT_16 UINT_32 UINT_64 INT_8 INT_16 INT_32 INT_64 JSON BSON INTERVAL'.split(
    ' ',
  );
const UNITS: Record<number, string> = { 1: 'MILLIS', 2: 'MICROS', 3: 'NANOS' };

function logicalOf(union: ThriftStruct | undefined): string | undefined {
  if (union === undefined) return undefined;
  const [[id]] = union;
  const inner = sub(union, id);
  const unit = UNITS[sub(inner, 2)?.keys().next().value ?? 0];
  switch (id) {
    case 1:
      return 'STRING';
    case 2:
      return 'MAP';
    case 3:
      return 'LIST';
    case 5:
      return `DECIMAL(${int(inner, 2)},${int(inner, 1)})`;
    case 6:
      return 'DATE';
    case 7:
      return `TIME(${unit},${bool(inner, 1)})`;
    case 8:
      return `TIMESTAMP(${unit},${bool(inner, 1)})`;
    case 10:
      return `INTEGER(${int(inner, 1)},${bool(inner, 2)})`;
    case 14:
      return 'UUID';
    default:
      return `LOGICAL_${id}`;
  }
}

function statisticsOf(s: ThriftStruct | undefined): ChunkStatistics | undefined {
  if (s === undefined) return undefined;
  return {
    deprecatedMax: binary(s, 1),
    deprecatedMin: binary(s, 2),
    nullCount: long(s, 3),
    max: binary(s, 5),
    min: binary(s, 6),
    maxExact: bool(s, 7),
    minExact: bool(s, 8),
  };
}

/** Reads a Parquet footer. Throws when the file is not framed as one. */
export function readFooter(bytes: Uint8Array): ParquetFooter {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const magic = 0x31524150;
  if (bytes.length < 12 || view.getUint32(0, true) !== magic || view.getUint32(bytes.length - 4, true) !== magic)
    throw new Error('parquet: magic bytes missing');
  const start = bytes.length - 8 - view.getUint32(bytes.length - 8, true);
  if (start < 4) throw new Error('parquet: footer longer than the file');
  const { value: raw, end } = readThrift(bytes, start);
  if (end !== bytes.length - 8) throw new Error(`parquet: footer ends at ${end}, not at ${bytes.length - 8}`);
  const elements = items<ThriftStruct>(raw, 2) ?? [];
  const leaves: ParquetNode[] = [];
  let next = 0;
  const node = (path: string[], definition: number, repetition: number): ParquetNode => {
    const s = elements[next++];
    if (s === undefined) throw new Error('parquet: schema cut short');
    const name = str(s, 4) ?? '';
    const isRoot = next === 1;
    const kind = isRoot ? 'REQUIRED' : REPETITION[int(s, 3) ?? 0];
    const here = isRoot ? [] : [...path, name];
    const definitionMax = definition + (kind === 'REQUIRED' ? 0 : 1);
    const repetitionMax = repetition + (kind === 'REPEATED' ? 1 : 0);
    const result: ParquetNode = {
      name,
      path: here,
      fieldId: int(s, 9),
      repetition: kind,
      physical: int(s, 1) === undefined ? undefined : PHYSICAL[int(s, 1) as number],
      typeLength: int(s, 2),
      converted: int(s, 6) === undefined ? undefined : CONVERTED[int(s, 6) as number],
      scale: int(s, 7),
      precision: int(s, 8),
      logical: logicalOf(sub(s, 10)),
      children: [],
      definitionMax,
      repetitionMax,
    };
    const count = int(s, 5) ?? 0;
    for (let i = 0; i < count; i++) result.children.push(node(here, definitionMax, repetitionMax));
    if (result.physical !== undefined) leaves.push(result);
    return result;
  };
  const root = node([], 0, 0);
  if (next !== elements.length) throw new Error('parquet: schema elements left over');
  const index = (column: ThriftStruct, at: number) => {
    const offset = long(column, at);
    return offset === undefined ? undefined : { offset: Number(offset), length: int(column, at + 1) ?? 0 };
  };
  const rowGroups = (items<ThriftStruct>(raw, 4) ?? []).map(
    (group): RowGroup => ({
      rows: long(group, 3) ?? 0n,
      totalByteSize: long(group, 2) ?? 0n,
      totalCompressedSize: long(group, 6),
      fileOffset: long(group, 5),
      ordinal: int(group, 7),
      sorting: items<ThriftStruct>(group, 4)?.map((s) => ({
        column: int(s, 1) ?? 0,
        descending: bool(s, 2) ?? false,
        nullsFirst: bool(s, 3) ?? false,
      })),
      chunks: (items<ThriftStruct>(group, 1) ?? []).map((column, i): Chunk => {
        const meta = sub(column, 3);
        if (meta === undefined || leaves[i] === undefined) throw new Error(`parquet: column chunk ${i}`);
        return {
          leaf: leaves[i],
          codec: CODECS[int(meta, 4) ?? 0],
          encodings: (items<number>(meta, 2) ?? []).map((e) => ENCODINGS[e] ?? String(e)),
          values: long(meta, 5) ?? 0n,
          uncompressedSize: long(meta, 6) ?? 0n,
          compressedSize: long(meta, 7) ?? 0n,
          dataPageOffset: long(meta, 9) ?? 0n,
          dictionaryPageOffset: long(meta, 11),
          statistics: statisticsOf(sub(meta, 12)),
          offsetIndex: index(column, 4),
          columnIndex: index(column, 6),
        };
      }),
    }),
  );
  const keyValues = new Map((items<ThriftStruct>(raw, 5) ?? []).map((kv) => [str(kv, 1) ?? '', str(kv, 2)] as const));
  return {
    root,
    leaves,
    rows: long(raw, 3) ?? 0n,
    rowGroups,
    createdBy: str(raw, 6),
    keyValues,
    columnOrders: items(raw, 7)?.length,
    raw,
    start,
  };
}

export interface PageIndex {
  pages: { offset: number; size: number; firstRow: number }[];
  nullPages: boolean[];
  min: Uint8Array[];
  max: Uint8Array[];
  /** 0 unordered, 1 ascending, 2 descending. */
  boundaryOrder: number;
  nullCounts: bigint[] | undefined;
}

/** Page locations of a chunk, and its column index when it has one (else the lists are empty). Null: no offset index. */
export function readPageIndex(bytes: Uint8Array, chunk: Chunk): PageIndex | null {
  if (chunk.offsetIndex === undefined) return null;
  const { offset, length } = chunk.offsetIndex;
  const locations = readThrift(bytes.subarray(offset, offset + length));
  if (locations.end !== length) throw new Error(`parquet: offset index ends at ${locations.end} of ${length}`);
  const pages = (items<ThriftStruct>(locations.value, 1) ?? []).map((s) => ({
    offset: Number(long(s, 1)),
    size: int(s, 2) ?? 0,
    firstRow: Number(long(s, 3)),
  }));
  if (chunk.columnIndex === undefined)
    return { pages, nullPages: [], min: [], max: [], boundaryOrder: 0, nullCounts: undefined };
  const at = chunk.columnIndex;
  const index = readThrift(bytes.subarray(at.offset, at.offset + at.length));
  if (index.end !== at.length) throw new Error(`parquet: column index ends at ${index.end} of ${at.length}`);
  return {
    pages,
    nullPages: items<boolean>(index.value, 1) ?? [],
    min: items<Uint8Array>(index.value, 2) ?? [],
    max: items<Uint8Array>(index.value, 3) ?? [],
    boundaryOrder: int(index.value, 4) ?? 0,
    nullCounts: items<bigint>(index.value, 5),
  };
}

export interface PageHeader {
  type: 'data' | 'data-v2' | 'dictionary' | 'other';
  headerBytes: number;
  compressedSize: number;
  uncompressedSize: number;
  values: number;
  nulls: number | undefined;
  rows: number | undefined;
  crc: number | undefined;
}

/** The page header that begins at `offset`. */
export function readPageHeader(bytes: Uint8Array, offset: number): PageHeader {
  const { value, end } = readThrift(bytes, offset);
  const kind = int(value, 1);
  const head = sub(value, 5) ?? sub(value, 7) ?? sub(value, 8);
  return {
    type: kind === 0 ? 'data' : kind === 2 ? 'dictionary' : kind === 3 ? 'data-v2' : 'other',
    headerBytes: end - offset,
    uncompressedSize: int(value, 2) ?? 0,
    compressedSize: int(value, 3) ?? 0,
    values: int(head, 1) ?? 0,
    nulls: kind === 3 ? int(head, 2) : undefined,
    rows: kind === 3 ? int(head, 3) : undefined,
    crc: int(value, 4),
  };
}

const compressors = {
  ZSTD: (input: Uint8Array, length: number) => inflated(zstdDecompressSync(input), length),
  GZIP: (input: Uint8Array, length: number) => inflated(gunzipSync(input), length),
  BROTLI: (input: Uint8Array, length: number) => inflated(brotliDecompressSync(input), length),
};

function inflated(bytes: Uint8Array, length: number): Uint8Array {
  if (bytes.length !== length) throw new Error(`parquet: page of ${bytes.length} bytes, header says ${length}`);
  return Uint8Array.from(bytes);
}

/**
 * Rows of a file as the bare records that Parquet stores: physical values, groups as objects, repeated fields as
 * arrays. The annotations are taken off first, so that hyparquet converts nothing and no digit is lost.
 */
export async function readRecords(bytes: Uint8Array): Promise<Record<string, unknown>[]> {
  const buffer = Uint8Array.from(bytes).buffer;
  const metadata: FileMetaData = parquetMetadata(buffer, { geoparquet: false });
  const bare = (element: SchemaElement): SchemaElement => {
    const copy = { ...element };
    delete copy.converted_type;
    delete copy.logical_type;
    return copy;
  };
  const file = { byteLength: buffer.byteLength, slice: (start: number, end?: number) => buffer.slice(start, end) };
  return parquetReadObjects({
    file,
    metadata: { ...metadata, schema: metadata.schema.map(bare) },
    compressors,
    utf8: false,
    geoparquet: false,
  });
}
