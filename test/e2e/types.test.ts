import { expect, test } from 'vitest';
import { parseJson } from '../../src/core/base/int64-json.ts';
import type { Type } from '../../src/core/iceberg/types.ts';
import { duckdbRows } from '../oracle/duckdb.ts';
import { type Row, rows, sameRows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, WAREHOUSE } from './support/service.ts';
import { sharedService } from './support/shared.ts';
import { type Case, FLAT, LONG_MAX, NESTED, TIMES } from './support/type-cases.ts';

/**
 * Every type, the whole way: JSON text in over HTTP, data files out, read by two readers that nobody here wrote.
 */
const service = sharedService();

interface Column {
  name: string;
  type: Type | object;
  cases: Case[];
}

/**
 * Rows in which each case of each column comes up, next to nulls: row n has the cases number n, and every third row leaves
 * a column out or gives a null for it.
 */
function rowsOf(columns: readonly Column[], from: number): { lines: string[]; expected: Row[] } {
  const most = Math.max(...columns.map(({ cases }) => cases.length));
  const lines: string[] = [];
  const expected: Row[] = [];
  for (let n = 0; n < 3 * most; n++) {
    const members = [`"id": ${from + n}`];
    const row: Row = { id: BigInt(from + n) };
    for (const [c, { name, cases }] of columns.entries()) {
      const kind = (n + c) % 3;
      const [json, value] = kind === 0 ? ['null', null] : cases[Math.floor(n / 3 + kind) % cases.length];
      if (kind !== 0 || n % 2 === 0) members.push(`${JSON.stringify(name)}: ${json}`);
      row[name] = value;
    }
    lines.push(`{${members.join(', ')}}`);
    expected.push(row);
  }
  return { lines, expected };
}

/** Creates the table, sends rows in three batches that share a commit, and holds what two readers find against what was meant. */
async function check(name: string, columns: readonly Column[], more: object = {}) {
  const path = `/v1/tables/types/${name}`;
  const prefix = `${WAREHOUSE}/types/${name}`;
  const fields = [{ name: 'id', type: 'long', required: true }, ...columns.map(({ name, type }) => ({ name, type }))];
  const definition = { schema: { type: 'struct', fields }, properties: { 'sluice.flush-interval': '1h' }, ...more };
  const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body: JSON.stringify(definition) });
  expect(created.status, created.text).toBe(201);
  const { lines, expected } = rowsOf(columns, 1);
  for (const { json, value } of columns.flatMap(({ name, cases }) =>
    cases.map(([json, value]) => ({ name, json, value })),
  )) {
    expect(
      lines.some((line) => line.includes(json)),
      json,
    ).toBe(true);
    expect(value).not.toBeNull();
  }
  // NDJSON first, then the same as a JSON array under other ids, then rows of nulls alone.
  const again = rowsOf(columns, 1001);
  const nulls = Array.from({ length: 3 }, (_, n) => ({ id: BigInt(2001 + n) }));
  const bodies: [headers: Record<string, string>, body: string][] = [
    [NDJSON, lines.join('\n')],
    [JSON_TYPE, `[${again.lines.join(',')}]`],
    [NDJSON, nulls.map(({ id }) => `{"id": ${id}}`).join('\n')],
  ];
  for (const [n, [headers, body]] of bodies.entries()) {
    const isLast = n === bodies.length - 1;
    const prefer: Record<string, string> = isLast ? { prefer: 'wait=30' } : {};
    const taken = await ask(service.send, 'POST', `${path}/rows`, { headers: { ...headers, ...prefer }, body });
    expect(taken.status, taken.text).toBe(isLast ? 201 : 202);
  }
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  const all = [...expected, ...again.expected, ...nulls];
  for (const read of [rows, duckdbRows]) sameRows(all, await read(service.bucket, prefix, { bucketName: BUCKET_NAME }));
}

const flat: Column[] = Object.entries(FLAT).map(([type, cases]) => ({
  name: type.replaceAll(/\W+/g, '_'),
  type,
  cases,
}));
const nested: Column[] = Object.entries(NESTED).map(([name, { type, cases }]) => ({ name, type, cases }));

test('types: every flat type, its edges and nulls come back from the data files as they were sent', async () => {
  await check('flat', flat);
});

