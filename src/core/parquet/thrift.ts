import { utf8 } from '../base/bytes.ts';
import { corrupt, type SluiceError } from '../base/errors.ts';
import { THRIFT_DEPTH_MAX } from '../base/limits.ts';
import type { ByteSink } from './sink.ts';

/**
 * Thrift's compact protocol (https://github.com/apache/thrift/blob/master/doc/specs/thrift-compact-protocol.md), only
 * what Parquet's footers, page headers and indexes need: no maps or doubles are written.
 */

const TRUE = 1;
const FALSE = 2;
const BYTE = 3;
const I16 = 4;
const I32 = 5;
const I64 = 6;
const DOUBLE = 7;
const BINARY = 8;
const LIST = 9;
const SET = 10;
const MAP = 11;
const STRUCT = 12;

/** Writes one struct tree. Fields must come in ascending order of id, each less than 16 above the one before. */
export class ThriftWriter {
  readonly #sink: ByteSink;
  readonly #open: number[] = [];
  #last = 0;

  constructor(sink: ByteSink) {
    this.#sink = sink;
  }

  bool(id: number, value: boolean): void {
    this.#field(id, value ? TRUE : FALSE);
  }

  i16(id: number, value: number): void {
    this.#field(id, I16);
    this.#zigzag(value);
  }

  i32(id: number, value: number): void {
    this.#field(id, I32);
    this.#zigzag(value);
  }

  /** A 64-bit field; every number written here is a size, count or offset below 2^52. */
  i64(id: number, value: number): void {
    this.#field(id, I64);
    this.#zigzag(value);
  }

  binary(id: number, value: Uint8Array): void {
    this.#field(id, BINARY);
    this.#sink.varint(value.length);
    this.#sink.append(value);
  }

  text(id: number, value: string): void {
    this.binary(id, utf8(value));
  }

  /** Opens a struct field; `end` closes it. */
  struct(id: number): void {
    this.#field(id, STRUCT);
    this.#open.push(this.#last);
    this.#last = 0;
  }

  /** A list of structs: `each` writes the fields of one. */
  structs<T>(id: number, items: readonly T[], each: (item: T) => void): void {
    this.#list(id, items.length, STRUCT);
    const last = this.#last;
    for (const item of items) {
      this.#last = 0;
      each(item);
      this.#sink.byte(0);
    }
    this.#last = last;
  }

  i32s(id: number, items: readonly number[]): void {
    this.#list(id, items.length, I32);
    for (const item of items) this.#zigzag(item);
  }

  i64s(id: number, items: readonly number[]): void {
    this.#list(id, items.length, I64);
    for (const item of items) this.#zigzag(item);
  }

  bools(id: number, items: readonly boolean[]): void {
    this.#list(id, items.length, TRUE);
    for (const item of items) this.#sink.byte(item ? TRUE : FALSE);
  }

  binaries(id: number, items: readonly Uint8Array[]): void {
    this.#list(id, items.length, BINARY);
    for (const item of items) {
      this.#sink.varint(item.length);
      this.#sink.append(item);
    }
  }

  /** Closes the innermost struct, or the tree itself. */
  end(): void {
    this.#sink.byte(0);
    this.#last = this.#open.pop() ?? 0;
  }

  #field(id: number, type: number): void {
    this.#sink.byte(((id - this.#last) << 4) | type);
    this.#last = id;
  }

  #list(id: number, length: number, type: number): void {
    this.#field(id, LIST);
    if (length < 15) this.#sink.byte((length << 4) | type);
    else {
      this.#sink.byte(0xf0 | type);
      this.#sink.varint(length);
    }
  }

  #zigzag(value: number): void {
    this.#sink.varint(value >= 0 ? value * 2 : -value * 2 - 1);
  }
}

/** A value read: 64-bit integers that a double cannot hold are bigint. Binary values are views of the input. */
export type ThriftValue = boolean | number | bigint | Uint8Array | ThriftValue[] | ThriftStruct;

/** Fields of a struct by id. */
export type ThriftStruct = Map<number, ThriftValue>;

const broken = (what: string): SluiceError => corrupt('parquet-corrupt', `parquet metadata: ${what}`);

/**
 * Reads one struct from `bytes` at `at`; returns it and the position behind it. Every length is checked against the
 * bytes that are left, and the depth against `THRIFT_DEPTH_MAX`. Errors: corrupt `parquet-corrupt`.
 */
export function readStruct(bytes: Uint8Array, at: number): { struct: ThriftStruct; end: number } {
  const reader = new ThriftReader(bytes, at);
  const struct = reader.struct(0);
  return { struct, end: reader.at };
}

class ThriftReader {
  readonly #bytes: Uint8Array;
  at: number;

  constructor(bytes: Uint8Array, at: number) {
    this.#bytes = bytes;
    this.at = at;
  }

