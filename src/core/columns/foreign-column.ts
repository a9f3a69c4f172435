import { BATCH_COLUMN_BYTES_MAX } from '../base/limits.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, Value } from '../iceberg/types.ts';
import { ColumnsBuilder } from './builder.ts';
import type { Cast } from './casts.ts';
import { type Column, int32Pairs } from './columns.ts';
import { Misfit } from './fault.ts';
import { type ForeignColumn, foreignReader } from './foreign.ts';
import { batchTooLarge, dictionaryColumn, stringsColumn } from './foreign-text.ts';
import { foreignTimestamps } from './foreign-times.ts';
import { DATE_DAYS_MAX, DATE_DAYS_MIN } from './times.ts';
import { pushValue } from './value.ts';

/** Told of a value that does not fit. Its row is null in the column. */
export type ReportMisfit = (row: number, misfit: Misfit) => void;

const INT_MAX = 2_147_483_647;

/**
 * A column of another format as one of the table. Where both are laid out alike, values are taken over as they lie, as a view
 * of the body; else array by array; and value by value, with `cast`, where digits or bytes have to be looked at.
 */
export function foreignColumn(
  column: ForeignColumn,
  field: NestedField,
  cast: Cast<unknown>,
  report: ReportMisfit,
): Column {
  return (
    (typeof field.type === 'string' ? byArray(column, field.type, report) : null) ??
    byValue(column, field, cast, report)
  );
}

/** Null where this has to go value by value. */
function byArray(column: ForeignColumn, to: string, report: ReportMisfit): Column | null {
  const { type, data, validity } = column;
  const target = primitive(to);
  const malformed = (row: number): void => report(row, new Misfit('malformed-utf8', 'is not UTF-8'));
  switch (target.name) {
    case 'boolean':
      if (type.kind !== 'boolean' || data.form !== 'numbers') return null;
      return { kind: 'boolean', values: zeroed(data.values as Uint8Array, validity), validity };
    case 'int':
      if (type.kind !== 'integer' || data.form !== 'numbers') return null;
      if (data.values instanceof Int32Array) return { kind: 'int32', values: zeroed(data.values, validity), validity };
      return ints(data.values as Uint32Array, validity, report);
    case 'long':
      if (type.kind !== 'integer') return null;
      if (data.form === 'numbers') return { kind: 'int64', values: widened(data.values, validity), validity };
      if (data.form !== 'int64') return null;
      if (data.values instanceof BigInt64Array)
        return { kind: 'int64', values: zeroed(data.values, validity), validity };
      return longs(data.values, validity, report);
    case 'float':
      if (type.kind !== 'float' || !(data.form === 'numbers' && data.values instanceof Float32Array)) return null;
      return { kind: 'float32', values: zeroed(data.values, validity), validity };
    case 'double':
      if (type.kind !== 'float' || data.form !== 'numbers') return null;
      if (data.values instanceof Float64Array)
        return { kind: 'float64', values: zeroed(data.values, validity), validity };
      return { kind: 'float64', values: zeroed(new Float64Array(data.values), validity), validity };
    case 'date':
      if (type.kind !== 'date' || !(data.form === 'numbers' && data.values instanceof Int32Array)) return null;
      return dates(data.values, validity, report);
    case 'timestamp':
    case 'timestamptz':
      if (type.kind !== 'timestamp' || !(data.form === 'int64' && data.values instanceof BigInt64Array)) return null;
      return foreignTimestamps(data.values, type.unit, validity, report);
    case 'decimal': {
      if (type.kind !== 'decimal' || type.scale !== target.scale || target.precision < type.precision) return null;
      const { precision } = target;
      if (precision > 18) return null;
      if (data.form === 'fixed')
        return data.bigEndian ? null : smallDecimals(data.values, data.width, precision, validity);
      if (data.form === 'numbers') return unscaledInts(data.values, precision, validity);
      return data.form === 'int64' ? unscaledLongs(data.values as BigInt64Array, precision, validity) : null;
    }
    case 'uuid':
    case 'fixed': {
      const width = target.name === 'fixed' ? target.length : 16;
      if ((type.kind !== 'bytes' && type.kind !== 'uuid') || data.form !== 'fixed' || data.width !== width) return null;
      return { kind: 'fixed', width, values: zeroed(data.values, validity, width), validity };
    }
    case 'string':
    case 'binary': {
      if (type.kind !== 'bytes' && !(type.kind === 'text' && target.name === 'string')) return null;
      const reported = target.name === 'string' ? malformed : null;
      if (data.form === 'strings') return stringsColumn(data.strings, validity, reported);
      if (data.form !== 'dictionary' || data.entries.data.form !== 'strings') return null;
      return dictionaryColumn(data.codes, data.entries.data.strings, validity, reported);
    }
    default:
      return null;
  }
}

type Values = Uint8Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

/** The values as they lie; a copy with zeros in null rows where there are such. */
function zeroed<A extends Values>(values: A, validity: Uint8Array | null, perRow = 1): A {
  if (validity === null) return values;
  const out = values.slice() as A;
  const zero = (out instanceof BigInt64Array ? 0n : 0) as never;
  for (let row = 0; row < validity.length; row++) {
    if (validity[row] === 0) out.fill(zero, row * perRow, (row + 1) * perRow);
  }
  return out;
}

function isRow(validity: Uint8Array | null, row: number): boolean {
  return validity === null || validity[row] !== 0;
}

