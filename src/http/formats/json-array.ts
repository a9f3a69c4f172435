import { textOf } from '../../core/base/bytes.ts';
import { invalid, type SluiceError } from '../../core/base/errors.ts';
import { LINE_BYTES_MAX } from '../../core/base/limits.ts';
import type { JsonOptions, RowReader, RowSink } from './format.ts';
import { emptyBody, type JsonFault, lineTooLong, parseText, skipSpace } from './json-text.ts';
import { type Digits, endOfString, markLongNumbers } from './long-numbers.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Closing braces tried as the end of a window before its elements are looked for one by one. */
const CUT_TRIES_MAX = 4;

/**
 * `application/json`: an array of objects, or a single object, which is one row. Anything behind the value is refused,
 * and an array must be whole: a body is taken all or not at all.
 */
export function jsonReader(sink: RowSink, options: JsonOptions): RowReader {
  let reader: RowReader | null = null;
  let before = 0;
  return {
    take(bytes, last) {
      if (reader !== null) return reader.take(bytes, last);
      const at = skipSpace(bytes, 0);
      if (at === bytes.length) {
        if (last) throw emptyBody();
        before += at;
        return at;
      }
      if (bytes[at] === OPEN) reader = objectReader(sink, options.digits);
      else if (bytes[at] === OPEN_LIST) reader = arrayReader(sink, options, before + at + 1);
      else
        throw invalid(
          'malformed-body',
          `body must be a JSON array of objects or one object, at byte ${before + at + 1}`,
        );
      const from = bytes[at] === OPEN ? at : at + 1;
      return from + reader.take(bytes.subarray(from), last);
    },
  };
}

/** One object, read whole. */
function objectReader(sink: RowSink, digits: Digits): RowReader {
  return {
    take(bytes, last) {
      if (bytes.length > LINE_BYTES_MAX) throw lineTooLong('element', 1);
      if (!last) return 0;
      const parsed = parseText(bytes, digits);
      if (!parsed.ok) throw malformedBody(parsed.fault, 'body', {});
      sink.row(parsed.value, 1, bytes);
      return bytes.length;
    },
  };
}

/** What the grammar of an array asks for next. */
type Place = 'first' | 'element' | 'separator' | 'end';

/** The inside of an array. `offset`: bytes of the body before it. */
function arrayReader(sink: RowSink, { digits, withBytes = false }: JsonOptions, offset: number): RowReader {
  let place: Place = 'first';
  let elements = 0;
  let consumed = offset;
  /** Cutting failed once: elements are nested or broken, and it would fail again. */
  let oneByOne = withBytes;

  function give(values: unknown[]): void {
    for (const value of values) sink.row(value, ++elements);
  }

  /**
   * Takes elements from `at`, where one begins, as many as one parse can. Returns their end, -1 when more of the body is
   * needed. Sets `oneByOne` when that is no way to go on.
   */
  function takeCut(bytes: Uint8Array, at: number, last: boolean): number {
    const cut = last ? cutAtEnd(bytes) : cutAtBrace(bytes);
    const values = cut > at && cut - at <= LINE_BYTES_MAX ? parseElements(bytes.subarray(at, cut), digits) : null;
    if (values !== null) {
      give(values);
      return cut;
    }
    oneByOne = last || cut > at || bytes.length - at > LINE_BYTES_MAX;
    return -1;
  }

  /** Takes one element at `at`. Returns its end, or -1 when it is not whole yet. */
  function takeOne(bytes: Uint8Array, at: number, last: boolean): number {
    const end = endOfElement(bytes, at, last);
    if ((end < 0 ? bytes.length : end) - at > LINE_BYTES_MAX) throw lineTooLong('element', elements + 1);
    if (end < 0) return -1;
    const line = elements + 1;
    const place = `element ${line} at byte ${consumed + at + 1} of the body`;
    const parsed = parseText(bytes.subarray(at, end), digits);
    if (!parsed.ok) throw malformedBody(parsed.fault, place, { line });
    sink.row(parsed.value, ++elements, bytes.subarray(at, end));
    return end;
  }

  /** Takes what is whole from `from`. Returns its end. */
  function takeFrom(bytes: Uint8Array, from: number, last: boolean): number {
    let at = from;
    for (;;) {
      at = skipSpace(bytes, at);
      if (at === bytes.length) return at;
      const byte = bytes[at];
      if (place === 'end') throw trailing(consumed + at);
      if (place === 'separator') {
        if (byte !== COMMA && byte !== CLOSE_LIST) throw unexpected(consumed + at, 'a comma or ]');
        place = byte === COMMA ? 'element' : 'end';
        at++;
      } else if (place === 'first' && byte === CLOSE_LIST) {
        place = 'end';
        at++;
      } else {
        if (byte === COMMA || byte === CLOSE_LIST || byte === CLOSE) throw unexpected(consumed + at, 'an element');
        let end = oneByOne ? -1 : takeCut(bytes, at, last);
        if (oneByOne) end = takeOne(bytes, at, last);
        if (end < 0) return at;
        place = 'separator';
        at = end;
      }
    }
  }

  return {
    take(bytes, last) {
      const end = takeFrom(bytes, 0, last);
      if (last && place !== 'end') {
        throw invalid('truncated-body', `body ends inside its array, behind ${elements} whole elements`, { elements });
      }
      consumed += end;
      return end;
    },
  };
}

