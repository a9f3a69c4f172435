import { fromHex } from '../base/bytes.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { TOKENS_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import { type Grant, isPattern, SCOPES, type Scope } from './grant.ts';

/** A bearer token as the configuration holds it: what it may do, and the digest it is known by. Never the token itself. */
export interface Token extends Grant {
  /** SHA-256 of the token's text. */
  digest: Uint8Array;
  /** From this time on the token is none; null: it stays valid. */
  expiresMs: number | null;
}

const DIGEST_LENGTH = 32;
const MEMBERS: ReadonlySet<string> = new Set(['name', 'sha256', 'scopes', 'tables', 'expires']);

/**
 * Tokens out of a list `[{"name", "sha256", "scopes", "tables", "expires"}]`; only `expires` may be left out. `variable`
 * names the setting in errors, which never repeat a value: somebody may have put a token where its digest belongs.
 *
 * @throws invalid `bad-settings`
 */
export function parseTokens(text: string, variable: string): Token[] {
  const wrong = (why: string) => invalid('bad-settings', `${variable} ${why}`);
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    // The parser's own message repeats part of the text.
    throw wrong('is not JSON');
  }
  if (!Array.isArray(list)) throw wrong('is not a list');
  if (list.length > TOKENS_MAX) throw wrong(`has more than ${TOKENS_MAX} tokens`);
  return list.map((entry, index) => parseToken(entry, (why) => wrong(`[${index}] ${why}`)));
}

function parseToken(entry: unknown, wrong: (why: string) => SluiceError): Token {
  if (typeof entry !== 'object' || entry === null || Array.isArray(entry)) throw wrong('is not an object');
  const members = entry as Record<string, unknown>;
  // A misspelt member would widen what the token may do, or keep it valid, without a word.
  if (Object.keys(members).some((key) => !MEMBERS.has(key)))
    throw wrong(`has a member besides ${[...MEMBERS].join(', ')}`);
  const name = own(members, 'name');
  if (typeof name !== 'string' || !/^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$/.test(name)) {
    throw wrong('has no name of 1 to 64 of A-Z a-z 0-9 . _ -');
  }
  const sha256 = own(members, 'sha256');
  const digest = typeof sha256 === 'string' && sha256.length === 2 * DIGEST_LENGTH ? fromHex(sha256) : null;
  if (digest === null) throw wrong('has no sha256 of 64 hex digits');
  const scopes = textsOf(own(members, 'scopes'));
  if (scopes === null || !scopes.every(isScope)) throw wrong(`has no scopes of ${SCOPES.join(', ')}`);
  const tables = textsOf(own(members, 'tables'));
  if (tables === null || !tables.every(isPattern)) throw wrong('has no tables of namespace/table, namespace/* or *');
  return { name, digest, scopes, tables, expiresMs: expiryOf(own(members, 'expires'), wrong) };
}

/** A list of at least one text, or null. */
function textsOf(value: unknown): string[] | null {
  const isTexts = Array.isArray(value) && value.length > 0 && value.every((text) => typeof text === 'string');
  return isTexts ? value : null;
}

function isScope(text: string): text is Scope {
  return (SCOPES as readonly string[]).includes(text);
}

/** A day, or a time with its zone: what a clock of another zone would read otherwise is refused. */
function expiryOf(value: unknown, wrong: (why: string) => SluiceError): number | null {
  if (value === undefined || value === null) return null;
  const isTime = typeof value === 'string' && /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/.test(value);
  const ms = isTime ? Date.parse(value) : Number.NaN;
  if (Number.isNaN(ms)) throw wrong('has no expires of the form 2027-01-31 or 2027-01-31T12:00:00Z');
  return ms;
}

/**
 * The token of this digest; null when there is none or it has expired. All are compared, each to its last byte: the time
 * it takes tells neither whether one is known nor which.
 */
export function tokenOf(tokens: readonly Token[], digest: Uint8Array, nowMs: number): Token | null {
  let found: Token | null = null;
  for (const token of tokens) {
    let difference = 0;
    for (let i = 0; i < DIGEST_LENGTH; i++) difference |= token.digest[i] ^ digest[i];
    found = difference === 0 ? token : found;
  }
  return found !== null && (found.expiresMs === null || nowMs < found.expiresMs) ? found : null;
}
