import { parseArgs } from 'node:util';
import { api } from './cli/api.ts';
import {
  CHORES,
  type Chore,
  type CreateOptions,
  create,
  type Definition,
  describe,
  flushed,
  infer,
  inferredText,
  maintain,
  type Result,
  snapshots,
  tail,
} from './cli/commands.ts';
import { EXIT, type ExitCode, Failure, usage } from './cli/failure.ts';
import { COMMANDS, helpOn } from './cli/help.ts';
import { BATCH_BYTES, BATCH_ROWS, type LoadOptions, load, loadedText } from './cli/load.ts';
import { files, type LookOptions, latest, ROW_FORMATS, type RowFormat, rows } from './cli/look.ts';
import { tableName } from './cli/table-name.ts';
import { Progress, type Terminal } from './demo/progress.ts';
import { isMain } from './is-main.ts';

/** `npm run cli`: the service from a terminal, over its HTTP interface alone. */

const OPTIONS = {
  url: { type: 'string' },
  json: { type: 'boolean' },
  quiet: { type: 'boolean' },
  help: { type: 'boolean', short: 'h' },
  definition: { type: 'string' },
  from: { type: 'string' },
  'no-load': { type: 'boolean' },
  'dry-run': { type: 'boolean' },
  'time-column': { type: 'string' },
  'series-key': { type: 'string' },
  chunk: { type: 'string' },
  dedup: { type: 'string' },
  property: { type: 'string', multiple: true },
  format: { type: 'string' },
  delimiter: { type: 'string' },
  precision: { type: 'string' },
  measurement: { type: 'string' },
  id: { type: 'string' },
  'on-error': { type: 'string' },
  'batch-rows': { type: 'string' },
  'batch-bytes': { type: 'string' },
  parallel: { type: 'string' },
  'no-flush': { type: 'boolean' },
  to: { type: 'string' },
  where: { type: 'string', multiple: true },
  null: { type: 'string', multiple: true },
  columns: { type: 'string' },
  newest: { type: 'boolean' },
  ref: { type: 'string' },
  snapshot: { type: 'string' },
  buffered: { type: 'boolean' },
  out: { type: 'string' },
  limit: { type: 'string' },
  offset: { type: 'string' },
  interval: { type: 'string' },
  count: { type: 'string' },
} as const;

const FILE = ['format', 'delimiter', 'precision'];
const LOAD = [...FILE, 'id', 'on-error', 'batch-rows', 'batch-bytes', 'parallel', 'no-flush'];
const LOOK = ['where', 'null', 'format', 'out'];
/** Options of each command besides those of all: one that does nothing is a mistake. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  create: [
    ...LOAD,
    'definition',
    'from',
    'no-load',
    'dry-run',
    'time-column',
    'series-key',
    'chunk',
    'dedup',
    'property',
  ],
  load: LOAD,
  infer: [...FILE, 'measurement'],
  describe: [],
  rows: [...LOOK, 'from', 'to', 'columns', 'limit', 'newest', 'ref', 'snapshot'],
  latest: [...LOOK, 'buffered'],
  files: ['limit', 'offset'],
  snapshots: ['limit'],
  flush: [],
  maintain: ['dry-run'],
  tail: ['interval', 'count'],
};

type Values = ReturnType<typeof parsed>['values'];

function parsed(args: readonly string[]) {
  try {
    return parseArgs({ args: [...args], options: OPTIONS, allowPositionals: true });
  } catch (error) {
    throw usage((error as Error).message);
  }
}

/** The world of a run: arguments are not enough to test it. */
export interface CliPorts {
  env: Readonly<Record<string, string | undefined>>;
  out(text: string): void;
  /** For progress and for what went wrong. */
  err: Terminal;
  fetch?: typeof fetch;
  sleep?: (ms: number) => Promise<unknown>;
}

/** Runs a command. Returns what the process is to exit with, and throws nothing. */
export async function cli(args: readonly string[], ports: CliPorts): Promise<ExitCode> {
  const asJson = args.includes('--json');
  try {
    await run(args, ports);
    return EXIT.done;
  } catch (error) {
    const failure = error instanceof Failure ? error : null;
    const message = error instanceof Error ? error.message : String(error);
    const problem = failure?.problem ?? undefined;
    if (asJson) ports.out(JSON.stringify({ error: message, ...(problem === undefined ? {} : { problem }) }));
    ports.err.write(`${message}\n`);
    if (failure?.exit === EXIT.usage) ports.err.write('npm run cli -- --help tells how it is used\n');
    return failure?.exit ?? EXIT.refused;
  }
}

