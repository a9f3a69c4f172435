import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { gzipSync, zstdCompressSync } from 'node:zlib';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { FakeService, problem, runCli } from './fake-service.ts';

let folder: string;
let service: FakeService;

beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), 'cli-'));
  service = new FakeService();
});

afterEach(() => rmSync(folder, { recursive: true }));

function file(name: string, content: string | Uint8Array): string {
  const path = join(folder, name);
  writeFileSync(path, content);
  return path;
}

const run = (...args: string[]) => runCli(service, args);

const LINES = '{"a":1}\n{"a":2}\n{"a":3}\n{"a":4}\n{"a":5}\n';

describe('load', () => {
  test('a file goes in batches with ids of their own, and is committed', async () => {
    const { exit, out } = await run('load', 'a/t', file('r.ndjson', LINES), '--batch-rows', '2');
    expect(exit).toBe(0);
    expect(out).toMatch(/^loaded 5 rows in 3 batches, .* rows\/s; committed in version 7$/);
    expect([...service.batches.values()]).toEqual(['{"a":1}\n{"a":2}\n', '{"a":3}\n{"a":4}\n', '{"a":5}\n']);
    const [first] = service.seen;
    expect(first.path).toBe('/v1/tables/a/t/rows');
    expect(Object.fromEntries(first.headers)).toMatchObject({
      authorization: 'Bearer secret',
      'content-type': 'application/x-ndjson',
      'content-encoding': 'gzip',
    });
  });

  test('compressed files are inflated and cut; results are told as JSON', async () => {
    for (const [name, content] of [
      ['r.csv.gz', gzipSync('a\n1\n2\n3\n')],
      ['r.csv.zst', zstdCompressSync('a\n1\n2\n3\n')],
    ] as const) {
      service = new FakeService();
      const ran = await run('load', 'a/t', file(name, content), '--batch-rows', '2', '--json', '--delimiter', ';');
      expect(ran.json()).toMatchObject({ rows: 3, batches: 2, duplicates: 0, version: 7 });
      expect([...service.batches.values()]).toEqual(['a\n1\n2\n', 'a\n3\n']);
      expect(service.seen[0].path).toBe('/v1/tables/a/t/rows?delimiter=%3B');
    }
  });

  test('after a break the same command goes on, and nothing is taken twice', async () => {
    const path = file('r.ndjson', LINES);
    service.next.push('taken', problem(413, 'too-large', 'too large'));
    const broken = await run('load', 'a/t', path, '--batch-rows', '2');
    expect(broken.exit).toBe(1);
    expect(broken.err).toMatch(/too large\n2 rows are taken; the same command goes on and takes nothing twice/);
    const again = await run('load', 'a/t', path, '--batch-rows', '2', '--json');
    expect(again.json()).toMatchObject({ rows: 5, batches: 3, duplicates: 1 });
    expect([...service.batches.values()].join('')).toBe(LINES);
  });

  test('lost answers and busy services are waited for under the same key', async () => {
    service.next.push(
      'lost',
      problem(429, 'busy', 'full', {}, { 'retry-after': '5' }),
      problem(503, 'x', 'x'),
      problem(409, 'table-changed', 'look again'),
    );
    const { exit, err } = await run('load', 'a/t', file('r.ndjson', LINES));
    expect(exit).toBe(0);
    expect(service.waits).toEqual([500, 5000, 2000, 4000]);
    expect(err).toContain('waiting: service answered 429: full');
    expect([...service.batches.values()]).toEqual([LINES]);
    const keys = service.seen
      .filter(({ path }) => path.endsWith('/rows'))
      .map(({ headers }) => headers.get('idempotency-key'));
    expect(new Set(keys).size).toBe(1);
    expect(keys).toHaveLength(5);
  });

  test('a service that never answers is given up with another exit code', async () => {
    service.next.push(...Array.from({ length: 30 }, () => problem(503, 'x', 'down')));
    expect((await run('load', 'a/t', file('r.ndjson', LINES))).exit).toBe(3);
    expect(service.seen).toHaveLength(20);
    service = new FakeService();
    service.next.push(...Array.from({ length: 30 }, () => 'lost' as const));
    expect(await run('load', 'a/t', file('r.ndjson', LINES))).toMatchObject({
      exit: 3,
      err: expect.stringContaining('no answer from http://service'),
    });
    expect(service.seen).toHaveLength(4);
  });

  test('bad rows are told by their lines in the file', async () => {
    const errors = [{ line: 1, field: 'a', type: 'wrong-type', message: 'a must be a whole number: "x"' }];
    service.next.push(
      Response.json({ receipt: 'r', rows: 2 }, { status: 202 }),
      problem(422, 'invalid-rows', 'batch has 1 bad rows, first at line 1: a must be', { errors }),
    );
    const { exit, err } = await run('load', 'a/t', file('r.ndjson', LINES), '--batch-rows', '2');
    expect(exit).toBe(1);
    expect(err).toContain('batch has 1 bad rows\n  line 3: a must be a whole number: "x"');
  });

  test('another file under the same id is refused, not added', async () => {
    await run('load', 'a/t', file('r.ndjson', LINES), '--id', 'nightly');
    const { exit, err } = await run('load', 'a/t', file('r.ndjson', '{"a":9}\n'), '--id', 'nightly');
    expect(exit).toBe(1);
    expect(err).toContain('batch was loaded before with other rows');
    expect([...service.batches.keys()]).toEqual(['load/nightly/0']);
  });

  test('a file of the same content is the same load; for another table it is another one', async () => {
    await run('load', 'a/t', file('one.ndjson', LINES));
    await run('load', 'a/t', file('two.ndjson', LINES));
    await run('load', 'a/u', file('one.ndjson', LINES), '--no-flush');
    expect(service.batches.size).toBe(2);
  });

  test('points go to the write interface of the namespace', async () => {
    const { exit, out } = await run('load', 'a/t', file('r.lp', 'm v=1 1\nm v=2 2\n'), '--precision', 's');
    expect([exit, out]).toEqual([0, expect.stringContaining('loaded 2 rows')]);
    expect(service.seen[0].path).toBe('/api/v2/write?bucket=a&precision=s');
  });

  test('files that cannot be read', async () => {
    expect(await run('load', 'a/t', join(folder, 'none.csv'))).toMatchObject({ exit: 2 });
    expect(await run('load', 'a/t', file('r.csv.gz', 'no gzip'))).toMatchObject({ exit: 1 });
    expect(service.batches.size).toBe(0);
  });
});

