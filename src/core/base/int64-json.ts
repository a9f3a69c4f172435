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
 * Parses one JSON text. `JSON.parse` alone unless the text shows what could be such an integer; then
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
 * True when a run of digits that stands where a number stands is beyond 2^53 - 1: 9007199254740991. A run of 16 covers one
 * of every 16 positions, so only those are looked at. Digits inside of names (ids in hexadecimal, hundreds of them in a
 * table's metadata) have something else before them; what looks like a number inside a string costs time, not correctness.
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
    const isBig = end - start > 16 || (end - start === 16 && text.slice(start, end) > LARGEST_SAFE);
    if (isBig && beginsNumber(text, start)) return true;
    at = end + 16;
  }
  return false;
}

const LARGEST_SAFE = String(Number.MAX_SAFE_INTEGER);

/** Whether a JSON number may begin with the digit at `start`, or with a minus before it. */
function beginsNumber(text: string, start: number): boolean {
  const before = text[start - 1] === '-' ? start - 2 : start - 1;
  return before < 0 || ' \t\n\r:,['.includes(text[before]);
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
  const text = JSON.stringify(plain(value, 0), undefined, indent);
  assert(typeof text === 'string', 'value has a JSON form');
  return text;
}

/**
 * The value with bigints as what prints as their digits: `JSON.stringify` with a function that replaces them takes four times
 * as long, and metadata of hundreds of snapshots is printed with every commit. What holds none is not copied.
 */
function plain(value: unknown, depth: number): unknown {
  if (typeof value === 'bigint')
    return value > BIGINT_SAFE || value < -BIGINT_SAFE ? rawJSON(String(value)) : Number(value);
  if (typeof value === 'number') assert(Number.isFinite(value), 'number in JSON is finite');
  if (typeof value !== 'object' || value === null) return value;
  demandDepth(depth);
  return Array.isArray(value) ? plainList(value, depth + 1) : plainObject(value as Record<string, unknown>, depth + 1);
}

const BIGINT_SAFE = BigInt(Number.MAX_SAFE_INTEGER);

function plainList(list: readonly unknown[], depth: number): readonly unknown[] {
  let copy: unknown[] | null = null;
  for (let i = 0; i < list.length; i++) {
    const item = plain(list[i], depth);
    if (item === list[i]) continue;
    copy ??= [...list];
    copy[i] = item;
  }
  return copy ?? list;
}

function plainObject(object: Record<string, unknown>, depth: number): Record<string, unknown> {
  let copy: Record<string, unknown> | null = null;
  for (const key in object) {
    const item = plain(object[key], depth);
    if (item === object[key]) continue;
    copy ??= { ...object };
    copy[key] = item; // its own property by now, also one called __proto__
  }
  return copy ?? object;
}

function checkDepth(value: unknown, depth: number): void {
  if (typeof value !== 'object' || value === null) return;
  demandDepth(depth);
  if (Array.isArray(value)) {
    for (let i = 0; i < value.length; i++) checkDepth(value[i], depth + 1);
  } else {
    for (const key in value) checkDepth((value as Record<string, unknown>)[key], depth + 1);
  }
}

function demandDepth(depth: number): void {
  if (depth >= JSON_DEPTH_MAX) throw invalid('malformed-json', `JSON is nested deeper than ${JSON_DEPTH_MAX} levels`);
}
