import { deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from 'node:zlib';
import { expect, test } from 'vitest';
import { sensorBody } from '../../bench/append-rows.ts';
import { duckdbRows } from '../oracle/duckdb.ts';
import { type Row, rows, sameRows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';
import { type Case, FLAT, NESTED } from './support/type-cases.ts';

/**
 * CSV, line protocol and compressed bodies through the production bundle: what they can say is in the table as if it had
 * been sent as JSON.
 */
const service = sharedService();

const CSV = { 'content-type': 'text/csv' };
const TSV = { 'content-type': 'text/tab-separated-values; charset=utf-8' };
/** As Telegraf sends it. */
const POINTS = { 'content-type': 'text/plain; charset=utf-8', 'user-agent': 'Telegraf/1.36.1 Go/1.25.1' };

const at = (name: string) => ({ path: `/v1/tables/text/${name}`, prefix: `${WAREHOUSE}/text/${name}` });

async function create(name: string, definition: object): Promise<void> {
  const body = JSON.stringify(definition);
  const created = await ask(service.send, 'PUT', at(name).path, { headers: JSON_TYPE, body });
  expect(created.status, created.text).toBe(201);
}

async function send(name: string, headers: Record<string, string>, body: string | Uint8Array, query = '') {
  const sent = { headers: { ...headers, prefer: 'wait=30' }, body };
  const answer = await ask(service.send, 'POST', `${at(name).path}/rows${query}`, sent);
  expect(answer.status, answer.text).toBe(201);
}

const write = (body: string | Uint8Array, query = '', headers: Record<string, string> = {}) =>
  ask(service.send, 'POST', `/api/v2/write?bucket=text&org=home${query}`, { headers: { ...POINTS, ...headers }, body });

async function flush(name: string): Promise<void> {
  expect((await ask(service.send, 'POST', `${at(name).path}/flush`)).status).toBe(200);
}

/** Rows of a valid table without the time they were taken. */
async function tableOf(name: string): Promise<Row[]> {
  const { prefix } = at(name);
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  return (await rows(service.bucket, prefix, { bucketName: BUCKET_NAME })).map(({ _ingest_ts, ...row }) => row);
}

/** Holds a table against what was meant, by two readers that nobody here wrote. */
async function expectRows(name: string, expected: Row[]): Promise<void> {
  sameRows(expected, await tableOf(name));
  sameRows(expected, await duckdbRows(service.bucket, at(name).prefix, { bucketName: BUCKET_NAME }));
}

/** A value in quotes, whatever is in it. */
const quoted = (text: string): string => `"${text.replaceAll('"', '""')}"`;

/** What JSON text is in CSV: text in quotes, numbers and booleans as they are, lists and objects as JSON in quotes. */
function csvOf(json: string | null): string {
  if (json === null) return '';
  if (json.startsWith('"')) return quoted(JSON.parse(json) as string);
  return /^[[{]/.test(json) ? quoted(json) : json;
}

const escaped = (text: string): string => text.replaceAll(/[ ,=]/g, '\\$&');

/** What JSON text is as a field of a point: whole numbers of 64 bits with their suffix, all text in quotes. */
function fieldOf(json: string, type: string): string {
  if (json.startsWith('"')) return `"${(JSON.parse(json) as string).replaceAll(/["\\]/g, '\\$&')}"`;
  return type === 'long' && /^-?\d+$/.test(json) ? `${json}i` : json;
}

test('formats: the same rows as NDJSON, JSON, CSV, tab-separated values and points are the same table', async () => {
  const ndjson = new TextDecoder().decode(sensorBody(10_000)).trimEnd();
  const records = ndjson.split('\n').map((line) => JSON.parse(line) as Record<string, string | number | null>);
  const columns = Object.keys(records[0]);
  const texts = ['device_id', 'site', 'status'];
  const csv = (mark: string, cell: (name: string, value: string | number) => string) =>
    [
      columns,
      ...records.map((record) => columns.map((name) => (record[name] === null ? '' : cell(name, record[name])))),
    ]
      .map((cells) => cells.join(mark))
      .join('\r\n');
  const points = (name: string) =>
    records
      .map(({ time, device_id, site, ...fields }) => {
        const given = Object.entries(fields).filter(([, value]) => value !== null) as [string, string | number][];
        const written = given.map(([name, value]) =>
          typeof value === 'string' ? `${name}="${value}"` : `${name}=${value}${name === 'counter' ? 'i' : ''}`,
        );
        // A point needs a field.
        return `${name},device_id=${device_id},site=${site} ${written.join(',') || 'status=""'} ${BigInt(Date.parse(time as string)) * 1_000_000n}`;
      })
      .join('\n');
  const formats: [name: string, deliver: (name: string) => Promise<void>][] = [
    ['ndjson', (name) => send(name, NDJSON, ndjson)],
    ['json', (name) => send(name, JSON_TYPE, `[${ndjson.replaceAll('\n', ',')}]`)],
    [
      'csv',
      (name) =>
        send(
          name,
          CSV,
          csv(',', (_, value) => String(value)),
        ),
    ],
    [
      'csv-quoted',
      (name) =>
        send(
          name,
          CSV,
          csv(';', (_, value) => quoted(String(value))),
          '?delimiter=;',
        ),
    ],
    [
      'tsv',
      (name) =>
        send(
          name,
          TSV,
          csv('\t', (of, value) => (texts.includes(of) ? quoted(String(value)) : String(value))),
        ),
    ],
    [
      'points',
      async (name) => {
        const answer = await write(gzipSync(points(name)), '&precision=ns', { 'content-encoding': 'gzip' });
        expect([answer.status, answer.text]).toEqual([204, '']);
        await flush(name);
      },
    ],
  ];
  const fields = columns.map((name) => ({
    name,
    type: name === 'time' ? 'timestamptz' : name === 'counter' ? 'long' : texts.includes(name) ? 'string' : 'double',
    required: name === 'time',
  }));
  const tables = await Promise.all(
    formats.map(async ([name, deliver]) => {
      await create(name, {
        schema: { type: 'struct', fields },
        time_column: 'time',
        series_key: ['device_id'],
        dedup: false,
      });
      await deliver(name);
      return tableOf(name);
    }),
  );
  const key = (row: Row) => `${row['device_id']} ${row['time']}`;
  const [first, ...others] = tables.map((table) => table.sort((a, b) => (key(a) < key(b) ? -1 : 1)));
  expect(first).toHaveLength(10_000);
  for (const [i, other] of others.entries()) expect(other, formats[i + 1][0]).toEqual(first);
});

interface Column {
  name: string;
  type: string | object;
  cases: Case[];
}

const flat: Column[] = Object.entries(FLAT).map(([type, cases]) => ({
  name: `c_${type.replaceAll(/\W+/g, '_')}`,
  type,
  cases,
}));
const nested: Column[] = Object.entries(NESTED).map(([name, { type, cases }]) => ({ name, type, cases }));

/** Rows in which each case of each column comes up between nulls, as JSON texts, and what is to be found. */
function matrixOf(columns: readonly Column[]): { cells: (string | null)[][]; expected: Row[] } {
  const most = Math.max(...columns.map(({ cases }) => cases.length));
  const cells: (string | null)[][] = [];
  const expected: Row[] = [];
  for (let n = 0; n < 2 * most; n++) {
    const picked = columns.map(({ cases }, c) => ((n + c) % 2 === 0 ? cases[(n >> 1) % cases.length] : null));
    cells.push(picked.map((one) => one?.[0] ?? null));
    expected.push({
      id: BigInt(n),
      ...Object.fromEntries(columns.map(({ name }, c) => [name, picked[c]?.[1] ?? null])),
    });
  }
  return { cells, expected };
}

const schemaOf = (columns: readonly Column[], more: object[] = []) => ({
  schema: {
    type: 'struct',
    fields: [
      { name: 'id', type: 'long', required: true },
      ...more,
      ...columns.map(({ name, type }) => ({ name, type })),
    ],
  },
});

test('formats: every type, its edges and nulls come back from CSV as they were sent, lists, structs and maps as JSON', async () => {
  const columns = [...flat, ...nested];
  await create('csv-types', schemaOf(columns));
  const { cells, expected } = matrixOf(columns);
  const header = ['id', ...columns.map(({ name }) => name)];
  const lines = cells.map((row, n) => [String(n), ...row.map(csvOf)]);
  await send('csv-types', CSV, [header, ...lines].map((line) => line.join(',')).join('\n'));
  await expectRows('csv-types', expected);
});

test('formats: every flat type, its edges and nulls come back from points as they were sent', async () => {
  await create('point-types', schemaOf(flat, [{ name: 'time', type: 'timestamptz' }]));
  const { cells, expected } = matrixOf(flat);
  const lines = cells.map((row, n) => {
    const given = row.flatMap((json, c) =>
      json === null ? [] : [`${escaped(flat[c].name)}=${fieldOf(json, flat[c].type as string)}`],
    );
    return `point-types ${[`id=${n}i`, ...given].join(',')} ${1_700_000_000_000 + n}`;
  });
  const answer = await write(lines.join('\n'), '&precision=ms');
  expect([answer.status, answer.text]).toEqual([204, '']);
  await flush('point-types');
  const times = expected.map((row, n) => ({ ...row, time: 1_700_000_000_000_000n + 1000n * BigInt(n) }));
  await expectRows('point-types', times);
});

test('formats: what CSV and points cannot say is as the README has it', async () => {
  await create('words', {
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz' },
        { name: 's', type: 'string' },
        { name: 'n', type: 'long' },
      ],
    },
  });
  // Nothing is null, quotes around nothing are the empty text, and null in a column without one.
  await send('words', CSV, 's,n\n,1\n"",2\n"x",\n"y",""\n');
  // An empty text is one, and null is a field that is left out; a whole float is an integer.
  expect((await write('words s="" 1\nwords n=7 1\nwords,s=t n=8i 1\n')).status).toBe(204);
  await flush('words');
  const found = (await tableOf('words')).map(({ s, n }) => `${s === null ? 'null' : `"${s}"`} ${n}`);
  expect(found.sort()).toEqual(['"" 2', '"" null', '"t" 8', '"x" null', '"y" null', 'null 1', 'null 7']);
});

test('formats: gzip, deflate with and without its header, and several frames of zstd', async () => {
  await create('packed', { schema: { type: 'struct', fields: [{ name: 'v', type: 'long' }] } });
  const half = (from: number) => Array.from({ length: 5000 }, (_, i) => `${from + i}\n`).join('');
  const bodies: [coding: string, pack: (text: string) => Uint8Array][] = [
    ['gzip', gzipSync],
    ['deflate', deflateSync],
    ['deflate', deflateRawSync],
    ['zstd', zstdCompressSync],
  ];
  for (const [n, [coding, pack]] of bodies.entries()) {
    const body =
      coding === 'deflate'
        ? pack(`v\n${half(0)}${half(5000)}`)
        : Buffer.concat([pack(`v\n${half(0)}`), pack(half(5000))]);
    await send('packed', { ...CSV, 'content-encoding': coding }, body);
    const { body: view } = await ask<{ snapshot: { summary: object } }>(service.send, 'GET', at('packed').path);
    expect(view.snapshot.summary, coding).toMatchObject({ 'total-records': String(10_000 * (n + 1)) });
  }
  const sum = (await tableOf('packed')).reduce((all, { v }) => all + (v as bigint), 0n);
  expect(sum).toBe(4n * 49_995_000n);
  for (const [coding, pack] of bodies) {
    const headers = { ...CSV, 'content-encoding': coding };
    const post = (body: Uint8Array) => ask(service.send, 'POST', `${at('packed').path}/rows`, { headers, body });
    expectProblem(await post(pack(`v\n${half(0)}`).subarray(0, -1)), 400, `malformed-${coding}`);
  }
  const bomb = { headers: { ...CSV, 'content-encoding': 'zstd' }, body: zstdCompressSync('\n'.repeat(40_000_000)) };
  expectProblem(await ask(service.send, 'POST', `${at('packed').path}/rows`, bomb), 413, 'body-too-large');
});

test('CSV: bad lines are refused with their line and field, and nothing of the batch is taken', async () => {
  await create('bad-csv', {
    schema: {
      type: 'struct',
      fields: [
        { name: 'id', type: 'long', required: true },
        { name: 's', type: 'string' },
      ],
    },
  });
  const post = (body: string, query = '') =>
    ask(service.send, 'POST', `${at('bad-csv').path}/rows${query}`, { headers: CSV, body });
  const ragged = expectProblem(await post('id,s\n1,"a\nb"\n2\n3,c,d\nx,\n,e\n5,f"g\n'), 422, 'invalid-rows');
  expect(ragged.errors?.map(({ line, field, type }) => [line, field, type])).toEqual([
    [4, null, 'ragged-row'],
    [5, null, 'ragged-row'],
    [6, 'id', 'wrong-type'],
    [7, 'id', 'null-in-required'],
    [8, null, 'malformed-csv'],
  ]);
  expectProblem(await post('id,s\n1,"a\n2,b\n'), 400, 'truncated-body');
  expectProblem(await post('id,id\n1,2\n'), 400, 'malformed-body');
  expectProblem(await post(''), 400, 'empty-body');
  expectProblem(await post('id;s\n1;a\n', '?delimiter=x'), 400, 'malformed');
  const { body } = await ask(service.send, 'GET', at('bad-csv').path);
  expect(body).toMatchObject({ snapshot: null, status: { buffer: { batches: 0 } } });
});

test('points: a batch as Telegraf sends it, of several measurements, again, and with a bad point in one', async () => {
  for (const name of ['cpu', 'mem']) {
    const fields = [
      { name: 'time', type: 'timestamptz', required: true },
      { name: 'host', type: 'string' },
      { name: 'usage', type: 'double' },
      { name: 'used', type: 'long' },
    ];
    await create(name, {
      schema: { type: 'struct', fields },
      time_column: 'time',
      series_key: ['host'],
      chunk: 'day',
      dedup: false,
    });
  }
  const batch = (from: number) =>
    Array.from({ length: 1000 }, (_, i) => {
      const time = 1_700_000_000_000_000_000n + BigInt(from + i) * 1_000_000_000n;
      return `cpu,host=a\\ b usage=${i / 7} ${time}\nmem,host=a\\ b used=${i}i ${time}\n`;
    }).join('');
  const packed = { 'content-encoding': 'gzip' };
  // The answer was lost, so it comes again.
  for (const from of [0, 0, 1000]) {
    const answer = await write(gzipSync(batch(from)), '', packed);
    expect([answer.status, answer.text]).toEqual([204, '']);
  }
  const bad = await write(`${batch(2000)}cpu,host=c usage=NaN 1700000000000000000\n`);
  expect(bad.status).toBe(400);
  expect(bad.headers.get('content-type')).toBe('application/json');
  expect(bad.body).toMatchObject({
    code: 'invalid',
    accepted: 1000,
    dropped: 1001,
    tables: [{ measurement: 'cpu', errors: [{ line: 2001, field: 'usage', type: 'malformed-value' }] }],
  });
  expect(bad.body['message']).toMatch(/^partial write: cpu: .*line 2001.*; dropped=1001$/);
  expect((await write('cpu usage', '')).body).toMatchObject({ code: 'invalid', line: 1 });
  await Promise.all(['cpu', 'mem'].map(flush));
  const [cpu, mem] = await Promise.all(['cpu', 'mem'].map(tableOf));
  expect([cpu.length, mem.length]).toEqual([2000, 3000]);
  expect(new Set(cpu.map(({ time }) => time)).size).toBe(2000);
  expect(cpu.every(({ host, used }) => host === 'a b' && used === null)).toBe(true);
});
