import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { zstdCompressSync } from 'node:zlib';
import { tableFromIPC } from 'apache-arrow';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { cli } from '../../scripts/cli.ts';
import { duckdbRows } from '../oracle/duckdb.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { BUCKET_NAME, type RunningService, startService, WAREHOUSE } from './support/service.ts';

/** The command-line tool against the production bundle, over a socket that breaks when it is told to. */
let service: RunningService;
let proxy: Server;
let folder: string;
/** Requests for rows until the service cannot be reached any more. */
let breakAfter = Number.POSITIVE_INFINITY;

beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), 'cli-'));
  service = await startService();
  proxy = createServer(async (request, response) => {
    if (request.url?.includes('/rows') === true && breakAfter-- <= 0) {
      request.socket.destroy();
      return;
    }
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const { host, connection, 'content-length': _, ...headers } = request.headers as Record<string, string>;
    const body = chunks.length === 0 ? {} : { body: Buffer.concat(chunks) };
    const answer = await service.send(request.url ?? '/', { method: request.method, headers, ...body });
    response.writeHead(answer.status, Object.fromEntries(answer.headers));
    response.end(Buffer.from(await answer.arrayBuffer()));
  });
  await new Promise<void>((done) => proxy.listen(0, '127.0.0.1', done));
});

afterAll(async () => {
  proxy?.close();
  proxy?.closeAllConnections();
  await service?.stop();
  rmSync(folder, { recursive: true, force: true });
});

async function run(...args: string[]) {
  const out: string[] = [];
  let err = '';
  const exit = await cli(args, {
    env: { SLUICE_URL: `http://127.0.0.1:${(proxy.address() as AddressInfo).port}` },
    out: (text) => out.push(text),
    err: {
      write: (text) => {
        err += text;
        return true;
      },
    },
    sleep: async () => undefined,
  });
  return { exit, out: out.join('\n'), err, json: () => JSON.parse(out.join('\n')) };
}

test('cli: a file makes its table and is in it once, whatever broke on the way', async () => {
  const ROWS = 5000;
  const lines = Array.from({ length: ROWS }, (_, i) => {
    const time = new Date(Date.UTC(2026, 0, 1, 0, 0, i >> 2)).toISOString();
    return `${time},d${i % 4},${i / 8},"note ""${i}""\nsecond line"`;
  });
  const file = join(folder, 'readings.csv.zst');
  writeFileSync(file, zstdCompressSync(`time,device,value,note\n${lines.join('\n')}\n`));
  const load = ['--batch-rows', '700', '--json'];

  breakAfter = 3;
  const broken = await run('create', 'cli/readings', '--from', file, ...load);
  expect([broken.exit, broken.err]).toEqual([3, expect.stringContaining('2,100 rows are taken')]);

  breakAfter = Number.POSITIVE_INFINITY;
  const whole = await run('create', 'cli/readings', '--from', file, ...load);
  expect(whole.exit, whole.err).toBe(0);
  expect(whole.json()).toMatchObject({
    created: false,
    definition: { time_column: 'time', series_key: ['device'], dedup: true },
    loaded: { rows: ROWS, batches: 8, duplicates: 3 },
  });
  const prefix = `${WAREHOUSE}/cli/readings`;
  await assertValidTable(service.bucket, prefix, { bucketName: BUCKET_NAME, zstdRequired: true });
  const found = await rows(service.bucket, prefix, { bucketName: BUCKET_NAME });
  expect(new Set(found.map(({ note }) => note)).size).toBe(ROWS);
  expect(found).toHaveLength(ROWS);
  expect(await duckdbRows(service.bucket, prefix, { bucketName: BUCKET_NAME })).toHaveLength(ROWS);
  expect(found[0]).toMatchObject({ note: expect.stringContaining('"\nsecond line') });

  // Once more, and nothing comes of it.
  const again = await run('load', 'cli/readings', file, ...load);
  expect(again.json()).toMatchObject({ rows: ROWS, duplicates: 8 });
  expect((await run('describe', 'cli/readings')).out).toContain('5,000 rows');

  const looked = await run('rows', 'cli/readings', '--where', 'device=d1', '--newest', '--limit', '2');
  expect(looked.out.split('\n').slice(0, 3)).toEqual([
    expect.stringMatching(/^time +device +value +note +_ingest_ts$/),
    expect.stringMatching(/^2026-01-01T00:20:49\.000000Z +d1 +624\.625 +note "4997"\\nsecond line /),
    expect.stringMatching(/^2026-01-01T00:20:48\.000000Z +d1 +624\.125 /),
  ]);
  expect(looked.out).toContain('there are more rows');
  const arrow = join(folder, 'rows.arrow');
  const time = ['--from', '2026-01-01T00:10:00Z', '--to', '2026-01-01T00:11:00Z'];
  const saved = await run('rows', 'cli/readings', ...time, '--columns', 'note', '--format', 'arrow', '--out', arrow);
  expect(saved.exit, saved.err).toBe(0);
  expect(tableFromIPC(readFileSync(arrow)).numRows).toBe(240);
  expect((await run('latest', 'cli/readings', '--json')).json().rows).toHaveLength(4);
  expect((await run('files', 'cli/readings')).out).toContain('5,000 rows');
});

test('cli: looks and upkeep', async () => {
  const file = join(folder, 'more.json');
  writeFileSync(file, JSON.stringify([{ id: 1 }, { id: 2, extra: 'x' }, { id: 'bad' }]));
  const definition = join(folder, 'definition.json');
  writeFileSync(definition, JSON.stringify({ schema: { type: 'struct', fields: [{ name: 'id', type: 'long' }] } }));
  const created = await run(
    'create',
    'cli/more',
    '--definition',
    definition,
    '--property',
    'sluice.schema-evolution=additive',
  );
  expect(created).toMatchObject({ exit: 0, out: 'table cli/more created' });
  const refused = await run('load', 'cli/more', file, '--batch-rows', '2');
  expect([refused.exit, refused.err]).toEqual([1, expect.stringContaining('line 3: id must be a whole number: "bad"')]);
  const skipped = await run('load', 'cli/more', file, '--on-error', 'skip', '--json');
  expect(skipped).toMatchObject({ exit: 1, err: expect.stringContaining('loaded before with other rows') });
  expect((await run('flush', 'cli/more')).exit).toBe(0);
  expect((await run('snapshots', 'cli/more')).out).toContain('append  +2 rows');
  expect((await run('maintain', 'cli/more')).out).toMatch(
    /^retention: .*\ncompact: .*\nindex: .*\nexpire: .*\nerase: .*\nrewrite-manifests: /,
  );
  expect((await run('tail', 'cli/more', '--count', '1')).out).toContain('nothing waits');
  expect((await run('describe')).out.split('\n')).toEqual(['cli/more', 'cli/readings']);
  expect((await run('describe', 'cli/none')).exit).toBe(1);
});
