import type { Value } from '../../src/core/iceberg/types.ts';
import { leastBigEndian, type Primitive, parsePrimitive } from './values.ts';

/** Type of a transform's results (spec: partition-transforms); null when the transform does not take the type. */
export function resultType(transform: string, source: Primitive): Primitive | null {
  const dated = ['date', 'timestamp', 'timestamptz'].includes(source.name);
  if (transform === 'identity' || transform === 'void') return source;
  if (transform === 'day') return dated ? parsePrimitive('date') : null;
  if (transform === 'year' || transform === 'month') return dated ? parsePrimitive('int') : null;
  if (transform === 'hour') return dated && source.name !== 'date' ? parsePrimitive('int') : null;
  if (/^bucket\[[1-9]\d*\]$/.test(transform))
    return ['boolean', 'float', 'double'].includes(source.name) ? null : parsePrimitive('int');
  if (/^truncate\[[1-9]\d*\]$/.test(transform))
    return ['int', 'long', 'decimal', 'string', 'binary'].includes(source.name) ? source : null;
  return null;
}

/** The hash of Appendix B (murmur3, 32 bit, x86, seed 0), as an unsigned number. */
export function murmur3(bytes: Uint8Array): number {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const rotate = (v: number, by: number) => (v << by) | (v >>> (32 - by));
  const mix = (k: number) => Math.imul(rotate(Math.imul(k, 0xcc9e2d51), 15), 0x1b873593);
  let hash = 0;
  const whole = bytes.length - (bytes.length % 4);
  for (let i = 0; i < whole; i += 4)
    hash = (Math.imul(rotate(hash ^ mix(view.getUint32(i, true)), 13), 5) + 0xe6546b64) | 0;
  let tail = 0;
  for (let i = bytes.length - 1; i >= whole; i--) tail = (tail << 8) | bytes[i];
  if (whole < bytes.length) hash ^= mix(tail);
  hash ^= bytes.length;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** The bytes the bucket transform hashes for a value. */
export function hashInput(source: Primitive, value: Value): Uint8Array {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  if (value instanceof Uint8Array) return value;
  if (source.name === 'decimal') return leastBigEndian(value as bigint);
  const bytes = new Uint8Array(8);
  new DataView(bytes.buffer).setBigInt64(0, BigInt(value as number | bigint), true);
  return bytes;
}

function floorDiv(a: bigint, b: bigint): bigint {
  const quotient = a / b;
  return a % b < 0n ? quotient - 1n : quotient;
}

/** Applies a transform to a value of the source type. Null gives null. */
export function applyTransform(transform: string, source: Primitive, value: Value): Value {
  if (value === null || transform === 'void') return null;
  if (transform === 'identity') return value;
  const width = BigInt(/\[(\d+)\]/.exec(transform)?.[1] ?? 1);
  if (transform.startsWith('bucket')) return (murmur3(hashInput(source, value)) & 0x7fffffff) % Number(width);
  if (transform.startsWith('truncate')) {
    if (typeof value === 'string') return Array.from(value).slice(0, Number(width)).join('');
    if (value instanceof Uint8Array) return value.slice(0, Number(width));
    const floored = floorDiv(BigInt(value as number | bigint), width) * width;
    return typeof value === 'number' ? Number(floored) : floored;
  }
  const days = source.name === 'date' ? BigInt(value as number) : floorDiv(value as bigint, 86_400_000_000n);
  if (transform === 'day') return Number(days);
  if (transform === 'hour') return Number(floorDiv(value as bigint, 3_600_000_000n));
  const date = new Date(Number(days) * 86_400_000);
  const years = date.getUTCFullYear() - 1970;
  if (transform === 'year') return years;
  if (transform === 'month') return years * 12 + date.getUTCMonth();
  throw new Error(`unknown transform ${transform}`);
}