describe('create', () => {
  const definition = {
    schema: { type: 'struct', fields: [{ name: 'a', type: 'long' }] },
    time_column: null,
    series_key: [],
  };
  const created = () => {
    service.answers['PUT /v1/tables/a/t'] = () => ({ created: true });
  };

  test('from a sample: proposed, made and loaded in one go', async () => {
    created();
    service.answers['POST /v1/infer'] = () => ({
      definition,
      sample: { rows: 5, whole: true },
      reasons: [],
      notes: [],
    });
    const ran = await run(
      'create',
      'a/t',
      '--from',
      file('r.ndjson.gz', gzipSync(LINES)),
      '--property',
      'sluice.flush-interval=1s',
      '--json',
    );
    expect(ran.json()).toMatchObject({ created: true, loaded: { rows: 5 } });
    expect(service.seen.map(({ method, path }) => `${method} ${path}`)).toEqual([
      'POST /v1/infer?measurement=t',
      'PUT /v1/tables/a/t',
      'POST /v1/tables/a/t/rows',
      'POST /v1/tables/a/t/flush',
    ]);
    expect(service.seen[0].body).toBe(LINES);
    expect(JSON.parse(service.seen[1].body)).toEqual({ ...definition, properties: { 'sluice.flush-interval': '1s' } });
  });

  test('a dry run makes nothing and tells the reasons', async () => {
    service.answers['POST /v1/infer'] = () => ({
      definition,
      sample: { rows: 5, whole: false },
      reasons: [{ choice: 'type of a', because: 'whole numbers' }],
      notes: ['something'],
    });
    const { exit, out } = await run(
      'create',
      'a/t',
      '--from',
      file('r.ndjson', LINES),
      '--dry-run',
      '--time-column',
      'none',
    );
    expect(exit).toBe(0);
    expect(out).toContain('type of a: whole numbers');
    expect(out).toContain('note: something');
    expect(service.seen).toHaveLength(1);
    const inferred = await run('infer', file('r.ndjson', LINES), '--json');
    expect(inferred.json()).toMatchObject({ definition });
  });

  test('from a definition', async () => {
    created();
    const path = file('d.json', JSON.stringify({ definition, reasons: [] }));
    const ran = await run(
      'create',
      'a/t',
      '--definition',
      path,
      '--chunk',
      'hour',
      '--series-key',
      'x,y',
      '--time-column',
      't',
    );
    expect(ran).toMatchObject({ exit: 0, out: 'table a/t created' });
    expect(JSON.parse(service.seen[0].body)).toMatchObject({ time_column: 't', series_key: ['x', 'y'], chunk: 'hour' });
    expect(await run('create', 'a/t', '--definition', join(folder, 'none.json'))).toMatchObject({ exit: 2 });
  });
});

