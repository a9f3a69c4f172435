/**
 * What does it cost to merge the small files of a day?
 *
 *   npm run bench -- compact [--json] [--rows 50000] [--runs 3]
 *
 * Files as appends make them, one for each hour, of 1,000 series, merged by `POST …/maintain` of the production bundle in
 * `workerd serve`, with a target of 8 MiB, through a bucket in the memory of this process. CPU time is that of all threads of
 * the runtime. Memory is what the inspector tells at each request to the bucket, in another run of a fresh runtime. The
 * yardstick reads, sorts and writes the same files with hyparquet and hyparquet-writer, in this process.
 */
import { parquetReadObjects } from 'hyparquet';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { parseFooter } from '../src/core/parquet/reader.ts';
import { compressZstd, decompressZstd } from '../src/platform/zlib.ts';
import { SENSORS_BODY, START_MS, sensorBody } from './append-rows.ts';
import { type Setting, type Spread, setting, spread } from './report.ts';
import { type HeapUsage, Inspector } from './support/inspector.ts';
import { type Bundle, bundle, type Runtime, removeBundle, startRuntime } from './support/runtime.ts';
import { cpuMsOf, resetPeak, residentOf } from './support/usage.ts';

const HOUR_MS = 3_600_000;
const TARGET_BYTES = 8 * 1024 * 1024;
const TABLE = '/v1/tables/bench/sensors';

/** The heap is kept small while memory is looked at: else it grows as it likes, and so does what lies beside it. */
const HEAP_FLAGS = ['--max-heap-size=32'];

/** Heap and buffers of the merge. */
export const YARDSTICK = { files: 24, rows: 50_000, bytes: 70_000_000, timesFaster: 3 };

export interface CompactReport extends Setting {
  files: number;
  rowsPerFile: number;
  /** One row in twenty repeats a key of the file before. */
  duplicates: boolean;
  inputBytes: number;
  outputs: { files: number; rows: number; bytes: number };
  wallMs: Spread;
  cpuMs: Spread;
  bucketRequests: Record<string, number>;
  memory: { idle: HeapUsage; peak: HeapUsage & { at: string }; peakBytes: number; residentGrowthBytes: number };
  library: { cpuMs: number };
  /** Above 1 the service takes less. */
  libraryToService: number;
}

interface Maintained {
  changed: boolean;
  remaining: number;
  slices: { files: number; bytes: number; made: { files: number; rows: string; bytes: number; duplicates: number } }[];
}

/** Runs the benchmark. Progress goes to standard error. */
export async function benchCompact(options: { files: number; rows: number; runs: number }): Promise<CompactReport> {
  const { files, rows, runs } = options;
  const made = await bundle('src/index.ts', 'TableObject');
  try {
    const walls: number[] = [];
    const cpus: number[] = [];
    let last: { report: Maintained; requests: Record<string, number>; inputs: Uint8Array[] } | null = null;
    for (let run = 0; run < runs; run++) {
      process.stderr.write(`run ${run + 1} of ${runs}\n`);
      const { wallMs, cpuMs, ...rest } = await inRuntime(made, null, (runtime) => timedMerge(runtime, files, rows));
      walls.push(wallMs);
      cpus.push(cpuMs);
      last = rest;
    }
    if (last === null) throw new Error('at least one run');
    process.stderr.write('memory\n');
    const memory = await inRuntime(made, HEAP_FLAGS, (runtime) => memoryOf(runtime, files, rows));
    process.stderr.write('libraries\n');
    const library = await libraryMerge(last.inputs);
    const sums = (key: 'files' | 'bytes') => last.report.slices.reduce((sum, slice) => sum + slice.made[key], 0);
    const outputRows = last.report.slices.reduce((sum, { made }) => sum + Number(made.rows), 0);
    if (outputRows !== files * rows) throw new Error(`${files * rows} rows were merged, ${outputRows} are there`);
    return {
      ...setting('compact', ['workerd', 'wrangler', 'hyparquet', 'hyparquet-writer']),
      files,
      rowsPerFile: rows,
      duplicates: false,
      inputBytes: last.inputs.reduce((sum, { length }) => sum + length, 0),
      outputs: { files: sums('files'), rows: outputRows, bytes: sums('bytes') },
      wallMs: spread(walls),
      cpuMs: spread(cpus),
      bucketRequests: last.requests,
      memory,
      library: { cpuMs: Math.round(library) },
      libraryToService: Math.round((100 * library) / spread(cpus).min) / 100,
    };
  } finally {
    removeBundle(made);
  }
}

export function compactText(report: CompactReport): string {
  const { files, rowsPerFile, inputBytes, outputs, cpuMs, wallMs, memory, library, libraryToService } = report;
  const mib = (bytes: number): string => (bytes / 1024 / 1024).toFixed(1);
  return [
    `${files} files of ${rowsPerFile} rows, ${mib(inputBytes)} MiB, into ${outputs.files} of ${mib(outputs.bytes)} MiB`,
    `CPU ${cpuMs.median} ms (least ${cpuMs.min}), wall ${wallMs.median} ms`,
    `heap and buffers at most ${mib(memory.peakBytes)} MiB at ${memory.peak.at}, resident +${mib(memory.residentGrowthBytes)} MiB`,
    `libraries: CPU ${library.cpuMs} ms, ${libraryToService} times as much`,
  ].join('\n');
}

