import { tableFromIPC } from 'apache-arrow';
import { expect, test } from 'vitest';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, JSON_TYPE } from './support/http.ts';
import { readings } from './support/readings.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/** The newest rows of a table, on the production bundle and the local bucket. */
const service = sharedService();

interface Latest {
  version: number;
  source: string;
  buffered_rows: number | null;
  rows: { time: string; device: string | null; v: number; n?: number | null }[];
}

const at = (minute: number) => new Date(Date.UTC(2026, 0, 1, 0, minute)).toISOString();

test('latest: from the index, with rows that wait, by series, in each format, and without an index', async () => {
  const table = service.table('latest', 't');
  await table.create(readings({ 'sluice.schema-evolution': 'additive' }));
  const latest = async (query = '', accept = 'application/json') =>
    ask<Latest>(service.send, 'GET', `${table.path}/latest${query}`, { headers: { accept } });
  const found = async (query = '') => {
    const { status, body, text } = await latest(query);
    expect(status, text).toBe(200);
    return body.rows.map(({ device, v }) => `${device} ${v}`);
  };
  expect(await found()).toEqual([]);
  expect(await found('?buffered=true')).toEqual([]);

  await table.post(
    [
      { time: at(5), device: 'a', v: 1 },
      { time: at(3), device: 'a', v: 2 },
      { time: at(1), device: 'b', v: 3 },
      { time: at(1), device: null, v: 4 },
    ],
    { waitSeconds: 30 },
  );
  expect(await found()).toEqual(['null 4', 'a 1', 'b 3']);
  // These wait: one is newer, one older, one of a new series that brings a column of its own.
  await table.post([
    { time: at(9), device: 'b', v: 5 },
    { time: at(4), device: 'a', v: 6 },
  ]);
  await table.post([{ time: at(0), device: 'c', v: 7, n: 8 }]);
  expect(await found()).toEqual(['null 4', 'a 1', 'b 3']);
  expect(await found('?buffered=true')).toEqual(['null 4', 'a 1', 'b 5', 'c 7']);
  const waiting = await latest('?buffered=true&device=c');
  expect(waiting.body).toMatchObject({ source: 'index', buffered_rows: 3, rows: [{ device: 'c', v: 7, n: 8 }] });
  expect(await found('?device=a&device=c')).toEqual(['a 1']);
  expect(await found('?is_null=device')).toEqual(['null 4']);
  expectProblem(await latest('?v=1'), 400, 'malformed');
  expectProblem(await latest('?buffered=yes'), 400, 'malformed');
  expectProblem(await latest('', 'text/html'), 406, 'not-acceptable');

  await ask(service.send, 'POST', `${table.path}/flush`);
  expect(await found()).toEqual(['null 4', 'a 1', 'b 5', 'c 7']);
  const lines = await latest('', 'application/x-ndjson');
  expect(
    lines.text
      .trim()
      .split('\n')
      .map((line) => JSON.parse(line).v),
  ).toEqual([4, 1, 5, 7]);
  const arrow = await service.send(`${table.path}/latest`, {
    method: 'GET',
    headers: { accept: 'application/vnd.apache.arrow.stream' },
  });
  const read = tableFromIPC(new Uint8Array(await arrow.arrayBuffer()));
  expect(Array.from(read.getChild('v') ?? [], Number)).toEqual([4, 1, 5, 7]);
  expect(arrow.headers.get('x-sluice-source')).toBe('index');

  // Files that were deleted take the index with them, until maintenance makes it again.
  await table.post([{ time: '2026-01-02T00:00:00Z', device: 'a', v: 9 }], { waitSeconds: 30 });
  const json = (body: object) => ({ headers: JSON_TYPE, body: JSON.stringify(body) });
  await ask(
    service.send,
    'POST',
    `${table.path}/delete`,
    json({ filter: { partitions: [{ time_day: '2026-01-02' }] } }),
  );
  expect((await latest()).body).toMatchObject({ source: 'scan' });
  expect(await found()).toEqual(['null 4', 'a 1', 'b 5', 'c 7']);
  expect((await table.describe()).status.last_value_index).toMatchObject({ state: 'none', reason: 'rows-removed' });
  const made = await ask(service.send, 'POST', `${table.path}/maintain`, json({ index: true }));
  expect(made.body).toMatchObject({ changed: true, steps: { index: { report: { state: 'made', series: 4 } } } });
  expect((await latest()).body).toMatchObject({ source: 'index' });
  expect((await table.describe()).status.last_value_index).toMatchObject({ state: 'kept' });
  await assertValidTable(service.bucket, `${WAREHOUSE}/latest/t`, { bucketName: BUCKET_NAME });
});

