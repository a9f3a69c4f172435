import { invalid } from '../base/errors.ts';
import type { PartitionSpec, SortField, SortOrder, Value } from '../iceberg/types.ts';
import type { Column, Columns } from './columns.ts';
import { winnersOf } from './dedup.ts';
import { gather } from './gather.ts';
import { sortByWords, sortKeysOf } from './order.ts';
import { type SortKey, type Word, wordsOf } from './order-words.ts';
import { partitionRows } from './partition.ts';
import { rowBytesBound, rowBytesOf } from './row-bytes.ts';

/** The rows are unique by (series, time); field ids of top-level columns. */
export interface Dedup {
  seriesIds: readonly number[];
  timeId: number;
  /** The insertion time that decides between rows of one key; null in tables that have none. */
  ingestTimeId: number | null;
}

export interface PrepareOptions {
  spec: PartitionSpec;
  sortOrder: SortOrder;
  /** Absent: every row is kept. */
  dedup?: Dedup;
  /** Rows of one file at most. */
  targetRows: number;
  /** Bytes of one file, as typed columns in memory, at most; but a row larger than that has a file of its own. */
  targetBytes: number;
}

/** One file to be: all its rows are in one partition and in the sort order. */
export interface PlannedFile {
  tuple: Value[];
  /** Rows of the input, in the order of the file. */
  rowIndexes: Uint32Array;
}

export interface FilePlan {
  /** Partition by partition, in order of first rows. */
  files: PlannedFile[];
  /** Rows that lost against another of the same key. */
  duplicates: number;
}

/**
 * Splits rows into files: by partition, each in the sort order, free of duplicates, rolled over at the target sizes.
 * Nothing is copied yet: gather one file at a time, and no more than that is held twice.
 *
 * Throws what `partitionRows` and `sortKeysOf` throw; `invalid` `unknown-dedup-field` for a field the schema does not have.
 */
export function planFiles(columns: Columns, options: PrepareOptions): FilePlan {
  const { spec, sortOrder, dedup } = options;
  const { rows } = columns;
  const { tuples, ordinals } = partitionRows(columns, spec);
  const partitionKey: SortKey = {
    column: { kind: 'int32', values: ordinals, validity: null },
    type: 'int',
    direction: 'asc',
    nullOrder: 'nulls-first',
  };
  const words = wordsOf(rows, [partitionKey, ...sortKeysOf(columns, sortOrder)]);
  let sorted: Uint32Array;
  if (dedup === undefined) sorted = sortByWords(rows, words);
  else {
    for (const id of [...dedup.seriesIds, dedup.timeId]) columnOf(columns, id);
    const ingestTime = dedup.ingestTimeId === null ? null : columnOf(columns, dedup.ingestTimeId);
    if (ordersByKey(spec, sortOrder, dedup)) sorted = winnersOf(sortByWords(rows, words), words, ingestTime);
    else sorted = winnersInOrder(columns, dedup, ingestTime, words);
  }
  return { files: rolledOver(columns, sorted, ordinals, tuples, options), duplicates: rows - sorted.length };
}

/** `planFiles`, and the rows of each file gathered. */
export function prepareFiles(columns: Columns, options: PrepareOptions): { tuple: Value[]; columns: Columns }[] {
  return planFiles(columns, options).files.map(({ tuple, rowIndexes }) => ({
    tuple,
    columns: gather(columns, rowIndexes),
  }));
}

/**
 * True when rows of one key are neighbours in files and share all of the words: the sort order is by just the key's
 * fields, and the partition follows from them. That is how Timelake's tables are made, and saves a second sort.
 */
export function ordersByKey(spec: PartitionSpec, sortOrder: SortOrder, dedup: Dedup): boolean {
  const key = new Set([...dedup.seriesIds, dedup.timeId]);
  const ordered = new Set(sortOrder.fields.map((field) => field['source-id']));
  return (
    sortOrder.fields.every((field) => field.transform === 'identity' && key.has(field['source-id'])) &&
    [...key].every((id) => ordered.has(id)) &&
    spec.fields.every((field) => field.transform === 'void' || key.has(field['source-id']))
  );
}

/** Winners found in an order of their own, then put in the order of the file. */
function winnersInOrder(columns: Columns, dedup: Dedup, ingestTime: Column | null, words: Word[]): Uint32Array {
  const { rows } = columns;
  const fields = [...dedup.seriesIds, dedup.timeId].map(
    (id): SortField => ({ transform: 'identity', 'source-id': id, direction: 'asc', 'null-order': 'nulls-first' }),
  );
  const key = wordsOf(rows, sortKeysOf(columns, { 'order-id': 0, fields }));
  const won = new Uint8Array(rows);
  for (const row of winnersOf(sortByWords(rows, key), key, ingestTime)) won[row] = 1;
  return sortByWords(rows, words).filter((row) => won[row] === 1);
}

function columnOf(columns: Columns, id: number): Column {
  const place = columns.schema.fields.findIndex((field) => field.id === id);
  if (place < 0) throw invalid('unknown-dedup-field', `dedup names a field the schema does not have: ${id}`);
  return columns.columns[place];
}

function rolledOver(
  columns: Columns,
  sorted: Uint32Array,
  ordinals: Int32Array,
  tuples: Value[][],
  { targetRows, targetBytes }: PrepareOptions,
): PlannedFile[] {
  const files: PlannedFile[] = [];
  // Rows are weighed one by one only when all of them might be too many for a file: a flush mostly is one.
  const fitOne = sorted.length <= targetRows && sorted.length * rowBytesBound(columns) <= targetBytes;
  if (fitOne && tuples.length === 1) return [{ tuple: tuples[0], rowIndexes: sorted }];
  const rowBytes = fitOne ? null : rowBytesOf(columns);
  let start = 0;
  let bytes = 0;
  const close = (end: number) => {
    if (end > start) files.push({ tuple: tuples[ordinals[sorted[start]]], rowIndexes: sorted.subarray(start, end) });
    start = end;
    bytes = 0;
  };
  for (let i = 0; i < sorted.length; i++) {
    const row = sorted[i];
    const size = rowBytes === null ? 0 : rowBytes[row];
    const full = i - start >= targetRows || (i > start && bytes + size > targetBytes);
    if (full || ordinals[row] !== ordinals[sorted[start]]) close(i);
    bytes += size;
  }
  close(sorted.length);
  return files;
}
