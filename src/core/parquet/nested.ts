import { ByteWriter, ParquetWriter as NestedEncoder } from 'hyparquet-writer';
import { assert } from '../base/assert.ts';
import type { Compress } from '../base/codecs.ts';
import { DICTIONARY_PAGE_BYTES_MAX } from '../base/encoding-limits.ts';
import { invalid } from '../base/errors.ts';
import { ROW_GROUP_BYTES_MAX } from '../base/limits.ts';
import { type Column, type Columns, isNull } from '../columns/columns.ts';
import { readerOf } from '../columns/value.ts';
import type { ColumnFacts } from '../iceberg/bounds.ts';
import { comparatorOf } from '../iceberg/single-value.ts';
import type { NestedField, Schema, Type, Value } from '../iceberg/types.ts';
import { checkRequired, cutRowGroup } from './check.ts';
import type { FileFacts, ParquetOptions } from './facts.ts';
import { CREATED_BY } from './footer-write.ts';
import { isPrimitive, type Storage, storageOf } from './layout.ts';
import { type Normalise, nullableNormaliser } from './nested-values.ts';

type SchemaElement = NestedEncoder['schema'][number];
type RowGroup = NestedEncoder['row_groups'][number];

/** The encoder counts neither lengths nor multi-byte characters, so its pages are cut well below the zstd bound. */
const PAGE_BYTES = 16 * 1024;

/** A leaf of a nested schema. `tracked`: manifests carry its counts and bounds (E17: not inside lists and maps). */
interface NestedLeaf {
  id: number;
  type: string;
  tracked: boolean;
}

/**
 * Writes schemas with list, struct or map, one JavaScript value a row, through hyparquet-writer: levels need care, not
 * speed (P11, B032). Its pages are of version 2 and not aligned over columns. See `ParquetWriter`.
 */
export class NestedWriter {
  readonly #schema: Schema;
  readonly #options: ParquetOptions;
  readonly #sink = new ByteWriter(64 * 1024);
  readonly #encoder: NestedEncoder;
  readonly #leaves: NestedLeaf[] = [];
  /** Of each top-level field: the index of its first leaf. */
  readonly #firstLeaf: number[] = [];
  readonly #normalisers: Normalise[];
  #chunks: Uint8Array[] = [];

  constructor(schema: Schema, options: ParquetOptions, compress: Compress) {
    this.#schema = schema;
    this.#options = options;
    const elements: SchemaElement[] = [{ name: 'table', num_children: schema.fields.length }];
    for (const field of schema.fields) {
      this.#firstLeaf.push(this.#leaves.length);
      addElements(elements, field, field.required ? 'REQUIRED' : 'OPTIONAL');
      addLeaves(this.#leaves, field.id, field.type, true);
    }
    this.#normalisers = schema.fields.map((field) => nullableNormaliser(field.type, field.required, field.name));
    this.#encoder = new NestedEncoder({
      writer: this.#sink,
      schema: elements,
      codec: 'ZSTD',
      compressors: { ZSTD: compress },
      createdBy: CREATED_BY,
    });
  }

  append(columns: Columns, from: number, to: number): void {
    assert(columns.columns.length === this.#schema.fields.length, 'columns and schema have the same fields');
    assert(from >= 0 && from <= to && to <= columns.rows, `rows ${from} to ${to} lie in ${columns.rows}`);
    const { fields } = this.#schema;
    fields.forEach((field, i) => {
      checkRequired(field.name, field.required, columns.columns[i], from, to);
    });
    // All rows become values, and are checked, before the first is encoded.
    const values = fields.map((field, i) => {
      return valuesOf(columns.columns[i], field.type, this.#normalisers[i], from, to);
    });
    const bytesMax = this.#options.rowGroupBytesMax ?? ROW_GROUP_BYTES_MAX;
    for (let start = from; start < to; ) {
      const end = cutRowGroup(columns, start, this.#options.rowGroupRows, bytesMax, to);
      this.#writeRowGroup(values, start - from, end - from);
      start = end;
    }
  }

  takeChunks(): Uint8Array[] {
    this.#emit();
    const chunks = this.#chunks;
    this.#chunks = [];
    return chunks;
  }

  get byteLength(): number {
    return this.#sink.offset;
  }

  finish(keyValues: readonly (readonly [string, string])[]): FileFacts {
    this.#encoder.kvMetadata = keyValues.map(([key, value]) => ({ key, value }));
    this.#encoder.finish();
    const groups = this.#encoder.row_groups;
    const columns = new Map<number, ColumnFacts>();
    this.#leaves.forEach((leaf, i) => {
      if (leaf.tracked) columns.set(leaf.id, factsOf(leaf, groups, i));
    });
    return {
      recordCount: Number(this.#encoder.num_rows),
      fileSizeInBytes: this.#sink.offset,
      splitOffsets: groups.map((group) => Number(group.file_offset)),
      columns,
    };
  }

  #writeRowGroup(values: unknown[][], from: number, to: number): void {
    const offset = this.#sink.offset;
    const columnData = this.#schema.fields.map(({ name, type }, i) => ({
      name,
      data: values[i].slice(from, to),
      // The encoder's own choice merges both zeros in a dictionary, and takes RLE for booleans, which fewer readers know.
      encoding: mayBeMerged(type) ? ('PLAIN' as const) : undefined,
      columnIndex: !isRepeated(type),
    }));
    this.#encoder.write({
      columnData,
      rowGroupSize: to - from,
      pageSize: PAGE_BYTES,
      dictionarySize: DICTIONARY_PAGE_BYTES_MAX,
    });
    const group = this.#encoder.row_groups[this.#encoder.row_groups.length - 1];
    group.file_offset = BigInt(offset);
    const { sortingColumns } = this.#options;
    if (sortingColumns.length > 0) {
      group.sorting_columns = sortingColumns.map(({ columnIndex, descending, nullsFirst }) => ({
        column_idx: this.#firstLeaf[columnIndex],
        descending,
        nulls_first: nullsFirst,
      }));
    }
    this.#emit();
  }

  #emit(): void {
    if (this.#sink.index === 0) return;
    this.#chunks.push(this.#sink.getBytes().slice());
    this.#sink.index = 0;
  }
}

