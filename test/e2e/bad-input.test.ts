import { gzipSync } from 'node:zlib';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { openDuckdb } from '../oracle/duckdb.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { BAD_DEFINITIONS, BAD_LINES, COLUMNS } from './support/bad-cases.ts';
import { type Asked, ask, expectProblem, JSON_TYPE, NDJSON, type ProblemBody } from './support/http.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from './support/service.ts';

/**
 * What a client can get wrong, the whole way over HTTP on the production bundle: the answer says what, on which line and
 * in which field, and afterwards buffer, bucket and table are as they were. The parsers' finer cases are in test/http.
 */
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.stop());

/** Flushed when a test asks for it, never by age. */
const properties = { 'sluice.flush-interval': '1h' };
const PLAIN = { schema: { type: 'struct', fields: COLUMNS }, properties };

let tables = 0;

/** A table of its own, and the means to see that a refused request left nothing in it. */
async function newTable(definition: object = PLAIN) {
  const name = `t${++tables}`;
  const path = `/v1/tables/bad/${name}`;
  const prefix = `${WAREHOUSE}/bad/${name}`;
  const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body: JSON.stringify(definition) });
  expect(created.status, created.text).toBe(201);

  async function state() {
    const { body } = await ask<{
      version: number;
      snapshot: unknown;
      status: { buffer: Buffered; last_sequence: number };
    }>(service.send, 'GET', path);
    const { batches, rows, bytes } = body.status.buffer;
    return {
      version: body.version,
      snapshot: body.snapshot,
      buffer: { batches, rows, bytes },
      lastSequence: body.status.last_sequence,
      objects: await service.bucket.list(`${prefix}/`),
    };
  }
  const post = (asked: Asked, query = '') =>
    ask(service.send, 'POST', `${path}/rows${query}`, { ...asked, headers: { ...NDJSON, ...asked.headers } });

  return {
    path,
    prefix,
    state,
    post,
    /** Posts what must be refused, and holds the table's state against that before. */
    async refused(asked: Asked, status: number, slug: string): Promise<ProblemBody> {
      const before = await state();
      const problem = expectProblem(await post(asked), status, slug);
      expect(await state(), 'state after a refusal').toEqual(before);
      return problem;
    },
    /** Posts rows that must be taken and returns what the table holds then. */
    async taken(asked: Asked) {
      const answer = await post({ ...asked, headers: { ...asked.headers, prefer: 'wait=30' } });
      expect(answer.status, answer.text).toBe(201);
      await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
      return rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
    },
  };
}

/** A list made of the columns of a table's one row. */
async function list(prefix: string, expression: string): Promise<unknown> {
  const table = await openDuckdb(service.bucket, prefix, { bucketName: BUCKET_NAME });
  try {
    return (await table.query(`SELECT ${expression} AS list FROM live`))[0]['list'];
  } finally {
    table.close();
  }
}

let empty: ReturnType<typeof newTable> | null = null;

/** One table into which nothing is ever taken, for refusals by the dozen. */
function emptyTable() {
  empty ??= newTable();
  return empty;
}

interface Buffered {
  batches: number;
  rows: number;
  bytes: number;
}

/** The bad row stands between good ones: none of the three may be kept. */
const between = (line: string): string => `{"id": 1}\n${line}\n{"id": 3}\n`;

