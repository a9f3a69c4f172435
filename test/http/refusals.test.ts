import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { REFUSALS_GATHER_MS } from '../../src/core/base/limits.ts';
import { tableSettings } from '../../src/core/table/properties.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import { tellRefused } from '../../src/http/refusals.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { bytesOf, schemaOf, streamOf } from './bodies.ts';

/** What is told of a request that was refused: a line, and a count at the table's object. */

let lines: Record<string, unknown>[];
const lists: { table: string; counts: { type: string; count: number }[] }[] = [];
let nowMs = 2_000_000_000_000;

beforeEach(() => {
  lines = [];
  lists.length = 0;
  nowMs += 1_000_000;
  for (const method of ['log', 'error'] as const) {
    vi.spyOn(console, method).mockImplementation((text: string) => {
      lines.push(JSON.parse(text) as Record<string, unknown>);
    });
  }
});

afterEach(() => vi.restoreAllMocks());

const problem = { kind: 'conflict', type: 'table-changed', message: 'table was replaced', detail: {} };
const view = {
  tableUuid: 'u',
  schema: schemaOf({ v: 'long' }),
  spec: { 'spec-id': 0, fields: [] },
  settings: tableSettings({}),
};

function portsOf(sleep: AppPorts['sleep'] = async () => undefined): AppPorts {
  return {
    tokens: [tokenFor('very-secret', { name: 'telegraf', scopes: ['append'], tables: ['n/*'] })],
    object: (namespace, table) =>
      ({
        ingest: async () => ({ ok: true, value: view }),
        append: async () => {
          if (table === 'broken') throw new Error('bug');
          return { ok: false, problem };
        },
        refused: async (counts: []) => {
          lists.push({ table: `${namespace}/${table}`, counts });
        },
      }) as unknown as TableCalls,
    tables: () => Promise.reject(new Error('not asked')),
    latest: () => Promise.reject(new Error('not asked')),
    names: async () => [],
    rows: () => Promise.reject(new Error('not asked')),
    queue: () => {
      throw new Error('not asked');
    },
    now: () => nowMs,
    sleep,
  };
}

async function post(path: string, body: string, token = 'very-secret') {
  const waiting: Promise<unknown>[] = [];
  const context = { waitUntil: (promise: Promise<unknown>) => waiting.push(promise), passThroughOnException() {} };
  const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'x-request-id': 'r1' };
  const request = new Request(`http://sluice${path}`, {
    method: 'POST',
    // A plain stream: those that Node makes of bodies end in an error when they are read with buffers of the reader's.
    body: streamOf(bytesOf(body)),
    duplex: 'half',
    headers,
  } as RequestInit);
  const response = await createApp(() => portsOf()).fetch(request, {}, context as never);
  await Promise.all(waiting);
  return response.status;
}

describe('refusals: log', () => {
  it('each has one line, with who asked and why, and nothing that was sent', async () => {
    expect(await post('/v1/tables/n/a/rows?on_error=refuse&app=very-secret&epoch=1', '[{"v":"very-secret"}]')).toBe(
      422,
    );
    expect(await post('/v1/tables/m/a/rows', '[]')).toBe(403);
    expect(await post('/v1/tables/n/a/rows', '[]', 'very-secret-wrong')).toBe(401);
    expect(await post('/v1/nowhere', '[]')).toBe(404);
    const about = { event: 'refused', request: 'r1', method: 'POST' };
    const caller = { caller: 'telegraf' };
    expect(lines).toEqual([
      { ...about, ...caller, path: '/v1/tables/n/a/rows', status: 422, type: 'invalid-rows' },
      { ...about, ...caller, path: '/v1/tables/m/a/rows', status: 403, type: 'forbidden' },
      { ...about, path: '/v1/tables/n/a/rows', status: 401, type: 'unauthorized' },
    ]);
    expect(JSON.stringify(lines)).not.toContain('very-secret');
  });

  it('a fault of our own is told in full', async () => {
    expect(await post('/v1/tables/n/broken/rows', '[{"v":1}]')).toBe(500);
    expect(lines).toHaveLength(1);
    expect(lines[0]).toMatchObject({ event: 'request-failed', status: 500, type: 'internal' });
    expect(lines[0]['stack']).toContain('bug');
  });

  it('a success has none', async () => {
    expect(await post('/v1/tables/n/a/rows', '[]')).toBe(200);
    expect(lines).toEqual([]);
  });
});

describe('refusals: counts', () => {
  it('what the Worker refuses is told to the object; what the object refused it has counted', async () => {
    await post('/v1/tables/n/counted/rows', '[{"v":"x"}]');
    await post('/v1/tables/n/counted/rows', '[{"v":1}]');
    expect(lists).toEqual([{ table: 'n/counted', counts: [{ type: 'invalid-rows', count: 1 }] }]);
  });

  it('no refusal for want of a token, or of a right, calls an object', async () => {
    await post('/v1/tables/n/a/rows', '[]', 'wrong');
    await post('/v1/tables/m/a/rows', '[]');
    await post('/v1/tables/n/a.b/rows', '[]');
    expect(lists).toEqual([]);
  });

  it('points: by the table of each measurement', async () => {
    expect(await post('/api/v2/write?bucket=n', 'p1 v=1i 1\np2 v=2i 1')).toBe(400);
    expect(lists.sort((a, b) => (a.table < b.table ? -1 : 1))).toEqual([
      { table: 'n/p1', counts: [{ type: 'no-time-column', count: 1 }] },
      { table: 'n/p2', counts: [{ type: 'no-time-column', count: 1 }] },
    ]);
  });

  it('a burst is one call', async () => {
    let wake: (() => void)[] = [];
    const ports = portsOf((ms) => {
      expect(ms).toBe(REFUSALS_GATHER_MS);
      return new Promise((resolve) => wake.push(resolve));
    });
    const first = tellRefused(ports, 'n', 'burst', 'a');
    await Promise.all(['a', 'b', 'a'].map((type) => tellRefused(ports, 'n', 'burst', type)));
    expect([lists.length, wake.length]).toEqual([0, 1]);
    for (const go of wake) go();
    await first;
    const counts = [
      { type: 'a', count: 3 },
      { type: 'b', count: 1 },
    ];
    expect(lists).toEqual([{ table: 'n/burst', counts }]);
    wake = [];
    const second = tellRefused(ports, 'n', 'burst', 'a');
    expect(wake).toHaveLength(1);
    wake[0]();
    await second;
    expect(lists[1].counts).toEqual([{ type: 'a', count: 1 }]);
  });

  it('what a request left behind that was ended early is told by a later one', async () => {
    const lost = portsOf(() => new Promise(() => undefined));
    void tellRefused(lost, 'n', 'lost', 'a');
    nowMs += REFUSALS_GATHER_MS;
    await tellRefused(portsOf(), 'n', 'lost', 'a');
    expect(lists).toEqual([]);
    nowMs += REFUSALS_GATHER_MS;
    await tellRefused(portsOf(), 'n', 'lost', 'b');
    const counts = [
      { type: 'a', count: 2 },
      { type: 'b', count: 1 },
    ];
    expect(lists).toEqual([{ table: 'n/lost', counts }]);
  });
});
