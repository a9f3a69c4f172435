import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestHarness } from 'wrangler';
import { type DevBucket, remoteBucket, SECRET_VARIABLE } from '../../../scripts/dev-bucket.ts';
import type { Bucket, Listing } from '../../oracle/bucket.ts';
import { type Send, TableClient } from './client.ts';

/**
 * The service as it is deployed, bundled by wrangler and run by the runtime under production's rules (no code
 * generation). Starts nothing at import.
 */

const ROOT = new URL('../../../', import.meta.url).pathname;

/** The service as it is, and beside it its bucket for callers that know a secret. */
export const ENTRY = 'scripts/dev-worker.ts';

/** The same, which tries at each request to make code out of text. */
export const NO_EVAL_ENTRY = 'test/e2e/support/no-eval-worker.ts';

/** Bucket of `wrangler.toml`, as locations name it, and where its tables are. */
export const BUCKET_NAME = 'sluice-lake';
export const WAREHOUSE = 'warehouse';

/** Variables that every test service has. */
export const VARS: Readonly<Record<string, string>> = { ACCESS: 'local', [SECRET_VARIABLE]: 'e2e' };

/** One Worker of a service. Workers of one `startService` share the bucket and nothing else. */
export interface WorkerOptions {
  /** Name of the Worker; `sluice` when absent. */
  name?: string;
  /** Main module, from the project's root; its handler is wrapped in `withBucketAccess`, or `bucket` has nothing. */
  entry?: string;
  /** Over `VARS` and those of `wrangler.toml`. */
  vars?: Record<string, string>;
  /** Changes the configuration made of `wrangler.toml`. */
  config?: (toml: string) => string;
}

export interface ReachedService {
  /** The bucket, for the oracles. */
  bucket: Bucket;
  /** The bucket, to write to. */
  rawBucket: DevBucket;
  /** A request to a Worker by path (`/v1/tables`); to the first one when no name is given. */
  send: Send;
  /** A table's address at a Worker. Nothing is sent yet. */
  table(namespace: string, table: string, worker?: string): TableClient;
}

export interface RunningService extends ReachedService {
  /** Everything else the harness can do: `getWorker(name).scheduled()`, `getLogs()`, eviction. */
  server: TestHarness;
  /** Address of the first Worker. */
  url: URL;
  stop(): Promise<void>;
}

/** Bundles and starts one or more Workers in a runtime of their own, with empty storage. */
export async function startService(...workers: WorkerOptions[]): Promise<RunningService> {
  quietRuntime();
  const { createTestHarness } = await import('wrangler');
  const folder = mkdtempSync(join(tmpdir(), 'sluice-e2e-'));
  const options = workers.length === 0 ? [{}] : workers;
  const server = createTestHarness({
    workers: options.map(({ name = 'sluice', entry = ENTRY, vars = {}, config = (toml) => toml }) => {
      const configPath = join(folder, `${name}.toml`);
      writeFileSync(configPath, config(configFor(name, entry)));
      return { configPath, vars: { ...VARS, ...vars } };
    }),
  });
  const stop = async (): Promise<void> => {
    await server.close();
    rmSync(folder, { recursive: true, force: true });
  };
  let url: URL;
  try {
    ({ url } = await server.listen());
  } catch (error) {
    await stop();
    throw error;
  }
  const sendTo =
    (worker?: string): Send =>
    async (path, init) =>
      (await server.getWorker(worker).fetch(path, init as never)) as unknown as Response;
  return {
    ...reached(sendTo()),
    server,
    url,
    table: (namespace, table, worker) => new TableClient(sendTo(worker), namespace, table),
    stop,
  };
}

/** A service that runs somewhere, as its requests see it. */
export function reached(send: Send): ReachedService {
  const secret = VARS[SECRET_VARIABLE] ?? '';
  const rawBucket = remoteBucket(((_url: string, init: RequestInit) => send('/', init)) as typeof fetch, '/', secret);
  return {
    rawBucket,
    bucket: oracleBucket(rawBucket),
    send,
    table: (namespace, table) => new TableClient(send, namespace, table),
  };
}

/** Keeps the local runtime from looking for services in the net and from keeping traces nobody reads. */
export function quietRuntime(): void {
  process.env['CLOUDFLARE_CF_FETCH_ENABLED'] ??= 'false';
  process.env['WRANGLER_SEND_METRICS'] ??= 'false';
  process.env['X_LOCAL_OBSERVABILITY'] ??= 'false';
}

/** `wrangler.toml` with another name and main module, and queues of that name, for one has one consumer; the rest stays as deployed. */
export function configFor(name: string, entry: string): string {
  const text = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const changed = text
    .replace(/^name = .*$/m, `name = ${JSON.stringify(name)}`)
    .replace(/^main = .*$/m, `main = ${JSON.stringify(join(ROOT, entry))}`)
    .replaceAll('"sluice-rows"', `"${name}-rows"`)
    .replaceAll('"sluice-dead-letters"', `"${name}-dead-letters"`);
  if (!changed.includes(join(ROOT, entry))) throw new Error('wrangler.toml names no main module');
  return changed;
}

/** What the oracles need, over a bucket reached by requests. */
export function oracleBucket(bucket: DevBucket): Bucket {
  return {
    get: async (key) => (await bucket.get(key))?.bytes ?? null,
    list: async (prefix) => {
      const found: Listing[] = [];
      let cursor: string | undefined;
      do {
        const page = await bucket.list(cursor === undefined ? { prefix } : { prefix, cursor });
        for (const { key, size } of page.objects) found.push({ key, size });
        cursor = page.cursor;
      } while (cursor !== undefined);
      return found.sort((a, b) => (a.key < b.key ? -1 : a.key > b.key ? 1 : 0));
    },
  };
}

/**
 * Waits until `look` gives something other than null or false, and returns it. For conditions nobody announces.
 *
 * @throws Error that names `what` when the time is over
 */
export async function until<T>(
  what: string,
  look: () => Promise<T | null | false> | T | null | false,
  { timeoutMs = 15_000, everyMs = 20 }: { timeoutMs?: number; everyMs?: number } = {},
): Promise<T> {
  const endMs = performance.now() + timeoutMs;
  for (;;) {
    const found = await look();
    if (found !== null && found !== false) return found;
    if (performance.now() > endMs) throw new Error(`${what}: did not come true in ${timeoutMs} ms`);
    await new Promise((resolve) => setTimeout(resolve, everyMs));
  }
}