/** `heapFlags`: with the inspector, and a heap of that size. */
async function inRuntime<T>(
  made: Bundle,
  heapFlags: readonly string[] | null,
  work: (runtime: Runtime) => Promise<T>,
): Promise<T> {
  const runtime = await startRuntime(made, heapFlags !== null, heapFlags ?? []);
  try {
    return await work(runtime);
  } catch (error) {
    throw new Error(`benchmark failed; the runtime said:\n${runtime.log()}`, { cause: error });
  } finally {
    await runtime.stop();
  }
}

/** A table with one file an hour. */
async function filled({ url }: Runtime, files: number, rows: number): Promise<void> {
  const definition = JSON.parse(SENSORS_BODY) as { properties: Record<string, string> };
  definition.properties['timelake.target-file-size-bytes'] = String(TARGET_BYTES);
  const json = { 'content-type': 'application/json' };
  const created = await fetch(url + TABLE, { method: 'PUT', headers: json, body: JSON.stringify(definition) });
  if (created.status !== 201) throw new Error(`table was not created: ${created.status} ${await created.text()}`);
  for (let file = 0; file < files; file++) {
    const body = sensorBody(rows, { startMs: START_MS + file * HOUR_MS, spanMs: HOUR_MS, seed: 42 + file });
    const response = await fetch(`${url}${TABLE}/rows`, {
      method: 'POST',
      headers: { 'content-type': 'application/x-ndjson', prefer: 'wait=30' },
      body: body as Uint8Array<ArrayBuffer>,
    });
    if (response.status !== 201)
      throw new Error(`rows were not committed: ${response.status} ${await response.text()}`);
    await response.text();
  }
}

async function merge({ url }: Runtime): Promise<Maintained> {
  const response = await fetch(`${url}${TABLE}/maintain`, { method: 'POST' });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`not merged: ${response.status} ${text}`);
  return JSON.parse(text) as Maintained;
}

async function timedMerge(runtime: Runtime, files: number, rows: number) {
  await filled(runtime, files, rows);
  const inputs = [...runtime.bucket.objects].filter(([key]) => key.includes('/data/')).map(([, { bytes }]) => bytes);
  runtime.bucket.requests.clear();
  const before = cpuMsOf(runtime.pid);
  const start = performance.now();
  const report = await merge(runtime);
  const wallMs = performance.now() - start;
  const cpuMs = cpuMsOf(runtime.pid) - before;
  return { wallMs, cpuMs, report, requests: Object.fromEntries(runtime.bucket.requests), inputs };
}

async function memoryOf(runtime: Runtime, files: number, rows: number): Promise<CompactReport['memory']> {
  await filled(runtime, files, rows);
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
    await merge(runtime);
    runtime.bucket.beforeAnswer = null;
    const residentGrowthBytes = residentOf(runtime.pid).peak - before;
    return { idle, peak, peakBytes: peak.total + peak.buffers, residentGrowthBytes };
  } finally {
    inspector.close();
  }
}

/** The same with libraries, as one would write it: all rows, sorted, written again. Milliseconds of CPU. */
async function libraryMerge(inputs: readonly Uint8Array[]): Promise<number> {
  const codecs = {
    compressors: { ZSTD: (bytes: Uint8Array, length: number) => decompressZstd(bytes, length) },
    written: { ZSTD: (bytes: Uint8Array) => compressZstd(bytes) },
  };
  const before = process.cpuUsage();
  const rows: Record<string, unknown>[] = [];
  for (const bytes of inputs) {
    const file = bytes.slice().buffer;
    const read = await parquetReadObjects({ file, compressors: codecs.compressors } as never);
    for (const row of read) rows.push(row);
  }
  const keyOf = (row: Record<string, unknown>): [string, number] => [
    String(row['device_id']),
    (row['time'] as Date).getTime(),
  ];
  rows.sort((a, b) => {
    const [[seriesA, timeA], [seriesB, timeB]] = [keyOf(a), keyOf(b)];
    return seriesA < seriesB ? -1 : seriesA > seriesB ? 1 : timeA - timeB;
  });
  const types: Record<string, string> = {
    time: 'TIMESTAMP',
    device_id: 'STRING',
    site: 'STRING',
    temperature: 'DOUBLE',
    humidity: 'DOUBLE',
    pressure: 'DOUBLE',
    voltage: 'DOUBLE',
    counter: 'INT64',
    status: 'STRING',
    _ingest_ts: 'TIMESTAMP',
  };
  const perFile = Math.ceil(rows.length / 3);
  for (let from = 0; from < rows.length; from += perFile) {
    const part = rows.slice(from, from + perFile);
    const columnData = Object.entries(types).map(([name, type]) => ({
      name,
      type,
      data: part.map((row) => row[name]),
    }));
    const written = parquetWriteBuffer({
      columnData,
      codec: 'ZSTD',
      compressors: codecs.written,
      rowGroupSize: 65_536,
    } as never);
    if (parseFooter(new Uint8Array(written), written.byteLength).rows !== part.length)
      throw new Error('rows are missing');
  }
  const { user, system } = process.cpuUsage(before);
  return (user + system) / 1000;
}