/**
 * Where the last element of a window seems to end: behind a closing brace before a comma. It may be a brace inside of an
 * element or a string. But what stands before it is parsed from an element's beginning, and text that parses as the
 * elements of an array ends where an element ends.
 */
function cutAtBrace(bytes: Uint8Array): number {
  let brace = bytes.lastIndexOf(CLOSE);
  for (let tries = 0; tries < CUT_TRIES_MAX && brace >= 0; tries++) {
    if (bytes[skipSpace(bytes, brace + 1)] === COMMA) return brace + 1;
    brace = brace === 0 ? -1 : bytes.lastIndexOf(CLOSE, brace - 1);
  }
  return -1;
}

/** The elements in a text that begins and ends with one; null when it is none. */
function parseElements(bytes: Uint8Array, digits: Digits): unknown[] | null {
  try {
    const values: unknown[] = JSON.parse(`[${textOf(markLongNumbers(bytes, digits))}]`);
    return values.length === 0 ? null : values;
  } catch {
    return null;
  }
}

/** Where the last element of a body ends: before the bracket that is its last byte; -1 when it is not. */
function cutAtEnd(bytes: Uint8Array): number {
  const bracket = bytes.lastIndexOf(CLOSE_LIST);
  return bracket >= 0 && skipSpace(bytes, bracket + 1) === bytes.length ? bracket : -1;
}

/**
 * End of the element that begins at `at`; -1 when the window ends before it. Strings are skipped, brackets are counted
 * and not matched: the parser does that.
 */
function endOfElement(bytes: Uint8Array, at: number, last: boolean): number {
  const { length } = bytes;
  let depth = 0;
  let i = at;
  while (i < length) {
    const byte = bytes[i];
    if (byte === QUOTE) {
      i = endOfString(bytes, i);
      continue;
    }
    if (byte === OPEN || byte === OPEN_LIST) depth++;
    else if (byte === CLOSE || byte === CLOSE_LIST) {
      if (depth === 0) return i;
      depth--;
      if (depth === 0) return i + 1;
    } else if (byte === COMMA && depth === 0) return i;
    i++;
  }
  return last && depth === 0 ? length : -1;
}

function malformedBody(fault: JsonFault, subject: string, detail: { line?: number }): SluiceError {
  const type = fault.type === 'malformed-json' ? 'malformed-body' : fault.type;
  const text: { text?: string } = fault.text === undefined ? {} : { text: fault.text };
  const advice = fault.type === 'trailing-data' ? ' (one object a line is application/x-ndjson)' : '';
  return invalid(type, `${subject} ${fault.message}${advice}`, { ...detail, ...text });
}

function trailing(at: number): SluiceError {
  return invalid('trailing-data', `body goes on behind its array, at byte ${at + 1}`, { byte: at + 1 });
}

function unexpected(at: number, expected: string): SluiceError {
  return invalid('malformed-body', `body must have ${expected} at byte ${at + 1}`, { byte: at + 1 });
}
