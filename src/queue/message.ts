import { textOf, utf8 } from '../core/base/bytes.ts';
import { invalid, type SluiceError } from '../core/base/errors.ts';
import { BATCH_ID_LENGTH_MAX, JSON_DEPTH_MAX } from '../core/base/limits.ts';
import { describe, own } from '../core/base/shape.ts';
import { checkName } from '../core/iceberg/locations.ts';
import { parseText } from '../http/formats/json-text.ts';
import { isBatchId } from '../http/new-frame.ts';
import { DEAD_LETTER_MARK } from './dead-letter.ts';

/**
 * What messages may look like. In a queue for any table a message is a JSON object,
 *
 *     {"table": "namespace/name", "batch_id": "...", and one of "row": {...}, "rows": [{...}, ...], "ndjson": "{...}\n{...}"}
 *
 * as a value or as its text; `batch_id` may be left out. In a queue that is bound to one table it is the rows themselves: an
 * object, a list of objects, or NDJSON as text or bytes. A dead letter is taken for the message that it is about.
 */
export interface Decoded {
  namespace: string;
  table: string;
  /** `namespace/table` */
  key: string;
  /** The message's own, else the message's id. */
  batchId: string;
  /** NDJSON as it was sent, or values as JSON gives them. */
  rows: Uint8Array | readonly unknown[];
}

const MEMBERS: ReadonlySet<string> = new Set(['table', 'batch_id', 'row', 'rows', 'ndjson']);

/** A message, or the one that a dead letter is about. */
export interface Opened {
  /** Id of the message. */
  id: string;
  /** What its rows are known by, when a dead letter says so; else null. */
  batchId: string | null;
  /** Table that its queue is bound to, if it is. */
  bound: string | null;
  body: unknown;
}

/**
 * The message as it is, or, when it is a dead letter that was sent again, the message that the letter is about.
 *
 * @throws invalid `malformed-message` for a letter that is none of ours
 */
export function openMessage({ id, body }: { id: string; body: unknown }, bound: string | null): Opened {
  const letter = letterIn(body);
  if (letter === null) return { id, batchId: null, bound, body };
  const [messageId, batchId, table] = ['message_id', 'batch_id', 'bound'].map((name) => own(letter, name) ?? null);
  const isWhole = typeof messageId === 'string' && typeof batchId === 'string' && isBatchId(batchId);
  const isBound = typeof table === 'string';
  if (!isWhole || (!isBound && table !== null) || own(letter, 'body_follows') === true) {
    throw malformed('dead letter does not hold its message');
  }
  return { id: messageId, batchId, bound: table, body: own(letter, 'body') };
}

/**
 * The rows in a message.
 *
 * @throws invalid `malformed-message`, `bad-name`, `lone-surrogate`
 */
export function decodeMessage({ id, batchId, bound, body }: Opened): Decoded {
  if (bound !== null) return { ...tableOf(bound), batchId: batchId ?? id, rows: rawRows(body) };
  const members = objectOf(body);
  const unknown = Object.keys(members).find((name) => !MEMBERS.has(name));
  // A misspelt batch_id would be a message without one.
  if (unknown !== undefined) {
    throw malformed(`message has a member besides ${[...MEMBERS].join(', ')}: ${describe(unknown)}`);
  }
  const table = own(members, 'table');
  if (typeof table !== 'string') throw malformed('message names no table: "table" must be "namespace/name"');
  const given = own(members, 'batch_id') ?? null;
  if (given !== null && (typeof given !== 'string' || !isBatchId(given))) {
    throw malformed(`batch_id must be 1 to ${BATCH_ID_LENGTH_MAX} printable ASCII characters: ${describe(given)}`);
  }
  return { ...tableOf(table), batchId: batchId ?? given ?? id, rows: rowsOf(members) };
}

