import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, test } from 'vitest';
import { ROW_BLOB_BYTES_MAX } from '../../src/core/base/limits.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { SqlLedger } from '../../src/object/ledger.ts';
import { migrate } from '../../src/object/migrate.ts';
import type { TableObject } from '../../src/object/table-object.ts';
import type { Env } from '../../src/settings.ts';
import { ledgerSuite } from '../suites/ledger.ts';

const tables = (env as unknown as Env).TABLES;
let made = 0;

function freshObject() {
  made++;
  return tables.getByName(`ledger/t${made}`);
}

ledgerSuite('SQL ledger', async (body) => {
  await runInDurableObject(freshObject(), (_, state) =>
    body({ open: () => new SqlLedger(state.storage, '00000000000000aa') }),
  );
});

/** A frame of so many bytes, each `fill`. */
function frameOf(bytes: number, fill = 0): NewFrame {
  return {
    digest: 'd',
    batchId: null,
    producer: null,
    schemaId: 0,
    rows: 1,
    partitions: 1,
    body: new Uint8Array(bytes).fill(fill),
  };
}

describe('SQL ledger: what it costs', () => {
  test('B194 accept: what gathers grows by rows, none near the 2 MB that the platform takes', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      const ledger = new SqlLedger(state.storage, '00000000000000aa');
      // Thirty at once, which share rows, and thirty one by one.
      ledger.accept(
        Array.from({ length: 30 }, (_, n) => frameOf(100_000, n)),
        1,
      );
      for (let n = 30; n < 60; n++) ledger.accept([frameOf(100_000, n)], 2);
      const longest = 'SELECT max(length(body) + length(frames)) AS bytes FROM frame_groups';
      expect(state.storage.sql.exec<{ bytes: number }>(longest).one().bytes).toBeLessThan(1_500_000);
      const found = new SqlLedger(state.storage, '00000000000000aa').frames(1, 60);
      expect(found.map(({ body }) => [body.length, body[0], body[99_999]])).toEqual(
        Array.from({ length: 60 }, (_, n) => [100_000, n, n]),
      );
    });
  });

  test('accept: one row written for a group of a hundred frames', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      const ledger = new SqlLedger(state.storage, '00000000000000aa');
      const frames = Array.from({ length: 100 }, () => frameOf(100));
      ledger.accept(frames, 1);
      const rows = state.storage.sql.exec('SELECT count(*) AS n FROM frame_groups').one();
      expect(rows).toEqual({ n: 1 });
    });
  });
});

