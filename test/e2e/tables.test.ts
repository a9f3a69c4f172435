import { afterAll, beforeAll, expect, test } from 'vitest';
import type { TablePage } from '../../src/lake/lake.ts';
import type { StatusView, TableView } from '../../src/object/views.ts';
import { mapBucket } from '../oracle/bucket.ts';
import { DEVIATIONS } from '../oracle/deviations.ts';
import { loadFixture } from '../oracle/fixtures/load.ts';
import { isObject, parseJson } from '../oracle/json.ts';
import { metadataKey, newestVersion, type Objects } from '../oracle/mutate.ts';
import { rows, sameRows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import type { AcceptedBody } from './support/client.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { readings } from './support/readings.ts';
import { relocate } from './support/relocate.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from './support/service.ts';

/** Many tables, many callers, tables of other writers, and the listing of them all, on the production bundle. */
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.stop());

/** Every table that the listing must show in the end, as `namespace/table`. */
const listed = new Set<string>();

const DEVICES = readings();

function place(namespace: string, table: string) {
  const path = `/v1/tables/${namespace}/${table}`;
  const prefix = `${WAREHOUSE}/${namespace}/${table}`;
  const location = `s3://${BUCKET_NAME}/${prefix}`;
  return {
    path,
    prefix,
    location,
    async create(definition: object = DEVICES): Promise<void> {
      const asked = { headers: JSON_TYPE, body: JSON.stringify(definition) };
      const { status, text } = await ask(service.send, 'PUT', path, asked);
      expect(status, text).toBe(201);
      listed.add(`${namespace}/${table}`);
    },
    describe: () => ask<TableView & { status: StatusView }>(service.send, 'GET', path),
    attach: (body?: object) =>
      ask<TableView & { attached: boolean }>(service.send, 'POST', `${path}/attach`, {
        headers: JSON_TYPE,
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
    post: (list: readonly object[], headers: Record<string, string> = {}) =>
      ask<AcceptedBody>(service.send, 'POST', `${path}/rows`, {
        headers: { ...NDJSON, ...headers },
        body: list.map((row) => JSON.stringify(row)).join('\n'),
      }),
    rows: () => rows(service.bucket, prefix, { bucketName: BUCKET_NAME }),
    /** Holds the table against the spec. `versions` false: its first versions have other names than ours. */
    valid: (ignore: readonly string[] = [], versions = true) =>
      assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, ignore, versions }),
  };
}

const sorted = (values: Iterable<bigint>): bigint[] => [...values].sort((a, b) => (a < b ? -1 : a > b ? 1 : 0));
const range = (from: number, to: number): number[] => Array.from({ length: to - from }, (_, i) => from + i);

test('rows: fifty callers at once, some in a hurry, some repeating themselves: every row is there once', async () => {
  const table = place('many', 'callers');
  await table.create();
  const each = 20;
  const post = (caller: number) => {
    const list = range(caller * each, (caller + 1) * each).map((v) => ({ time: v, device: `d${v % 7}`, v }));
    const headers: Record<string, string> = caller % 5 === 0 ? { prefer: 'wait=30' } : {};
    if (caller % 2 === 0) headers['idempotency-key'] = `caller ${caller}`;
    return table.post(list, headers);
  };
  const answers = await Promise.all([...range(0, 50), ...range(0, 50).filter((n) => n % 2 === 0)].map(post));
  for (const { status, text } of answers) expect([200, 201, 202], text).toContain(status);
  expect(answers.filter(({ body }) => body.duplicate)).toHaveLength(25);
  expect(new Set(answers.map(({ body }) => body.receipt)).size).toBe(50);

  const last = await table.post([{ time: 1000, device: 'd', v: 1000 }], { prefer: 'wait=30' });
  expect(last.status, last.text).toBe(201);
  const found = await table.rows();
  expect(sorted(found.map((row) => row['v'] as bigint))).toEqual(range(0, 1001).map(BigInt));
  await table.valid();
  // Group commit: callers share commits.
  const { body } = await table.describe();
  expect(body.status.last_sequence).toBe(51);
  expect(body.version).toBeLessThan(10);
});

