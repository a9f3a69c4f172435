/**
 * What does an append cost, from body to commit, and where?
 *
 *   npm run bench -- append [--json] [--rows 1000,10000,100000] [--runs 7]
 *
 * **End to end.** The production bundle (`wrangler deploy --dry-run`) in `workerd serve`, with no proxy before it and code
 * generation refused. A body is posted with `Prefer: wait` and answered when it is committed. The bucket is in the memory
 * of this process behind R2's own protocol, so the runtime's CPU time has the requests to R2, and not R2. CPU time is that
 * of all threads of the runtime (JavaScript, garbage collection, compilation, HTTP, SQLite) from before the request until
 * all stands still after the answer, pointer write included. Wall time holds the 50 ms that a flush waits for company.
 *
 * **By stage.** The same modules in a bundle of the same bundler and the same runtime, each stage by one request; the CPU
 * time of a request that does nothing is taken off.
 *
 * **Memory.** A runtime of its own: the inspector is asked whenever the isolate waits for us: at every MiB of the body, at
 * every request to the bucket. Heap is what V8 took for objects, buffers what lies outside of it.
 */
import { createHash } from 'node:crypto';
import type { Columns } from '../src/core/columns/columns.ts';
import type { Schema } from '../src/core/iceberg/types.ts';
import { parseFooter, readWindow } from '../src/core/parquet/reader.ts';
import { decompressZstd } from '../src/platform/zlib.ts';
import { SENSORS_BODY, sensorBody } from './append-rows.ts';
import { type Setting, type Spread, setting, spread } from './report.ts';
import { type HeapUsage, Inspector } from './support/inspector.ts';
import { type Bundle, bundle, type Runtime, removeBundle, startRuntime } from './support/runtime.ts';
import { cpuMsOf, resetPeak, residentOf } from './support/usage.ts';

/** A table of this shape must do with it (100,000 rows). */
export const YARDSTICK = { rows: 100_000, cpuMs: 250, bytes: 45_000_000 };

/** In the order of an append: name of the request, what it does, and the stage whose work it repeats. */
export const STAGES: readonly { name: string; what: string; minus?: string; sendsBody?: boolean }[] = [
  { name: 'read', what: 'body: read', sendsBody: true },
  { name: 'align', what: 'body: rows to columns', minus: 'read', sendsBody: true },
  { name: 'partitions', what: 'partition count' },
  { name: 'encode-frame', what: 'frame: encode' },
  { name: 'call', what: 'call to the object' },
  { name: 'accept', what: 'ledger: write', minus: 'call' },
  { name: 'frames', what: 'ledger: read' },
  { name: 'decode-frame', what: 'frame: decode' },
  { name: 'join', what: 'ingest time, join' },
  { name: 'plan', what: 'partition, sort, dedup, split' },
  { name: 'gather', what: 'gather' },
  { name: 'encode-parquet', what: 'Parquet, zstd' },
  { name: 'prepare', what: 'names, bounds, manifest', minus: 'decode-frame join plan gather encode-parquet' },
  { name: 'decide', what: 'manifest list, metadata' },
  { name: 'puts', what: 'puts' },
  { name: 'settle', what: 'ledger: seal, settle' },
];

export const LIBRARY_STAGES = [
  { name: 'library-parse', what: 'text, JSON.parse', sendsBody: true },
  { name: 'library-sort', what: 'sort' },
  { name: 'library-encode', what: 'hyparquet-writer, zstd' },
];

export interface StageReport {
  stage: string;
  /** Milliseconds of CPU, without the stage that it repeats: medians are subtracted from medians, minima from minima. */
  cpuMs: { median: number; min: number };
  /** As the worker's own clock, which counts whole milliseconds, sees the stage and what it repeats. */
  wallMs: Spread;
}

export interface SizeReport {
  rows: number;
  bodyBytes: number;
  endToEnd: {
    /** The first large request of a fresh runtime, after one of 1,000 rows. */
    first: { wallMs: number; cpuMs: number };
    warm: { runs: number; wallMs: Spread; cpuMs: Spread };
    /** Requests to the bucket of one append, by method. */
    bucketRequests: Record<string, number>;
    fileBytes: number;
    /** Of the rows as they stand in the file, without the ingest time. */
    digest: string;
  };
  memory: {
    /** After a forced collection, before the append. */
    idle: HeapUsage;
    /** At the checkpoint where heap and buffers together were highest, in the first large append of a fresh runtime. */
    peak: HeapUsage & { at: string };
    peakBytes: number;
    /** The same in the append after it, with what is left of the first: nothing forces a collection in between. */
    againPeakBytes: number;
    residentGrowthBytes: number;
  };
  stages: StageReport[];
  /** The sum of all stages. */
  stagesCpuMs: { median: number; min: number };
  library: { stages: StageReport[]; cpuMs: { median: number; min: number } };
  /** Libraries alone against the whole service, warm and least: above 1 the service takes less. */
  libraryToService: number;
}

