import { gzipSync } from 'node:zlib';
import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { Grant } from '../../src/core/access/grant.ts';
import { POINT_TABLES_MAX } from '../../src/core/base/limits.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { decodeFrameBody } from '../../src/core/columns/frame.ts';
import { tableSettings } from '../../src/core/table/properties.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import type { Problem } from '../../src/object/answer.ts';
import type { IngestView } from '../../src/object/views.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { bytesOf, schemaOf, streamOf, valuesOf } from './bodies.ts';

// Refusals are logged; refusals.test.ts looks at the lines.
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

/** Objects of tables that keep what they are sent, as the service's would. */
class Tables {
  readonly views = new Map<string, IngestView>();
  readonly frames = new Map<string, NewFrame[]>();
  /** What the next append to a table answers instead. */
  readonly problems = new Map<string, Problem>();
  asked = 0;

  add(name: string, fields: Parameters<typeof schemaOf>[0], properties: Record<string, string> = {}): void {
    const schema = schemaOf(fields);
    const settings = tableSettings(properties);
    this.views.set(name, { tableUuid: name, schema, spec: { 'spec-id': 0, fields: [] }, settings });
  }

  ports(token: string | null, grant: Partial<Grant> = {}): AppPorts {
    const object = (namespace: string, table: string) => {
      const name = `${namespace}/${table}`;
      return {
        ingest: async () => {
          this.asked++;
          const view = this.views.get(name);
          const missing = {
            kind: 'invalid',
            type: 'unknown-table',
            message: `table does not exist: ${name}`,
            detail: {},
          };
          return view === undefined ? { ok: false, problem: missing } : { ok: true, value: view };
        },
        append: async (frame: NewFrame) => {
          const problem = this.problems.get(name);
          this.problems.delete(name);
          if (problem !== undefined) return { ok: false, problem };
          const frames = this.frames.get(name) ?? [];
          this.frames.set(name, frames);
          const duplicate = frame.batchId !== null && frames.some((other) => other.batchId === frame.batchId);
          if (!duplicate) frames.push(frame);
          return { ok: true, value: { receipt: 'r', state: 'buffered', duplicate } };
        },
      } as unknown as TableCalls;
    };
    const notAsked = () => {
      throw new Error('not asked');
    };
    const tokens = token === null ? null : [tokenFor(token, grant)];
    return {
      tokens,
      object,
      tables: notAsked,
      latest: notAsked,
      names: notAsked,
      rows: notAsked,
      queue: notAsked,
      now: () => this.nowMs,
      sleep: async () => undefined,
    };
  }

  /** Later than the views of the test before are remembered. */
  nowMs = nextTime();

  rows(name: string): unknown[][] {
    const view = this.views.get(name) as IngestView;
    return (this.frames.get(name) ?? []).flatMap(({ body }) => {
      const columns = decodeFrameBody(body, view.schema);
      const lists = columns.columns.map(valuesOf);
      return Array.from({ length: columns.rows }, (_, row) => lists.map((list) => list[row]));
    });
  }
}

let lastTime = 1_800_000_000_000;
function nextTime(): number {
  lastTime += 100_000;
  return lastTime;
}

let tables: Tables;

beforeEach(() => {
  tables = new Tables();
  tables.add(
    'b/cpu',
    { time: 'timestamptz!', host: 'string', usage: 'double', n: 'long' },
    { 'timelake.time-column': 'time' },
  );
  tables.add('b/mem', { at: 'timestamp', host: 'string', used: 'long' }, { 'timelake.time-column': 'at' });
});

interface Sent {
  query?: string;
  headers?: Record<string, string>;
  token?: string | null;
  grant?: Partial<Grant>;
}

async function write(body: string | Uint8Array, { query = 'bucket=b', headers = {}, token = null, grant }: Sent = {}) {
  const app = createApp(() => tables.ports(token, grant));
  // A plain stream: those that Node makes of long bodies end in an error when they are read with buffers of the reader's.
  const stream = streamOf(typeof body === 'string' ? bytesOf(body) : body);
  const init = { method: 'POST', headers, body: stream, duplex: 'half' };
  const response = await app.request(`/api/v2/write?${query}`, init);
  const text = await response.text();
  const answer = { status: response.status, headers: response.headers };
  return { ...answer, text, body: text === '' ? null : (JSON.parse(text) as Record<string, unknown>) };
}