describe('rows: one bad line in NDJSON', () => {
  test.for(BAD_LINES)('rows: %s is refused with its line and field', async ([, line, type, field, value]) => {
    const table = await emptyTable();
    const problem = await table.refused({ body: between(line) }, 422, 'invalid-rows');
    expect(problem.error_count).toBe(1);
    expect(problem['complete']).toBe(true);
    expect(problem.errors).toHaveLength(1);
    expect(problem.errors?.[0]).toMatchObject({ line: 2, field, type, ...(value === undefined ? {} : { value }) });
    expect(problem.errors?.[0].message).not.toBe('');
    expect(problem.detail).toContain('line 2');
  });

  test('rows: bytes that are not UTF-8 are refused with their line', async () => {
    const table = await newTable();
    const bytes = Buffer.from(between('{"id": 2, "s": "?"}'));
    bytes[bytes.indexOf('?')] = 0xff;
    const problem = await table.refused({ body: bytes }, 422, 'invalid-rows');
    expect(problem.errors).toMatchObject([{ line: 2, field: null, type: 'malformed-utf8' }]);
  });

  test('rows: many bad lines, the first hundred are told and the batch is refused', async () => {
    const table = await newTable();
    const lines = Array.from({ length: 150 }, (_, i) => `{"id": ${i}, "n": "x${i}"}`);
    const problem = await table.refused({ body: lines.join('\n') }, 422, 'invalid-rows');
    expect(problem.errors).toHaveLength(100);
    expect(problem.errors?.[99]).toMatchObject({ line: 100, field: 'n', type: 'wrong-type', value: '"x99"' });
    expect(problem['complete']).toBe(false);
  });

  test('rows: on_error=skip takes the good lines and reports the others', async () => {
    const table = await newTable();
    const body = '{"id": 1}\n{"id": "x"}\n\n{"id": 3}\nnope\n';
    const answer = await table.post({ body, headers: { prefer: 'wait=30' } }, '?on_error=skip');
    expect(answer.status, answer.text).toBe(201);
    expect(answer.body).toMatchObject({
      rows: 2,
      rows_read: 4,
      rows_skipped: 2,
      errors: [
        { line: 2, field: 'id', type: 'wrong-type', value: '"x"' },
        { line: 5, field: null, type: 'malformed-json' },
      ],
    });
    const found = await rows(service.bucket, table.prefix, { bucketName: BUCKET_NAME });
    expect(found.map((row) => row['id'])).toEqual([1n, 3n]);
  });

  test('rows: on_error=skip with no good line makes no batch', async () => {
    const table = await newTable();
    const before = await table.state();
    const answer = await table.post({ body: 'nope\n{"id": null}' }, '?on_error=skip');
    expect({ status: answer.status, state: answer.body['state'], skipped: answer.body['rows_skipped'] }).toEqual({
      status: 200,
      state: 'empty',
      skipped: 2,
    });
    expect(await table.state()).toEqual(before);
  });
});