/** Rows of one column as JavaScript values, checked. */
function valuesOf(column: Column, type: Type, normalise: Normalise, from: number, to: number): unknown[] {
  const out: unknown[] = new Array(to - from);
  const read = column.kind === 'nested' ? null : readerOf(column, type as string);
  for (let row = from; row < to; row++) {
    const value = isNull(column, row) ? null : column.kind === 'nested' ? column.values[row] : read!(row);
    out[row - from] = normalise(value, row);
  }
  return out;
}

/** Appends the Parquet elements of a field, depth first: three levels for lists and maps, ids on each field (P1, P2). */
function addElements(
  elements: SchemaElement[],
  field: Pick<NestedField, 'id' | 'name' | 'type'>,
  repetition: 'REQUIRED' | 'OPTIONAL',
): void {
  const { type } = field;
  const head = { name: field.name, repetition_type: repetition, field_id: field.id };
  const of = (required: boolean) => (required ? 'REQUIRED' : 'OPTIONAL');
  if (isPrimitive(type)) {
    elements.push({ ...head, ...elementOf(storageOf(type)) });
    return;
  }
  switch (type.type) {
    case 'struct':
      if (type.fields.length === 0) throw invalid('unknown-type', `struct ${field.name} has no fields`);
      elements.push({ ...head, num_children: type.fields.length });
      for (const child of type.fields) addElements(elements, child, of(child.required));
      return;
    case 'list':
      elements.push({ ...head, num_children: 1, converted_type: 'LIST', logical_type: { type: 'LIST' } });
      elements.push({ name: 'list', repetition_type: 'REPEATED', num_children: 1 });
      addElements(
        elements,
        { id: type['element-id'], name: 'element', type: type.element },
        of(type['element-required']),
      );
      return;
    case 'map':
      elements.push({ ...head, num_children: 1, converted_type: 'MAP', logical_type: { type: 'MAP' } });
      elements.push({ name: 'key_value', repetition_type: 'REPEATED', num_children: 2 });
      addElements(elements, { id: type['key-id'], name: 'key', type: type.key }, 'REQUIRED');
      addElements(elements, { id: type['value-id'], name: 'value', type: type.value }, of(type['value-required']));
      return;
  }
}

