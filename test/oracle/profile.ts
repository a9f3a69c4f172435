import type { PartitionSpec, Schema, SortOrder, TableMetadata, Value } from '../../src/core/iceberg/types.ts';
import { checkParquet } from './check-parquet.ts';
import { assembleStruct, type Leaf, leavesOf, type StructTree } from './columns.ts';
import { collector, type Finding, type Report } from './finding.ts';
import { type ParquetFooter, readFooter, readRecords } from './parquet.ts';
import { fieldsById, partitionTypes } from './reader.ts';
import { applyTransform } from './transform.ts';
import { compareValues, isFloating, isNaNValue, keyOfValue } from './values.ts';

/** What one column of one file really holds. */
export interface ColumnProfile {
  leaf: Leaf;
  values: bigint;
  nulls: bigint;
  nans: bigint;
  /** Least and greatest value that is neither null nor NaN; null when there is none. */
  least: Value;
  greatest: Value;
  compressedSize: bigint;
}

/** What one data file really holds, derived from its bytes alone. */
export interface FileProfile {
  rows: bigint;
  size: bigint;
  splitOffsets: bigint[];
  columns: Map<number, ColumnProfile>;
  /** Distinct partition tuples of the rows, by their spelling, under each spec asked for. */
  tuples: Map<number, Map<string, Value[]>>;
  /** Row at which the order first breaks, or null, for each sort order asked for. */
  disorder: Map<number, number | null>;
  /** What is wrong with the file by itself. */
  findings: Finding[];
}

export interface ProfileOptions {
  pageIndexRequired: boolean;
  zstdRequired: boolean;
}

/** Types that may be widened → how a file holds them. */
const NARROW: ReadonlyMap<unknown, string> = new Map([
  ['int', 'INT32'],
  ['long', 'INT64'],
  ['float', 'FLOAT'],
  ['double', 'DOUBLE'],
]);

/**
 * The schema whose columns a file was written with: the one that knows most of its field ids, with types that were not
 * widened since, newest first.
 */
export function schemaOfFile(metadata: TableMetadata, footer: ParquetFooter): Schema {
  const { leaves } = footer;
  const score = (schema: Schema) => {
    const known = fieldsById(schema.fields);
    const both = leaves.filter(({ fieldId }) => fieldId !== undefined && known.has(fieldId));
    const same = both.filter(({ fieldId, physical }) => physical === NARROW.get(known.get(fieldId as number)?.type));
    return both.length * 1_000_000 + same.length * 1000 - known.size;
  };
  const schemas = [...metadata.schemas].sort((a, b) => score(b) - score(a) || b['schema-id'] - a['schema-id']);
  return schemas[0];
}

/** Reads a data file whole and derives everything that its manifest entry claims. Throws when it cannot be read. */
export async function profileFile(
  key: string,
  bytes: Uint8Array,
  metadata: TableMetadata,
  options: ProfileOptions,
): Promise<FileProfile> {
  const { findings, report } = collector();
  const footer = readFooter(bytes);
  const schema = schemaOfFile(metadata, footer);
  const records = await readRecords(bytes);
  const rows = records.map((record) => assembleStruct(schema.fields, footer.root, record));
  const present = new Set(footer.leaves.map((leaf) => leaf.fieldId));
  const leaves = leavesOf(schema.fields).filter((leaf) => present.has(leaf.id));
  checkParquet(key, bytes, footer, schema, rows, leaves, options, report);
  const columns = new Map<number, ColumnProfile>();
  for (const leaf of leaves) {
    const values: Value[] = [];
    for (const row of rows) leaf.collect(row, values);
    checkRange(`${key} column ${leaf.name}`, leaf, values, report);
    const size = footer.rowGroups.flatMap((group) => group.chunks).filter((chunk) => chunk.leaf.fieldId === leaf.id);
    columns.set(leaf.id, {
      leaf,
      ...summarise(values, isFloating(leaf.type)),
      compressedSize: size.reduce((sum, chunk) => sum + chunk.compressedSize, 0n),
    });
  }
  return {
    rows: BigInt(rows.length),
    size: BigInt(bytes.length),
    splitOffsets: footer.rowGroups.map((group) => {
      const offsets = group.chunks.flatMap((chunk) => [
        chunk.dataPageOffset,
        chunk.dictionaryPageOffset ?? chunk.dataPageOffset,
      ]);
      return offsets.sort(compareValues)[0] ?? 0n;
    }),
    columns,
    tuples: new Map(
      metadata['partition-specs'].map((spec) => [spec['spec-id'], tuplesOf(metadata, spec, leaves, rows)]),
    ),
    disorder: new Map(metadata['sort-orders'].map((order) => [order['order-id'], disorderOf(order, leaves, rows)])),
    findings,
  };
}

