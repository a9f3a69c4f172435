import { assert } from '../base/assert.ts';
import { BOUND_LENGTH_MAX, METRIC_COLUMNS_MAX } from '../base/limits.ts';
import { primitive } from './primitive.ts';
import { fieldsById } from './schema.ts';
import { comparatorOf, encodeValue } from './single-value.ts';
import { codePointPrefix } from './transform.ts';
import type { DataFile, PrimitiveType, Schema, Value } from './types.ts';

/**
 * What the writer of a file knows of one leaf column after the last row. Counts are of rows, nulls and NaN included in
 * `valueCount`. `lower` and `upper` are the extremes of the non-null, non-NaN values as stored: uncut, zeros not yet
 * normalised, both null when there is no such value.
 */
export interface ColumnFacts {
  /** Bytes of the column's chunks after compression, without the footer (E14). */
  compressedBytes: number;
  valueCount: number;
  nullCount: number;
  /** Null for types other than float and double, or when not counted. */
  nanCount: number | null;
  lower: Value;
  upper: Value;
}

/** The maps of a data file that hold metrics. */
export type Metrics = Pick<
  DataFile,
  'columnSizes' | 'valueCounts' | 'nullValueCounts' | 'nanValueCounts' | 'lowerBounds' | 'upperBounds'
>;

const CODE_POINT_MAX = 0x10ffff;

/** A value that is not above any with this prefix: text cut after 16 code points, binary after 16 bytes (B9, B10). */
export function truncateLower(type: PrimitiveType, value: Value): Value {
  if (typeof value === 'string') return codePointPrefix(value, BOUND_LENGTH_MAX);
  if (primitive(type).name === 'binary') return (value as Uint8Array).slice(0, BOUND_LENGTH_MAX);
  return value;
}

/**
 * A value that is not below any with this prefix: cut, and then the last code point or byte that can be is raised by
 * one and the rest dropped (B11, B12). Null when none can be: then there is no upper bound. Uncut values stay (B13).
 */
export function truncateUpper(type: PrimitiveType, value: Value): Value {
  if (typeof value === 'string') {
    const prefix = codePointPrefix(value, BOUND_LENGTH_MAX);
    return prefix.length === value.length ? value : raiseText(prefix);
  }
  if (primitive(type).name === 'binary') {
    const bytes = value as Uint8Array;
    return bytes.length <= BOUND_LENGTH_MAX ? bytes : raiseBytes(bytes.slice(0, BOUND_LENGTH_MAX));
  }
  return value;
}

function raiseText(prefix: string): string | null {
  const points = Array.from(prefix);
  for (let i = points.length - 1; i >= 0; i--) {
    const point = points[i].codePointAt(0) as number;
    if (point === CODE_POINT_MAX) continue;
    // U+D800 .. U+DFFF are no characters: their UTF-8 would be malformed
    const raised = point === 0xd7ff ? 0xe000 : point + 1;
    return points.slice(0, i).join('') + String.fromCodePoint(raised);
  }
  return null;
}

function raiseBytes(prefix: Uint8Array): Uint8Array | null {
  for (let i = prefix.length - 1; i >= 0; i--) {
    if (prefix[i] === 0xff) continue;
    prefix[i]++;
    return prefix.slice(0, i + 1);
  }
  return null;
}

/**
 * Metrics of one data file from its columns' facts, keyed by field id. Leaf columns in schema order, at most
 * `METRIC_COLUMNS_MAX` of them; those in `sortAndPartitionIds` always (E18). Columns in lists and maps keep their size
 * alone (E17). A column whose counts or bounds contradict each other loses its bounds rather than rows of a reader
 * (B7, B15).
 */
export function metricsOf(
  schema: Schema,
  columnFacts: ReadonlyMap<number, ColumnFacts>,
  options: { sortAndPartitionIds: ReadonlySet<number> },
): Metrics {
  const columnSizes = new Map<number, bigint>();
  const valueCounts = new Map<number, bigint>();
  const nullValueCounts = new Map<number, bigint>();
  const nanValueCounts = new Map<number, bigint>();
  const lowerBounds = new Map<number, Uint8Array>();
  const upperBounds = new Map<number, Uint8Array>();
  let leaves = 0;
  for (const [id, { field, repeated }] of fieldsById(schema)) {
    if (typeof field.type !== 'string') continue;
    leaves++;
    const facts = columnFacts.get(id);
    if (facts === undefined || (leaves > METRIC_COLUMNS_MAX && !options.sortAndPartitionIds.has(id))) continue;
    columnSizes.set(id, BigInt(facts.compressedBytes));
    if (repeated) continue;
    const nans = facts.nanCount ?? 0;
    assert(facts.nullCount >= 0 && nans >= 0, 'counts of a column are not negative');
    assert(facts.nullCount + nans <= facts.valueCount, 'nulls and NaN are counted among the values');
    valueCounts.set(id, BigInt(facts.valueCount));
    nullValueCounts.set(id, BigInt(facts.nullCount));
    const { name } = primitive(field.type);
    if (facts.nanCount !== null && (name === 'float' || name === 'double')) nanValueCounts.set(id, BigInt(nans));
    if (facts.nullCount + nans === facts.valueCount) continue;
    const bounds = boundsOf(field.type, facts.lower, facts.upper);
    if (bounds === null) continue;
    lowerBounds.set(id, encodeValue(field.type, bounds.lower));
    if (bounds.upper !== null) upperBounds.set(id, encodeValue(field.type, bounds.upper));
  }
  return { columnSizes, valueCounts, nullValueCounts, nanValueCounts, lowerBounds, upperBounds };
}

/**
 * Bounds as manifests hold them: cut, and with zeros spread to -0 below and +0 above (B8). Null when there is none to
 * trust: one side missing, NaN, or lower above upper. `upper` alone may be null, when it could not be rounded up.
 */
export function boundsOf(type: PrimitiveType, lower: Value, upper: Value): { lower: Value; upper: Value } | null {
  if (lower === null || upper === null || Number.isNaN(lower) || Number.isNaN(upper)) return null;
  const low = lower === 0 && isFloat(type) ? -0 : lower;
  const high = upper === 0 && isFloat(type) ? 0 : upper;
  if (comparatorOf(type)(low, high) > 0) return null;
  return { lower: truncateLower(type, low), upper: truncateUpper(type, high) };
}

function isFloat(type: PrimitiveType): boolean {
  return type === 'float' || type === 'double';
}
