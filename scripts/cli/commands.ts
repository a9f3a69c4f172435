import { readFileSync } from 'node:fs';
import { setTimeout as wait } from 'node:timers/promises';
import { count, type Progress } from '../demo/progress.ts';
import type { Ask } from './api.ts';
import { EXIT, Failure, usage } from './failure.ts';
import { formatOf } from './formats.ts';
import { flush, type Loaded, type LoadOptions, load, loadedText } from './load.ts';
import { beginningOf, openSource } from './source.ts';
import { type TableName, tablePath } from './table-name.ts';

/** What a command found or did: for programs, and in lines for people. */
export interface Result {
  json: unknown;
  text: string;
  /** The JSON as it came, where it is to be told as it came. */
  raw?: string;
}

const JSON_TYPE = { 'content-type': 'application/json' };

/** A definition as the service takes and proposes it. */
export interface Definition {
  schema: { fields: { name: string; type: unknown; required?: boolean }[] };
  time_column?: string | null;
  series_key?: string[];
  chunk?: string | null;
  dedup?: boolean | null;
  properties?: Record<string, string>;
}

interface Inferred {
  definition: Definition;
  sample: { format: string; rows: number; whole: boolean };
  reasons: { choice: string; because: string }[];
  notes: string[];
}

/** Bytes of a file that a definition is proposed for: what the service looks at, and no more. */
const SAMPLE_BYTES = 8 * 1024 * 1024;

export type SampleOptions = Pick<LoadOptions, 'file' | 'format' | 'delimiter' | 'precision'> & {
  measurement: string | null;
};

/** Asks for a definition for the rows of a file. */
export async function infer(ask: Ask, options: SampleOptions): Promise<Inferred> {
  const { format, packing } = formatOf(options.file, options.format);
  if (options.file === '-') throw usage('a sample is a file: the standard input cannot be read twice');
  const most = format.cut === null ? Number.POSITIVE_INFINITY : SAMPLE_BYTES;
  const body = new Uint8Array(await beginningOf(openSource(options.file, packing), most));
  const query = new URLSearchParams();
  if (options.delimiter !== null) query.set('delimiter', options.delimiter);
  if (options.precision !== null) query.set('precision', options.precision);
  if (options.measurement !== null) query.set('measurement', options.measurement);
  const headers = { 'content-type': format.contentType };
  const { json } = await ask('POST', `/v1/infer?${query}`, { headers, body, again: true });
  return json as unknown as Inferred;
}

export function inferredText({ definition, sample, reasons, notes }: Inferred): string {
  const why = reasons.map(({ choice, because }) => `  ${choice}: ${because}`);
  const left = notes.map((note) => `note: ${note}`);
  const seen = `seen on ${count(sample.rows)} rows${sample.whole ? '' : ', not on all'}:`;
  return [JSON.stringify(definition, null, 2), '', seen, ...why, ...left].join('\n');
}

export interface CreateOptions {
  table: TableName;
  /** A file with a definition; else one is proposed for the rows of `sample`. */
  definition: string | null;
  sample: Omit<SampleOptions, 'measurement'> | null;
  /** Members that take the place of those of the definition. */
  change: Partial<Definition>;
  load: LoadOptions | null;
  dryRun: boolean;
}

/** Makes a table by a definition or for a file, and loads the file. */
export async function create(
  ask: Ask,
  { table, definition: file, sample, change, load: options, dryRun }: CreateOptions,
  progress: Progress,
): Promise<Result> {
  const inferred = file === null && sample !== null ? await infer(ask, { ...sample, measurement: table.table }) : null;
  const given = inferred?.definition ?? (file === null ? null : definitionIn(file));
  if (given === null) throw usage('create needs --definition FILE or --from FILE');
  const definition = { ...given, ...change, properties: { ...given.properties, ...change.properties } };
  if (dryRun) {
    const text = inferred === null ? JSON.stringify(definition, null, 2) : inferredText({ ...inferred, definition });
    return { json: { definition, ...(inferred === null ? {} : { reasons: inferred.reasons }) }, text };
  }
  const asked = { headers: JSON_TYPE, body: JSON.stringify(definition), again: true };
  const { json } = await ask('PUT', tablePath(table), asked);
  const created = json?.['created'] === true;
  const lines = [`table ${table.namespace}/${table.table} ${created ? 'created' : 'was there, with the same columns'}`];
  const report: { created: boolean; definition: Definition; loaded?: Loaded } = { created, definition };
  if (options !== null) {
    progress.say(lines.pop() ?? '');
    report.loaded = await load(ask, options, progress);
    lines.push(loadedText(report.loaded));
  }
  return { json: report, text: lines.join('\n') };
}

