import { textOf } from '../base/bytes.ts';
import { corrupt, type SluiceError } from '../base/errors.ts';
import { AVRO_DEPTH_MAX, AVRO_EMPTY_ITEMS_MAX } from '../base/limits.ts';
import { type AvroRecord, type AvroType, minimumBytes } from './schema.ts';

/**
 * A checked reader over bytes of unknown origin. Every read throws corrupt `avro-corrupt` past the end or on a value
 * out of range; no length or count is believed before the bytes for it are there.
 */
export class ByteSource {
  at: number;
  readonly end: number;
  /** Where the block entered last must end, or -1 when its writer gave no size. Read it right after `block`. */
  blockEnd = -1;
  /** Items without bytes so far, see AVRO_EMPTY_ITEMS_MAX. */
  emptyItems = 0;
  private readonly bytes: Uint8Array;
  private readonly view: DataView;
  private depth = 0;
  /** Halves of the varint read last, unsigned. */
  private lo = 0;
  private hi = 0;

  constructor(bytes: Uint8Array, at = 0, end = bytes.length) {
    // Plain, also when a subclass comes in: the `slice` of some of them shares memory.
    this.bytes = new Uint8Array(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    this.at = at;
    this.end = end;
  }

  fail(problem: string): SluiceError {
    return corrupt('avro-corrupt', `avro data ${problem} at byte ${this.at}`);
  }

  private take(count: number): number {
    const start = this.at;
    if (count > this.end - start) throw this.fail(`ends ${count - (this.end - start)} bytes early`);
    this.at = start + count;
    return start;
  }

  private varint(): void {
    const { bytes, end } = this;
    let at = this.at;
    let lo = 0;
    let hi = 0;
    for (let shift = 0; ; shift += 7) {
      if (at >= end) throw this.fail('ends within an integer');
      const byte = bytes[at++];
      const bits = byte & 0x7f;
      if (shift < 28) lo |= bits << shift;
      else if (shift === 28) {
        lo |= bits << 28;
        hi = bits >>> 4;
      } else hi |= bits << (shift - 32);
      if (byte < 0x80) {
        if (shift === 63 && byte > 1) throw this.fail('has an integer above 64 bits');
        break;
      }
      if (shift === 63) throw this.fail('has an integer above 64 bits');
    }
    this.at = at;
    this.lo = lo >>> 0;
    this.hi = hi >>> 0;
  }

  boolean(): boolean {
    const byte = this.bytes[this.take(1)];
    if (byte > 1) throw this.fail(`has boolean ${byte}`);
    return byte === 1;
  }

  int(): number {
    this.varint();
    if (this.hi !== 0) throw this.fail('has an int above 32 bits');
    return (this.lo >>> 1) ^ -(this.lo & 1);
  }

  long(): bigint {
    this.varint();
    if (this.hi === 0) return BigInt((this.lo >>> 1) ^ -(this.lo & 1));
    const sign = -(this.lo & 1);
    const low = (((this.lo >>> 1) | (this.hi << 31)) ^ sign) >>> 0;
    const high = (this.hi >>> 1) ^ sign;
    // Within ±2^52 one conversion of an exact double is cheaper than assembling halves.
    if (high >= -0x100000 && high < 0x100000) return BigInt(high * 4294967296 + low);
    return (BigInt(high) << 32n) | BigInt(low);
  }

  /** A long that must be a safe integer. */
  safeLong(): number {
    const value = this.long();
    if (value > 9007199254740991n || value < -9007199254740991n) throw this.fail(`has ${value} in place of a number`);
    return Number(value);
  }

  float(): number {
    return this.view.getFloat32(this.take(4), true);
  }

  double(): number {
    return this.view.getFloat64(this.take(8), true);
  }

  /** A copy, so that the file can be freed. */
  raw(count: number): Uint8Array {
    const start = this.take(count);
    return this.bytes.slice(start, start + count);
  }

  private size(): number {
    this.varint();
    if (this.hi !== 0 || (this.lo & 1) === 1) throw this.fail('has a length that is negative or above 2 GiB');
    return this.lo >>> 1;
  }

  blob(): Uint8Array {
    return this.raw(this.size());
  }

  text(): string {
    const count = this.size();
    const start = this.take(count);
    try {
      return textOf(this.bytes.subarray(start, start + count));
    } catch (error) {
      throw corrupt('avro-corrupt', `avro data has malformed utf-8 at byte ${start}`, {}, error);
    }
  }

  skip(count: number): void {
    this.take(count);
  }

  skipBlob(): void {
    this.take(this.size());
  }

  skipVarint(): void {
    this.varint();
  }

  /**
   * Enters the next block of an array, a map or a file and returns its number of items; 0 is the end. `itemBytes` is
   * the least an item takes: a count that the rest cannot hold is refused before anything is built for it.
   */
  block(itemBytes: number): number {
    let count = this.safeLong();
    this.blockEnd = -1;
    if (count < 0) {
      count = -count;
      const size = this.size();
      if (size > this.end - this.at) throw this.fail(`has a block of ${size} bytes beyond the end`);
      this.blockEnd = this.at + size;
    }
    this.admit(count, itemBytes);
    return count;
  }

  /** Checks a count of items against the bytes left. */
  admit(count: number, itemBytes: number): void {
    if (itemBytes === 0) this.empty(count);
    else if (count > (this.end - this.at) / itemBytes) throw this.fail(`has a count of ${count} beyond the end`);
  }

  private empty(count: number): void {
    this.emptyItems += count;
    if (this.emptyItems > AVRO_EMPTY_ITEMS_MAX) throw this.fail(`has more than ${AVRO_EMPTY_ITEMS_MAX} empty items`);
  }

  /** Checks that the items filled the block exactly. */
  leaveBlock(blockEnd: number): void {
    if (blockEnd >= 0 && this.at !== blockEnd) throw this.fail(`has a block that should end at byte ${blockEnd}`);
  }

  enterRecord(type: AvroRecord): void {
    if (++this.depth > AVRO_DEPTH_MAX) throw this.fail(`nests ${type.name} deeper than ${AVRO_DEPTH_MAX}`);
    if (type.minimumBytes === 0) this.empty(1);
  }

  leaveRecord(): void {
    this.depth--;
  }

  branch<T>(branches: readonly T[]): T {
    const index = this.int();
    if (index < 0 || index >= branches.length) throw this.fail(`has union branch ${index} of ${branches.length}`);
    return branches[index];
  }

  symbol(symbols: readonly string[]): string {
    const index = this.int();
    if (index < 0 || index >= symbols.length) throw this.fail(`has enum symbol ${index} of ${symbols.length}`);
    return symbols[index];
  }
}

/** Reads one value. */
export type Decode = (source: ByteSource) => unknown;

/** Steps over one value. */
export type Skip = (source: ByteSource) => void;

/**
 * A decoder for values exactly as written: the reverse of `encoderOf`, records as objects without prototype (a field
 * may be called `__proto__`), arrays of records as arrays. Manifests are read through `resolve` instead.
 */
export function decoderOf(type: AvroType): Decode {
  const records = new Map<AvroRecord, Decode>();
  const compile = (type: AvroType): Decode => {
    switch (type.kind) {
      case 'null':
        return () => null;
      case 'boolean':
        return (source) => source.boolean();
      case 'int':
        return (source) => source.int();
      case 'long':
        return (source) => source.long();
      case 'float':
        return (source) => source.float();
      case 'double':
        return (source) => source.double();
      case 'bytes':
        return (source) => source.blob();
      case 'string':
        return (source) => source.text();
      case 'fixed':
        return (source) => source.raw(type.size);
      case 'enum':
        return (source) => source.symbol(type.symbols);
      case 'array':
        return listDecoder(compile(type.items), minimumBytes(type.items));
      case 'map': {
        const value = compile(type.values);
        return mapDecoder((source) => source.text(), value, 1 + minimumBytes(type.values));
      }
      case 'union': {
        const branches = type.branches.map(compile);
        return (source) => source.branch(branches)(source);
      }
      case 'record': {
        const known = records.get(type);
        if (known !== undefined) return known;
        const names = type.fields.map((field) => field.name);
        const decodes: Decode[] = [];
        const decode: Decode = (source) => {
          source.enterRecord(type);
          const record: Record<string, unknown> = Object.create(null);
          for (let i = 0; i < decodes.length; i++) record[names[i]] = decodes[i](source);
          source.leaveRecord();
          return record;
        };
        // Before its fields: a record may hold itself.
        records.set(type, decode);
        for (const field of type.fields) decodes.push(compile(field.type));
        return decode;
      }
    }
  };
  return compile(type);
}

export function listDecoder(item: Decode, itemBytes: number): Decode {
  return (source) => {
    const list: unknown[] = [];
    for (let count = source.block(itemBytes); count > 0; count = source.block(itemBytes)) {
      const { blockEnd } = source;
      for (let i = 0; i < count; i++) list.push(item(source));
      source.leaveBlock(blockEnd);
    }
    return list;
  };
}

/** Reads key and value one after the other. A key that comes twice is corrupt: neither value can be trusted. */
export function mapDecoder(key: Decode, value: Decode, entryBytes: number): Decode {
  return (source) => {
    const map = new Map<unknown, unknown>();
    for (let count = source.block(entryBytes); count > 0; count = source.block(entryBytes)) {
      const { blockEnd } = source;
      for (let i = 0; i < count; i++) {
        const k = key(source);
        const sizeBefore = map.size;
        map.set(k, value(source));
        if (map.size === sizeBefore) throw source.fail(`repeats map key ${String(k)}`);
      }
      source.leaveBlock(blockEnd);
    }
    return map;
  };
}

/** A skipper; null for a type whose values take no bytes, which is left out of loops instead of being called. */
export function skipperOf(type: AvroType): Skip | null {
  return new SkipCompiler().compile(type);
}

class SkipCompiler {
  private readonly records = new Map<AvroRecord, Skip>();