async function run(args: readonly string[], ports: CliPorts): Promise<void> {
  const { values, positionals } = parsed(args);
  const [command, ...rest] = positionals;
  if (command !== undefined && !COMMANDS.includes(command)) throw usage(`command is not known: ${command}`);
  if (values.help === true || command === undefined) {
    if (command === undefined && values.help !== true) throw usage(`a command is one of ${COMMANDS.join(', ')}`);
    ports.out(helpOn(command ?? null));
    return;
  }
  for (const name of Object.keys(values)) {
    const isOfAll = ['url', 'json', 'quiet', 'help'].includes(name);
    if (!isOfAll && !ALLOWED[command].includes(name)) throw usage(`${command} has no option --${name}`);
  }
  const progress = new Progress(values.quiet === true ? { write: () => true } : ports.err);
  const url = values.url ?? ports.env['SLUICE_URL'] ?? 'http://127.0.0.1:8787';
  if (!/^https?:\/\//.test(url) || !URL.canParse(url)) throw usage(`--url or SLUICE_URL is no address: ${url}`);
  const ask = api({
    url,
    token: ports.env['SLUICE_TOKEN'] ?? null,
    waiting: (why) => progress.say(`waiting: ${why}`),
    fetch: ports.fetch,
    sleep: ports.sleep,
  });
  const tell = ({ json, text, raw }: Result) => {
    if (values.json === true) ports.out(raw ?? JSON.stringify(json));
    else if (text !== '') ports.out(text);
  };
  switch (command) {
    case 'create':
      only(rest, 1);
      return tell(await create(ask, createOptions(values, rest), progress));
    case 'load': {
      only(rest, 2);
      const loaded = await load(ask, loadOptions(values, rest[0], rest[1]), progress);
      return tell({ json: loaded, text: loadedText(loaded) });
    }
    case 'infer': {
      only(rest, 1);
      const [file] = rest;
      if (file === undefined) throw usage('file is missing');
      const { format = null, delimiter = null, precision = null, measurement = null } = values;
      const inferred = await infer(ask, { file, format, delimiter, precision, measurement });
      return tell({ json: inferred, text: inferredText(inferred) });
    }
    case 'describe':
      only(rest, 1);
      return tell(await describe(ask, rest[0] === undefined ? null : tableName(rest[0])));
    case 'rows': {
      only(rest, 1);
      const look = lookOptions(values, rest[0]);
      const { from = null, to = null, columns = null, ref = null, snapshot = null } = values;
      const limit = numberOf('limit', values.limit, look.format === 'table' ? TABLE_ROWS : null, 100_000);
      const options = { ...look, from, to, columns, ref, snapshot, limit, newestFirst: values.newest === true };
      return tell(await rows(ask, options, progress));
    }
    case 'latest': {
      only(rest, 1);
      const options = { ...lookOptions(values, rest[0]), buffered: values.buffered === true };
      return tell(await latest(ask, options, progress));
    }
    case 'files': {
      only(rest, 1);
      const limit = numberOf('limit', values.limit, 20, 1000);
      const offset = values.offset === '0' ? 0 : numberOf('offset', values.offset, 0, 1_000_000);
      return tell(await files(ask, tableName(rest[0]), limit, offset));
    }
    case 'snapshots':
      only(rest, 1);
      return tell(await snapshots(ask, tableName(rest[0]), numberOf('limit', values.limit, 20, 1000)));
    case 'flush':
      only(rest, 1);
      return tell(await flushed(ask, tableName(rest[0])));
    case 'maintain': {
      const [table, ...names] = rest;
      const wrong = names.find((name) => !CHORES.includes(name as Chore));
      if (wrong !== undefined) throw usage(`maintain does ${CHORES.join(' and ')}: ${wrong}`);
      return tell(
        await maintain(ask, tableName(table), { chores: names as Chore[], dryRun: values['dry-run'] === true }),
      );
    }
    case 'tail': {
      only(rest, 1);
      const intervalMs = 1000 * numberOf('interval', values.interval, 2, 3600);
      const most = values.count === undefined ? null : numberOf('count', values.count, 1, 1_000_000);
      return tail(ask, tableName(rest[0]), { intervalMs, most, sleep: ports.sleep }, tell);
    }
  }
}

function only(rest: readonly string[], most: number): void {
  if (rest.length > most) throw usage(`too many arguments: ${rest[most]}`);
}

function createOptions(values: Values, rest: readonly string[]): CreateOptions {
  const table = tableName(rest[0]);
  const change: Partial<Definition> = {};
  const { chunk, dedup, from, definition = null } = values;
  const time = values['time-column'];
  const key = values['series-key'];
  if (time !== undefined) {
    change.time_column = time === 'none' ? null : time;
    // A series, and partitions, are of a time.
    if (time === 'none') Object.assign(change, { series_key: [], chunk: null, dedup: null });
  }
  if (key !== undefined) change.series_key = key === 'none' ? [] : key.split(',');
  if (key === 'none') change.dedup = null;
  if (chunk !== undefined) change.chunk = chunk;
  if (dedup !== undefined) {
    if (dedup !== 'true' && dedup !== 'false') throw usage(`--dedup is true or false: ${dedup}`);
    change.dedup = dedup === 'true';
  }
  for (const property of values.property ?? []) {
    const at = property.indexOf('=');
    if (at < 1) throw usage(`--property is KEY=VALUE: ${property}`);
    change.properties = { ...change.properties, [property.slice(0, at)]: property.slice(at + 1) };
  }
  if (from === undefined && definition === null) throw usage('create needs --definition FILE or --from FILE');
  const isDry = values['dry-run'] === true;
  const options = from === undefined ? null : loadOptions(values, rest[0], from);
  const isLoading = options !== null && values['no-load'] !== true;
  return { table, definition, sample: options, change, load: isLoading ? options : null, dryRun: isDry };
}

function loadOptions(values: Values, table: string | undefined, file: string | undefined): LoadOptions {
  const onError = values['on-error'] ?? 'refuse';
  if (onError !== 'refuse' && onError !== 'skip') throw usage(`--on-error is refuse or skip: ${onError}`);
  const name = tableName(table);
  if (file === undefined) throw usage('file is missing: FILE, or - for the standard input');
  return {
    table: name,
    file,
    format: values.format ?? null,
    id: values.id ?? null,
    rowsMax: numberOf('batch-rows', values['batch-rows'], BATCH_ROWS, 100_000),
    bytesMax: numberOf('batch-bytes', values['batch-bytes'], BATCH_BYTES, 24 * 1024 * 1024),
    parallel: numberOf('parallel', values.parallel, 1, 16),
    onError,
    delimiter: values.delimiter ?? null,
    precision: values.precision ?? null,
    flush: values['no-flush'] !== true,
  };
}

/** Rows of a table on a terminal, unless it is asked for others. */
const TABLE_ROWS = 20;

function lookOptions(values: Values, table: string | undefined): LookOptions {
  const format = values.format ?? (values.json === true ? 'json' : 'table');
  if (!ROW_FORMATS.includes(format as RowFormat))
    throw usage(`--format is one of ${ROW_FORMATS.join(', ')}: ${format}`);
  const isOther = values.json === true && format !== 'json' && values.out === undefined;
  if (isOther) throw usage(`--json prints one JSON value, and --format ${format} another answer`);
  const { where = [], null: nulls = [], out = null } = values;
  return { table: tableName(table), where, nulls, format: format as RowFormat, out };
}

function numberOf<T extends number | null>(
  name: string,
  text: string | undefined,
  otherwise: T,
  most: number,
): number | T {
  if (text === undefined) return otherwise;
  const number = Number(text);
  if (/^[1-9][0-9]*$/.test(text) && number <= most) return number;
  throw usage(`--${name} is a number from 1 to ${most}: ${text}`);
}

if (isMain(import.meta)) {
  // Whoever reads may go when it has seen enough.
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code !== 'EPIPE') throw error;
    process.exit();
  });
  process.exitCode = await cli(process.argv.slice(2), {
    env: process.env,
    out: (text) => process.stdout.write(`${text}\n`),
    err: process.stderr,
  });
}
