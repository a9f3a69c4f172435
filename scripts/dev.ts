import { randomUUID } from 'node:crypto';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { remoteBucket, SECRET_VARIABLE } from './dev-bucket.ts';
import { isMain } from './is-main.ts';
import { type GatewayOptions, startGateway } from './s3-gateway.ts';

/**
 * `npm run dev`: the service in the local runtime, its state in `.dev/`, and beside it the S3 gateway over the same
 * bucket. Gateway and service share **one** runtime process: the gateway's requests are carried out by the running
 * service's own binding (`dev-bucket.ts`), so what one has written the other reads at once, and conditional writes of
 * both are ordered.
 */
export interface DevOptions {
  /** Port of the service; 0: any free one. */
  port?: number;
  /** Port of the S3 gateway; 0: any free one. */
  gatewayPort?: number;
  /** Directory for bucket, objects and queues. */
  persist?: string;
  /** Variables over those of `wrangler.toml`. */
  vars?: Record<string, string>;
  /** No output but errors of the runtime. */
  quiet?: boolean;
  /** Rebuild and reload when a source file changes. */
  watch?: boolean;
  /** Another main module than `dev-worker.ts`; its handler is wrapped in `withBucketAccess`, or the gateway has no bucket. */
  entrypoint?: string;
  /** Faults of the gateway, for tests. */
  fault?: GatewayOptions['fault'];
}

export interface Dev {
  /** Address of the service, without a trailing slash. */
  url: string;
  /** Address of the S3 gateway, without a trailing slash. */
  s3: string;
  /** Name of the bucket in S3 addresses. */
  bucketName: string;
  /** Where tables are, as engines name it: `<warehouse>/<namespace>/<table>`. */
  warehouse: string;
  /** The service's bucket binding, as the runtime hands it to Node: complete, slow on many objects. Ask again after a reload. */
  bucket(): Promise<R2Bucket>;
  /** Stops gateway, service and runtime process. */
  stop(): Promise<void>;
}

const CONFIG = join(import.meta.dirname, '..', 'wrangler.toml');
const ENTRYPOINT = join(import.meta.dirname, 'dev-worker.ts');
const BINDING = 'LAKE';

/** The part of the configuration that is read here. */
interface DevConfig {
  r2_buckets: { binding: string; bucket_name?: string }[];
  vars: Record<string, unknown>;
}

/** Starts service and gateway; nothing is left running when it rejects. */
export async function startDev(options: DevOptions = {}): Promise<Dev> {
  // The runtime asks a service in the net for the `cf` object of requests; there is nothing to ask here.
  process.env['CLOUDFLARE_CF_FETCH_ENABLED'] ??= 'false';
  process.env['WRANGLER_SEND_METRICS'] ??= 'false';
  // Else every request is also written to a trace store that nobody looks at.
  process.env['X_LOCAL_OBSERVABILITY'] ??= 'false';
  const { unstable_startWorker, unstable_readConfig } = await import('wrangler');
  const config: DevConfig = unstable_readConfig({ config: CONFIG });
  const bucketName = config.r2_buckets.find(({ binding }) => binding === BINDING)?.bucket_name;
  if (bucketName === undefined) throw new Error(`wrangler.toml has no bucket bound to ${BINDING}`);
  const persist = options.persist ?? join(import.meta.dirname, '..', '.dev');
  mkdirSync(persist, { recursive: true });

  const secret = randomUUID();
  const vars = { ACCESS: 'local', ...options.vars };
  const warehouse = options.vars?.['LAKE_LOCATION'] ?? String(config.vars['LAKE_LOCATION']);
  const worker = await unstable_startWorker({
    config: CONFIG,
    entrypoint: options.entrypoint ?? ENTRYPOINT,
    bindings: {
      ...Object.fromEntries(
        Object.entries(vars).map(([name, value]) => [name, { type: 'plain_text' as const, value }]),
      ),
      [SECRET_VARIABLE]: { type: 'secret_text', value: secret },
    },
    dev: {
      server: { hostname: '127.0.0.1', port: options.port ?? 0 },
      persist,
      inspector: false,
      watch: options.watch ?? false,
      logLevel: options.quiet === true ? 'error' : 'log',
      remote: false,
    },
  });
  const bucket = async (): Promise<R2Bucket> => {
    const runtime = worker.raw.runtimes[0]?.mf;
    if (runtime === undefined) throw new Error('local runtime is not running');
    const bindings = await runtime.getBindings<Record<string, R2Bucket>>(worker.config.name);
    const found = bindings[BINDING];
    if (found === undefined) throw new Error(`service has no bucket ${BINDING}`);
    return found;
  };
  try {
    await worker.ready;
    const url = (await worker.url).href.replace(/\/$/, '');
    const store = remoteBucket(fetch, url, secret);
    // The address is known before the runtime behind it is up; the first answer shows that it is.
    await store.list({ limit: 1 });
    const gateway = await startGateway({
      bucket: bucketName,
      store,
      port: options.gatewayPort ?? 0,
      ...(options.fault === undefined ? {} : { fault: options.fault }),
    });
    let stopped: Promise<void> | undefined;
    const stop = (): Promise<void> => {
      stopped ??= gateway.stop().then(() => worker.dispose());
      return stopped;
    };
    return { url, s3: gateway.url, bucketName, warehouse, bucket, stop };
  } catch (error) {
    await worker.dispose();
    throw error;
  }
}