function rowsOf(members: Record<string, unknown>): Decoded['rows'] {
  const given = ['row', 'rows', 'ndjson'].filter((name) => own(members, name) !== undefined);
  if (given.length !== 1) throw malformed('message must have one of "row", "rows", "ndjson"');
  const value = own(members, given[0]);
  if (given[0] === 'row') return jsonRows([value]);
  if (given[0] === 'rows') {
    if (!Array.isArray(value)) throw malformed(`rows must be a list: ${describe(value)}`);
    return jsonRows(value);
  }
  if (typeof value !== 'string') throw malformed(`ndjson must be text: ${describe(value)}`);
  return linesOf(value);
}

/** Rows of a queue that is bound to a table. */
function rawRows(body: unknown): Decoded['rows'] {
  const bytes = typeof body === 'string' ? linesOf(body) : bytesOf(body);
  return bytes ?? jsonRows(Array.isArray(body) ? body : [body]);
}

function linesOf(text: string): Uint8Array {
  if (!text.isWellFormed()) throw invalid('lone-surrogate', 'text of the message holds a lone surrogate');
  return unmarked(utf8(text));
}

/** Without a byte order mark, which is left out of a body too. */
function unmarked(bytes: Uint8Array): Uint8Array {
  return bytes[0] === 0xef && bytes[1] === 0xbb && bytes[2] === 0xbf ? bytes.subarray(3) : bytes;
}

function jsonRows(rows: readonly unknown[]): readonly unknown[] {
  // A Map would pass for an object without members: a row of nulls.
  if (!isPlain(rows, 0)) throw malformed('rows hold a value that JSON does not have, or are nested too deeply');
  return rows;
}

function isPlain(value: unknown, depth: number): boolean {
  if (typeof value !== 'object' || value === null) return typeof value !== 'function' && typeof value !== 'symbol';
  if (depth >= JSON_DEPTH_MAX) return false;
  if (Array.isArray(value)) return value.every((item) => isPlain(item, depth + 1));
  const prototype: unknown = Object.getPrototypeOf(value);
  if (prototype !== Object.prototype && prototype !== null) return false;
  return Object.values(value).every((item) => isPlain(item, depth + 1));
}

/** The message as an object, out of its JSON text where it is text. */
function objectOf(body: unknown): Record<string, unknown> {
  const bytes = typeof body === 'string' ? linesOf(body) : bytesOf(body);
  let value = body;
  if (bytes !== null) {
    const parsed = parseText(bytes, 'decimals');
    if (!parsed.ok) throw malformed(`message ${parsed.fault.message}`);
    value = parsed.value;
  }
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw malformed(`message must be an object with "table" and rows: ${describe(value)}`);
  }
  return value as Record<string, unknown>;
}

/** The dead letter that a message is, as a value or as its text; null when it is none. */
function letterIn(body: unknown): Record<string, unknown> | null {
  const bytes = bytesOf(body);
  let text = typeof body === 'string' ? body : null;
  try {
    if (bytes !== null) text = textOf(bytes);
  } catch {
    return null;
  }
  if (text !== null && !text.startsWith(`{"${DEAD_LETTER_MARK}"`)) return null;
  const value = text === null ? body : objectOf(text);
  if (typeof value !== 'object' || value === null || !Object.hasOwn(value, DEAD_LETTER_MARK)) return null;
  return value as Record<string, unknown>;
}

function bytesOf(body: unknown): Uint8Array | null {
  if (body instanceof ArrayBuffer) return unmarked(new Uint8Array(body));
  return ArrayBuffer.isView(body) ? unmarked(new Uint8Array(body.buffer, body.byteOffset, body.byteLength)) : null;
}

function tableOf(name: string): Pick<Decoded, 'namespace' | 'table' | 'key'> {
  const [namespace, table, ...rest] = name.split('/');
  if (table === undefined || rest.length > 0) throw malformed(`table must be "namespace/name": ${describe(name)}`);
  return { namespace: checkName(namespace, 'namespace'), table: checkName(table, 'table'), key: name };
}

function malformed(message: string): SluiceError {
  return invalid('malformed-message', message);
}
