import { unreachable } from '../base/assert.ts';
import { invalid, SluiceError } from '../base/errors.ts';
import { FILTER_ITEMS_MAX } from '../base/limits.ts';
import { arrayAt, describe, malformed, objectAt, own, stringAt } from '../base/shape.ts';
import { parseTimestamp, TIMESTAMP_MICROS_MAX } from '../columns/times.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { parsePartitionValue } from '../iceberg/partition-label.ts';
import { partitionTupleType } from '../iceberg/partition-spec.ts';
import { primitive } from '../iceberg/primitive.ts';
import { fieldByName } from '../iceberg/schema.ts';
import { boundOf, comparatorOf } from '../iceberg/single-value.ts';
import { ordinalOfMicros, parseTransform, startOfOrdinal } from '../iceberg/transform.ts';
import type {
  DataFile,
  FieldSummary,
  ManifestFile,
  NestedField,
  PartitionSpec,
  PrimitiveType,
  TableMetadata,
  Value,
} from '../iceberg/types.ts';
import { tableSettings } from '../table/properties.ts';

/** Partition field → label (`2026-01-03`), number since 1970, or null. Fields left out take any value. */
export type PartitionChoice = Readonly<Record<string, string | number | bigint | boolean | null>>;

/** Which data files are meant, always whole ones. Times in microseconds; null leaves a side open. */
export type FileFilter =
  | { kind: 'all' }
  | { kind: 'partitions'; partitions: readonly PartitionChoice[] }
  /** Files all of whose rows are in [from, to) by the table's time column. */
  | { kind: 'time-range'; from: bigint | null; to: bigint | null }
  /** Locations as manifests spell them. */
  | { kind: 'paths'; paths: readonly string[] }
  /** Partitions that end at or before an instant, whole; where files are not partitioned by time, those wholly before it. */
  | { kind: 'retention'; before: bigint };

/** `overlapping`: some rows of the file are meant, or may be; whole files only, so it is left alone. */
export type FileMatch = 'inside' | 'overlapping' | 'outside';

/** A filter made for one state of a table. */
export interface FileMatcher {
  /** False when no file of the manifest can be inside or overlapping, by its row in the list alone. */
  mayHold(row: ManifestFile): boolean;
  match(specId: number, file: DataFile): FileMatch;
}

/**
 * A filter as a request's JSON has it, exactly one of:
 *
 *     {"all": true}
 *     {"partitions": [{"time_day": "2026-01-03"}, …]}
 *     {"time_range": {"from": "2026-01-01T00:00:00Z", "to": "2026-02-01T00:00:00Z"}}
 *     {"paths": ["s3://…/data/time_day=2026-01-03/….parquet", …]}
 *
 * @throws invalid `malformed`
 */
export function parseFileFilter(json: unknown, path = 'filter'): FileFilter {
  const object = objectAt(json, path);
  const keys = Object.keys(object);
  if (keys.length !== 1) throw malformed(path, 'one of all, partitions, time_range, paths', json);
  const at = `${path}.${keys[0]}`;
  const value = object[keys[0]];
  switch (keys[0]) {
    case 'all':
      if (value !== true) throw malformed(at, 'true', value);
      return { kind: 'all' };
    case 'partitions':
      return { kind: 'partitions', partitions: someOf(value, at).map((item, i) => choiceAt(item, `${at}[${i}]`)) };
    case 'paths':
      return { kind: 'paths', paths: someOf(value, at).map((item, i) => stringAt(item, `${at}[${i}]`)) };
    case 'time_range': {
      const range = objectAt(value, at);
      for (const key of Object.keys(range)) {
        if (key !== 'from' && key !== 'to') throw malformed(`${at}.${key}`, 'left out', range[key]);
      }
      const from = instantAt(range['from'], `${at}.from`);
      const to = instantAt(range['to'], `${at}.to`);
      if (from === null && to === null) throw malformed(at, 'bounded on a side', value);
      if (from !== null && to !== null && from >= to) throw malformed(at, 'a range whose from is before its to', value);
      return { kind: 'time-range', from, to };
    }
    default:
      throw malformed(at, 'left out', value);
  }
}