describe('influx write', () => {
  it('points go to the tables of their measurements, one batch each', async () => {
    const body =
      'cpu,host=a usage=0.5,n=3i 1700000000000000001\nmem,host=a used=5i 1700000000000000001\ncpu usage=1 1700000000000000002\n';
    const { status, text } = await write(body, {
      query: 'bucket=b&org=anything&precision=ns',
      headers: { 'content-type': 'text/plain; charset=utf-8' },
    });
    expect([status, text]).toEqual([204, '']);
    expect(tables.rows('b/cpu')).toEqual([
      [1_700_000_000_000_000n, 'a', 0.5, 3n],
      [1_700_000_000_000_000n, null, 1, null],
    ]);
    expect(tables.rows('b/mem')).toEqual([[1_700_000_000_000_000n, 'a', 5n]]);
    expect(tables.frames.get('b/cpu')).toHaveLength(1);
  });

  it('B036: a table that allows it gets columns of tags and fields, integers told from whole floats', async () => {
    tables.add(
      'b/new',
      { time: 'timestamptz', host: 'string' },
      { 'timelake.time-column': 'time', 'sluice.schema-evolution': 'additive' },
    );
    expect(await write('new,host=a,rack=7 n=3i,usage=1,up=t,note="x" 1\nnew usage=0.5,n=4i 2')).toMatchObject({
      status: 204,
    });
    const [frame] = tables.frames.get('b/new') ?? [];
    const added = frame.proposal?.added.map(({ name, type }) => [name, type]);
    expect(added).toEqual([
      ['rack', 'string'],
      ['n', 'long'],
      ['usage', 'double'],
      ['up', 'boolean'],
      ['note', 'string'],
    ]);
    const mixed = await write('new n=3i 1\nnew n=0.5 2');
    expect(mixed.status).toBe(400);
    expect(mixed.body?.['tables']).toMatchObject([{ errors: [{ line: 2, field: 'n', type: 'wrong-type' }] }]);
    expect(await write(`new u=${2n ** 64n - 1n}u 1`)).toMatchObject({ status: 400 });
  });

  it('compressed bodies are taken, and the precision counts', async () => {
    const answer = await write(gzipSync('cpu usage=1 1700000000'), {
      query: 'bucket=b&precision=s',
      headers: { 'content-encoding': 'gzip' },
    });
    expect(answer.status).toBe(204);
    expect(tables.rows('b/cpu')).toEqual([[1_700_000_000_000_000n, null, 1, null]]);
  });

  it('a point without a time is of now', async () => {
    expect((await write('cpu usage=1')).status).toBe(204);
    expect(tables.rows('b/cpu')[0][0]).toBe(BigInt(tables.nowMs) * 1000n);
  });

  it('the time goes to a timestamp named time in a table without a time column, and nowhere else', async () => {
    tables.add('b/plain', { v: 'double', time: 'timestamp' });
    tables.add('b/none', { v: 'double', time: 'long' });
    expect((await write('plain v=1 1700000000000000000')).status).toBe(204);
    expect(tables.rows('b/plain')).toEqual([[1, 1_700_000_000_000_000n]]);
    const { status, body } = await write('none v=1 1');
    expect(status).toBe(400);
    expect(body).toMatchObject({ tables: [{ measurement: 'none', type: 'no-time-column', dropped: 1 }] });
  });

  it('tags and fields are cast to their columns: tags are text, and whole floats are integers', async () => {
    tables.add('b/types', {
      time: 'timestamp',
      l: 'long',
      d: 'double',
      b: 'boolean',
      s: 'string',
      t: 'timestamp',
      c: 'decimal(18, 2)',
    });
    const body =
      'types,l=5,d=1.5,b=true,s=7 c=1234567890123456.78,t=1700000000000i 1\ntypes l=2,d=3i,t="2026-01-03T00:00:00Z" 1\n';
    expect((await write(body)).status).toBe(204);
    expect(tables.rows('b/types')).toEqual([
      [0n, 5n, 1.5, true, '7', 1_700_000_000_000_000n, 123_456_789_012_345_678n],
      [0n, 2n, 3, null, null, 1_767_398_400_000_000n, null],
    ]);
    const { body: refused } = await write('types s=7 1\ntypes s="7",b="yes" 1\ntypes l=1.5 1\n');
    expect(refused).toMatchObject({
      tables: [
        {
          errors: [
            { line: 1, field: 's', type: 'wrong-type' },
            { line: 2, field: 'b', type: 'wrong-type' },
            { line: 3, field: 'l', type: 'wrong-type' },
          ],
        },
      ],
    });
  });
});

