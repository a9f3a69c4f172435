import { createHash } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { PROBLEM_TYPES } from '../../src/http/problem-types.ts';
import type { TableView } from '../../src/object/views.ts';
import type { Send } from './support/client.ts';
import { ask, expectProblem, JSON_TYPE } from './support/http.ts';
import { type RunningService, startService } from './support/service.ts';

/** Who may ask, at which address, by which method: routes, tokens and request ids on the production bundle. */
const TOKEN = 'right-token';

/** Holders of tokens: each is called as its token is. */
const HOLDERS = {
  owner: { scopes: ['admin'], tables: ['*'] },
  reader: { scopes: ['read'], tables: ['scoped/a', 'other/*'] },
  writer: { scopes: ['append'], tables: ['scoped/*'] },
};
const ENTRIES = Object.entries(HOLDERS).map(([name, grant]) => ({
  name,
  sha256: createHash('sha256').update(name).digest('hex'),
  ...grant,
}));

let service: RunningService;
/** A Worker that asks for a token, and one whose token was forgotten. */
let guarded: Send;
let unset: Send;
/** One whose tokens may not all do everything. */
let scoped: Send;

beforeAll(async () => {
  service = await startService(
    { name: 'sluice' },
    { name: 'guarded', vars: { ACCESS: 'token', API_TOKEN: TOKEN } },
    { name: 'unset', vars: { ACCESS: 'token' } },
    {
      name: 'scoped',
      vars: { ACCESS: 'token', API_TOKENS: JSON.stringify(ENTRIES), CORS_ORIGINS: 'https://app.example' },
    },
  );
  const at =
    (name: string): Send =>
    async (path, init) =>
      (await service.server.getWorker(name).fetch(path, init as never)) as unknown as Response;
  guarded = at('guarded');
  unset = at('unset');
  scoped = at('scoped');
});

afterAll(() => service?.stop());

const DEFINITION = JSON.stringify({ schema: { type: 'struct', fields: [{ name: 'v', type: 'long' }] } });

let tables = 0;

/** The address of a table made for the test. */
async function newTable(): Promise<string> {
  const address = `/v1/tables/access/t${++tables}`;
  const created = await ask(service.send, 'PUT', address, { headers: JSON_TYPE, body: DEFINITION });
  expect(created.status, created.text).toBe(201);
  return address;
}

test('health: an answer without a token and without a lake', async () => {
  for (const send of [service.send, guarded, unset]) {
    const answer = await ask(send, 'GET', '/health');
    expect({ status: answer.status, body: answer.body }).toEqual({ status: 200, body: { status: 'ok' } });
  }
});

test('routes: what is nowhere is 404', async () => {
  for (const path of [
    '/',
    '/v1',
    '/v2/tables',
    '/v1/tables/a',
    '/v1/tables/a/b/c',
    '/v1/tables/a/b/rows/1',
    '/health/x',
  ]) {
    expectProblem(await ask(service.send, 'GET', path), 404, 'not-found');
  }
});

test('routes: another method at a known address is 405 with those it takes', async () => {
  const table = await newTable();
  const cases: [method: string, path: string, allow: string][] = [
    ['POST', '', 'PUT, GET, DELETE'],
    ['PATCH', '', 'PUT, GET, DELETE'],
    ['OPTIONS', '', 'PUT, GET, DELETE'],
    ['PUT', '/rows', 'GET, POST'],
    ['OPTIONS', '/rows', 'GET, POST'],
    ['HEAD', '/flush', 'POST'],
    ['GET', '/enqueue', 'POST'],
    ['GET', '/flush', 'POST'],
    ['GET', '/attach', 'POST'],
    ['POST', '/receipts/x', 'GET'],
  ];
  for (const [method, path, allow] of cases) {
    const answer = await ask(service.send, method, table + path);
    expect({ status: answer.status, allow: answer.headers.get('allow') }, `${method} ${path}`).toEqual({
      status: 405,
      allow,
    });
    if (method !== 'HEAD') expectProblem(answer, 405, 'method-not-allowed');
  }
  for (const path of ['/v1/tables', '/health']) {
    const answer = await ask(service.send, 'POST', path, { headers: JSON_TYPE, body: '{}' });
    expectProblem(answer, 405, 'method-not-allowed');
    expect(answer.headers.get('allow')).toBe('GET');
  }
});

