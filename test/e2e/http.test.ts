import { gzipSync } from 'node:zlib';
import { expect, test } from 'vitest';
import type { ReceiptView, StatusView, TableView } from '../../src/object/views.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import type { AcceptedBody, FlushedBody } from './support/client.ts';
import { type Answered, ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { readings } from './support/readings.ts';
import { BUCKET_NAME, until, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/**
 * The README's HTTP section, request by request, on the production bundle. Bad input, many tables
 * at once, and who may ask for what have files of their own.
 */
const service = sharedService();
type Described = TableView & { status: StatusView };

// Flushed when a test asks for it, never by age.
const READINGS = { ...readings(), chunk: 'day' };

let tables = 0;

/** A table of its own, not yet created, and the requests to it. */
function place() {
  const { send } = service;
  const name = `t${++tables}`;
  const path = `/v1/tables/http/${name}`;
  const prefix = `${WAREHOUSE}/http/${name}`;
  return {
    name,
    path,
    prefix,
    create: (definition: object = READINGS) =>
      ask<TableView & { created: boolean }>(send, 'PUT', path, {
        headers: JSON_TYPE,
        body: JSON.stringify(definition),
      }),
    describe: () => ask<Described>(send, 'GET', path),
    flush: () => ask<FlushedBody>(send, 'POST', `${path}/flush`),
    drop: () => ask(send, 'DELETE', path),
    post: (body: string | Uint8Array, headers: Record<string, string> = {}, query = '') =>
      ask<AcceptedBody>(send, 'POST', `${path}/rows${query}`, { headers: { ...NDJSON, ...headers }, body }),
    /** What is in the table, as an independent reader sees it; the table is held against the spec on the way. */
    async values(): Promise<bigint[]> {
      await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
      const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
      return found.map((row) => row['v'] as bigint).sort((a, b) => Number(a - b));
    },
  };
}

async function newTable() {
  const table = place();
  const created = await table.create();
  expect(created.status, created.text).toBe(201);
  return table;
}

const row = (v: number, device = 'a'): string =>
  `${JSON.stringify({ time: Date.UTC(2026, 0, 3) + v * 1000, device, v })}\n`;

async function receiptAt(location: string | null): Promise<Answered<ReceiptView>> {
  return ask<ReceiptView>(service.send, 'GET', location ?? 'no location');
}

test.concurrent('create: 201 with the table, 200 for the same again, 409 for another one', async () => {
  const table = place();
  const first = await table.create();
  expect(first.status).toBe(201);
  const { created, ...view } = first.body;
  expect(created).toBe(true);
  expect(view).toMatchObject({ location: `s3://${BUCKET_NAME}/${table.prefix}`, version: 1, snapshot: null });

  const again = await table.create({ ...READINGS, dedup: true });
  expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: { created: false, ...view } });

  const [time, ...others] = READINGS.schema.fields;
  const more = { type: 'struct', fields: [time, ...others, { name: 'more', type: 'int' }] };
  for (const [other, difference] of [
    [{ ...READINGS, chunk: 'hour' }, 'chunk is day, not hour'],
    [{ ...READINGS, series_key: [] }, /^series_key is .+, not none$/],
    [{ ...READINGS, dedup: false }, 'dedup is true, not false'],
    [{ ...READINGS, schema: more }, 'column more is not in the table'],
    [{ schema: { type: 'struct', fields: READINGS.schema.fields } }, 'time_column is time, not none'],
  ] as const) {
    const { differences } = expectProblem(await table.create(other), 409, 'table-exists');
    expect(differences).toContainEqual(typeof difference === 'string' ? difference : expect.stringMatching(difference));
  }
  const described = await table.describe();
  expect(described.body).toMatchObject(view);
});

test.concurrent('create: ten requests at once make one table', async () => {
  const table = place();
  const answers = await Promise.all(Array.from({ length: 10 }, () => table.create()));
  expect(answers.map((answer) => answer.status).sort()).toEqual([...Array(9).fill(200), 201]);
  expect(new Set(answers.map((answer) => answer.body.table_uuid)).size).toBe(1);
  expect((await table.describe()).body.version).toBe(1);
});