/** The parts of a schema element that follow from the stored form. */
function elementOf({ physical, length, logical }: Storage): Partial<SchemaElement> {
  const PHYSICAL = ['BOOLEAN', 'INT32', 'INT64', 'INT96', 'FLOAT', 'DOUBLE', 'BYTE_ARRAY', 'FIXED_LEN_BYTE_ARRAY'];
  const element: Partial<SchemaElement> = { type: PHYSICAL[physical] as SchemaElement['type'] };
  if (length > 0) element.type_length = length;
  switch (logical?.name) {
    case 'string':
      return { ...element, converted_type: 'UTF8', logical_type: { type: 'STRING' } };
    case 'date':
      return { ...element, converted_type: 'DATE', logical_type: { type: 'DATE' } };
    case 'uuid':
      return { ...element, logical_type: { type: 'UUID' } };
    case 'decimal': {
      const { precision, scale } = logical;
      const logicalType = { type: 'DECIMAL', precision, scale } as const;
      return { ...element, converted_type: 'DECIMAL', precision, scale, logical_type: logicalType };
    }
    case 'time':
      return { ...element, logical_type: { type: 'TIME', isAdjustedToUTC: logical.adjustedToUtc, unit: 'MICROS' } };
    case 'timestamp': {
      const isAdjustedToUTC = logical.adjustedToUtc;
      const converted = isAdjustedToUTC ? ({ converted_type: 'TIMESTAMP_MICROS' } as const) : {};
      return { ...element, ...converted, logical_type: { type: 'TIMESTAMP', isAdjustedToUTC, unit: 'MICROS' } };
    }
    default:
      return element;
  }
}

function addLeaves(leaves: NestedLeaf[], id: number, type: Type, tracked: boolean): void {
  if (isPrimitive(type)) {
    leaves.push({ id, type, tracked });
    return;
  }
  switch (type.type) {
    case 'struct':
      for (const field of type.fields) addLeaves(leaves, field.id, field.type, tracked);
      return;
    case 'list':
      addLeaves(leaves, type['element-id'], type.element, false);
      return;
    case 'map':
      addLeaves(leaves, type['key-id'], type.key, false);
      addLeaves(leaves, type['value-id'], type.value, false);
      return;
  }
}

/** True when the type is, or holds at any depth, a boolean or a floating-point number. */
function mayBeMerged(type: Type): boolean {
  if (isPrimitive(type)) return type === 'float' || type === 'double' || type === 'boolean';
  switch (type.type) {
    case 'struct':
      return type.fields.some((field) => mayBeMerged(field.type));
    case 'list':
      return mayBeMerged(type.element);
    case 'map':
      return mayBeMerged(type.key) || mayBeMerged(type.value);
  }
}

/** True when a row can hold several values of a leaf. */
function isRepeated(type: Type): boolean {
  if (isPrimitive(type)) return false;
  return type.type !== 'struct' || type.fields.some((field) => isRepeated(field.type));
}

/** Adds up a leaf's chunks. The encoder keeps bounds uncut, as values, until the footer is written. */
function factsOf(leaf: NestedLeaf, groups: readonly RowGroup[], index: number): ColumnFacts {
  const compare = comparatorOf(leaf.type);
  let lower: Value = null;
  let upper: Value = null;
  let compressedBytes = 0;
  let valueCount = 0;
  let nullCount = 0;
  let nanCount = 0;
  for (const group of groups) {
    const { meta_data: chunk } = group.columns[index];
    assert(chunk?.statistics !== undefined, 'a chunk has metadata and statistics');
    const statistics = chunk.statistics as typeof chunk.statistics & { nan_count?: bigint };
    compressedBytes += Number(chunk.total_compressed_size);
    valueCount += Number(chunk.num_values);
    nullCount += Number(statistics.null_count ?? 0);
    nanCount += Number(statistics.nan_count ?? 0);
    const min = (statistics.min_value ?? null) as Value;
    const max = (statistics.max_value ?? null) as Value;
    if (min !== null && (lower === null || compare(min, lower) < 0)) lower = min;
    if (max !== null && (upper === null || compare(max, upper) > 0)) upper = max;
  }
  const floating = leaf.type === 'float' || leaf.type === 'double';
  return { compressedBytes, valueCount, nullCount, nanCount: floating ? nanCount : null, lower, upper };
}