/** What a person pastes into each engine to read table `ns.table`. */
export function pasteable({ s3, warehouse }: Pick<Dev, 's3' | 'warehouse'>): string {
  const endpoint = s3.replace(/^https?:\/\//, '');
  return `DuckDB
  INSTALL httpfs; LOAD httpfs; INSTALL iceberg; LOAD iceberg;
  CREATE OR REPLACE SECRET (TYPE s3, ENDPOINT '${endpoint}', URL_STYLE 'path', USE_SSL false, KEY_ID 'dev', SECRET 'dev', REGION 'auto');
  SELECT * FROM iceberg_scan('${warehouse}/NAMESPACE/TABLE');

PyIceberg
  from pyiceberg.table import StaticTable
  StaticTable.from_metadata('${warehouse}/NAMESPACE/TABLE', {'s3.endpoint': '${s3}', 's3.access-key-id': 'dev',
      's3.secret-access-key': 'dev', 's3.region': 'auto', 's3.force-virtual-addressing': 'false'}).scan().to_arrow()

Timelake
  import timelake
  lake = timelake.Lake('${warehouse}', storage_options={'aws_endpoint': '${s3}', 'aws_allow_http': 'true',
      'aws_access_key_id': 'dev', 'aws_secret_access_key': 'dev', 'aws_region': 'auto'})
  lake.sql('SELECT * FROM NAMESPACE.TABLE')
`;
}

/** Calls `stop` once on Ctrl-C, a termination, or the end of the terminal, then ends the process with `exitCode()`. */
export function stopOnSignal(stop: () => Promise<void>, exitCode: () => number = () => 0): void {
  let stopping = false;
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(signal, () => {
      // A second Ctrl-C does not wait for a clean end.
      if (stopping) process.exit(130);
      stopping = true;
      stop().then(
        () => process.exit(exitCode()),
        () => process.exit(1),
      );
    });
  }
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8787' },
      's3-port': { type: 'string', default: '9000' },
      persist: { type: 'string' },
    },
  });
  const dev = await startDev({
    port: Number(values.port),
    gatewayPort: Number(values['s3-port']),
    watch: true,
    ...(values.persist === undefined ? {} : { persist: values.persist }),
  });
  stopOnSignal(dev.stop);
  console.log(
    `\nservice     ${dev.url}\nS3 gateway  ${dev.s3}   (bucket ${dev.bucketName}, this machine only)\n\n${pasteable(dev)}`,
  );
}

if (isMain(import.meta)) await main();
