/**
 * `npm run simulate:mutants [-- --seeds N] [--only word] [--jobs J]`: plants one fault at a time in a copy of the source and
 * lets the simulator look for it, with up to 1,500 seeds. Prints what found it and after how many. Then the control: the source
 * as it is over all seeds that found something, in which nothing may be found, or what was found may be its own fault and not
 * the planted one. The exit code is not 0 when the control finds something, or a fault is not found or cannot be planted any
 * more because the source has changed.
 */
import { spawn } from 'node:child_process';
import { cpSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { availableParallelism, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { MUTANTS, type Mutant } from './mutants-list.ts';

const ROOT = join(import.meta.dirname, '..');

/** Seeds of the control at the least: faults are found in few, and a fault of the source may hide behind the last. */
const CONTROL_SEEDS_MIN = 100;

interface Found {
  /** Seeds that were run, from the first. */
  seeds: number;
  /** The invariant that broke first, and how; null: none did. */
  by: string | null;
}

/** A copy of what the simulator needs, outside the work tree. */
function copy(): string {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-mutants-'));
  for (const name of ['src', 'test/sim', 'test/oracle', 'scripts', 'migrations', 'package.json']) {
    cpSync(join(ROOT, name), join(folder, name), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(folder, 'node_modules'));
  return folder;
}

/** Plants the fault; gives what takes it back. @throws when the source does not read as the fault expects */
function plant(folder: string, mutant: Mutant): () => void {
  const before = new Map<string, string>();
  const undo = (): void => {
    for (const [path, text] of before) writeFileSync(path, text);
  };
  try {
    for (const { file, from, to } of mutant.changes) {
      const path = join(folder, file);
      const text = readFileSync(path, 'utf8');
      if (!before.has(path)) before.set(path, text);
      const places = text.split(from).length - 1;
      if (places !== 1) throw new Error(`${file}: expected one place for "${from.slice(0, 60)}", found ${places}`);
      writeFileSync(
        path,
        text.replace(from, () => to),
      );
    }
  } catch (error) {
    undo();
    throw error;
  }
  return undo;
}

/** Runs the simulator in the copy, from the first seed on, until the first violation. */
function hunt(folder: string, seeds: number, jobs: number): Promise<Found> {
  const args = [
    '--experimental-strip-types',
    '--disable-warning=ExperimentalWarning',
    join(folder, 'scripts/simulate.ts'),
  ];
  return new Promise((resolve, reject) => {
    const child = spawn(process.execPath, [...args, '--first', '--seeds', String(seeds), '--jobs', String(jobs)], {
      cwd: folder,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let out = '';
    let err = '';
    child.stdout.on('data', (chunk) => {
      out += chunk;
    });
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    child.on('error', reject);
    child.on('close', () => {
      const lines = out.trim().split('\n');
      const last = lines.at(-1) ?? '';
      if (!last.startsWith('{')) {
        reject(new Error(`the simulator did not end: ${err.slice(-500)}`));
        return;
      }
      const violation = lines.map((line) => /^seed [0-9]+, step [0-9]+: (.*)$/.exec(line)?.[1]).find(Boolean);
      resolve({ seeds: JSON.parse(last).seeds, by: violation ?? null });
    });
  });
}

const { values } = parseArgs({
  options: {
    // The rarest fault takes some five hundred.
    seeds: { type: 'string', default: '1500' },
    only: { type: 'string' },
    jobs: { type: 'string', default: String(availableParallelism()) },
  },
});
const folder = copy();
let survivors = 0;
/** Seeds within which every fault that was found was found. */
let searched = 0;
let control = 'clean';
try {
  const { only } = values;
  const chosen = MUTANTS.filter(({ name }) => only === undefined || name.includes(only));
  for (const mutant of chosen) {
    let line: string;
    try {
      const undo = plant(folder, mutant);
      const { seeds, by } = await hunt(folder, Number(values.seeds), Number(values.jobs)).finally(undo);
      if (by === null) survivors++;
      else searched = Math.max(searched, seeds);
      line = by === null ? `NOT FOUND  in ${seeds} seeds` : `found      after ${seeds} seeds: ${by.slice(0, 110)}`;
    } catch (error) {
      survivors++;
      line = `NOT PLANTED ${(error as Error).message}`;
    }
    console.log(`${mutant.name.padEnd(46)} ${line}`);
  }
  // Each found in so many seeds: the same seeds without the fault.
  const { seeds, by } = await hunt(folder, Math.max(searched, CONTROL_SEEDS_MIN), Number(values.jobs));
  if (by !== null) control = by;
  console.log(
    `${'control: nothing planted'.padEnd(46)} ${by === null ? `nothing in ${seeds} seeds` : `BROKEN: ${by}`}`,
  );
  const found = chosen.length - survivors;
  console.log(JSON.stringify({ mutants: chosen.length, found, survivors, searched, control }));
} finally {
  rmSync(folder, { recursive: true, force: true });
}
process.exitCode = survivors === 0 && control === 'clean' ? 0 : 1;