  compile(type: AvroType): Skip | null {
    switch (type.kind) {
      case 'null':
        return null;
      case 'boolean':
        return (source) => source.skip(1);
      case 'int':
      case 'long':
      case 'enum':
        return (source) => source.skipVarint();
      case 'float':
        return (source) => source.skip(4);
      case 'double':
        return (source) => source.skip(8);
      case 'bytes':
      case 'string':
        return (source) => source.skipBlob();
      case 'fixed':
        return type.size === 0 ? null : (source) => source.skip(type.size);
      case 'array':
        return skipBlocks(this.compile(type.items), minimumBytes(type.items));
      case 'map': {
        const value = this.compile(type.values);
        return skipBlocks((source) => {
          source.skipBlob();
          value?.(source);
        }, 1 + minimumBytes(type.values));
      }
      case 'union': {
        const branches = type.branches.map((branch) => this.compile(branch) ?? nothing);
        return (source) => source.branch(branches)(source);
      }
      case 'record':
        return this.record(type);
    }
  }

  private record(type: AvroRecord): Skip | null {
    if (type.minimumBytes === 0) return null;
    const known = this.records.get(type);
    if (known !== undefined) return known;
    const skips: Skip[] = [];
    const skip: Skip = (source) => {
      source.enterRecord(type);
      for (let i = 0; i < skips.length; i++) skips[i](source);
      source.leaveRecord();
    };
    this.records.set(type, skip);
    for (const field of type.fields) {
      const fieldSkip = this.compile(field.type);
      if (fieldSkip !== null) skips.push(fieldSkip);
    }
    return skip;
  }
}

function nothing(): void {}

function skipBlocks(item: Skip | null, itemBytes: number): Skip {
  return (source) => {
    for (let count = source.block(itemBytes); count > 0; count = source.block(itemBytes)) {
      const { blockEnd } = source;
      if (blockEnd >= 0) {
        // The writer gave the size for this purpose.
        source.skip(blockEnd - source.at);
      } else if (item !== null) {
        for (let i = 0; i < count; i++) item(source);
      }
    }
  };
}
