const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** UTF-8 bytes of a text. Lone surrogates become U+FFFD, as everywhere in the platform: refuse them before. */
export function utf8(text: string): Uint8Array {
  return encoder.encode(text);
}

const lenient = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** Text of bytes that others wrote: what is no UTF-8 in them is shown as U+FFFD. */
export function shownText(bytes: Uint8Array): string {
  return lenient.decode(bytes);
}

/** Text of UTF-8 bytes. Throws a TypeError on malformed input. A leading U+FEFF is kept. */
export function textOf(bytes: Uint8Array): string {
  return decoder.decode(bytes);
}

/** One array holding the parts in order. */
export function concat(parts: readonly Uint8Array[]): Uint8Array {
  let length = 0;
  for (const part of parts) length += part.length;
  const out = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Unsigned lexicographic order: negative, zero or positive. For UTF-8 this is code point order. */
export function compareBytes(a: Uint8Array, b: Uint8Array): number {
  const shared = Math.min(a.length, b.length);
  for (let i = 0; i < shared; i++) {
    const difference = a[i] - b[i];
    if (difference !== 0) return difference;
  }
  return a.length - b.length;
}

/** True when both hold the same bytes. */
export function equalBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && compareBytes(a, b) === 0;
}

const HEX = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'));

/** Lower-case hexadecimal. */
export function hex(bytes: Uint8Array): string {
  let out = '';
  for (let i = 0; i < bytes.length; i++) out += HEX[bytes[i]];
  return out;
}

/** Bytes of hexadecimal text of even length; `null` when it is not that. */
export function fromHex(text: string): Uint8Array | null {
  if (text.length % 2 !== 0 || !/^[0-9a-fA-F]*$/.test(text)) return null;
  const out = new Uint8Array(text.length / 2);
  for (let i = 0; i < out.length; i++) out[i] = Number.parseInt(text.slice(2 * i, 2 * i + 2), 16);
  return out;
}
