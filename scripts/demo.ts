import { mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { createServer } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { TableClient } from './demo/client.ts';
import { type Compared, compare } from './demo/compare.ts';
import { DATA_SETS, type DataSet } from './demo/data-sets.ts';
import { type Engine, openEngine } from './demo/engine.ts';
import { count, Progress, seconds } from './demo/progress.ts';
import { type ReadBack, readBack } from './demo/read-back.ts';
import { type Uploaded, upload } from './demo/upload.ts';
import { type Dev, pasteable, startDev, stopOnSignal } from './dev.ts';

/**
 * `npm run demo`: the main job on real data. Starts the service, streams data sets out of the npm package
 * `vega-datasets` into three tables, reads the tables back with readers that nobody here wrote, compares, and keeps
 * serving. `npm run demo -- --exit` stops instead; its last line is one JSON object. Exit code 1 when anything differs
 * or fails. Needs neither the internet nor anything but the packages of package.json.
 */

interface Result {
  data: DataSet;
  uploaded: Uploaded;
  table: ReadBack;
  compared: Compared;
  equal: boolean;
}

const FLAGS = {
  exit: { type: 'boolean', default: false },
  port: { type: 'string', default: '8787' },
  's3-port': { type: 'string', default: '9000' },
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ options: FLAGS });
  const startMs = performance.now();
  const progress = new Progress();
  // With --exit nothing is left and nothing is in the way: free ports, a folder of its own.
  const [port, s3Port] = values.exit ? [0, 0] : [Number(values.port), Number(values['s3-port'])];
  for (const wanted of [port, s3Port]) await checkFree(wanted);
  const scratch = mkdtempSync(join(tmpdir(), 'sluice-demo-'));
  const persist = values.exit ? join(scratch, 'state') : join(import.meta.dirname, '..', '.dev', 'demo');
  rmSync(persist, { recursive: true, force: true });
  mkdirSync(persist, { recursive: true });

  let dev: Dev | undefined;
  const stop = async (): Promise<void> => dev?.stop();
  // Whatever ends the process: also a terminal that is gone and refuses to be written to.
  process.once('exit', () => rmSync(scratch, { recursive: true, force: true }));
  let isDone = false;
  stopOnSignal(stop, () => (isDone ? 0 : 130));
  try {
    progress.say('Starting the service on the local runtime ...');
    dev = await progress.during('starting', startDev({ port, gatewayPort: s3Port, persist, quiet: true }));
    progress.say(`  ${dev.url}, S3 gateway ${dev.s3} (${seconds(performance.now() - startMs)})\n`);
    const engine = await openEngine();
    const results: Result[] = [];
    try {
      for (const data of DATA_SETS) results.push(await run(engine, dev, data, join(scratch, data.table), progress));
    } finally {
      engine.close();
    }
    const equal = results.every((result) => result.equal);
    const elapsedMs = performance.now() - startMs;
    progress.say(
      equal
        ? `All tables are equal to their sources (${seconds(elapsedMs)}).\n`
        : `NOT EQUAL: what was read back is not what was sent, see above (${seconds(elapsedMs)}).\n`,
    );
    if (!values.exit) {
      rmSync(scratch, { recursive: true, force: true });
      progress.say(whatNext(dev, results));
      process.exitCode = equal ? 0 : 1;
      isDone = equal;
      return;
    }
    await stop();
    console.log(JSON.stringify(summary(results, elapsedMs)));
    process.exit(equal ? 0 : 1);
  } catch (error) {
    progress.say('');
    await stop().catch(() => undefined);
    throw error;
  }
}