describe('looking and upkeep', () => {
  const status = {
    buffer: { batches: 1, rows: 3, bytes: 100, age_ms: 5 },
    intent: null,
    last_commit: { version: 4, rows: 9, committed_ms: 0 },
    last_error: null,
  };
  const table = {
    location: 's3://b/a/t',
    version: 4,
    schema: { fields: [{ name: 'a', type: 'long', required: true }] },
    properties: { 'sluice.flush-interval': '1s', 'sluice.changes': 'x', owner: 'me' },
    snapshot: { snapshot_id: '12', timestamp_ms: 0, summary: { 'total-records': '1234' } },
    status,
  };

  test('describe: a table, or all of them page by page', async () => {
    service.answers['GET /v1/tables/a/t'] = () => table;
    const { out } = await run('describe', 'a/t');
    expect(out).toContain('snapshot 12 of 1970-01-01T00:00:00.000Z');
    expect(out).toContain('1,234 rows');
    expect(out).toContain('  a  long  required');
    expect(out).toContain('v4; 3 rows wait (100 bytes); last commit: 9 rows in v4');
    expect(out).not.toContain('sluice.changes');
    let page = 0;
    service.answers['GET /v1/tables'] = () => ({
      tables: [{ namespace: 'a', table: `t${++page}` }],
      next: page < 2 ? 'a/t1' : null,
    });
    expect((await run('describe')).out).toBe('a/t1\na/t2');
    expect((await run('describe', 'a/none')).exit).toBe(1);
  });

  test('snapshots, flush, maintain', async () => {
    service.answers['GET /v1/tables/a/t/snapshots'] = () => ({
      snapshots: [{ snapshot_id: '5', timestamp_ms: 0, summary: { operation: 'append', 'added-records': '10' } }],
    });
    expect((await run('snapshots', 'a/t', '--limit', '3')).out).toBe('5  1970-01-01T00:00:00.000Z  append  +10 rows');
    expect(service.seen[0].path).toContain('limit=3');
    expect((await run('flush', 'a/t')).out).toBe('all that was taken is in version 7');
    service.answers['POST /v1/tables/a/t/rewrite-manifests'] = () => ({ changed: false });
    let error: { type: string; message: string } | null = null;
    service.answers['POST /v1/tables/a/t/maintain'] = (body) => ({
      changed: true,
      version: 8,
      slices: [{ files: 8 }, { files: 3 }],
      steps: {
        retention: { error: null, report: { changed: false, files: 0, partitions: 0 } },
        compact: { error: null, report: { changed: true, version: 7 } },
        index: { error: null, report: { changed: true, version: 8, state: 'made', series: 1000, files: 3 } },
        expire: error === null ? { error, report: { changed: true, version: 8, snapshots: ['1', '2'] } } : { error },
        erase: { error: null, report: { keys: 10_000, remaining: 5 } },
        sweep: { error: null, report: { orphans: 3, bytes: 4000, listed: 50 } },
      },
      asked: body,
    });
    expect((await run('maintain', 'a/t')).out.split('\n')).toEqual([
      'retention: nothing to do, 0 partitions, 0 files',
      'compact: version 7, 11 files in 2 steps',
      'index: version 8, 1,000 series',
      'expire: version 8, 2 snapshots',
      'erase: 10,000 files, 5 are left',
      'rewrite-manifests: nothing to do',
    ]);
    const planned = await run('maintain', 'a/t', 'compact', '--dry-run', '--json');
    expect(planned.json()).toMatchObject({ maintain: { asked: '{"compact":true,"dry_run":true}' } });
    expect((await run('maintain', 'a/t', 'sweep')).out).toBe(
      'sweep: 3 files that nothing refers to, 4,000 bytes, of 50',
    );
    error = { type: 'gc-disabled', message: 'nothing may expire' };
    const failed = await run('maintain', 'a/t', 'retention', 'expire');
    expect([failed.exit, failed.err]).toEqual([1, expect.stringContaining('expire: failed: nothing may expire')]);
    expect((await run('maintain', 'a/t', 'tidy')).exit).toBe(2);
  });

  test('tail: a line whenever the state changes', async () => {
    let looks = 0;
    service.answers['GET /v1/tables/a/t'] = () => ({ ...table, version: looks++ < 3 ? 4 : 5 });
    const { exit, out } = await run('tail', 'a/t', '--interval', '1', '--count', '2');
    expect(exit).toBe(0);
    expect(out.split('\n').map((line) => line.slice(26, 28))).toEqual(['v4', 'v5']);
    expect(service.waits).toEqual([1000, 1000, 1000]);
  });
});

