import type { Compress } from '../base/codecs.ts';
import { ENCODING_CHOICE_ROWS } from '../base/encoding-limits.ts';
import { release } from '../base/release.ts';
import type { Column } from '../columns/columns.ts';
import type { Value } from '../iceberg/types.ts';
import { type Choice, chooseEncoding, type Encodings, worthTrying } from './choose.ts';
import { countValid, type Dense, densify, releaseDense } from './dense.ts';
import { buildDictionary, releaseDictionary } from './dictionary.ts';
import type { BoundaryOrder, ChunkFacts, PageFacts } from './footer-write.ts';
import { type Leaf, PLAIN, RLE_DICTIONARY } from './layout.ts';
import {
  type Chunk,
  cutPages,
  encodeLevels,
  encodeValues,
  writeDataPageHeader,
  writeDictionaryPageHeader,
} from './page.ts';
import type { ByteSink } from './sink.ts';
import { boundBytes, compareAt, extremesOf, extremesOfIndices, valueAt } from './statistics.ts';

/** A chunk as written, with what a manifest wants to know of its values, uncut. */
export interface WrittenChunk {
  facts: ChunkFacts;
  /** Null for types without NaN. */
  nans: number | null;
  lower: Value;
  upper: Value;
}

/** Encodes the chunks of one column, row group after row group, and remembers which encoding suited it. */
export class ChunkWriter {
  readonly #leaf: Leaf;
  readonly #encodings: Encodings;
  readonly #compress: Compress;
  readonly #page: ByteSink;
  #encoding: number | null = null;
  #rowsSinceChoice = 0;

  /** `page` is scratch, for all columns of a file: fresh memory costs more than what is done with it here. */
  constructor(leaf: Leaf, encodings: Encodings, compress: Compress, page: ByteSink) {
    this.#page = page;
    this.#leaf = leaf;
    this.#encodings = encodings;
    this.#compress = compress;
  }

  /** Appends rows `from` to `to` of the column as one chunk. `position` is the file offset of the sink's first byte. */
  write(sink: ByteSink, position: number, column: Column, from: number, to: number): WrittenChunk {
    const leaf = this.#leaf;
    const rows = to - from;
    const dense = densify(column, from, to);
    const validity = dense.count === rows ? null : column.validity!.subarray(from, to);
    const chunk: Chunk = { leaf, rows, validity, dense };
    const { encoding, dictionary } = this.#choose(dense, rows);
    const start = sink.length;
    const facts: ChunkFacts = {
      leaf,
      encoding,
      dictionaryOffset: null,
      dataOffset: 0,
      uncompressed: 0,
      compressed: 0,
      values: rows,
      nulls: rows - dense.count,
      bounds: null,
      boundaryOrder: 0,
      pages: [],
    };
    if (dictionary !== null) {
      const { entries } = dictionary;
      facts.dictionaryOffset = position + start;
      this.#page.clear();
      encodeValues(this.#page, entries, PLAIN, null, 0, entries.count);
      facts.uncompressed += this.#flush(sink, (sizes) => {
        writeDictionaryPageHeader(sink, { rows: entries.count, ...sizes });
      });
    }
    facts.dataOffset = position + sink.length;

