import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { tableFromArrays, tableToIPC } from 'apache-arrow';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { ask, JSON_TYPE, NDJSON } from '../e2e/support/http.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from '../e2e/support/service.ts';
import { openDuckdb } from '../oracle/duckdb.ts';

/**
 * The most rows that one request may have, through every format, as other tools write it: one and the same table each
 * time. DuckDB writes JSON, CSV and Parquet, apache-arrow writes Arrow; DuckDB compares.
 */
const COUNT = 100_000;
const START_MS = Date.UTC(2026, 2, 1);
const COLUMNS = 'time, device, seq, v, ok, note';

const FIELDS = [
  { name: 'time', type: 'timestamptz', required: true },
  { name: 'device', type: 'string' },
  { name: 'seq', type: 'long' },
  { name: 'v', type: 'double' },
  { name: 'ok', type: 'boolean' },
  { name: 'note', type: 'string' },
];

/** Row i: each column has nulls of its own; `seq` needs all of its 64 bits, `note` what texts have to be escaped for. */
const NOTES = ['plain', 'a,b;c', 'say "hi"', 'é😀', 'C:\\dir', null];
const deviceOf = (i: number): string => `device ${i % 97}`;
const seqOf = (i: number): bigint => 9_007_199_254_740_993n + BigInt(i);
const readingOf = (i: number): number | null => (i % 7 === 0 ? null : i / 8);
const okOf = (i: number): boolean | null => (i % 5 === 0 ? null : i % 2 === 0);
const noteOf = (i: number): string | null => NOTES[i % NOTES.length] ?? null;
const every = <T>(of: (i: number) => T): T[] => Array.from({ length: COUNT }, (_, i) => of(i));

let service: RunningService;
let folder: string;
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'formats-'));
  service = await startService();
});

afterAll(async () => {
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

const lineOf = (i: number): string =>
  `{"time":"${new Date(START_MS + i * 1000).toISOString()}","device":"${deviceOf(i)}","seq":${seqOf(i)},"v":${readingOf(i)},"ok":${okOf(i)},"note":${JSON.stringify(noteOf(i))}}`;

/** Tags and measurement with their spaces escaped, nulls left out. */
function pointOf(measurement: string, i: number): string {
  const fields = [`seq=${seqOf(i)}i`];
  const [v, ok, note] = [readingOf(i), okOf(i), noteOf(i)];
  if (v !== null) fields.push(`v=${v}`);
  if (ok !== null) fields.push(`ok=${ok}`);
  if (note !== null) fields.push(`note="${note.replace(/[\\"]/g, '\\$&')}"`);
  return `${measurement},device=${deviceOf(i).replace(' ', '\\ ')} ${fields.join(',')} ${START_MS + i * 1000}`;
}

/** The rows as DuckDB writes them in `format`. */
async function written(source: string, name: string, options: string): Promise<Uint8Array> {
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  await connection.run("SET TimeZone = 'UTC'");
  const types = "{time: 'TIMESTAMPTZ', device: 'VARCHAR', seq: 'BIGINT', v: 'DOUBLE', ok: 'BOOLEAN', note: 'VARCHAR'}";
  const rows = `SELECT * FROM read_json('${source}', format = 'newline_delimited', columns = ${types})`;
  await connection.run(`COPY (${rows}) TO '${join(folder, name)}' (${options})`);
  connection.closeSync();
  instance.closeSync();
  return readFileSync(join(folder, name));
}

test(`formats: the same ${COUNT} rows, through every format, are the same table`, async () => {
  const lines = every(lineOf).join('\n');
  const source = join(folder, 'source.json');
  writeFileSync(source, lines);
  const arrow = tableFromArrays({
    time: every((i) => new Date(START_MS + i * 1000)),
    device: every(deviceOf),
    seq: BigInt64Array.from(every(seqOf)),
    v: every(readingOf),
    ok: every(okOf),
    note: every(noteOf),
  });
  const bodies: Record<string, [headers: Record<string, string>, body: string | Uint8Array]> = {
    ndjson: [NDJSON, lines],
    json: [JSON_TYPE, `[${lines.replaceAll('\n', ',')}]`],
    duckdb_json: [JSON_TYPE, await written(source, 'array.json', 'FORMAT json, ARRAY true')],
    csv: [{ 'content-type': 'text/csv' }, await written(source, 'rows.csv', 'FORMAT csv, HEADER true')],
    tsv: [
      { 'content-type': 'text/tab-separated-values' },
      await written(source, 'rows.tsv', "FORMAT csv, HEADER true, DELIMITER '\t'"),
    ],
    arrow_stream: [{ 'content-type': 'application/vnd.apache.arrow.stream' }, tableToIPC(arrow, 'stream')],
    arrow_file: [{ 'content-type': 'application/vnd.apache.arrow.file' }, tableToIPC(arrow, 'file')],
    parquet: [
      { 'content-type': 'application/vnd.apache.parquet' },
      await written(source, 'rows.parquet', 'FORMAT parquet, COMPRESSION zstd, ROW_GROUP_SIZE 20000'),
    ],
    points: [{ 'content-type': 'text/plain; charset=utf-8' }, every((i) => pointOf('points', i)).join('\n')],
  };
  const found: Record<string, unknown> = {};
  for (const [name, [headers, body]] of Object.entries(bodies)) {
    const path = `/v1/tables/formats/${name}`;
    const definition = { schema: { type: 'struct', fields: FIELDS }, time_column: 'time', series_key: ['device'] };
    const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body: JSON.stringify(definition) });
    expect(created.status, created.text).toBe(201);
    const door = name === 'points' ? '/api/v2/write?bucket=formats&precision=ms' : `${path}/rows`;
    const taken = await ask(service.send, 'POST', door, { headers, body });
    expect(taken.status, `${name}: ${taken.text}`).toBe(name === 'points' ? 204 : 202);
    const flushed = await ask(service.send, 'POST', `${path}/flush`);
    expect(flushed.status, flushed.text).toBe(200);
    const table = await openDuckdb(service.bucket, `${WAREHOUSE}/formats/${name}`, { bucketName: BUCKET_NAME });
    // Order does not count, every value does.
    [found[name]] = await table.query(
      `SELECT count(*) AS rows, CAST(sum(hash(${COLUMNS})) AS VARCHAR) AS hashes, count(v) AS v, count(ok) AS ok,
              count(note) AS notes, CAST(sum(seq) AS VARCHAR) AS seq, min(time) AS first, max(time) AS last FROM live`,
    );
    table.close();
  }
  expect(found['ndjson']).toMatchObject({ rows: BigInt(COUNT), v: 85_714n, ok: 80_000n, notes: 83_334n });
  for (const [name, table] of Object.entries(found)) expect(table, name).toEqual(found['ndjson']);
});
