import { evictDurableObject, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { afterEach, describe, expect, test, vi } from 'vitest';
import { CostObject, IN_ORDER, type Used } from '../../bench/cost-run.ts';
import counted from '../../bench/results/cost-2026-11-30.json' with { type: 'json' };
import type { TableObject } from '../../src/object/table-object.ts';
import type { Env } from '../../src/settings.ts';

/**
 * What a table costs, counted: of an object as it is deployed, over its real database, with a store and a clock that are
 * simulated; and of the sweep over the lake, on the real runtime. README has the figures of `npm run bench -- cost`.
 */
const bindings = env as unknown as Env;
const { LAKE, TABLES } = bindings;
const worker = (exports as unknown as { default: { fetch: typeof fetch; scheduled(): Promise<unknown> } }).default;

const COMMITS = 60;
const NOTHING: Used = { classA: 0, classB: 0, rowsWritten: 0, alarmsSet: 0, rowsRead: 0, objectRequests: 0 };

afterEach(() => {
  vi.restoreAllMocks();
});

let made = 0;

/** Runs over an object that took so many batches, ten seconds apart, and has counted nothing since. */
async function afterAppends(count: number, body: (object: CostObject, used: Used) => Promise<void>): Promise<void> {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  await runInDurableObject(TABLES.getByName(`cost/t${++made}`), async (_, state) => {
    const object = new CostObject(state, bindings, Date.UTC(2026, 0, 8, 12));
    await object.create(IN_ORDER.definition);
    object.used();
    await object.appends(IN_ORDER, count, 10_000);
    await body(object, object.used());
  });
}

/** What one sweep comes to once the object is gone from memory. */
async function sweptCold(object: CostObject): Promise<Used> {
  await object.evict();
  await object.wake();
  return object.used();
}

describe('cost of a commit every ten seconds', () => {
  test('active table: operations, rows and requests are those of the README', { timeout: 60_000 }, async () => {
    await afterAppends(COMMITS, async (object, used) => {
      expect(object.parts.ledger.state().lastSequence).toBe(COMMITS);
      const [inOrder] = counted.tables;
      const expected = (name: keyof Used) => (inOrder.used[name] / inOrder.commits) * COMMITS;
      // The last batch is not committed yet, and nothing has been expired.
      for (const name of ['classA', 'rowsWritten', 'alarmsSet', 'objectRequests'] as const) {
        expect(used[name] / expected(name), name).toBeGreaterThan(0.93);
        expect(used[name] / expected(name), name).toBeLessThan(1.02);
      }
      // Most reads are for expiring and erasing, which begins after an hour.
      expect(used.classB / expected('classB')).toBeLessThan(1);
      // Of an append: file, index, manifest, list, version and pointer, two looks; rows in and out, intent, receipt, state, pointer.
      expect(used.classA / COMMITS).toBeLessThan(7);
      expect(used.rowsWritten / COMMITS).toBeLessThan(9);
      expect(used.alarmsSet / COMMITS).toBeLessThanOrEqual(2);
    });
  });

  test('receipts: forgetting one is one row more, as the README counts', async () => {
    await afterAppends(3, async (object) => {
      await object.rest();
      await object.until(object.clock.now() + 16 * 86_400_000);
      object.used();
      await object.appends(IN_ORDER, 1, 10_000);
      const without = object.used();
      await object.rest();
      await object.until(object.clock.now() + 16 * 86_400_000);
      // Those three went with the first run after their time; now it is the fourth's.
      object.used();
      await object.appends(IN_ORDER, 1, 10_000);
      expect(without.rowsWritten - object.used().rowsWritten).toBe(3 - 1);
    });
  });
});

describe('cost of an idle table', () => {
  test('idle table: once all is done there is no alarm, and a sweep uses nothing but its call', async () => {
    await afterAppends(10, async (object) => {
      await object.rest();
      expect(object.alarmMs).toBeNull();
      object.used();
      await object.wake();
      expect(object.used()).toEqual({ ...NOTHING, objectRequests: 1 });
      const cold = await sweptCold(object);
      expect(cold).toEqual({ ...NOTHING, objectRequests: 1, rowsRead: counted.idle.rowsRead });
      expect(object.alarmMs).toBeNull();
    });
  });

  test('waiting table: upkeep that is due later has its alarm, which no new incarnation and no sweep sets again', async () => {
    await afterAppends(10, async (object) => {
      await object.until(object.clock.now() + 60_000);
      const { alarmMs } = object;
      expect(alarmMs).toBeGreaterThan(object.clock.now() + 60_000);
      object.used();
      for (let sweep = 0; sweep < 3; sweep++) {
        expect(await sweptCold(object)).toMatchObject({ classA: 0, classB: 0, rowsWritten: 0, alarmsSet: 0 });
      }
      expect(object.alarmMs).toBe(alarmMs);
    });
  });

  test('sweep over the lake: it lists, and asks the bucket for nothing else', { timeout: 30_000 }, async () => {
    vi.spyOn(console, 'log').mockImplementation(() => undefined);
    const names = ['idle1', 'idle2', 'idle3'];
    const alarm = (name: string) =>
      runInDurableObject(TABLES.getByName(`cost/${name}`), (_, { storage }) => storage.getAlarm());
    const used = async (name: string): Promise<void> => {
      const body = JSON.stringify({
        schema: { type: 'struct', fields: [{ name: 'time', type: 'timestamptz', required: true }] },
        time_column: 'time',
      });
      const headers = { 'content-type': 'application/json' };
      const url = `http://sluice/v1/tables/cost/${name}`;
      expect((await worker.fetch(url, { method: 'PUT', headers, body })).status).toBe(201);
      const row = JSON.stringify([{ time: 0 }]);
      expect((await worker.fetch(`${url}/rows`, { method: 'POST', headers, body: row })).status).toBe(202);
      expect((await worker.fetch(`${url}/flush`, { method: 'POST' })).status).toBe(200);
      // What alarms still stand behind the work find nothing to do.
      while ((await alarm(name)) !== null) await runDurableObjectAlarm(TABLES.getByName(`cost/${name}`));
      await evictDurableObject(TABLES.getByName(`cost/${name}`) as unknown as DurableObjectStub<TableObject>);
    };
    await Promise.all(names.map(used));
    const spies = (['put', 'get', 'head', 'delete', 'createMultipartUpload', 'list'] as const).map(
      (method) => [method, vi.spyOn(LAKE, method)] as const,
    );
    await worker.scheduled();
    const calls = Object.fromEntries(spies.map(([method, spy]) => [method, spy.mock.calls.length]));
    // One page of namespaces, one of the tables of each.
    expect(calls).toEqual({ put: 0, get: 0, head: 0, delete: 0, createMultipartUpload: 0, list: 2 });
    for (const name of names) expect(await alarm(name)).toBeNull();
  });
});
