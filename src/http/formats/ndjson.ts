import { textOf } from '../../core/base/bytes.ts';
import { LINE_BYTES_MAX } from '../../core/base/limits.ts';
import type { JsonOptions, RowReader, RowSink } from './format.ts';
import { emptyBody, isSpace, lineTooLong, parseText } from './json-text.ts';
import { type Digits, markLongNumbers } from './long-numbers.ts';

const NEWLINE = 0x0a;
const OPEN = 0x7b;
const CLOSE = 0x7d;

/** Plain rows there must be for each other one: reading that one by itself costs as much as they save. */
const OTHERS_SHARE = 8;

/**
 * Newline-delimited JSON: one object a line, LF or CRLF, blank lines skipped, the last line with or without its end.
 * Of a name that stands twice in an object the last one counts, as everywhere in JavaScript.
 */
export function ndjsonReader(sink: RowSink, { digits, withBytes = false }: JsonOptions): RowReader {
  /** Lines ended so far. */
  let lines = 0;
  let rows = 0;

  /** Takes the whole lines in `bytes`, which end with a newline or with the body. */
  function takeLines(bytes: Uint8Array): void {
    const at = withBytes ? 0 : takePlain(bytes);
    const rest = bytes.subarray(at);
    const values = withBytes || rest.length === 0 ? null : parseTogether(rest, digits);
    if (values !== null) {
      for (const value of values) sink.row(value, ++lines);
      rows += values.length;
    } else for (let next = 0; next < rest.length; ) next = takeLine(rest, next);
  }

  /** Takes plain rows, and the ones between them one by one, as long as those are few. Returns where it ended. */
  function takePlain(bytes: Uint8Array): number {
    if (sink.plain === undefined) return 0;
    let at = 0;
    let taken = 0;
    for (let others = 1; ; others++) {
      const plain = sink.plain(bytes, at, lines + 1);
      taken += plain.rows;
      lines += plain.rows;
      rows += plain.rows;
      at = plain.end;
      if (at === bytes.length || others * OTHERS_SHARE > taken) return at;
      at = takeLine(bytes, at);
    }
  }

  /** Takes the next line that is not blank, and the blank ones before it. Returns where the one after it begins. */
  function takeLine(bytes: Uint8Array, from: number): number {
    let at = from;
    // Over blank lines byte by byte: a small gzip body can hold millions of them.
    let first = at;
    while (first < bytes.length && isSpace(bytes[first])) {
      if (bytes[first++] !== NEWLINE) continue;
      lines++;
      at = first;
    }
    if (first === bytes.length) return first;
    const newline = bytes.indexOf(NEWLINE, first);
    const end = newline < 0 ? bytes.length : newline;
    lines++;
    const line = bytes.subarray(at, end);
    if (line.length > LINE_BYTES_MAX) throw lineTooLong('line', lines);
    rows++;
    const parsed = parseText(line, digits);
    if (parsed.ok) sink.row(parsed.value, lines, line);
    else sink.fault(lines, parsed.fault.type, `line ${parsed.fault.message}`, parsed.fault.text);
    return newline < 0 ? end : end + 1;
  }

  return {
    take(bytes, last) {
      const end = last ? bytes.length : bytes.lastIndexOf(NEWLINE) + 1;
      if (bytes.length - end > LINE_BYTES_MAX) {
        for (let at = bytes.indexOf(NEWLINE); at >= 0; at = bytes.indexOf(NEWLINE, at + 1)) lines++;
        throw lineTooLong('line', lines + 1);
      }
      if (end > 0) takeLines(bytes.subarray(0, end));
      if (last && rows === 0) throw emptyBody();
      return end;
    },
  };
}

/**
 * The values of all lines by one `JSON.parse` over the lines joined to an array, a fifth faster than one by one; null when
 * they must be looked at one by one: a blank line, a line that does not go from brace to brace, a bracket anywhere, anything
 * that does not parse.
 *
 * Joining must not turn broken lines into a good array, so no value may span two lines. A string cannot, since the newline
 * stays between the lines. An object cannot, since each line begins with a brace, which no name does. An array could; so
 * there is none. Then two objects on one line make more values than lines.
 */
function parseTogether(bytes: Uint8Array, digits: Digits): unknown[] | null {
  let end = bytes.length;
  let newlines = 0;
  while (end > 0 && isSpace(bytes[end - 1])) {
    end--;
    if (bytes[end] === NEWLINE) newlines++;
  }
  // Blank lines at the end are lines too, which the slow path counts.
  if (newlines > 1 || end === 0 || end > LINE_BYTES_MAX) return null;
  try {
    const text = textOf(markLongNumbers(bytes.subarray(0, end), digits));
    if (text.includes('[')) return null;
    let lines = 1;
    let at = 0;
    for (let newline = text.indexOf('\n'); newline >= 0; newline = text.indexOf('\n', at)) {
      const final = text.charCodeAt(newline - 1) === 0x0d ? newline - 2 : newline - 1;
      if (text.charCodeAt(at) !== OPEN || text.charCodeAt(final) !== CLOSE) return null;
      lines++;
      at = newline + 1;
    }
    if (text.charCodeAt(at) !== OPEN || text.charCodeAt(text.length - 1) !== CLOSE) return null;
    const values: unknown[] = JSON.parse(`[${text.replaceAll('\n', ',\n')}]`);
    return values.length === lines ? values : null;
  } catch {
    return null;
  }
}
