import { spawn, spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PLAN_VARIABLE, type SlowPlan } from '../test/e2e/support/slow-bucket.ts';
import { startSteppedLake } from '../test/interop/stepped-lake.ts';
import { startDev, stopOnSignal } from './dev.ts';
import { isMain } from './is-main.ts';

/**
 * `npm run test:interop`: the service and its bucket on free ports with a directory of their own, and other engines
 * against both: PyIceberg, DuckDB and the Timelake engine, driven by pytest. Arguments go to pytest
 * (`npm run test:interop -- -k timelake`); its exit code is ours.
 */

const ROOT = join(import.meta.dirname, '..');
const VENV = join(ROOT, '.venv');
const PYTHON = join(VENV, 'bin', 'python');
const REQUIREMENTS = join(ROOT, 'test', 'interop', 'requirements.txt');
const TESTS = join(ROOT, 'test', 'interop');
/** The service with its bucket a little further away, for the tables of `PLAN` alone. */
const ENTRYPOINT = join(ROOT, 'test', 'e2e', 'support', 'slow-worker.ts');

/**
 * The local bucket answers within a millisecond, so between the confirmation of a base and the write on top of it nobody
 * else ever gets in. Tables named `race_…` have the distance of a real store there, and `held_…` that of a stalled one.
 */
const PLAN: SlowPlan = {
  seed: 1,
  rules: [
    {
      operation: 'put',
      key: '/race_[^/]+/metadata/v[0-9]+[.]metadata[.]json$',
      side: 'before',
      chance: 1,
      ms: [20, 250],
    },
    {
      operation: 'put',
      key: '/held_[^/]+/metadata/v[0-9]+[.]metadata[.]json$',
      side: 'before',
      chance: 1,
      ms: [4000, 4000],
    },
  ],
};

/** Makes the environment when it is missing or was made from other requirements. */
function ensureVenv(): void {
  const stamp = join(VENV, 'requirements.sha256');
  const wanted = createHash('sha256').update(readFileSync(REQUIREMENTS)).digest('hex');
  if (existsSync(PYTHON) && existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  const version = spawnSync('python3', ['-c', 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))']);
  if (version.error !== undefined || version.status !== 0) {
    throw new Error('interoperability tests need python3 >= 3.10 with its venv module (Debian: python3-venv)');
  }
  console.log('making .venv with the pinned engines, once');
  if (!existsSync(PYTHON)) run('python3', ['-m', 'venv', VENV]);
  run(PYTHON, ['-m', 'pip', 'install', '--quiet', '--disable-pip-version-check', '-r', REQUIREMENTS]);
  writeFileSync(stamp, wanted);
}

function run(command: string, args: string[]): void {
  const { status, error } = spawnSync(command, args, { stdio: 'inherit' });
  if (error !== undefined) throw error;
  if (status !== 0) throw new Error(`${command} ${args.join(' ')} failed with ${status}`);
}

/** Runs pytest in a process group of its own, so that what it starts ends with it. */
function pytest(env: Record<string, string>, args: string[]): { done: Promise<number>; kill: () => void } {
  const child = spawn(PYTHON, ['-m', 'pytest', '-p', 'no:cacheprovider', TESTS, ...args], {
    cwd: ROOT,
    env: { ...process.env, PYTHONDONTWRITEBYTECODE: '1', ...env },
    stdio: 'inherit',
    detached: true,
  });
  const done = new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (code) => resolve(code ?? 1));
  });
  const kill = (): void => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  };
  return { done, kill };
}

async function main(): Promise<number> {
  ensureVenv();
  const persist = mkdtempSync(join(tmpdir(), 'sluice-interop-'));
  const dev = await startDev({
    persist,
    quiet: true,
    entrypoint: ENTRYPOINT,
    vars: { [PLAN_VARIABLE]: JSON.stringify(PLAN) },
  });
  const stepped = await startSteppedLake();
  const tests = pytest(
    {
      SLUICE_URL: dev.url,
      SLUICE_S3: dev.s3,
      SLUICE_WAREHOUSE: dev.warehouse,
      SLUICE_STEPPED_URL: stepped.url,
      SLUICE_STEPPED_S3: stepped.s3,
    },
    process.argv.slice(2),
  );
  const stop = async (): Promise<void> => {
    tests.kill();
    await stepped.stop();
    await dev.stop();
    rmSync(persist, { recursive: true, force: true });
  };
  stopOnSignal(stop);
  try {
    return await tests.done;
  } finally {
    await stop();
  }
}

if (isMain(import.meta)) {
  main().then(
    (code) => process.exit(code),
    (error: unknown) => {
      console.error(error instanceof Error ? error.message : error);
      process.exit(1);
    },
  );
}
