import { release } from '../base/release.ts';

/** A growing byte buffer that encoders write into. Reused from page to page: `clear` keeps the memory. */
export class ByteSink {
  bytes: Uint8Array;
  length = 0;

  constructor(capacity = 1024) {
    this.bytes = new Uint8Array(capacity);
  }

  /** Makes room for `more` bytes and returns the position where they go; the caller advances `length`. */
  ensure(more: number): number {
    const needed = this.length + more;
    if (needed > this.bytes.length) {
      const grown = new Uint8Array(Math.max(needed, this.bytes.length * 2));
      grown.set(this.bytes.subarray(0, this.length));
      release(this.bytes);
      this.bytes = grown;
    }
    return this.length;
  }

  byte(value: number): void {
    this.ensure(1);
    this.bytes[this.length++] = value;
  }

  append(part: Uint8Array): void {
    this.ensure(part.length);
    this.bytes.set(part, this.length);
    this.length += part.length;
  }

  /** Little-endian 32-bit integer. */
  int32(value: number): void {
    this.ensure(4);
    this.setInt32(this.length, value);
    this.length += 4;
  }

  /** Overwrites four bytes already written. */
  setInt32(at: number, value: number): void {
    this.bytes[at] = value;
    this.bytes[at + 1] = value >>> 8;
    this.bytes[at + 2] = value >>> 16;
    this.bytes[at + 3] = value >>> 24;
  }

  /** Unsigned LEB128 of an integer below 2^53. */
  varint(value: number): void {
    this.ensure(8);
    while (value >= 0x80) {
      this.bytes[this.length++] = (value % 0x80) | 0x80;
      value = Math.floor(value / 0x80);
    }
    this.bytes[this.length++] = value;
  }

  /** Unsigned LEB128 of a 64-bit integer given as two 32-bit halves. */
  varint64(lo: number, hi: number): void {
    this.ensure(10);
    while (hi !== 0 || lo >>> 0 >= 0x80) {
      this.bytes[this.length++] = (lo & 0x7f) | 0x80;
      lo = (lo >>> 7) | (hi << 25);
      hi >>>= 7;
    }
    this.bytes[this.length++] = lo;
  }

  /** Zigzag varint of a 64-bit integer given as two 32-bit halves. */
  zigzag64(lo: number, hi: number): void {
    const sign = hi >> 31;
    this.varint64((lo << 1) ^ sign, ((hi << 1) | (lo >>> 31)) ^ sign);
  }

  /** What was written, as a view that the next `clear` or growth invalidates. */
  view(): Uint8Array {
    return this.bytes.subarray(0, this.length);
  }

  /** What was written, as a copy of its exact size. */
  copy(): Uint8Array {
    return this.bytes.slice(0, this.length);
  }

  clear(): void {
    this.length = 0;
  }

  /** Gives the memory back: nothing is written any more. */
  release(): void {
    release(this.bytes);
  }
}