function someOf(value: unknown, path: string): unknown[] {
  const items = arrayAt(value, path, FILTER_ITEMS_MAX);
  if (items.length === 0) throw malformed(path, 'a list that is not empty', value);
  return items;
}

function choiceAt(value: unknown, path: string): PartitionChoice {
  const object = objectAt(value, path);
  // An empty choice would mean everything, which is too easily sent by mistake.
  if (Object.keys(object).length === 0) throw malformed(path, 'an object with a partition field', value);
  for (const [name, item] of Object.entries(object)) {
    const isScalar = item === null || ['string', 'number', 'bigint', 'boolean'].includes(typeof item);
    if (!isScalar) throw malformed(`${path}.${name}`, 'a partition label, a number or null', item);
  }
  return object as PartitionChoice;
}

function instantAt(value: unknown, path: string): bigint | null {
  if (value === undefined || value === null) return null;
  const micros = parseTimestamp(stringAt(value, path));
  if (typeof micros === 'string') throw malformed(path, 'a time such as 2026-01-03T00:00:00Z', value);
  return BigInt(micros);
}

/**
 * Makes a filter for one state of a table.
 *
 * @throws invalid `unknown-partition-field` when no partition spec of the table has all fields of a choice,
 * `bad-partition-value`, `no-time-column`
 */
export function fileMatcher(filter: FileFilter, metadata: TableMetadata): FileMatcher {
  switch (filter.kind) {
    case 'all':
      return { mayHold: () => true, match: () => 'inside' };
    case 'paths': {
      const paths = new Set(filter.paths);
      return { mayHold: () => true, match: (_, file) => (paths.has(file.filePath) ? 'inside' : 'outside') };
    }
    case 'partitions':
      return partitionMatcher(filter.partitions, metadata);
    case 'time-range':
      return timeMatcher(filter.from, filter.to, metadata);
    case 'retention':
      return retentionMatcher(filter.before, metadata);
    default:
      return unreachable(filter);
  }
}

interface WantedValue {
  index: number;
  type: PrimitiveType;
  value: Value;
}

function partitionMatcher(choices: readonly PartitionChoice[], metadata: TableMetadata): FileMatcher {
  const wanted = new Map<number, WantedValue[][]>();
  for (const choice of choices) {
    let isKnown = false;
    for (const spec of metadata['partition-specs']) {
      const values = wantedValues(choice, spec, metadata);
      if (values === null) continue;
      isKnown = true;
      wanted.set(spec['spec-id'], [...(wanted.get(spec['spec-id']) ?? []), values]);
    }
    if (isKnown) continue;
    const names = metadata['partition-specs'].flatMap((spec) => spec.fields.map((field) => field.name));
    throw invalid(
      'unknown-partition-field',
      `table is not partitioned by all of ${describe(Object.keys(choice).join(', '))}`,
      { expected: [...new Set(names)] },
    );
  }
  return partitionsMatcher(wanted);
}

/** Null when the spec lacks a field of the choice: its files are not known to be meant. */
function wantedValues(choice: PartitionChoice, spec: PartitionSpec, metadata: TableMetadata): WantedValue[] | null {
  const types = tupleTypesOf(spec, metadata);
  const values: WantedValue[] = [];
  for (const name of Object.keys(choice)) {
    const index = spec.fields.findIndex((field) => field.name === name);
    if (index < 0 || types === null) return null;
    const given = own(choice, name) ?? null;
    const value = parsePartitionValue(spec.fields[index].transform, types[index], given);
    values.push({ index, type: types[index], value });
  }
  return values;
}

