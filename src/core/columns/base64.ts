const DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';

/** Base64 with padding (RFC 4648 section 4). */
export function toBase64(bytes: Uint8Array): string {
  let out = '';
  for (let at = 0; at < bytes.length; at += 3) {
    const left = bytes.length - at;
    const bits = (bytes[at] << 16) | ((bytes[at + 1] ?? 0) << 8) | (bytes[at + 2] ?? 0);
    out += DIGITS[bits >> 18] + DIGITS[(bits >> 12) & 63];
    out += left > 1 ? DIGITS[(bits >> 6) & 63] : '=';
    out += left > 2 ? DIGITS[bits & 63] : '=';
  }
  return out;
}
