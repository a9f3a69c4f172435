import { broken } from './decoding.ts';

/**
 * Decompresses one raw Snappy block (https://github.com/google/snappy/blob/main/format_description.txt) of exactly `length`
 * bytes. Errors: corrupt `parquet-corrupt` when it is damaged or has another length.
 */
export function decompressSnappy(bytes: Uint8Array, length: number): Uint8Array {
  let at = 0;
  let stated = 0;
  for (let shift = 0; ; shift += 7) {
    if (shift > 28 || at >= bytes.length) throw broken('snappy block has no length');
    const byte = bytes[at++];
    stated += (byte & 0x7f) * 2 ** shift;
    if (byte < 0x80) break;
  }
  if (stated !== length) throw broken(`snappy block of ${stated} bytes where ${length} are expected`);
  const out = new Uint8Array(length);
  let end = 0;
  while (at < bytes.length) {
    const tag = bytes[at++];
    if ((tag & 3) === 0) {
      let size = (tag >> 2) + 1;
      if (size > 60) {
        const more = size - 60;
        if (at + more > bytes.length) throw broken('snappy block ends early');
        size = 1;
        for (let i = 0; i < more; i++) size += bytes[at++] * 2 ** (8 * i);
      }
      if (size > bytes.length - at || size > length - end) throw broken('snappy literal runs past its end');
      if (size > LOOP_BYTES_MAX) out.set(bytes.subarray(at, at + size), end);
      else for (let i = 0; i < size; i++) out[end + i] = bytes[at + i];
      at += size;
      end += size;
      continue;
    }
    const form = tag & 3;
    const more = form === 1 ? 1 : form === 2 ? 2 : 4;
    if (at + more > bytes.length) throw broken('snappy block ends early');
    let size = (tag >> 2) + 1;
    let offset = bytes[at];
    if (form === 1) {
      size = ((tag >> 2) & 7) + 4;
      offset += (tag >> 5) << 8;
    } else for (let i = 1; i < more; i++) offset += bytes[at + i] * 2 ** (8 * i);
    at += more;
    if (offset === 0 || offset > end || size > length - end) throw broken('snappy copy runs past its end');
    // Byte by byte: what is copied may still be in the making.
    for (let i = 0; i < size; i++) out[end + i] = out[end + i - offset];
    end += size;
  }
  if (end !== length) throw broken('snappy block ends early');
  return out;
}

/** Below this a loop is faster than making a view. */
const LOOP_BYTES_MAX = 32;
