import { evictDurableObject, runInDurableObject } from 'cloudflare:test';
import { env } from 'cloudflare:workers';
import { describe, expect, test } from 'vitest';
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

describe('SQL ledger: what it costs', () => {
  test('accept: one row written for a group of a hundred frames', async () => {
    await runInDurableObject(freshObject(), (_, state) => {
      const ledger = new SqlLedger(state.storage, '00000000000000aa');
      const frames = Array.from({ length: 100 }, () => ({
        digest: 'd',
        batchId: null,
        producer: null,
        schemaId: 0,
        rows: 1,
        partitions: 1,
        body: new Uint8Array(100),
      }));
      ledger.accept(frames, 1);
      const rows = state.storage.sql.exec('SELECT count(*) AS n FROM frame_groups').one();
      expect(rows).toEqual({ n: 1 });
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