describe('influx write: refusals', () => {
  it('a tag or field that the table does not have refuses the points of its measurement; others are written', async () => {
    const body = 'cpu usage=1 1\nmem used=1i 1\ncpu usage=1,extra=2 1\ncpu,rack=r usage=1 1\n';
    const answer = await write(body);
    expect(answer.status).toBe(400);
    expect(answer.headers.get('content-type')).toBe('application/json');
    expect(answer.body).toMatchObject({
      code: 'invalid',
      type: 'urn:sluice:problem:partial-write',
      status: 400,
      accepted: 1,
      dropped: 3,
      tables: [
        {
          measurement: 'cpu',
          type: 'invalid-rows',
          dropped: 3,
          errors: [
            { line: 3, field: 'extra', type: 'unknown-column' },
            { line: 4, field: 'rack', type: 'unknown-column' },
          ],
        },
      ],
    });
    expect(answer.body?.['message']).toBe(
      'partial write: cpu: batch has 2 bad rows, first at line 3: extra is a column that the table does not have; dropped=3',
    );
    expect(tables.rows('b/cpu')).toEqual([]);
    expect(tables.rows('b/mem')).toHaveLength(1);
  });

  it('B083: a NaN refuses the points of its measurement, told by line and field; with skip it costs its own', async () => {
    const body = 'cpu usage=1 1\ncpu usage=2,n=NaN 1\nmem used=1i 1\n';
    const refused = await write(body);
    const fault = { line: 2, field: 'n', type: 'malformed-value', value: 'NaN' };
    expect(refused.body).toMatchObject({ accepted: 1, dropped: 2, tables: [{ measurement: 'cpu', errors: [fault] }] });
    expect(tables.rows('b/cpu')).toEqual([]);
    const skipped = await write(body, { query: 'bucket=b&on_error=skip' });
    expect(skipped.status).toBe(400);
    expect(skipped.body).toMatchObject({ accepted: 2, dropped: 1, tables: [{ measurement: 'cpu', errors: [fault] }] });
    expect(tables.rows('b/cpu')).toEqual([[0n, null, 1, null]]);
  });

  it('B082: a time that is of another precision refuses, told by line', async () => {
    const { status, body } = await write('cpu usage=1 1700000000');
    expect(status).toBe(400);
    expect(body).toMatchObject({ tables: [{ errors: [{ line: 1, field: 'time', type: 'out-of-range' }] }] });
  });

  it('a line that is no line protocol refuses the whole request; with skip it is told and left out', async () => {
    const body = 'mem used=1i 1\ncpu usage 1\ncpu usage=1 1\n';
    const refused = await write(body);
    expect(refused.status).toBe(400);
    expect(refused.body).toMatchObject({
      type: 'urn:sluice:problem:malformed-line',
      code: 'invalid',
      line: 2,
      message: 'line has a tag or field without a value, at line 2: cpu usage 1',
    });
    expect([tables.rows('b/cpu'), tables.rows('b/mem')]).toEqual([[], []]);
    const skipped = await write(body, { query: 'bucket=b&on_error=skip' });
    expect(skipped.body).toMatchObject({ accepted: 2, dropped: 1, malformed: [{ line: 2, type: 'malformed-line' }] });
  });

  it('a measurement without a table, or of a name that no table has, is refused by itself', async () => {
    const { status, body } = await write('cpu usage=1 1\nnope v=1 1\na.b v=1 1\nnope v=2 1\n');
    expect(status).toBe(400);
    expect(body).toMatchObject({
      accepted: 1,
      dropped: 3,
      tables: [
        { measurement: 'nope', type: 'unknown-table', dropped: 2 },
        { measurement: 'a.b', type: 'bad-name', dropped: 1 },
      ],
    });
    expect((await write('nope v=1 1')).body?.['message']).toMatch(/^nothing written: nope: table does not exist/);
  });

  it('very many bad points end what is told of their table, and not the request', async () => {
    const { body } = await write(`${'cpu nope=1 1\n'.repeat(500)}mem used=1i 1\n`);
    expect(body).toMatchObject({ accepted: 1, dropped: 500 });
    const [told] = (body as { tables: { errors: unknown[] }[] }).tables;
    expect(told.errors).toHaveLength(100);
  });

  it('measurements of one request are bounded, and points of all of them together', async () => {
    const of = (count: number) => Array.from({ length: count }, (_, i) => `m${i} v=1 1\n`).join('');
    expect((await write(of(POINT_TABLES_MAX))).body).toMatchObject({ dropped: POINT_TABLES_MAX });
    const many = await write(of(POINT_TABLES_MAX + 1));
    expect([many.status, many.body?.['code']]).toEqual([413, 'request too large']);
    const points = await write(`${'cpu usage=1 1\n'.repeat(60_000)}${'mem used=1i 1\n'.repeat(40_001)}`);
    expect([points.status, points.body?.['type']]).toEqual([413, 'urn:sluice:problem:too-many-rows']);
    expect(tables.rows('b/cpu')).toEqual([]);
  });

  it('what may pass later is told so, and taken once when the same body is sent again', async () => {
    const body = 'cpu usage=1 1\nmem used=1i 1\n';
    const busy: Problem = { kind: 'unavailable', type: 'busy', message: 'buffer is full', detail: { retryAfter: 7 } };
    tables.problems.set('b/mem', busy);
    const first = await write(body);
    expect([first.status, first.headers.get('retry-after'), first.body?.['code']]).toEqual([
      429,
      '7',
      'too many requests',
    ]);
    tables.problems.set('b/mem', {
      kind: 'conflict',
      type: 'table-changed',
      message: 'table was made anew',
      detail: {},
    });
    const asked = tables.asked;
    const second = await write(body);
    expect([second.status, second.headers.get('retry-after')]).toEqual([503, '1']);
    expect((await write(body)).status).toBe(204);
    // The view of the table that changed was asked for again.
    expect(tables.asked).toBe(asked + 1);
    expect([tables.rows('b/cpu').length, tables.rows('b/mem').length]).toEqual([1, 1]);
  });

  it('a fault of the table is no fault of the points: clients keep them and send them again', async () => {
    const corrupt: Problem = {
      kind: 'corrupt',
      type: 'bad-metadata',
      message: 'metadata cannot be loaded',
      detail: {},
    };
    tables.problems.set('b/mem', corrupt);
    const body = 'cpu usage=1 1\nmem used=1i 1\n';
    const answer = await write(body);
    expect([answer.status, answer.body?.['code'], answer.body?.['type']]).toEqual([
      500,
      'internal error',
      'urn:sluice:problem:bad-metadata',
    ]);
    expect((await write(body)).status).toBe(204);
    expect([tables.rows('b/cpu').length, tables.rows('b/mem').length]).toEqual([1, 1]);
  });

  it('a batch is known by its body and precision when all its points have times, else by an idempotency key', async () => {
    const ids = () =>
      (tables.frames.get('b/cpu') ?? []).map((frame) => frame.batchId?.replace(/[0-9a-f]{64}/, 'digest') ?? null);
    await write('cpu usage=1 1');
    await write('cpu usage=1 1', { query: 'bucket=b&precision=s' });
    await write('cpu usage=1 1');
    expect(ids()).toEqual(['points/ns/digest', 'points/s/digest']);
    await write('cpu usage=1 1\ncpu usage=2');
    await write('cpu usage=1 1\ncpu usage=2');
    await write('cpu usage=3', { headers: { 'idempotency-key': 'mine' } });
    expect(ids().slice(2)).toEqual([null, null, 'mine']);
  });

  it('bucket and precision are asked for', async () => {
    for (const query of [
      '',
      'bucket=',
      'bucket=a.b',
      'bucket=b&precision=m',
      'bucket=b&precision=constructor',
      'bucket=b&on_error=no',
    ]) {
      const { status, body } = await write('cpu usage=1 1', { query });
      expect([status, body?.['code']], query).toEqual([400, 'invalid']);
      expect(body?.['message']).toBe(body?.['detail']);
    }
    expect((await write('')).body).toMatchObject({ type: 'urn:sluice:problem:empty-body' });
  });
});

