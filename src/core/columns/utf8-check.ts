import type { ByteStrings } from './columns.ts';

/** Bytes decoded at a time: the text that comes of it is thrown away. */
const CHUNK_BYTES = 65_536;

/** True when the bytes `from .. to` are UTF-8. */
export function isUtf8(bytes: Uint8Array, from: number, to: number): boolean {
  return firstNonAscii(bytes, from, to) === to || decodes(bytes, from, to);
}

/** The entries that are not UTF-8, in order. All at once where they are, which is nearly always. */
export function malformedEntries(strings: ByteStrings): number[] {
  const { bytes, offsets } = strings;
  const entries = offsets.length - 1;
  const end = offsets[entries];
  const ascii = firstNonAscii(bytes, offsets[0], end);
  if (ascii === end) return [];
  if (decodes(bytes, ascii, end)) {
    // Whole text may still be cut apart in the middle of a character.
    let split = false;
    for (let i = 0; i <= entries && !split; i++) split = offsets[i] < end && (bytes[offsets[i]] & 0xc0) === 0x80;
    if (!split) return [];
  }
  const out: number[] = [];
  for (let i = 0; i < entries; i++) if (!isUtf8(bytes, offsets[i], offsets[i + 1])) out.push(i);
  return out;
}

function firstNonAscii(bytes: Uint8Array, from: number, to: number): number {
  let at = from;
  while (at < to && bytes[at] < 0x80) at++;
  return at;
}

function decodes(bytes: Uint8Array, from: number, to: number): boolean {
  const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });
  try {
    let at = from;
    for (; to - at > CHUNK_BYTES; at += CHUNK_BYTES)
      decoder.decode(bytes.subarray(at, at + CHUNK_BYTES), { stream: true });
    decoder.decode(bytes.subarray(at, to));
    return true;
  } catch {
    return false;
  }
}
