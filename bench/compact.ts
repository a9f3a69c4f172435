/**
 * What does it cost to merge the small files of a day?
 *
 *   npm run bench -- compact [--json] [--rows 50000] [--runs 3]
 *
 * Files as appends make them, one for each hour, of 1,000 series, merged by `POST …/maintain` of the production bundle in
 * `workerd serve` through a bucket in the memory of this process; the same with duplicates, eight small files, a cold
 * partition, and files of more bytes than one slice merges. What is left is held against the inputs by DuckDB. CPU time is
 * that of all threads of the runtime. Memory is what the inspector tells at each request to the bucket, in another run of a
 * fresh runtime. The yardstick reads, sorts and writes the same files with hyparquet and hyparquet-writer, in this process.
 */
import { sensorBody } from './append-rows.ts';
import { assertChecked, type Checked, check } from './compact-check.ts';
import { type Pauses, pausesOf } from './compact-pause.ts';
import { libraryMerge } from './compact-peer.ts';
import { type Case, type CaseName, casesOf, fill, type Merged, merge, post } from './compact-tables.ts';
import { type Setting, type Spread, setting, spread } from './report.ts';
import type { StoredObject } from './support/bucket.ts';
import { type HeapUsage, Inspector } from './support/inspector.ts';
import { type Bundle, bundle, type Runtime, removeBundle, startRuntime } from './support/runtime.ts';
import { cpuMsOf, resetPeak, residentOf } from './support/usage.ts';

/** The heap is kept small while memory is looked at: else it grows as it likes, and so does what lies beside it. */
const HEAP_FLAGS = ['--max-heap-size=32'];

/** Of the merge of 24 files of 50,000 rows: heap and buffers, and against the libraries. */
const YARDSTICK = { files: 24, rows: 50_000, bytes: 70_000_000, timesFaster: 3 };

const IDLE_MS = 4_000;

/** Rows of the batch that is taken beside a merge, and when it is sent. */
const BESIDE = { rows: 100_000, startMs: Date.UTC(2026, 11, 5), seed: 7 };

export const COMPACT_CASES: readonly CaseName[] = ['day', 'duplicates', 'small', 'cold', 'large'];

export interface CompactOptions {
  files: number;
  rows: number;
  runs: number;
  cases: readonly CaseName[];
  /** Cases during which rows are sent. */
  pauses: readonly CaseName[];
  /** The libraries, and a large batch beside the merge. */
  extras: boolean;
}

export interface Memory {
  idle: HeapUsage;
  peak: HeapUsage & { at: string };
  peakBytes: number;
  residentGrowthBytes: number;
}

export interface CaseReport {
  name: CaseName;
  what: string;
  inputs: { files: number; bytes: number };
  slices: Merged[];
  outputs: { files: number; bytes: number };
  wallMs: Spread;
  cpuMs: Spread;
  bucketRequests: Record<string, number>;
  memory: Memory;
  checked: Checked;
}

export interface CompactReport extends Setting {
  cases: CaseReport[];
  /** Of several runs the one with the least of the longest waits. */
  pauses: (Pauses & { name: CaseName; what: string; longestMs: { acknowledged: number[]; committed: number[] } })[];
  library: { cpuMs: number; timesFaster: number; holds: boolean } | null;
  /** Highest heap and buffers with a large batch taken and committed beside the merge of the first case. */
  besideBytes: number | null;
}

type Objects = ReadonlyMap<string, StoredObject>;

/** A table that waits to be merged: each run begins with a copy of it. */
interface Filled {
  given: Case;
  objects: Objects;
  inputs: Uint8Array[];
}

/** Runs the benchmark. Progress goes to standard error. */
export async function benchCompact(options: CompactOptions): Promise<CompactReport> {
  const begun = setting('compact', ['workerd', 'wrangler', 'hyparquet', 'hyparquet-writer', '@duckdb/node-api']);
  const made = await bundle('src/index.ts', 'TableObject');
  const report: CompactReport = { ...begun, cases: [], pauses: [], library: null, besideBytes: null };
  try {
    for (const given of casesOf(options.files, options.rows)) {
      if (!options.cases.includes(given.name)) continue;
      progress(`${given.name}: fill`);
      const filled = await inRuntime(made, null, null, async (runtime) => {
        const inputs = await fill(runtime, given);
        return { given, inputs, objects: new Map(runtime.bucket.objects) };
      });
      report.cases.push(await caseOf(made, filled, options));
      if (options.pauses.includes(given.name)) report.pauses.push(await pausesIn(made, filled, options.runs));
      if (!options.extras || given.name !== 'day') continue;
      report.besideBytes = (await memoryOf(made, filled, true)).peakBytes;
      progress('libraries');
      report.library = against(await libraryMerge(filled.inputs), report.cases[0], options);
    }
    return report;
  } finally {
    removeBundle(made);
  }
}