test('routes: HEAD is GET without a body', async () => {
  const table = await newTable();
  for (const [path, status] of [
    ['/health', 200],
    ['/v1/tables', 200],
    [table, 200],
    ['/v1/tables/access/nobody', 404],
  ] as const) {
    const answer = await ask(service.send, 'HEAD', path);
    expect({ status: answer.status, text: answer.text }, path).toEqual({ status, text: '' });
  }
});

test.concurrent('request ids: a good one comes back, any other is replaced, on errors too', async () => {
  const idOf = async (path: string, id: string | null) =>
    (await ask(service.send, 'GET', path, { headers: id === null ? {} : { 'x-request-id': id } })).headers.get(
      'x-request-id',
    );
  for (const path of ['/health', '/v1/tables', '/nowhere', '/v1/tables/access/nobody', '/v1/tables/a.b/c']) {
    expect(await idOf(path, 'my.Request-1_2'), path).toBe('my.Request-1_2');
    for (const id of [null, 'a b', 'a"b', 'x'.repeat(65)]) {
      expect(await idOf(path, id), path).toMatch(/^[0-9a-f-]{36}$/);
    }
  }
});

test('token: without the right one every address of /v1 answers the same, whatever is there', async () => {
  const table = '/v1/tables/access/guarded';
  const authorization = `Bearer ${TOKEN}`;
  const created = await ask(guarded, 'PUT', table, {
    headers: { ...JSON_TYPE, authorization },
    body: DEFINITION,
  });
  expect(created.status, created.text).toBe(201);
  const requests: [method: string, path: string][] = [
    ['GET', table],
    ['GET', '/v1/tables/access/nobody'],
    ['GET', '/v1/tables/a.b/c'],
    ['PUT', table],
    ['DELETE', table],
    ['POST', `${table}/rows`],
    ['POST', `${table}/flush`],
    ['POST', `${table}/attach`],
    ['PATCH', table],
    ['GET', '/v1/tables'],
    ['GET', '/v1/nowhere'],
  ];
  const given = [null, '', 'Bearer', 'Bearer wrong', `Bearer ${TOKEN}x`, `Basic ${TOKEN}`, TOKEN, `Bearer ${TOKEN} x`];
  const bodies = new Set<string>();
  for (const [method, path] of requests) {
    for (const [n, header] of given.entries()) {
      // All spellings at one address, one of them at the others.
      if (n > 1 && path !== table) continue;
      const headers: Record<string, string> = header === null ? {} : { authorization: header };
      const answer = await ask(guarded, method, path, { headers });
      expectProblem(answer, 401, 'unauthorized');
      expect(answer.headers.get('www-authenticate')).toBe('Bearer');
      bodies.add(answer.text);
    }
  }
  expect(bodies.size).toBe(1);
  expect([...bodies][0]).not.toContain(TOKEN);

  for (const header of [authorization, `bearer   ${TOKEN}`]) {
    const answer = await ask<TableView>(guarded, 'GET', table, { headers: { authorization: header } });
    expect({ status: answer.status, version: answer.body.version }, header).toEqual({ status: 200, version: 1 });
  }
  expectProblem(await ask(guarded, 'GET', '/v1/nowhere', { headers: { authorization } }), 404, 'not-found');
});

test('token: a service whose token was forgotten lets nobody in and says so', async () => {
  const given: Record<string, string>[] = [{}, { authorization: 'Bearer ' }, { authorization: 'Bearer undefined' }];
  for (const headers of given) {
    const problem = expectProblem(await ask(unset, 'GET', '/v1/tables', { headers }), 500, 'bad-settings');
    expect(problem.detail).toContain('API_TOKEN');
  }
});

