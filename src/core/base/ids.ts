import { assert } from './assert.ts';
import { fromHex, hex, utf8 } from './bytes.ts';
import type { Digest } from './codecs.ts';

/** Identifiers made from what is passed in: a time, random bytes, a hash. Nothing here draws anything itself. */

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
const TIME_MS_MAX = 2 ** 48 - 1;

/** Lower-case text of 16 bytes, 8-4-4-4-12. */
export function formatUuid(bytes: Uint8Array): string {
  assert(bytes.length === 16, 'a uuid has 16 bytes');
  const text = hex(bytes);
  return `${text.slice(0, 8)}-${text.slice(8, 12)}-${text.slice(12, 16)}-${text.slice(16, 20)}-${text.slice(20)}`;
}

/** The 16 bytes of a uuid's text, any case; null when it is not one. */
export function parseUuid(text: string): Uint8Array | null {
  return UUID.test(text) ? fromHex(text.replaceAll('-', '')) : null;
}

/** Text of a version 7 uuid: milliseconds since 1970 in front, then bits of the first ten random bytes (RFC 9562). */
export function uuidV7(ms: number, random: Uint8Array): string {
  assert(Number.isInteger(ms) && ms >= 0 && ms <= TIME_MS_MAX, 'time of a uuid is 48 bits of milliseconds');
  assert(random.length >= 10, 'a uuid takes ten random bytes');
  const bytes = new Uint8Array(16);
  new DataView(bytes.buffer).setUint32(0, Math.floor(ms / 65_536));
  new DataView(bytes.buffer).setUint16(4, ms % 65_536);
  bytes.set(random.subarray(0, 10), 6);
  bytes[6] = (bytes[6] & 0x0f) | 0x70;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return formatUuid(bytes);
}

/** Text of a version 4 uuid from 16 random bytes. */
export function uuidV4(random: Uint8Array): string {
  assert(random.length >= 16, 'a uuid takes sixteen random bytes');
  const bytes = random.slice(0, 16);
  bytes[6] = (bytes[6] & 0x0f) | 0x40;
  bytes[8] = (bytes[8] & 0x3f) | 0x80;
  return formatUuid(bytes);
}

/**
 * A snapshot id from seven random bytes: 1 .. 2^53 - 1, so that readers whose JSON numbers are doubles keep it whole.
 * The caller checks it against the table's snapshots (J3).
 */
export function snapshotIdOf(random: Uint8Array): bigint {
  assert(random.length >= 7, 'a snapshot id takes seven random bytes');
  let id = BigInt(random[0] & 0x1f);
  for (let i = 1; i < 7; i++) id = (id << 8n) | BigInt(random[i]);
  return id === 0n ? 1n : id;
}

/** The 16 bytes that part the blocks of one Avro file, the same on every run of an intent: from its seed and a label. */
export function syncMarker(seed: Uint8Array, label: string, digest: Digest): Uint8Array {
  return digest([seed, utf8(`sync:${label}`)]).slice(0, 16);
}

/**
 * Name of an object after its content: a version 7 uuid of the intent's time and bits of a hash over the bytes. Equal
 * bytes of one intent get one name, other bytes another: a key never holds two contents.
 */
export function contentName(ms: number, hash: Uint8Array): string {
  return uuidV7(ms, hash);
}