async function caseOf(made: Bundle, filled: Filled, { files, rows, runs }: CompactOptions): Promise<CaseReport> {
  const { given, inputs } = filled;
  const timed: Awaited<ReturnType<typeof timedMerge>>[] = [];
  for (let run = 1; run <= runs; run++) {
    progress(`${given.name}: run ${run} of ${runs}`);
    timed.push(await inRuntime(made, null, filled.objects, (runtime) => timedMerge(runtime, given)));
  }
  const { slices, requests, objects } = timed[0];
  progress(`${given.name}: check`);
  const checked = await check(objects, inputs);
  assertChecked(checked, given.rowsLeft);
  const outputs = { files: sum(slices, ({ made }) => made.files), bytes: sum(slices, ({ made }) => made.bytes) };
  if (files === YARDSTICK.files && rows === YARDSTICK.rows) assertShape(given, slices, outputs.files);
  progress(`${given.name}: memory`);
  return {
    name: given.name,
    what: given.what,
    inputs: { files: sum(slices, (slice) => slice.files), bytes: sum(slices, ({ bytes }) => bytes) },
    slices,
    outputs,
    wallMs: spread(timed.map(({ wallMs }) => wallMs)),
    cpuMs: spread(timed.map(({ cpuMs }) => cpuMs)),
    bucketRequests: requests,
    memory: await memoryOf(made, filled, false),
    checked,
  };
}

/** At the size that is measured by default it is known what is merged with what. */
function assertShape({ name, reason, slices, outputs }: Case, done: readonly Merged[], files: number): void {
  const isRight = done.length === slices && done.every((slice) => slice.reason === reason);
  if (!isRight || files < outputs.least || files > outputs.most)
    throw new Error(`${name}: not merged as it should be: ${JSON.stringify(done)}`);
}

async function pausesIn(made: Bundle, filled: Filled, runs: number): Promise<CompactReport['pauses'][number]> {
  const { name, what } = filled.given;
  const all: Pauses[] = [];
  for (let run = 1; run <= runs; run++) {
    progress(`${name}: rows beside it, run ${run} of ${runs}`);
    all.push(await inRuntime(made, null, filled.objects, ({ url }) => pausesOf(url, filled.given, IDLE_MS)));
  }
  const longest = ({ beside }: Pauses): number => beside.acknowledged.longestMs;
  const least = all.reduce((best, one) => (longest(one) < longest(best) ? one : best));
  const longestMs = {
    acknowledged: all.map(({ beside }) => beside.acknowledged.longestMs),
    committed: all.map(({ beside }) => beside.committed.longestMs),
  };
  return { name, what, ...least, longestMs };
}

function against(
  libraryMs: number,
  { cpuMs, memory }: CaseReport,
  { files, rows }: CompactOptions,
): CompactReport['library'] {
  const timesFaster = Math.round((100 * libraryMs) / cpuMs.min) / 100;
  const isOfSize = files === YARDSTICK.files && rows === YARDSTICK.rows;
  const holds = isOfSize && timesFaster >= YARDSTICK.timesFaster && memory.peakBytes <= YARDSTICK.bytes;
  return { cpuMs: Math.round(libraryMs), timesFaster, holds };
}

/** `heapFlags`: with the inspector, and a heap of that size. `objects`: what the bucket begins with. */
async function inRuntime<T>(
  made: Bundle,
  heapFlags: readonly string[] | null,
  objects: Objects | null,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const runtime = await startRuntime(made, heapFlags !== null, heapFlags ?? []);
  for (const [key, object] of objects ?? []) runtime.bucket.objects.set(key, object);
  try {
    return await work(runtime);
  } catch (error) {
    throw new Error(`benchmark failed; the runtime said:\n${runtime.log()}`, { cause: error });
  } finally {
    await runtime.stop();
  }
}

async function timedMerge({ url, pid, bucket }: Runtime, { full }: Case) {
  bucket.requests.clear();
  const before = cpuMsOf(pid);
  const start = performance.now();
  const slices = await merge(url, full);
  const wallMs = performance.now() - start;
  const cpuMs = cpuMsOf(pid) - before;
  return { wallMs, cpuMs, slices, requests: Object.fromEntries(bucket.requests), objects: new Map(bucket.objects) };
}

/** `isBeside`: with a large batch taken and committed meanwhile. */
function memoryOf(made: Bundle, { given, objects }: Filled, isBeside: boolean): Promise<Memory> {
  return inRuntime(made, HEAP_FLAGS, objects, async (runtime) => {
    const inspector = await Inspector.connect(runtime.inspectorPort as number);
    try {
      await inspector.collectGarbage(async () => (await fetch(`${runtime.url}/health`)).text());
      const idle = await inspector.heap();
      resetPeak(runtime.pid);
      const before = residentOf(runtime.pid).now;
      let peak = { ...idle, at: 'before' };
      runtime.bucket.beforeAnswer = async (method, key) => {
        const usage = await inspector.heap();
        if (usage.total + usage.buffers > peak.total + peak.buffers) {
          peak = { ...usage, at: `${method} ${key.slice(key.lastIndexOf('/') + 1)}` };
        }
      };
      const batch = isBeside ? sensorBody(BESIDE.rows, BESIDE) : null;
      await Promise.all([
        merge(runtime.url, given.full),
        ...(batch === null ? [] : [post(runtime.url, batch, 201, { prefer: 'wait=60' })]),
      ]);
      runtime.bucket.beforeAnswer = null;
      const residentGrowthBytes = residentOf(runtime.pid).peak - before;
      return { idle, peak, peakBytes: peak.total + peak.buffers, residentGrowthBytes };
    } finally {
      inspector.close();
    }
  });
}

function sum<T>(values: readonly T[], of: (value: T) => number): number {
  return values.reduce((total, value) => total + of(value), 0);
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
