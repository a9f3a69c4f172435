import { release } from '../base/release.ts';
import type { ByteStrings } from './columns.ts';

/** Slots looked at before a table gives up: entries chosen to collide must not cost quadratic time. */
const PROBES_MAX = 512;

/**
 * Numbers distinct byte strings 0, 1, 2, ... in order of first appearance, up to a limit. An open hash table over one
 * growing buffer: no object or string per entry.
 */
export class ByteInterner {
  size = 0;
  private readonly entriesMax: number;
  private bytes = new Uint8Array(256);
  private offsets = new Int32Array(17);
  private hashes = new Int32Array(16);
  /** Entry + 1; 0 is free. */
  private table = new Int32Array(32);

  constructor(entriesMax: number) {
    this.entriesMax = entriesMax;
  }

  /** Number of the string `source[from .. to]`; -1 when it is new and the interner is full. */
  intern(source: Uint8Array, from: number, to: number): number {
    const hash = hashOf(source, from, to);
    const mask = this.table.length - 1;
    let slot = hash & mask;
    let probes = 0;
    for (; this.table[slot] !== 0; slot = (slot + 1) & mask) {
      const found = this.table[slot] - 1;
      if (this.hashes[found] === hash && this.equals(found, source, from, to)) return found;
      if (++probes === PROBES_MAX) return -1;
    }
    if (this.size === this.entriesMax) return -1;
    return this.add(source, from, to, hash, slot);
  }

  /** All entries in order of their numbers. The interner is spent. */
  finish(): ByteStrings {
    const offsets = this.offsets.slice(0, this.size + 1);
    const bytes = this.bytes.slice(0, offsets[this.size]);
    for (const array of [this.bytes, this.offsets, this.hashes, this.table]) release(array);
    return { bytes, offsets };
  }

  private add(source: Uint8Array, from: number, to: number, hash: number, slot: number): number {
    const number = this.size++;
    const start = this.offsets[number];
    const end = start + to - from;
    if (end > this.bytes.length) this.bytes = grown(this.bytes, new Uint8Array(Math.max(end, 2 * this.bytes.length)));
    this.bytes.set(source.subarray(from, to), start);
    if (this.size === this.offsets.length) this.offsets = grown(this.offsets, new Int32Array(2 * this.size));
    if (number === this.hashes.length) this.hashes = grown(this.hashes, new Int32Array(2 * number));
    this.offsets[this.size] = end;
    this.hashes[number] = hash;
    this.table[slot] = this.size;
    if (2 * this.size > this.table.length) this.rehash();
    return number;
  }

  private equals(number: number, source: Uint8Array, from: number, to: number): boolean {
    const start = this.offsets[number];
    const length = to - from;
    if (this.offsets[number + 1] - start !== length) return false;
    for (let i = 0; i < length; i++) if (this.bytes[start + i] !== source[from + i]) return false;
    return true;
  }

  private rehash(): void {
    const table = new Int32Array(2 * this.table.length);
    const mask = table.length - 1;
    for (let number = 0; number < this.size; number++) {
      let slot = this.hashes[number] & mask;
      while (table[slot] !== 0) slot = (slot + 1) & mask;
      table[slot] = number + 1;
    }
    release(this.table);
    this.table = table;
  }
}

function grown<A extends Uint8Array | Int32Array>(from: A, to: A): A {
  to.set(from);
  release(from);
  return to;
}

function hashOf(bytes: Uint8Array, from: number, to: number): number {
  let hash = 0x811c9dc5;
  for (let i = from; i < to; i++) hash = Math.imul(hash ^ bytes[i], 0x01000193);
  // The low bits choose the slot: mix the high ones in.
  hash ^= hash >>> 15;
  return Math.imul(hash, 0x2c1b3c6d) ^ (hash >>> 13);
}
