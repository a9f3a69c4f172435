import { gzipSync } from 'node:zlib';
import { Float64, Int64, Table, tableToIPC, Utf8, vectorFromArray } from 'apache-arrow';
import { expect, test } from 'vitest';
import { duckdbRows } from '../oracle/duckdb.ts';
import { loadFixture } from '../oracle/fixtures/load.ts';
import { type Row, rows, sameRows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/** Columns that come with rows, through the production bundle, in every format; read back by readers that are not ours. */
const service = sharedService();

const CSV = { 'content-type': 'text/csv' };
const STREAM = { 'content-type': 'application/vnd.apache.arrow.stream' };
const PARQUET = { 'content-type': 'application/vnd.apache.parquet' };
const ADDITIVE = { 'sluice.schema-evolution': 'additive' };

const at = (name: string) => `/v1/tables/evolving/${name}`;

async function create(name: string, fields: object[], properties: object = ADDITIVE): Promise<void> {
  const body = JSON.stringify({ schema: { type: 'struct', fields }, properties });
  const created = await ask(service.send, 'PUT', at(name), { headers: JSON_TYPE, body });
  expect(created.status, created.text).toBe(201);
}

const post = (name: string, headers: Record<string, string>, body: string | Uint8Array) =>
  ask(service.send, 'POST', `${at(name)}/rows`, { headers, body });

async function take(name: string, headers: Record<string, string>, body: string | Uint8Array): Promise<void> {
  const answer = await post(name, { ...headers, prefer: 'wait=30' }, body);
  expect(answer.status, answer.text).toBe(201);
}

async function expectRows(name: string, expected: Row[]): Promise<void> {
  const prefix = `${WAREHOUSE}/evolving/${name}`;
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  sameRows(expected, await rows(service.bucket, prefix, { bucketName: BUCKET_NAME }));
  sameRows(expected, await duckdbRows(service.bucket, prefix, { bucketName: BUCKET_NAME }));
}

test('B036: the row that brings a column keeps its value, whatever the format it comes in', async () => {
  const arrow = tableToIPC(
    new Table({ id: vectorFromArray([4n], new Int64()), weight: vectorFromArray([0.5], new Float64()) }),
    'stream',
  );
  await create('formats', [{ name: 'id', type: 'int' }]);
  await take('formats', NDJSON, '{"id":1,"color":"red"}\n{"id":2}');
  await take('formats', CSV, 'id,color,size\n3,blue,007');
  await take('formats', STREAM, arrow);
  await take('formats', { ...JSON_TYPE, 'content-encoding': 'gzip' }, gzipSync('[{"id":5,"tags":["a","b"]}]'));
  await expectRows('formats', [
    { id: 1n, color: 'red', size: null, weight: null, tags: null },
    { id: 2n, color: null, size: null, weight: null, tags: null },
    { id: 3n, color: 'blue', size: '007', weight: null, tags: null },
    { id: 4n, color: null, size: null, weight: 0.5, tags: null },
    { id: 5n, color: null, size: null, weight: null, tags: ['a', 'b'] },
  ]);
  const described = await ask<{ version: number; schema: { 'schema-id': number } }>(service.send, 'GET', at('formats'));
  // One version each: the change of schema is in the commit of the rows.
  expect(described.body).toMatchObject({ version: 5, schema: { 'schema-id': 4 } });
});

test('all columns of a Parquet file are added with its types', async () => {
  await create('parquet', [{ name: 'nothing_yet', type: 'string' }]);
  await take('parquet', PARQUET, loadFixture('bodies').get('bodies/snappy.parquet')!);
  const prefix = `${WAREHOUSE}/evolving/parquet`;
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
  expect(found[1]).toMatchObject({ i64: 2n ** 63n - 1n, text: 'é😀', dec9: -999_999_999n, zoned_ns: -1n });
  expect(await duckdbRows(service.bucket, prefix, { bucketName: BUCKET_NAME })).toHaveLength(6);
  const { body } = await ask<{ schema: { fields: { name: string; type: unknown }[] } }>(
    service.send,
    'GET',
    at('parquet'),
  );
  const types = Object.fromEntries(body.schema.fields.map(({ name, type }) => [name, type]));
  expect(types).toMatchObject({ i8: 'int', u32: 'long', f32: 'float', local_us: 'timestamp', zoned_us: 'timestamptz' });
});

test('points bring tags as strings, fields by their letter', async () => {
  await create('cpu', [{ name: 'time', type: 'timestamptz' }]);
  const body = 'cpu,host=a usage=1,n=2i,up=t,note="x" 1700000000\ncpu usage=0.5 1700000001';
  const write = (text: string) =>
    ask(service.send, 'POST', '/api/v2/write?bucket=evolving&precision=s', { body: text });
  expect(await write(body)).toMatchObject({ status: 204 });
  expect((await ask(service.send, 'POST', `${at('cpu')}/flush`)).status).toBe(200);
  await expectRows('cpu', [
    { time: 1_700_000_000_000_000n, host: 'a', usage: 1, n: 2n, up: true, note: 'x' },
    { time: 1_700_000_001_000_000n, host: null, usage: 0.5, n: null, up: null, note: null },
  ]);
  const refused = await write('cpu n=1.5 1700000002\n');
  expect(refused.status).toBe(400);
  expect(refused.text).toContain('n must be a whole number');
});

test('B037, B070: what contradicts a column, committed or waiting, is refused with row and field', async () => {
  await create('strict', [{ name: 'id', type: 'int' }]);
  expect((await post('strict', NDJSON, '{"id":1,"v":[1,2]}')).status).toBe(202);
  const refused = () => post('strict', NDJSON, '{"id":2}\n{"id":3,"v":7}');
  const bad = { errors: [{ line: 2, field: 'v', type: 'wrong-type' }] };
  expect(expectProblem(await refused(), 422, 'invalid-rows')).toMatchObject(bad);
  expect((await ask(service.send, 'POST', `${at('strict')}/flush`)).status).toBe(200);
  expect(expectProblem(await refused(), 422, 'invalid-rows')).toMatchObject(bad);
  await take('strict', NDJSON, '{"id":5000000000}');
  await expectRows('strict', [
    { id: 1n, v: [1n, 2n] },
    { id: 5_000_000_000n, v: null },
  ]);
});

test('a table that does not allow it refuses, until it does', async () => {
  await create('later', [{ name: 'id', type: 'long' }], {});
  expectProblem(await post('later', NDJSON, '{"id":1,"x":1}'), 422, 'invalid-rows');
  const patched = await ask(service.send, 'PATCH', `${at('later')}/properties`, {
    headers: JSON_TYPE,
    body: JSON.stringify({ set: ADDITIVE }),
  });
  expect(patched.status, patched.text).toBe(200);
  await take('later', NDJSON, '{"id":1,"x":1}');
  await expectRows('later', [{ id: 1n, x: 1n }]);
});

test('an overwrite brings columns too', async () => {
  await create('over', [{ name: 'id', type: 'int' }]);
  await take('over', NDJSON, '{"id":1}');
  const filter = encodeURIComponent('{"all":true}');
  const sent = { headers: NDJSON, body: '{"id":3000000000,"color":"red"}' };
  const answer = await ask(service.send, 'POST', `${at('over')}/overwrite?filter=${filter}`, sent);
  expect(answer.status, answer.text).toBe(200);
  await expectRows('over', [{ id: 3_000_000_000n, color: 'red' }]);
});

test('a column has a unit of its own, which goes with its name', async () => {
  const fields = ['a', 'b'].map((name) => ({ name, type: 'timestamptz' }));
  await create('units', fields, { 'sluice.epoch-unit.b': 'ns' });
  await take('units', NDJSON, '{"a":1000,"b":1000}');
  const renamed = await ask(service.send, 'POST', `${at('units')}/schema`, {
    headers: JSON_TYPE,
    body: '{"changes":[{"rename":"b","to":"c"}]}',
  });
  expect(renamed.status, renamed.text).toBe(200);
  await take('units', CSV, 'a,c\n2000,2000');
  // By the reader that resolves columns by id: the first file knows the column by its old name.
  const found = await rows(service.bucket, `${WAREHOUSE}/evolving/units`, { bucketName: BUCKET_NAME });
  sameRows(
    [
      { a: 1_000_000n, c: 1n },
      { a: 2_000_000n, c: 2n },
    ],
    found,
  );
  const body = JSON.stringify({ set: { 'sluice.epoch-unit.nope': 's' } });
  const refused = await ask(service.send, 'PATCH', `${at('units')}/properties`, { headers: JSON_TYPE, body });
  expectProblem(refused, 400, 'bad-property');
});

test('a column without any value is not added, whatever its type', async () => {
  await create('nulls', [{ name: 'id', type: 'long' }]);
  const body = tableToIPC(
    new Table({ id: vectorFromArray([1n], new Int64()), t: vectorFromArray([null], new Utf8()) }),
    'stream',
  );
  await take('nulls', STREAM, body);
  await take('nulls', NDJSON, '{"id":2,"nothing":null}');
  await expectRows('nulls', [{ id: 1n }, { id: 2n }]);
});