describe('rows: what is odd and good', () => {
  test('rows: a byte order mark, blank lines, CRLF and no end of line are taken', async () => {
    const table = await newTable();
    const found = await table.taken({ body: '\ufeff{"id": 1}\r\n\r\n  \n{"id": 2}\n\t\n{"id": 3}' });
    expect(found.map((row) => row['id'])).toEqual([1n, 2n, 3n]);
  });

  test('rows: blank lines count when a bad line is told', async () => {
    const table = await newTable();
    const problem = await table.refused({ body: '\n\n{"id": 1}\n\n{"id": "x"}\n' }, 422, 'invalid-rows');
    expect(problem.errors).toMatchObject([{ line: 5, field: 'id' }]);
  });

  test('rows: every digit of a 64-bit integer is kept, as a number and as text', async () => {
    const table = await newTable();
    const ids = ['9007199254740993', '-9007199254740993', '9223372036854775807', '-9223372036854775808'];
    const lines = ids.flatMap((id) => [`{"id": ${id}}`, `{"id": "${id}"}`]);
    const found = await table.taken({ body: lines.join('\n') });
    expect(found.map((row) => row['id'])).toEqual(ids.flatMap((id) => [BigInt(id), BigInt(id)]));
  });

  test('rows: NaN and the infinities are taken in the spelling of the README', async () => {
    const table = await newTable();
    const body = ['NaN', 'Infinity', '-Infinity'].map((x, id) => `{"id": ${id}, "x": "${x}", "f": "${x}"}`).join('\n');
    const found = await table.taken({ body });
    const expected = [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY];
    expect(found.map((row) => row['x'])).toEqual(expected);
    expect(found.map((row) => row['f'])).toEqual(expected);
  });

  test('rows: nanoseconds are cut towards the past, before 1970 too, and the edges of time are kept', async () => {
    const table = await newTable();
    const times: [text: string, micros: bigint][] = [
      ['"2026-01-03T00:00:00.123456789Z"', 1_767_398_400_123_456n],
      ['"1969-12-31T23:59:59.999999999Z"', -1n],
      ['"1969-12-31T23:59:59.000000001Z"', -1_000_000n],
      ['-0.0005', -1n],
      ['"0001-01-01T00:00:00Z"', -62_135_596_800_000_000n],
      ['"9999-12-31T23:59:59.999999999Z"', 253_402_300_799_999_999n],
    ];
    const found = await table.taken({ body: times.map(([text], id) => `{"id": ${id}, "t": ${text}}`).join('\n') });
    expect(found.map((row) => row['t'])).toEqual(times.map(([, micros]) => micros));
  });

  test('rows: columns and keys with names of the language are columns and keys like others', async () => {
    const fields = ['__proto__', 'constructor', 'toString', 'hasOwnProperty'].map((name) => ({ name, type: 'string' }));
    const labels = { name: 'labels', type: { type: 'map', key: 'string', value: 'string' } };
    const inner = { name: 'inner', type: { type: 'struct', fields } };
    const row = '"__proto__": "a", "constructor": "b", "toString": "c"';
    const values = ['a', 'b', 'c', null];
    // Read in SQL: objects of JavaScript readers cannot hold a member called __proto__.
    const columns = fields.map(({ name }) => `"${name}"`).join(', ');
    const members = fields.map(({ name }) => `"inner"['${name}']`).join(', ');

    const flat = await newTable({ schema: { type: 'struct', fields }, properties });
    await flat.taken({ body: `{${row}}` });
    expect(await list(flat.prefix, `[${columns}]`)).toEqual(values);

    const nested = await newTable({ schema: { type: 'struct', fields: [...fields, labels, inner] }, properties });
    const body = `{${row}, "labels": {"__proto__": "d", "constructor": "e"}, "inner": {${row}}}`;
    const answer = await nested.post({ body, headers: { prefer: 'wait=30' } });
    expect(answer.status, answer.text).toBe(201);
    expect(await list(nested.prefix, `[${columns}, ${members}]`)).toEqual([...values, ...values]);
    expect(await list(nested.prefix, 'map_keys(labels) || map_values(labels)')).toEqual([
      '__proto__',
      'constructor',
      'd',
      'e',
    ]);
  });

  test('B151 rows: zero rows are an answer, not a batch and not a snapshot', async () => {
    const table = await newTable();
    const before = await table.state();
    const answer = await table.post({ body: '[]', headers: { ...JSON_TYPE, prefer: 'wait=5' } });
    expect({ status: answer.status, body: answer.body, location: answer.headers.get('location') }).toEqual({
      status: 200,
      body: { state: 'empty', rows: 0 },
      location: null,
    });
    const flushed = await ask(service.send, 'POST', `${table.path}/flush`);
    expect({ status: flushed.status, snapshot: flushed.body['snapshot'] }).toEqual({ status: 200, snapshot: null });
    expect(await table.state()).toEqual(before);
    expect(before.snapshot).toBeNull();
  });
});