describe('influx access', () => {
  it('a measurement that the token does not cover refuses the request, and nothing of it is taken', async () => {
    const headers = { authorization: 'Token secret' };
    const sent = { token: 'secret', headers, grant: { scopes: ['append'], tables: ['b/cpu', 'c/*'] } } as const;
    expect((await write('cpu usage=1 1', sent)).status).toBe(204);
    const texts = new Set<string>();
    for (const lines of ['cpu usage=2 2\nmem used=1i 1', 'nobody v=1 1\ncpu usage=2 2', 'mem used=1i 1']) {
      const { status, text } = await write(lines, sent);
      expect(status).toBe(403);
      texts.add(text);
    }
    // A bucket that it covers nothing of, before the body is read; a scope that it does not have.
    texts.add((await write('no line protocol', { ...sent, query: 'bucket=d' })).text);
    texts.add((await write('cpu usage=2 2', { ...sent, grant: { scopes: ['read'], tables: ['*'] } })).text);
    expect([...texts].map((text) => (JSON.parse(text) as { code: string }).code)).toEqual(['forbidden']);
    expect(tables.rows('b/cpu')).toHaveLength(1);
  });

  it('the token comes as Token or Bearer', async () => {
    for (const authorization of ['Token secret', 'Bearer secret', 'token secret']) {
      expect((await write('cpu usage=1 1', { token: 'secret', headers: { authorization } })).status).toBe(204);
    }
    for (const authorization of ['Token wrong', 'Token', 'Basic secret', 'Tokensecret', '']) {
      const { status, body } = await write('cpu usage=1 1', { token: 'secret', headers: { authorization } });
      expect([status, body?.['code']]).toEqual([401, 'unauthorized']);
    }
  });

  it('ping answers without a token, and other methods are told what there is', async () => {
    const app = createApp(() => tables.ports('secret'));
    expect((await app.request('/ping')).status).toBe(204);
    expect((await app.request('/ping', { method: 'HEAD' })).status).toBe(204);
    const got = await createApp(() => tables.ports(null)).request('/api/v2/write');
    expect([got.status, got.headers.get('allow')]).toEqual([405, 'POST']);
  });
});
