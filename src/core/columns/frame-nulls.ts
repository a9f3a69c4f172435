import { type Column, int32Pairs } from './columns.ts';
import type { Scratch } from './frame-bytes.ts';
import { gatherStrings } from './gather.ts';

/**
 * A frame holds only the values that are there. These two close the gaps and open them again, row after row: null rows
 * are common, so they are not worth less care than the others.
 */

type Values = Uint8Array | Int32Array | Float32Array | Float64Array;

/** The values of the rows that have one, as a column without nulls, mostly in memory of `scratch`. */
export function withoutNulls(column: Column, validity: Uint8Array, scratch: Scratch): Column {
  const rows = validity.length;
  switch (column.kind) {
    case 'boolean':
      return {
        ...column,
        values: closed(column.values, validity, new Uint8Array(scratch.take(rows), 0, rows)),
        validity: null,
      };
    case 'int32':
      return {
        ...column,
        values: closed(column.values, validity, new Int32Array(scratch.take(4 * rows), 0, rows)),
        validity: null,
      };
    case 'float32':
      return {
        ...column,
        values: closed(column.values, validity, new Float32Array(scratch.take(4 * rows), 0, rows)),
        validity: null,
      };
    case 'float64':
      return {
        ...column,
        values: closed(column.values, validity, new Float64Array(scratch.take(8 * rows), 0, rows)),
        validity: null,
      };
    case 'dictionary':
      return {
        ...column,
        codes: closed(column.codes, validity, new Int32Array(scratch.take(4 * rows), 0, rows)),
        validity: null,
      };
    case 'int64': {
      const values = new BigInt64Array(scratch.take(8 * rows), 0, rows);
      const [from, to] = [int32Pairs(column.values), int32Pairs(values)];
      let next = 0;
      for (let row = 0; row < rows; row++) {
        to[next] = from[2 * row];
        to[next + 1] = from[2 * row + 1];
        next += 2 * validity[row];
      }
      return { ...column, values: values.subarray(0, next / 2), validity: null };
    }
    case 'fixed': {
      const { width } = column;
      const values = new Uint8Array(scratch.take(rows * width), 0, rows * width);
      let end = 0;
      for (let row = 0; row < rows; row++) {
        if (validity[row] === 0) continue;
        values.set(column.values.subarray(row * width, (row + 1) * width), end);
        end += width;
      }
      return { ...column, values: values.subarray(0, end), validity: null };
    }
    case 'bytes': {
      const rows = closed(
        Int32Array.from(validity, (_, row) => row),
        validity,
        new Int32Array(validity.length),
      );
      return { ...column, values: gatherStrings(column.values, rows), validity: null };
    }
    case 'nested':
      return { ...column, values: column.values.filter((_, row) => validity[row] === 1), validity: null };
  }
}

/** The reverse: the next value goes to the next row that has one; the other rows are null. */
export function withNullRows(column: Column, validity: Uint8Array): Column {
  const rows = validity.length;
  switch (column.kind) {
    case 'boolean':
      return { ...column, values: opened(column.values, validity, new Uint8Array(rows)), validity };
    case 'int32':
      return { ...column, values: opened(column.values, validity, new Int32Array(rows)), validity };
    case 'float32':
      return { ...column, values: opened(column.values, validity, new Float32Array(rows)), validity };
    case 'float64':
      return { ...column, values: opened(column.values, validity, new Float64Array(rows)), validity };
    case 'dictionary':
      return { ...column, codes: opened(column.codes, validity, new Int32Array(rows).fill(-1)), validity };
    case 'int64': {
      const values = new BigInt64Array(rows);
      const [from, to] = [int32Pairs(column.values), int32Pairs(values)];
      let next = 0;
      for (let row = 0; row < rows; row++) {
        if (validity[row] === 0) continue;
        to[2 * row] = from[next++];
        to[2 * row + 1] = from[next++];
      }
      return { ...column, values, validity };
    }
    case 'fixed': {
      const { width } = column;
      const values = new Uint8Array(rows * width);
      let next = 0;
      for (let row = 0; row < rows; row++) {
        if (validity[row] === 0) continue;
        values.set(column.values.subarray(next, next + width), row * width);
        next += width;
      }
      return { ...column, values, validity };
    }
    case 'bytes': {
      const offsets = new Int32Array(rows + 1);
      let next = 0;
      for (let row = 0; row < rows; row++) {
        next += validity[row];
        offsets[row + 1] = column.values.offsets[next];
      }
      return { ...column, values: { bytes: column.values.bytes, offsets }, validity };
    }
    case 'nested': {
      let next = 0;
      return {
        ...column,
        values: Array.from(validity, (valid) => (valid === 1 ? column.values[next++] : null)),
        validity,
      };
    }
  }
}

/** Every value is written and the null ones are written over: no branch to guess wrong. */
function closed<A extends Values>(values: A, validity: Uint8Array, out: A): A {
  let next = 0;
  for (let row = 0; row < validity.length; row++) {
    out[next] = values[row];
    next += validity[row];
  }
  return out.subarray(0, next) as A;
}

function opened<A extends Values>(values: A, validity: Uint8Array, out: A): A {
  let next = 0;
  for (let row = 0; row < validity.length; row++) if (validity[row] === 1) out[row] = values[next++];
  return out;
}
