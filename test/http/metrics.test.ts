import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import type { Grant } from '../../src/core/access/grant.ts';
import { METRICS_TABLES_MAX } from '../../src/core/base/limits.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import { lakeMetricsText, metricsText } from '../../src/http/metrics-text.ts';
import { Counts } from '../../src/object/counts.ts';
import { type MetricsView, metricsView } from '../../src/object/metrics-view.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { parseMetrics, sampleOf } from './prometheus.ts';

const STORE = { classA: 0, classB: 0, free: 0, bytesWritten: 0, bytesRead: 0, operations: {} };

function viewOf(over: Partial<MetricsView> = {}): MetricsView {
  return {
    ...new Counts().view(),
    buffer: { batches: 0, rows: 0, bytes: 0, ageMs: 0 },
    lastSequence: 3,
    intentFailures: null,
    lastCommitMs: null,
    version: null,
    hintedVersion: 0,
    snapshots: null,
    doomed: { keys: 0, dueMs: null },
    upkeep: [],
    sweptMs: null,
    faults: [],
    parkedApps: 0,
    startedMs: 1_000,
    marks: {},
    store: STORE,
    ...over,
  };
}

const parsed = (view: MetricsView) => parseMetrics(metricsText([{ namespace: 'n', table: 't', view }]));

describe('metrics: text', () => {
  it('a quiet table has gauges of zero, and nothing for what is not known', () => {
    const samples = parsed(viewOf());
    expect(sampleOf(samples, 'sluice_commit_lag_seconds')).toBe(0);
    expect(sampleOf(samples, 'sluice_buffer_rows', { namespace: 'n', table: 't' })).toBe(0);
    expect(sampleOf(samples, 'sluice_accepted_batches_total')).toBe(3);
    const unknown = [
      'last_commit_timestamp_seconds',
      'table_version',
      'intent_failures',
      'swept_timestamp_seconds',
      'faults',
    ];
    for (const name of unknown.map((name) => `sluice_${name}`)) {
      expect(sampleOf(samples, name), name).toBeNull();
    }
  });

  it('a busy one tells its buffer, its outcomes and its backlog', () => {
    const counts = new Counts();
    counts.commit('append', 'committed', 1500);
    counts.commit('append', 'committed', 500);
    counts.commit('append', 'unknown', null);
    counts.commit('update', 'refused', null);
    counts.refused('busy');
    counts.refused('invalid-rows', 4);
    counts.refused('busy');
    const usage = { requests: 9, failed: 2, bytesWritten: 70, bytesRead: 0 };
    const samples = parsed(
      viewOf({
        ...counts.view(),
        buffer: { batches: 2, rows: 30, bytes: 400, ageMs: 2500 },
        intentFailures: 3,
        lastCommitMs: 1_900_000_000_500,
        version: 8,
        hintedVersion: 7,
        snapshots: 5,
        doomed: { keys: 11, dueMs: 1_900_000_001_000 },
        upkeep: [
          { step: 'retention', dueMs: 1_900_000_003_000, failures: 0 },
          { step: 'expire', dueMs: 1_900_000_002_000, failures: 6 },
          { step: 'sweep', dueMs: null, failures: 1 },
        ],
        sweptMs: 1_900_000_000_000,
        faults: [
          { kind: 'missing-data-file', count: 2 },
          { kind: 'foreign-delete-files', count: 1 },
        ],
        parkedApps: 1,
        marks: { 'lost-race': 2 },
        store: { ...STORE, bytesWritten: 70, operations: { putIfAbsent: usage } },
      }),
    );
    const value = (name: string, labels = {}) => sampleOf(samples, `sluice_${name}`, labels);
    expect(value('commit_lag_seconds')).toBe(2.5);
    expect([value('buffer_batches'), value('buffer_rows'), value('buffer_bytes')]).toEqual([2, 30, 400]);
    expect(value('last_commit_timestamp_seconds')).toBe(1_900_000_000.5);
    expect([value('intent_failures'), value('table_version'), value('pointer_version')]).toEqual([3, 8, 7]);
    const due = (step: string) => value('upkeep_due_timestamp_seconds', { step });
    expect([due('retention'), due('expire'), due('sweep')]).toEqual([1_900_000_003, 1_900_000_002, null]);
    const failures = (step: string) => value('upkeep_failures', { step });
    expect([failures('retention'), failures('expire'), failures('sweep')]).toEqual([0, 6, 1]);
    expect(value('swept_timestamp_seconds')).toBe(1_900_000_000);
    const faulty = (kind: string) => value('faults', { kind });
    expect([faulty('missing-data-file'), faulty('foreign-delete-files'), faulty('corrupt-manifest')]).toEqual([
      2,
      1,
      null,
    ]);
    expect([value('table_snapshots'), value('erase_backlog_keys'), value('parked_apps')]).toEqual([5, 11, 1]);
    expect(value('incarnation_commits_total', { operation: 'append', outcome: 'committed' })).toBe(2);
    expect(value('incarnation_commits_total', { operation: 'append', outcome: 'unknown' })).toBe(1);
    expect(value('incarnation_commits_total', { operation: 'update', outcome: 'refused' })).toBe(1);
    expect(value('incarnation_refusals_total', { type: 'busy' })).toBe(2);
    expect(value('incarnation_refusals_total', { type: 'invalid-rows' })).toBe(4);
    expect(value('incarnation_commit_lag_seconds_total')).toBe(2);
    expect(value('incarnation_commit_lag_commits_total')).toBe(2);
    expect(value('incarnation_store_requests_total', { operation: 'putIfAbsent' })).toBe(9);
    expect(value('incarnation_store_failures_total', { operation: 'putIfAbsent' })).toBe(2);
    expect(value('incarnation_store_written_bytes_total')).toBe(70);
    expect(value('incarnation_marks_total', { mark: 'lost-race' })).toBe(2);
  });

  it('values of labels are escaped', () => {
    const samples = parsed(viewOf({ refusals: [{ type: 'a"b\\c\nd', count: 1 }] }));
    expect(sampleOf(samples, 'sluice_incarnation_refusals_total', { type: 'a"b\\c\nd' })).toBe(1);
  });

  it('an object that knows no table has none; a counter of what it took lasts longer than its incarnation', () => {
    const buffer = { frames: 0, rows: 0, bytes: 0, oldestMs: null };
    const state = { table: null, lastSequence: 0, buffer, intent: null, lastCommit: null, hintedVersion: 0 };
    const parts = {
      nowMs: 10,
      snapshots: null,
      upkeep: [],
      faults: [],
      parkedApps: 0,
      startedMs: 1,
      marks: {},
      store: STORE,
    };
    const viewed = (over: object) =>
      metricsView({ ...parts, counts: new Counts().view(), state: { ...state, ...over } as never });
    expect(viewed({})).toBeNull();
    expect(viewed({ table: { uuid: 'u', version: 4 } })).toMatchObject({ version: 4, lastSequence: 0 });
    const known = ['a', 'b'].map((what) => ({ kind: 'missing-manifest' as const, what, sinceMs: 1 }));
    const faulted = { ...parts, faults: known, counts: new Counts().view() };
    expect(metricsView({ ...faulted, state: { ...state, lastSequence: 1 } as never })?.faults).toEqual([
      { kind: 'missing-manifest', count: 2 },
    ]);
    expect(viewed({ lastSequence: 2, buffer: { ...buffer, frames: 1, oldestMs: 4 } })).toMatchObject({
      buffer: { batches: 1, ageMs: 6 },
      version: null,
    });
  });
});

