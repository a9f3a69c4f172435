import type { Compress } from '../base/codecs.ts';
import { ENCODING_SAMPLE_ROWS, ENCODING_TRIAL_BYTES_MIN } from '../base/encoding-limits.ts';
import { ZSTD_INPUT_BYTES_MAX } from '../base/limits.ts';
import { release } from '../base/release.ts';
import type { Dense } from './dense.ts';
import { buildDictionary, type LocalDictionary, releaseDictionary } from './dictionary.ts';
import { BYTE_STREAM_SPLIT, DELTA_BINARY_PACKED, DOUBLE, FLOAT, type Leaf, PLAIN, RLE_DICTIONARY } from './layout.ts';
import { encodeValues } from './page.ts';
import type { ByteSink } from './sink.ts';

/** `compatible` allows only what every reader of the last ten years knows: PLAIN and dictionary. */
export type Encodings = 'auto' | 'compatible';

export interface Choice {
  encoding: number;
  dictionary: LocalDictionary | null;
}

/** Header of a dictionary page, its entry in the footer and the frame around it. */
const DICTIONARY_OVERHEAD = 40;

/** Encodings besides PLAIN and dictionary that may be tried. Decimals are left out: few readers expect them there. */
function special(leaf: Leaf): number | null {
  switch (leaf.type) {
    case 'int':
    case 'long':
    case 'date':
    case 'time':
    case 'timestamp':
    case 'timestamptz':
      return DELTA_BINARY_PACKED;
  }
  return leaf.physical === FLOAT || leaf.physical === DOUBLE ? BYTE_STREAM_SPLIT : null;
}

/** Whether so few values say anything about the column's encoding; no values do not. */
export function worthTrying(dense: Dense): boolean {
  return plainBytes(dense) >= ENCODING_TRIAL_BYTES_MIN;
}

/** Bytes of the values in PLAIN, counted no further than `ENCODING_TRIAL_BYTES_MIN`. */
function plainBytes(dense: Dense): number {
  const { count } = dense;
  switch (dense.kind) {
    case 'boolean':
      return count >> 3;
    case 'word':
      return 4 * count;
    case 'pair':
      return 8 * count;
    case 'fixed':
      return dense.width * count;
    case 'strings': {
      const { offsets } = dense.strings;
      let bytes = 4 * count;
      for (let i = 0; i < count && bytes < ENCODING_TRIAL_BYTES_MIN; i++) {
        bytes += offsets[dense.codes[i] + 1] - offsets[dense.codes[i]];
      }
      return bytes;
    }
  }
}

/**
 * The encoding that makes the chunk smallest after compression, judged on a stretch from its middle: PLAIN or
 * dictionary at a tie (design section 14). The chunk is `worthTrying`; `sink` is scratch.
 */
export function chooseEncoding(
  leaf: Leaf,
  dense: Dense,
  encodings: Encodings,
  compress: Compress,
  sink: ByteSink,
): Choice {
  const plain: Choice = { encoding: PLAIN, dictionary: null };
  const { count } = dense;
  if (dense.kind === 'boolean') return plain;
  const { from, to } = sampleOf(dense);
  const sizeOf = (choice: Choice): number => {
    sink.clear();
    encodeValues(sink, dense, choice.encoding, choice.dictionary, from, to);
    const size = (compressedLength(sink, compress) * count) / (to - from);
    if (choice.dictionary === null) return size;
    const { entries } = choice.dictionary;
    sink.clear();
    encodeValues(sink, entries, PLAIN, null, 0, entries.count);
    return size + compressedLength(sink, compress) + DICTIONARY_OVERHEAD;
  };
  const dictionary = buildDictionary(dense);
  const candidates: Choice[] = [];
  // Where no value comes twice, the dictionary is the plain page itself, and there are the indices beside it.
  if (dictionary !== null && dictionary.entries.count < count) {
    candidates.push({ encoding: RLE_DICTIONARY, dictionary });
  } else if (dictionary !== null) releaseDictionary(dictionary);
  const other = encodings === 'auto' ? special(leaf) : null;
  if (other !== null) candidates.push({ encoding: other, dictionary: null });
  // Nothing to choose from: many columns of one append are so.
  if (candidates.length === 0) return plain;
  let best = plain;
  let least = sizeOf(plain);
  for (const candidate of candidates) {
    const size = sizeOf(candidate);
    if (size < least) {
      best = candidate;
      least = size;
    }
  }
  if (dictionary !== null && best.dictionary !== dictionary) releaseDictionary(dictionary);
  return best;
}

function compressedLength(sink: ByteSink, compress: Compress): number {
  const compressed = compress(sink.view());
  const { length } = compressed;
  // A compressor may give back what it got.
  if (compressed.buffer !== sink.bytes.buffer) release(compressed);
  return length;
}

/** The middle of the chunk: its start may hold one device only, or the values of a start-up. */
function sampleOf(dense: Dense): { from: number; to: number } {
  const { count } = dense;
  const rows = Math.min(count, ENCODING_SAMPLE_ROWS);
  const from = (count - rows) >> 1;
  let to = from + rows;
  if (dense.kind === 'strings') {
    const { offsets } = dense.strings;
    let bytes = 0;
    for (let i = from; i < to; i++) {
      bytes += 4 + offsets[dense.codes[i] + 1] - offsets[dense.codes[i]];
      if (bytes > ZSTD_INPUT_BYTES_MAX && i > from) to = i;
    }
  }
  return { from, to };
}
