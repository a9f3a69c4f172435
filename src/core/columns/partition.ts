import { invalid, type SluiceError } from '../base/errors.ts';
import { BATCH_PARTITIONS_MAX } from '../base/limits.ts';
import type { PartitionSpec, Value } from '../iceberg/types.ts';
import { ByteInterner } from './byte-interner.ts';
import { type Column, type Columns, countOf, int32Pairs, isNull } from './columns.ts';
import { PairInterner } from './pair-interner.ts';
import { type TypedColumn, transformColumn } from './transform-column.ts';
import { valueAt } from './value.ts';

/** Which partition each row is in. */
export interface Partitioned {
  /** One value per field of the spec, in its order, of the transform's result type. Partitions in order of first rows. */
  tuples: Value[][];
  /** Position in `tuples`, per row. */
  ordinals: Int32Array;
}

/**
 * The partition tuple of every row (spec: partitioning). Rows may come in any order of partitions. Null is a value like
 * any other; NaN is one value, -0 and 0 are two (T9).
 *
 * The memory taken to tell partitions apart is bounded by `partitionsMax`. Throws `invalid`: `too-many-partitions` beyond
 * it, `unknown-partition-field` for a source that is no top-level field of the schema.
 */
export function partitionRows(
  columns: Columns,
  spec: PartitionSpec,
  partitionsMax = BATCH_PARTITIONS_MAX,
): Partitioned {
  let ordinals: Int32Array = new Int32Array(columns.rows);
  if (columns.rows === 0) return { tuples: [], ordinals };
  const fields = spec.fields.map((field): TypedColumn => {
    const place = columns.schema.fields.findIndex(({ id }) => id === field['source-id']);
    if (place < 0) {
      // A table that began in version 1 keeps such fields, null in every row.
      if (field.transform === 'void') return { column: noColumn(columns.rows), type: 'int' };
      throw invalid('unknown-partition-field', `partition field ${field.name} has no column: ${field['source-id']}`);
    }
    return transformColumn(columns.columns[place], columns.schema.fields[place], field.transform);
  });
  let count = 1;
  for (const { column } of fields) {
    const distinct = distinctOrdinals(column, columns.rows, partitionsMax);
    if (count === 1) ({ ordinals, count } = distinct);
    else ({ ordinals, count } = combined(ordinals, distinct.ordinals, partitionsMax));
  }
  const tuples = firstRows(ordinals, count).map((row) => fields.map(({ column, type }) => valueAt(column, type, row)));
  return { tuples, ordinals };
}

function noColumn(rows: number): Column {
  return { kind: 'int32', values: new Int32Array(rows), validity: new Uint8Array(rows) };
}

interface Distinct {
  ordinals: Int32Array;
  count: number;
}

/** Numbers the distinct values of a column in order of first rows, null being one of them. */
function distinctOrdinals(column: Column, rows: number, max: number): Distinct {
  const ordinals = new Int32Array(rows);
  // Values are numbered from 1, and 0 is null, until `dense` makes one numbering of both.
  const numbered = numberingOf(column, max);
  for (let row = 0; row < rows; row++) {
    if (isNull(column, row)) continue;
    const number = numbered(row);
    if (number < 0) throw tooMany(max);
    ordinals[row] = number + 1;
  }
  return dense(ordinals, max);
}

/** Number of the value in a row, -1 when there are more than `max`. */
function numberingOf(column: Column, max: number): (row: number) => number {
  switch (column.kind) {
    case 'boolean':
      return (row) => column.values[row];
    case 'int32': {
      const interner = new PairInterner(max);
      return (row) => interner.intern(column.values[row], 0);
    }
    case 'int64': {
      const interner = new PairInterner(max);
      const pairs = int32Pairs(column.values);
      return (row) => interner.intern(pairs[2 * row], pairs[2 * row + 1]);
    }
    case 'float32':
    case 'float64': {
      const interner = new PairInterner(max);
      const value = new Float64Array(1);
      const bits = new Int32Array(value.buffer);
      return (row) => {
        // One form of NaN: its bits tell nothing.
        value[0] = Number.isNaN(column.values[row]) ? Number.NaN : column.values[row];
        return interner.intern(bits[0], bits[1]);
      };
    }
    case 'fixed': {
      const interner = new ByteInterner(max);
      const { values, width } = column;
      return (row) => interner.intern(values, row * width, (row + 1) * width);
    }
    case 'bytes': {
      const interner = new ByteInterner(max);
      const { bytes, offsets } = column.values;
      return (row) => interner.intern(bytes, offsets[row], offsets[row + 1]);
    }
    case 'dictionary': {
      // A foreign dictionary may hold a value twice: entries are numbered by their bytes, once each, when first met.
      const interner = new ByteInterner(max);
      const { bytes, offsets } = column.dictionary;
      const numbers = new Int32Array(countOf(column.dictionary)).fill(-1);
      return (row) => {
        const code = column.codes[row];
        if (numbers[code] < 0) numbers[code] = interner.intern(bytes, offsets[code], offsets[code + 1]);
        return numbers[code];
      };
    }
    case 'nested':
      throw invalid('unsupported-partition', 'rows cannot be partitioned by a list, struct or map');
  }
}

/** Numbers pairs of ordinals anew. */
function combined(first: Int32Array, second: Int32Array, max: number): Distinct {
  const interner = new PairInterner(max);
  const ordinals = new Int32Array(first.length);
  for (let row = 0; row < ordinals.length; row++) {
    const number = interner.intern(first[row], second[row]);
    if (number < 0) throw tooMany(max);
    ordinals[row] = number;
  }
  return { ordinals, count: interner.size };
}

/** Numbers anew in order of first rows, in place. `ordinals` are from 0 to `max`. */
function dense(ordinals: Int32Array, max: number): Distinct {
  const numbers = new Int32Array(max + 1).fill(-1);
  let count = 0;
  for (let row = 0; row < ordinals.length; row++) {
    if (numbers[ordinals[row]] < 0) numbers[ordinals[row]] = count++;
    ordinals[row] = numbers[ordinals[row]];
  }
  if (count > max) throw tooMany(max);
  return { ordinals, count };
}

/** A row of each ordinal: the first. */
function firstRows(ordinals: Int32Array, count: number): number[] {
  const out: number[] = [];
  for (let row = 0; row < ordinals.length && out.length < count; row++) if (ordinals[row] === out.length) out.push(row);
  return out;
}

function tooMany(max: number): SluiceError {
  return invalid(
    'too-many-partitions',
    `batch has rows for too many partitions: coarsen the partitioning or split the batch, at most ${max}`,
    { limit: max },
  );
}
