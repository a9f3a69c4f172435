import { gzipSync } from 'node:zlib';
import {
  Float64,
  Int64,
  makeData,
  Table,
  TimestampNanosecond,
  tableFromArrays,
  tableFromIPC,
  tableToIPC,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { expect, test } from 'vitest';
import { duckdbRows } from '../oracle/duckdb.ts';
import { loadFixture } from '../oracle/fixtures/load.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, expectProblem, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, NO_EVAL_ENTRY, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';

/**
 * Arrow and Parquet bodies through the production bundle, in an isolate that is shown to refuse generated code: the usual
 * ways to read Arrow in JavaScript compile functions from text.
 */
const service = sharedService(NO_EVAL_ENTRY);

const STREAM = { 'content-type': 'application/vnd.apache.arrow.stream' };
const FILE = { 'content-type': 'application/vnd.apache.arrow.file' };
const PARQUET = { 'content-type': 'application/vnd.apache.parquet' };

const bodies = loadFixture('bodies');

async function create(name: string, fields: object[]): Promise<string> {
  const path = `/v1/tables/columnar/${name}`;
  const body = JSON.stringify({ schema: { type: 'struct', fields } });
  const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body });
  expect(created.status, created.text).toBe(201);
  return path;
}

const field = (name: string, type: unknown) => ({ name, type });
const list = (element: unknown) => ({ type: 'list', element });
const struct = (fields: Record<string, unknown>) => ({
  type: 'struct',
  fields: Object.entries(fields).map(([name, type]) => field(name, type)),
});

const WHOLE: Record<string, string> = {
  i8: 'int',
  u8: 'int',
  i16: 'int',
  u16: 'int',
  i32: 'int',
  u32: 'long',
  i64: 'long',
};
const REST: Record<string, string> = { u64: 'long', f16: 'float', f32: 'float', f64: 'double', flag: 'boolean' };
const TEXTS: Record<string, string> = { text: 'string', large_text: 'string', text_view: 'string', code: 'string' };
const BYTES: Record<string, string> = {
  bytes: 'binary',
  large_bytes: 'binary',
  bytes_view: 'binary',
  four: 'fixed[4]',
};
const DECIMALS: Record<string, string> = { dec9: 'decimal(9, 2)', dec18: 'decimal(18, 4)', dec38: 'decimal(38, 10)' };
const TIMES: Record<string, string> = { date32: 'date', date64: 'date', time32: 'time', time64: 'time' };
for (const unit of ['s', 'ms', 'us', 'ns'])
  Object.assign(TIMES, { [`local_${unit}`]: 'timestamp', [`zoned_${unit}`]: 'timestamptz' });

/** Every column of the fixture bodies. */
const ALL = [
  ...Object.entries({ ...WHOLE, ...REST, ...TEXTS, ...BYTES, ...DECIMALS, ...TIMES, unset: 'boolean', nothing: 'int' }),
  ['longs', list('long')],
  ['large_texts', list('string')],
  ['pairs', list('int')],
  ['lists', list(list('int'))],
  ['place', struct({ x: 'int', y: struct({ z: 'timestamp' }) })],
  ['counts', { type: 'map', key: 'string', value: 'long' }],
  ['steps', list(struct({ k: 'string', v: list('double') }))],
].map(([name, type]) => field(name as string, type));

test('B030, B047, B054, B055: every type, as Arrow stream, Arrow file and Parquet, is the same table', async () => {
  for (const path of ['/probe/function', '/probe/eval', '/probe/constructor']) {
    expect((await ask(service.send, 'GET', path)).body, path).toEqual({ refused: 'EvalError' });
  }
  const tables: unknown[][] = [];
  for (const [name, headers] of [
    ['stream.arrows', STREAM],
    ['zstd.arrows', STREAM],
    ['file.arrow', FILE],
    ['snappy.parquet', PARQUET],
    ['gzip.parquet', PARQUET],
    ['encodings.parquet', PARQUET],
    ['int96.parquet', PARQUET],
  ] as const) {
    // Parquet has no views; without them the column is null.
    const fields = headers === PARQUET ? ALL.filter((one) => !one.name.endsWith('_view')) : ALL;
    const table = name.replace('.', '_');
    const path = await create(table, fields);
    const body = bodies.get(`bodies/${name}`)!;
    const taken = await ask(service.send, 'POST', `${path}/rows`, { headers: { ...headers, prefer: 'wait=30' }, body });
    expect(taken.status, taken.text).toBe(201);
    expect(taken.body['rows']).toBe(6);
    const prefix = `${WAREHOUSE}/columnar/${table}`;
    await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
    const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
    tables.push(found.map(({ text_view, bytes_view, ...row }) => row));
    expect(await duckdbRows(service.bucket, prefix, { bucketName: BUCKET_NAME })).toHaveLength(6);
  }
  expect(tables[0][1]).toMatchObject({
    i64: 2n ** 63n - 1n,
    u32: 4_294_967_295n,
    text: 'é😀',
    dec9: -999_999_999n,
    zoned_ns: -1n,
    date32: 2_932_896,
    longs: [],
    code: 'b',
    unset: null,
  });
  for (const table of tables) expect(table).toEqual(tables[0]);
});

test('columns become an Arrow stream', async () => {
  const answer = await ask<{ allowed: number[] }>(service.send, 'GET', '/probe/arrow');
  const table = tableFromIPC(Uint8Array.from(answer.body.allowed));
  expect(table.schema.fields.map((one) => String(one.type))).toEqual([
    'Int64',
    'Utf8',
    'Decimal[9e+2]',
    'Bool',
    'List<Int64>',
  ]);
  const [row] = table.toArray().map((one) => one.toJSON());
  expect([row.c0, row.c1, row.c3, [...row.c4]]).toEqual([9_007_199_254_740_993n, 'é', null, [1n, null]]);
});

