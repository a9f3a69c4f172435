import { DICTIONARY_PAGE_BYTES_MAX } from '../base/encoding-limits.ts';
import { type Releasable, release, releaseBuffer } from '../base/release.ts';
import type { Dense } from './dense.ts';

/** A chunk's own dictionary: its entries in order of first appearance, and for each value the index of its entry. */
export interface LocalDictionary {
  entries: Dense;
  indices: Int32Array;
}

/** Values looked at before the work of a dictionary is begun, and how many of them may be distinct. */
const PROBE = 2048;
const PROBE_DISTINCT_MAX = Math.floor(PROBE * 0.97);

/**
 * The dictionary of a chunk's values, or null when it cannot pay: booleans, no values, a page above
 * `DICTIONARY_PAGE_BYTES_MAX`, or more than two thirds of the values distinct. Floating-point values are told apart
 * by their bits, so both zeros and every NaN come back as they were.
 */
export function buildDictionary(dense: Dense): LocalDictionary | null {
  const { count } = dense;
  if (count === 0) return null;
  // A table of tens of thousands of entries is slow to fill, and mostly distinct values show in a few.
  if (count > 4 * PROBE && build(probe(dense), PROBE_DISTINCT_MAX) === null) return null;
  // A chunk of a few values may be all distinct: the caller compares sizes anyway.
  return build(dense, Math.max(16, Math.floor((count * 2) / 3)));
}

/** Gives the memory of a dictionary back. Texts are the column's own. */
export function releaseDictionary({ entries, indices }: LocalDictionary): void {
  release(indices);
  switch (entries.kind) {
    case 'word':
    case 'pair':
      releaseBuffer(entries.words);
      break;
    case 'fixed':
      release(entries.bytes);
      break;
    case 'strings':
      releaseBuffer(entries.codes);
      break;
  }
}

function givenUp(...scratch: Releasable[]): null {
  for (const array of scratch) release(array);
  return null;
}

function build(dense: Dense, distinctMax: number): LocalDictionary | null {
  switch (dense.kind) {
    case 'boolean':
      return null;
    case 'word':
      return ofWords(dense, distinctMax);
    case 'pair':
      return ofPairs(dense, distinctMax);
    case 'fixed':
      return ofFixed(dense, distinctMax);
    case 'strings':
      return dense.unique ? ofCodes(dense, distinctMax) : ofStrings(dense, distinctMax);
  }
}

/** Values from all over the chunk. */
function probe(dense: Dense): Dense {
  const at = (i: number): number => Math.floor((i * dense.count) / PROBE);
  switch (dense.kind) {
    case 'word':
      return { ...dense, count: PROBE, words: Int32Array.from({ length: PROBE }, (_, i) => dense.words[at(i)]) };
    case 'pair': {
      const words = new Int32Array(2 * PROBE);
      for (let i = 0; i < PROBE; i++) {
        words[2 * i] = dense.words[2 * at(i)];
        words[2 * i + 1] = dense.words[2 * at(i) + 1];
      }
      return { ...dense, count: PROBE, words };
    }
    case 'strings':
      return { ...dense, count: PROBE, codes: Int32Array.from({ length: PROBE }, (_, i) => dense.codes[at(i)]) };
    default:
      return dense;
  }
}

type Of<K extends Dense['kind']> = Extract<Dense, { kind: K }>;

/** An open-addressing table of entry numbers plus one, at most half full. */
function tableFor(entriesMax: number): { table: Int32Array; shift: number } {
  const bits = Math.max(4, 32 - Math.clz32(2 * entriesMax));
  return { table: new Int32Array(2 ** bits), shift: 32 - bits };
}

function ofWords(dense: Of<'word'>, distinctMax: number): LocalDictionary | null {
  const { words, count } = dense;
  const entriesMax = Math.min(distinctMax, DICTIONARY_PAGE_BYTES_MAX / 4, count);
  const { table, shift } = tableFor(entriesMax);
  const mask = table.length - 1;
  const entries = new Int32Array(entriesMax);
  const indices = new Int32Array(count);
  let size = 0;
  for (let i = 0; i < count; i++) {
    const word = words[i];
    let slot = Math.imul(word, 0x9e3779b1) >>> shift;
    let found = table[slot];
    while (found !== 0 && entries[found - 1] !== word) {
      slot = (slot + 1) & mask;
      found = table[slot];
    }
    if (found === 0) {
      if (size === entriesMax) return givenUp(table, entries, indices);
      entries[size] = word;
      found = ++size;
      table[slot] = found;
    }
    indices[i] = found - 1;
  }
  release(table);
  return { entries: { kind: 'word', count: size, words: entries.subarray(0, size), floats: null }, indices };
}

