import { unreachable } from '../base/assert.ts';
import { textOf } from '../base/bytes.ts';
import { type ByteStrings, entry } from './columns.ts';
import type { EpochUnit } from './times.ts';

/**
 * Columns as another format holds them (Arrow, Parquet), before they are cast to those of a table. Readers of formats
 * check all lengths and offsets, so what is here can be read without further checks; whether the values fit, and
 * whether text is UTF-8, is the business of the casts.
 */

/** A type of another format, as far as casts tell types apart. */
export type ForeignType =
  | { kind: 'null' | 'boolean' | 'text' | 'uuid' }
  | { kind: 'integer'; bits: 8 | 16 | 32 | 64; signed: boolean }
  | { kind: 'float'; bits: 16 | 32 | 64 }
  /** Arrow allows a scale below zero and above the precision. */
  | { kind: 'decimal'; precision: number; scale: number }
  /** `length` null: of any length. */
  | { kind: 'bytes'; length: number | null }
  | { kind: 'date'; unit: 'd' | 'ms' }
  | { kind: 'time'; unit: EpochUnit }
  /** Of an instant in UTC, or `local`, of no zone at all: both count from 1970 the same way. */
  | { kind: 'timestamp'; unit: EpochUnit; local?: true }
  | { kind: 'list'; element: ForeignField }
  | { kind: 'struct'; fields: ForeignField[] }
  | { kind: 'map'; key: ForeignField; value: ForeignField }
  /** What no column of a table can be made of: intervals, unions. */
  | { kind: 'other'; name: string };

export interface ForeignField {
  name: string;
  type: ForeignType;
}

export type Numbers =
  | Int8Array
  | Int16Array
  | Int32Array
  | Uint8Array
  | Uint16Array
  | Uint32Array
  | Float32Array
  | Float64Array;

/**
 * | type                                                   | data                                              |
 * |--------------------------------------------------------|---------------------------------------------------|
 * | boolean                                                | `numbers`, a Uint8Array of 0 and 1                |
 * | integer up to 32 bits, date, time in s and ms          | `numbers`                                         |
 * | integer of 64 bits, date in ms, other times, timestamps | `int64`                                          |
 * | float; of 16 bits widened                              | `numbers`                                         |
 * | decimal                                                | `fixed`, or `numbers` and `int64` when unscaled so |
 * | text, bytes                                            | `strings`                                         |
 * | uuid, bytes of one length                              | `fixed`                                           |
 * | list, map (of structs of key and value)                | `list`                                            |
 * | struct                                                 | `struct`                                          |
 *
 * Anything may come as a `dictionary`, or as `values`: what `foreignReader` gives, null for null.
 */
export type ForeignData =
  | { form: 'none' }
  | { form: 'numbers'; values: Numbers }
  | { form: 'int64'; values: BigInt64Array | BigUint64Array }
  | { form: 'fixed'; width: number; bigEndian: boolean; values: Uint8Array }
  | { form: 'strings'; strings: ByteStrings }
  | { form: 'dictionary'; codes: Int32Array; entries: ForeignColumn }
  | { form: 'list'; offsets: Int32Array; child: ForeignColumn }
  | { form: 'struct'; children: ForeignColumn[] }
  | { form: 'values'; values: unknown[] };

export interface ForeignColumn {
  type: ForeignType;
  rows: number;
  /** 1 where a row has a value. Null: all have one. Values of the others are anything, but readable. */
  validity: Uint8Array | null;
  data: ForeignData;
}

/** Some rows of a body, by column. */
export interface ForeignBatch {
  rows: number;
  /** In the order of the body's fields. */
  columns: readonly ForeignColumn[];
}

/**
 * Reads one value of a column; null where there is none. Not for hot loops.
 *
 * Integers, dates and times are numbers, or bigints where the format has 64 bits; decimals are unscaled bigints; text is a
 * string, or undefined when it is not UTF-8; bytes and uuids are a Uint8Array, a view; a list is an array, a struct an
 * array of its fields' values, a map an array of such arrays of key and value.
 */
export function foreignReader(column: ForeignColumn): (row: number) => unknown {
  const read = valueReader(column);
  const { validity } = column;
  return validity === null ? read : (row) => (validity[row] === 0 ? null : read(row));
}

function valueReader({ type, data }: ForeignColumn): (row: number) => unknown {
  switch (data.form) {
    case 'none':
      return () => null;
    case 'numbers': {
      const { values } = data;
      if (type.kind === 'boolean') return (row) => values[row] !== 0;
      return type.kind === 'decimal' ? (row) => BigInt(values[row]) : (row) => values[row];
    }
    case 'int64': {
      const { values } = data;
      return (row) => values[row];
    }
    case 'fixed': {
      const { values, width, bigEndian } = data;
      if (type.kind !== 'decimal') return (row) => values.subarray(row * width, (row + 1) * width);
      return (row) => integerAt(values, row * width, width, bigEndian);
    }
    case 'strings': {
      const { strings } = data;
      return type.kind === 'text' ? (row) => textOrNone(entry(strings, row)) : (row) => entry(strings, row);
    }
    case 'dictionary': {
      const { codes, entries } = data;
      const read = foreignReader(entries);
      return (row) => read(codes[row]);
    }
    case 'list': {
      const { offsets, child } = data;
      const read = foreignReader(child);
      return (row) => {
        const out: unknown[] = [];
        for (let at = offsets[row]; at < offsets[row + 1]; at++) out.push(read(at));
        return out;
      };
    }
    case 'struct': {
      const readers = data.children.map(foreignReader);
      return (row) => readers.map((read) => read(row));
    }
    case 'values': {
      const { values } = data;
      return (row) => values[row];
    }
    default:
      return unreachable(data);
  }
}

function textOrNone(bytes: Uint8Array): string | undefined {
  try {
    return textOf(bytes);
  } catch {
    return undefined;
  }
}

/** A two's complement integer of any width. */
export function integerAt(bytes: Uint8Array, at: number, width: number, bigEndian: boolean): bigint {
  let value = 0n;
  for (let i = 0; i < width; i++) value = (value << 8n) | BigInt(bytes[bigEndian ? at + i : at + width - 1 - i]);
  return BigInt.asIntN(8 * width, value);
}

/** The type in words, for people: `list of integer of 32 bits`. */
export function foreignTypeText(type: ForeignType): string {
  switch (type.kind) {
    case 'integer':
      return `${type.signed ? '' : 'unsigned '}integer of ${type.bits} bits`;
    case 'float':
      return `float of ${type.bits} bits`;
    case 'decimal':
      return `decimal(${type.precision}, ${type.scale})`;
    case 'bytes':
      return type.length === null ? 'bytes' : `${type.length} bytes`;
    case 'date':
    case 'time':
    case 'timestamp':
      return `${type.kind} in ${type.unit}`;
    case 'list':
      return `list of ${foreignTypeText(type.element.type)}`;
    case 'other':
      return type.name;
    default:
      return type.kind;
  }
}
