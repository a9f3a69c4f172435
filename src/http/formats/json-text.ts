import { textOf } from '../../core/base/bytes.ts';
import { invalid, type SluiceError } from '../../core/base/errors.ts';
import { LINE_BYTES_MAX } from '../../core/base/limits.ts';
import { type RowFaultType, shorten } from '../../core/columns/fault.ts';
import { type Digits, markLongNumbers } from './long-numbers.ts';

/** What the two JSON formats share: bytes to values with every digit kept, and the words for what is wrong. */

/** True for the four bytes that JSON calls white space. */
export function isSpace(byte: number): boolean {
  return byte === 0x20 || byte === 0x0a || byte === 0x0d || byte === 0x09;
}

/** Place of the first byte from `at` that is no white space; the length when there is none. */
export function skipSpace(bytes: Uint8Array, at: number): number {
  let i = at;
  while (i < bytes.length && isSpace(bytes[i])) i++;
  return i;
}

/** Why bytes are not one JSON text. */
export interface JsonFault {
  type: Extract<RowFaultType, 'malformed-json' | 'malformed-utf8' | 'trailing-data'>;
  message: string;
  /** Beginning of the text. */
  text?: string;
}

export type Parsed = { ok: true; value: unknown } | { ok: false; fault: JsonFault };

/** Parses one JSON text; numbers that a double does not hold become marked text. */
export function parseText(bytes: Uint8Array, digits: Digits): Parsed {
  let text: string;
  try {
    text = textOf(bytes);
  } catch {
    return { ok: false, fault: { type: 'malformed-utf8', message: 'is not UTF-8' } };
  }
  try {
    const exact = markLongNumbers(bytes, digits);
    return { ok: true, value: JSON.parse(exact === bytes ? text : textOf(exact)) };
  } catch {
    return { ok: false, fault: { ...reasonOf(text), text: shorten(text) } };
  }
}

/** The reason of the parser in our words, with the byte where it stopped when it says so. */
function reasonOf(text: string): JsonFault {
  let reason = '';
  try {
    JSON.parse(text);
  } catch (error) {
    reason = error instanceof Error ? error.message : '';
  }
  const position = /at position (\d+)/.exec(reason)?.[1];
  const place = position === undefined ? '' : ` at byte ${byteColumn(text, Number(position))}`;
  if (/after JSON/.test(reason)) return { type: 'trailing-data', message: `goes on behind its JSON value${place}` };
  if (/end of JSON|Unterminated/.test(reason)) return { type: 'malformed-json', message: `is JSON cut short${place}` };
  return { type: 'malformed-json', message: `is not JSON${place}` };
}

/** Byte column, from 1, of a position in UTF-16 units. */
function byteColumn(text: string, position: number): number {
  return new TextEncoder().encode(text.slice(0, position)).length + 1;
}

/** The refusal of a line or an element without end in sight. */
export function lineTooLong(what: 'line' | 'element', line: number): SluiceError {
  const message = `${what} ${line} is longer than ${LINE_BYTES_MAX} bytes`;
  return invalid('line-too-long', message, { line, bytesMax: LINE_BYTES_MAX });
}

/** The refusal of a body in which there is nothing at all. */
export function emptyBody(): SluiceError {
  return invalid('empty-body', 'body is empty; a batch without rows is an empty array: []');
}
