import { createHash, randomBytes } from 'node:crypto';
import { parseArgs } from 'node:util';
import { parseTokens } from '../src/core/access/tokens.ts';
import { isMain } from './is-main.ts';

/** `npm run token`: makes a token, and the entry by which the service knows it. The token itself is kept nowhere. */
export interface TokenOptions {
  name: string;
  scopes: string[];
  tables: string[];
  expires?: string;
}

/** A token and its entry of the list in API_TOKENS. Throws what `parseTokens` throws. */
export function makeToken({ name, scopes, tables, expires }: TokenOptions): { token: string; entry: string } {
  // Digests are not stretched: a token is as hard to guess as its 256 random bits. The prefix is for secret scanners.
  const token = `sluice_${randomBytes(32).toString('base64url')}`;
  const sha256 = createHash('sha256').update(token).digest('hex');
  const entry = JSON.stringify({ name, sha256, scopes, tables, ...(expires === undefined ? {} : { expires }) });
  parseTokens(`[${entry}]`, 'token');
  return { token, entry };
}

const USAGE = `npm run token -- --name NAME --scope read|append|admin --table PATTERN [--expires TIME]

  --name     who holds it, for the logs
  --scope    what it may do; more than once for several
  --table    namespace/table, namespace/* or *; more than once for several
  --expires  2027-01-31 or 2027-01-31T12:00:00Z; without it the token stays valid until it is taken out
`;

function main(): void {
  const { values } = parseArgs({
    options: {
      name: { type: 'string' },
      scope: { type: 'string', multiple: true },
      table: { type: 'string', multiple: true },
      expires: { type: 'string' },
    },
  });
  const { name, scope, table, expires } = values;
  if (name === undefined || scope === undefined || table === undefined)
    throw new Error(`something is missing\n\n${USAGE}`);
  const { token, entry } = makeToken({
    name,
    scopes: scope,
    tables: table,
    ...(expires === undefined ? {} : { expires }),
  });
  console.log(`token, shown once; give it to ${name}:\n\n  ${token}\n`);
  console.log(`entry for the list in the secret API_TOKENS (wrangler secret put API_TOKENS):\n\n  ${entry}\n`);
}

if (isMain(import.meta)) {
  try {
    main();
  } catch (error) {
    console.error(error instanceof Error ? error.message : String(error));
    process.exitCode = 2;
  }
}
