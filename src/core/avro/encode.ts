import { AssertionError } from '../base/assert.ts';
import type { AvroArray, AvroEnum, AvroField, AvroRecord, AvroType, AvroUnion } from './schema.ts';

const utf8Encoder = new TextEncoder();

/** A growing buffer with Avro's binary forms. One sink serves many values; `reset` keeps the memory. */
export class ByteSink {
  length = 0;
  private bytes: Uint8Array<ArrayBuffer>;
  private view: DataView<ArrayBuffer>;

  constructor(capacity = 4096) {
    this.bytes = new Uint8Array(capacity);
    this.view = new DataView(this.bytes.buffer);
  }

  /** What was written since the last reset. Valid until the next write. */
  written(): Uint8Array<ArrayBuffer> {
    return this.bytes.subarray(0, this.length);
  }

  /** A copy of what was written. */
  take(): Uint8Array<ArrayBuffer> {
    return this.bytes.slice(0, this.length);
  }

  reset(): void {
    this.length = 0;
  }

  private reserve(count: number): void {
    if (this.length + count <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(this.bytes.length * 2, this.length + count));
    grown.set(this.written());
    this.bytes = grown;
    this.view = new DataView(grown.buffer);
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.length++] = value;
  }

  /** A 32-bit integer, zig-zag. */
  int(value: number): void {
    this.varint(((value << 1) ^ (value >> 31)) >>> 0);
  }

  /** A 64-bit integer, zig-zag. Throws AssertionError when it is no safe integer and no bigint within int64. */
  long(value: bigint | number): void {
    // A bigint of up to 53 bits is exact as a number, and number arithmetic leaves no garbage.
    const number = typeof value === 'bigint' ? Number(value) : value;
    if (number === (number | 0)) this.int(number);
    else if (Number.isSafeInteger(number)) this.wide(Math.floor(number / 4294967296), number >>> 0);
    else if (typeof value === 'bigint' && BigInt.asIntN(64, value) === value) {
      this.wide(Number(value >> 32n), Number(value & 0xffffffffn));
    } else throw mismatch('long', value);
  }

  /** Two's complement halves, zig-zag encoded. */
  private wide(hi: number, lo: number): void {
    const sign = hi >> 31;
    let high = (((hi << 1) | (lo >>> 31)) ^ sign) >>> 0;
    let low = ((lo << 1) ^ sign) >>> 0;
    this.reserve(10);
    while (high !== 0) {
      this.bytes[this.length++] = (low & 0x7f) | 0x80;
      low = ((low >>> 7) | (high << 25)) >>> 0;
      high >>>= 7;
    }
    this.varint(low);
  }

  private varint(unsigned: number): void {
    this.reserve(5);
    let rest = unsigned;
    while (rest > 0x7f) {
      this.bytes[this.length++] = (rest & 0x7f) | 0x80;
      rest >>>= 7;
    }
    this.bytes[this.length++] = rest;
  }

  float(value: number): void {
    this.reserve(4);
    this.view.setFloat32(this.length, value, true);
    this.length += 4;
  }

  double(value: number): void {
    this.reserve(8);
    this.view.setFloat64(this.length, value, true);
    this.length += 8;
  }

  /** Bytes without a length. */
  raw(value: Uint8Array): void {
    this.reserve(value.length);
    this.bytes.set(value, this.length);
    this.length += value.length;
  }

  /** Length and bytes. */
  blob(value: Uint8Array): void {
    this.int(value.length);
    this.raw(value);
  }

  /** Length in UTF-8 and text. The length is counted first: how wide it is depends on the bytes, not on the units. */
  text(value: string): void {
    const count = utf8Length(value);
    this.int(count);
    this.reserve(count);
    if (count === value.length) {
      for (let i = 0; i < count; i++) this.bytes[this.length + i] = value.charCodeAt(i);
    } else {
      utf8Encoder.encodeInto(value, this.bytes.subarray(this.length));
    }
    this.length += count;
  }
}

