import { evictDurableObject, reset, runDurableObjectAlarm, runInDurableObject } from 'cloudflare:test';
import { env, exports } from 'cloudflare:workers';
import { afterAll, afterEach, beforeEach, describe, expect, test, vi } from 'vitest';
import { RUN_ALARM_MS } from '../../src/core/base/limits.ts';
import { SqlLedger } from '../../src/object/ledger.ts';
import { Schedule } from '../../src/object/schedule.ts';
import type { TableObject } from '../../src/object/table-object.ts';
import type { StatusView } from '../../src/object/views.ts';
import { systemClock } from '../../src/platform/system.ts';
import type { Env } from '../../src/settings.ts';
import { r2Bucket } from '../oracle/bucket.ts';
import { readTable } from '../oracle/reader.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';

/**
 * The object on the real runtime: eviction, power cuts, alarms, and faults of the bucket, planted at the binding that
 * test and object share. The date can be moved, and the alarms with it; timers keep the real time.
 */
const { LAKE, TABLES } = env as unknown as Env;
const service = (exports as unknown as { default: { fetch: typeof fetch } }).default;

const VERSION = /\/v2\.metadata\.json$/;
const HINT = /\/version-hint\.text$/;
/** Every object that an append creates or replaces. */
const PUTS = [
  ['a data file', /\/data\/.*\.parquet$/],
  ['the manifest', /-added-m\.avro$/],
  ['the manifest list', /\/snap-[^/]*\.avro$/],
  ['the version', VERSION],
  ['the pointer', HINT],
] as const;

// Real alarms and their retries take seconds on a busy machine.
vi.setConfig({ testTimeout: 20_000 });

let made = 0;

/** A table of its own for each test: the Worker remembers what it knows of tables for some seconds. */
class Table {
  readonly name = `t${++made}`;
  readonly prefix = `warehouse/object/${this.name}`;
  readonly #acknowledged: string[] = [];

  /** A new stub each time: one that saw its object abort stays broken. */
  get stub(): DurableObjectStub<TableObject> {
    return TABLES.getByName(`object/${this.name}`);
  }

  /** Makes the table and waits until nothing of that is left to do. */
  async create(flushInterval = '10s'): Promise<void> {
    const body = JSON.stringify({
      schema: {
        type: 'struct',
        fields: [
          { name: 'time', type: 'timestamptz', required: true },
          { name: 'device', type: 'string' },
        ],
      },
      time_column: 'time',
      series_key: ['device'],
      chunk: 'day',
      properties: { 'sluice.flush-interval': flushInterval },
    });
    await this.#call('PUT', '', { 'content-type': 'application/json' }, body);
    await this.settled();
  }

  /** Posts one row that no other call has made. */
  async post(batchId?: string): Promise<{ receipt: string; duplicate?: boolean }> {
    const time = this.#acknowledged.length;
    const accepted = await this.send(time, batchId);
    if (accepted.duplicate !== true) this.#acknowledged.push(`a ${time}`);
    return accepted;
  }

  send(time: number, batchId?: string): Promise<{ receipt: string; duplicate?: boolean }> {
    const headers = { 'content-type': 'application/json', ...(batchId && { 'idempotency-key': batchId }) };
    return this.#call('POST', '/rows', headers, JSON.stringify([{ time, device: 'a' }]));
  }

  flush(): Promise<{ flushed: boolean; status: StatusView }> {
    return this.#call('POST', '/flush');
  }