function partitionsMatcher(wanted: ReadonlyMap<number, WantedValue[][]>): FileMatcher {
  return {
    mayHold: (row) =>
      (wanted.get(row.partitionSpecId) ?? []).some((values) =>
        values.every(({ index, type, value }) => summaryMayHold(row.partitions?.[index], type, value)),
      ),
    match: (specId, file) =>
      (wanted.get(specId) ?? []).some((values) =>
        values.every(({ index, type, value }) => sameValue(type, file.partition[index], value)),
      )
        ? 'inside'
        : 'outside',
  };
}

/** Matcher for the partitions of given tuples, all of one spec: where those tuples' files can be. */
export function tuplesMatcher(
  metadata: TableMetadata,
  spec: PartitionSpec,
  tuples: readonly (readonly Value[])[],
): FileMatcher {
  const types = tupleTypesOf(spec, metadata);
  if (types === null) return { mayHold: () => true, match: () => 'overlapping' };
  const values = tuples.map((tuple) => types.map((type, index) => ({ index, type, value: tuple[index] })));
  return partitionsMatcher(new Map([[spec['spec-id'], values]]));
}

function timeMatcher(from: bigint | null, to: bigint | null, metadata: TableMetadata): FileMatcher {
  const field = timeFieldOf(metadata);
  const specs = new Map(metadata['partition-specs'].map((spec) => [spec['spec-id'], timeFields(spec, field.id)]));
  return {
    mayHold: mayHoldTimes(specs, from, to),
    match(specId, file) {
      for (const { index, start } of specs.get(specId) ?? []) {
        const value = file.partition[index];
        if (value === null) continue;
        const begin = start(value);
        const end = start(value, 1);
        if ((from === null || begin >= from) && (to === null || end <= to)) return 'inside';
        if ((from !== null && end <= from) || (to !== null && begin >= to)) return 'outside';
      }
      return matchBounds(field, file, from, to);
    },
  };
}

/** A partition stays until it is over, rows of it that are older with it: so the engine does it, and so it goes whole. */
function retentionMatcher(before: bigint, metadata: TableMetadata): FileMatcher {
  const field = timeFieldOf(metadata);
  const specs = new Map(metadata['partition-specs'].map((spec) => [spec['spec-id'], timeFields(spec, field.id)]));
  return {
    mayHold: mayHoldTimes(specs, null, before),
    match(specId, file) {
      const fields = specs.get(specId) ?? [];
      if (fields.length === 0) return matchBounds(field, file, null, before);
      const isOver = fields.some(({ index, start }) => {
        const value = file.partition[index];
        return value !== null && start(value, 1) <= before;
      });
      return isOver ? 'inside' : 'outside';
    },
  };
}

/** By the summaries of manifests: false when no file of one has rows in the range. */
function mayHoldTimes(
  specs: ReadonlyMap<number, readonly TimeField[]>,
  from: bigint | null,
  to: bigint | null,
): FileMatcher['mayHold'] {
  // The last instant that is meant; what is beyond the calendar is in an open range too.
  const last = to === null ? TIMESTAMP_MICROS_MAX : to - 1n;
  return (row) =>
    (specs.get(row.partitionSpecId) ?? []).every(({ index, type, ordinalOf }) =>
      summaryMayMeet(
        row.partitions?.[index],
        type,
        from === null ? null : ordinalOf(from),
        to === null ? null : ordinalOf(last),
      ),
    );
}

/** @throws invalid `no-time-column` */
function timeFieldOf(metadata: TableMetadata): NestedField {
  const { timeColumn } = tableSettings(metadata.properties);
  const field = timeColumn === null ? null : fieldByName(currentSchema(metadata), timeColumn);
  if (field === null || !isTimestamp(field)) {
    throw invalid('no-time-column', 'table has no time column to choose files by');
  }
  return field;
}