describe('the command line', () => {
  test('an address that is none is a mistake, and not a service that gives no answer', async () => {
    for (const url of ['nowhere', 'ftp://x', 'http://']) {
      const told = await run('describe', '--url', url);
      expect([told.exit, told.err]).toEqual([2, expect.stringContaining(`no address: ${url}`)]);
    }
    expect(service.waits).toEqual([]);
  });

  test('a reader that goes, as head does, is no failure', async () => {
    const script = join(import.meta.dirname, '../../../scripts/cli.ts');
    const child = spawn(process.execPath, [script, '--help'], { stdio: ['ignore', 'pipe', 'pipe'] });
    child.stdout.destroy();
    let err = '';
    child.stderr.on('data', (chunk) => {
      err += chunk;
    });
    const exit = await new Promise((resolve) => child.on('close', resolve));
    expect([exit, err]).toEqual([0, '']);
  });

  test('help is told, mistakes are', async () => {
    expect((await run('--help')).out).toContain('load NAMESPACE/TABLE FILE|-');
    expect((await run('load', '--help')).out).toContain('--batch-rows');
    for (const args of [
      [],
      ['nope'],
      ['load'],
      ['load', 'a'],
      ['load', 'a/t'],
      ['load', 'a/t', 'x.unknown'],
      ['load', 'a/t', 'x.csv', '--limit', '3'],
      ['load', 'a/t', 'x.csv', '--batch-rows', '0'],
      ['load', 'a/t', 'x.csv', '--on-error', 'maybe'],
      ['load', 'a/t', 'x.csv', '--nope'],
      ['create', 'a/t'],
      ['create', 'a/t', '--from', 'x.csv', '--property', 'x'],
      ['describe', 'a/t', 'b'],
      ['infer', '-'],
    ]) {
      expect(await run(...args), args.join(' ')).toMatchObject({ exit: 2 });
    }
    expect(service.seen).toEqual([]);
  });

  test('failures are JSON too, and the token is in none of them', async () => {
    const ran = await run('describe', 'a/none', '--json');
    expect(ran.json()).toMatchObject({ error: 'service answered 404: no such table', problem: { status: 404 } });
    expect(ran.out + ran.err).not.toContain('secret');
  });
});