/** Bytes of the text in UTF-8; a lone surrogate counts as U+FFFD, which the encoder puts in its place. */
function utf8Length(text: string): number {
  let count = text.length;
  for (let i = 0; i < text.length; i++) {
    const unit = text.charCodeAt(i);
    if (unit < 0x80) continue;
    if (unit < 0x800) count += 1;
    else if (unit >= 0xd800 && unit < 0xdc00 && (text.charCodeAt(i + 1) & 0xfc00) === 0xdc00) {
      // Two units, four bytes.
      count += 2;
      i++;
    } else count += 2;
  }
  return count;
}

/** Appends one value. Throws AssertionError when it does not fit the schema: that is the caller's mistake. */
export type Encode = (sink: ByteSink, value: unknown) => void;

/** How a field's value is found in what stands for its record. */
export type Get = (value: never) => unknown;

/** Gives each field of each record its `Get`. The default reads the property of the field's name. */
export type Access = (record: AvroRecord, field: AvroField, index: number) => Get;

const byName: Access = (_record, field) => (value: Record<string, unknown>) => value[field.name];

/**
 * An encoder for the schema, made of closures (no code generation: the platform refuses it).
 *
 * null → null; int, float, double → number; long → bigint or safe number; bytes, fixed → Uint8Array; string, enum →
 * string; array → array; map → Map with string keys. An array of two-field records (Iceberg's `logicalType: map`) also
 * takes a Map, in its order. A union takes the first branch that fits. Records are read through `access`.
 */
export function encoderOf(type: AvroType, access: Access = byName): Encode {
  return new EncoderCompiler(access).compile(type);
}

function mismatch(kind: string, value: unknown): AssertionError {
  const shown = typeof value === 'object' && value !== null ? value.constructor.name : String(value);
  return new AssertionError(`value does not fit avro type ${kind}: ${typeof value} ${shown}`);
}

const isInt = (value: unknown): value is number => typeof value === 'number' && value === (value | 0);
const isLong = (value: unknown): boolean =>
  typeof value === 'bigint' ? BigInt.asIntN(64, value) === value : Number.isSafeInteger(value);

class EncoderCompiler {
  private readonly access: Access;
  private readonly records = new Map<AvroRecord, Encode>();

  constructor(access: Access) {
    this.access = access;
  }

  compile(type: AvroType): Encode {
    switch (type.kind) {
      case 'null':
        return (_sink, value) => {
          if (value !== null) throw mismatch('null', value);
        };
      case 'boolean':
        return (sink, value) => {
          if (typeof value !== 'boolean') throw mismatch('boolean', value);
          sink.byte(value ? 1 : 0);
        };
      case 'int':
        return (sink, value) => {
          if (!isInt(value)) throw mismatch('int', value);
          sink.int(value);
        };
      case 'long':
        return (sink, value) => {
          if (typeof value !== 'bigint' && typeof value !== 'number') throw mismatch('long', value);
          sink.long(value);
        };
      case 'float':
        return (sink, value) => {
          if (typeof value !== 'number') throw mismatch('float', value);
          sink.float(value);
        };
      case 'double':
        return (sink, value) => {
          if (typeof value !== 'number') throw mismatch('double', value);
          sink.double(value);
        };
      case 'bytes':
        return (sink, value) => {
          if (!(value instanceof Uint8Array)) throw mismatch('bytes', value);
          sink.blob(value);
        };
      case 'string':
        return (sink, value) => {
          if (typeof value !== 'string') throw mismatch('string', value);
          sink.text(value);
        };
      case 'fixed':
        return (sink, value) => {
          if (!(value instanceof Uint8Array) || value.length !== type.size) throw mismatch(type.name, value);
          sink.raw(value);
        };
      case 'enum':
        return enumEncoder(type);
      case 'array':
        return this.array(type);
      case 'map':
        return this.map(this.compile(type.values));
      case 'union':
        return this.union(type);
      case 'record':
        return this.record(type);
    }
  }