export interface TimeField {
  index: number;
  type: PrimitiveType;
  /** Partition value of an instant. */
  ordinalOf: (micros: bigint) => Value;
  /** First microsecond of a partition, or of the one `after` it. */
  start: (value: Value, after?: number) => bigint;
}

/** Fields of a spec that say in which time a file's rows are. */
export function timeFields(spec: PartitionSpec, timeId: number): TimeField[] {
  return spec.fields.flatMap((field, index): TimeField[] => {
    if (field['source-id'] !== timeId) return [];
    const { name } = parseTransform(field.transform);
    if (name !== 'year' && name !== 'month' && name !== 'day' && name !== 'hour') return [];
    return [
      {
        index,
        type: name === 'day' ? 'date' : 'int',
        ordinalOf: (micros) => ordinalOfMicros(name, micros),
        start: (value, after = 0) => startOfOrdinal(name, (value as number) + after),
      },
    ];
  });
}

/** By the bounds of the time column; a file that does not have them may hold anything. */
function matchBounds(field: NestedField, file: DataFile, from: bigint | null, to: bigint | null): FileMatch {
  const nulls = field.required ? 0n : (file.nullValueCounts?.get(field.id) ?? null);
  if (nulls !== null && nulls === file.recordCount) return 'outside';
  const lower = micros(field, file.lowerBounds?.get(field.id));
  const upper = micros(field, file.upperBounds?.get(field.id));
  if (lower === null || upper === null) return 'overlapping';
  if ((to !== null && lower >= to) || (from !== null && upper < from)) return 'outside';
  const isCovered = (from === null || lower >= from) && (to === null || upper < to);
  return isCovered && nulls === 0n ? 'inside' : 'overlapping';
}

function micros(field: NestedField, bytes: Uint8Array | undefined): bigint | null {
  return boundOf(field.type as PrimitiveType, bytes) as bigint | null;
}

function isTimestamp(field: NestedField): boolean {
  if (typeof field.type !== 'string') return false;
  const { name } = primitive(field.type);
  return name === 'timestamp' || name === 'timestamptz';
}

/** Types of a spec's partition values; null when a column of it is in no schema any more. */
export function tupleTypesOf(spec: PartitionSpec, metadata: TableMetadata): PrimitiveType[] | null {
  try {
    // The newest first: a type only widens.
    const schemas = [currentSchema(metadata), ...metadata.schemas.toReversed()];
    return partitionTupleType(spec, schemas).fields.map((field) => field.type as PrimitiveType);
  } catch (error) {
    // An old spec over a column that no schema has any more: its files cannot be told apart by value.
    if (error instanceof SluiceError) return null;
    throw error;
  }
}

/** Equality of partition values of one type; NaN equals itself, and so does null. */
export function sameValue(type: PrimitiveType, a: Value | undefined, b: Value): boolean {
  if (a === undefined) return false;
  if (a === null || b === null) return a === b;
  return comparatorOf(type)(a, b) === 0;
}

/** Whether a manifest may hold a file with this partition value. In doubt it may. */
export function summaryMayHold(summary: FieldSummary | undefined, type: PrimitiveType, value: Value): boolean {
  if (summary === undefined) return true;
  if (value === null) return summary.containsNull;
  if (Number.isNaN(value)) return summary.containsNan !== false;
  return summaryMayMeet(summary, type, value, value);
}

/** Whether a manifest may hold a file with a partition value from `first` to `last`; null leaves a side open. */
function summaryMayMeet(summary: FieldSummary | undefined, type: PrimitiveType, first: Value, last: Value): boolean {
  const lower = boundOf(type, summary?.lowerBound);
  const upper = boundOf(type, summary?.upperBound);
  // Without bounds: a writer that leaves them out, or nothing but null. Read it to be sure.
  if (lower === null || upper === null) return true;
  const compare = comparatorOf(type);
  const isBefore = first !== null && compare(upper, first) < 0;
  const isAfter = last !== null && compare(lower, last) > 0;
  return !isBefore && !isAfter;
}
