import { invalid } from './core/base/errors.ts';
import { type Lake, parseLake } from './core/iceberg/locations.ts';
import type { TableObject } from './object/table-object.ts';

/** Bindings and variables as `wrangler.toml` declares them; secrets are optional until they are needed. */
export interface Env {
  LAKE: R2Bucket;
  TABLES: DurableObjectNamespace<TableObject>;
  ROWS: Queue;
  LAKE_LOCATION: string;
  ACCESS: string;
  API_TOKEN?: string;
}

/** One checked value made of the environment; everything tunable about a deployment. */
export interface Settings {
  /** Where the bucket is, as other engines name it, and the prefix of every key in it. */
  lake: Lake;
  /** Bearer token that requests must carry; null: none is asked for (local development). */
  token: string | null;
}

/**
 * @throws invalid `bad-location`, `bad-settings`: a service with a wrong lake location must not write a byte
 */
export function settingsOf(env: Env): Settings {
  const isLocal = env.ACCESS === 'local';
  if (!isLocal && !env.API_TOKEN) {
    throw invalid('bad-settings', 'secret API_TOKEN is not set (or set ACCESS to "local" for development)');
  }
  return {
    lake: parseLake(env.LAKE_LOCATION ?? ''),
    token: isLocal ? null : (env.API_TOKEN ?? null),
  };
}