  private record(type: AvroRecord): Encode {
    const known = this.records.get(type);
    if (known !== undefined) return known;
    const gets: Array<(value: unknown) => unknown> = [];
    const encodes: Encode[] = [];
    const encode: Encode = (sink, value) => {
      if (typeof value !== 'object' || value === null) throw mismatch(type.name, value);
      for (let i = 0; i < encodes.length; i++) encodes[i](sink, gets[i](value));
    };
    // Before its fields: a record may hold itself.
    this.records.set(type, encode);
    type.fields.forEach((field, index) => {
      gets.push(this.access(type, field, index) as (value: unknown) => unknown);
      encodes.push(this.compile(field.type));
    });
    return encode;
  }

  private array(type: AvroArray): Encode {
    const item = this.compile(type.items);
    const entry = type.items.kind === 'record' && type.items.fields.length === 2 ? type.items : null;
    const key = entry && this.compile(entry.fields[0].type);
    const mapped = entry && this.compile(entry.fields[1].type);
    return (sink, value) => {
      if (Array.isArray(value)) {
        if (value.length > 0) {
          sink.int(value.length);
          for (let i = 0; i < value.length; i++) item(sink, value[i]);
        }
      } else if (value instanceof Map && key !== null && mapped !== null) {
        if (value.size > 0) {
          sink.int(value.size);
          value.forEach((v, k) => {
            key(sink, k);
            mapped(sink, v);
          });
        }
      } else throw mismatch('array', value);
      sink.byte(0);
    };
  }

  private map(item: Encode): Encode {
    return (sink, value) => {
      if (!(value instanceof Map)) throw mismatch('map', value);
      if (value.size > 0) {
        sink.int(value.size);
        for (const [key, mapped] of value) {
          if (typeof key !== 'string') throw mismatch('map key', key);
          sink.text(key);
          item(sink, mapped);
        }
      }
      sink.byte(0);
    };
  }

  private union(type: AvroUnion): Encode {
    const encodes = type.branches.map((branch) => this.compile(branch));
    const empty = type.branches.findIndex((branch) => branch.kind === 'null');
    if (type.branches.length === 2 && empty >= 0) {
      // The usual optional field: what is not null needs no search.
      const full = 1 - empty;
      return (sink, value) => {
        sink.int(value === null ? empty : full);
        if (value !== null) encodes[full](sink, value);
      };
    }
    return (sink, value) => {
      const index = type.branches.findIndex((branch) => fits(branch, value));
      if (index < 0) throw mismatch('union', value);
      sink.int(index);
      encodes[index](sink, value);
    };
  }
}

function enumEncoder(type: AvroEnum): Encode {
  const indexes = new Map(type.symbols.map((symbol, index) => [symbol, index]));
  return (sink, value) => {
    const index = indexes.get(value as string);
    if (index === undefined) throw mismatch(type.name, value);
    sink.int(index);
  };
}

function fits(type: AvroType, value: unknown): boolean {
  switch (type.kind) {
    case 'null':
      return value === null;
    case 'boolean':
      return typeof value === 'boolean';
    case 'int':
      return isInt(value);
    case 'long':
      return isLong(value);
    case 'float':
    case 'double':
      return typeof value === 'number';
    case 'bytes':
      return value instanceof Uint8Array;
    case 'fixed':
      return value instanceof Uint8Array && value.length === type.size;
    case 'string':
      return typeof value === 'string';
    case 'enum':
      return typeof value === 'string' && type.symbols.includes(value);
    case 'array':
      return Array.isArray(value);
    case 'map':
      return value instanceof Map;
    case 'record':
      return (
        typeof value === 'object' &&
        value !== null &&
        !Array.isArray(value) &&
        !(value instanceof Uint8Array) &&
        !(value instanceof Map)
      );
    case 'union':
      return type.branches.some((branch) => fits(branch, value));
  }
}
