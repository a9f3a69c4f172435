import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { beforeEach, describe, expect, test } from 'vitest';
import { FakeService, problem, runCli } from './fake-service.ts';

let service: FakeService;
const run = (...args: string[]) => runCli(service, args);

/** Answers with rows, as the service does. */
function answer(path: string, rows: object[], facts: Record<string, unknown> = {}): void {
  const all = { version: 12, ...facts };
  service.answers[`GET /v1/tables/a/t/${path}`] = () => {
    const accept = service.seen.at(-1)?.headers.get('accept');
    const headers = new Headers({ 'content-type': accept ?? '' });
    for (const [name, value] of Object.entries(all))
      headers.set(`x-sluice-${name.replaceAll('_', '-')}`, String(value));
    const lines = rows.map((row) => `${JSON.stringify(row)}\n`).join('');
    return new Response(accept === 'application/json' ? JSON.stringify({ ...all, rows }) : lines, { headers });
  };
}

beforeEach(() => {
  service = new FakeService();
});

describe('rows', () => {
  const ROWS = [
    { time: '2026-01-01T00:00:00.000000Z', device: 'pump-1', v: 1.5, n: '9007199254740993', tags: ['x'] },
    { time: '2026-01-01T00:00:01.000000Z', device: 'long name', v: null, n: -0, tags: null },
  ];

  test('a table for people: columns in their order, numbers to the right, and what it took', async () => {
    answer('rows', ROWS, { more: false, files_considered: 5, files_read: 2, bytes_read: 12_345 });
    const { exit, out } = await run('rows', 'a/t');
    expect(exit).toBe(0);
    expect(out.split('\n')).toEqual([
      'time                         device        v                 n  tags',
      '2026-01-01T00:00:00.000000Z  pump-1      1.5  9007199254740993  ["x"]',
      '2026-01-01T00:00:01.000000Z  long name  null                 0  null',
      '',
      '2 rows of version 12, 2 of 5 files, 12,345 bytes read',
    ]);
    expect(service.seen[0].path).toBe('/v1/tables/a/t/rows?limit=20');
  });

  test('what is asked for goes to the service', async () => {
    answer('rows', []);
    const time = ['--from', '2026-01-01', '--to', '2026-01-02T00:00:00+01:00'];
    const series = ['--where', 'device=a=b', '--where', 'device=c', '--where', 'limit=3', '--null', 'site'];
    const { out } = await run(
      'rows',
      'a/t',
      ...time,
      ...series,
      '--columns',
      'time,v',
      '--newest',
      '--limit',
      '7',
      '--ref',
      'b',
    );
    expect(out).toBe('0 rows of version 12');
    const { searchParams } = new URL(service.seen[0].path, 'http://service');
    expect([...searchParams]).toEqual([
      ['where.device', 'a=b'],
      ['where.device', 'c'],
      ['where.limit', '3'],
      ['is_null', 'site'],
      ['from', '2026-01-01'],
      ['to', '2026-01-02T00:00:00+01:00'],
      ['columns', 'time,v'],
      ['limit', '7'],
      ['order', 'desc'],
      ['ref', 'b'],
    ]);
    await run('rows', 'a/t', '--snapshot', '5', '--json');
    expect(service.seen[1].path).toBe('/v1/tables/a/t/rows?snapshot_id=5');
  });

  test('that there are more is told: in a table below it, else where it spoils no output', async () => {
    answer('rows', [{ a: 1 }], { more: true });
    expect((await run('rows', 'a/t')).out).toMatch(/^a\n1\n\n1 row of version 12\nthere are more rows: --limit N/);
    expect(await run('rows', 'a/t', '--format', 'ndjson')).toMatchObject({
      out: '{"a":1}',
      err: expect.stringContaining('there are more rows'),
    });
    const told = await run('rows', 'a/t', '--json');
    expect(told.json()).toEqual({ version: 12, more: true, rows: [{ a: 1 }] });
    // As it came: the sign of a zero would be lost on the way through a value.
    const body = '{"version":12,"rows":[{"a":-0}]}';
    service.answers['GET /v1/tables/a/t/rows'] = () =>
      new Response(body, { headers: { 'content-type': 'application/json' } });
    expect((await run('rows', 'a/t', '--json')).out).toBe(body);
    expect((await run('rows', 'a/t', '--format', 'ndjson', '--quiet')).err).toBe('');
    answer('rows', []);
    expect((await run('rows', 'a/t', '--format', 'ndjson')).out).toBe('');
  });

  test('text cannot move the cursor, and long values are cut', async () => {
    answer('rows', [{ s: '\u001b[2J\n\u202e', '\u0007': 'é'.repeat(100) }]);
    const { out } = await run('rows', 'a/t');
    const [head, row] = out.split('\n');
    expect(head).toBe('s                    \\u{7}');
    expect(row).toBe(`\\u{1b}[2J\\n\\u{202e}  ${'é'.repeat(59)}…`);
  });

  test('into a file, as the service answers', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'look-'));
    const file = join(folder, 'r');
    answer('rows', [{ a: 1 }, { a: 2 }], { more: true });
    const { exit, out } = await run('rows', 'a/t', '--format', 'arrow', '--out', file);
    expect([exit, out]).toEqual([0, expect.stringMatching(/^16 bytes of version 12 in .*\nthere are more rows/)]);
    expect(service.seen[0].headers.get('accept')).toBe('application/vnd.apache.arrow.stream');
    expect(readFileSync(file, 'utf8')).toBe('{"a":1}\n{"a":2}\n');
    const told = await run('rows', 'a/t', '--format', 'ndjson', '--out', file, '--json');
    expect(told.json()).toEqual({ file, bytes: 16, version: 12, more: true });
    await run('rows', 'a/t', '--out', file);
    expect(readFileSync(file, 'utf8')).toMatch(/^a\n1\n2\n\n2 rows of version 12\n/);
    expect(await run('rows', 'a/t', '--out', folder)).toMatchObject({
      exit: 1,
      err: expect.stringContaining('cannot be written'),
    });
    rmSync(folder, { recursive: true });
  });

  test('refusals and mistakes', async () => {
    service.answers['GET /v1/tables/a/t/rows'] = () => problem(422, 'too-much-to-read', 'more than 128 MiB of files');
    expect(await run('rows', 'a/t')).toMatchObject({
      exit: 1,
      err: expect.stringContaining('service answered 422: more than 128 MiB of files'),
    });
    service.seen.length = 0;
    for (const args of [
      ['rows'],
      ['rows', 'a/t', 'b'],
      ['rows', 'a/t', '--where', 'device'],
      ['rows', 'a/t', '--where', '=1'],
      ['rows', 'a/t', '--limit', '0'],
      ['rows', 'a/t', '--limit', '100001'],
      ['rows', 'a/t', '--format', 'csv'],
      ['rows', 'a/t', '--format', 'arrow'],
      ['rows', 'a/t', '--format', 'ndjson', '--json'],
      ['rows', 'a/t', '--buffered'],
      ['latest', 'a/t', '--limit', '3'],
      ['files', 'a/t', '--offset', '-1'],
    ]) {
      expect(await run(...args), args.join(' ')).toMatchObject({ exit: 2 });
    }
    expect(service.seen).toEqual([]);
    expect((await run('rows', '--help')).out).toContain('--newest');
  });
});