/** A lake of the given tables; those without a view do not answer, null knows no table. */
function appOf(tables: Record<string, MetricsView | null | undefined>, grant: Partial<Grant> = {}) {
  const asked: string[] = [];
  const names = Object.keys(tables).map((name) => ({ namespace: name.split('/')[0], table: name.split('/')[1] }));
  const ports: AppPorts = {
    tokens: [tokenFor('right', { scopes: ['read'], ...grant })],
    object(namespace, table) {
      asked.push(`${namespace}/${table}`);
      const view = tables[`${namespace}/${table}`];
      const missing = { kind: 'invalid', type: 'unknown-table', message: 'table does not exist', detail: {} };
      return {
        metrics: async () => {
          if (view === undefined) throw new Error('down');
          return view;
        },
        ingest: async () => ({ ok: false, problem: missing }),
        refused: async () => undefined,
      } as unknown as TableCalls;
    },
    tables: () => Promise.reject(new Error('not asked')),
    latest: () => Promise.reject(new Error('not asked')),
    rows: () => Promise.reject(new Error('not asked')),
    names: async (after, most, visible) =>
      names
        .filter(({ namespace, table }) => visible.table(namespace, table) && `${namespace}/${table}` > (after ?? ''))
        .slice(0, most),
    queue: () => {
      throw new Error('not asked');
    },
    now: () => 0,
    sleep: async () => undefined,
  };
  const get = async (path: string) => {
    const response = await createApp(() => ports).request(path, { headers: { authorization: 'Bearer right' } });
    return { status: response.status, headers: response.headers, text: await response.text() };
  };
  return { get, asked };
}