test('latest: lists, structs and maps, committed and waiting, and looked through without an index', async () => {
  const table = service.table('latest', 'nested');
  const fields = [
    { name: 'time', type: 'timestamptz', required: true },
    { name: 'device', type: 'string' },
    { name: 'tags', type: { type: 'list', element: 'string', 'element-required': false } },
    {
      name: 'at',
      type: {
        type: 'struct',
        fields: [
          { name: 'n', type: 'long' },
          { name: 'price', type: 'decimal(20,2)' },
        ],
      },
    },
    { name: 'by', type: { type: 'map', key: 'string', value: 'double', 'value-required': false } },
  ];
  const { properties } = readings();
  const definition = { schema: { type: 'struct', fields }, time_column: 'time', series_key: ['device'], properties };
  const headers = { ...JSON_TYPE };
  const made = await ask(service.send, 'PUT', table.path, { headers, body: JSON.stringify(definition) });
  expect(made.status, made.text).toBe(201);
  const a = { tags: ['x', null, ''], at: { n: '9007199254740993', price: '12.50' }, by: { p: 0.5, q: null } };
  const none = { tags: null, at: null, by: null };
  const b = { tags: [], at: { n: null, price: null }, by: {} };
  const row = (device: string, minute: number, rest: object) => ({ time: at(minute), device, ...rest });
  const found = async (query = '') => {
    const { status, body, text } = await ask<Latest>(service.send, 'GET', `${table.path}/latest${query}`);
    expect(status, text).toBe(200);
    const rows = body.rows.map(({ time: _, device, ...rest }) => {
      const { _ingest_ts, ...values } = rest as Record<string, unknown>;
      return [device, values];
    });
    return { source: body.source, rows: Object.fromEntries(rows) };
  };
  await table.post([row('a', 1, none), row('b', 1, a), row('c', 1, none)], { waitSeconds: 30 });
  await table.post([row('a', 2, a), row('b', 2, b)], { waitSeconds: 30 });
  const rows = { a, b, c: none };
  expect(await found()).toEqual({ source: 'index', rows });
  expect(await found('?device=a')).toEqual({ source: 'index', rows: { a } });
  await table.post([row('c', 3, b)]);
  expect(await found('?buffered=true')).toEqual({ source: 'index', rows: { ...rows, c: b } });
  const response = await service.send(`${table.path}/latest?device=a`, {
    headers: { accept: 'application/vnd.apache.arrow.stream' },
  });
  const [arrow] = tableFromIPC(new Uint8Array(await response.arrayBuffer())).toArray();
  expect(JSON.parse(JSON.stringify(arrow.tags))).toEqual(a.tags);
  expect(arrow.at.n).toBe(9_007_199_254_740_993n);
  const body = JSON.stringify({ compact: true });
  const maintained = await ask(service.send, 'POST', `${table.path}/maintain`, { headers, body });
  expect(maintained.body, maintained.text).toMatchObject({ steps: { compact: { report: { changed: true } } } });
  expect(await found('?buffered=true')).toEqual({ source: 'index', rows: { ...rows, c: b } });
  await assertValidTable(service.bucket, `${WAREHOUSE}/latest/nested`, { bucketName: BUCKET_NAME });

  await table.post([{ ...row('d', 0, a), time: '2026-01-02T00:00:00Z' }], { waitSeconds: 30 });
  await ask(service.send, 'POST', `${table.path}/delete`, {
    headers,
    body: JSON.stringify({ filter: { partitions: [{ time_day: '2026-01-02' }] } }),
  });
  expect(await found()).toEqual({ source: 'scan', rows: { ...rows, c: b } });
});

test('latest: a table without a time column has none', async () => {
  const table = service.table('latest', 'plain');
  await table.create({ schema: { type: 'struct', fields: [{ name: 'v', type: 'long' }] } });
  expectProblem(await ask(service.send, 'GET', `${table.path}/latest`), 400, 'no-time-column');
  expectProblem(await ask(service.send, 'GET', `${table.path}/latest?buffered=true`), 400, 'no-time-column');
  expectProblem(await ask(service.send, 'GET', '/v1/tables/latest/none/latest'), 404, 'unknown-table');
});