  struct(depth: number): ThriftStruct {
    if (depth > THRIFT_DEPTH_MAX) throw broken('nested too deeply');
    const fields: ThriftStruct = new Map();
    let last = 0;
    for (;;) {
      const head = this.#byte();
      if (head === 0) return fields;
      const delta = head >> 4;
      last = delta === 0 ? Number(this.#integer()) : last + delta;
      const type = head & 15;
      fields.set(last, type === TRUE ? true : type === FALSE ? false : this.#value(type, depth));
    }
  }

  #value(type: number, depth: number): ThriftValue {
    switch (type) {
      case TRUE:
      case FALSE:
        return this.#byte() === TRUE;
      case BYTE:
        return (this.#byte() << 24) >> 24;
      case I16:
      case I32:
      case I64:
        return this.#integer();
      case DOUBLE:
        return this.#take(8);
      case BINARY:
        return this.#take(this.#length());
      case LIST:
      case SET:
        return this.#list(depth);
      case MAP: {
        // No Parquet struct we read has a map; a newer writer's is skipped by reading it.
        const size = this.#length();
        const types = size === 0 ? 0 : this.#byte();
        const entries: ThriftValue[] = [];
        for (let i = 0; i < size; i++) {
          entries.push(this.#value(types >> 4, depth + 1), this.#value(types & 15, depth + 1));
        }
        return entries;
      }
      case STRUCT:
        return this.struct(depth + 1);
    }
    throw broken(`unknown thrift type ${type}`);
  }

  #list(depth: number): ThriftValue[] {
    if (depth > THRIFT_DEPTH_MAX) throw broken('nested too deeply');
    const head = this.#byte();
    const short = head >> 4;
    const size = short === 15 ? this.#length() : short;
    // Each element takes at least one byte, so the bytes left bound the list.
    if (size > this.#bytes.length - this.at) throw broken(`list of ${size} elements runs past the end`);
    const items: ThriftValue[] = [];
    for (let i = 0; i < size; i++) items.push(this.#value(head & 15, depth + 1));
    return items;
  }

  #byte(): number {
    if (this.at >= this.#bytes.length) throw broken('ends early');
    return this.#bytes[this.at++];
  }

  #take(length: number): Uint8Array {
    if (length > this.#bytes.length - this.at) throw broken(`${length} bytes run past the end`);
    this.at += length;
    return this.#bytes.subarray(this.at - length, this.at);
  }

  #length(): number {
    let value = 0;
    for (let shift = 0; shift < 35; shift += 7) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** shift;
      if (byte < 0x80) return value;
    }
    throw broken('length is too large');
  }

  /** Zigzag varint of at most 64 bits. */
  #integer(): number | bigint {
    let value = 0;
    for (let i = 0; i < 7; i++) {
      const byte = this.#byte();
      value += (byte & 0x7f) * 2 ** (7 * i);
      if (byte < 0x80) return value % 2 === 0 ? value / 2 : -(value + 1) / 2;
    }
    let wide = BigInt(value);
    for (let i = 7; i < 10; i++) {
      const byte = this.#byte();
      wide |= BigInt(byte & 0x7f) << BigInt(7 * i);
      if (byte < 0x80) {
        const unsigned = BigInt.asUintN(64, wide);
        const signed = BigInt.asIntN(64, (unsigned >> 1n) ^ -(unsigned & 1n));
        const number = Number(signed);
        return Number.isSafeInteger(number) ? number : signed;
      }
    }
    throw broken('integer is too long');
  }
}

/** Field `id` as a whole number, or `null` when absent. Errors: corrupt when it is something else or above 2^53. */
export function numberAt(struct: ThriftStruct, id: number): number | null {
  const value = struct.get(id);
  if (value === undefined) return null;
  if (typeof value !== 'number') throw broken(`field ${id} is not a whole number`);
  return value;
}

/** Field `id` as a size or count: a whole number that is not negative. Errors: corrupt when absent or otherwise. */
export function sizeAt(struct: ThriftStruct, id: number): number {
  const value = numberAt(struct, id);
  if (value === null || value < 0) throw broken(`field ${id} is not a size: ${value}`);
  return value;
}

/** Field `id` as a boolean, or `null` when absent. */
export function booleanAt(struct: ThriftStruct, id: number): boolean | null {
  const value = struct.get(id);
  if (value === undefined) return null;
  if (typeof value !== 'boolean') throw broken(`field ${id} is not a boolean`);
  return value;
}

/** Field `id` as bytes, or `null` when absent. */
export function binaryAt(struct: ThriftStruct, id: number): Uint8Array | null {
  const value = struct.get(id);
  if (value === undefined) return null;
  if (!(value instanceof Uint8Array)) throw broken(`field ${id} is not binary`);
  return value;
}

/** Field `id` as a struct, or `null` when absent. */
export function structAt(struct: ThriftStruct, id: number): ThriftStruct | null {
  const value = struct.get(id);
  if (value === undefined) return null;
  if (!(value instanceof Map)) throw broken(`field ${id} is not a struct`);
  return value;
}

/** Field `id` as a list, empty when absent. */
export function listAt(struct: ThriftStruct, id: number): ThriftValue[] {
  const value = struct.get(id);
  if (value === undefined) return [];
  if (!Array.isArray(value)) throw broken(`field ${id} is not a list`);
  return value;
}

/** Field `id` as a list of structs, empty when absent. */
export function structsAt(struct: ThriftStruct, id: number): ThriftStruct[] {
  return listAt(struct, id).map((item) => {
    if (!(item instanceof Map)) throw broken(`field ${id} holds something else than structs`);
    return item;
  });
}
