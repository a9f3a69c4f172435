import { createHash, randomUUID } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import { count, type Progress, seconds } from '../demo/progress.ts';
import type { Ask } from './api.ts';
import { slugOf } from './api.ts';
import { EXIT, Failure } from './failure.ts';
import { type FileFormat, formatOf } from './formats.ts';
import { type Piece, pieces } from './pieces.ts';
import { digestOf, openSource } from './source.ts';
import { type TableName, tablePath } from './table-name.ts';

export interface LoadOptions {
  table: TableName;
  file: string;
  format: string | null;
  /** Name of the load: batches of one name and number are taken once. Null: the file's content. */
  id: string | null;
  rowsMax: number;
  bytesMax: number;
  parallel: number;
  onError: 'refuse' | 'skip';
  delimiter: string | null;
  precision: string | null;
  /** Wait until all is committed. */
  flush: boolean;
}

export interface Loaded {
  id: string;
  rows: number;
  batches: number;
  /** Batches that the service had from a load before. */
  duplicates: number;
  /** Rows that were left out, with `--on-error skip`. */
  skipped: number;
  seconds: number;
  rows_per_second: number;
  /** Version of the table that holds all of them; null: not waited for. */
  version: number | null;
}

/** Bytes of a batch: a tenth of a second of work for the service, and far from what a request may have. */
export const BATCH_BYTES = 8 * 1024 * 1024;
export const BATCH_ROWS = 50_000;

/** Tries to flush what waits, a few seconds each. */
const FLUSHES_MAX = 60;

const compress = promisify(gzip);

/**
 * Sends a file as batches whose ids follow from the load's name and their numbers: the same load again, after a break or
 * whole, is answered for what was taken before, and takes the rest.
 */
export async function load(ask: Ask, options: LoadOptions, progress: Progress): Promise<Loaded> {
  const { file, parallel } = options;
  const { format, packing } = formatOf(file, options.format);
  const id = options.id ?? (await contentId(options));
  const source = openSource(file, packing);
  const startMs = performance.now();
  const sums = { rows: 0, batches: 0, duplicates: 0, skipped: 0 };
  const all = pieces(source.bytes, format, options);

  const show = () => {
    const share = source.size === null || source.size === 0 ? null : source.read() / source.size;
    const speed = Math.round(sums.rows / ((performance.now() - startMs) / 1000));
    const facts = [`${count(sums.rows)} rows`, `${count(speed)} rows/s`];
    if (sums.duplicates > 0) facts.push(`${count(sums.duplicates)} batches were there`);
    progress.show('loading', share, facts);
  };

  // The first failure ends the others: none of them takes another piece.
  let failed = false;
  const sender = async () => {
    while (!failed) {
      const { value: piece, done } = await all.next();
      if (done === true) return;
      const sent = await send(ask, piece, format, id, options);
      sums.rows += sent.rows;
      sums.skipped += sent.skipped;
      sums.batches++;
      if (sent.duplicate) sums.duplicates++;
      show();
    }
  };
  const senders = Array.from({ length: parallel }, () =>
    sender().catch((error) => {
      failed = true;
      throw error;
    }),
  );
  const ended = await Promise.allSettled(senders);
  const failure = ended.find((one) => one.status === 'rejected');
  if (failure !== undefined) throw stopped(failure.reason, sums, options.file === '-' ? id : options.id);

  const ms = performance.now() - startMs;
  const isPoints = format.cut === 'points';
  const version = options.flush && !isPoints ? await progress.during('committing', flush(ask, options.table)) : null;
  return {
    id,
    ...sums,
    seconds: Number((ms / 1000).toFixed(3)),
    rows_per_second: Math.round(sums.rows / Math.max(ms / 1000, 0.001)),
    version,
  };
}

/** The name of a load that was given none: the same content for the same table is the same load. */
async function contentId({ file, table }: LoadOptions): Promise<string> {
  if (file === '-') return randomUUID();
  const content = await digestOf(file);
  return createHash('sha256').update(`${table.namespace}/${table.table}\n${content}`).digest('hex').slice(0, 32);
}

interface Sent {
  rows: number;
  skipped: number;
  duplicate: boolean;
}