describe('rows: the body as a whole', () => {
  const cases: [what: string, type: 'json' | 'ndjson', body: string, status: number, slug: string, line?: number][] = [
    ['an empty NDJSON body', 'ndjson', '', 400, 'empty-body'],
    ['a body of blank lines', 'ndjson', '\n \r\n\t\n', 400, 'empty-body'],
    ['an empty JSON body', 'json', '', 400, 'empty-body'],
    ['an array cut between elements', 'json', '[{"id": 1},', 400, 'truncated-body'],
    ['an array cut inside an element', 'json', '[{"id": 1}, {"id": 2', 400, 'truncated-body'],
    ['an array without its bracket', 'json', '[{"id": 1}, {"id": 2}', 400, 'truncated-body'],
    ['an array with a comma too many', 'json', '[{"id": 1},]', 400, 'malformed-body'],
    ['an array without a comma', 'json', '[{"id": 1} {"id": 2}]', 400, 'malformed-body'],
    ['a broken element', 'json', '[{"id": 1}, {"id" 2}]', 400, 'malformed-body', 2],
    ['garbage behind an array', 'json', '[{"id": 1}] x', 400, 'trailing-data'],
    ['two arrays', 'json', '[{"id": 1}][{"id": 2}]', 400, 'trailing-data'],
    ['two objects as JSON', 'json', '{"id": 1}\n{"id": 2}', 400, 'trailing-data'],
    ['a number as JSON', 'json', '5', 400, 'malformed-body'],
  ];

  test.for(cases)('rows: %s is refused', async ([, type, body, status, slug, line]) => {
    const table = await emptyTable();
    const headers = type === 'json' ? JSON_TYPE : NDJSON;
    const problem = await table.refused({ headers, body }, status, slug);
    expect(problem['line']).toBe(line);
  });

  test('rows: a bad element of an array is told by its number', async () => {
    const table = await newTable();
    const body = '[{"id": 1}, {"id": 2, "n": "x"}, {"id": null}]';
    const problem = await table.refused({ headers: JSON_TYPE, body }, 422, 'invalid-rows');
    expect(problem.errors).toMatchObject([
      { line: 2, field: 'n', type: 'wrong-type', value: '"x"' },
      { line: 3, field: 'id', type: 'null-in-required' },
    ]);
  });

  const HEADERS: [what: string, headers: Record<string, string>, status: number, slug: string][] = [
    ['XML', { 'content-type': 'application/xml' }, 415, 'unsupported-media-type'],
    ['an empty content type', { 'content-type': '' }, 415, 'unsupported-media-type'],
    ['Latin-1', { 'content-type': 'application/json; charset=latin1' }, 415, 'unsupported-media-type'],
    ['brotli', { 'content-encoding': 'br' }, 415, 'unsupported-encoding'],
    ['gzip twice', { 'content-encoding': 'gzip, gzip' }, 415, 'unsupported-encoding'],
    ['a batch id of 256 characters', { 'idempotency-key': 'k'.repeat(256) }, 400, 'malformed'],
    ['a batch id beyond ASCII', { 'idempotency-key': 'k\u00e9y' }, 400, 'malformed'],
    ['an empty batch id', { 'idempotency-key': '""' }, 400, 'malformed'],
  ];

  test.for(HEADERS)('rows: %s is refused', async ([, headers, status, slug]) => {
    const table = await emptyTable();
    await table.refused({ headers, body: '{"id": 1}' }, status, slug);
  });

  test('rows: an on_error that is not known is refused', async () => {
    const table = await newTable();
    expectProblem(await table.post({ body: '{"id": 1}' }, '?on_error=ignore'), 400, 'malformed');
  });
});

