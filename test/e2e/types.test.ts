import { afterAll, beforeAll, expect, test } from 'vitest';
import { parseJson } from '../../src/core/base/int64-json.ts';
import type { Type } from '../../src/core/iceberg/types.ts';
import { duckdbRows } from '../oracle/duckdb.ts';
import { type Row, rows, sameRows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { ask, JSON_TYPE, NDJSON } from './support/http.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from './support/service.ts';

/**
 * Every type, the whole way: JSON text in over HTTP, data files out, read by two readers that nobody here wrote.
 */
let service: RunningService;

beforeAll(async () => {
  service = await startService();
});

afterAll(() => service?.stop());

/** What is sent, as JSON text, and what a reader finds, spelled as `rows()` spells it. */
type Case = [json: string, value: unknown];

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const base64 = (value: Uint8Array): string => JSON.stringify(Buffer.from(value).toString('base64'));
const NINES = '9'.repeat(38);

const LONG_MAX = 9_223_372_036_854_775_807n;
const TIME_MIN = -62_135_596_800_000_000n;
const TIME_MAX = 253_402_300_799_999_999n;

const TIMES: Case[] = [
  ['"2026-01-03T12:34:56.789Z"', 1_767_443_696_789_000n],
  ['"2026-01-03t12:34:56z"', 1_767_443_696_000_000n],
  ['"2026-01-03 12:34"', 1_767_443_640_000_000n],
  ['"2026-01-03T12:34:56.123456789+05:30"', 1_767_423_896_123_456n],
  ['"2026-01-03T00:34:56-0800"', 1_767_429_296_000_000n],
  ['"1969-12-31T23:59:59.999999Z"', -1n],
  ['"0001-01-01T00:00:00Z"', TIME_MIN],
  ['"9999-12-31T23:59:59.999999Z"', TIME_MAX],
  ['"2024-02-29T23:59:59Z"', 1_709_251_199_000_000n],
  ['0', 0n],
  ['-1', -1000n],
  ['1767443696789', 1_767_443_696_789_000n],
  ['0.5', 500n],
];

const FLAT: Record<string, Case[]> = {
  boolean: [
    ['true', true],
    ['false', false],
  ],
  int: [
    ['0', 0],
    ['-0', 0],
    ['2147483647', 2_147_483_647],
    ['-2147483648', -2_147_483_648],
    ['"-17"', -17],
    ['1e3', 1000],
    ['5.0', 5],
  ],
  long: [
    ['0', 0n],
    ['9223372036854775807', LONG_MAX],
    ['-9223372036854775808', -LONG_MAX - 1n],
    ['9007199254740991', 9_007_199_254_740_991n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['"-9007199254740993"', -9_007_199_254_740_993n],
    ['1e15', 1_000_000_000_000_000n],
  ],
  float: [
    ['0.1', Math.fround(0.1)],
    ['-0.0', -0],
    ['3.4028234663852886e38', 3.4028234663852886e38],
    ['1.401298464324817e-45', 1.401298464324817e-45],
    ['1e-60', 0],
    ['"NaN"', Number.NaN],
    ['"Infinity"', Number.POSITIVE_INFINITY],
    ['"-Infinity"', Number.NEGATIVE_INFINITY],
    ['16777217', 16_777_216],
  ],
  double: [
    ['0.1', 0.1],
    ['-0.0', -0],
    ['0', 0],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['-1.7976931348623157e308', -Number.MAX_VALUE],
    ['5e-324', 5e-324],
    ['"NaN"', Number.NaN],
    ['"Infinity"', Number.POSITIVE_INFINITY],
    ['"-Infinity"', Number.NEGATIVE_INFINITY],
    ['12345678901234567890', 12_345_678_901_234_567_000],
  ],
  'decimal(9, 2)': [
    ['0', 0n],
    ['9999999.99', 999_999_999n],
    ['"-9999999.99"', -999_999_999n],
    ['1.1', 110n],
    ['1e2', 10_000n],
    ['"1.500"', 150n],
    ['-0.01', -1n],
  ],
  'decimal(18, 4)': [
    ['99999999999999.9999', 999_999_999_999_999_999n],
    ['"-99999999999999.9999"', -999_999_999_999_999_999n],
    ['0.0001', 1n],
    ['12345678901234.5678', 123_456_789_012_345_678n],
  ],
  'decimal(38, 0)': [
    [NINES, BigInt(NINES)],
    [`-${NINES}`, -BigInt(NINES)],
    [`"${NINES}"`, BigInt(NINES)],
    ['"1e37"', 10n ** 37n],
    ['0', 0n],
  ],
  'decimal(38, 38)': [
    [`0.${NINES}`, BigInt(NINES)],
    [`"-0.${NINES}"`, -BigInt(NINES)],
    ['1e-38', 1n],
  ],
  date: [
    ['"1970-01-01"', 0],
    ['"1969-12-31"', -1],
    ['"0001-01-01"', -719_162],
    ['"9999-12-31"', 2_932_896],
    ['"2024-02-29"', 19_782],
  ],
  time: [
    ['"00:00"', 0n],
    ['"23:59:59.999999"', 86_399_999_999n],
    ['"12:34:56.7"', 45_296_700_000n],
    ['"00:00:00.000001999"', 1n],
  ],
  timestamp: TIMES,
  timestamptz: TIMES,
  string: [
    ['""', ''],
    ['"\\u0000"', '\u0000'],
    ['"\\ud83d\\ude00"', '\u{1f600}'],
    ['"\u{10ffff}\u00e9\ufeff"', '\u{10ffff}\u00e9\ufeff'],
    ['"line\\nquote\\"tab\\t\\\\"', 'line\nquote"tab\t\\'],
    ['"12345678901234567890"', '12345678901234567890'],
    [`"${'long '.repeat(2000)}"`, 'long '.repeat(2000)],
    ['"null"', 'null'],
  ],
  uuid: [
    ['"00000000-0000-0000-0000-000000000000"', '00000000-0000-0000-0000-000000000000'],
    ['"FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF"', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    ['"6ad97a0c-8d9b-4b5e-a2c1-0123456789ab"', '6ad97a0c-8d9b-4b5e-a2c1-0123456789ab'],
  ],
  'fixed[4]': [
    [base64(bytes(0, 0, 0, 0)), bytes(0, 0, 0, 0)],
    [base64(bytes(255, 255, 255, 255)), bytes(255, 255, 255, 255)],
    [base64(bytes(0, 1, 128, 254)), bytes(0, 1, 128, 254)],
  ],
  binary: [
    ['""', bytes()],
    [base64(bytes(0)), bytes(0)],
    [base64(bytes(0xff, 0xfe, 0xc0)), bytes(0xff, 0xfe, 0xc0)],
    [base64(new Uint8Array(5000).fill(7)), new Uint8Array(5000).fill(7)],
  ],
};

const list = (element: Type | object) => ({ type: 'list', element });
const map = (key: Type | object, value: Type | object) => ({ type: 'map', key, value });
const struct = (fields: Record<string, Type | object>) => ({
  type: 'struct',
  fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
});

/** Columns with something in something, each with its cases. */
const NESTED: Record<string, { type: object; cases: Case[] }> = {
  texts: {
    type: list('string'),
    cases: [
      ['[]', []],
      ['[null]', [null]],
      ['["a", null, "", "\u{1f600}"]', ['a', null, '', '\u{1f600}']],
      [JSON.stringify(Array.from({ length: 500 }, (_, i) => `e${i}`)), Array.from({ length: 500 }, (_, i) => `e${i}`)],
    ],
  },
  longs: {
    type: list('long'),
    cases: [
      ['[9223372036854775807, -9223372036854775808]', [LONG_MAX, -LONG_MAX - 1n]],
      ['[9007199254740993, "9007199254740993", null]', [9_007_199_254_740_993n, 9_007_199_254_740_993n, null]],
    ],
  },
  lists: {
    type: list(list('int')),
    cases: [
      ['[[], [1], null, [null, 2]]', [[], [1], null, [null, 2]]],
      ['[]', []],
    ],
  },
  floats: {
    type: struct({ f: 'float', d: 'double', b: 'boolean' }),
    cases: [
      ['{"f": -0.0, "d": "NaN", "b": false}', { f: -0, d: Number.NaN, b: false }],
      ['{"f": 0, "d": -0.0, "b": true}', { f: 0, d: -0, b: true }],
      ['{"f": "-Infinity", "d": 5e-324}', { f: Number.NEGATIVE_INFINITY, d: 5e-324, b: null }],
      ['{}', { f: null, d: null, b: null }],
    ],
  },
  deep: {
    type: struct({ at: 'timestamptz', in: struct({ day: 'date', more: list(struct({ price: 'decimal(38, 10)' })) }) }),
    cases: [
      [
        '{"at": "0001-01-01T00:00:00Z", "in": {"day": "9999-12-31"}}',
        { at: TIME_MIN, in: { day: 2_932_896, more: null } },
      ],
      [
        '{"in": {"more": [{"price": 9999999999999999999999999999.9999999999}, {}, null]}}',
        { at: null, in: { day: null, more: [{ price: BigInt(NINES) }, { price: null }, null] } },
      ],
      ['{"in": null}', { at: null, in: null }],
    ],
  },
  labels: {
    type: map('string', 'string'),
    cases: [
      ['{}', []],
      [
        '{"a": "b", "": null, "\u{1f600}": ""}',
        [
          ['a', 'b'],
          ['', null],
          ['\u{1f600}', ''],
        ],
      ],
      [
        '[["k", "v"], {"key": "l", "value": "w"}]',
        [
          ['k', 'v'],
          ['l', 'w'],
        ],
      ],
    ],
  },
  counts: {
    type: map('long', list('int')),
    cases: [
      [
        '{"9007199254740993": [1, null], "-1": null}',
        [
          [9_007_199_254_740_993n, [1, null]],
          [-1n, null],
        ],
      ],
      ['[[9223372036854775807, []]]', [[LONG_MAX, []]]],
    ],
  },
  blobs: {
    type: struct({ u: 'uuid', x: 'fixed[4]', b: 'binary', t: 'time' }),
    cases: [
      [
        `{"u": "6ad97a0c-8d9b-4b5e-a2c1-0123456789ab", "x": ${base64(bytes(1, 2, 3, 4))}, "b": "", "t": "23:59:59.999999"}`,
        { u: '6ad97a0c-8d9b-4b5e-a2c1-0123456789ab', x: bytes(1, 2, 3, 4), b: bytes(), t: 86_399_999_999n },
      ],
      [`{"b": ${base64(bytes(0xff))}}`, { u: null, x: null, b: bytes(0xff), t: null }],
    ],
  },
};

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