async function send(ask: Ask, piece: Piece, format: FileFormat, id: string, options: LoadOptions): Promise<Sent> {
  const isText = format.cut !== null;
  const body = new Uint8Array(isText ? await compress(piece.body, { level: 1 }) : piece.body);
  const headers: Record<string, string> = {
    'content-type': format.contentType,
    'idempotency-key': `load/${id}/${piece.number}`,
    ...(isText ? { 'content-encoding': 'gzip' } : {}),
  };
  try {
    const { status, json } = await ask('POST', addressOf(format, options), { headers, body, again: true });
    const skipped = Number(json?.['rows_skipped'] ?? 0);
    const rows = json === null ? piece.records : Number(json['rows'] ?? 0);
    return { rows, skipped, duplicate: status === 200 && json?.['duplicate'] === true };
  } catch (error) {
    throw located(error, piece);
  }
}

function addressOf(format: FileFormat, { table, onError, delimiter, precision }: LoadOptions): string {
  const query = new URLSearchParams();
  if (onError === 'skip') query.set('on_error', onError);
  if (format.cut === 'points') {
    query.set('bucket', table.namespace);
    query.set('precision', precision ?? 'ns');
    return `/api/v2/write?${query}`;
  }
  if (delimiter !== null) query.set('delimiter', delimiter);
  const text = query.toString();
  return `${tablePath(table)}/rows${text === '' ? '' : `?${text}`}`;
}

/** A refusal with lines as they are in the file, and what a changed file means. */
function located(error: unknown, { lineOffset, number }: Piece): unknown {
  if (!(error instanceof Failure) || error.problem === null) return error;
  if (slugOf(error.problem) === 'idempotency-conflict') {
    const why =
      'batch was loaded before with other rows: the file, --batch-rows or --batch-bytes are not what they were';
    return new Failure(error.exit, `${why}: batch=${number}`, error.problem, error);
  }
  const errors = error.problem['errors'];
  if (!Array.isArray(errors)) return error;
  const moved = errors.map((one: Record<string, unknown>) =>
    typeof one['line'] === 'number' ? { ...one, line: one['line'] + lineOffset } : one,
  );
  const first = moved.slice(0, 5).map((one) => `\n  line ${one['line'] ?? '?'}: ${one['message']}`);
  const message = `${error.message.replace(/, first at line .*$/s, '')}${first.join('')}`;
  return new Failure(error.exit, message, { ...error.problem, errors: moved }, error);
}

function stopped(reason: unknown, sums: { rows: number; batches: number }, id: string | null): unknown {
  if (!(reason instanceof Failure)) return reason;
  const again = id === null ? 'the same command' : `the same with --id ${id}`;
  const advice =
    sums.batches === 0 ? '' : `\n${count(sums.rows)} rows are taken; ${again} goes on and takes nothing twice`;
  return new Failure(reason.exit, reason.message + advice, reason.problem, reason);
}

/** Flushes until nothing waits; the version that is there then. */
export async function flush(ask: Ask, table: TableName): Promise<number> {
  for (let tries = 1; ; tries++) {
    const { json } = await ask('POST', `${tablePath(table)}/flush`, { again: true });
    const status = json?.['status'] as { buffer: { rows: number }; last_error: { message: string } | null } | undefined;
    if (json?.['flushed'] === true && status?.buffer.rows === 0) return Number(json['version']);
    if (tries === FLUSHES_MAX) {
      const why = status?.last_error?.message ?? 'rows still wait';
      throw new Failure(EXIT.unavailable, `rows are taken and not committed yet: ${why}`);
    }
    await new Promise((resolve) => setTimeout(resolve, 500));
  }
}

/** What a load came to, for people. */
export function loadedText({
  rows,
  batches,
  duplicates,
  skipped,
  seconds: s,
  rows_per_second,
  version,
}: Loaded): string {
  const parts = [
    `loaded ${count(rows)} rows in ${count(batches)} batches, ${seconds(s * 1000)}, ${count(rows_per_second)} rows/s`,
  ];
  if (duplicates > 0) parts.push(`${count(duplicates)} batches had been taken before`);
  if (skipped > 0) parts.push(`${count(skipped)} rows were left out`);
  if (version !== null) parts.push(`committed in version ${version}`);
  return parts.join('; ');
}
