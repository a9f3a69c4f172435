import { NUMBER_MARK } from '../../core/columns/fault.ts';

/**
 * Numbers in JSON text whose digits a double does not hold. `JSON.parse` rounds them silently, and its reviver, which
 * could see the digits, costs eight times the parse. So a window that shows such a number is copied with each of them
 * turned into marked text (`NUMBER_MARK`); what has no such number, which is nearly everything, pays for one look at
 * every eighth byte.
 */

/**
 * Which numbers matter. `integers`: whole ones beyond 2^53, and those with 16 digits around a point of which 8 are before it:
 * a time in seconds with its nanoseconds would be rounded to another microsecond. `decimals`: all with 16 digits around a
 * point.
 */
export type Digits = 'integers' | 'decimals';

const QUOTE = 0x22;
const MINUS = 0x2d;
const POINT = 0x2e;
const ZERO = 0x30;
const NINE = 0x39;
const COLON = 0x3a;
const BACKSLASH = 0x5c;

/** Digits before the point of a time in seconds since 1970, from its April on. Of 16 digits around a point that is half. */
const WHOLE_DIGITS = 8;

/** What the mark and the quotes around a number look like in JSON text: ASCII, as the window is in UTF-8. */
const BEFORE = new TextEncoder().encode(`"\\u${NUMBER_MARK.charCodeAt(0).toString(16)}`);

function isDigit(byte: number): boolean {
  return byte >= ZERO && byte <= NINE;
}

/** The text itself when it shows no such number, else a copy in which each is marked text. */
export function markLongNumbers(bytes: Uint8Array, digits: Digits): Uint8Array {
  const runs = longRuns(bytes, digits);
  if (runs.length === 0) return bytes;
  const marker = new Marker(bytes);
  for (const start of runs) {
    const from = bytes[start - 1] === MINUS ? start - 1 : start;
    if (!isValueOfName(bytes, from)) return markAll(bytes, digits);
    const end = endOfNumber(bytes, from);
    if (end >= 0 && losesDigits(bytes, from, end, digits)) marker.mark(from, end);
  }
  return marker.finish();
}

/**
 * Where runs of digits begin that may be such numbers, some of them in strings. Of 16 digits, around a point or not, 8 are in
 * a row, which cover one of every 8 bytes. Digits right behind a quote are in a string, those behind a point are a fraction.
 */
export function longRuns(bytes: Uint8Array, digits: Digits): number[] {
  const { length } = bytes;
  const decimals = digits === 'decimals';
  const step = WHOLE_DIGITS;
  const runs: number[] = [];
  let at = step - 1;
  while (at < length) {
    if (!isDigit(bytes[at])) {
      at += step;
      continue;
    }
    let start = at;
    while (start > 0 && (isDigit(bytes[start - 1]) || (decimals && bytes[start - 1] === POINT))) start--;
    let end = at + 1;
    while (end < length && (isDigit(bytes[end]) || (decimals && bytes[end] === POINT))) end++;
    const before = start === 0 ? 0 : bytes[start - 1];
    if (before !== QUOTE && before !== POINT) {
      if (decimals ? end - start >= 16 : isLong(bytes, start, end) || isLongTime(bytes, start, end)) runs.push(start);
    }
    at = end + step - 1;
  }
  return runs;
}

/**
 * True when a number at `from` is surely outside of strings: right behind `":`, where the quote comes after a letter,
 * digit or underscore. Within a string a quote comes after a backslash, and one that opens a string after punctuation or
 * space; so this one closes a name. False means: not known.
 */
function isValueOfName(bytes: Uint8Array, from: number): boolean {
  let at = from - 1;
  if (bytes[at] === 0x20) at--;
  if (bytes[at] !== COLON || bytes[at - 1] !== QUOTE) return false;
  const byte = bytes[at - 2];
  return isDigit(byte) || byte === 0x5f || ((byte | 0x20) >= 0x61 && (byte | 0x20) <= 0x7a);
}

/** A copy of a text in which numbers are turned into marked text, in order. */
class Marker {
  private readonly bytes: Uint8Array;
  private readonly out: Uint8Array;
  private written = 0;
  private copied = 0;

  constructor(bytes: Uint8Array) {
    this.bytes = bytes;
    // A mark adds 8 bytes to at least 16.
    this.out = new Uint8Array(bytes.length + (bytes.length >> 1) + BEFORE.length + 1);
  }