describe('rows: too much', () => {
  const GZIP = { 'content-encoding': 'gzip' };

  test('rows: one line of 10 MB is refused by its number', async () => {
    const table = await newTable();
    const body = between(`{"id": 2, "s": "${'a'.repeat(10_000_000)}"}`);
    const problem = await table.refused({ body }, 413, 'line-too-long');
    expect(problem).toMatchObject({ line: 2, bytes_max: 8 * 1024 * 1024 });
  });

  test('rows: one element of 10 MB is refused by its number', async () => {
    const table = await newTable();
    const body = `[{"id": 1}, {"id": 2, "s": "${'a'.repeat(10_000_000)}"}]`;
    const problem = await table.refused({ headers: JSON_TYPE, body }, 413, 'line-too-long');
    expect(problem).toMatchObject({ line: 2 });
  });

  test('rows: a body over the limit is refused and nothing of it is kept', async () => {
    const table = await newTable();
    const line = `${JSON.stringify({ id: 1, s: 'a'.repeat(999) })}\n`;
    const body = line.repeat(Math.ceil((32 * 1024 * 1024 + 1) / line.length));
    const problem = await table.refused({ body }, 413, 'body-too-large');
    expect(problem['bytes_max']).toBe(32 * 1024 * 1024);
  });

  test('rows: more rows than a flush takes are refused', async () => {
    const table = await newTable();
    const problem = await table.refused({ body: '{"id":1}\n'.repeat(100_001) }, 413, 'too-many-rows');
    expect(problem['rows_max']).toBe(100_000);
  });

  test('rows: a gzip bomb is refused at the limit of the inflated body', async () => {
    const table = await newTable();
    // 4 GiB of blank lines in 4 MB: 128 members of 32 MiB.
    const member = gzipSync(new Uint8Array(32 * 1024 * 1024).fill(0x0a));
    const bomb = Buffer.concat(Array.from({ length: 128 }, () => member));
    const startMs = performance.now();
    await table.refused({ headers: GZIP, body: bomb }, 413, 'body-too-large');
    expect(performance.now() - startMs).toBeLessThan(20_000);
  });

  test('rows: a gzip bomb of one line is refused at the limit of a line', async () => {
    const table = await newTable();
    const bomb = gzipSync(`{"id": 1, "s": "${'a'.repeat(20 * 1024 * 1024)}"}`);
    const problem = await table.refused({ headers: GZIP, body: bomb }, 413, 'line-too-long');
    expect(problem).toMatchObject({ line: 1 });
  });

  test.for([
    ['cut', (bytes: Buffer) => bytes.subarray(0, -9)],
    ['cut inside its checksum', (bytes: Buffer) => bytes.subarray(0, -2)],
    ['with another checksum', (bytes: Buffer) => bytes.with(bytes.length - 6, bytes[bytes.length - 6] ^ 1)],
    ['with bytes behind its end', (bytes: Buffer) => Buffer.concat([bytes, Buffer.from('tail')])],
    ['with zeros behind its end', (bytes: Buffer) => Buffer.concat([bytes, Buffer.alloc(8)])],
    ['empty', () => Buffer.alloc(0)],
    ['not gzip at all', () => Buffer.from('{"id": 1}')],
  ] as const)('rows: gzip %s is refused', async ([, spoil]) => {
    const table = await emptyTable();
    const good = gzipSync('{"id": 1}\n{"id": 2}\n');
    await table.refused({ headers: GZIP, body: spoil(good) }, 400, 'malformed-gzip');
  });

  test('rows: more than 1,000 partitions in one batch are refused, 1,000 are taken', async () => {
    const table = await newTable({
      schema: { type: 'struct', fields: [{ name: 'time', type: 'timestamptz' }] },
      time_column: 'time',
      chunk: 'hour',
      properties,
    });
    const hours = (count: number) =>
      Array.from({ length: count }, (_, hour) => JSON.stringify({ time: Date.UTC(2026, 0, 1) + hour * 3_600_000 }));
    const problem = await table.refused({ body: hours(1001).join('\n') }, 422, 'too-many-partitions');
    expect(problem.detail).toContain('1000');
    const answer = await table.post({ body: hours(1000).join('\n') });
    expect(answer.status, answer.text).toBe(202);
  });
});

