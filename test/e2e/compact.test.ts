import { expect, test } from 'vitest';
import { parseMetrics, sampleOf } from '../http/prometheus.ts';
import { openDuckdb } from '../oracle/duckdb.ts';
import { liveEntries, readTable, snapshotState } from '../oracle/reader.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, JSON_TYPE } from './support/http.ts';
import { BUCKET_NAME, until, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/** Compaction by itself and on request, on the production bundle and the local bucket. */
const OPTIONS = { bucketName: BUCKET_NAME };
const service = sharedService();

const DEVICES = ['a', 'ab', 'b', '\uffff', '😀', null];

/** Rows of one batch, of one day; every fifth repeats a key of the batch before with another value. */
function batch(n: number): { time: string; device: string | null; v: number; x: number | null; note: string | null }[] {
  return Array.from({ length: 60 }, (_, i) => {
    const at = i % 5 === 0 && n > 0 ? (n - 1) * 60 + i : n * 60 + i;
    return {
      time: new Date(Date.UTC(2026, 0, 1) + at * 1000).toISOString(),
      device: DEVICES[i % DEVICES.length],
      v: n * 60 + i,
      x: i % 7 === 0 ? null : i / 3,
      note: i % 3 === 0 ? `note ${i}` : null,
    };
  });
}

async function filesOf(prefix: string): Promise<number> {
  const table = await readTable(service.bucket, prefix, { ...OPTIONS, snapshots: 'current' });
  const state = snapshotState(table);
  return state === undefined ? 0 : [...liveEntries(state)].length;
}

test('many small appends become few files, and the rows are the same by DuckDB', async () => {
  const prefix = `${WAREHOUSE}/compact/t`;
  const table = service.table('compact', 't');
  await table.create({
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz', required: true },
        { name: 'device', type: 'string' },
        { name: 'v', type: 'long' },
        { name: 'x', type: 'double' },
        { name: 'note', type: 'string' },
      ],
    },
    time_column: 'time',
    series_key: ['device'],
    properties: { 'timelake.compact-min-files': '4' },
  });
  const wanted = new Map<string, string>();
  for (let n = 0; n < 9; n++) {
    const rows = batch(n);
    for (const row of rows) wanted.set(`${row.device} ${Date.parse(row.time)}`, `${row.v} ${row.x} ${row.note}`);
    await table.post(rows, { waitSeconds: 30 });
    // Four are merged by the object itself, then that one with every three, beside what comes in: here nothing does.
    if (n === 3 || n === 6) await until('compaction by itself', async () => (await filesOf(prefix)) === 1);
  }
  expect(await filesOf(prefix)).toBe(3);
  const { status } = await table.describe();
  expect(status.compaction).toMatchObject({ failures: 0, left_alone: [], last: { reason: 'tier', files: 4 } });
  await assertValidTable(service.bucket, prefix, OPTIONS);

  const maintain = (body: object) =>
    ask<{ changed: boolean; slices: { files: number }[]; remaining: number }>(
      service.send,
      'POST',
      `${table.path}/maintain`,
      { headers: JSON_TYPE, body: JSON.stringify(body) },
    );
  expect((await maintain({ full: false })).body).toMatchObject({ changed: false, slices: [] });
  const dry = await maintain({ dry_run: true });
  expect(dry.body).toMatchObject({ changed: false, dry_run: true, remaining: 1, slices: [{ made: null }] });
  const done = await maintain({});
  expect(done.body).toMatchObject({ changed: true, remaining: 0, slices: [{ reason: 'full', made: { files: 1 } }] });
  expect(await filesOf(prefix)).toBe(1);
  await assertValidTable(service.bucket, prefix, OPTIONS);

  const duckdb = await openDuckdb(service.bucket, prefix, OPTIONS);
  const rows = await duckdb.query('SELECT epoch_ms(time) AS ms, device, v, x, note FROM live');
  // In the file's own order: series by UTF-8 bytes, null first, then time.
  const order = await duckdb.query(
    `SELECT count(*) AS wrong FROM (SELECT device, time, lag(device) OVER w AS d, lag(time) OVER w AS t,
       row_number() OVER w AS n FROM live WINDOW w AS ()) WHERE n > 1 AND
       ((device IS NULL AND d IS NOT NULL) OR encode(device) < encode(d) OR (device IS NOT DISTINCT FROM d AND time <= t))`,
  );
  duckdb.close();
  expect(Number(order[0]['wrong'])).toBe(0);
  expect(
    new Map(rows.map((row) => [`${row['device']} ${row['ms']}`, `${row['v']} ${row['x']} ${row['note']}`])),
  ).toEqual(wanted);
  expect(rows).toHaveLength(wanted.size);
});