test.concurrent('describe: schema, layout, version, snapshot and the state of the buffer', async () => {
  const table = await newTable();
  const { body: before } = await table.describe();
  expect(Object.keys(before).sort()).toEqual([
    'location',
    'partition_spec',
    'properties',
    'schema',
    'snapshot',
    'sort_order',
    'status',
    'table_uuid',
    'version',
  ]);
  expect(before.table_uuid).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/);
  expect(before.schema.fields.map(({ name, type, required }) => ({ name, type, required }))).toEqual([
    { name: 'time', type: 'timestamptz', required: true },
    { name: 'device', type: 'string', required: false },
    { name: 'v', type: 'long', required: false },
    { name: '_ingest_ts', type: 'timestamptz', required: true },
  ]);
  expect(before.partition_spec.fields).toEqual([
    { 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' },
  ]);
  expect(before.sort_order.fields.map((field) => field['source-id'])).toEqual([2, 1]);
  expect(before.properties).toMatchObject({
    'timelake.time-column': 'time',
    'timelake.series-key': 'device',
    'timelake.chunk-interval': 'day',
    'timelake.dedup': 'true',
    'sluice.flush-interval': '1h',
  });
  expect(before.snapshot).toBeNull();
  expect(before.status).toMatchObject({
    last_sequence: 0,
    buffer: { batches: 0, rows: 0, bytes: 0, oldest_ms: null, age_ms: null },
    intent: null,
    last_commit: null,
    last_error: null,
  });
  expect(before.status.ledger_id).toMatch(/^[0-9a-f]{16}$/);

  expect((await table.post(row(1) + row(2))).status).toBe(202);
  expect((await table.post(row(3))).status).toBe(202);
  const { buffer } = (await table.describe()).body.status;
  expect(buffer).toMatchObject({ batches: 2, rows: 3 });
  expect(buffer.bytes).toBeGreaterThan(0);
  expect(Math.abs((buffer.oldest_ms ?? 0) - Date.now())).toBeLessThan(60_000);
  const older = await until('age of the buffer', async () => {
    const { status } = (await table.describe()).body;
    return (status.buffer.age_ms ?? 0) > (buffer.age_ms ?? 0) ? status.buffer : false;
  });
  expect(older).toMatchObject({ batches: 2, rows: 3, bytes: buffer.bytes, oldest_ms: buffer.oldest_ms });

  await table.flush();
  const { body: after } = await table.describe();
  expect(after.version).toBe(2);
  expect(after.snapshot).toMatchObject({
    sequence_number: '1',
    summary: { operation: 'append', 'total-records': '3' },
  });
  expect(after.snapshot?.snapshot_id).toMatch(/^[1-9][0-9]*$/);
  expect(after.status).toMatchObject({
    last_sequence: 2,
    buffer: { batches: 0, rows: 0, bytes: 0, oldest_ms: null, age_ms: null },
    last_commit: { version: 2, snapshot_id: after.snapshot?.snapshot_id, rows: 3 },
  });
  expect(await table.values()).toEqual([1n, 2n, 3n]);
});

test.concurrent('rows: 202 with a receipt that goes from buffered to committed', async () => {
  const table = await newTable();
  const taken = await table.post(row(1));
  expect({ status: taken.status, body: taken.body }).toEqual({
    status: 202,
    body: { receipt: expect.stringMatching(/^[0-9a-f]{16}-1$/), state: 'buffered', rows: 1 },
  });
  const location = taken.headers.get('location');
  expect(location).toBe(`${table.path}/receipts/${taken.body.receipt}`);
  expect((await receiptAt(location)).body).toEqual({ receipt: taken.body.receipt, state: 'buffered' });

  const flushed = await table.flush();
  expect(flushed.status).toBe(200);
  expect(flushed.body).toMatchObject({ flushed: true, version: 2, status: { buffer: { rows: 0 } } });
  const { body: receipt } = await receiptAt(location);
  expect(receipt).toEqual({
    receipt: taken.body.receipt,
    state: 'committed',
    snapshot_id: flushed.body.snapshot?.snapshot_id,
    version: 2,
    committed_ms: expect.any(Number),
  });
});

test.concurrent('rows: the flush interval commits without being asked', async () => {
  const table = place();
  await table.create({ ...READINGS, properties: { 'sluice.flush-interval': '1s' } });
  const taken = await table.post(row(1));
  expect(taken.status).toBe(202);
  const receipt = await until('commit by age', async () => {
    const { body } = await receiptAt(taken.headers.get('location'));
    return body.state === 'committed' ? body : false;
  });
  expect(receipt.version).toBe(2);
  expect(await table.values()).toEqual([1n]);
});

test.concurrent('rows: as many as sluice.flush-rows are committed at once', async () => {
  const table = place();
  await table.create({ ...READINGS, properties: { 'sluice.flush-interval': '1h', 'sluice.flush-rows': '3' } });
  await table.post(row(1) + row(2));
  const last = await table.post(row(3));
  await until('commit by rows', async () => (await receiptAt(last.headers.get('location'))).body.state === 'committed');
  expect(await table.values()).toEqual([1n, 2n, 3n]);
});