function ofPairs(dense: Of<'pair'>, distinctMax: number): LocalDictionary | null {
  const { words, count } = dense;
  const entriesMax = Math.min(distinctMax, DICTIONARY_PAGE_BYTES_MAX / 8, count);
  const { table, shift } = tableFor(entriesMax);
  const mask = table.length - 1;
  const entries = new Int32Array(2 * entriesMax);
  const indices = new Int32Array(count);
  let size = 0;
  for (let i = 0; i < count; i++) {
    const lo = words[2 * i];
    const hi = words[2 * i + 1];
    // The high half is mixed on its own first: doubles of short decimals differ in few bits of either half.
    const mixed = Math.imul(hi, 0x85ebca6b);
    let slot = Math.imul(lo ^ mixed ^ (mixed >>> 15), 0x9e3779b1) >>> shift;
    let found = table[slot];
    while (found !== 0 && (entries[2 * found - 2] !== lo || entries[2 * found - 1] !== hi)) {
      slot = (slot + 1) & mask;
      found = table[slot];
    }
    if (found === 0) {
      if (size === entriesMax) return givenUp(table, entries, indices);
      entries[2 * size] = lo;
      entries[2 * size + 1] = hi;
      found = ++size;
      table[slot] = found;
    }
    indices[i] = found - 1;
  }
  release(table);
  return { entries: { kind: 'pair', count: size, words: entries.subarray(0, 2 * size), floats: null }, indices };
}

function ofFixed(dense: Of<'fixed'>, distinctMax: number): LocalDictionary | null {
  const { bytes, width, count } = dense;
  const offsets = new Int32Array(count + 1);
  for (let i = 0; i <= count; i++) offsets[i] = i * width;
  const codes = new Int32Array(count);
  for (let i = 0; i < count; i++) codes[i] = i;
  const found = ofStrings({ kind: 'strings', count, strings: { bytes, offsets }, codes, unique: false }, distinctMax);
  release(offsets);
  release(codes);
  if (found === null || found.entries.kind !== 'strings') return null;
  const entries = new Uint8Array(found.entries.count * width);
  found.entries.codes.forEach((code, i) => {
    entries.set(bytes.subarray(code * width, (code + 1) * width), i * width);
  });
  releaseBuffer(found.entries.codes);
  return { entries: { kind: 'fixed', count: found.entries.count, width, bytes: entries }, indices: found.indices };
}

/** Codes of the column's dictionary are mapped to the chunk's; no string is looked at but for its length. */
function ofCodes(dense: Of<'strings'>, distinctMax: number): LocalDictionary | null {
  const { strings, codes, count } = dense;
  const local = new Int32Array(strings.offsets.length - 1);
  const order = new Int32Array(Math.min(distinctMax, count));
  const indices = new Int32Array(count);
  let size = 0;
  let bytes = 0;
  for (let i = 0; i < count; i++) {
    const code = codes[i];
    let found = local[code];
    if (found === 0) {
      bytes += 4 + strings.offsets[code + 1] - strings.offsets[code];
      if (size === order.length || bytes > DICTIONARY_PAGE_BYTES_MAX) return givenUp(local, order, indices);
      order[size] = code;
      found = ++size;
      local[code] = found;
    }
    indices[i] = found - 1;
  }
  release(local);
  return { entries: { kind: 'strings', count: size, strings, codes: order.subarray(0, size), unique: true }, indices };
}

function ofStrings(dense: Of<'strings'>, distinctMax: number): LocalDictionary | null {
  const { strings, codes, count } = dense;
  const { bytes, offsets } = strings;
  const entriesMax = Math.min(distinctMax, count);
  const { table, shift } = tableFor(entriesMax);
  const mask = table.length - 1;
  const order = new Int32Array(entriesMax);
  const hashes = new Int32Array(entriesMax);
  const indices = new Int32Array(count);
  let size = 0;
  let total = 0;
  for (let i = 0; i < count; i++) {
    const start = offsets[codes[i]];
    const end = offsets[codes[i] + 1];
    let hash = end - start;
    for (let k = start; k < end; k++) hash = Math.imul(hash ^ bytes[k], 0x01000193);
    let slot = Math.imul(hash, 0x9e3779b1) >>> shift;
    let found = table[slot];
    while (found !== 0 && (hashes[found - 1] !== hash || !same(bytes, offsets, order[found - 1], start, end))) {
      slot = (slot + 1) & mask;
      found = table[slot];
    }
    if (found === 0) {
      total += 4 + end - start;
      if (size === entriesMax || total > DICTIONARY_PAGE_BYTES_MAX) return givenUp(table, order, hashes, indices);
      order[size] = codes[i];
      hashes[size] = hash;
      found = ++size;
      table[slot] = found;
    }
    indices[i] = found - 1;
  }
  release(table);
  release(hashes);
  return { entries: { kind: 'strings', count: size, strings, codes: order.subarray(0, size), unique: true }, indices };
}

function same(bytes: Uint8Array, offsets: Int32Array, entry: number, start: number, end: number): boolean {
  const from = offsets[entry];
  if (offsets[entry + 1] - from !== end - start) return false;
  for (let k = start; k < end; k++) if (bytes[from + k - start] !== bytes[k]) return false;
  return true;
}
