/**
 * `npm run simulate -- [--seeds N] [--from S] [--jobs J]` runs N seeds from S and ends with one JSON line:
 * `{"seeds":N,"steps":N,"violations":N,"marks":{...}}`. `--seed X` runs one and prints its trace. The exit code is 0 only
 * when no invariant was broken and, over at least 500 seeds, every mark was reached.
 */
import { availableParallelism } from 'node:os';
import { parseArgs } from 'node:util';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';
import { MARKS, MARKS_DUE_SEEDS } from '../test/sim/marks.ts';
import { type RunResult, runSeed } from '../test/sim/run.ts';
import { isMain } from './is-main.ts';

/** Seeds a worker takes at a time: few, so that none is left with a long tail. */
const SHARE = 8;

type Told = Omit<RunResult, 'trace'>;

async function work(): Promise<void> {
  const port = parentPort;
  if (port === null) throw new Error('a worker has a parent');
  // A rejection that nobody handles is a fault of the product like any other: it is put down to the seed that runs.
  let stray: unknown = null;
  process.on('unhandledRejection', (error) => {
    stray ??= error;
  });
  port.on('message', async (seeds: number[]) => {
    for (const seed of seeds) {
      stray = null;
      const { trace: _, ...told } = await runSeed(seed);
      if (stray !== null) told.violations.push({ invariant: 'error', text: `unhandled: ${stray}`, step: told.steps });
      port.postMessage(told satisfies Told);
    }
    port.postMessage(null);
  });
}

/** Runs the seeds on `jobs` threads; `take` hears of each as it ends, and may say that it is enough. */
export async function campaign(
  seeds: { from: number; count: number; jobs: number },
  take: (told: Told) => boolean,
): Promise<void> {
  let next = seeds.from;
  const end = seeds.from + seeds.count;
  const workers: Worker[] = [];
  await Promise.all(
    Array.from({ length: Math.min(seeds.jobs, Math.ceil(seeds.count / SHARE)) }, () => {
      return new Promise<void>((resolve, reject) => {
        const worker = new Worker(import.meta.filename, { workerData: { simulates: true } });
        workers.push(worker);
        const give = (): void => {
          const share = Array.from({ length: Math.min(SHARE, end - next) }, (_, i) => next + i);
          next += share.length;
          if (share.length === 0) resolve();
          else worker.postMessage(share);
        };
        worker.on('message', (told: Told | null) => {
          if (told === null) give();
          else if (!take(told)) next = end;
        });
        worker.on('error', reject);
        give();
      });
    }),
  );
  await Promise.all(workers.map((worker) => worker.terminate()));
}

async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      seeds: { type: 'string', default: '200' },
      from: { type: 'string', default: '1' },
      seed: { type: 'string' },
      jobs: { type: 'string' },
      /** Ends with the first violation. */
      first: { type: 'boolean', default: false },
    },
  });
  if (values.seed !== undefined) {
    const result = await runSeed(Number(values.seed), { traceLines: Number.POSITIVE_INFINITY });
    for (const line of result.trace) console.log(line);
    for (const { invariant, text } of result.violations) console.log(`${invariant}: ${text}`);
    console.log(JSON.stringify({ seed: result.seed, steps: result.steps, digest: result.digest, marks: result.marks }));
    process.exitCode = result.violations.length === 0 ? 0 : 1;
    return;
  }
  const seeds = Number(values.seeds);
  const total = { seeds: 0, steps: 0, violations: 0 };
  const marks = new Map<string, number>(MARKS.map((mark) => [mark, 0]));
  const share = { from: Number(values.from), count: seeds, jobs: Number(values.jobs ?? availableParallelism()) };
  await campaign(share, (told) => {
    total.seeds++;
    total.steps += told.steps;
    for (const [mark, count] of Object.entries(told.marks)) marks.set(mark, (marks.get(mark) ?? 0) + count);
    if (told.violations.length > 0) {
      total.violations++;
      const [{ invariant, text, step }] = told.violations;
      console.log(`seed ${told.seed}, step ${step}: ${invariant}: ${text}`);
      console.log(`  replay: npm run simulate -- --seed ${told.seed}`);
    }
    if (values.first && total.violations > 0) return false;
    if (total.seeds % 100 === 0) console.error(`${total.seeds} seeds, ${total.violations} with a violation`);
    return true;
  });
  const missed = MARKS.filter((mark) => marks.get(mark) === 0);
  if (missed.length > 0) console.log(`marks not reached: ${missed.join(' ')}`);
  const sorted = Object.fromEntries([...marks].sort(([a], [b]) => (a < b ? -1 : 1)));
  console.log(JSON.stringify({ ...total, marks: sorted }));
  process.exitCode = total.violations === 0 && (missed.length === 0 || seeds < MARKS_DUE_SEEDS) ? 0 : 1;
}

if (!isMainThread && (workerData as { simulates?: boolean } | null)?.simulates === true) await work();
else if (isMain(import.meta)) await main();