test('latest: the newest row of each series, and where it was found', async () => {
  answer('latest', [{ device: 'a', v: 1 }], { source: 'index' });
  expect((await run('latest', 'a/t', '--where', 'device=a')).out).toBe(
    'device  v\na       1\n\n1 row of version 12, by the index',
  );
  answer('latest', [], { source: 'scan', buffered_rows: 1234 });
  expect((await run('latest', 'a/t', '--buffered')).out).toBe(
    '0 rows of version 12, by looking through the files, 1,234 rows wait',
  );
  expect(service.seen.map(({ path }) => path)).toEqual([
    '/v1/tables/a/t/latest?where.device=a',
    '/v1/tables/a/t/latest?buffered=true',
  ]);
});

test('files: counted by partition, page by page', async () => {
  const counts = (files: number, rows: string, bytes: string, small: number) => ({
    files,
    rows,
    bytes,
    small_files: small,
    tiers: [],
  });
  const list = {
    version: 12,
    ...counts(15, '1234567', '123456789012', 3),
    small_below_bytes: 1000,
    delete_files: 0,
    partition_count: 4,
    partitions: [
      { partition: { time_day: '2026-01-01', site: null }, ...counts(14, '1234000', '123456780000', 2) },
      { partition: {}, ...counts(1, '567', '9012', 1) },
    ],
    next_offset: 2,
  };
  service.answers['GET /v1/tables/a/t/files'] = () => list;
  const { out } = await run('files', 'a/t', '--limit', '2');
  expect(out.split('\n')).toEqual([
    'version 12: 15 files, 1,234,567 rows, 123,456,789,012 bytes, 3 small (below 1,000 bytes)',
    '',
    'partition                      files       rows            bytes  small',
    'time_day=2026-01-01/site=null     14  1,234,000  123,456,780,000      2',
    '-                                  1        567            9,012      1',
    '2 more partitions: --offset 2',
  ]);
  service.answers['GET /v1/tables/a/t/files'] = () => ({ ...list, partitions: [], next_offset: null, delete_files: 2 });
  expect((await run('files', 'a/t', '--offset', '4')).out).toMatch(/small \(below 1,000 bytes\), 2 delete files$/);
  expect((await run('files', 'a/t', '--json')).json()).toMatchObject({ version: 12, delete_files: 2 });
  expect(service.seen.map(({ path }) => path.split('?')[1])).toEqual([
    'limit=2&offset=0',
    'limit=20&offset=4',
    'limit=20&offset=0',
  ]);
});
