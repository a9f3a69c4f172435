import { textOf, utf8 } from '../../core/base/bytes.ts';

/** Texts shorter than this are copied by the runtime; longer ones are slices that keep the text they are of in memory. */
const SLICE_LENGTH_MIN = 13;

/** A piece of a window's text, without the window: values outlive it. */
export function piece(text: string, from: number, to: number): string {
  const slice = text.slice(from, to);
  return slice.length < SLICE_LENGTH_MIN ? slice : ` ${slice}`.slice(1);
}

/** Text of bytes of which some are not UTF-8: one character a byte, so that what is ASCII can be found. */
export function latin1(bytes: Uint8Array): string {
  let out = '';
  for (let at = 0; at < bytes.length; at += 4096) out += String.fromCharCode(...bytes.subarray(at, at + 4096));
  return out;
}

/** Text of UTF-8 bytes; null when they are not. */
export function textOrNull(bytes: Uint8Array): string | null {
  try {
    return textOf(bytes);
  } catch {
    return null;
  }
}

/** Bytes that `text[from ..]` takes in UTF-8; `bytes` are those of the whole text. */
export function bytesBehind(text: string, from: number, bytes: number): number {
  return text.length === bytes ? bytes - from : utf8(text.slice(from)).length;
}

/** Place of the next newline; the length when there is none. */
export function newlineFrom(text: string, at: number): number {
  const newline = text.indexOf('\n', at);
  return newline < 0 ? text.length : newline;
}

export function newlinesIn(text: string, from: number, to: number): number {
  let count = 0;
  for (let at = from; at < to; at++) if (text.charCodeAt(at) === 0x0a) count++;
  return count;
}