function definitionIn(file: string): Definition {
  try {
    const json = JSON.parse(readFileSync(file, 'utf8')) as Definition & { definition?: Definition };
    // As `infer --json` prints it.
    return json.definition ?? json;
  } catch (error) {
    throw new Failure(EXIT.usage, `definition cannot be read: ${file}: ${(error as Error).message}`, null, error);
  }
}

/** One table, or all that the token may see. */
export async function describe(ask: Ask, table: TableName | null): Promise<Result> {
  if (table !== null) {
    const { json } = await ask('GET', tablePath(table), { again: true });
    return { json, text: describedText(json as unknown as Described) };
  }
  const tables: { namespace: string; table: string }[] = [];
  for (let after: string | null = null; ; ) {
    const query = after === null ? '' : `?after=${encodeURIComponent(after)}`;
    const { json } = await ask('GET', `/v1/tables${query}`, { again: true });
    tables.push(...((json?.['tables'] ?? []) as typeof tables));
    after = (json?.['next'] as string | null | undefined) ?? null;
    if (after === null) break;
  }
  return { json: tables, text: tables.map(({ namespace, table: name }) => `${namespace}/${name}`).join('\n') };
}

interface Described {
  location: string;
  version: number;
  schema: { fields: { name: string; type: unknown; required: boolean }[] };
  properties: Record<string, string>;
  snapshot: { snapshot_id: string; timestamp_ms: number; summary: Record<string, string> } | null;
  status: Status;
}

interface Status {
  buffer: { batches: number; rows: number; bytes: number; age_ms: number | null };
  intent: { rows: number; failures: number } | null;
  last_commit: { version: number; rows: number; committed_ms: number } | null;
  last_error: { type: string; message: string } | null;
}

function describedText({ location, version, schema, properties, snapshot, status }: Described): string {
  const types = schema.fields.map(({ name, type, required }) => {
    const text = typeof type === 'string' ? type : JSON.stringify(type);
    return `  ${name}  ${text}${required ? '  required' : ''}`;
  });
  const own = Object.entries(properties)
    .filter(([key]) => key.startsWith('timelake.') || key.startsWith('sluice.'))
    .filter(([key]) => !/^sluice\.(epochs|changes|commit)/.test(key))
    .map(([key, value]) => `  ${key} = ${value}`);
  const rows = snapshot?.summary['total-records'];
  return [
    location,
    `version ${version}, ${snapshot === null ? 'no snapshot' : `snapshot ${snapshot.snapshot_id} of ${timeText(snapshot.timestamp_ms)}`}`,
    ...(rows === undefined ? [] : [`${count(BigInt(rows))} rows`]),
    'columns',
    ...types,
    'properties',
    ...own,
    statusText(version, status),
  ].join('\n');
}

function timeText(ms: number): string {
  return new Date(ms).toISOString();
}

/** The state of a table's buffer in a line. */
export function statusText(version: number, { buffer, intent, last_commit, last_error }: Status): string {
  const parts = [`v${version}`];
  parts.push(buffer.rows === 0 ? 'nothing waits' : `${count(buffer.rows)} rows wait (${count(buffer.bytes)} bytes)`);
  if (intent !== null)
    parts.push(`committing ${count(intent.rows)}${intent.failures > 0 ? `, failed ${intent.failures} times` : ''}`);
  if (last_commit !== null) parts.push(`last commit: ${count(last_commit.rows)} rows in v${last_commit.version}`);
  if (last_error !== null) parts.push(`last error: ${last_error.type}: ${last_error.message}`);
  return parts.join('; ');
}

export async function snapshots(ask: Ask, table: TableName, limit: number): Promise<Result> {
  const { json } = await ask('GET', `${tablePath(table)}/snapshots?limit=${limit}`, { again: true });
  const list = json?.['snapshots'] as Record<string, unknown>[];
  const lines = list.map((one) => {
    const summary = one['summary'] as Record<string, string>;
    const time = timeText(Number(one['timestamp_ms']));
    const added = summary['added-records'];
    return `${one['snapshot_id']}  ${time}  ${summary['operation'] ?? one['operation'] ?? ''}${added === undefined ? '' : `  +${count(BigInt(added))} rows`}`;
  });
  return { json, text: lines.length === 0 ? 'no snapshots' : lines.join('\n') };
}

export async function flushed(ask: Ask, table: TableName): Promise<Result> {
  const version = await flush(ask, table);
  return { json: { flushed: true, version }, text: `all that was taken is in version ${version}` };
}

/** What `maintain` does when nothing is named, in order; a sweep is done when it is. */
const UPKEEP = ['retention', 'compact', 'index', 'expire', 'erase', 'rewrite-manifests'] as const;
export const CHORES = [...UPKEEP, 'sweep'] as const;
export type Chore = (typeof CHORES)[number];

