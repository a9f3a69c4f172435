import { parseQueueSettings, type QueueSettings } from './core/access/queues.ts';
import { parseTokens, type Token } from './core/access/tokens.ts';
import { utf8 } from './core/base/bytes.ts';
import type { Digest } from './core/base/codecs.ts';
import { invalid } from './core/base/errors.ts';
import { type Lake, parseLake } from './core/iceberg/locations.ts';
import type { TableObject } from './object/table-object.ts';

/** Bindings and variables as `wrangler.toml` declares them; secrets are optional until they are needed. */
export interface Env {
  LAKE: R2Bucket;
  TABLES: DurableObjectNamespace<TableObject>;
  /** Where `POST …/enqueue` puts rows. */
  ROWS: Queue;
  /** Where the consumer puts messages that cannot be delivered. */
  DEAD_LETTERS: Queue;
  LAKE_LOCATION: string;
  ACCESS: string;
  API_TOKEN?: string;
  API_TOKENS?: string;
  CORS_ORIGINS?: string;
  QUEUE_TABLES?: string;
  QUEUE_TABLE?: string;
}

/** One checked value made of the environment; everything tunable about where a deployment writes. */
export interface Settings {
  /** Where the bucket is, as other engines name it, and the prefix of every key in it. */
  lake: Lake;
}

/**
 * @throws invalid `bad-location`: a service with a wrong lake location must not write a byte
 */
export function settingsOf(env: Env): Settings {
  return { lake: parseLake(env.LAKE_LOCATION ?? '') };
}

/**
 * Tokens that requests are held against; null: nobody is asked for one (local development). Apart from the settings: an
 * object goes on committing what it has taken while the tokens are wrong.
 *
 * The single secret API_TOKEN is a token for everything. API_TOKENS holds a list (`parseTokens`), and so does every
 * variable whose name begins with `API_TOKENS_`, for lists longer than one variable may be.
 *
 * @throws invalid `bad-settings`
 */
export function tokensOf(env: Env, digest: Digest): Token[] | null {
  if (env.ACCESS === 'local') return null;
  const tokens: Token[] = [];
  if (env.API_TOKEN) {
    const own = { name: 'api-token', digest: digest([utf8(env.API_TOKEN)]), expiresMs: null };
    tokens.push({ ...own, scopes: ['admin'], tables: ['*'] });
  }
  for (const [variable, text] of Object.entries(env)) {
    if (!/^API_TOKENS(_|$)/.test(variable) || text === '') continue;
    tokens.push(...parseTokens(String(text), variable));
  }
  if (tokens.length > 0) return tokens;
  const message = 'neither secret API_TOKEN nor API_TOKENS is set (or set ACCESS to "local" for development)';
  throw invalid('bad-settings', message);
}

/**
 * Origins whose pages may call the service, out of CORS_ORIGINS (separated by spaces or commas); `*` stands for all.
 *
 * @throws invalid `bad-settings`
 */
export function originsOf(env: Env): string[] {
  const origins = (env.CORS_ORIGINS ?? '').split(/[\s,]+/).filter((origin) => origin !== '');
  for (const origin of origins) {
    if (origin !== '*' && !/^https?:\/\/[^/\s]+$/.test(origin)) {
      throw invalid('bad-settings', `CORS_ORIGINS holds no origin as browsers send it, or *: ${origin}`);
    }
  }
  return origins;
}

/**
 * What queues may do. Apart from the rest: requests that have nothing to do with a queue do not fail for it.
 *
 * @throws invalid `bad-settings`
 */
export function queueSettingsOf(env: Env): QueueSettings {
  return parseQueueSettings(env.QUEUE_TABLES ?? '', env.QUEUE_TABLE ?? '');
}