test('tables: twenty at once keep to themselves', async () => {
  const names = range(0, 20);
  const tables = names.map((n) => place(`fleet-${n % 3}`, `t${n}`));
  await Promise.all(
    tables.map(async (table, n) => {
      // Every third is another kind of table.
      const plain = { schema: { type: 'struct', fields: DEVICES.schema.fields }, properties: DEVICES.properties };
      await table.create(n % 3 === 0 ? plain : DEVICES);
      const row = (v: number) => ({ time: v, device: `t${n}`, v });
      // The same batch id at every table: ids are the table's own.
      const first = await table.post([row(n), row(100 + n)], { 'idempotency-key': 'same' });
      expect(first.status, first.text).toBe(202);
      const second = await table.post([row(200 + n)], { prefer: 'wait=30' });
      expect(second.status, second.text).toBe(201);
    }),
  );
  const snapshots = new Set<string>();
  for (const [n, table] of tables.entries()) {
    const found = await table.rows();
    expect(sorted(found.map((row) => row['v'] as bigint))).toEqual([n, 100 + n, 200 + n].map(BigInt));
    expect(new Set(found.map((row) => row['device']))).toEqual(new Set([`t${n}`]));
    await table.valid();
    const { body } = await table.describe();
    expect(body.status.buffer.rows).toBe(0);
    snapshots.add(`${body.table_uuid} ${body.snapshot?.snapshot_id}`);
  }
  expect(snapshots.size).toBe(20);
});

/** Lays a fixture table of another writer into the bucket, at the place given. */
async function lay(name: 'types' | 'engine', to: ReturnType<typeof place>, edit?: (objects: Objects) => Objects) {
  const objects = loadFixture(name);
  const newest = parseJson(objects.get(metadataKey(name, newestVersion(objects, name))) ?? '');
  if (!isObject(newest)) throw new Error('metadata is an object');
  const from = { key: name, location: String(newest['location']) };
  const moved = relocate(objects, from, { key: to.prefix, location: to.location });
  for (const [key, bytes] of edit?.(moved) ?? moved) await service.rawBucket.put(key, bytes, {});
  return { version: newestVersion(objects, name), rows: await rows(mapBucket(objects), name) };
}

const decoder = new TextDecoder();
const encoder = new TextEncoder();

/** Metadata files as a catalog's writer names them: `00002-<uuid>.metadata.json`. */
function catalogNames(objects: Objects): Objects {
  const nameOf = (version: string) => `0000${Number(version) - 1}-6ad97a0c-0000-4000-8000-00000000000${version}`;
  const renamed: Objects = new Map();
  for (const [key, bytes] of objects) {
    if (key.endsWith('/version-hint.text')) continue;
    const text = key.endsWith('.metadata.json') ? decoder.decode(bytes) : null;
    const name = (spelled: string) =>
      spelled.replaceAll(/\/metadata\/v([0-9])\./g, (_, v) => `/metadata/${nameOf(v)}.`);
    renamed.set(name(key), text === null ? bytes : encoder.encode(name(text)));
  }
  return renamed;
}

test('attach: a table of the Timelake engine goes on where it is, history and all', async () => {
  const table = place('foreign', 'engine');
  const theirs = await lay('engine', table);
  listed.add('foreign/engine');
  const row = { time: '2026-01-05T00:00:00Z', device: 'new' };
  expectProblem(await table.describe(), 404, 'not-attached');
  expectProblem(await table.post([row]), 404, 'not-attached');
  const creation = { headers: JSON_TYPE, body: JSON.stringify(DEVICES) };
  expectProblem(await ask(service.send, 'PUT', table.path, creation), 409, 'table-exists');
  const named = { metadata_location: `${table.location}/metadata/v${theirs.version}.metadata.json` };
  expectProblem(await table.attach(named), 409, 'table-exists');

  const attached = await table.attach();
  expect(attached.status, attached.text).toBe(200);
  expect(attached.body).toMatchObject({ attached: true, location: table.location, version: theirs.version + 1 });
  expect(attached.body.snapshot?.summary['total-records']).toBe(String(theirs.rows.length));
  const again = await table.attach({});
  expect({ status: again.status, body: again.body }).toMatchObject({
    status: 200,
    body: { attached: false, version: theirs.version + 1 },
  });
  const taken = await table.post([row], { prefer: 'wait=30', 'x-request-id': 'attached' });
  expect(taken.status, taken.text).toBe(201);
  expect(taken.body.version).toBe(theirs.version + 2);

  const found = await table.rows();
  const [mine] = found.filter((one) => one['device'] === 'new');
  expect(mine).toMatchObject({ time: 1_767_571_200_000_000n });
  sameRows([...theirs.rows, mine], found);
  await table.valid(DEVIATIONS.timelake);
});