test('tokens: each does what its scopes say, on its tables, and learns nothing of others', async () => {
  const by = (holder: keyof typeof HOLDERS, method: string, path: string, body?: string) => {
    const headers = { authorization: `Bearer ${holder}`, 'content-type': 'application/json' };
    return ask(scoped, method, path, { headers, ...(body === undefined ? {} : { body }) });
  };
  const rows = '[{"v":1}]';
  for (const table of ['scoped/a', 'scoped/b', 'scoped/c', 'other/a']) {
    expectProblem(await by('writer', 'PUT', `/v1/tables/${table}`, DEFINITION), 403, 'forbidden');
    expect((await by('owner', 'PUT', `/v1/tables/${table}`, DEFINITION)).status).toBe(201);
  }
  for (const table of ['scoped/a', 'scoped/b']) {
    expect((await by('writer', 'POST', `/v1/tables/${table}/rows`, rows)).status).toBe(202);
    expectProblem(await by('reader', 'POST', `/v1/tables/${table}/rows`, rows), 403, 'forbidden');
    expectProblem(await by('writer', 'GET', `/v1/tables/${table}`), 403, 'forbidden');
  }
  expect((await by('reader', 'GET', '/v1/tables/scoped/a')).status).toBe(200);
  const refused = ['scoped/b', 'scoped/nobody', 'scoped/a.b', 'nowhere/a'].map((table) =>
    by('reader', 'GET', `/v1/tables/${table}`),
  );
  const texts = new Set((await Promise.all(refused)).map((answer) => expectProblem(answer, 403, 'forbidden').detail));
  expect(texts.size).toBe(1);
  expectProblem(await by('writer', 'POST', '/v1/tables/other/a/rows', rows), 403, 'forbidden');

  // The listing: pages of what may be read, whose ends name nothing else.
  const listed: string[] = [];
  let after: string | null = '';
  while (after !== null) {
    const query = after === '' ? '' : `&after=${after}`;
    const page: { tables: { namespace: string; table: string }[]; next: string | null } = (
      await ask(scoped, 'GET', `/v1/tables?limit=1${query}`, { headers: { authorization: 'Bearer reader' } })
    ).body as never;
    listed.push(...page.tables.map(({ namespace, table }) => `${namespace}/${table}`));
    after = page.next;
    if (after !== null) expect(listed).toContain(after);
  }
  expect(listed).toEqual(['other/a', 'scoped/a']);
  expectProblem(await by('writer', 'GET', '/v1/tables'), 403, 'forbidden');

  // Points: the namespace's tables are the writer's, those of another are not.
  const write = (bucket: string) =>
    ask(scoped, 'POST', `/api/v2/write?bucket=${bucket}`, {
      headers: { authorization: 'Token writer' },
      body: 'c v=1i 1',
    });
  expect((await write('other')).status).toBe(403);
  expect((await write('scoped')).body).toMatchObject({ code: 'invalid' });
});

test('tokens: none is in the log', async () => {
  const output = JSON.stringify(service.server.getLogs());
  expect(output).toContain('unauthorized');
  expect(output).toContain('reader');
  for (const text of [TOKEN, 'Bearer', 'right-token']) expect(output).not.toContain(text);
});

test('cors: pages of the origin that is set may call', async () => {
  const headers = { origin: 'https://app.example', 'access-control-request-method': 'POST' };
  const answer = await ask(scoped, 'OPTIONS', '/v1/tables/scoped/a/rows', { headers });
  expect(answer.status).toBe(204);
  expect(answer.headers.get('access-control-allow-origin')).toBe('https://app.example');
  const other = await ask(scoped, 'OPTIONS', '/v1/tables/scoped/a/rows', {
    headers: { ...headers, origin: 'https://b.example' },
  });
  expectProblem(other, 401, 'unauthorized');
});

test('problems: every type that was met is a stable name of the list', async () => {
  expect(Object.keys(PROBLEM_TYPES).every((slug) => /^[a-z0-9-]+$/.test(slug))).toBe(true);
  const problem = expectProblem(await ask(service.send, 'GET', '/v1/tables/access/nobody'), 404, 'unknown-table');
  expect(problem).toEqual({
    type: 'urn:sluice:problem:unknown-table',
    title: PROBLEM_TYPES['unknown-table'].title,
    status: 404,
    detail: 'table does not exist: access.nobody',
  });
});
