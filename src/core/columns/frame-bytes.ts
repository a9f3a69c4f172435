import { corrupt, type SluiceError } from '../base/errors.ts';

/** Bytes a writer begins with when it is not told how many there will be. */
const CAPACITY_MIN = 256;

type Plane = Uint8Array | Int32Array | Uint32Array | Float32Array | Float64Array;

/**
 * Memory for what is on its way into or out of a frame, the same for all columns in turn: fresh memory for each would
 * cost more than the work on it.
 */
export class Scratch {
  private memory = new ArrayBuffer(0);

  /** At least `bytes` bytes of any content. They are given again by the next call. */
  readonly take = (bytes: number): ArrayBuffer => {
    if (this.memory.byteLength < bytes) this.memory = new ArrayBuffer(bytes);
    return this.memory;
  };
}

/** The memory of one writer or reader, by use: what is alive at the same time is apart. */
class Scratches {
  /** Values without the null rows between them. */
  readonly dense = new Scratch();
  /** Doubles as whole numbers. */
  readonly whole = new Scratch();
  /** Differences from the least value. */
  readonly differences = new Scratch();
}

/** Appends the pieces of a frame. */
export class FrameWriter {
  readonly scratch = new Scratches();
  private bytes: Uint8Array;
  private used = 0;

  /** `capacity` is a guess of the frame's length; a short one costs a copy. */
  constructor(capacity: number) {
    this.bytes = new Uint8Array(Math.max(CAPACITY_MIN, capacity));
  }

  byte(value: number): void {
    this.reserve(1);
    this.bytes[this.used++] = value;
  }

  /** A whole number from 0 to 2^53 - 1, seven bits a byte, low ones first. */
  varint(value: number): void {
    let rest = value;
    while (rest >= 128) {
      this.byte((rest % 128) | 128);
      rest = Math.floor(rest / 128);
    }
    this.byte(rest);
  }

  /** An int64, small in either direction taking little. */
  int64(value: bigint): void {
    let rest = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
    while (rest >= 128n) {
      this.byte(Number(rest & 127n) | 128);
      rest >>= 7n;
    }
    this.byte(Number(rest));
  }

  /** The memory of an array, little endian. */
  plane(values: Plane): void {
    this.reserve(values.byteLength);
    this.bytes.set(new Uint8Array(values.buffer, values.byteOffset, values.byteLength), this.used);
    this.used += values.byteLength;
  }

  /** Numbers below 2^(8 * width), 1 to 4 bytes each, little endian; of 3 bytes first the low two of all, then the third. */
  unsigned(values: Uint32Array, width: number): void {
    if (width === 4) {
      this.plane(values);
      return;
    }
    this.reserve(width * values.length);
    const { bytes } = this;
    let at = this.used;
    if (width === 1) for (let i = 0; i < values.length; i++) bytes[at++] = values[i];
    else {
      for (let i = 0; i < values.length; i++) {
        bytes[at++] = values[i];
        bytes[at++] = values[i] >>> 8;
      }
      if (width === 3) for (let i = 0; i < values.length; i++) bytes[at++] = values[i] >>> 16;
    }
    this.used = at;
  }

  /** Zeros and ones, eight a byte, low bits first. */
  bits(flags: Uint8Array): void {
    this.reserve((flags.length + 7) >> 3);
    let byte = 0;
    for (let i = 0; i < flags.length; i++) {
      byte |= flags[i] << (i & 7);
      if ((i & 7) === 7) {
        this.bytes[this.used++] = byte;
        byte = 0;
      }
    }
    if ((flags.length & 7) !== 0) this.bytes[this.used++] = byte;
  }

  /** All that was written, and room for `trailerBytes` more at the end. */
  finish(trailerBytes: number): Uint8Array {
    this.reserve(trailerBytes);
    return this.bytes.slice(0, this.used + trailerBytes);
  }

  private reserve(length: number): void {
    const needed = this.used + length;
    if (needed <= this.bytes.length) return;
    const grown = new Uint8Array(Math.max(needed, 2 * this.bytes.length));
    grown.set(this.bytes.subarray(0, this.used));
    this.bytes = grown;
  }
}

/** Reads what `FrameWriter` wrote. Anything that does not fit throws `corrupt` `frame-corrupt`; nothing is read past the end. */
export class FrameReader {
  readonly scratch = new Scratches();
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(): number {
    return this.bytes[this.advance(1)];
  }

  /** A whole number up to `max`. */
  varint(max: number): number {
    let value = 0;
    for (let scale = 1; scale <= 2 ** 49; scale *= 128) {
      const byte = this.byte();
      value += (byte & 127) * scale;
      if (byte < 128) {
        if (value > max) throw this.broken(`holds a number above ${max}`);
        return value;
      }
    }
    throw this.broken('holds an endless number');
  }

  int64(): bigint {
    let value = 0n;
    for (let shift = 0n; shift < 70n; shift += 7n) {
      const byte = this.byte();
      value |= BigInt(byte & 127) << shift;
      if (byte < 128) {
        if (value >= 1n << 64n) break;
        return (value >> 1n) ^ -(value & 1n);
      }
    }
    throw this.broken('holds a number above 64 bits');
  }

  /** The next `length` bytes, as a copy. */
  copy(length: number): Uint8Array {
    const from = this.advance(length);
    return this.bytes.slice(from, from + length);
  }

  /** Fills the memory of an array with the next bytes. */
  fill(values: Plane): void {
    const from = this.advance(values.byteLength);
    const source = this.bytes.subarray(from, this.at);
    new Uint8Array(values.buffer, values.byteOffset, values.byteLength).set(source);
  }

  /** Throws when fewer than `length` bytes are left: before memory is taken for them. */
  expect(length: number): void {
    if (length > this.left) throw this.broken('ends too early');
  }

  /** `length` numbers of `width` bytes, as `FrameWriter.unsigned` wrote them, or zeros for none; in scratch memory. */
  unsigned(length: number, width: number): Uint32Array {
    let at = this.advance(width * length);
    const { bytes } = this;
    const out = new Uint32Array(this.scratch.differences.take(4 * length), 0, length);
    switch (width) {
      case 0:
        out.fill(0);
        break;
      case 1:
        for (let i = 0; i < length; i++) out[i] = bytes[at + i];
        break;
      case 4:
        new Uint8Array(out.buffer, 0, 4 * length).set(bytes.subarray(at, at + 4 * length));
        break;
      default:
        for (let i = 0; i < length; i++, at += 2) out[i] = bytes[at] | (bytes[at + 1] << 8);
        if (width === 3) for (let i = 0; i < length; i++) out[i] |= bytes[at + i] << 16;
    }
    return out;
  }

  /** `length` zeros and ones. */
  bits(length: number): Uint8Array {
    const at = this.advance((length + 7) >> 3);
    const { bytes } = this;
    const out = new Uint8Array(length);
    for (let i = 0; i < length; i++) out[i] = (bytes[at + (i >> 3)] >> (i & 7)) & 1;
    return out;
  }

  broken(what: string): SluiceError {
    return corrupt('frame-corrupt', `frame ${what}: at byte ${this.at} of ${this.bytes.length}`);
  }

  /** Where the next `length` bytes begin. */
  private advance(length: number): number {
    this.expect(length);
    const from = this.at;
    this.at += length;
    return from;
  }
}
