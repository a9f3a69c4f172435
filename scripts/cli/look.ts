import { writeFileSync } from 'node:fs';
import { count, type Progress } from '../demo/progress.ts';
import type { Answer, Ask } from './api.ts';
import type { Result } from './commands.ts';
import { EXIT, Failure, usage } from './failure.ts';
import { type TableName, tablePath } from './table-name.ts';
import { tableText } from './table-text.ts';

/** Looking at what is in a table: its rows, the newest of each series, its files. */

/** How rows are told: a table for people, or as the service answers. */
export const ROW_FORMATS = ['table', 'json', 'ndjson', 'arrow'] as const;
export type RowFormat = (typeof ROW_FORMATS)[number];

const ACCEPT: Readonly<Record<RowFormat, string>> = {
  table: 'application/json',
  json: 'application/json',
  ndjson: 'application/x-ndjson',
  arrow: 'application/vnd.apache.arrow.stream',
};

export interface LookOptions {
  table: TableName;
  /** `COLUMN=VALUE`: rows with any of the values that are given for a column. */
  where: readonly string[];
  /** Columns of which rows have no value. */
  nulls: readonly string[];
  format: RowFormat;
  /** A file that the answer is written to; null: the standard output. */
  out: string | null;
}

export interface RowsOptions extends LookOptions {
  from: string | null;
  to: string | null;
  columns: string | null;
  /** Null: as many as the service answers by itself. */
  limit: number | null;
  newestFirst: boolean;
  ref: string | null;
  snapshot: string | null;
}

/** Rows of a table by time and series. */
export function rows(ask: Ask, options: RowsOptions, progress: Progress): Promise<Result> {
  const { from, to, columns, limit, newestFirst, ref, snapshot } = options;
  const query = filtersOf(options);
  const given = { from, to, columns, limit, order: newestFirst ? 'desc' : null, ref, snapshot_id: snapshot };
  for (const [name, value] of Object.entries(given)) if (value !== null) query.set(name, String(value));
  return looked(ask, `rows?${query}`, options, progress);
}

/** The newest row of each series, with those that wait in the buffer if asked. */
export function latest(ask: Ask, options: LookOptions & { buffered: boolean }, progress: Progress): Promise<Result> {
  const query = filtersOf(options);
  if (options.buffered) query.set('buffered', 'true');
  return looked(ask, `latest?${query}`, options, progress);
}

function filtersOf({ where, nulls }: LookOptions): URLSearchParams {
  const query = new URLSearchParams();
  for (const filter of where) {
    const at = filter.indexOf('=');
    if (at < 1) throw usage(`--where is COLUMN=VALUE: ${filter}`);
    // A column may be named like a parameter.
    query.append(`where.${filter.slice(0, at)}`, filter.slice(at + 1));
  }
  for (const column of nulls) query.append('is_null', column);
  return query;
}

async function looked(ask: Ask, path: string, options: LookOptions, progress: Progress): Promise<Result> {
  const { table, format, out } = options;
  if (format === 'arrow' && out === null) throw usage('arrow is no text: --out FILE says where it goes');
  const headers = { accept: ACCEPT[format] };
  const answer = await ask('GET', `${tablePath(table)}/${path}`, { headers, again: true });
  const more = answer.headers.get('x-sluice-more') === 'true';
  const text = format === 'table' ? rowsText(answer, more) : withoutEnd(answer.text());
  if (out !== null) return written(out, format === 'table' ? Buffer.from(`${text}\n`) : answer.bytes, answer, more);
  if (more && format !== 'table') progress.say(MORE);
  return { json: answer.json, text, ...(format === 'json' ? { raw: text } : {}) };
}

const MORE = 'there are more rows: --limit N answers more of them, --from and --to others';

function withoutEnd(text: string): string {
  return text.endsWith('\n') ? text.slice(0, -1) : text;
}

function rowsText({ json, headers }: Answer, more: boolean): string {
  const found = (json?.['rows'] ?? []) as Record<string, unknown>[];
  const parts = [
    `${count(found.length)} ${found.length === 1 ? 'row' : 'rows'} of version ${headers.get('x-sluice-version')}`,
    ...factsOf(headers),
  ];
  const lines = [parts.join(', '), ...(more ? [MORE] : [])];
  if (found.length > 0) lines.unshift(tableText(Object.keys(found[0]), found), '');
  return lines.join('\n');
}

function factsOf(headers: Headers): string[] {
  const [read, considered, bytes, source, buffered] = [
    'files-read',
    'files-considered',
    'bytes-read',
    'source',
    'buffered-rows',
  ].map((name) => headers.get(`x-sluice-${name}`));
  return [
    ...(read === null
      ? []
      : [`${count(Number(read))} of ${count(Number(considered))} files, ${count(Number(bytes))} bytes read`]),
    ...(source === null ? [] : [source === 'index' ? 'by the index' : 'by looking through the files']),
    ...(buffered === null ? [] : [`${count(Number(buffered))} rows wait`]),
  ];
}

function written(file: string, bytes: Uint8Array, { headers }: Answer, more: boolean): Result {
  try {
    writeFileSync(file, bytes);
  } catch (error) {
    throw new Failure(EXIT.refused, `file cannot be written: ${file}: ${(error as Error).message}`, null, error);
  }
  const version = Number(headers.get('x-sluice-version'));
  const told = `${count(bytes.length)} bytes of version ${version} in ${file}`;
  return { json: { file, bytes: bytes.length, version, more }, text: more ? `${told}\n${MORE}` : told };
}

interface FileCounts {
  files: number;
  rows: string;
  bytes: string;
  small_files: number;
}

interface FileList extends FileCounts {
  version: number;
  small_below_bytes: number;
  delete_files: number;
  partition_count: number;
  partitions: (FileCounts & { partition: Record<string, string | null> })[];
  next_offset: number | null;
}

/** Data files, counted by partition, from partition number `offset` on. */
export async function files(ask: Ask, table: TableName, limit: number, offset: number): Promise<Result> {
  const { json } = await ask('GET', `${tablePath(table)}/files?limit=${limit}&offset=${offset}`, { again: true });
  const list = json as unknown as FileList;
  const shown = list.partitions.map(({ partition, ...counts }) => ({
    partition:
      Object.entries(partition)
        .map(([name, value]) => `${name}=${value}`)
        .join('/') || '-',
    ...countsText(counts),
  }));
  const all = countsText(list);
  const deletes = list.delete_files === 0 ? '' : `, ${count(list.delete_files)} delete files`;
  const lines = [
    `version ${list.version}: ${all.files} files, ${all.rows} rows, ${all.bytes} bytes, ${all.small} small (below ${count(list.small_below_bytes)} bytes)${deletes}`,
  ];
  if (shown.length > 0) lines.push('', tableText(['partition', 'files', 'rows', 'bytes', 'small'], shown));
  if (list.next_offset !== null) {
    lines.push(`${count(list.partition_count - list.next_offset)} more partitions: --offset ${list.next_offset}`);
  }
  return { json, text: lines.join('\n') };
}

function countsText({ files: number, rows: held, bytes, small_files: small }: FileCounts) {
  return { files: count(number), rows: count(BigInt(held)), bytes: count(BigInt(bytes)), small: count(small) };
}
