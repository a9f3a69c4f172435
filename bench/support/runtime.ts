import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Readable } from 'node:stream';
import { promisify } from 'node:util';
import { type MemoryBucket, startBucket } from './bucket.ts';

const run = promisify(execFile);

const ROOT = new URL('../../', import.meta.url).pathname;

/** A bundle as wrangler writes it for upload. */
export interface Bundle {
  folder: string;
  className: string;
  bytes: number;
}

/** Bundles a main module (path from the project's root) as `npm run build` bundles the service. */
export async function bundle(main: string, className: string): Promise<Bundle> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bench-'));
  const config = join(folder, 'wrangler.toml');
  const text = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8')
    .replace(/^main = .*$/m, `main = ${JSON.stringify(join(ROOT, main))}`)
    .replaceAll('"TableObject"', JSON.stringify(className));
  writeFileSync(config, text);
  await run(
    process.execPath,
    [join(ROOT, 'node_modules/wrangler/bin/wrangler.js'), 'deploy', '--dry-run', '--outdir', folder, '-c', config],
    { cwd: ROOT, env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' } },
  );
  const name = readdirSync(folder).find((file) => file.endsWith('.js'));
  if (name === undefined) throw new Error(`bundling gave no script: ${main}`);
  return { folder, className, bytes: readFileSync(join(folder, name)).length };
}

/** A runtime of its own: nothing but the bundle, its object with its database on disk, and a bucket in our memory. */
export interface Runtime {
  url: string;
  pid: number;
  /** Null when it was started without. */
  inspectorPort: number | null;
  bucket: MemoryBucket;
  /** What the Worker logged, for errors. */
  log: () => string;
  stop(): Promise<void>;
}

/** `workerd serve` on a bundle: no proxy before it, and code generation refused as in production. */
export async function startRuntime(
  { folder, className }: Bundle,
  inspector: boolean,
  v8Flags: readonly string[] = [],
): Promise<Runtime> {
  const bucket = await startBucket();
  const disk = mkdtempSync(join(tmpdir(), 'sluice-bench-disk-'));
  mkdirSync(join(disk, 'objects'));
  const config = join(folder, 'workerd.capnp');
  writeFileSync(config, configText(folder, className, bucket.port, join(disk, 'objects'), v8Flags));
  const child = spawn(
    runtimePath(),
    ['serve', config, '--experimental', '--control-fd=3', ...(inspector ? ['--inspector-addr=127.0.0.1:0'] : [])],
    { stdio: ['ignore', 'pipe', 'pipe', 'pipe'] },
  );
  let log = '';
  const keep = (piece: Buffer) => {
    log = (log + piece.toString('utf8')).slice(-20_000);
  };
  child.stdout?.on('data', keep);
  child.stderr?.on('data', keep);
  const stop = async (): Promise<void> => {
    await ended(child);
    await bucket.close();
    rmSync(disk, { recursive: true, force: true });
  };
  try {
    const ports = await listening(child, inspector, () => log);
    return {
      url: `http://127.0.0.1:${ports.get('http')}`,
      pid: child.pid as number,
      inspectorPort: ports.get('inspector') ?? null,
      bucket,
      log: () => log,
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}

export function removeBundle({ folder }: Bundle): void {
  rmSync(folder, { recursive: true, force: true });
}

/** The runtime itself, not the script of the package that starts it. */
function runtimePath(): string {
  return (createRequire(import.meta.url)('workerd') as { default: string }).default;
}

async function ended(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const over = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGKILL');
  await over;
}

/** Ports of the runtime, which it tells on its control pipe, one JSON object a line. */
function listening(child: ChildProcess, inspector: boolean, log: () => string): Promise<Map<string, number>> {
  const ports = new Map<string, number>();
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`workerd ended with ${code}: ${log()}`)));
    let text = '';
    (child.stdio[3] as Readable).on('data', (piece: Buffer) => {
      text += piece.toString('utf8');
      const lines = text.split('\n');
      text = lines.pop() ?? '';
      for (const line of lines) {
        const { event, socket, port } = JSON.parse(line) as { event: string; socket?: string; port: number };
        ports.set(event === 'listen-inspector' ? 'inspector' : (socket ?? ''), port);
      }
      if (ports.has('http') && (!inspector || ports.has('inspector'))) resolve(ports);
    });
  });
}

/** Bindings of `wrangler.toml`, but the queue; the token is switched off. */
function configText(
  folder: string,
  className: string,
  bucketPort: number,
  disk: string,
  v8Flags: readonly string[],
): string {
  const wrangler = readFileSync(join(ROOT, 'wrangler.toml'), 'utf8');
  const date = /^compatibility_date = (".*")$/m.exec(wrangler)?.[1];
  const flags = /^compatibility_flags = (\[.*\])$/m.exec(wrangler)?.[1];
  const location = /^LAKE_LOCATION = (".*")$/m.exec(wrangler)?.[1];
  if (date === undefined || flags === undefined || location === undefined) {
    throw new Error('wrangler.toml lacks what the benchmark reads from it');
  }
  const files = readdirSync(folder);
  const script = files.find((file) => file.endsWith('.js'));
  const texts = files.filter((file) => file.endsWith('.sql'));
  const modules = [
    `(name = "index.js", esModule = embed ${JSON.stringify(script)})`,
    ...texts.map((file) => `(name = ${JSON.stringify(`./${file}`)}, text = embed ${JSON.stringify(file)})`),
  ];
  return `using Workerd = import "/workerd/workerd.capnp";
const config :Workerd.Config = (
  v8Flags = [${v8Flags.map((flag) => JSON.stringify(flag)).join(', ')}],
  services = [
    (name = "main", worker = .main),
    (name = "bucket", external = (address = "127.0.0.1:${bucketPort}", http = ())),
    (name = "disk", disk = (path = ${JSON.stringify(disk)}, writable = true)),
  ],
  sockets = [(name = "http", address = "127.0.0.1:0", http = (), service = "main")],
);
const main :Workerd.Worker = (
  modules = [${modules.join(', ')}],
  compatibilityDate = ${date},
  compatibilityFlags = ${flags},
  bindings = [
    (name = "LAKE", r2Bucket = "bucket"),
    (name = "TABLES", durableObjectNamespace = ${JSON.stringify(className)}),
    (name = "LAKE_LOCATION", text = ${location}),
    (name = "ACCESS", text = "local"),
  ],
  durableObjectNamespaces = [(className = ${JSON.stringify(className)}, uniqueKey = "bench", enableSql = true)],
  durableObjectStorage = (localDisk = "disk"),
);
`;
}