describe('SQL ledger: what does not fit one row', () => {
  const ofApp = (epoch: number): NewFrame => ({
    // As long as thirty of them: hundreds of batches do for thousands.
    digest: 'd'.repeat(2000),
    batchId: `batch ${epoch} ${'x'.repeat(200)}`,
    producer: { app: 'p', epoch: BigInt(epoch), sparse: false },
    schemaId: 0,
    rows: 1,
    partitions: 1,
    body: Uint8Array.of(epoch),
  });

  /** Two megabytes are the most that a row may have, which the local runtime does not hold one to. */
  function longestHeaders({ sql }: DurableObjectStorage): number {
    return Number(sql.exec('SELECT max(length(CAST(frames AS BLOB))) AS n FROM frame_groups').one()['n']);
  }

  test('the batches of an app that goes on: as many as one was refused in front of', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      const open = () => new SqlLedger(state.storage, '00000000000000aa');
      const ledger = open();
      const count = 900;
      for (let from = 1; from <= count; from += 300) {
        ledger.accept(
          Array.from({ length: 300 }, (_, i) => ofApp(from + i)),
          1,
        );
      }
      const parked = { outcome: 'parked', type: 'app-parked', message: 'held up', atMs: 2 } as const;
      const committed = {
        outcome: 'committed',
        snapshotId: 1n,
        version: 2,
        tableUuid: 'u',
        committedMs: 2,
        rows: 0,
      } as const;
      ledger.seal(
        {
          ...{ form: 1, operation: 'append', commitId: 'c', snapshotId: 1n, timeMs: 2, ledgerId: '00000000000000aa' },
          ...{ first: 1, last: count, rows: count, tableUuid: 'u', retire: [] },
        },
        2,
      );
      ledger.settle(
        committed,
        Array.from({ length: count }, (_, i) => ({ sequence: i + 1, settlement: parked })),
      );
      expect(ledger.app('p').parked).toMatchObject({ epoch: 1n, behind: count - 1 });
      const verdict = { outcome: 'refused', type: 'epoch-skipped', message: 'given up', atMs: 3 } as const;
      const first = ledger.unpark('p', { ...ofApp(1), batchId: null, rows: 0 }, verdict, 3);
      for (const one of [ledger, open()]) {
        expect(one.state().buffer).toMatchObject({ frames: count, rows: count - 1 });
        expect(one.app('p')).toMatchObject({ parked: null, waiting: BigInt(count) });
        expect(one.receipt(count)).toEqual({ state: 'buffered' });
        const last = one.frames(first, first + count - 1).map(({ producer, body }) => [producer?.epoch, body[0]]);
        expect(last).toEqual(Array.from({ length: count }, (_, i) => [BigInt(i + 1), (i + 1) % 256]));
      }
      expect(longestHeaders(state.storage)).toBeLessThanOrEqual(ROW_BLOB_BYTES_MAX);
    });
  });

  test('batches that come together and ask for many columns each', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      const added = Array.from({ length: 200 }, (_, i) => ({
        id: 2_000_000_000 + i,
        name: `${i}${'ü'.repeat(100)}`,
        required: false,
        type: 'string',
      }));
      const frames = Array.from({ length: 100 }, (_, i) => ({
        ...ofApp(i),
        producer: null,
        proposal: { added, widened: [] },
      }));
      const ledger = new SqlLedger(state.storage, '00000000000000aa');
      expect(ledger.accept(frames, 1)).toBe(1);
      expect(new SqlLedger(state.storage, '00000000000000aa').frames(1, 100)).toMatchObject(
        frames.map(({ batchId, body }) => ({ batchId, body })),
      );
      expect(longestHeaders(state.storage)).toBeLessThanOrEqual(ROW_BLOB_BYTES_MAX);
    });
  });
});

describe('migrations', () => {
  test('migrate: doing it again changes nothing', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      migrate(state.storage);
      migrate(state.storage);
      expect(state.storage.sql.exec('SELECT version FROM schema_version').one()).toEqual({ version: 5 });
    });
  });

  test('migrate: a ledger of a newer build is not touched', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      state.storage.sql.exec('UPDATE schema_version SET version = 99');
      expect(() => migrate(state.storage)).toThrow('ledger was written by a newer build');
      expect(state.storage.sql.exec('SELECT version FROM schema_version').one()).toEqual({ version: 99 });
    });
  });

  test('migrate: an object of an older build answers unavailable, keeps its alarm, and touches nothing', async () => {
    const stub = freshObject();
    await runInDurableObject(stub, (_, state) => {
      state.storage.sql.exec('UPDATE schema_version SET version = 99');
    });
    await evictDurableObject(stub);
    // The stub's own type is too deep for the compiler.
    const object = stub as unknown as Pick<TableObject, 'ingest' | 'wake'>;
    const answered = await object.ingest();
    expect(answered).toMatchObject({ ok: false, problem: { kind: 'unavailable', type: 'ledger-newer' } });
    await object.wake();
    await runInDurableObject(stub, async (instance, state) => {
      await instance.alarm();
      expect(await state.storage.getAlarm()).not.toBeNull();
      await state.storage.deleteAlarm();
      expect(state.storage.sql.exec('SELECT version FROM schema_version').one()).toEqual({ version: 99 });
    });
  });
});
