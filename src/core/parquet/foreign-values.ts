import { assembleNested } from 'hyparquet/src/assemble.js';
import { readColumn } from 'hyparquet/src/column.js';
import type { ColumnDecoder, CompressionCodec, DecodedArray, ParquetType, SchemaTree } from 'hyparquet/src/types.js';
import { textOf } from '../base/bytes.ts';
import { integerAt } from '../columns/foreign.ts';
import { halvesOf } from '../columns/halves.ts';
import { broken } from './decoding.ts';
import type { ParquetNode } from './foreign-schema.ts';

/**
 * Columns that the reader of this package does not know (nested ones, and other encodings and codecs) by hyparquet, value by
 * value. It is given a schema without names and annotations: so it converts nothing, where it would go through doubles
 * and dates, and no name of a column has a meaning in JavaScript.
 */

export interface LeafChunk {
  /** All pages. */
  bytes: Uint8Array;
  codec: CompressionCodec;
}

export type Inflaters = Partial<Record<CompressionCodec, (bytes: Uint8Array, length: number) => Uint8Array>>;

const PHYSICAL: readonly ParquetType[] = [
  'BOOLEAN',
  'INT32',
  'INT64',
  'INT96',
  'FLOAT',
  'DOUBLE',
  'BYTE_ARRAY',
  'FIXED_LEN_BYTE_ARRAY',
];

/**
 * The values of a top-level column in a row group, as `foreignReader` gives values. Errors: corrupt `parquet-corrupt` for
 * whatever hyparquet stumbles on.
 */
export function readValues(
  node: ParquetNode,
  rows: number,
  chunkOf: (leaf: number) => LeafChunk,
  compressors: Inflaters,
): unknown[] {
  const root: SchemaTree = { element: { name: 'root' }, children: [], count: 1, path: [] };
  const counter = { next: 0 };
  const tree = treeOf(node, [], counter);
  root.children.push(tree);
  const columns = new Map<string, DecodedArray>();
  readLeaves(node, [root, tree], rows, chunkOf, compressors, columns);
  assembleNested(columns, tree, PARSERS);
  const raw = columns.get(tree.path.join('.'));
  if (raw === undefined || raw.length !== rows) throw broken(`column ${node.name} has ${raw?.length} rows of ${rows}`);
  const convert = converterOf(node, tree);
  return Array.from(raw as ArrayLike<unknown>, convert);
}

function treeOf(node: ParquetNode, parent: string[], counter: { next: number }): SchemaTree {
  const name = `n${counter.next++}`;
  const path = [...parent, name];
  const children = node.children.map((child) => treeOf(child, path, counter));
  const repetition = { required: 'REQUIRED', optional: 'OPTIONAL', repeated: 'REPEATED' } as const;
  return {
    path,
    children,
    count: children.reduce((sum, child) => sum + child.count, 1),
    element: {
      name,
      repetition_type: repetition[node.repetition],
      ...(node.leaf === null
        ? { num_children: children.length }
        : { type: PHYSICAL[node.physical], type_length: node.length }),
    },
  };
}

function same<T>(value: T): T {
  return value;
}

/** Called for INT96 alone, with nanoseconds since 1970. */
const PARSERS = {
  timestampFromMilliseconds: same<bigint>,
  timestampFromMicroseconds: same<bigint>,
  timestampFromNanoseconds: same<bigint>,
  dateFromDays: same<number>,
  stringFromBytes: same<Uint8Array>,
  jsonFromBytes: same<Uint8Array>,
  geometryFromBytes: same<Uint8Array>,
  geographyFromBytes: same<Uint8Array>,
  uuidFromBytes: same<Uint8Array>,
};

function readLeaves(
  node: ParquetNode,
  schemaPath: SchemaTree[],
  rows: number,
  chunkOf: (leaf: number) => LeafChunk,
  compressors: Inflaters,
  out: Map<string, DecodedArray>,
): void {
  const tree = schemaPath[schemaPath.length - 1];
  if (node.leaf === null) {
    node.children.forEach((child, i) => {
      readLeaves(child, [...schemaPath, tree.children[i]], rows, chunkOf, compressors, out);
    });
    return;
  }
  const { bytes, codec } = chunkOf(node.leaf);
  const decoder: ColumnDecoder = {
    pathInSchema: tree.path,
    type: PHYSICAL[node.physical],
    element: tree.element,
    schemaPath,
    codec,
    parsers: PARSERS,
    compressors,
    utf8: false,
  };
  const reader = { view: new DataView(bytes.buffer, bytes.byteOffset, bytes.length), offset: 0 };
  const group = { groupStart: 0, selectStart: 0, selectEnd: rows, groupRows: rows };
  const { data } = readColumn(reader, group, decoder);
  const values: unknown[] = [];
  for (const chunk of data) for (let i = 0; i < chunk.length; i++) values.push(chunk[i]);
  out.set(tree.path.join('.'), values);
}

type Convert = (raw: unknown) => unknown;

/** From the arrays and objects that hyparquet makes of levels to values. */
function converterOf(node: ParquetNode, tree: SchemaTree): Convert {
  const convert = orNull(ownConverter(node, tree));
  if (node.repetition !== 'repeated') return convert;
  return (raw) => Array.from(raw as unknown[], convert);
}

function orNull(convert: Convert): Convert {
  return (raw) => (raw === null || raw === undefined ? null : convert(raw));
}

function ownConverter(node: ParquetNode, tree: SchemaTree): Convert {
  const { type, repeated, element } = node;
  if (node.leaf !== null) return leafConverter(node);
  if (repeated !== null && element !== null) {
    const [held] = tree.children;
    const list = held.element.name;
    if (type.kind === 'map') {
      const entry = orNull(structConverter(repeated, held));
      return (raw) => Array.from((raw as Record<string, unknown[]>)[list] ?? [], entry);
    }
    if (element === repeated) {
      const own = orNull(ownConverter(repeated, held));
      return (raw) => Array.from((raw as Record<string, unknown[]>)[list] ?? [], own);
    }
    const inner = held.children[0];
    const name = inner.element.name;
    const convert = converterOf(element, inner);
    return (raw) =>
      Array.from((raw as Record<string, Record<string, unknown>[]>)[list] ?? [], (entry) => convert(entry?.[name]));
  }
  return structConverter(node, tree);
}

function structConverter(node: ParquetNode, tree: SchemaTree): Convert {
  const steps = node.children.map((child, i) => ({
    name: tree.children[i].element.name,
    convert: converterOf(child, tree.children[i]),
  }));
  return (raw) => steps.map(({ name, convert }) => convert((raw as Record<string, unknown>)[name]));
}

function leafConverter({ type }: ParquetNode): Convert {
  switch (type.kind) {
    case 'null':
      return () => null;
    case 'integer':
      if (type.signed) return same;
      return (raw) => (typeof raw === 'bigint' ? BigInt.asUintN(64, raw) : (raw as number) >>> 0);
    case 'float':
      return type.bits === 16 ? (raw) => half(raw as Uint8Array) : same;
    case 'decimal':
      return (raw) => (raw instanceof Uint8Array ? integerAt(raw, 0, raw.length, true) : BigInt(raw as number));
    case 'text':
      return (raw) => textOrNone(raw as Uint8Array);
    default:
      return same;
  }
}

function half(bytes: Uint8Array): number {
  return halvesOf(Uint16Array.of(bytes[0] | (bytes[1] << 8)))[0];
}

function textOrNone(bytes: Uint8Array): string | undefined {
  try {
    return textOf(bytes);
  } catch {
    return undefined;
  }
}