function ints(values: Exclude<ArrayLike<number>, string>, validity: Uint8Array | null, report: ReportMisfit): Column {
  const out = new Int32Array(values.length);
  for (let row = 0; row < out.length; row++) {
    if (!isRow(validity, row)) continue;
    if (values[row] > INT_MAX) report(row, new Misfit('out-of-range', 'must be an int of 32 bits', values[row]));
    else out[row] = values[row];
  }
  return { kind: 'int32', values: out, validity };
}

function widened(values: ArrayLike<number>, validity: Uint8Array | null): BigInt64Array {
  const out = new BigInt64Array(values.length);
  const pairs = int32Pairs(out);
  for (let row = 0; row < out.length; row++) {
    if (!isRow(validity, row)) continue;
    pairs[2 * row] = values[row];
    pairs[2 * row + 1] = values[row] < 0 ? -1 : 0;
  }
  return out;
}

function longs(unsigned: BigUint64Array, validity: Uint8Array | null, report: ReportMisfit): Column {
  const values = zeroed(new BigInt64Array(unsigned.buffer, unsigned.byteOffset, unsigned.length), validity);
  const pairs = int32Pairs(values);
  for (let row = 0; row < values.length; row++) {
    if (pairs[2 * row + 1] < 0) report(row, new Misfit('out-of-range', 'must be a long of 64 bits', unsigned[row]));
  }
  return { kind: 'int64', values, validity };
}

function dates(values: Int32Array, validity: Uint8Array | null, report: ReportMisfit): Column {
  for (let row = 0; row < values.length; row++) {
    const day = values[row];
    if ((day < DATE_DAYS_MIN || day > DATE_DAYS_MAX) && isRow(validity, row)) {
      report(row, new Misfit('out-of-range', 'must be in the years 0001 to 9999', day));
    }
  }
  return { kind: 'int32', values: zeroed(values, validity), validity };
}

/**
 * Little-endian decimals of at most 18 digits; the bytes above the eighth are sign. Null when one has more digits: then the
 * cast says which.
 */
function smallDecimals(
  bytes: Uint8Array,
  width: number,
  precision: number,
  validity: Uint8Array | null,
): Column | null {
  if (width < 8) return null;
  const rows = bytes.length / width;
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  if (precision <= 9) {
    const limit = 10 ** precision;
    const values = new Int32Array(rows);
    for (let row = 0; row < rows; row++) {
      if (!isRow(validity, row)) continue;
      const value = view.getInt32(row * width, true);
      if (!(Math.abs(value) < limit && isSign(bytes, row * width + 4, (row + 1) * width, value < 0))) return null;
      values[row] = value;
    }
    return { kind: 'int32', values, validity };
  }
  const limit = 10n ** BigInt(precision);
  const limitHigh = Number(limit >> 32n);
  const values = new BigInt64Array(rows);
  const pairs = int32Pairs(values);
  for (let row = 0; row < rows; row++) {
    if (!isRow(validity, row)) continue;
    const high = view.getInt32(row * width + 4, true);
    if (!isSign(bytes, row * width + 8, (row + 1) * width, high < 0)) return null;
    pairs[2 * row] = view.getInt32(row * width, true);
    pairs[2 * row + 1] = high;
    if ((high >= limitHigh || high < -limitHigh) && (values[row] >= limit || values[row] <= -limit)) return null;
  }
  return { kind: 'int64', values, validity };
}

function unscaledInts(values: ArrayLike<number>, precision: number, validity: Uint8Array | null): Column | null {
  if (precision > 9) return { kind: 'int64', values: widened(values, validity), validity };
  const limit = 10 ** precision;
  const out = new Int32Array(values.length);
  for (let row = 0; row < out.length; row++) {
    if (!isRow(validity, row)) continue;
    if (Math.abs(values[row]) >= limit) return null;
    out[row] = values[row];
  }
  return { kind: 'int32', values: out, validity };
}

function unscaledLongs(given: BigInt64Array, precision: number, validity: Uint8Array | null): Column | null {
  if (precision <= 9) return null;
  const limit = 10n ** BigInt(precision);
  const values = zeroed(given, validity);
  for (let row = 0; row < values.length; row++) if (values[row] >= limit || values[row] <= -limit) return null;
  return { kind: 'int64', values, validity };
}

function isSign(bytes: Uint8Array, from: number, to: number, negative: boolean): boolean {
  for (let at = from; at < to; at++) if (bytes[at] !== (negative ? 0xff : 0)) return false;
  return true;
}

/** Rows between two looks at the memory that values take. */
const CHECKED_ROWS = 1024;

function byValue(column: ForeignColumn, field: NestedField, cast: Cast<unknown>, report: ReportMisfit): Column {
  const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': 0, fields: [field] });
  const target = builder.fields[0];
  const read = foreignReader(column);
  for (let row = 0; row < column.rows; row++) {
    if (row % CHECKED_ROWS === 0 && builder.byteSize > BATCH_COLUMN_BYTES_MAX) throw batchTooLarge();
    const given = read(row);
    const value = given === null ? null : cast(given);
    if (value instanceof Misfit) report(row, value);
    else if (value !== null) {
      if (target.kind === 'nested') target.push(value);
      else pushValue(target, value as Value);
    }
    builder.endRow();
  }
  return builder.finish().columns[0];
}