interface Step {
  error: { type: string; message: string } | null;
  report: Record<string, unknown> | null;
}

/** Does the upkeep of a table that is done by request: one request for its steps, and one for the manifests. */
export async function maintain(
  ask: Ask,
  table: TableName,
  { chores, dryRun }: { chores: readonly Chore[]; dryRun: boolean },
): Promise<Result> {
  const asked = chores.length === 0 ? UPKEEP : chores;
  const steps = asked.filter((chore) => chore !== 'rewrite-manifests');
  const json: Record<string, unknown> = {};
  const lines: string[] = [];
  if (steps.length > 0) {
    const body = JSON.stringify({ ...Object.fromEntries(steps.map((step) => [step, true])), dry_run: dryRun });
    const answer = await ask('POST', `${tablePath(table)}/maintain`, { headers: JSON_TYPE, body, again: true });
    const done = answer.json?.['steps'] as Record<Chore, Step | null>;
    for (const step of steps) lines.push(`${step}: ${stepText(step, done[step], answer.json ?? {}, dryRun)}`);
    Object.assign(json, { maintain: answer.json });
    const failed = steps.filter((step) => done[step]?.error != null);
    if (failed.length > 0) throw new Failure(EXIT.refused, lines.join('\n'), answer.json);
  }
  if (asked.includes('rewrite-manifests')) {
    if (dryRun) lines.push('rewrite-manifests: cannot be tried without being done, left out');
    else {
      const { json: report } = await ask('POST', `${tablePath(table)}/rewrite-manifests`, { again: true });
      lines.push(`rewrite-manifests: ${changeText(report ?? {}, false)}`);
      json['rewrite-manifests'] = report;
    }
  }
  return { json, text: lines.join('\n') };
}

function stepText(step: Chore, done: Step | null, answer: Record<string, unknown>, dryRun: boolean): string {
  if (done === null) return 'not done';
  if (done.error !== null) return `failed: ${done.error.message}`;
  const report = done.report ?? {};
  switch (step) {
    case 'compact':
      return changeText(report, dryRun) + mergedText(answer);
    case 'index':
      if (report['state'] === 'impossible') return `cannot be made: ${report['reason']}`;
      return changeText(report, dryRun) + (report['changed'] === true ? `, ${counted(report, 'series')} series` : '');
    case 'erase':
      return `${counted(report, 'keys')} files${Number(report['remaining']) > 0 ? `, ${counted(report, 'remaining')} are left` : ''}`;
    case 'sweep':
      return `${counted(report, 'orphans')} files that nothing refers to, ${counted(report, 'bytes')} bytes, of ${counted(report, 'listed')}`;
    default:
      return changeText(report, dryRun) + factsText(report);
  }
}

function counted(report: Record<string, unknown>, name: string): string {
  return count(Number(report[name] ?? 0));
}

function changeText(report: Record<string, unknown>, dryRun: boolean): string {
  return report['changed'] === true ? `version ${report['version']}` : dryRun ? 'tried' : 'nothing to do';
}

function mergedText(json: Record<string, unknown>): string {
  const slices = json['slices'];
  if (!Array.isArray(slices) || slices.length === 0) return '';
  const files = (slices as { files: number }[]).reduce((sum, slice) => sum + slice.files, 0);
  return `, ${count(files)} files in ${count(slices.length)} steps`;
}

function factsText(report: Record<string, unknown>): string {
  const facts = ['snapshots', 'refs', 'partitions', 'files'].flatMap((name) => {
    const value = report[name];
    if (Array.isArray(value)) return [`${value.length} ${name}`];
    return typeof value === 'number' ? [`${count(value)} ${name}`] : [];
  });
  return facts.length === 0 ? '' : `, ${facts.join(', ')}`;
}

/** Tells the state of a table whenever it changes, until it was told `most` times (null: until somebody stops it). */
export async function tail(
  ask: Ask,
  table: TableName,
  {
    intervalMs,
    most,
    sleep = wait,
  }: { intervalMs: number; most: number | null; sleep?: (ms: number) => Promise<unknown> },
  tell: (result: Result) => void,
): Promise<void> {
  let before = '';
  for (let told = 0; ; ) {
    const { json } = await ask('GET', tablePath(table), { again: true });
    const { version, status } = json as unknown as Described;
    const text = statusText(version, status);
    if (text !== before) {
      tell({ json: { version, ...status }, text: `${timeText(Date.now())}  ${text}` });
      before = text;
      if (++told === most) return;
    }
    await sleep(intervalMs);
  }
}