describe('tables: bad definitions and names', () => {
  /** Nothing may be in the bucket under a name whose creation was refused. */
  async function refusedCreation(definition: unknown, status: number, slug: string): Promise<ProblemBody> {
    const name = `t${++tables}`;
    const body = typeof definition === 'string' ? definition : JSON.stringify(definition);
    const path = `/v1/tables/bad/${name}`;
    const problem = expectProblem(await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body }), status, slug);
    expect(await service.bucket.list(`${WAREHOUSE}/bad/${name}/`)).toEqual([]);
    expectProblem(await ask(service.send, 'GET', path), 404, 'unknown-table');
    return problem;
  }
  test.for(BAD_DEFINITIONS)('definition: %s is refused', async ([, definition, status, slug, members]) => {
    expect(await refusedCreation(definition, status, slug)).toMatchObject(members ?? {});
  });

  const LONG = 'a'.repeat(129);
  test.for([
    ['ns', 'a.b'],
    ['ns', 'a b'],
    ['ns', 'a%20b'],
    ['ns', 'a%2Fb'],
    ['ns', '%2e%2e%2fescape'],
    ['ns', 'a%00b'],
    ['ns', 'a%ff'],
    ['ns', 'caf\u00e9'],
    ['ns', "a'b"],
    ['ns', 'a"b'],
    ['ns', 'a;b'],
    ['ns', 'a%5Cb'],
    ['ns', '-a'],
    ['ns', LONG],
    ['ns', 'metadata'],
    ['ns', 'Data'],
    ['data', 't'],
    ['n.s', 't'],
    ['%F0%9F%92%A9', 't'],
    [LONG, 't'],
  ])('names: %s, %s is refused at every address', async ([namespace, table]) => {
    const path = `/v1/tables/${namespace}/${table}`;
    const before = await service.bucket.list('');
    const body = JSON.stringify(PLAIN);
    expectProblem(await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body }), 400, 'bad-name');
    expectProblem(await ask(service.send, 'GET', path), 400, 'bad-name');
    expectProblem(await ask(service.send, 'DELETE', path), 400, 'bad-name');
    expectProblem(await ask(service.send, 'POST', `${path}/attach`), 400, 'bad-name');
    expectProblem(await ask(service.send, 'POST', `${path}/flush`), 400, 'bad-name');
    expectProblem(
      await ask(service.send, 'POST', `${path}/rows`, { headers: NDJSON, body: '{"id": 1}' }),
      400,
      'bad-name',
    );
    expect(await service.bucket.list('')).toEqual(before);
  });

  test('names: letters, digits, underscore and hyphen are a table, and case tells two of them apart', async () => {
    const names = ['A-1_b', 'a-1_b', '_', '0', 'a'.repeat(128), '__proto__', 'constructor'];
    for (const [n, name] of names.entries()) {
      const path = `/v1/tables/${name}/${name}`;
      const body = JSON.stringify(PLAIN);
      expect((await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body })).status, name).toBe(201);
      const rows = { headers: { ...NDJSON, prefer: 'wait=30' }, body: `{"id": ${n}}` };
      expect((await ask(service.send, 'POST', `${path}/rows`, rows)).status, name).toBe(201);
    }
    for (const [n, name] of names.entries()) {
      const found = await rows(service.bucket, `${WAREHOUSE}/${name}/${name}`, { bucketName: BUCKET_NAME });
      expect(
        found.map((row) => row['id']),
        name,
      ).toEqual([BigInt(n)]);
    }
  });

  test('names: an unknown table is 404 at every address, and no object comes to be', async () => {
    const path = '/v1/tables/bad/nobody';
    expectProblem(await ask(service.send, 'GET', path), 404, 'unknown-table');
    expectProblem(await ask(service.send, 'DELETE', path), 404, 'unknown-table');
    expectProblem(await ask(service.send, 'POST', `${path}/attach`), 404, 'unknown-table');
    expectProblem(await ask(service.send, 'POST', `${path}/flush`), 404, 'unknown-table');
    const asked = { headers: NDJSON, body: '{"id": 1}' };
    expectProblem(await ask(service.send, 'POST', `${path}/rows`, asked), 404, 'unknown-table');
    expectProblem(await ask(service.send, 'GET', `${path}/receipts/0123456789abcdef-1`), 404, 'unknown-receipt');
    expect(await service.bucket.list(`${WAREHOUSE}/bad/nobody`)).toEqual([]);
  });
});

test('rows: after all refusals a good batch between bad ones is the only one in the table', async () => {
  const table = await newTable();
  await table.refused({ body: between('{"id": 2, "n": "x"}') }, 422, 'invalid-rows');
  expect((await table.post({ body: '{"id": 10}\n{"id": 11}' })).status).toBe(202);
  await table.refused({ body: between('nope') }, 422, 'invalid-rows');
  await table.refused({ headers: JSON_TYPE, body: '[{"id": 20}' }, 400, 'truncated-body');
  await table.refused(
    { headers: { 'content-encoding': 'gzip' }, body: gzipSync('{"id": 30}').subarray(0, -4) },
    400,
    'malformed-gzip',
  );
  const found = await table.taken({ body: '{"id": 12}' });
  expect(found.map((row) => row['id'])).toEqual([10n, 11n, 12n]);
});