export interface AppendReport extends Setting {
  bundleBytes: number;
  sizes: SizeReport[];
  yardstick: (typeof YARDSTICK & { measuredCpuMs: number; measuredBytes: number; holds: boolean }) | null;
}

export interface AppendOptions {
  rows: readonly number[];
  /** Measured requests of each kind. */
  runs: number;
  /** Milliseconds without work before each request: the next commit of a table is due a second after the last. */
  restMs: number;
}

/** Runs the benchmark. Progress goes to standard error. */
export async function benchAppend({ rows, runs, restMs }: AppendOptions): Promise<AppendReport> {
  const report: AppendReport = {
    ...setting('append', ['workerd', 'wrangler', 'hyparquet-writer']),
    bundleBytes: 0,
    sizes: [],
    yardstick: null,
  };
  const [service, stages] = await Promise.all([
    bundle('src/index.ts', 'TableObject'),
    bundle('bench/append-worker.ts', 'StageObject'),
  ]);
  report.bundleBytes = service.bytes;
  try {
    for (const count of rows) report.sizes.push(await benchSize(service, stages, count, runs, restMs));
  } finally {
    removeBundle(service);
    removeBundle(stages);
  }
  const size = report.sizes.find((one) => one.rows === YARDSTICK.rows);
  if (size !== undefined) {
    const measuredCpuMs = size.endToEnd.warm.cpuMs.min;
    const measuredBytes = size.memory.peakBytes;
    const holds = measuredCpuMs <= YARDSTICK.cpuMs && measuredBytes <= YARDSTICK.bytes;
    report.yardstick = { ...YARDSTICK, measuredCpuMs, measuredBytes, holds };
  }
  return report;
}

async function benchSize(
  service: Bundle,
  stageBundle: Bundle,
  rows: number,
  runs: number,
  restMs: number,
): Promise<SizeReport> {
  const body = sensorBody(rows);
  progress(`${rows} rows, ${body.length} bytes: end to end`);
  const endToEnd = await measured(service, false, (runtime) => benchEndToEnd(runtime, body, rows, runs, restMs));
  progress(`${rows} rows: memory`);
  const memory = await measured(service, true, (runtime) => benchMemory(runtime, body, rows, restMs));
  progress(`${rows} rows: stages`);
  const { stages, library } = await measured(stageBundle, false, (runtime) => benchStages(runtime, body, runs));
  const sum = (reports: StageReport[], key: 'median' | 'min') =>
    rounded(reports.reduce((total, { cpuMs }) => total + cpuMs[key], 0));
  const total = (reports: StageReport[]) => ({ median: sum(reports, 'median'), min: sum(reports, 'min') });
  return {
    rows,
    bodyBytes: body.length,
    endToEnd,
    memory,
    stages,
    stagesCpuMs: total(stages),
    library: { stages: library, cpuMs: total(library) },
    libraryToService: rounded(sum(library, 'min') / endToEnd.warm.cpuMs.min),
  };
}

async function measured<T>(made: Bundle, inspector: boolean, work: (runtime: Runtime) => Promise<T>): Promise<T> {
  const runtime = await startRuntime(made, inspector);
  try {
    return await work(runtime);
  } catch (error) {
    throw new Error(`benchmark failed; the runtime said:\n${runtime.log()}`, { cause: error });
  } finally {
    await runtime.stop();
  }
}

const TABLE = '/v1/tables/bench/sensors';

