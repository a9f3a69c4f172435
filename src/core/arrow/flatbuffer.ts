import { textOf } from '../base/bytes.ts';
import { invalid, type SluiceError } from '../base/errors.ts';

/**
 * Tables of FlatBuffers (https://flatbuffers.dev/internals/), read only, for the metadata of Arrow messages. Every position
 * and every count is held against the bytes that are there: what a message says of itself is never believed.
 */

/** The refusal of bytes that are no Arrow message. */
export function malformed(what: string): SluiceError {
  return invalid('malformed-body', `arrow body: ${what}`);
}

/** Structs or offsets in a row; `at` is the first one's place. */
export interface FlatVector {
  at: number;
  length: number;
}

export class FlatTable {
  private readonly view: DataView;
  private readonly bytes: Uint8Array;
  private readonly at: number;
  private readonly fields: number;
  private readonly fieldsEnd: number;

  private constructor(bytes: Uint8Array, view: DataView, at: number) {
    this.bytes = bytes;
    this.view = view;
    this.at = at;
    const vtable = at - this.int32At(at);
    const size = this.uint16At(vtable);
    this.fields = vtable + 4;
    this.fieldsEnd = vtable + size;
    this.check(vtable, size);
  }

  /** The table at the root of a buffer. */
  static root(bytes: Uint8Array): FlatTable {
    const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    if (bytes.length < 8) throw malformed('metadata is too short');
    return new FlatTable(bytes, view, view.getUint32(0, true));
  }

  /** Scalars: `absent` where the writer left the default out. */
  uint8(id: number, absent = 0): number {
    const at = this.place(id);
    if (at === 0) return absent;
    this.check(at, 1);
    return this.bytes[at];
  }

  int16(id: number, absent = 0): number {
    const at = this.place(id);
    if (at === 0) return absent;
    this.check(at, 2);
    return this.view.getInt16(at, true);
  }

  int32(id: number, absent = 0): number {
    const at = this.place(id);
    return at === 0 ? absent : this.int32At(at);
  }

  /** A 64-bit number that counts something; refused when it cannot. */
  size(id: number): number {
    const at = this.place(id);
    return at === 0 ? 0 : this.sizeAt(at);
  }

  int64(id: number): bigint {
    const at = this.place(id);
    if (at === 0) return 0n;
    this.check(at, 8);
    return this.view.getBigInt64(at, true);
  }

  text(id: number): string {
    const at = this.place(id);
    if (at === 0) return '';
    const { at: from, length } = this.vectorAt(at, 1);
    try {
      return textOf(this.bytes.subarray(from, from + length));
    } catch {
      throw malformed('a name is not UTF-8');
    }
  }

  table(id: number): FlatTable | null {
    const at = this.place(id);
    return at === 0 ? null : this.tableAt(at);
  }

  /** A vector of elements of `bytes` bytes. */
  vector(id: number, bytes: number): FlatVector {
    const at = this.place(id);
    return at === 0 ? { at: 0, length: 0 } : this.vectorAt(at, bytes);
  }

  /** Element of a vector of tables. */
  tableOf(vector: FlatVector, index: number): FlatTable {
    return this.tableAt(vector.at + 4 * index);
  }

  /** A 64-bit count at a place, within a struct say. */
  sizeAt(at: number): number {
    this.check(at, 8);
    const value = this.view.getBigInt64(at, true);
    if (value < 0n || value > BigInt(Number.MAX_SAFE_INTEGER)) throw malformed(`a count is out of range: ${value}`);
    return Number(value);
  }

  int32At(at: number): number {
    this.check(at, 4);
    return this.view.getInt32(at, true);
  }

  private uint16At(at: number): number {
    this.check(at, 2);
    return this.view.getUint16(at, true);
  }

  private tableAt(at: number): FlatTable {
    this.check(at, 4);
    return new FlatTable(this.bytes, this.view, at + this.view.getUint32(at, true));
  }

  private vectorAt(at: number, bytes: number): FlatVector {
    this.check(at, 4);
    const start = at + this.view.getUint32(at, true);
    this.check(start, 4);
    const length = this.view.getUint32(start, true);
    this.check(start + 4, length * bytes);
    return { at: start + 4, length };
  }

  /** Where a field lies; 0 when it is left out. */
  private place(id: number): number {
    const entry = this.fields + 2 * id;
    if (entry + 2 > this.fieldsEnd) return 0;
    const offset = this.uint16At(entry);
    return offset === 0 ? 0 : this.at + offset;
  }

  private check(at: number, length: number): void {
    if (!(at >= 0 && at + length <= this.bytes.length)) throw malformed('metadata points outside of itself');
  }
}