/** One table from creation to comparison. */
async function run(engine: Engine, dev: Dev, data: DataSet, folder: string, progress: Progress): Promise<Result> {
  const name = `${data.namespace}/${data.table}`;
  progress.say(`${name}: ${data.about}`);
  const client = new TableClient(`${dev.url}/v1/tables/${name}`);
  await client.create(data.definition);
  const uploaded = await upload(engine, client, data, progress);
  const speed = Math.round(uploaded.rows / (uploaded.sendMs / 1000));
  progress.say(
    `  sent        ${count(uploaded.rows)} rows in ${uploaded.batches} batches, ${seconds(uploaded.sendMs)}, ${count(speed)} rows/s` +
      (uploaded.retries > 0 ? `, ${uploaded.retries} retries` : ''),
  );
  progress.say(
    uploaded.resent
      ? '  sent again  one batch, under its Idempotency-Key: known, not taken twice'
      : '  SENT AGAIN  one batch, under its Idempotency-Key: the service did NOT know it',
  );
  progress.say(
    `  committed   every receipt, ${snapshots(uploaded.snapshots)}, ${seconds(uploaded.commitMs)} after the last batch`,
  );
  const table = await progress.during('reading', readBack(dev, name, folder));
  const paths = table.files.map(({ path }) => path);
  const compared = await progress.during('comparing', compare(engine, data, paths));
  progress.say(
    `  read back   ${count(compared.rows)} rows by icebird and DuckDB, ${count(table.files.length)} data files`,
  );
  if (data.key.length > 0 && compared.rows < uploaded.rows) {
    const dropped = count(uploaded.rows - compared.rows);
    progress.say(
      `  dedup       ${dropped} older rows of the same (${data.key.join(', ')}) left out within one flush;\n` +
        `              DuckDB counts ${compared.checks[1]?.expected} distinct keys in the source`,
    );
  }
  const equal = compared.equal && uploaded.resent;
  const wrong = compared.checks.filter((check) => !check.equal);
  for (const check of wrong) {
    progress.say(`  DIFFERENT   ${check.name}: source ${check.expected}, table ${check.found}`);
  }
  if (compared.equal) {
    const shown = compared.checks
      .filter(({ name: check }) => /^(sum|min)\((delay|temp_min|date)\)$/.test(check))
      .map((check) => `${check.name} ${check.found}`);
    progress.say(
      `  equal       ${shown.join(', ')};\n              ${compared.checks.length} comparisons, the last two row by row`,
    );
  }
  progress.say('');
  return { data, uploaded, table, compared, equal };
}

function snapshots(many: number): string {
  return many === 1 ? 'in one snapshot' : `in ${count(many)} snapshots`;
}

/**
 * The last line. Its counts are of the tables in which each row sent must come back; the table that drops older rows of
 * a key stands beside them.
 */
function summary(results: readonly Result[], elapsedMs: number): object {
  const of = (some: readonly Result[]) => ({
    rows_sent: some.reduce((rows, { uploaded }) => rows + uploaded.rows, 0),
    rows_read_back: some.reduce((rows, { compared }) => rows + compared.rows, 0),
    equal: results.every(({ equal }) => equal),
    snapshots: some.reduce((all, { table }) => all + table.snapshots, 0),
    files: some.reduce((all, { table }) => all + table.files.length, 0),
  });
  const isDedup = ({ data }: Result): boolean => data.expected !== data.source;
  const dedup = results.filter(isDedup);
  const keys = dedup.map(({ compared }) => Number(compared.checks[1]?.expected)).reduce((sum, n) => sum + n, 0);
  const { equal: _, ...dedupCounts } = of(dedup);
  return {
    ...of(results.filter((result) => !isDedup(result))),
    seconds: Math.round(elapsedMs / 100) / 10,
    dedup: { ...dedupCounts, distinct_keys: keys },
  };
}

function whatNext(dev: Dev, results: readonly Result[]): string {
  const shown = results.at(-1);
  const files = (shown?.table.files ?? []).map(
    ({ location, rows, bytes }) => `  ${location}  ${count(rows)} rows, ${count(bytes)} bytes`,
  );
  const flights = `${dev.url}/v1/tables/demo/flights`;
  const weather = `${dev.url}/v1/tables/demo/weather`;
  return `Data files of ${shown?.data.namespace}/${shown?.data.table}:
${files.join('\n')}

Try next (the service keeps running; Ctrl-C stops it):

  curl -s '${dev.url}/v1/tables'
  curl -s '${flights}'
  curl -s '${weather}/rows' -H 'content-type: application/x-ndjson' -H 'prefer: wait=10' \\
    -d '{"location": "Seattle", "date": "2016-01-01T00:00:00", "temp_max": 8.5, "weather": "fog"}'
  curl -s '${dev.s3}/${dev.bucketName}?list-type=2&prefix=warehouse/demo/weather/metadata/'

Engines that read the table by path (each needs its own installation):

${pasteable(dev).replaceAll('NAMESPACE/TABLE', 'demo/flights').replaceAll('NAMESPACE.TABLE', 'demo.flights')}`;
}

/** Says so before anything is emptied when another program, perhaps another demo, has the port. */
async function checkFree(port: number): Promise<void> {
  if (port === 0) return;
  await new Promise<void>((resolve, reject) => {
    const probe = createServer();
    probe.once('error', (error: NodeJS.ErrnoException) => {
      const why = error.code === 'EADDRINUSE' ? 'is in use' : `cannot be used (${error.code ?? error.message})`;
      const help = 'stop what listens there, or choose others: npm run demo -- --port 8788 --s3-port 9001';
      reject(new Error(`port ${port} ${why}: ${help}`));
    });
    probe.listen(port, '127.0.0.1', () => probe.close(() => resolve()));
  });
}

main().catch((error: unknown) => {
  const cause = error instanceof Error && error.cause instanceof Error ? `: ${error.cause.message}` : '';
  console.error(`demo failed: ${error instanceof Error ? error.message : String(error)}${cause}`);
  process.exit(1);
});
