import { createGunzip, type Gunzip } from 'node:zlib';
import { invalid } from '../core/base/errors.ts';

/** Inflated bytes made at a time; also what a reader that stops early may have caused in excess. */
export const INFLATE_CHUNK_BYTES = 64 * 1024;

/**
 * Inflates a gzip stream of one or more members (RFC 1952 section 2.2), piece by piece.
 *
 * It runs only as fast as it is read: a reader that stops at its own limit has caused a few chunks more, whatever the
 * stream would inflate to. `DecompressionStream` is no substitute, since it drops every member but the first.
 *
 * Throws `invalid` `malformed-gzip` for a stream that is cut, has no member, is not gzip, fails its checksum, or goes
 * on after the last member, be it with zero bytes.
 */
export async function* gunzip(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  const inflater = createGunzip({ chunkSize: INFLATE_CHUNK_BYTES });
  const feeding = feed(inflater, chunks);
  try {
    for await (const chunk of inflater) yield chunk as Uint8Array;
  } catch (cause) {
    throw (await feeding).failure ?? malformed(cause instanceof Error ? cause.message : 'not a gzip stream', cause);
  } finally {
    inflater.destroy();
  }
  const { fed } = await feeding;
  // Zero bytes after a member end the stream silently; padding has no place in a request.
  if (inflater.bytesWritten !== fed) {
    throw malformed(`${fed - inflater.bytesWritten} bytes follow the last member`);
  }
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
async function feed(inflater: Gunzip, chunks: AsyncIterable<Uint8Array>): Promise<Fed> {
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

function malformed(reason: string, cause?: unknown) {
  return invalid('malformed-gzip', `body is not whole gzip: ${reason}`, {}, cause);
}