async function benchEndToEnd(
  runtime: Runtime,
  body: Uint8Array,
  rows: number,
  runs: number,
  restMs: number,
): Promise<SizeReport['endToEnd']> {
  await createTable(runtime);
  await append(runtime, sensorBody(1000), 1000);
  await rest(restMs);
  const first = await timed(runtime, () => append(runtime, body, rows));
  const walls: number[] = [];
  const cpus: number[] = [];
  let bucketRequests: Record<string, number> = {};
  for (let run = 0; run < runs; run++) {
    await rest(restMs);
    runtime.bucket.requests.clear();
    const { wallMs, cpuMs } = await timed(runtime, () => append(runtime, body, rows));
    walls.push(wallMs);
    cpus.push(cpuMs);
    bucketRequests = Object.fromEntries(runtime.bucket.requests);
  }
  const { fileBytes, digest } = await newestFile(runtime, rows);
  const warm = { runs, wallMs: spread(walls), cpuMs: spread(cpus) };
  return {
    first: { wallMs: rounded(first.wallMs), cpuMs: rounded(first.cpuMs) },
    warm,
    bucketRequests,
    fileBytes,
    digest,
  };
}

async function benchMemory(
  runtime: Runtime,
  body: Uint8Array,
  rows: number,
  restMs: number,
): Promise<SizeReport['memory']> {
  await createTable(runtime);
  await append(runtime, sensorBody(1000), 1000);
  const inspector = await Inspector.connect(runtime.inspectorPort as number);
  try {
    await rest(restMs);
    await inspector.collectGarbage(async () => (await fetch(`${runtime.url}/health`)).text());
    const idle = await inspector.heap();
    resetPeak(runtime.pid);
    const before = residentOf(runtime.pid).now;
    const peaks: (HeapUsage & { at: string })[] = [];
    for (let run = 0; run < 2; run++) {
      let peak = { ...idle, at: 'before' };
      const look = async (at: string): Promise<void> => {
        const usage = await inspector.heap();
        if (usage.total + usage.buffers > peak.total + peak.buffers) peak = { ...usage, at };
      };
      await rest(restMs);
      runtime.bucket.beforeAnswer = (method, key) => look(`${method} ${key.slice(key.lastIndexOf('/') + 1)}`);
      await append(runtime, body, rows, (sent) => look(`body at ${sent} bytes`));
      await look('after');
      runtime.bucket.beforeAnswer = null;
      peaks.push(peak);
    }
    const [peak, again] = peaks;
    return {
      idle,
      peak,
      peakBytes: peak.total + peak.buffers,
      againPeakBytes: again.total + again.buffers,
      residentGrowthBytes: residentOf(runtime.pid).peak - before,
    };
  } finally {
    inspector.close();
  }
}

async function benchStages(
  runtime: Runtime,
  body: Uint8Array,
  runs: number,
): Promise<{ stages: StageReport[]; library: StageReport[] }> {
  const cpu = new Map<string, number[]>();
  const wall = new Map<string, number[]>();
  const all = [{ name: 'nothing' }, ...STAGES, ...LIBRARY_STAGES];
  // The first round is not counted: it compiles.
  for (let run = 0; run <= runs; run++) {
    for (const { name, sendsBody = false } of all as { name: string; sendsBody?: boolean }[]) {
      const before = cpuMsOf(runtime.pid);
      const response = await fetch(`${runtime.url}/${name}`, {
        method: 'POST',
        ...(sendsBody ? { body: body as Uint8Array<ArrayBuffer> } : {}),
      });
      const text = await response.text();
      if (!response.ok) throw new Error(`stage ${name}: ${response.status} ${text}`);
      const used = cpuMsOf(runtime.pid) - before;
      if (run === 0) continue;
      const { ms } = JSON.parse(text) as { ms: number };
      cpu.set(name, [...(cpu.get(name) ?? []), used]);
      wall.set(name, [...(wall.get(name) ?? []), ms]);
    }
  }
  const idle = spread(cpu.get('nothing') ?? []);
  const own = (name: string, minus: string, key: 'median' | 'min'): number => {
    const repeated = minus === '' ? [] : minus.split(' ');
    const net = (stage: string) => spread(cpu.get(stage) ?? [])[key] - idle[key];
    return rounded(Math.max(0, net(name) - repeated.reduce((total, stage) => total + net(stage), 0)));
  };
  const reportOf = ({ name, what, minus = '' }: { name: string; what: string; minus?: string }): StageReport => ({
    stage: what,
    cpuMs: { median: own(name, minus, 'median'), min: own(name, minus, 'min') },
    wallMs: spread(wall.get(name) ?? []),
  });
  return { stages: STAGES.map(reportOf), library: LIBRARY_STAGES.map(reportOf) };
}

async function createTable({ url }: Runtime): Promise<void> {
  const headers = { 'content-type': 'application/json' };
  const response = await fetch(url + TABLE, { method: 'PUT', headers, body: SENSORS_BODY });
  if (response.status !== 201) throw new Error(`table was not created: ${response.status} ${await response.text()}`);
}

