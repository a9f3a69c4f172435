import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, parse } from 'node:path';
import { createInterface } from 'node:readline';
import type { HostOrder } from './host.ts';
import { configFor, until } from './service.ts';

/** Processes that run a production bundle and can be killed as a whole. */

const ROOT = new URL('../../../', import.meta.url).pathname;
const HOST = new URL('./host.ts', import.meta.url).pathname;
const WRANGLER = join(ROOT, 'node_modules/wrangler/bin/wrangler.js');

export interface Bundle {
  /** The Worker as the simulator takes it, with variables over those of `wrangler.toml`. */
  worker(vars: Record<string, string>): HostOrder['worker'];
  remove(): void;
}

/** Makes the bundle of a main module as `wrangler deploy` would upload it. */
export async function buildBundle(entry: string): Promise<Bundle> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-bundle-'));
  const config = join(folder, 'wrangler.toml');
  const output = join(folder, 'output');
  writeFileSync(config, configFor('sluice', entry));
  const child = spawn(process.execPath, [WRANGLER, 'deploy', '--dry-run', '--config', config, '--outdir', output], {
    cwd: ROOT,
    env: { ...process.env, CI: '1', WRANGLER_SEND_METRICS: 'false' },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  let said = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += String(chunk);
    });
  }
  const { unstable_getMiniflareWorkerOptions } = await import('wrangler');
  const { workerOptions } = unstable_getMiniflareWorkerOptions(config);
  const code = await new Promise((resolve) =>
    child.exitCode === null ? child.once('exit', resolve) : resolve(child.exitCode),
  );
  const remove = (): void => rmSync(folder, { recursive: true, force: true });
  if (code !== 0) {
    remove();
    throw new Error(`bundle of ${entry} was not made:\n${said}`);
  }
  const main = `${parse(entry).name}.js`;
  const modules = readdirSync(output)
    .filter((name) => name === main || name.endsWith('.sql'))
    .map((name) => ({
      type: name === main ? 'ESModule' : 'Text',
      path: join(output, name),
      contents: readFileSync(join(output, name), 'utf8'),
    }))
    // The main module is the first.
    .sort((a, b) => Number(b.type === 'ESModule') - Number(a.type === 'ESModule'));
  return {
    worker: (vars) => ({
      ...workerOptions,
      name: 'sluice',
      rootPath: output,
      modules,
      bindings: { ...(workerOptions['bindings'] as Record<string, unknown> | undefined), ...vars },
    }),
    remove,
  };
}

/** A process of its own group. `start` may be long after it was made: loading the tools takes longer than starting. */
export class HostProcess {
  readonly #child: ChildProcess;
  readonly #lines: AsyncIterator<string>;
  readonly #exited: Promise<void>;
  #said = '';

  constructor() {
    // Its own group, so that the runtime it starts dies with it.
    this.#child = spawn(process.execPath, [HOST], { cwd: ROOT, detached: true, stdio: ['pipe', 'pipe', 'pipe'] });
    this.#exited = new Promise((resolve) => this.#child.once('exit', () => resolve()));
    this.#child.stderr?.on('data', (chunk) => {
      this.#said = (this.#said + String(chunk)).slice(-4000);
    });
    this.#lines = createInterface({ input: this.#child.stdout as NodeJS.ReadableStream })[Symbol.asyncIterator]();
  }

  /** Starts the bundle and returns its address, without a trailing slash. */
  async start(order: HostOrder): Promise<string> {
    await this.#line('loaded');
    this.#child.stdin?.write(`${JSON.stringify(order)}\n`);
    return (await this.#line('listening')).replace(/\/$/, '');
  }

  /** SIGKILL to the whole group; resolves when none of it runs any more. */
  async kill(): Promise<void> {
    const { pid } = this.#child;
    if (pid === undefined) return;
    try {
      process.kill(-pid, 'SIGKILL');
    } catch {
      // It has ended by itself.
    }
    await this.#exited;
    await until(`end of process group ${pid}`, () => !isGroupRunning(pid), { everyMs: 5 });
  }

  async #line(word: string): Promise<string> {
    for (;;) {
      const { value, done } = await this.#lines.next();
      if (done === true) throw new Error(`host ended before it said "${word}":\n${this.#said}`);
      if (value.startsWith(word)) return value.slice(word.length).trim();
    }
  }
}

/** True while a process of the group runs. One that ended and was not collected by its parent does not. */
function isGroupRunning(group: number): boolean {
  let names: string[];
  try {
    names = readdirSync('/proc').filter((name) => /^[0-9]+$/.test(name));
  } catch {
    return canSignal(group);
  }
  return names.some((name) => {
    try {
      // pid (name) state parent group ...; the name may hold anything.
      const stat = readFileSync(`/proc/${name}/stat`, 'utf8');
      const [state, , its] = stat.slice(stat.lastIndexOf(')') + 2).split(' ');
      return Number(its) === group && state !== 'Z' && state !== 'X';
    } catch {
      return false;
    }
  });
}

function canSignal(group: number): boolean {
  try {
    process.kill(-group, 0);
    return true;
  } catch {
    return false;
  }
}