  async status(): Promise<StatusView> {
    return (await this.#call<{ status: StatusView }>('GET', '')).status;
  }

  alarm(): Promise<number | null> {
    return runInDurableObject(this.stub, (_, state) => state.storage.getAlarm());
  }

  /** Rows of the object's database: buffered groups and open intents. */
  ledger(): Promise<{ groups: number; failures: number | null }> {
    return runInDurableObject(this.stub, (_, { storage }) => ({
      groups: storage.sql.exec<{ n: number }>('SELECT count(*) AS n FROM frame_groups').one().n,
      failures: new SqlLedger(storage, '').state().intent?.failures ?? null,
    }));
  }

  /** Waits until no alarm is set: one without work finds none and is not set again. */
  settled(): Promise<void> {
    return eventually(async () => expect(await this.alarm()).toBeNull());
  }

  /** Text of an object of the table, or null. Does not wake the object. */
  async text(name: string): Promise<string | null> {
    return (await (await LAKE.get(`${this.prefix}/${name}`))?.text()) ?? null;
  }

  /** The table is right, holds what was acknowledged once, and has these versions. */
  async expectExactlyOnce(versions = [1, 2]): Promise<void> {
    const bucket = r2Bucket(LAKE);
    const found = await rows(bucket, this.prefix);
    expect(found.map((row) => `${row['device']} ${(row['time'] as bigint) / 1000n}`).sort()).toEqual(
      [...this.#acknowledged].sort(),
    );
    expect((await readTable(bucket, this.prefix)).versions).toEqual(versions);
    await assertValidTable(bucket, this.prefix, { bucketName: 'sluice-lake', hintRequired: true });
  }

  async #call<T>(method: string, path: string, headers: Record<string, string> = {}, body?: string): Promise<T> {
    const url = `http://sluice/v1/tables/object/${this.name}${path}`;
    const response = await service.fetch(url, { method, headers, ...(body === undefined ? {} : { body }) });
    const text = await response.text();
    if (!response.ok) throw new Error(`${response.status} ${text}`);
    return JSON.parse(text) as T;
  }
}

function eventually(look: () => Promise<void>): Promise<void> {
  return vi.waitFor(look, { timeout: 10_000, interval: 10 });
}

/** Moves the date; what is due by then is due. Alarms that are set already keep their real time. */
function advance(ms: number): void {
  aheadMs += ms;
}

let aheadMs = 0;
/** Alarms go off so much before their time. */
let soonerMs = 0;
const realNow = Date.now;
Date.now = () => realNow() + aheadMs;

/** The date that the object reads is the one that its alarms are set by. */
async function shiftAlarms(table: Table): Promise<void> {
  await runInDurableObject(table.stub, (_, { storage }) => {
    const proto = Object.getPrototypeOf(storage) as DurableObjectStorage & { isShifted?: true };
    if (proto.isShifted) return;
    const { setAlarm, getAlarm } = proto;
    proto.isShifted = true;
    proto.setAlarm = function (atMs, options) {
      return setAlarm.call(this, Number(atMs) - aheadMs - soonerMs, options);
    };
    proto.getAlarm = async function (options) {
      const atMs = await getAlarm.call(this, options);
      return atMs === null ? null : atMs + aheadMs + soonerMs;
    };
  });
}

const realPut = LAKE.put.bind(LAKE) as (...args: unknown[]) => Promise<R2Object | null>;

/** Calls `fault` instead of the first put whose key matches; `hits` counts them. */
function atNextPut(key: RegExp, fault: (put: () => Promise<R2Object | null>) => Promise<R2Object | null>) {
  const plan = { hits: 0 };
  vi.spyOn(LAKE, 'put').mockImplementation((async (...args: unknown[]) => {
    const put = () => realPut(...args);
    if (plan.hits > 0 || !key.test(args[0] as string)) return put();
    plan.hits++;
    return fault(put);
  }) as typeof LAKE.put);
  return plan;
}

const lost = (): Error => new Error('put: Network connection lost.');

/** Every call to the bucket fails. */
function failEverything(): void {
  for (const method of ['put', 'get', 'head', 'list', 'delete'] as const) {
    vi.spyOn(LAKE, method).mockRejectedValue(new Error(`${method}: Network connection lost.`));
  }
}

let table: Table;

beforeEach(async () => {
  table = new Table();
  aheadMs = 0;
  soonerMs = 0;
  await shiftAlarms(table);
});

afterEach(async () => {
  vi.restoreAllMocks();
  await reset();
});

afterAll(() => {
  // The next file of this runtime has the time as it is.
  aheadMs = 0;
  soonerMs = 0;
});

describe('object: eviction', () => {
  test('eviction: rows that were buffered are committed by the alarm, with nobody calling', async () => {
    await table.create('1s');
    await table.post();
    await table.post();
    await evictDurableObject(table.stub);
    await eventually(async () => expect(await table.text('metadata/version-hint.text')).toBe('2'));
    const { incarnation } = await table.status();
    expect(incarnation.found).toEqual({ open_intent: false, buffered_batches: 2 });
    await table.expectExactlyOnce();
  });

  test('eviction: a batch that comes again under its id is known, and is not taken twice', async () => {
    await table.create();
    const first = await table.post('batch-1');
    await evictDurableObject(table.stub);
    const again = await table.send(0, 'batch-1');
    expect(again).toMatchObject({ receipt: first.receipt, duplicate: true });
    await table.flush();
    await evictDurableObject(table.stub);
    expect(await table.send(0, 'batch-1')).toMatchObject({ receipt: first.receipt, duplicate: true });
    await table.expectExactlyOnce();
  });
});

describe('object: power cut in mid-commit', () => {
  /** Cuts the power while the conditional write has no answer; returns the write, for it to land after all. */
  async function cut(side: 'before' | 'after'): Promise<() => Promise<R2Object | null>> {
    await table.create();
    await table.post();
    const context = await runInDurableObject(table.stub, (_, state) => state);
    let late: () => Promise<R2Object | null> = () => Promise.reject(new Error('nothing was written'));
    const plan = atNextPut(VERSION, async (put) => {
      if (side === 'after') await put();
      late = put;
      context.abort('power cut');
      return new Promise(() => undefined);
    });
    await expect(table.flush()).rejects.toThrow();
    expect(plan.hits).toBe(1);
    vi.restoreAllMocks();
    return late;
  }

  test('power cut: before the write took effect, the intent is run again, and the late write changes nothing', async () => {
    const late = await cut('before');
    expect(await table.text('metadata/v2.metadata.json')).toBeNull();
    const { incarnation } = await table.status();
    expect(incarnation.found).toEqual({ open_intent: true, buffered_batches: 1 });
    await table.flush();
    expect((await table.status()).incarnation.marks).toMatchObject({ 'intent-replayed': 1 });
    const written = await table.text('metadata/v2.metadata.json');
    expect(written).not.toBeNull();
    expect(await late()).toBeNull();
    expect(await table.text('metadata/v2.metadata.json')).toBe(written);
    await table.settled();
    await table.expectExactlyOnce();
  });

  test('power cut: after the write took effect, the commit is found in the table', async () => {
    await cut('after');
    const written = await table.text('metadata/v2.metadata.json');
    const { incarnation } = await table.status();
    expect(incarnation.found).toEqual({ open_intent: true, buffered_batches: 1 });
    await table.flush();
    const { marks } = (await table.status()).incarnation;
    expect(marks).toMatchObject({ 'intent-replayed': 1, 'read-back-own': 1 });
    expect(await table.text('metadata/v2.metadata.json')).toBe(written);
    await table.settled();
    await table.expectExactlyOnce();
  });

  test('power cut: the alarm takes the intent up, with nobody calling', async () => {
    // The alarm stands some seconds behind the run, which ends at once.
    soonerMs = RUN_ALARM_MS - 500;
    await cut('before');
    advance(RUN_ALARM_MS);
    await eventually(async () => expect(await table.text('metadata/version-hint.text')).toBe('2'));
    const { incarnation } = await table.status();
    expect(incarnation.found.open_intent).toBe(true);
    await table.expectExactlyOnce();
  });
});

describe('object: the alarm', () => {
  test('alarm: one that is due at the very time of the one that is handled goes off all the same', async () => {
    await table.create();
    let fired = 0;
    await runInDurableObject(table.stub, (instance, { storage }) => {
      const schedule = new Schedule(storage, systemClock);
      instance.alarm = async (info) => {
        const firedMs = info?.scheduledTime ?? 0;
        schedule.fired(firedMs);
        schedule.handled();
        if (++fired < 20) schedule.arm(firedMs);
      };
      schedule.arm(0);
    });
    await eventually(async () => expect(fired).toBe(20));
  });

  test('alarm: set for the oldest row when rows are accepted, and not moved by younger ones', async () => {
    await table.create();
    expect(await table.alarm()).toBeNull();
    const beforeMs = Date.now();
    await table.post();
    const alarmMs = (await table.alarm()) ?? 0;
    expect(alarmMs).toBeGreaterThanOrEqual(beforeMs + 10_000);
    expect(alarmMs).toBeLessThanOrEqual(Date.now() + 10_000);
    advance(5_000);
    await table.post();
    // The same real time as before.
    expect(await table.alarm()).toBe(alarmMs + 5_000);
  });

  test('alarm: in one transaction with the rows, a power cut takes both or neither', async () => {
    await table.create();
    const context = await runInDurableObject(table.stub, (_, state) => state);
    const arm = Schedule.prototype.arm;
    const armed = vi.spyOn(Schedule.prototype, 'arm').mockImplementation(function (this: Schedule, dueMs) {
      arm.call(this, dueMs);
      // The rows are in, the alarm is set, neither is confirmed.
      if (dueMs !== null && armed.mock.calls.length === 1) context.abort('power cut');
    });
    await expect(table.send(0)).rejects.toThrow();
    expect(armed.mock.calls.length).toBeGreaterThan(0);
    armed.mockRestore();
    // The constructor sets the alarm for rows it finds, so the rows must be gone first of all.
    expect(await table.ledger()).toEqual({ groups: 0, failures: null });
    expect(await table.alarm()).toBeNull();

    await table.post();
    expect(await table.ledger()).toEqual({ groups: 1, failures: null });
    expect(await table.alarm()).not.toBeNull();
  });

  test('alarm: not set when there is no work, neither after a flush nor in a new incarnation', async () => {
    await table.create();
    await table.post();
    await table.flush();
    await table.settled();
    await evictDurableObject(table.stub);
    await table.status();
    expect(await table.alarm()).toBeNull();
    await table.expectExactlyOnce();
  });

  test('alarm: one that the platform lost is set again by the next incarnation', async () => {
    await table.create();
    await table.post();
    await runInDurableObject(table.stub, (_, state) => state.storage.deleteAlarm());
    expect(await table.alarm()).toBeNull();
    await evictDurableObject(table.stub);
    // Looking at it makes the incarnation.
    expect(await table.alarm()).not.toBeNull();
    await table.flush();
    await table.settled();
    await table.expectExactlyOnce();
  });

  test('alarm: never throws although the store fails, stays set, and later succeeds', async () => {
    await table.create();
    await table.post();
    failEverything();
    const logged = vi.spyOn(console, 'log');
    for (let failures = 1; failures <= 3; failures++) {
      advance(120_000);
      const ranMs = Date.now();
      expect(await runDurableObjectAlarm(table.stub)).toBe(true);
      expect(await table.ledger()).toEqual({ groups: 1, failures });
      // Later each time, and set: the platform forgets an alarm that failed six times.
      expect(await table.alarm()).toBeGreaterThanOrEqual(ranMs + 1000 * 2 ** (failures - 1));
      // The operator reads of each.
      const deferred = { event: 'commit-deferred', type: 'store-unavailable' };
      expect(JSON.parse(logged.mock.lastCall?.[0] as string)).toMatchObject(deferred);
    }
    vi.restoreAllMocks();
    advance(120_000);
    expect(await runDurableObjectAlarm(table.stub)).toBe(true);
    await table.settled();
    expect((await table.status()).buffer.rows).toBe(0);
    await table.expectExactlyOnce();
  });

  test('alarm: never throws in an incarnation that could not load the table yet', async () => {
    await table.create();
    await table.post();
    await evictDurableObject(table.stub);
    failEverything();
    for (let run = 0; run < 2; run++) {
      advance(120_000);
      expect(await runDurableObjectAlarm(table.stub)).toBe(true);
      expect(await table.alarm()).toBeGreaterThan(Date.now());
    }
    expect(await table.ledger()).toEqual({ groups: 1, failures: null });
    vi.restoreAllMocks();
    advance(120_000);
    expect(await runDurableObjectAlarm(table.stub)).toBe(true);
    await table.settled();
    await table.expectExactlyOnce();
  });
});

describe('object: the table is gone from the store', () => {
  test('gone table: rows that wait for it stay, and every answer that there is no table tells of them', async () => {
    await table.create();
    await table.post();
    const { objects } = await LAKE.list({ prefix: `${table.prefix}/` });
    const kept = await Promise.all(
      objects.map(async ({ key }) => [key, await (await LAKE.get(key))?.arrayBuffer()] as const),
    );
    await LAKE.delete(objects.map(({ key }) => key));
    await expect(table.flush()).rejects.toThrow(/^404 .*"type":"urn:sluice:problem:unknown-table"/);
    const told = await table.status().catch((error: Error) => JSON.parse(error.message.slice(4)));
    expect(told).toMatchObject({
      type: 'urn:sluice:problem:unknown-table',
      status: 404,
      table_status: {
        buffer: { batches: 1, rows: 1 },
        intent: { rows: 1, failures: 1 },
        last_error: { type: 'table-gone' },
      },
    });
    // The bucket is what it was again: nothing was given up meanwhile.
    for (const [key, bytes] of kept) await LAKE.put(key, bytes ?? '');
    await table.flush();
    await table.settled();
    await table.expectExactlyOnce();
  });
});

describe('object: one put fails', () => {
  for (const [what, key] of PUTS) {
    for (const side of ['response is lost', 'request is lost'] as const) {
      test(`fault: the ${side} when ${what} is written, rows are there once all the same`, async () => {
        await table.create();
        await table.post();
        const plan = atNextPut(key, async (put) => {
          if (side === 'response is lost') await put();
          throw lost();
        });
        advance(10_000);
        expect(await runDurableObjectAlarm(table.stub)).toBe(true);
        expect(plan.hits).toBe(1);
        advance(120_000);
        // By then something may be due or not; a request makes the object look.
        await table.flush();
        await table.settled();
        const { intent, buffer, hinted_version, incarnation } = await table.status();
        expect({ intent, rows: buffer.rows, hinted_version }).toEqual({ intent: null, rows: 0, hinted_version: 2 });
        if (key === VERSION) {
          const marks = side === 'response is lost' ? ['read-back-own', 'unknown-resolved'] : ['unknown'];
          for (const mark of marks) expect(incarnation.marks).toHaveProperty(mark, 1);
        }
        await table.expectExactlyOnce();
      });
    }
  }

  test('pointer: a lost write of it leaves the commit as it is, and the next alarm repairs it', async () => {
    await table.create();
    await table.post();
    const plan = atNextPut(HINT, () => Promise.reject(lost()));
    const { flushed, status } = await table.flush();
    expect(plan.hits).toBe(1);
    expect({ flushed, rows: status.buffer.rows, hinted: status.hinted_version }).toEqual({
      flushed: true,
      rows: 0,
      hinted: 1,
    });
    expect(await table.text('metadata/version-hint.text')).toBe('1');
    expect(await table.text('metadata/v2.metadata.json')).not.toBeNull();
    expect(await table.alarm()).not.toBeNull();
    advance(120_000);
    await runDurableObjectAlarm(table.stub);
    await table.settled();
    expect((await table.status()).hinted_version).toBe(2);
    expect(await table.text('metadata/version-hint.text')).toBe('2');
    await table.expectExactlyOnce();
  });
});