const PIECE_BYTES = 1024 * 1024;

/** Posts rows and resolves when they are committed. With `look` the body goes piece by piece, and waits for it. */
async function append(
  { url }: Runtime,
  body: Uint8Array,
  rows: number,
  look?: (sent: number) => Promise<void>,
): Promise<void> {
  let sent = 0;
  const pieces = new ReadableStream<Uint8Array>({
    async pull(controller) {
      if (sent > 0) await look?.(sent);
      const piece = body.subarray(sent, sent + PIECE_BYTES);
      sent += piece.length;
      controller.enqueue(piece);
      if (sent === body.length) controller.close();
    },
  });
  const response = await fetch(`${url}${TABLE}/rows`, {
    method: 'POST',
    headers: { 'content-type': 'application/x-ndjson', prefer: 'wait=30' },
    ...(look === undefined ? { body: body as Uint8Array<ArrayBuffer> } : { body: pieces as never, duplex: 'half' }),
  } as RequestInit);
  const text = await response.text();
  const answer = JSON.parse(text) as { state?: string; rows?: number };
  if (response.status !== 201 || answer.state !== 'committed' || answer.rows !== rows) {
    throw new Error(`rows were not committed: ${response.status} ${text.slice(0, 500)}`);
  }
}

async function timed(runtime: Runtime, work: () => Promise<void>): Promise<{ wallMs: number; cpuMs: number }> {
  const cpu = cpuMsOf(runtime.pid);
  const start = performance.now();
  await work();
  const wallMs = performance.now() - start;
  await still(runtime);
  return { wallMs, cpuMs: cpuMsOf(runtime.pid) - cpu };
}

/** Until the runtime has used next to nothing for a while. */
async function still(runtime: Runtime): Promise<void> {
  for (let looks = 0, last = cpuMsOf(runtime.pid); looks < 100; looks++) {
    await rest(20);
    const now = cpuMsOf(runtime.pid);
    if (now - last < 0.2) return;
    last = now;
  }
}

function rest(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}

/** The data file of the last append, read back. */
async function newestFile(runtime: Runtime, rows: number): Promise<{ fileBytes: number; digest: string }> {
  const keys = [...runtime.bucket.objects.keys()].filter((key) => key.includes('/data/'));
  const bytes = runtime.bucket.objects.get(keys[keys.length - 1])?.bytes ?? new Uint8Array(0);
  const footer = parseFooter(bytes, bytes.length);
  const described = await fetch(runtime.url + TABLE);
  const { schema } = (await described.json()) as { schema: Schema };
  const pieces = [{ offset: 0, bytes }];
  const groups = footer.rowGroups.map((group, i) =>
    readWindow(footer, i, schema, 0, group.rows, pieces, decompressZstd),
  );
  const found = groups.reduce((total, group) => total + group.rows, 0);
  if (found !== rows) throw new Error(`file of the last append has ${found} rows of ${rows}`);
  return { fileBytes: bytes.length, digest: digestOf(groups, schema) };
}

function digestOf(groups: readonly Columns[], schema: Schema): string {
  const hash = createHash('sha256');
  schema.fields.forEach(({ name }, i) => {
    if (name === '_ingest_ts') return;
    for (const { columns, rows } of groups) {
      const column = columns[i];
      hash.update(column.validity ?? new Uint8Array(rows).fill(1));
      if (column.kind === 'int64' || column.kind === 'float64') {
        const { buffer, byteOffset, byteLength } = column.values;
        hash.update(new Uint8Array(buffer, byteOffset, byteLength));
      } else if (column.kind === 'dictionary') {
        const { bytes, offsets } = column.dictionary;
        for (const code of column.codes) {
          hash.update(code < 0 ? '-' : bytes.subarray(offsets[code], offsets[code + 1]));
        }
      } else if (column.kind === 'bytes') {
        const { bytes, offsets } = column.values;
        for (let row = 0; row < rows; row++) {
          const isNull = column.validity !== null && column.validity[row] === 0;
          hash.update(isNull ? '-' : bytes.subarray(offsets[row], offsets[row + 1]));
        }
      } else throw new Error(`column is of a kind that the benchmark does not write: ${name}`);
    }
  });
  return hash.digest('hex').slice(0, 16);
}

function rounded(value: number): number {
  return Math.round(value * 100) / 100;
}

function progress(text: string): void {
  process.stderr.write(`${text}\n`);
}