test('dictionaries that grow or change between batches', async () => {
  const path = await create('codes', [field('code', 'string')]);
  for (const name of ['delta.arrows', 'replaced.arrows']) {
    const body = gzipSync(bodies.get(`bodies/${name}`)!);
    const headers = { ...STREAM, 'content-encoding': 'gzip', prefer: 'wait=30' };
    const taken = await ask(service.send, 'POST', `${path}/rows`, { headers, body });
    expect(taken.status, taken.text).toBe(201);
  }
  const found = await rows(service.bucket, `${WAREHOUSE}/columnar/codes`, { bucketName: BUCKET_NAME });
  const codes = ['a', 'b', null, 'c', 'a', 'b', 'z', 'z', 'z'];
  expect(found.map((row) => row['code']).sort()).toEqual([...codes, ...codes].sort());
});

test('20,000 rows are the same as Arrow and as NDJSON', async () => {
  const count = 20_000;
  const fields = [field('time', 'timestamptz'), field('device', 'string'), field('seq', 'long'), field('v', 'double')];
  const start = 1_767_398_400_000;
  const nanos = BigInt64Array.from({ length: count }, (_, i) => BigInt(start + i) * 1_000_000n + 999n);
  const time = new Vector([makeData({ type: new TimestampNanosecond('UTC'), data: nanos } as never)]);
  const values = {
    time,
    device: vectorFromArray(
      Array.from({ length: count }, (_, i) => (i % 50 === 0 ? null : `device ${i % 300}`)),
      new Utf8(),
    ),
    seq: vectorFromArray(
      Array.from({ length: count }, (_, i) => 9_007_199_254_740_993n + BigInt(i)),
      new Int64(),
    ),
    v: vectorFromArray(
      Array.from({ length: count }, (_, i) => (i % 7 === 0 ? null : i / 8)),
      new Float64(),
    ),
  };
  const lines = Array.from({ length: count }, (_, i) => {
    const device = i % 50 === 0 ? null : `device ${i % 300}`;
    const iso = new Date(start + i).toISOString();
    return `{"time":"${iso}","device":${JSON.stringify(device)},"seq":${9_007_199_254_740_993n + BigInt(i)},"v":${i % 7 === 0 ? null : i / 8}}`;
  }).join('\n');
  const found: unknown[][] = [];
  for (const [name, headers, body] of [
    ['as_arrow', STREAM, tableToIPC(new Table(values), 'stream')],
    ['as_lines', NDJSON, lines],
  ] as const) {
    const path = await create(name, fields);
    const taken = await ask(service.send, 'POST', `${path}/rows`, { headers: { ...headers, prefer: 'wait=30' }, body });
    expect(taken.status, taken.text).toBe(201);
    found.push(await rows(service.bucket, `${WAREHOUSE}/columnar/${name}`, { bucketName: BUCKET_NAME }));
  }
  expect(found[0]).toHaveLength(count);
  expect(found[0]).toEqual(found[1]);
});

test('what does not fit is refused with its place, and nothing is taken', async () => {
  const path = await create('refusing', [{ ...field('id', 'long'), required: true }, field('name', 'string')]);
  const stream = (id: (bigint | null)[]) =>
    tableToIPC(
      new Table({
        id: vectorFromArray(id, new Int64()),
        name: vectorFromArray(
          id.map(() => 'n'),
          new Utf8(),
        ),
      }),
      'stream',
    );
  const post = (headers: Record<string, string>, body: Uint8Array) =>
    ask(service.send, 'POST', `${path}/rows`, { headers, body });

  const nulls = expectProblem(await post(STREAM, stream([1n, null])), 422, 'invalid-rows');
  expect(nulls.errors).toEqual([
    { line: 2, field: 'id', type: 'null-in-required', message: 'id is required and null' },
  ]);
  const whole = stream([1n, 2n]);
  expectProblem(await post(STREAM, whole.slice(0, -8)), 400, 'truncated-body');
  expectProblem(await post(STREAM, whole.slice(0, 300)), 400, 'truncated-body');
  expectProblem(await post(FILE, whole), 400, 'malformed-body');
  expectProblem(await post(PARQUET, whole), 400, 'malformed-body');
  expectProblem(await post(STREAM, new Uint8Array(0)), 400, 'empty-body');
  expectProblem(await post(PARQUET, bodies.get('bodies/lz4.parquet')!), 422, 'schema-mismatch');
  const other = await create('compressed', [field('i32', 'int')]);
  for (const name of ['lz4.parquet', 'brotli.parquet']) {
    const answer = await ask(service.send, 'POST', `${other}/rows`, {
      headers: PARQUET,
      body: bodies.get(`bodies/${name}`)!,
    });
    expectProblem(answer, 415, 'unsupported-compression');
  }
  const many = tableToIPC(tableFromArrays({ i32: new Int32Array(100_001) }), 'stream');
  const tooMany = await ask(service.send, 'POST', `${other}/rows`, { headers: STREAM, body: many });
  expect(expectProblem(tooMany, 413, 'too-many-rows').detail).toContain('split it');

  const described = await ask(service.send, 'GET', path);
  expect(described.body).toMatchObject({ status: { buffer: { rows: 0 } } });
  const taken = await ask(service.send, 'POST', `${path}/rows`, {
    headers: { ...STREAM, prefer: 'wait=30' },
    body: whole,
  });
  expect(taken.status, taken.text).toBe(201);
  const found = await rows(service.bucket, `${WAREHOUSE}/columnar/refusing`, { bucketName: BUCKET_NAME });
  expect(found.map((row) => row['id'])).toEqual([1n, 2n]);
});
