import type { DataFile, TableMetadata, Value } from '../../src/core/iceberg/types.ts';
import type { Report } from './finding.ts';
import type { ColumnProfile, FileProfile } from './profile.ts';
import type { EntryState } from './reader.ts';
import {
  compareValues,
  decodeSingle,
  isFloating,
  isNaNValue,
  isTruncatable,
  keyOfValue,
  lowerBoundOf,
  type Primitive,
  sameValue,
  upperBoundOf,
} from './values.ts';

export interface EntryOptions {
  /** Bounds follow `truncate(16)`; without it they only have to hold. */
  truncated: boolean;
  /** Counts and bounds may be missing for columns beyond the first so many, unless partition or sort order use them. */
  metricColumnsMax: number;
}

/** One manifest entry against what its file really holds: E7, E9-E18, B1-B18. */
export function checkEntryOfFile(
  key: string,
  entry: EntryState,
  specId: number,
  profile: FileProfile,
  metadata: TableMetadata,
  options: EntryOptions,
  report: Report,
): void {
  const file = entry.dataFile;
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, key, expected, found);
  };
  must(file.fileSizeInBytes === profile.size, 'E9 file_size_in_bytes', profile.size, file.fileSizeInBytes);
  must(file.recordCount === profile.rows && profile.rows > 0n, 'E10 record_count', profile.rows, file.recordCount);
  const tuples = profile.tuples.get(specId) ?? new Map<string, Value[]>();
  const own = file.partition.map(keyOfValue).join('|');
  must(tuples.size === 1 && tuples.has(own), 'E7 partition', [...tuples.values()], file.partition);
  must(
    file.splitOffsets === null || file.splitOffsets.join() === profile.splitOffsets.join(),
    'E12 split_offsets',
    profile.splitOffsets,
    file.splitOffsets,
  );
  const order = file.sortOrderId ?? 0;
  if (order !== 0) {
    const at = profile.disorder.get(order);
    must(at !== undefined, 'E13 sort_order_id', 'a known order', order);
    must(
      at === undefined || at === null,
      'E13 sort order',
      `rows in order ${order}`,
      `row ${at} before row ${(at ?? 0) - 1}`,
    );
  }
  const always = new Set([
    ...metadata['partition-specs'].flatMap((spec) => spec.fields.map((field) => field['source-id'])),
    ...metadata['sort-orders'].flatMap((sort) => sort.fields.map((field) => field['source-id'])),
  ]);
  let position = 0;
  for (const [id, column] of profile.columns) {
    const expected = !column.leaf.repeated && (position++ < options.metricColumnsMax || always.has(id));
    checkCounts(key, file, id, column, expected, report);
    checkBounds(key, file, id, column, expected, options, report);
  }
  for (const name of [
    'valueCounts',
    'nullValueCounts',
    'nanValueCounts',
    'lowerBounds',
    'upperBounds',
    'columnSizes',
  ] as const)
    for (const id of file[name]?.keys() ?? [])
      must(
        profile.columns.has(id),
        name.endsWith('Bounds') ? 'B18 bounds' : 'E19 counts',
        'columns of the file',
        `${name} of ${id}`,
      );
}

function checkCounts(
  key: string,
  file: DataFile,
  id: number,
  column: ColumnProfile,
  expected: boolean,
  report: Report,
): void {
  const { leaf } = column;
  const count = (demand: string, map: ReadonlyMap<number, bigint> | null, real: bigint, wanted: boolean) => {
    const found = map?.get(id);
    if (found === undefined ? wanted : found !== real) report(demand, `${key} column ${leaf.name}`, real, found);
  };
  count('E14 column_sizes', file.columnSizes, column.compressedSize, expected);
  if (leaf.repeated) {
    for (const [name, map] of [
      ['value_counts', file.valueCounts],
      ['null_value_counts', file.nullValueCounts],
      ['nan_value_counts', file.nanValueCounts],
    ] as const)
      if (map?.has(id))
        report(`E17 ${name}`, `${key} column ${leaf.name}`, 'left out inside a list or map', map.get(id));
    return;
  }
  count('E15 value_counts', file.valueCounts, column.values, expected);
  count('E15 null_value_counts', file.nullValueCounts, column.nulls, expected);
  const floating = isFloating(leaf.type);
  if (floating) count('E16 nan_value_counts', file.nanValueCounts, column.nans, expected);
  else if (file.nanValueCounts?.has(id))
    report(
      'E16 nan_value_counts',
      `${key} column ${leaf.name}`,
      'only of float and double',
      file.nanValueCounts.get(id),
    );
}

function checkBounds(
  key: string,
  file: DataFile,
  id: number,
  column: ColumnProfile,
  expected: boolean,
  options: EntryOptions,
  report: Report,
): void {
  const { leaf, least, greatest } = column;
  const at = `${key} column ${leaf.name}`;
  const [lower, upper] = [file.lowerBounds?.get(id), file.upperBounds?.get(id)];
  if (leaf.repeated) {
    if (lower !== undefined || upper !== undefined)
      report('E17 bounds', at, 'left out inside a list or map', { lower, upper });
    return;
  }
  if (least === null) {
    if (lower !== undefined || upper !== undefined)
      report(column.nans > 0n ? 'B7 bounds' : 'E15 bounds', at, 'absent: no value', { lower, upper });
    return;
  }
  for (const side of ['lower', 'upper'] as const) {
    const bytes = side === 'lower' ? lower : upper;
    const real = side === 'lower' ? least : greatest;
    const rule = side === 'lower' ? lowerBoundOf(leaf.type, real) : upperBoundOf(leaf.type, real);
    if (bytes === undefined) {
      if (expected && rule !== null) report(`E18 ${side} bound`, at, rule, undefined);
      continue;
    }
    let bound: Value;
    try {
      bound = decodeSingle(leaf.type, bytes);
    } catch (error) {
      const demand = leaf.type.name === 'string' ? 'B10' : leaf.type.name === 'decimal' ? 'B3' : 'B2';
      report(`${demand} ${side} bound`, at, `a single ${leaf.type.name}`, (error as Error).message);
      continue;
    }
    const demand = brokenDemand(side, bound, real, rule, leaf.type, options.truncated);
    if (demand !== null) report(`${demand} ${side} bound`, at, rule ?? 'none', bound);
  }
}

/** The demand a bound breaks, or null: it must hold, and be as tight as the rule makes it. */
function brokenDemand(
  side: 'lower' | 'upper',
  bound: Value,
  real: Value,
  rule: Value,
  type: Primitive,
  truncated: boolean,
): string | null {
  if (isNaNValue(bound)) return 'B7';
  const cuts = type.name === 'binary' ? 'B12' : side === 'lower' ? 'B10' : 'B11';
  const excess = side === 'lower' ? compareValues(bound, real) : compareValues(real, bound);
  if (excess > 0) {
    if (isFloating(type) && bound === 0 && real === 0) return 'B8';
    return side === 'upper' && isTruncatable(type) ? cuts : 'B1';
  }
  if (rule !== null && sameValue(bound, rule)) return null;
  if (!isTruncatable(type)) return 'B1';
  if (sameValue(bound, real)) return truncated ? 'B9' : null;
  return rule !== null && sameValue(real, rule) && side === 'upper' ? 'B13' : cuts;
}
