import { textOf, utf8 } from '../../core/base/bytes.ts';
import { PLAIN_TEXTS_MAX } from '../../core/base/encoding-limits.ts';
import { LINE_BYTES_MAX } from '../../core/base/limits.ts';
import type { Place } from '../../core/columns/align.ts';
import type { ColumnsBuilder } from '../../core/columns/builder.ts';
import { ByteInterner } from '../../core/columns/byte-interner.ts';
import { timestampAt } from '../../core/columns/times.ts';
import { NumberReader } from './number-bytes.ts';
import { piece, textOrNull } from './window-text.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const BACKSLASH = 0x5c;
const OPEN = 0x7b;
const CLOSE = 0x7d;
const NEWLINE = 0x0a;

/** `null`, `true` and `fals` as four bytes, little endian. */
const NULL = 0x6c6c756e;
const TRUE = 0x65757274;
const FALS = 0x736c6166;

/** A column as rows name it. */
interface PlainPlace extends Place {
  /** The name in quotes, as it stands in nearly every row. */
  quoted: Uint8Array;
  /** The last row that had it. */
  row: number;
  /** Texts met so far, by their bytes, and their codes in the column; -1 while that is not known. */
  known: ByteInterner;
  texts: string[];
  codes: number[];
}

/**
 * Plain rows of newline-delimited JSON, from bytes into columns with no JavaScript value in between: half the time of
 * `JSON.parse` and a walk over its objects.
 *
 * A row is plain when nothing in it is out of the ordinary: no escape, no list or object, no name twice, each value one
 * that its column takes. For every other row, be it good or bad, this does nothing and says so; what is wrong with it, if
 * anything, is for the parser to tell. So a row is taken here only if `JSON.parse` and the casts would make the same of it.
 */
export class PlainRows {
  /** Where the last `take` ended: the end, or the first row that is not plain. */
  end = 0;
  private readonly builder: ColumnsBuilder;
  private readonly byName: ReadonlyMap<string, PlainPlace>;
  private readonly required: number;
  private readonly numbers = new NumberReader();
  /** Columns in the order of the row before, in which the next one mostly has them too. */
  private readonly order: PlainPlace[] = [];
  private bytes: Uint8Array = new Uint8Array(0);
  /** The window as text, once a text of it is wanted; null when it is not UTF-8. */
  private window: string | null | undefined;
  private row = 0;

  constructor(builder: ColumnsBuilder, places: readonly Place[]) {
    this.builder = builder;
    this.byName = new Map(
      places.map((place) => {
        const quoted = utf8(`"${place.name}"`);
        return [
          place.name,
          { ...place, quoted, row: 0, known: new ByteInterner(PLAIN_TEXTS_MAX), texts: [], codes: [] },
        ];
      }),
    );
    this.required = places.filter((place) => place.required).length;
  }

  /**
   * Takes rows from `from` on, up to the first that is not plain, and returns how many; each is one line. Another window is
   * another object.
   */
  take(bytes: Uint8Array, from: number): number {
    let rows = 0;
    this.end = from;
    if (this.bytes !== bytes) {
      this.bytes = bytes;
      this.window = undefined;
    }
    while (this.end < bytes.length) {
      const end = this.takeRow(this.end);
      if (end < 0) {
        this.builder.rollbackRow();
        break;
      }
      this.builder.endRow();
      this.end = end;
      rows++;
    }
    return rows;
  }

  /** Where the next line begins; negative when the row is not plain. */
  private takeRow(from: number): number {
    const { bytes, order } = this;
    if (bytes[from] !== OPEN) return -1;
    const row = ++this.row;
    let required = 0;
    let at = from;
    for (let i = 0; ; i++) {
      at = skipBlanks(bytes, at + 1);
      const expected = order[i];
      const place = expected !== undefined && startsWith(bytes, at, expected.quoted) ? expected : this.placeAt(at, i);
      if (place === undefined || place.row === row) return -1;
      place.row = row;
      if (place.required) required++;
      at = skipBlanks(bytes, at + place.quoted.length);
      if (bytes[at] !== COLON) return -1;
      at = this.takeValue(place, skipBlanks(bytes, at + 1));
      if (at < 0) return -1;
      at = skipBlanks(bytes, at);
      if (bytes[at] === COMMA) continue;
      if (bytes[at] !== CLOSE || required < this.required) return -1;
      return this.lineEnd(from, at + 1);
    }
  }

  private lineEnd(from: number, closed: number): number {
    const { bytes } = this;
    let at = skipBlanks(bytes, closed);
    if (bytes[at] === 0x0d) at++;
    if (at - from > LINE_BYTES_MAX) return -1;
    if (at === bytes.length) return at;
    return bytes[at] === NEWLINE ? at + 1 : -1;
  }