    // Byte strings in a dictionary are compared once an entry; numbers are faster compared where they stand.
    const byEntry = dictionary !== null && (dense.kind === 'strings' || dense.kind === 'fixed');
    const source: Dense = byEntry ? dictionary.entries : dense;
    const order = new OrderTracker(leaf, source);
    let min = -1;
    let max = -1;
    let nans = 0;
    let at = 0;
    const starts = cutPages(chunk, encoding);
    for (let page = 0; page + 1 < starts.length; page++) {
      const pageFrom = starts[page];
      const pageTo = starts[page + 1];
      const end = at + countValid(validity, pageFrom, pageTo);
      this.#page.clear();
      encodeLevels(this.#page, chunk, pageFrom, pageTo);
      encodeValues(this.#page, dense, encoding, dictionary, at, end);
      const offset = position + sink.length;
      facts.uncompressed += this.#flush(sink, (sizes) => {
        writeDataPageHeader(sink, { rows: pageTo - pageFrom, ...sizes }, encoding);
      });
      const extremes = byEntry
        ? extremesOfIndices(leaf, dictionary.entries, dictionary.indices, at, end)
        : extremesOf(leaf, dense, at, end);
      nans += extremes.nans;
      const facets: PageFacts = {
        offset,
        size: position + sink.length - offset,
        firstRow: pageFrom,
        nulls: pageTo - pageFrom - (end - at),
        bounds: null,
        empty: end === at,
      };
      if (extremes.min !== -1) {
        facets.bounds = {
          min: boundBytes(leaf, source, extremes.min, false),
          max: boundBytes(leaf, source, extremes.max, true),
        };
        order.add(extremes.min, extremes.max);
        if (min === -1 || compareAt(leaf, source, extremes.min, min) < 0) min = extremes.min;
        if (max === -1 || compareAt(leaf, source, extremes.max, max) > 0) max = extremes.max;
      }
      facts.pages.push(facets);
      at = end;
    }
    facts.compressed = sink.length - start;
    facts.boundaryOrder = order.order();
    let lower: Value = null;
    let upper: Value = null;
    if (min !== -1) {
      facts.bounds = { min: boundBytes(leaf, source, min, false), max: boundBytes(leaf, source, max, true) };
      lower = valueAt(leaf, source, min, false);
      upper = valueAt(leaf, source, max, true);
    }
    if (dictionary !== null) releaseDictionary(dictionary);
    releaseDense(dense, rows);
    const floating = (dense.kind === 'word' || dense.kind === 'pair') && dense.floats !== null;
    return { facts, nans: floating ? nans : null, lower, upper };
  }

  /** Compresses the page and appends it behind its header; returns the uncompressed size of both. */
  #flush(sink: ByteSink, header: (sizes: { uncompressed: number; compressed: number }) => void): number {
    const compressed = this.#compress(this.#page.view());
    const start = sink.length;
    header({ uncompressed: this.#page.length, compressed: compressed.length });
    const headerLength = sink.length - start;
    sink.append(compressed);
    // A compressor may give back what it got.
    if (compressed.buffer !== this.#page.bytes.buffer) release(compressed);
    return headerLength + this.#page.length;
  }

  /**
   * A choice holds for `ENCODING_CHOICE_ROWS`, since trying costs compression: small row groups of one append are
   * alike. A dictionary that no longer fits makes a new choice at once.
   */
  #choose(dense: Dense, rows: number): Choice {
    if (this.#encoding !== null && this.#rowsSinceChoice < ENCODING_CHOICE_ROWS) {
      this.#rowsSinceChoice += rows;
      if (dense.count === 0) return { encoding: PLAIN, dictionary: null };
      if (this.#encoding !== RLE_DICTIONARY) return { encoding: this.#encoding, dictionary: null };
      const dictionary = buildDictionary(dense);
      if (dictionary !== null) return { encoding: RLE_DICTIONARY, dictionary };
    }
    // A chunk of few values, or of nulls, teaches nothing about the next one.
    if (!worthTrying(dense)) {
      this.#encoding = null;
      return { encoding: PLAIN, dictionary: null };
    }
    const choice = chooseEncoding(this.#leaf, dense, this.#encodings, this.#compress, this.#page);
    this.#encoding = choice.encoding;
    this.#rowsSinceChoice = rows;
    return choice;
  }
}

/** Whether the bounds of the pages that have any only rise, or only fall (`BoundaryOrder`). */
class OrderTracker {
  readonly #leaf: Leaf;
  readonly #source: Dense;
  #min = -1;
  #max = -1;
  #ascending = true;
  #descending = true;

  constructor(leaf: Leaf, source: Dense) {
    this.#leaf = leaf;
    this.#source = source;
  }

  add(min: number, max: number): void {
    if (this.#min !== -1) {
      const low = compareAt(this.#leaf, this.#source, this.#min, min);
      const high = compareAt(this.#leaf, this.#source, this.#max, max);
      if (low > 0 || high > 0) this.#ascending = false;
      if (low < 0 || high < 0) this.#descending = false;
    }
    this.#min = min;
    this.#max = max;
  }

  order(): BoundaryOrder {
    return this.#ascending ? 1 : this.#descending ? 2 : 0;
  }
}
