import { beforeAll, describe, expect, test } from 'vitest';
import type { FileListView } from '../../src/object/files-list-view.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { type Answered, ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/** The administrators' requests, each on the production bundle; the table is valid after every one. */
const PATH = '/v1/tables/admin/t';
const PREFIX = `${WAREHOUSE}/admin/t`;

const service = sharedService();
const ids: string[] = [];

type StatusBody = {
  status: { doomed: { keys: number; due_ms: number }; expiry: { due_ms: number | null; failures: number } };
};
type Report = { changed: boolean; version: number } & Record<string, unknown>;

async function call<T = Report>(method: string, path: string, body?: unknown): Promise<Answered<T>> {
  const answered = await ask<T>(service.send, method, PATH + path, {
    headers: JSON_TYPE,
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const wrote = answered.status < 300 && (answered.body as Partial<Report>).changed === true;
  if (wrote) await assertValidTable(service.bucket, PREFIX, { bucketName: BUCKET_NAME });
  return answered;
}

async function append(day: number, v: number): Promise<void> {
  const row = { time: `2026-01-0${day}T00:00:0${v}Z`, device: 'a', v };
  const answered = await ask<{ snapshot_id: string }>(service.send, 'POST', `${PATH}/rows`, {
    headers: { ...NDJSON, prefer: 'wait=50' },
    body: JSON.stringify(row),
  });
  expect(answered.status).toBe(201);
  ids.push(answered.body.snapshot_id);
}

async function values(): Promise<unknown[]> {
  const found = await rows(service.bucket, PREFIX);
  return found.map((row) => Number(row['v'])).sort();
}

beforeAll(async () => {
  const created = await ask(service.send, 'PUT', PATH, {
    headers: JSON_TYPE,
    body: JSON.stringify({
      schema: {
        type: 'struct',
        fields: [
          { name: 'time', type: 'timestamptz', required: true },
          { name: 'device', type: 'string' },
          { name: 'v', type: 'int' },
        ],
      },
      time_column: 'time',
      series_key: ['device'],
    }),
  });
  expect(created.status).toBe(201);
  for (let v = 1; v <= 3; v++) await append(v, v);
});

describe('properties and schema', () => {
  test('properties: read, changed, refused', async () => {
    const before = await call<{ properties: Record<string, string> }>('GET', '/properties');
    expect(before.body.properties['timelake.time-column']).toBe('time');
    const set = await call('PATCH', '/properties', { set: { 'sluice.flush-interval': '2s', owner: 'ops' } });
    expect(set).toMatchObject({ status: 200, body: { changed: true, properties: { owner: 'ops' } } });
    const again = await call('PATCH', '/properties', { set: { owner: 'ops' }, remove: ['nothing'] });
    expect(again.body).toMatchObject({ changed: false, version: set.body.version });
    expectProblem(await call('PATCH', '/properties', { set: { 'sluice.changes': 'x' } }), 400, 'bad-property');
    expectProblem(await call('PATCH', '/properties', { set: { owner: 1 } }), 400, 'malformed');
    expectProblem(await call('PATCH', '/properties', { unknown: {} }), 400, 'malformed');
    expect((await call('POST', '/upgrade')).body.changed).toBe(false);
    expectProblem(await call('POST', '/upgrade', { to: 9 }), 400, 'malformed');
  });

  test('schema: a column is added, rows of both schemas are read; what breaks an engine is told', async () => {
    const added = await call('POST', '/schema', { changes: [{ add: 'note', type: 'string' }], expect_schema_id: 0 });
    expect(added.body).toMatchObject({ changed: true, warnings: [], schema: { 'schema-id': 1 } });
    const widened = await call('POST', '/schema', { changes: [{ promote: 'v', type: 'long' }] });
    expect((widened.body['warnings'] as string[])[0]).toContain('v: ');
    const stale = await call('POST', '/schema', { changes: [{ drop: 'note' }], expect_schema_id: 0 });
    expectProblem(stale, 409, 'requirement-failed');
    expectProblem(await call('POST', '/schema', { changes: [{ drop: 'time' }] }), 422, 'column-in-use');
    expectProblem(await call('POST', '/schema', { changes: [{ add: 'x' }] }), 400, 'malformed');
    expectProblem(await call('POST', '/schema', { changes: [] }), 400, 'malformed');
    await append(4, 4);
    expect(await values()).toEqual([1, 2, 3, 4]);
  });
});

describe('snapshots and refs', () => {
  test('snapshots: newest first, a page at a time, ids as text', async () => {
    const all = await call<{
      snapshots: { snapshot_id: string; summary: Record<string, string>; refs: string[] }[];
      next_before: string | null;
    }>('GET', '/snapshots');
    // Both changes of columns made one beside the appends', for the last-value index.
    expect(all.body.snapshots.filter(({ summary }) => summary['operation'] === 'replace')).toHaveLength(2);
    const appends = all.body.snapshots.filter(({ summary }) => summary['operation'] === 'append');
    expect(appends.map(({ snapshot_id }) => snapshot_id)).toEqual([...ids].reverse());
    expect(all.body.snapshots[0].refs).toEqual(['main']);
    const first = await call<{ snapshots: unknown[]; next_before: string }>('GET', '/snapshots?limit=3');
    expect(first.body.snapshots).toHaveLength(3);
    const rest = await call<typeof all.body>('GET', `/snapshots?limit=3&before=${first.body.next_before}`);
    expect(rest.body.snapshots).toEqual(all.body.snapshots.slice(3));
    expect(rest.body.next_before).toBeNull();
    expectProblem(await call('GET', '/snapshots?limit=0'), 400, 'malformed');
    expectProblem(await call('GET', '/snapshots?before=x'), 400, 'malformed');
  });

  test('files: counted by partition, a page at a time, labelled as filters take them', async () => {
    const { body } = await call<FileListView>('GET', '/files');
    const summed = (of: (counts: FileListView['partitions'][number]) => number) =>
      body.partitions.reduce((sum, counts) => sum + of(counts), 0);
    expect(summed(({ files }) => files)).toBe(body.files);
    expect(summed(({ rows }) => Number(rows))).toBe(Number(body.rows));
    expect(body.rows).toBe(String((await values()).length));
    expect(body).toMatchObject({ small_files: body.files, delete_files: 0, next_offset: null });
    expect(body.tiers).toEqual([{ below_bytes: 262_144, files: body.files }]);
    const paged: string[] = [];
    for (let offset: number | null = 0; offset !== null; ) {
      const page: Answered<FileListView> = await call('GET', `/files?limit=1&offset=${offset}`);
      paged.push(...page.body.partitions.map(({ partition }) => String(partition['time_day'])));
      offset = page.body.next_offset;
    }
    expect(paged).toEqual(body.partitions.map(({ partition }) => partition['time_day']));
    expect(paged).toEqual([...paged].sort());
    expectProblem(await call('GET', '/files?limit=0'), 400, 'malformed');
  });

  test('refs: made, listed, moved, moved forward, removed', async () => {
    const tag = await call('PUT', '/refs/v1', { type: 'tag', snapshot_id: ids[0], expect_snapshot_id: null });
    expect(tag).toMatchObject({ status: 201, body: { ref: { name: 'v1', type: 'tag', snapshot_id: ids[0] } } });
    const again = await call('PUT', '/refs/v1', { type: 'tag', snapshot_id: ids[0], expect_snapshot_id: null });
    expect(again).toMatchObject({ status: 200, body: { changed: false } });
    expectProblem(
      await call('PUT', '/refs/v1', { snapshot_id: ids[1], expect_snapshot_id: null }),
      409,
      'requirement-failed',
    );
    await call('PUT', '/refs/v1', { snapshot_id: ids[1], max_ref_age_ms: 86_400_000 });
    await call('PUT', '/refs/dev', { type: 'branch', snapshot_id: ids[1] });
    const listed = await call<{ refs: { name: string }[] }>('GET', '/refs');
    expect(listed.body.refs.map(({ name }) => name)).toEqual(['dev', 'main', 'v1']);
    expect((await call('GET', '/refs/v1')).body).toMatchObject({ snapshot_id: ids[1], max_ref_age_ms: 86_400_000 });
    const forward = await call('POST', '/refs/dev/fast-forward', { to: 'main' });
    expect(forward.body).toMatchObject({ changed: true, ref: { snapshot_id: ids.at(-1) } });
    expectProblem(await call('POST', '/refs/dev/fast-forward', { to: 'v1' }), 409, 'not-fast-forward');
    expectProblem(await call('POST', '/refs/nope/fast-forward', { to: 'v1' }), 404, 'unknown-ref');
    expectProblem(await call('GET', '/refs/nope'), 404, 'unknown-ref');
    expectProblem(await call('PUT', '/refs/x', { type: 'tag', snapshot_id: 17 }), 400, 'malformed');
    expectProblem(await call('PUT', '/refs/x', { type: 'tag', snapshot_id: '9'.repeat(19) }), 400, 'malformed');
    expectProblem(await call('PUT', '/refs/x', { type: 'tag', snapshot_id: '17' }), 409, 'unknown-snapshot');
    expectProblem(await call('DELETE', '/refs/main'), 422, 'main-fixed');
    expectProblem(await call('DELETE', `/refs/v1?expect_snapshot_id=${ids[0]}`), 409, 'requirement-failed');
    expect((await call('DELETE', `/refs/v1?expect_snapshot_id=${ids[1]}`)).body.changed).toBe(true);
    expectProblem(await call('DELETE', '/refs/v1'), 404, 'unknown-ref');
    await call('DELETE', '/refs/dev');
  });

  test('rollback: main goes back and forward again', async () => {
    const newest = ids.at(-1) ?? '';
    const back = await call('POST', '/rollback', { snapshot_id: ids[1], expect_snapshot_id: newest });
    expect(back.body).toMatchObject({ changed: true, snapshot: { snapshot_id: ids[1] } });
    expect(await values()).toEqual([1, 2]);
    await call('POST', '/rollback', { snapshot_id: newest });
    expect(await values()).toEqual([1, 2, 3, 4]);
    expectProblem(await call('POST', '/rollback', { snapshot_id: '17' }), 409, 'unknown-snapshot');
    expectProblem(await call('POST', '/rollback', {}), 400, 'malformed');
  });
});

describe('files', () => {
  test('delete, overwrite, rewrite-manifests: whole files, with a report', async () => {
    const gone = await call('POST', '/delete', { filter: { partitions: [{ time_day: '2026-01-01' }] } });
    expect(gone.body).toMatchObject({ changed: true, operation: 'delete', removed: { files: 1, rows: '1' } });
    const nothing = await call('POST', '/delete', { filter: { partitions: [{ time_day: '2026-01-01' }] } });
    expect(nothing.body).toMatchObject({ changed: false, version: gone.body.version, snapshot_id: null });
    const filter = encodeURIComponent(JSON.stringify({ partitions: [{ time_day: '2026-01-02' }] }));
    const over = await ask<Report>(service.send, 'POST', `${PATH}/overwrite?filter=${filter}`, {
      headers: NDJSON,
      body: '{"time":"2026-01-02T10:00:00Z","device":"b","v":9}',
    });
    expect(over.body).toMatchObject({ changed: true, operation: 'overwrite', removed: { rows: '1' }, rows: 1 });
    expect(await values()).toEqual([3, 4, 9]);
    const outside = await ask<Report>(service.send, 'POST', `${PATH}/overwrite?filter=${filter}`, {
      headers: NDJSON,
      body: '{"time":"2026-01-07T10:00:00Z","device":"b","v":9}',
    });
    expectProblem(outside, 422, 'outside-filter');
    const merged = await call('POST', '/rewrite-manifests');
    expect(merged.body).toMatchObject({ changed: true, manifests: { created: 1 } });
    expect(await values()).toEqual([3, 4, 9]);
    expectProblem(await call('POST', '/delete', { filter: {} }), 400, 'malformed');
    expectProblem(await call('POST', '/delete', {}), 400, 'malformed');
    expectProblem(await call('POST', '/overwrite'), 400, 'malformed');
  });

  test('expire: what would go, then it goes; files wait', async () => {
    await call('PATCH', '/properties', { set: { 'timelake.min-snapshots': '2', 'timelake.max-snapshots': '2' } });
    const dry = await call('POST', '/expire', { dry_run: true });
    expect(dry.body).toMatchObject({ changed: false, dry_run: true, retained_snapshots: 2 });
    expect((dry.body['snapshots'] as string[]).length).toBeGreaterThan(2);
    const expiry = async () => (await ask<StatusBody>(service.send, 'GET', PATH)).body.status.expiry;
    expect(await expiry()).toMatchObject({ due_ms: expect.any(Number), failures: 0, last_error: null });
    const done = await call('POST', '/expire');
    expect(await expiry()).toMatchObject({ due_ms: null });
    expect(done.body).toMatchObject({ changed: true, snapshots: dry.body['snapshots'], files: dry.body['files'] });
    expect(await values()).toEqual([3, 4, 9]);
    const status = await ask<StatusBody>(service.send, 'GET', PATH);
    expect(status.body.status.doomed).toEqual({ keys: done.body['files'], due_ms: done.body['erase_ms'] });
    expect((await call('POST', '/expire', {})).body).toMatchObject({ changed: false, snapshots: [] });
  });
});

test('methods: a known address with another method says which it takes', async () => {
  for (const path of ['/properties', '/schema', '/refs', '/refs/x', '/rollback', '/expire', '/delete', '/snapshots']) {
    const response = await service.send(PATH + path, { method: 'OPTIONS' });
    expect(response.status, path).toBe(405);
    expect(response.headers.get('allow')).not.toBeNull();
    await response.body?.cancel();
  }
});

test('tables: none of it is for a table that is not there', async () => {
  for (const [method, path, body] of [
    ['GET', '/properties', undefined],
    ['PATCH', '/properties', { set: { a: 'b' } }],
    ['POST', '/expire', {}],
    ['POST', '/delete', { filter: { all: true } }],
    ['GET', '/snapshots', undefined],
  ] as const) {
    const answered = await ask<Report>(service.send, method, `/v1/tables/admin/nowhere${path}`, {
      headers: JSON_TYPE,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    expectProblem(answered, 404, 'unknown-table');
  }
});

describe('branches', () => {
  test('rows for a branch: buffered, committed with a receipt, seen there and not on main', async () => {
    const made = await call('PUT', '/refs/staging', { type: 'branch' });
    expect(made.status).toBe(201);
    const before = await values();
    const row = { time: '2026-01-05T00:00:00Z', device: 'b', v: 50 };
    const send = (query: string, headers = {}) =>
      ask<Report>(service.send, 'POST', `${PATH}/rows${query}`, {
        headers: { ...NDJSON, ...headers },
        body: JSON.stringify(row),
      });
    const key = { 'idempotency-key': 'for-staging' };
    const sent = await send('?branch=staging', { ...key, prefer: 'wait=50' });
    expect(sent).toMatchObject({ status: 201, body: { state: 'committed', branch: 'staging' } });
    const receipt = await call('GET', `/receipts/${sent.body['receipt']}`);
    expect(receipt.body).toMatchObject({ state: 'committed', snapshot_id: sent.body['snapshot_id'] });
    const ref = await call<{ snapshot_id: string }>('GET', '/refs/staging');
    expect(ref.body.snapshot_id).toBe(sent.body['snapshot_id']);
    const found = await rows(service.bucket, PREFIX, { snapshotId: BigInt(ref.body.snapshot_id) });
    expect(found.map((one) => Number(one['v'])).sort((a, b) => a - b)).toEqual([...(before as number[]), 50]);
    expect(await values()).toEqual(before);
    await assertValidTable(service.bucket, PREFIX, { bucketName: BUCKET_NAME });

    expect((await send('?branch=staging', key)).status).toBe(200);
    expectProblem(await send('', key), 422, 'idempotency-conflict');
    expectProblem(await send('?branch=nowhere'), 404, 'unknown-ref');
    expectProblem(await send('?branch=staging&app=a&epoch=1'), 400, 'malformed');
    await call('PUT', '/refs/mark', { type: 'tag' });
    expectProblem(await send('?branch=mark'), 400, 'bad-ref');
    await call('DELETE', '/refs/mark');
    await call('DELETE', '/refs/staging');
    expectProblem(await send('?branch=staging'), 404, 'unknown-ref');
  });
});

describe('partition spec', () => {
  test('a table without a time column: new rows are written by it, old ones stay; a time series is refused', async () => {
    const path = '/v1/tables/admin/plain';
    const json = (method: string, at: string, body: unknown) =>
      ask<Report>(service.send, method, path + at, { headers: JSON_TYPE, body: JSON.stringify(body) });
    const schema = {
      type: 'struct',
      fields: [
        { name: 'device', type: 'string' },
        { name: 'v', type: 'long' },
      ],
    };
    expect((await json('PUT', '', { schema })).status).toBe(201);
    const send = (v: number) =>
      ask<Report>(service.send, 'POST', `${path}/rows`, {
        headers: { ...NDJSON, prefer: 'wait=50' },
        body: JSON.stringify({ device: 'a', v }),
      });
    expect((await send(1)).status).toBe(201);
    const changes = [{ add: 'device' }, { add: 'v', transform: 'truncate[10]' }];
    const changed = await json('POST', '/partition-spec', { changes, expect_spec_id: 0 });
    expect(changed.body).toMatchObject({
      changed: true,
      partition_spec: {
        'spec-id': 1,
        fields: [
          { name: 'device', transform: 'identity' },
          { name: 'v_trunc_10', transform: 'truncate[10]' },
        ],
      },
    });
    expect((changed.body['warnings'] as string[])[0]).toContain('Timelake');
    expect((await send(12)).status).toBe(201);
    const prefix = `${WAREHOUSE}/admin/plain`;
    expect((await rows(service.bucket, prefix)).map((row) => Number(row['v'])).sort()).toEqual([1, 12]);
    await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
    expectProblem(await json('POST', '/partition-spec', { changes }), 400, 'bad-spec');
    const stale = await json('POST', '/partition-spec', { changes: [{ remove: 'device' }], expect_spec_id: 0 });
    expectProblem(stale, 409, 'requirement-failed');
    expectProblem(
      await json('POST', '/partition-spec', { changes: [{ add: 'nothing' }] }),
      400,
      'unknown-partition-field',
    );
    expectProblem(await json('POST', '/partition-spec', {}), 400, 'malformed');
    expectProblem(await call('POST', '/partition-spec', { changes: [{ add: 'device' }] }), 422, 'spec-fixed');
  });
});