const DAYS = [-719_162, 2_932_896];

/** P16: decimals of their precision, instants of the years 1 to 9999. */
function checkRange(at: string, leaf: Leaf, values: readonly Value[], report: Report): void {
  const { name, precision } = leaf.type;
  const day = name === 'date' ? 1n : ['timestamp', 'timestamptz'].includes(name) ? 86_400_000_000n : null;
  const least = name === 'decimal' ? 1n - 10n ** BigInt(precision) : day === null ? null : BigInt(DAYS[0]) * day;
  const greatest = name === 'decimal' ? -(least as bigint) : day === null ? null : (BigInt(DAYS[1]) + 1n) * day - 1n;
  if (least === null || greatest === null) return;
  for (const value of values)
    if (value !== null && (BigInt(value as number | bigint) < least || BigInt(value as number | bigint) > greatest)) {
      report('P16 range', at, `${least} to ${greatest}`, value);
      return;
    }
}

/** Counts and extremes of a column. Zero is least as -0 and greatest as +0, whichever sign was stored (B8). */
export function summarise(values: readonly Value[], floating: boolean) {
  let [nulls, nans] = [0n, 0n];
  let least: Value = null;
  let greatest: Value = null;
  for (const value of values) {
    if (value === null) nulls++;
    else if (isNaNValue(value)) nans++;
    else {
      if (least === null || compareValues(value, least) < 0) least = value;
      if (greatest === null || compareValues(value, greatest) > 0) greatest = value;
    }
  }
  if (floating && least === 0) least = -0;
  if (floating && greatest === 0) greatest = 0;
  return { values: BigInt(values.length), nulls, nans, least, greatest };
}

function cellOf(leaf: Leaf | undefined, row: StructTree): Value {
  if (leaf === undefined) return null;
  const values: Value[] = [];
  leaf.collect(row, values);
  return values[0] ?? null;
}

function tuplesOf(
  metadata: TableMetadata,
  spec: PartitionSpec,
  leaves: readonly Leaf[],
  rows: readonly StructTree[],
): Map<string, Value[]> {
  const types = partitionTypes(metadata, spec);
  const sources = spec.fields.map((field) => leaves.find((leaf) => leaf.id === field['source-id']));
  const found = new Map<string, Value[]>();
  for (const row of rows) {
    const tuple = spec.fields.map((field, i) =>
      applyTransform(field.transform, types[i].source, cellOf(sources[i], row)),
    );
    found.set(tuple.map(keyOfValue).join('|'), tuple);
  }
  return found;
}

function disorderOf(order: SortOrder, leaves: readonly Leaf[], rows: readonly StructTree[]): number | null {
  const sources = order.fields.map((field) => leaves.find((leaf) => leaf.id === field['source-id']));
  const keyOf = (row: StructTree) =>
    order.fields.map((field, i) => {
      const value = cellOf(sources[i], row);
      const source = sources[i];
      return source === undefined ? null : applyTransform(field.transform, source.type, value);
    });
  let before: Value[] | null = null;
  for (const [i, row] of rows.entries()) {
    const here = keyOf(row);
    if (before !== null && compareKeys(order, before, here) > 0) return i;
    before = here;
  }
  return null;
}

function compareKeys(order: SortOrder, a: readonly Value[], b: readonly Value[]): number {
  for (const [i, field] of order.fields.entries()) {
    const [x, y] = [a[i], b[i]];
    if (x === null || y === null) {
      if (x === y) continue;
      return (x === null) === (field['null-order'] === 'nulls-first') ? -1 : 1;
    }
    const sign = compareValues(x, y);
    if (sign !== 0) return field.direction === 'asc' ? sign : -sign;
  }
  return 0;
}
