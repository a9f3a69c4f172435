import {
  constants,
  createGunzip,
  createInflate,
  createInflateRaw,
  createZstdDecompress,
  type Gunzip,
  type Inflate,
  type InflateRaw,
  type ZstdDecompress,
} from 'node:zlib';
import { invalid, type SluiceError } from '../core/base/errors.ts';
import { ZSTD_WINDOW_LOG_MAX } from '../core/base/limits.ts';
import { zstdPieces } from './zstd-frames.ts';

/** Inflated bytes made at a time; also what a reader that stops early may have caused in excess. */
export const INFLATE_CHUNK_BYTES = 64 * 1024;

/**
 * Content codings of HTTP (RFC 9110 section 8.4.1, RFC 9659) that are inflated. `deflate` is the zlib format by the
 * standard and a raw deflate stream by many a client; which of them it is shows in its first two bytes.
 */
export const CODINGS = ['gzip', 'deflate', 'zstd'] as const;
export type Coding = (typeof CODINGS)[number];

type Inflater = Gunzip | Inflate | InflateRaw | ZstdDecompress;

/** What a coding calls the parts that may follow each other. */
const PARTS = { gzip: 'member', deflate: 'stream', zstd: 'frame' } as const;

/**
 * Inflates a stream piece by piece: gzip of one or more members (RFC 1952 section 2.2), zstd of one or more frames (RFC
 * 8878 section 3.1), or one deflate stream (RFC 1950, 1951).
 *
 * It runs only as fast as it is read: a reader that stops at its own limit has caused a few chunks more, whatever the
 * stream would inflate to. `DecompressionStream` is no substitute, since it drops every member but the first.
 *
 * Throws `invalid` `malformed-gzip`, `malformed-deflate` or `malformed-zstd` for a stream that is empty or cut, is of
 * another format, fails its checksum, or goes on behind its end, be it with zero bytes; for zstd also when a frame asks
 * for a larger window than HTTP allows.
 */
export async function* inflate(chunks: AsyncIterable<Uint8Array>, coding: Coding): AsyncGenerator<Uint8Array> {
  const { first, rest } = await begin(coding === 'zstd' ? zstdPieces(chunks) : chunks, coding === 'deflate' ? 2 : 1);
  if (first.length === 0) throw malformed(coding, 'it is empty');
  const inflater = inflaterOf(coding, first);
  const feeding = feed(inflater, rest);
  try {
    for await (const chunk of inflater) yield chunk as Uint8Array;
  } catch (cause) {
    const { failure } = await feeding;
    throw failure ?? malformed(coding, cause instanceof Error ? cause.message : 'it is of another format', cause);
  } finally {
    inflater.destroy();
  }
  const { fed } = await feeding;
  // Zero bytes behind a member end the stream silently; padding has no place in a request.
  if (inflater.bytesWritten !== fed) {
    throw malformed(coding, `${fed - inflater.bytesWritten} bytes follow the last ${PARTS[coding]}`);
  }
}

function inflaterOf(coding: Coding, first: Uint8Array): Inflater {
  const options = { chunkSize: INFLATE_CHUNK_BYTES };
  switch (coding) {
    case 'gzip':
      return createGunzip(options);
    case 'deflate':
      return isZlib(first) ? createInflate(options) : createInflateRaw(options);
    case 'zstd':
      return createZstdDecompress({
        ...options,
        params: { [constants.ZSTD_d_windowLogMax]: ZSTD_WINDOW_LOG_MAX },
      });
  }
}

/**
 * True for the header of the zlib format (RFC 1950 section 2.2): method 8, and a check over two bytes. No raw stream
 * looks like it: its first bits would say a stored block, whose padding is zero.
 */
function isZlib(first: Uint8Array): boolean {
  return first.length >= 2 && (first[0] & 0x0f) === 8 && ((first[0] << 8) | first[1]) % 31 === 0;
}

/**
 * The first `count` bytes of a stream, fewer when it has no more, and the stream with them. What was read of a chunk to
 * know them is copied: the source may write over it.
 */
async function begin(
  chunks: AsyncIterable<Uint8Array>,
  count: number,
): Promise<{ first: Uint8Array; rest: AsyncIterable<Uint8Array> }> {
  const source = chunks[Symbol.asyncIterator]();
  let first: Uint8Array = new Uint8Array(0);
  while (first.length < count) {
    const { done, value } = await source.next();
    if (done === true) break;
    if (value.length === 0) continue;
    const joined = new Uint8Array(first.length + value.length);
    joined.set(first);
    joined.set(value, first.length);
    first = joined;
  }
  async function* rest(): AsyncGenerator<Uint8Array> {
    try {
      yield first;
      for (;;) {
        const { done, value } = await source.next();
        if (done === true) return;
        yield value;
      }
    } finally {
      await source.return?.();
    }
  }
  return { first, rest: rest() };
}

interface Fed {
  /** Bytes handed to the inflater. */
  fed: number;
  /** Why the source ended early, if it did. */
  failure: unknown;
}

/**
 * Writes the chunks at the pace of the inflater, each only when the one before is used up: it may be a view that the
 * source writes over. Never rejects: a failure of the source ends the inflater too.
 */
async function feed(inflater: Inflater, chunks: AsyncIterable<Uint8Array>): Promise<Fed> {
  let fed = 0;
  const closed = new Promise<void>((resolve) => inflater.once('close', () => resolve()));
  try {
    for await (const chunk of chunks) {
      fed += chunk.length;
      const written = new Promise<void>((resolve) => inflater.write(chunk, () => resolve()));
      await Promise.race([written, closed]);
      if (inflater.destroyed) return { fed, failure: null };
    }
    inflater.end();
    return { fed, failure: null };
  } catch (failure) {
    inflater.destroy(failure instanceof Error ? failure : new Error(String(failure)));
    return { fed, failure };
  }
}

function malformed(coding: Coding, reason: string, cause?: unknown): SluiceError {
  const message = `body is not whole ${coding}: ${reason}`;
  switch (coding) {
    case 'gzip':
      return invalid('malformed-gzip', message, {}, cause);
    case 'deflate':
      return invalid('malformed-deflate', message, {}, cause);
    case 'zstd':
      return invalid('malformed-zstd', message, {}, cause);
  }
}