test('types: the same without delta and split encodings, for readers of old', async () => {
  await check('compatible', flat, {
    properties: { 'sluice.flush-interval': '1h', 'sluice.parquet-encodings': 'compatible' },
  });
});

test('types: lists, structs and maps, in each other and with nulls at every level', async () => {
  await check('nested', nested);
});

test('types: nested columns in a time series with a series key', async () => {
  const time: Column = { name: 'time', type: 'timestamptz', cases: TIMES };
  // A time is required: where a row would have none, the definition's own column stands in.
  const columns = [...nested, { name: 'device', type: 'string', cases: FLAT['string'] }];
  const path = '/v1/tables/types/series';
  const prefix = `${WAREHOUSE}/types/series`;
  const fields = [{ name: 'id', type: 'long' }, time, ...columns].map(({ name, type }) => ({ name, type }));
  const definition = { schema: { type: 'struct', fields }, time_column: 'time', series_key: ['device'], dedup: false };
  const created = await ask(service.send, 'PUT', path, { headers: JSON_TYPE, body: JSON.stringify(definition) });
  expect(created.status, created.text).toBe(201);
  const { lines, expected } = rowsOf(columns, 1);
  const timed = lines.map((line, n) => line.replace('{', `{"time": ${TIMES[n % TIMES.length][0]}, `));
  const taken = await ask(service.send, 'POST', `${path}/rows`, {
    headers: { ...NDJSON, prefer: 'wait=30' },
    body: timed.join('\n'),
  });
  expect(taken.status, taken.text).toBe(201);
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  const all = expected.map((row, n): Row => ({ ...row, time: TIMES[n % TIMES.length][1] }));
  for (const read of [rows, duckdbRows]) {
    const found = await read(service.bucket, prefix, { bucketName: BUCKET_NAME });
    for (const row of found) expect(typeof row['_ingest_ts']).toBe('bigint');
    sameRows(
      all,
      found.map(({ _ingest_ts, ...row }) => row),
    );
  }
});

test('types: the unit of numbers in a timestamp column is the table’s', async () => {
  const micros = 1_767_443_696_789_012n;
  const units: [unit: string, json: string, value: bigint][] = [
    ['s', '1767443696.789012', micros],
    ['s', '-0.000001', -1n],
    ['ms', '1767443696789.012', micros],
    ['us', '1767443696789012', micros],
    ['ns', '1767443696789012999', micros],
    ['ns', '-1', -1n],
  ];
  const checks = [...new Set(units.map(([unit]) => unit))].map((unit) => {
    const cases = units.filter(([of]) => of === unit).map(([, json, value]): Case => [json, value]);
    const properties = { 'sluice.flush-interval': '1h', 'sluice.epoch-unit': unit };
    return check(`unit-${unit}`, [{ name: 'at', type: 'timestamptz', cases }], { properties });
  });
  await Promise.all(checks);
});

test('types: values survive a body of many windows and row groups, digit for digit', async () => {
  const path = '/v1/tables/types/large';
  const prefix = `${WAREHOUSE}/types/large`;
  const fields = [
    { name: 'id', type: 'long', required: true },
    { name: 'big', type: 'long' },
    { name: 's', type: 'string' },
    { name: 'x', type: 'double' },
  ];
  await ask(service.send, 'PUT', path, {
    headers: JSON_TYPE,
    body: JSON.stringify({ schema: { type: 'struct', fields } }),
  });
  const count = 30_000;
  const lines = Array.from(
    { length: count },
    (_, n) => `{"id": ${n}, "big": ${LONG_MAX - BigInt(n)}, "s": "${n % 1000} \u{1f600}", "x": ${n / 7}}`,
  );
  const taken = await ask(service.send, 'POST', `${path}/rows`, {
    headers: { ...NDJSON, prefer: 'wait=30' },
    body: lines.join('\n'),
  });
  expect(taken.status, taken.text).toBe(201);
  const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
  sameRows(
    lines.map((line) => {
      const { id, big, s, x } = parseJson(line) as Record<string, number | bigint | string>;
      return { id: BigInt(id), big: BigInt(big), s, x };
    }),
    found,
  );
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME });
});