  mark(from: number, end: number): void {
    this.copyTo(from);
    this.out.set(BEFORE, this.written);
    this.written += BEFORE.length;
    this.copyTo(end);
    this.out[this.written++] = QUOTE;
  }

  finish(): Uint8Array {
    this.copyTo(this.bytes.length);
    return this.out.subarray(0, this.written);
  }

  private copyTo(end: number): void {
    this.out.set(this.bytes.subarray(this.copied, end), this.written);
    this.written += end - this.copied;
    this.copied = end;
  }
}

/** True for the digits of a whole number that may pass 2^53, which is 9007199254740992. */
function isLong(bytes: Uint8Array, start: number, end: number): boolean {
  return end - start > 16 || (end - start === 16 && bytes[start] === NINE);
}

/** True for the digits before a point, when those behind it make them more than a double surely holds. */
function isLongTime(bytes: Uint8Array, start: number, end: number): boolean {
  if (end - start < WHOLE_DIGITS || bytes[end] !== POINT) return false;
  const most = start + 17;
  let at = end + 1;
  while (at < most && isDigit(bytes[at])) at++;
  return at === most;
}

/** The same for any text, byte by byte: such numbers outside of strings. Broken JSON stays as broken. */
function markAll(bytes: Uint8Array, digits: Digits): Uint8Array {
  const { length } = bytes;
  const marker = new Marker(bytes);
  let at = 0;
  while (at < length) {
    const byte = bytes[at];
    if (byte === QUOTE) at = endOfString(bytes, at);
    else if (byte === MINUS || isDigit(byte)) {
      const end = endOfNumber(bytes, at);
      if (end < 0) {
        // No JSON number: the parser shall meet it as it is.
        at++;
        while (at < length && isDigit(bytes[at])) at++;
        continue;
      }
      if (end - at >= 16 && losesDigits(bytes, at, end, digits) && !isName(bytes, end)) marker.mark(at, end);
      at = end;
    } else at++;
  }
  return marker.finish();
}

/** Where the string that begins at `at` ends: behind its closing quote, or at the end of the text. */
export function endOfString(bytes: Uint8Array, at: number): number {
  const { length } = bytes;
  let i = at + 1;
  while (i < length) {
    const byte = bytes[i];
    if (byte === QUOTE) return i + 1;
    i += byte === BACKSLASH ? 2 : 1;
  }
  return length;
}

/** End of a number as the JSON grammar has it; -1 when it is none. */
function endOfNumber(bytes: Uint8Array, from: number): number {
  let at = bytes[from] === MINUS ? from + 1 : from;
  if (!isDigit(bytes[at])) return -1;
  if (bytes[at] === ZERO) at++;
  else while (isDigit(bytes[at])) at++;
  if (bytes[at] === POINT) {
    if (!isDigit(bytes[++at])) return -1;
    while (isDigit(bytes[at])) at++;
  }
  if ((bytes[at] | 0x20) === 0x65) {
    at++;
    if (bytes[at] === 0x2b || bytes[at] === MINUS) at++;
    if (!isDigit(bytes[at])) return -1;
    while (isDigit(bytes[at])) at++;
  }
  // 012 and 1.2.3: what follows would be taken for the next number.
  return isDigit(bytes[at]) || bytes[at] === POINT ? -1 : at;
}

/** True when a double may not hold the digits: those of the whole part, or, where they matter, all before the exponent. */
function losesDigits(bytes: Uint8Array, from: number, end: number, digits: Digits): boolean {
  const start = bytes[from] === MINUS ? from + 1 : from;
  let at = start;
  while (at < end && isDigit(bytes[at])) at++;
  if (isLong(bytes, start, at)) return true;
  if (digits === 'integers') return isLongTime(bytes, start, at);
  while (at < end && (isDigit(bytes[at]) || bytes[at] === POINT)) at++;
  return at - start >= 16;
}

/** True when a colon follows: a number in the place of a name, which JSON does not have, must not become one. */
function isName(bytes: Uint8Array, end: number): boolean {
  let at = end;
  while (bytes[at] === 0x20 || bytes[at] === 0x09 || bytes[at] === 0x0a || bytes[at] === 0x0d) at++;
  return bytes[at] === COLON;
}
