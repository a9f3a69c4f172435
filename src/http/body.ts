import { assert } from '../core/base/assert.ts';
import { invalid } from '../core/base/errors.ts';
import { BODY_BYTES_MAX, BODY_WINDOW_BYTES, LINE_BYTES_MAX } from '../core/base/limits.ts';
import { incrementalSha256 } from '../platform/hash.ts';
import { CODINGS, type Coding, inflate } from '../platform/inflate.ts';

export interface BodyOptions {
  /** The header `Content-Encoding`: absent, `identity`, `gzip`, `deflate` or `zstd`; one, not several. */
  contentEncoding: string | null;
  /** Inflated bytes that are taken; more is `body-too-large`. */
  bytesMax?: number;
  /** Bytes handed on at a time, at least. */
  windowBytes?: number;
  /** False where nothing will ask whether a body came before: a digest costs as much as reading it. */
  digested?: boolean;
}

export interface BodyFacts {
  /** Inflated bytes. */
  bytes: number;
  /** SHA-256 of the inflated bytes: equal bodies are equal batches, compressed or not. Empty when it was not asked for. */
  digest: Uint8Array;
}

/**
 * Takes the bytes of a window from its start and says how many; the rest is given again with more behind it. `last` is
 * true once, in the last call, which takes everything. Reading goes on when a promise is kept.
 */
export type TakeWindow = (bytes: Uint8Array, last: boolean) => number | Promise<number>;

/**
 * Reads a request body window by window, never whole, and inflates it on the way. The window is a view that is only
 * valid during the call. A UTF-8 byte order mark at the start is left out.
 *
 * A taker that cannot take anything yet is given more: twice as much each time, up to `LINE_BYTES_MAX` and a window;
 * from there it must take or throw.
 *
 * Throws `invalid`: `unsupported-encoding`, `body-too-large`, `body-interrupted`, what `inflate` throws and what `take`
 * throws. The body is cancelled then.
 */
export async function readWindows(
  body: ReadableStream<Uint8Array> | null,
  { contentEncoding, bytesMax = BODY_BYTES_MAX, windowBytes = BODY_WINDOW_BYTES, digested = true }: BodyOptions,
  take: TakeWindow,
): Promise<BodyFacts> {
  const coding = codingOf(contentEncoding);
  const sent = body === null ? nothing() : chunksOf(body);
  const hash = digested ? incrementalSha256() : null;
  let bytes = 0;
  let buffer = new Uint8Array(0);
  let held = 0;
  // Three bytes are enough to know a byte order mark.
  let wanted = Math.max(windowBytes, 3);
  let started = false;

  async function handOn(last: boolean): Promise<void> {
    const from = started ? 0 : byteOrderMark(buffer, held);
    started = true;
    const took = take(buffer.subarray(from, held), last);
    const taken = from + (typeof took === 'number' ? took : await took);
    assert(taken <= held && (!last || taken === held), 'the last window is taken whole');
    buffer.copyWithin(0, taken, held);
    held -= taken;
    wanted = held + Math.max(windowBytes, Math.min(held, LINE_BYTES_MAX + windowBytes - held));
  }

  for await (const chunk of coding === null ? sent : inflate(atMost(sent, bytesMax), coding)) {
    bytes += chunk.length;
    if (bytes > bytesMax) throw invalid('body-too-large', `body is larger than ${bytesMax} bytes`, { bytesMax });
    hash?.update(chunk);
    if (held + chunk.length > buffer.length) {
      const grown = new Uint8Array(Math.max(held + chunk.length, Math.min(2 * buffer.length, wanted + chunk.length)));
      grown.set(buffer.subarray(0, held));
      buffer = grown;
    }
    buffer.set(chunk, held);
    held += chunk.length;
    if (held >= wanted) await handOn(false);
  }
  await handOn(true);
  return { bytes, digest: hash?.finish() ?? new Uint8Array(0) };
}

/** What a `Content-Encoding` names; null for none. Several in a row would multiply what a small body inflates to. */
function codingOf(header: string | null): Coding | null {
  const name = (header ?? 'identity').trim().toLowerCase();
  if (name === 'identity' || name === '') return null;
  const coding = CODINGS.find((known) => known === name);
  if (coding !== undefined) return coding;
  const supported = [...CODINGS, 'identity'];
  throw invalid('unsupported-encoding', `content-encoding must be one of ${supported.join(', ')}: ${name}`, {
    supported,
  });
}

/**
 * Ends a compressed body that is larger than what it may inflate to, and than what packing can add to bytes that do not
 * pack: of empty blocks a stream can have any number.
 */
async function* atMost(chunks: AsyncIterable<Uint8Array>, bytesMax: number): AsyncGenerator<Uint8Array> {
  const most = bytesMax + Math.ceil(bytesMax / 64) + 1024;
  let bytes = 0;
  for await (const chunk of chunks) {
    bytes += chunk.length;
    if (bytes > most)
      throw invalid('body-too-large', `body is larger than ${most} bytes before it is inflated`, { bytesMax });
    yield chunk;
  }
}

function byteOrderMark(buffer: Uint8Array, length: number): number {
  return length >= 3 && buffer[0] === 0xef && buffer[1] === 0xbb && buffer[2] === 0xbf ? 3 : 0;
}

async function* nothing(): AsyncGenerator<Uint8Array> {}

/** `readAtLeast` is the runtime's own; elsewhere the standard `min` of a read does the same. */
interface ByobReader {
  read(view: Uint8Array, options?: { min: number }): Promise<{ done: boolean; value?: Uint8Array }>;
  readAtLeast?(bytesMin: number, view: Uint8Array): Promise<{ done: boolean; value?: Uint8Array }>;
  cancel(reason?: unknown): Promise<void>;
}

type Read = { done: boolean; value?: Uint8Array };

/** Pieces of a stream, in large ones where it is a byte stream: a socket gives 4 KiB at a time, each a round of awaits. */
async function* chunksOf(body: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const { read, cancel } = readerOf(body);
  try {
    for (;;) {
      let piece: Read;
      try {
        piece = await read();
      } catch (cause) {
        throw invalid('body-interrupted', 'body ended before it was whole', {}, cause);
      }
      if (piece.value !== undefined && piece.value.length > 0) yield piece.value;
      if (piece.done) return;
    }
  } finally {
    // Of no effect on a stream that has ended. Nobody waits: the other side may be gone.
    cancel().catch(() => {});
  }
}

/** A piece is valid until the next is read. */
function readerOf(body: ReadableStream<Uint8Array>): { read(): Promise<Read>; cancel(): Promise<void> } {
  let byob: ByobReader;
  try {
    byob = body.getReader({ mode: 'byob' }) as unknown as ByobReader;
  } catch {
    // Not a byte stream.
    const reader = body.getReader();
    return { read: () => reader.read() as Promise<Read>, cancel: () => reader.cancel() };
  }
  let view = new Uint8Array(BODY_WINDOW_BYTES);
  return {
    async read() {
      const min = view.length;
      const piece = await (byob.readAtLeast?.(min, view) ?? byob.read(view, { min }));
      // The buffer went into the stream and came back as another object.
      const buffer =
        piece.value === undefined ? new ArrayBuffer(BODY_WINDOW_BYTES) : (piece.value.buffer as ArrayBuffer);
      view = new Uint8Array(buffer);
      return piece;
    },
    cancel: () => byob.cancel(),
  };
}