describe('metrics: endpoints', () => {
  it('of a table, also while its object alone knows of it', async () => {
    const { get } = appOf({ 'n/t': viewOf(), 'n/none': null });
    const { status, headers, text } = await get('/v1/tables/n/t/metrics');
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; version=0.0.4; charset=utf-8']);
    expect(parseMetrics(text).every(({ labels }) => labels['namespace'] === 'n' && labels['table'] === 't')).toBe(true);
    expect((await get('/v1/tables/n/none/metrics')).status).toBe(404);
  });

  it('of the lake: tables that may be read, a page at a time', async () => {
    const { get, asked } = appOf(
      { 'a/x': viewOf(), 'b/down': undefined, 'b/none': null, 'b/y': viewOf(), 'c/z': viewOf() },
      { tables: ['a/*', 'b/*'] },
    );
    const { headers, text } = await get('/v1/metrics?limit=3');
    const samples = parseMetrics(text);
    const tables = samples.filter(({ name }) => name === 'sluice_buffer_rows').map(({ labels }) => labels['table']);
    expect(tables).toEqual(['x']);
    expect(sampleOf(samples, 'sluice_lake_tables')).toBe(1);
    expect(sampleOf(samples, 'sluice_lake_unanswered_tables')).toBe(1);
    expect(sampleOf(samples, 'sluice_lake_more')).toBe(1);
    expect(headers.get('link')).toBe('<?after=b/none&limit=3>; rel="next"');
    const next = await get('/v1/metrics?after=b/none&limit=3');
    expect(sampleOf(parseMetrics(next.text), 'sluice_buffer_rows')).toBe(0);
    expect(sampleOf(parseMetrics(next.text), 'sluice_lake_more')).toBe(0);
    expect(next.headers.get('link')).toBeNull();
    expect(asked).not.toContain('c/z');
    for (const query of ['limit=0', 'limit=x', 'after=a', 'after=a/', 'after=/b', 'after=a/b/c']) {
      expect((await get(`/v1/metrics?${query}`)).status, query).toBe(400);
    }
    // A page may end at a folder that can be no table.
    expect((await get('/v1/metrics?after=b/no.table')).status).toBe(200);
  });

  it('of a large lake: no page is larger than its bound', async () => {
    const many = Array.from({ length: METRICS_TABLES_MAX + 5 }, (_, at) => [
      `n/t${String(at).padStart(5, '0')}`,
      viewOf(),
    ]);
    const { get, asked } = appOf(Object.fromEntries(many) as Record<string, MetricsView>, { tables: ['*'] });
    const { text } = await get('/v1/metrics?limit=900000');
    expect(sampleOf(parseMetrics(text), 'sluice_lake_tables')).toBe(METRICS_TABLES_MAX);
    expect(asked).toHaveLength(METRICS_TABLES_MAX);
  });
});

describe('metrics: the guide', () => {
  const root = join(import.meta.dirname, '../..');
  const guide = readFileSync(join(root, 'docs/deploying.md'), 'utf8');

  it('names no metric that is not there', () => {
    const counts = { outcomes: [{ operation: 'o', outcome: 'o', count: 1 }], refusals: [{ type: 't', count: 1 }] };
    const known = { intentFailures: 1, lastCommitMs: 1, version: 1, snapshots: 1, marks: { 'lost-race': 1 } };
    const upkept: Partial<MetricsView> = {
      upkeep: [{ step: 'expire', dueMs: 1, failures: 1 }],
      faults: [{ kind: 'missing-manifest', count: 1 }],
    };
    const tables = [
      { namespace: 'n', table: 't', view: viewOf({ ...counts, ...known, ...upkept, doomed: { keys: 1, dueMs: 1 } }) },
    ];
    const names = new Set(
      parseMetrics(lakeMetricsText({ tables, unanswered: 0, more: false })).map(({ name }) => name),
    );
    const named = [...guide.matchAll(/sluice_[a-z_]+/g)].map(([name]) => name);
    expect(named.length).toBeGreaterThan(5);
    expect(named.filter((name) => !names.has(name))).toEqual([]);
  });

  it('explains every event of the log', () => {
    const events = new Set<string>();
    for (const file of readdirSync(join(root, 'src'), { recursive: true, encoding: 'utf8' })) {
      if (!file.endsWith('.ts')) continue;
      const text = readFileSync(join(root, 'src', file), 'utf8');
      for (const [, event] of text.matchAll(/(?:\bevent: |#log\()'([a-z-]+)'/g)) events.add(event);
    }
    expect(events.size).toBeGreaterThan(8);
    expect([...events].filter((event) => !guide.includes(`\`${event}\``))).toEqual([]);
  });
});
