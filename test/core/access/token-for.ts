import { createHash } from 'node:crypto';
import type { Grant } from '../../../src/core/access/grant.ts';
import type { Token } from '../../../src/core/access/tokens.ts';

/** The configuration's entry of a token, for everything unless it is told otherwise. */
export function tokenFor(text: string, grant: Partial<Grant & Token> = {}): Token {
  const digest = new Uint8Array(createHash('sha256').update(text).digest());
  return { name: 'test', scopes: ['admin'], tables: ['*'], expiresMs: null, digest, ...grant };
}
