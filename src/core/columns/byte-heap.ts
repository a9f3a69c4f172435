import { assert } from '../base/assert.ts';
import { invalid } from '../base/errors.ts';
import { COLUMN_BYTES_MAX } from '../base/limits.ts';

const encoder = new TextEncoder();

const CHUNK_BYTES_MIN = 256;
const CHUNK_BYTES_MAX = 256 * 1024;

/** Texts up to this length are first tried as ASCII, byte by byte: cheaper than a call into the encoder. */
const SHORT_TEXT_LENGTH = 64;

/** Bytes appended one entry after the other, in chunks; an entry may lie across a chunk's end. */
export class ByteHeap {
  /** Bytes appended. */
  length = 0;
  /** Bytes allocated. */
  byteSize = 0;
  private readonly chunks: Uint8Array[] = [];
  private chunk: Uint8Array = new Uint8Array(0);
  private used = 0;

  /** Appends the UTF-8 form of well-formed text. Returns its length in bytes. Nothing is appended when it throws. */
  appendText(text: string): number {
    const length = text.length;
    if (length <= SHORT_TEXT_LENGTH) {
      this.check(length);
      if (this.chunk.length - this.used < length) this.grow(length);
      const chunk = this.chunk;
      const used = this.used;
      let i = 0;
      for (; i < length; i++) {
        const unit = text.charCodeAt(i);
        if (unit > 0x7f) break;
        chunk[used + i] = unit;
      }
      if (i === length) {
        this.used += length;
        this.length += length;
        return length;
      }
    }
    return this.appendBytes(encoder.encode(text));
  }

  /** Appends the code units of a text that are all below 256. */
  appendLatin1(text: string): number {
    const bytes = new Uint8Array(text.length);
    for (let i = 0; i < bytes.length; i++) bytes[i] = text.charCodeAt(i);
    return this.appendBytes(bytes);
  }

  appendBytes(bytes: Uint8Array): number {
    this.check(bytes.length);
    let from = 0;
    while (from < bytes.length) {
      if (this.used === this.chunk.length) this.grow(bytes.length - from);
      const taken = Math.min(this.chunk.length - this.used, bytes.length - from);
      this.chunk.set(bytes.subarray(from, from + taken), this.used);
      this.used += taken;
      from += taken;
    }
    this.length += bytes.length;
    return bytes.length;
  }

  /** Takes back the last `bytes` bytes. */
  takeBack(bytes: number): void {
    assert(bytes <= this.length, 'bytes taken back were appended');
    this.length -= bytes;
    let left = bytes;
    while (left > this.used) {
      left -= this.used;
      this.byteSize -= this.chunk.length;
      this.chunk = this.chunks.pop() as Uint8Array;
      this.used = this.chunk.length;
    }
    this.used -= left;
  }

  /** All bytes as one array. The heap is spent. */
  finish(): Uint8Array {
    const out = new Uint8Array(this.length);
    let at = 0;
    for (const chunk of this.chunks) {
      out.set(chunk, at);
      at += chunk.length;
    }
    out.set(this.chunk.subarray(0, this.used), at);
    this.chunks.length = 0;
    this.chunk = new Uint8Array(0);
    this.used = 0;
    return out;
  }

  private check(bytes: number): void {
    const length = this.length + bytes;
    if (length > COLUMN_BYTES_MAX) {
      throw invalid('column-too-large', `column holds more than ${COLUMN_BYTES_MAX} bytes of text: ${length}`);
    }
  }

  private grow(needed: number): void {
    if (this.used > 0) this.chunks.push(this.chunk.subarray(0, this.used));
    const size = Math.max(needed, CHUNK_BYTES_MIN, Math.min(CHUNK_BYTES_MAX, this.length));
    this.chunk = new Uint8Array(size);
    this.byteSize += size;
    this.used = 0;
  }
}