test.concurrent('rows: with Prefer: wait 201 and the snapshot that holds them', async () => {
  const table = await newTable();
  const taken = await table.post(row(1), { prefer: 'respond-async, wait=30' });
  expect(taken.status, taken.text).toBe(201);
  expect(taken.headers.get('preference-applied')).toBe('wait=30');
  const { body } = await table.describe();
  expect(taken.body).toEqual({
    receipt: expect.any(String),
    state: 'committed',
    snapshot_id: body.snapshot?.snapshot_id,
    version: body.version,
    committed_ms: expect.any(Number),
    rows: 1,
  });
  expect(typeof taken.body.snapshot_id).toBe('string');
  expect(await table.values()).toEqual([1n]);
});

test.concurrent('rows: a wait that runs out is 202, the error is in the status, and the rows come later', async () => {
  const table = await newTable();
  await table.post(row(1), { prefer: 'wait=30' });
  // The next version is taken by something nobody can read: no commit until it is gone.
  const blocked = `${table.prefix}/metadata/v3.metadata.json`;
  await service.rawBucket.put(blocked, new TextEncoder().encode('{"format-version": 2'), {});
  const taken = await table.post(row(2), { prefer: 'wait=2' });
  expect({ status: taken.status, state: taken.body.state }).toEqual({ status: 202, state: 'buffered' });
  expect(taken.headers.get('location')).toBe(`${table.path}/receipts/${taken.body.receipt}`);
  expect(taken.headers.get('preference-applied')).toBe('wait=2');
  const problem = await until('the run to meet it', async () => {
    const told = expectProblem(await table.describe(), 500, 'bad-metadata');
    const status = told['table_status'] as StatusView | undefined;
    return status?.last_error?.type === 'bad-metadata' ? told : null;
  });
  expect(problem.detail).toContain('v3.metadata.json');

  await service.rawBucket.delete([blocked]);
  const flushed = await table.flush();
  expect({ status: flushed.status, flushed: flushed.body.flushed }).toEqual({ status: 200, flushed: true });
  expect((await receiptAt(taken.headers.get('location'))).body.state).toBe('committed');
  expect(await table.values()).toEqual([1n, 2n]);
});

test.concurrent('rows: an Idempotency-Key gives the first receipt for the same body, before and after the commit', async () => {
  const table = await newTable();
  const key = { 'idempotency-key': 'batch 1' };
  const first = await table.post(row(1), key);
  expect(first.status).toBe(202);
  const again = await table.post(row(1), { 'idempotency-key': '"batch 1"' });
  expect({ status: again.status, body: again.body }).toEqual({ status: 200, body: { ...first.body, duplicate: true } });
  expect(again.headers.get('location')).toBe(first.headers.get('location'));
  // Equal bodies are equal batches, compressed or not.
  expect((await table.post(gzipSync(row(1)), { ...key, 'content-encoding': 'gzip' })).status).toBe(200);
  const other = expectProblem(await table.post(row(2), key), 422, 'idempotency-conflict');
  expect(other.detail).toContain('batch 1');

  await table.flush();
  const late = await table.post(row(1), { ...key, prefer: 'wait=5' });
  expect({ status: late.status, body: late.body }).toMatchObject({
    status: 200,
    body: { receipt: first.body.receipt, state: 'committed', version: 2, duplicate: true },
  });
  expectProblem(await table.post(row(2), key), 422, 'idempotency-conflict');
  expect((await table.describe()).body).toMatchObject({
    version: 2,
    status: { last_sequence: 1, buffer: { rows: 0 } },
  });
  expect(await table.values()).toEqual([1n]);
});

test.concurrent('rows: one Idempotency-Key sent twenty times at once is one batch', async () => {
  const table = await newTable();
  const key = { 'idempotency-key': 'k'.repeat(255), prefer: 'wait=30' };
  const answers = await Promise.all([
    ...Array.from({ length: 20 }, () => table.post(row(1), key)),
    table.post(row(2), key),
  ]);
  // Whichever body came first is the batch.
  const counts = [200, 201, 422].map((status) => answers.filter((answer) => answer.status === status).length);
  expect(counts[1]).toBe(1);
  expect([`19 1 1`, `0 1 20`]).toContain(counts.join(' '));
  const receipts = new Set(answers.filter(({ status }) => status < 300).map((answer) => answer.body.receipt));
  expect(receipts.size).toBe(1);
  expect(await table.values()).toHaveLength(1);
});

test.concurrent('rows: batches without a key are batches of their own, also when their bodies are equal', async () => {
  const table = place();
  await table.create({ ...READINGS, dedup: false });
  await table.post(row(1));
  await table.post(row(1));
  await table.flush();
  expect(await table.values()).toEqual([1n, 1n]);
});

