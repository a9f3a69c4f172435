import { tableFromIPC } from 'apache-arrow';
import { beforeEach, describe, expect, test, vi } from 'vitest';
import { invalid, rejected, unavailable } from '../../src/core/base/errors.ts';
import type { Columns } from '../../src/core/columns/columns.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import type { LatestQuery, WaitingRows } from '../../src/read/latest.ts';
import type { RowsQuery } from '../../src/read/rows-query.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { columnsOf, schemaOf } from '../core/columns/rows.ts';

// Refusals are logged; refusals.test.ts looks at the lines.
beforeEach(() => {
  for (const method of ['log', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
  asked.length = 0;
});

const columns = columnsOf(
  schemaOf([
    ['n', 'long'],
    ['s', 'string'],
  ]),
  [
    [1n, 'a'],
    [2n ** 60n, null],
  ],
);
const facts = { version: 3, snapshot_id: '12', more: true, files_considered: 5, files_read: 2, bytes_read: 700 };
const waiting: WaitingRows = { tableUuid: 'u', rows: 4, schema: columns.schema, body: new Uint8Array() };

/** What the routes asked for, in order. */
const asked: unknown[] = [];

/** Ports whose answers are given; what is not given fails. */
function appOf(given: { rows?: () => Columns; waiting?: () => unknown; tokens?: AppPorts['tokens'] }) {
  const none = () => Promise.reject(new Error('not asked'));
  const ports: AppPorts = {
    tokens: given.tokens ?? null,
    object: () =>
      ({
        waiting: async () => {
          asked.push('waiting');
          return given.waiting?.() ?? { ok: true, value: waiting };
        },
        refused: async () => undefined,
      }) as unknown as TableCalls,
    async rows(namespace: string, table: string, query: RowsQuery) {
      asked.push([namespace, table, query]);
      return { columns: given.rows?.() ?? columns, facts };
    },
    async latest(namespace: string, table: string, query: LatestQuery, rows: WaitingRows | null) {
      asked.push([namespace, table, query, rows]);
      const { version, snapshot_id } = facts;
      return {
        columns: given.rows?.() ?? columns,
        facts: { version, snapshot_id, source: 'index', buffered_rows: rows?.rows ?? null },
      };
    },
    tables: none,
    names: none,
    queue: () => {
      throw new Error('not asked');
    },
    now: () => 0,
    sleep: async () => undefined,
  };
  return createApp(() => ports);
}

const get = (path: string, accept: string | null = null, app = appOf({})) =>
  app.request(`/v1/tables/n/t/${path}`, { headers: accept === null ? {} : { accept } });

async function expectProblem(response: Response, status: number, slug: string): Promise<Record<string, unknown>> {
  const body = (await response.json()) as Record<string, unknown>;
  expect([response.status, body['type']]).toEqual([status, `urn:sluice:problem:${slug}`]);
  expect(response.headers.get('content-type')).toBe('application/problem+json');
  return body;
}

describe('GET …/rows', () => {
  test('what is asked for, and what comes of it in each format', async () => {
    const response = await get('rows?from=1970-01-01T00:00:00.000001Z&n=1&columns=n,s&limit=2&order=desc&ref=b');
    expect(asked).toEqual([
      [
        'n',
        't',
        {
          from: 1n,
          to: null,
          filters: { columns: new Map([['n', ['1']]]) },
          columns: ['n', 's'],
          limit: 2,
          order: 'desc',
          at: { ref: 'b' },
        },
      ],
    ]);
    const rows = [
      { n: 1, s: 'a' },
      { n: String(2n ** 60n), s: null },
    ];
    expect(await response.json()).toEqual({ ...facts, rows });
    expect(Object.fromEntries(response.headers)).toMatchObject({
      'content-type': 'application/json',
      vary: 'Accept',
      'x-sluice-version': '3',
      'x-sluice-snapshot-id': '12',
      'x-sluice-more': 'true',
      'x-sluice-files-considered': '5',
      'x-sluice-files-read': '2',
      'x-sluice-bytes-read': '700',
    });
    const lines = await (await get('rows', 'application/x-ndjson')).text();
    expect(
      lines
        .split('\n')
        .filter(Boolean)
        .map((line) => JSON.parse(line)),
    ).toEqual(rows);
    const arrow = await (await get('rows', 'application/vnd.apache.arrow.stream')).arrayBuffer();
    expect(
      tableFromIPC(new Uint8Array(arrow))
        .toArray()
        .map(({ n, s }) => [n, s]),
    ).toEqual([
      [1n, 'a'],
      [2n ** 60n, null],
    ]);
  });

  test('what is wrong in the request is refused before anything is read', async () => {
    expect(await expectProblem(await get('rows?limit=0'), 400, 'malformed')).toMatchObject({ parameter: 'limit' });
    expect(await expectProblem(await get('rows?from=1&to=2'), 400, 'malformed')).toMatchObject({ parameter: 'from' });
    await expectProblem(await get('rows', 'text/html'), 406, 'not-acceptable');
    const read = [tokenFor('secret', { scopes: ['append'] })];
    await expectProblem(await get('rows', null, appOf({ tokens: read })), 401, 'unauthorized');
    const response = await appOf({ tokens: read }).request('/v1/tables/n/t/rows', {
      headers: { authorization: 'Bearer secret' },
    });
    await expectProblem(response, 403, 'forbidden');
    expect(asked).toEqual([]);
  });

  test.each([
    [invalid('unknown-table', 'm'), 404],
    [invalid('unknown-ref', 'm'), 404],
    [invalid('unknown-snapshot', 'm'), 400],
    [invalid('no-time-column', 'm'), 400],
    [rejected('too-much-to-read', 'm', { bytes: 5 }), 422],
    [rejected('too-many-manifests', 'm'), 422],
    [rejected('unsupported-file', 'm'), 422],
    [rejected('delete-files', 'm'), 422],
    [unavailable('store-unavailable', 'm'), 503],
  ])('refusals of reading: %s', async (error, status) => {
    const app = appOf({
      rows: () => {
        throw error;
      },
    });
    expect(await expectProblem(await get('rows', null, app), status, error.type)).toMatchObject(error.detail);
  });

  test('an answer is made as it is fetched: nothing any more once the client has gone', async () => {
    let made = 0;
    const value = {
      get n() {
        made++;
        return 'x'.repeat(1000);
      },
    };
    const fields = [{ id: 2, name: 'n', required: false, type: 'string' as const }];
    const schema = schemaOf([['v', { type: 'struct', fields }]]);
    const rows = 10_000;
    const many: Columns = {
      schema,
      rows,
      columns: [{ kind: 'nested', values: new Array(rows).fill(value), validity: null }],
    };
    const response = await get('rows', 'application/x-ndjson', appOf({ rows: () => many }));
    const reader = (response.body as ReadableStream<Uint8Array>).getReader();
    await reader.read();
    await reader.cancel();
    const atCancel = made;
    expect(atCancel).toBeGreaterThan(0);
    expect(atCancel).toBeLessThan(rows / 2);
    await new Promise((resolve) => setImmediate(resolve));
    expect(made).toBe(atCancel);
  });
});

describe('GET …/latest', () => {
  test('rows that wait are asked for first, and only when they are wanted', async () => {
    expect(await (await get('latest?s=a')).json()).toMatchObject({ source: 'index', buffered_rows: null });
    const response = await get('latest?s=a&buffered=true');
    expect(await response.json()).toMatchObject({ version: 3, buffered_rows: 4, rows: [{ n: 1 }, {}] });
    const filters = { columns: new Map([['s', ['a']]]) };
    expect(asked).toEqual([
      ['n', 't', { filters, buffered: false }, null],
      'waiting',
      ['n', 't', { filters, buffered: true }, waiting],
    ]);
    expect(response.headers.get('x-sluice-source')).toBe('index');
  });

  test('a problem of the object ends it; so does a table without an index that is too large to look through', async () => {
    const problem = { kind: 'invalid', type: 'unknown-table', message: 'table does not exist', detail: {} };
    const app = appOf({ waiting: () => ({ ok: false, problem }) });
    await expectProblem(await get('latest?buffered=true', null, app), 404, 'unknown-table');
    expect(asked).toEqual(['waiting']);
    const large = appOf({
      rows: () => {
        throw rejected('no-last-value-index', 'm', { index: 'rows-removed', reason: 'table-too-large' });
      },
    });
    expect(await expectProblem(await get('latest', null, large), 422, 'no-last-value-index')).toMatchObject({
      index: 'rows-removed',
      reason: 'table-too-large',
    });
    await expectProblem(await get('latest?buffered=1'), 400, 'malformed');
  });
});