test('attach: a table of PyIceberg with every type, hidden partitions and a catalog’s file names', async () => {
  const table = place('foreign', 'types');
  const theirs = await lay('types', table, catalogNames);
  expectProblem(await table.describe(), 404, 'unknown-table');
  const elsewhere = { metadata_location: `s3://${BUCKET_NAME}/${WAREHOUSE}/foreign/engine/metadata/v1.metadata.json` };
  expectProblem(await table.attach(elsewhere), 400, 'not-attachable');
  const missing = { metadata_location: `${table.location}/metadata/00009-none.metadata.json` };
  expectProblem(await table.attach(missing), 404, 'unknown-table');

  const attached = await table.attach();
  listed.add('foreign/types');
  expect(attached.status, attached.text).toBe(200);
  expect(attached.body).toMatchObject({ attached: true, location: table.location, version: 1 });
  const taken = await table.post(
    [
      { id: 9001, s: 'zz', tz: '2026-01-02T03:04:05Z', large: '1.5' },
      {
        id: 9002,
        s: '\u{1f600}\u{1f600}\u{1f600}',
        tz: '1969-12-31T23:59:59.999999Z',
        u: '00000000-0000-0000-0000-0000000000ff',
      },
      { id: 9003 },
    ],
    { prefer: 'wait=30' },
  );
  expect(taken.status, taken.text).toBe(201);
  const found = await table.rows();
  const mine = found
    .filter(({ id }) => (id as bigint) > 9000n && (id as bigint) < 9004n)
    .sort((a, b) => Number((a['id'] as bigint) - (b['id'] as bigint)));
  expect(mine.map(({ id, s, tz, u, large }) => ({ id, s, tz, u, large }))).toEqual([
    { id: 9001n, s: 'zz', tz: 1_767_323_045_000_000n, u: null, large: 15_000_000_000n },
    { id: 9002n, s: '\u{1f600}\u{1f600}\u{1f600}', tz: -1n, u: '00000000-0000-0000-0000-0000000000ff', large: null },
    { id: 9003n, s: null, tz: null, u: null, large: null },
  ]);
  sameRows([...theirs.rows, ...mine], found);
  await table.valid(DEVIATIONS.pyiceberg, false);
});

test('attach: two files of one number are the client’s to choose from', async () => {
  const table = place('foreign', 'forked');
  const name = (n: number) => `${table.prefix}/metadata/00006-6ad97a0c-0000-4000-8000-0000000000f${n}.metadata.json`;
  await lay('types', table, (objects) => {
    const renamed = catalogNames(objects);
    const newest = [...renamed.keys()].find((key) => key.includes('/metadata/00006-')) ?? '';
    const bytes = renamed.get(newest) ?? new Uint8Array();
    renamed.delete(newest);
    return renamed.set(name(1), bytes).set(name(2), bytes);
  });
  const problem = expectProblem(await table.attach(), 400, 'ambiguous-metadata');
  expect(problem.detail).toContain('f1.metadata.json');
  expect(problem.detail).toContain('f2.metadata.json');
  const attached = await table.attach({ metadata_location: `s3://${BUCKET_NAME}/${name(2)}` });
  expect({ status: attached.status, attached: attached.body.attached }).toEqual({ status: 200, attached: true });
  listed.add('foreign/forked');
});