test.concurrent('rows: NDJSON and JSON, plain, gzip and gzip of several members', async () => {
  const table = await newTable();
  const members = Buffer.concat([
    gzipSync(row(5)),
    gzipSync(''),
    gzipSync(row(6).slice(0, 9)),
    gzipSync(row(6).slice(9)),
  ]);
  const requests: [headers: Record<string, string>, body: string | Uint8Array, rows: number][] = [
    [{ 'content-type': 'application/x-ndjson; charset=utf-8' }, row(1), 1],
    [{ 'content-type': 'application/jsonl' }, row(2).trimEnd(), 1],
    [JSON_TYPE, `[${row(3)}, ${row(4)}]`, 2],
    [{ ...NDJSON, 'content-encoding': 'gzip' }, members, 2],
    [{ ...JSON_TYPE, 'content-encoding': 'GZIP' }, gzipSync(`  [${row(7)}]\n`), 1],
    [JSON_TYPE, row(8), 1],
    [{ ...NDJSON, 'content-encoding': 'identity' }, row(9), 1],
  ];
  for (const [headers, body, count] of requests) {
    const taken = await table.post(body, headers);
    expect({ status: taken.status, rows: taken.body.rows }, JSON.stringify(headers)).toEqual({
      status: 202,
      rows: count,
    });
  }
  await table.flush();
  expect(await table.values()).toEqual([1n, 2n, 3n, 4n, 5n, 6n, 7n, 8n, 9n]);
});

test.concurrent('rows: dedup keeps the newest row of a series and time within an append', async () => {
  const table = await newTable();
  const at = (device: string, v: number) => `${JSON.stringify({ time: '2026-01-03T00:00:00Z', device, v })}\n`;
  await table.post(at('a', 1) + at('b', 2));
  await table.post(at('a', 3));
  await table.flush();
  expect(await table.values()).toEqual([2n, 3n]);
});

test.concurrent('flush: an empty buffer is an answer and not a version', async () => {
  const table = await newTable();
  const flushed = await table.flush();
  expect({ status: flushed.status, body: flushed.body }).toMatchObject({
    status: 200,
    body: { flushed: true, version: 1, snapshot: null },
  });
  expect(Object.keys(flushed.body).sort()).toEqual(['flushed', 'snapshot', 'status', 'version']);
});

test.concurrent('receipts: what is no receipt of this table is 404', async () => {
  const [table, other] = [await newTable(), await newTable()];
  const taken = await table.post(row(1));
  await other.post(row(1));
  for (const id of ['x', '1', `${taken.body.receipt}0`, taken.body.receipt.replace(/-1$/, '-2'), '0'.repeat(16)]) {
    expectProblem(await ask(service.send, 'GET', `${table.path}/receipts/${id}`), 404, 'unknown-receipt');
  }
  expectProblem(await ask(service.send, 'GET', `${other.path}/receipts/${taken.body.receipt}`), 404, 'unknown-receipt');
});

test.concurrent('drop: a tombstone stays, the table is 404, its rows are told as refused, and the name is free again', async () => {
  const table = await newTable();
  const { body: first } = await table.describe();
  await table.post(row(1), { prefer: 'wait=30', 'idempotency-key': 'first' });
  const waiting = await table.post(row(2), { 'idempotency-key': 'k' });
  const dropped = await table.drop();
  expect({ status: dropped.status, body: dropped.body }).toEqual({
    status: 200,
    body: { dropped: true, version: 3, discarded_rows: 1 },
  });
  expect((await receiptAt(waiting.headers.get('location'))).body).toEqual({
    receipt: waiting.body.receipt,
    state: 'refused',
    type: 'table-dropped',
    message: 'table was dropped',
  });
  expectProblem(await table.describe(), 404, 'unknown-table');
  expectProblem(await table.post(row(3)), 404, 'unknown-table');
  expectProblem(await table.flush(), 404, 'unknown-table');
  expectProblem(await table.drop(), 404, 'unknown-table');
  expectProblem(await ask(service.send, 'POST', `${table.path}/attach`), 400, 'not-attachable');
  // Another layout: nothing of the old table binds the new one but the numbering.
  const again = await table.create({ ...READINGS, chunk: 'month' });
  expect(again.status).toBe(201);
  expect(again.body).toMatchObject({ created: true, version: 4, snapshot: null });
  expect(again.body.table_uuid).not.toBe(first.table_uuid);
  expect((await table.post(row(4), { prefer: 'wait=30' })).body).toMatchObject({ state: 'committed', version: 5 });
  // Batch ids were the old table's: sent again, the batches are new ones here.
  for (const [v, id] of [
    [1, 'first'],
    [2, 'k'],
  ] as const) {
    expect((await table.post(row(v), { 'idempotency-key': id })).status, id).toBe(202);
  }
  await table.flush();
  expect(await table.values()).toEqual([1n, 2n, 4n]);
  expect((await receiptAt(waiting.headers.get('location'))).body.state).toBe('refused');
});
