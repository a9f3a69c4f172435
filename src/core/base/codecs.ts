/** Synchronous codecs and digests of the runtime, passed into the core (made by `platform/`). */

/** One zstd frame, level 3, whose output any zstd decoder reads. Input above `ZSTD_INPUT_BYTES_MAX` is allowed. */
export type Compress = (bytes: Uint8Array) => Uint8Array;

/** Decompresses exactly one frame. Throws when the result is not `length` bytes long: corrupt input. */
export type Decompress = (bytes: Uint8Array, length: number) => Uint8Array;

/** Raw deflate and inflate (no zlib header), as Avro's `deflate` codec wants. `inflate` throws above `lengthMax`. */
export interface Deflate {
  deflate(bytes: Uint8Array): Uint8Array;
  inflate(bytes: Uint8Array, lengthMax: number): Uint8Array;
}

/** SHA-256 of the parts in order, 32 bytes. */
export type Digest = (parts: readonly Uint8Array[]) => Uint8Array;
