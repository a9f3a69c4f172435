import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseMetrics, type Sample, sampleOf } from '../http/prometheus.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { type RunningService, startService, until } from './support/service.ts';

/** What an operator sees of the production bundle: lines of its log, and metrics. */
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.stop());

type Line = Record<string, unknown> & { event: string };

/** Lines of the log so far about an event of a table. */
function linesOf(event: string, table: string): Line[] {
  return service.server.getLogs().flatMap(({ message }) => {
    if (!message.startsWith('{')) return [];
    const line = JSON.parse(message) as Line;
    const about = String(line['table'] ?? line['path']);
    return line.event === event && (about.endsWith(`/${table}`) || about.includes(`/${table}/`)) ? [line] : [];
  });
}

async function metricsOf(path: string): Promise<Sample[]> {
  const answer = await ask(service.send, 'GET', path);
  expect([answer.status, answer.headers.get('content-type')]).toEqual([
    200,
    'text/plain; version=0.0.4; charset=utf-8',
  ]);
  return parseMetrics(answer.text);
}

const FIELDS = [{ name: 'v', type: 'long', required: true }];
const definition = JSON.stringify({
  schema: { type: 'struct', fields: FIELDS },
  properties: { 'sluice.flush-interval': '1h' },
});

test('operations: commits, refusals and what waits are in log and metrics', async () => {
  const table = '/v1/tables/ops/a';
  expect((await ask(service.send, 'PUT', table, { headers: JSON_TYPE, body: definition })).status).toBe(201);
  const post = (body: string) => ask(service.send, 'POST', `${table}/rows`, { headers: NDJSON, body });

  expect((await post('{"v":1}\n{"v":2}')).status).toBe(202);
  const waiting = await metricsOf(`${table}/metrics`);
  expect(sampleOf(waiting, 'sluice_buffer_rows')).toBe(2);
  expect(sampleOf(waiting, 'sluice_buffer_bytes')).toBeGreaterThan(0);
  expect(sampleOf(waiting, 'sluice_commit_lag_seconds')).toBeGreaterThan(0);
  expect(sampleOf(waiting, 'sluice_incarnation_commits_total', { operation: 'create' })).toBe(1);

  expectProblem(await post('{"v":"x"}'), 422, 'invalid-rows');
  expectProblem(await post(''), 400, 'empty-body');
  const skip = await ask(service.send, 'POST', `${table}/apps/nobody/skip?epoch=1`);
  expect(skip.status).toBeGreaterThanOrEqual(400);
  expect((await ask(service.send, 'POST', `${table}/flush`)).status).toBe(200);

  const counted = await until('refusals are counted', async () => {
    const samples = await metricsOf(`${table}/metrics`);
    const told = ['invalid-rows', 'empty-body'].map((type) =>
      sampleOf(samples, 'sluice_incarnation_refusals_total', { type }),
    );
    return told.every((count) => count === 1) ? samples : null;
  });
  const value = (name: string, labels = {}) => sampleOf(counted, `sluice_${name}`, labels);
  expect([value('buffer_rows'), value('commit_lag_seconds'), value('accepted_batches_total')]).toEqual([0, 0, 1]);
  expect(value('incarnation_commits_total', { operation: 'append', outcome: 'committed' })).toBe(1);
  expect(value('incarnation_commit_lag_commits_total')).toBe(1);
  expect(value('incarnation_store_requests_total', { operation: 'putIfAbsent' })).toBeGreaterThan(4);
  expect(value('table_version')).toBe(2);
  expect(value('last_commit_timestamp_seconds')).toBeGreaterThan(1.7e9);
  // One that the object made: it has counted it itself, once.
  const own = counted.filter(({ name }) => name === 'sluice_incarnation_refusals_total');
  expect(own.reduce((sum, sample) => sum + sample.value, 0)).toBe(3);

  const commits = linesOf('committed', 'ops/a');
  expect(commits.map(({ operation, version }) => [operation, version])).toEqual([
    ['create', 1],
    ['append', 2],
  ]);
  expect(commits[1]).toMatchObject({ rows: '2', own: true, snapshot_id: expect.stringMatching(/^[0-9]+$/) });
  expect(commits[1]['lag_ms']).toBeGreaterThan(0);
  const refused = linesOf('refused', 'ops/a').map(({ type, status, caller }) => [type, status, caller]);
  expect(refused.slice(0, 2)).toEqual([
    ['invalid-rows', 422, 'anybody'],
    ['empty-body', 400, 'anybody'],
  ]);
  expect(refused).toHaveLength(3);
});

test('operations: rows that go with their table are told', async () => {
  const table = '/v1/tables/ops/b';
  await ask(service.send, 'PUT', table, { headers: JSON_TYPE, body: definition });
  await ask(service.send, 'POST', `${table}/rows`, { headers: NDJSON, body: '{"v":1}' });
  expect((await ask(service.send, 'DELETE', table)).status).toBe(200);
  expect(linesOf('batches-refused', 'ops/b')).toEqual([
    expect.objectContaining({ outcome: 'refused', type: 'table-dropped', batches: 1 }),
  ]);
  expectProblem(await ask(service.send, 'POST', `${table}/upgrade`), 404, 'unknown-table');
});

test('operations: the lake’s metrics have all tables, each family in one piece', async () => {
  await ask(service.send, 'PUT', '/v1/tables/ops/c', { headers: JSON_TYPE, body: definition });
  const samples = await metricsOf('/v1/metrics');
  const tables = samples.filter(({ name }) => name === 'sluice_buffer_rows').map(({ labels }) => labels['table']);
  expect(tables).toEqual(expect.arrayContaining(['a', 'c']));
  expect(sampleOf(samples, 'sluice_lake_unanswered_tables')).toBe(0);
  const page = await ask(service.send, 'GET', '/v1/metrics?limit=1');
  expect(page.headers.get('link')).toMatch(/^<\?after=ops\/a&limit=1>; rel="next"$/);
  expect(await ask(service.send, 'GET', '/v1/tables/ops/nobody/metrics')).toMatchObject({ status: 404 });
});
