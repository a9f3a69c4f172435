import type { NestedField, Schema, Type } from '../../src/core/iceberg/types.ts';
import type { Bucket } from './bucket.ts';
import { assembleStruct, type MapTree, type StructTree, type Tree } from './columns.ts';
import { readFooter, readRecords } from './parquet.ts';
import { liveEntries, type ReadOptions, readTable, schemaById, snapshotState, type TableState } from './reader.ts';

/**
 * A row as a plain object by column name. boolean; int, date (days), float, double → number; long, time, timestamp,
 * timestamptz (microseconds), decimal (unscaled) → bigint; string; uuid → its text; fixed, binary → Uint8Array;
 * struct → object; list → array; map → array of [key, value] pairs; absent → null.
 */
export type Row = Record<string, unknown>;

export interface RowsOptions extends ReadOptions {
  /** The snapshot to read; the current one when absent. Rows have the table's current schema either way. */
  snapshotId?: bigint;
}

function nativeOf(type: Type, tree: Tree): unknown {
  if (tree === null) return null;
  if (typeof type === 'string') {
    if (type !== 'uuid') return tree;
    const text = Array.from(tree as Uint8Array, (byte) => byte.toString(16).padStart(2, '0')).join('');
    return text.replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
  }
  if (type.type === 'struct') return objectOf(type.fields, tree as StructTree);
  if (type.type === 'list') return (tree as Tree[]).map((item) => nativeOf(type.element, item));
  return (tree as MapTree).pairs.map(([key, value]) => [nativeOf(type.key, key), nativeOf(type.value, value)]);
}

function objectOf(fields: readonly NestedField[], tree: StructTree): Row {
  return Object.fromEntries(fields.map((field) => [field.name, nativeOf(field.type, tree.get(field.id) ?? null)]));
}

/** Rows of one Parquet file in its order, under a schema; columns the file does not have are null. */
export async function rowsOfFile(bytes: Uint8Array, schema: Pick<Schema, 'fields'>): Promise<Row[]> {
  const { root } = readFooter(bytes);
  const records = await readRecords(bytes);
  return records.map((record) => objectOf(schema.fields, assembleStruct(schema.fields, root, record)));
}

/** All live rows of a snapshot. Throws when the table has delete files, which this reader does not apply. */
export async function rowsOf(table: TableState, snapshotId?: bigint): Promise<Row[]> {
  const state = snapshotState(table, snapshotId);
  if (state === undefined) {
    if (snapshotId === undefined && table.metadata['current-snapshot-id'] === undefined) return [];
    throw new Error(`no such snapshot: ${snapshotId}`);
  }
  const schema = schemaById(table.metadata, table.metadata['current-schema-id']);
  if (schema === undefined) throw new Error('current schema unknown');
  const found: Row[] = [];
  for (const { dataFile } of liveEntries(state)) {
    if (dataFile.content !== 0) throw new Error(`delete files are not applied: ${dataFile.filePath}`);
    const key = table.keyOf(dataFile.filePath);
    const bytes = key === null ? null : await table.bucket.get(key);
    if (bytes === null) throw new Error(`data file missing: ${dataFile.filePath}`);
    for (const row of await rowsOfFile(bytes, schema)) found.push(row);
  }
  return found;
}

/** Reads a table and returns the live rows of its current or a given snapshot, in the order of the manifests. */
export async function rows(bucket: Bucket, tablePrefix: string, options: RowsOptions = {}): Promise<Row[]> {
  const snapshots = options.snapshotId === undefined ? 'current' : 'all';
  return rowsOf(await readTable(bucket, tablePrefix, { snapshots, ...options }), options.snapshotId);
}

/** One spelling a value: floats by bits (all NaN alike), bytes as hexadecimal, objects with sorted keys. */
export function spell(value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof value === 'bigint') return `${value}n`;
  if (typeof value === 'number') return Object.is(value, -0) ? '-0' : String(value);
  if (typeof value === 'string') return JSON.stringify(value);
  if (value instanceof Uint8Array)
    return `x${Array.from(value, (byte) => byte.toString(16).padStart(2, '0')).join('')}`;
  if (value instanceof Date) return `date ${value.getTime()}`;
  if (Array.isArray(value)) return `[${value.map(spell).join(', ')}]`;
  if (typeof value === 'object')
    return `{${Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([name, member]) => `${name}: ${spell(member)}`)
      .join(', ')}}`;
  return String(value);
}

export interface RowsDifference {
  missing: string[];
  unexpected: string[];
}

/** Compares two lists of rows as multisets. A column that is undefined or absent equals null. */
export function differenceOfRows(expected: readonly Row[], actual: readonly Row[]): RowsDifference {
  const spellRow = (row: Row) =>
    spell(Object.fromEntries(Object.entries(row).filter(([, v]) => v !== null && v !== undefined)));
  const counts = new Map<string, number>();
  for (const row of expected) counts.set(spellRow(row), (counts.get(spellRow(row)) ?? 0) + 1);
  for (const row of actual) counts.set(spellRow(row), (counts.get(spellRow(row)) ?? 0) - 1);
  const missing: string[] = [];
  const unexpected: string[] = [];
  for (const [row, count] of counts) {
    for (let i = 0; i < count; i++) missing.push(row);
    for (let i = 0; i < -count; i++) unexpected.push(row);
  }
  return { missing, unexpected };
}

/** Throws when the rows differ as multisets; the message counts the difference and shows the first rows of each side. */
export function sameRows(expected: readonly Row[], actual: readonly Row[]): void {
  const { missing, unexpected } = differenceOfRows(expected, actual);
  if (missing.length === 0 && unexpected.length === 0) return;
  const some = (list: string[]) =>
    list
      .slice(0, 5)
      .map((row) => `\n    ${row.slice(0, 500)}`)
      .join('');
  throw new Error(
    `rows differ: expected ${expected.length}, found ${actual.length}` +
      `\n  missing ${missing.length}:${some(missing)}\n  unexpected ${unexpected.length}:${some(unexpected)}`,
  );
}
