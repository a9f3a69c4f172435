import { assert } from './assert.ts';
import { invalid } from './errors.ts';
import { JSON_DEPTH_MAX, JSON_INTEGER_DIGITS_MAX } from './limits.ts';

/**
 * JSON without rounding (J1, J2): an integer beyond 2^53 - 1 is a bigint, in both directions. Integers a double holds
 * exactly stay numbers, as does everything written with a point or an exponent (`1.0`, `1e20`).
 */

/** The engine's own wrapper for verbatim numbers; not yet in the compiler's library. */
const { rawJSON } = JSON as unknown as { rawJSON(text: string): unknown };

/**
 * Parses one JSON text. `JSON.parse` alone unless the text shows a run of digits that could be such an integer; then
 * every number is looked at as written, at about eight times the cost. Keys such as `__proto__` become own
 * properties. Throws invalid `malformed-json`, also for nesting above `JSON_DEPTH_MAX`.
 */
export function parseJson(text: string): unknown {
  let value: unknown;
  try {
    value = mayHoldBigInteger(text) ? JSON.parse(text, exact) : JSON.parse(text);
  } catch (cause) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw invalid('malformed-json', `text is not JSON: ${why}`, {}, cause);
  }
  checkDepth(value, 0);
  return value;
}

function exact(_key: string, value: unknown, context?: { source: string }): unknown {
  if (typeof value !== 'number' || Number.isSafeInteger(value)) return value;
  assert(context !== undefined, 'this runtime gives the source of JSON numbers');
  const { source } = context;
  if (!/^-?\d+$/.test(source)) return value;
  if (source.length > JSON_INTEGER_DIGITS_MAX) throw new RangeError(`integer of ${source.length} digits`);
  return BigInt(source);
}

/**
 * True when the text has 17 digits in a row, or 16 of which the first is 9: 2^53 is 9007199254740992. A run of 16
 * covers one of every 16 positions, so only those are looked at. Digits inside strings cost time, not correctness.
 */
export function mayHoldBigInteger(text: string): boolean {
  let at = 15;
  while (at < text.length) {
    if (!isDigit(text.charCodeAt(at))) {
      at += 16;
      continue;
    }
    let start = at;
    while (start > 0 && isDigit(text.charCodeAt(start - 1))) start--;
    let end = at + 1;
    while (end < text.length && isDigit(text.charCodeAt(end))) end++;
    if (end - start > 16 || (end - start === 16 && text[start] === '9')) return true;
    at = end + 16;
  }
  return false;
}

function isDigit(unit: number): boolean {
  return unit >= 48 && unit <= 57;
}

/**
 * Text of a value made of plain objects, lists, strings, booleans, null, finite numbers and bigints. Bigints are
 * digits without quotes; keys keep their insertion order; undefined members are left out. `indent` as in
 * `JSON.stringify`. NaN, infinities and nesting above `JSON_DEPTH_MAX` break an assertion or throw `malformed-json`.
 */
export function stringifyJson(value: unknown, indent?: number): string {
  checkDepth(value, 0);
  const text = JSON.stringify(value, verbatim, indent);
  assert(typeof text === 'string', 'value has a JSON form');
  return text;
}

function verbatim(_key: string, value: unknown): unknown {
  if (typeof value === 'bigint') return rawJSON(String(value));
  assert(typeof value !== 'number' || Number.isFinite(value), 'number in JSON is finite');
  return value;
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  if (depth >= JSON_DEPTH_MAX) throw invalid('malformed-json', `JSON is nested deeper than ${JSON_DEPTH_MAX} levels`);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) checkDepth(value[i], depth + 1);
  } else {
    for (const key in value) checkDepth((value as Record<string, unknown>)[key], depth + 1);
  }
}