test('attach: what cannot be served rightly is refused and left as it is', async () => {
  const edit = (text: (json: string) => string) => (objects: Objects) => {
    for (const [key, bytes] of objects) {
      if (key.endsWith('.metadata.json')) objects.set(key, encoder.encode(text(decoder.decode(bytes))));
    }
    return objects;
  };
  const cases: [name: string, change: (json: string) => string, status: number, slug: string][] = [
    ['moved', (json) => json.replaceAll('/foreign/moved', '/foreign/elsewhere'), 400, 'not-attachable'],
    [
      'version-3',
      (json) => json.replace('"format-version":2', '"format-version":3'),
      422,
      'unsupported-format-version',
    ],
    ['newer', (json) => json.replace(/("timelake.format-version":)"[^"]*"/, '$1"1.0.0"'), 400, 'table-newer'],
    [
      'paths',
      (json) => json.replace('"properties":{', '"properties":{"write.data.path":"s3://other/x",'),
      400,
      'not-attachable',
    ],
  ];
  for (const [name, change, status, slug] of cases) {
    const table = place('foreign', name);
    await lay('engine', table, edit(change));
    if (name === 'newer' || name === 'paths') listed.add(`foreign/${name}`);
    const before = await service.bucket.list(`${table.prefix}/`);
    expectProblem(await table.attach(), status, slug);
    expect(await service.bucket.list(`${table.prefix}/`), name).toEqual(before);
  }
  const catalog = place('foreign', 'moved-catalog');
  await lay('types', catalog, (objects) =>
    edit((json) => json.replaceAll('/moved-catalog', '/elsewhere'))(catalogNames(objects)),
  );
  expectProblem(await catalog.attach(), 400, 'not-attachable');
  expectProblem(await place('foreign', 'nobody').attach(), 404, 'unknown-table');
  expectProblem(await place('foreign', 'nobody').attach({ metadata: 'x' }), 400, 'malformed');
});

test('list: every table once, in the order of keys, whatever the page', async () => {
  for (const name of ['a', 'a-b', 'a_b', 'a0', 'A']) await place('list', name).create();
  for (const namespace of ['list-', 'list_', 'list0']) await place(namespace, 't').create();
  const dropped = place('list', 'b');
  await dropped.create();
  await ask(service.send, 'DELETE', dropped.path);
  listed.delete('list/b');
  await service.rawBucket.put(`${WAREHOUSE}/list/c/metadata/v1.metadata.json`, encoder.encode('{}'), {});
  await service.rawBucket.put(`${WAREHOUSE}/stray.txt`, encoder.encode('x'), {});
  await service.rawBucket.put(`${WAREHOUSE}/list/stray.txt`, encoder.encode('x'), {});

  const page = async (query: string) => (await ask<TablePage>(service.send, 'GET', `/v1/tables${query}`)).body;
  const nameOf = (entry: { namespace: string; table: string }) => `${entry.namespace}/${entry.table}`;
  const all = await page('?limit=200');
  const keys = [...listed].map((name) => `${name}/`).sort();
  expect(all.tables.map((entry) => `${nameOf(entry)}/`)).toEqual(keys);
  expect(all.next).toBeNull();
  expect(all.unreadable.map(nameOf).sort()).toEqual(['foreign/moved', 'foreign/version-3', 'list/c']);
  expect(all.unreadable.every(({ reason }) => reason !== '')).toBe(true);
  const callers = place('many', 'callers');
  const { body } = await callers.describe();
  expect(all.tables.find((entry) => entry.namespace === 'many')).toEqual({
    namespace: 'many',
    table: 'callers',
    location: callers.location,
    version: body.version,
    snapshot_id: body.snapshot?.snapshot_id,
    total_records: '1001',
    updated_ms: expect.any(Number),
  });

  for (const limit of [1, 7]) {
    const found: TablePage = { tables: [], unreadable: [], next: null };
    let after: string | null = null;
    do {
      const next: TablePage = await page(`?limit=${limit}${after === null ? '' : `&after=${after}`}`);
      expect(next.tables.length).toBeLessThanOrEqual(limit);
      found.tables.push(...next.tables);
      found.unreadable.push(...next.unreadable);
      after = next.next;
    } while (after !== null);
    expect(found.tables, `pages of ${limit}`).toEqual(all.tables);
    expect(found.unreadable.map(nameOf).sort()).toEqual(all.unreadable.map(nameOf).sort());
  }
  // A position need not be a table.
  expect((await page('?after=list/a00&limit=1')).tables.map(nameOf)).toEqual(['list/a_b']);
  expect(await page('?after=zzz/zzz')).toEqual({ tables: [], unreadable: [], next: null });
});

test('list: a position or a number that is none is refused', async () => {
  const cases: [query: string, slug: string][] = [
    ['limit=0', 'malformed'],
    ['limit=-1', 'malformed'],
    ['limit=ten', 'malformed'],
    ['limit=', 'malformed'],
    ['after=a', 'malformed'],
    ['after=a/b/c', 'malformed'],
    ['after=a/', 'malformed'],
    ['after=', 'malformed'],
  ];
  for (const [query, slug] of cases) {
    expectProblem(await ask(service.send, 'GET', `/v1/tables?${query}`), 400, slug);
  }
});