test('maintenance by request: every step tells what it did; a dry run changes nothing', async () => {
  const prefix = `${WAREHOUSE}/compact/all`;
  const table = service.table('compact', 'all');
  await table.create({
    schema: {
      type: 'struct',
      fields: [
        { name: 'time', type: 'timestamptz', required: true },
        { name: 'v', type: 'long' },
      ],
    },
    time_column: 'time',
    properties: {
      'timelake.auto-maintain': 'false',
      'timelake.retention': '36500d',
      'timelake.min-snapshots': '1',
      'timelake.max-snapshots': '1',
    },
  });
  for (let v = 0; v < 4; v++) {
    const time = v % 2 === 0 ? '1901-05-01T00:00:00Z' : '2026-01-01T00:00:00Z';
    await table.post([{ time, v }], { waitSeconds: 30 });
  }
  interface Steps {
    changed: boolean;
    slices: unknown[];
    steps: Record<string, { error: unknown; report: Record<string, unknown> } | null>;
  }
  const maintain = (body: object, query = '') =>
    ask<Steps>(service.send, 'POST', `${table.path}/maintain${query}`, {
      headers: JSON_TYPE,
      body: JSON.stringify(body),
    });
  const all = { retention: true, compact: true, index: true, expire: true, erase: true, sweep: true };
  const dry = await maintain(all, '?dry_run=true');
  expect(dry.body).toMatchObject({
    changed: false,
    dry_run: true,
    steps: {
      retention: { error: null, report: { files: 2, partitions: 1 } },
      compact: { error: null },
      index: { error: null, report: { state: 'kept', reason: null } },
      expire: { error: null },
      erase: { error: null, report: { keys: 0 } },
      sweep: { error: null, report: { orphans: 0, next: null } },
    },
  });
  expect(await filesOf(prefix)).toBe(4);
  const done = await maintain(all);
  expect(done.body).toMatchObject({
    changed: true,
    slices: [{ files: 2, made: { files: 1 } }],
    steps: {
      retention: { error: null, report: { changed: true, files: 2, rows: '2', partitions: 1 } },
      compact: { error: null, report: { changed: true } },
      expire: { error: null, report: { changed: true, retained_snapshots: 1 } },
    },
  });
  expect(await filesOf(prefix)).toBe(1);
  await assertValidTable(service.bucket, prefix, OPTIONS);
  // What was named is done, and nothing else.
  expect((await maintain({ compact: true })).body).toMatchObject({
    changed: false,
    steps: { retention: null, compact: { error: null }, index: null, expire: null, erase: null, sweep: null },
  });
  expect((await maintain({ retention: false })).body.steps).toMatchObject({ retention: null, sweep: null });
  const wrong = await maintain({ retention: false, compact: false, index: false, expire: false, erase: false });
  expectProblem(wrong, 400, 'malformed');
  const { status } = await table.describe();
  expect(status.schedule).toMatchObject({
    next_ms: status.doomed.due_ms,
    erasing_ms: status.doomed.due_ms,
    flush_ms: null,
    sweep_ms: null,
  });
  expect(status.erasing).toEqual({ due_ms: status.doomed.due_ms, failures: 0, last_error: null });
  const samples = parseMetrics((await ask(service.send, 'GET', `${table.path}/metrics`)).text);
  const of = (name: string, step: string) => sampleOf(samples, `sluice_upkeep_${name}`, { step });
  expect(of('due_timestamp_seconds', 'erase')).toBe((status.doomed.due_ms ?? 0) / 1000);
  expect(of('due_timestamp_seconds', 'sweep')).toBeNull();
  for (const step of ['retention', 'compact', 'expire', 'erase', 'sweep']) expect(of('failures', step)).toBe(0);
  expect(sampleOf(samples, 'sluice_faults')).toBeNull();
});