  /** The column whose name in quotes stands at `at`, noted as the one that is number `i`. */
  private placeAt(at: number, i: number): PlainPlace | undefined {
    if (this.bytes[at] !== QUOTE) return undefined;
    const end = this.endOfText(at + 1);
    const place = end < 0 ? undefined : this.byName.get(this.slice(at + 1, end) ?? '');
    if (place !== undefined) this.order[i] = place;
    return place;
  }

  private takeValue(place: PlainPlace, at: number): number {
    const { bytes } = this;
    const first = bytes[at];
    if (first === QUOTE) return this.takeText(place, at + 1);
    if (first === 0x2d || (first >= 0x30 && first <= 0x39)) return this.takeNumber(place, at);
    const word = bytes[at] | (bytes[at + 1] << 8) | (bytes[at + 2] << 16) | (bytes[at + 3] << 24);
    if (word === NULL) return place.required ? -1 : at + 4;
    if (word === TRUE) return place.set(true) === null ? at + 4 : -1;
    if (word === FALS && bytes[at + 4] === 0x65) return place.set(false) === null ? at + 5 : -1;
    return -1;
  }

  private takeNumber(place: PlainPlace, at: number): number {
    const { numbers } = this;
    const end = numbers.read(this.bytes, at);
    if (end < 0) return -1;
    const { builder } = place;
    const isFloating = builder.kind === 'float64' || builder.kind === 'float32';
    // Digits that a double does not hold: the parser keeps them.
    if (numbers.digits > 15 && !isFloating) return -1;
    const value = numbers.isKnown ? numbers.value : Number(textOf(this.bytes.subarray(at, end)));
    if (builder.kind === 'float64' && numbers.isKnown) builder.push(value);
    else if (place.set(value) !== null) return -1;
    return end;
  }

  private takeText(place: PlainPlace, from: number): number {
    const { bytes } = this;
    const end = this.endOfText(from);
    if (end < 0) return -1;
    const { builder } = place;
    if (builder.kind === 'int64' && place.isTime) {
      const micros = timestampAt(bytes, from, end);
      if (!Number.isNaN(micros)) {
        builder.pushNumber(micros);
        return end + 1;
      }
    }
    const number = builder.kind === 'text' ? place.known.intern(bytes, from, end) : -1;
    if (builder.kind !== 'text' || number < 0) return this.takeSlice(place, from, end);
    const { texts, codes } = place;
    if (number < texts.length) {
      if (codes[number] < 0) codes[number] = builder.codeOf(texts[number]);
      if (codes[number] >= 0 && builder.pushCoded(codes[number])) return end + 1;
      return place.set(texts[number]) === null ? end + 1 : -1;
    }
    const text = this.slice(from, end);
    if (text === null) {
      // Numbered and of no use: texts and numbers are to stay in step.
      place.known = new ByteInterner(PLAIN_TEXTS_MAX);
      place.texts = [];
      place.codes = [];
      return -1;
    }
    texts.push(text);
    codes.push(-1);
    return place.set(text) === null ? end + 1 : -1;
  }

  private takeSlice(place: PlainPlace, from: number, end: number): number {
    const text = this.slice(from, end);
    return text !== null && place.set(text) === null ? end + 1 : -1;
  }

  /** Place of the quote that ends a text without escapes; negative when there is none. */
  private endOfText(from: number): number {
    const { bytes } = this;
    const { length } = bytes;
    for (let at = from; at < length; at++) {
      const byte = bytes[at];
      if (byte === QUOTE) return at;
      if (byte === BACKSLASH || byte < 0x20) return -1;
    }
    return -1;
  }

  /** A text of the window, without the window; null when that is not UTF-8: whose line it is, the parser tells. */
  private slice(from: number, end: number): string | null {
    if (this.window === undefined) this.window = textOrNull(this.bytes);
    if (this.window === null) return null;
    const isAscii = this.window.length === this.bytes.length;
    return isAscii ? piece(this.window, from, end) : textOf(this.bytes.subarray(from, end));
  }
}

/** Over spaces and tabs: a row that goes over several lines is none. */
function skipBlanks(bytes: Uint8Array, from: number): number {
  let at = from;
  // One comparison where there are none.
  while (bytes[at] <= 0x20 && (bytes[at] === 0x20 || bytes[at] === 0x09)) at++;
  return at;
}

function startsWith(bytes: Uint8Array, at: number, expected: Uint8Array): boolean {
  const { length } = expected;
  for (let i = 0; i < length; i++) if (bytes[at + i] !== expected[i]) return false;
  return true;
}
