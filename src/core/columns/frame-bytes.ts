import { concat } from '../base/bytes.ts';
import { corrupt, type SluiceError } from '../base/errors.ts';

/** Bytes of the scratch array that collects what is small. */
const SCRATCH_BYTES = 256;

type Plane = Uint8Array | Uint16Array | Uint32Array | Int32Array | BigInt64Array | Float32Array | Float64Array;

/** Appends the pieces of a frame. Arrays are kept as they are until `finish`: they must not change before. */
export class FrameWriter {
  private readonly parts: Uint8Array[] = [];
  private scratch = new Uint8Array(SCRATCH_BYTES);
  private used = 0;

  byte(value: number): void {
    if (this.used === this.scratch.length) this.flush();
    this.scratch[this.used++] = value;
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
    const bytes = new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
    if (bytes.length <= this.scratch.length - this.used) {
      this.scratch.set(bytes, this.used);
      this.used += bytes.length;
    } else {
      this.flush();
      this.parts.push(bytes);
    }
  }

  /** All pieces, and room for `trailerBytes` more at the end. */
  finish(trailerBytes: number): Uint8Array {
    this.flush();
    return concat([...this.parts, new Uint8Array(trailerBytes)]);
  }

  private flush(): void {
    if (this.used === 0) return;
    this.parts.push(this.scratch.subarray(0, this.used));
    this.scratch = new Uint8Array(SCRATCH_BYTES);
    this.used = 0;
  }
}

/** Reads what `FrameWriter` wrote. Anything that does not fit throws `corrupt` `frame-corrupt`; nothing is read past the end. */
export class FrameReader {
  private readonly bytes: Uint8Array;
  private at = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
  }

  get left(): number {
    return this.bytes.length - this.at;
  }

  byte(): number {
    if (this.left < 1) throw this.broken('ends too early');
    return this.bytes[this.at++];
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

  /** The next `length` bytes, as a copy that starts at the start of its buffer, so that any array can look at it. */
  plane(length: number): ArrayBuffer {
    if (length > this.left) throw this.broken('ends too early');
    const copy = this.bytes.slice(this.at, this.at + length);
    this.at += length;
    return copy.buffer;
  }

  broken(what: string): SluiceError {
    return corrupt('frame-corrupt', `frame ${what}: at byte ${this.at} of ${this.bytes.length}`);
  }
}
