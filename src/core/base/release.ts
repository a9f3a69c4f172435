/** Below this an array may lie in the heap itself, and what it takes is not worth a call. */
const RELEASED_BYTES_MIN = 1024;

/**
 * Gives the memory of an array back at once. A runtime collects array buffers late, since its heap knows them by a small
 * object each: what streams megabytes through arrays of its own then holds a multiple of what it uses.
 *
 * The array and all views of its buffer have no elements afterwards, so this is for whoever made it and has let no one
 * keep it. Views of a part of a buffer are left alone: the rest is someone else's.
 */
export function release(view: Releasable): void {
  if (view.byteLength === view.buffer.byteLength) releaseBuffer(view);
}

/** The same of the whole buffer behind a view, whatever part of it the view is: for scratch of which only a part is kept. */
export function releaseBuffer({ buffer }: Releasable): void {
  if (buffer.byteLength >= RELEASED_BYTES_MIN && buffer instanceof ArrayBuffer) buffer.transfer(0);
}

export type Releasable = Uint8Array | Int32Array | Uint32Array | BigInt64Array | Float32Array | Float64Array;
