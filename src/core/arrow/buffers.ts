import type { Decompress } from '../base/codecs.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { BODY_BYTES_MAX } from '../base/limits.ts';
import { type FlatTable, malformed } from './flatbuffer.ts';

/** What all batches of a body share. */
export interface BodyReading {
  /** One zstd frame. */
  decompress: Decompress;
  /** Bytes that decompression may still make. */
  inflatable: number;
}

const ZSTD = 1;

/**
 * Nodes and buffers of one record batch, handed out in the order in which its columns take them (Arrow columnar format,
 * "RecordBatch message"). Each is held against the body of the message.
 */
export class BatchBuffers {
  readonly rows: number;
  private readonly batch: FlatTable;
  private readonly body: Uint8Array;
  private readonly reading: BodyReading;
  private readonly nodes: { at: number; length: number };
  private readonly buffers: { at: number; length: number };
  private readonly variadic: { at: number; length: number };
  private readonly compressed: boolean;
  private node = 0;
  private buffer = 0;
  private view = 0;

  constructor(batch: FlatTable, body: Uint8Array, reading: BodyReading) {
    this.batch = batch;
    this.body = body;
    this.reading = reading;
    this.rows = batch.size(0);
    this.nodes = batch.vector(1, 16);
    this.buffers = batch.vector(2, 16);
    this.variadic = batch.vector(4, 8);
    const compression = batch.table(3);
    this.compressed = compression !== null;
    if (compression !== null && (compression.uint8(0) !== ZSTD || compression.uint8(1) !== 0)) throw unsupported();
  }

  /** Length of the next column, and how many of its values are null. */
  nextNode(): { length: number; nulls: number } {
    if (this.node === this.nodes.length) throw malformed('batch has fewer columns than its schema');
    const at = this.nodes.at + 16 * this.node++;
    const length = this.batch.sizeAt(at);
    const nulls = this.batch.sizeAt(at + 8);
    if (nulls > length) throw malformed(`column has ${nulls} nulls in ${length} rows`);
    return { length, nulls };
  }

  /** How many data buffers the next column of string views has. */
  nextVariadic(): number {
    if (this.view === this.variadic.length) throw malformed('batch does not count the buffers of a column of views');
    return this.batch.sizeAt(this.variadic.at + 8 * this.view++);
  }

  /** The next buffer, as a view of the body where it is not compressed. */
  next(): Uint8Array {
    if (this.buffer === this.buffers.length) throw malformed('batch has fewer buffers than its columns take');
    const at = this.buffers.at + 16 * this.buffer++;
    const offset = this.batch.sizeAt(at);
    const length = this.batch.sizeAt(at + 8);
    if (offset + length > this.body.length) throw malformed('buffer lies outside of its batch');
    const bytes = this.body.subarray(offset, offset + length);
    return this.compressed && length > 0 ? this.inflated(bytes) : bytes;
  }

  /** As `next`, of at least `length` bytes, which are given. */
  nextOf(length: number): Uint8Array {
    const bytes = this.next();
    if (bytes.length < length) throw malformed(`buffer of ${bytes.length} bytes is too short: ${length} are needed`);
    return bytes.subarray(0, length);
  }

  /** Before a compressed buffer stands its length; -1: it is not compressed after all. */
  private inflated(bytes: Uint8Array): Uint8Array {
    if (bytes.length < 8) throw malformed('compressed buffer is too short');
    const length = Number(new DataView(bytes.buffer, bytes.byteOffset, 8).getBigInt64(0, true));
    const packed = bytes.subarray(8);
    if (length === -1) return packed;
    if (!(length >= 0)) throw malformed(`compressed buffer of ${length} bytes`);
    if (length > this.reading.inflatable) {
      const detail = { bytesMax: BODY_BYTES_MAX };
      throw invalid('body-too-large', `body is larger than ${BODY_BYTES_MAX} bytes when inflated`, detail);
    }
    this.reading.inflatable -= length;
    if (length === 0) return new Uint8Array(0);
    try {
      return this.reading.decompress(packed, length);
    } catch (cause) {
      throw invalid('malformed-body', 'arrow body: compressed buffer does not inflate to its length', {}, cause);
    }
  }
}

function unsupported(): SluiceError {
  return invalid(
    'unsupported-compression',
    'arrow body: buffers are compressed with lz4; send them plain or with zstd',
    {
      supported: ['none', 'zstd'],
    },
  );
}

/** Views of the body where they begin at a multiple of their width, else copies: the format asks for multiples of 8. */
function aligned(bytes: Uint8Array, width: number): Uint8Array {
  return bytes.byteOffset % width === 0 ? bytes : bytes.slice();
}

export function int32s(bytes: Uint8Array): Int32Array {
  const at = aligned(bytes, 4);
  return new Int32Array(at.buffer, at.byteOffset, bytes.length >> 2);
}

export function int64s(bytes: Uint8Array): BigInt64Array {
  const at = aligned(bytes, 8);
  return new BigInt64Array(at.buffer, at.byteOffset, bytes.length >> 3);
}

export function uint64s(bytes: Uint8Array): BigUint64Array {
  const at = aligned(bytes, 8);
  return new BigUint64Array(at.buffer, at.byteOffset, bytes.length >> 3);
}

export function uint32s(bytes: Uint8Array): Uint32Array {
  const at = aligned(bytes, 4);
  return new Uint32Array(at.buffer, at.byteOffset, bytes.length >> 2);
}

export function int16s(bytes: Uint8Array): Int16Array {
  const at = aligned(bytes, 2);
  return new Int16Array(at.buffer, at.byteOffset, bytes.length >> 1);
}

export function uint16s(bytes: Uint8Array): Uint16Array {
  const at = aligned(bytes, 2);
  return new Uint16Array(at.buffer, at.byteOffset, bytes.length >> 1);
}

export function float32s(bytes: Uint8Array): Float32Array {
  const at = aligned(bytes, 4);
  return new Float32Array(at.buffer, at.byteOffset, bytes.length >> 2);
}

export function float64s(bytes: Uint8Array): Float64Array {
  const at = aligned(bytes, 8);
  return new Float64Array(at.buffer, at.byteOffset, bytes.length >> 3);
}
