import { beforeEach, describe, expect, test } from 'vitest';
import type { FileFilter } from '../../src/core/commit/file-filter.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import { reportOf } from '../../src/core/commit/report.ts';
import { newCache } from '../oracle/cache.ts';
import {
  acknowledge,
  again,
  DAY,
  expectValid,
  keep,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
} from '../sim/scenario.ts';
import { PLACE, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import {
  commit,
  deleteOf,
  metadataOf,
  ofDay,
  on,
  overwriteOf,
  replaceOf,
  rewriteManifestsOf,
} from './file-operations.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

const sorted = (rows: readonly SeriesRow[]) => rows.map(spelled).sort();

/** One commit a row. */
async function appendEach(rows: readonly SeriesRow[]): Promise<void> {
  for (const row of rows) {
    await acknowledge(scenario, [row]);
    await scenario.service.drain();
  }
}

/** Commits, checks the whole table with the independent validator, and gives the report. */
async function done(operation: Operation, rows: readonly SeriesRow[], service = scenario.service) {
  const result = await commit(scenario.world, service, operation);
  expect(result.outcome).toBe('committed');
  await service.writer.run();
  await expectValid(scenario.world, false);
  expect(await tableRows(scenario.world)).toEqual(sorted(rows));
  if (result.outcome !== 'committed') throw new Error(result.outcome);
  return reportOf(result.base.metadata, operation.commitId);
}

describe('operations: one after the other', () => {
  test('a table of many commits goes through all of them, valid after each', { timeout: 60_000 }, async () => {
    const { world, service } = scenario;
    const rows = Array.from({ length: 30 }, (_, i) => on(i % 3, i));
    await appendEach(rows);
    const of = (day: number) => rows.filter((_, i) => i % 3 === day);

    const replaced = await done(await replaceOf(world, service, 0, of(0)), rows);
    expect(replaced).toMatchObject({
      operation: 'replace',
      added: { files: 1, rows: 10n },
      removed: { files: 10, rows: 10n },
    });

    const deleted = await done(deleteOf(world, service, ofDay(1)), [...of(0), ...of(2)]);
    expect(deleted).toMatchObject({ operation: 'delete', removed: { files: 10, rows: 10n }, added: { files: 0 } });

    const fresh = [on(2, 100), on(2, 101)];
    const overwritten = await done(overwriteOf(world, service, ofDay(2), fresh), [...of(0), ...fresh]);
    expect(overwritten).toMatchObject({
      operation: 'overwrite',
      removed: { files: 10 },
      added: { files: 1, rows: 2n },
    });

    await appendEach([on(3, 1), on(3, 2)]);
    const all = [...of(0), ...fresh, on(3, 1), on(3, 2)];
    const rewritten = await done(rewriteManifestsOf(world, service), all);
    expect(rewritten).toMatchObject({ manifests: { created: 1, kept: 0 }, added: { files: 0 }, removed: { files: 0 } });

    const covered: FileFilter = { kind: 'time-range', from: null, to: DAY + 86_400_000_000n };
    await done(deleteOf(world, service, covered), [...fresh, on(3, 1), on(3, 2)]);
    await done(deleteOf(world, service, { kind: 'all' }), []);
    await appendEach([on(0, 7)]);
    await expectValid(world, false);
    expect(await tableRows(world)).toEqual([spelled(on(0, 7))]);
  });

  test('B113: rows that come late have a commit and a number of their own, never those of a delete beside them', async () => {
    const { world, service } = scenario;
    await appendEach([on(0, 1)]);
    await acknowledge(scenario, [on(0, 2)]);
    const held = service.store.faults.next('putIfAbsent', /v3\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const flushing = service.writer.run();
    await world.clock.until(held.reached);
    await acknowledge(scenario, [on(0, 3)]);
    const deleting = service.files.delete(ofDay(0));
    held.release();
    await world.clock.until(Promise.all([flushing, deleting]));
    await service.drain();
    const { snapshots } = metadataOf(service);
    expect(snapshots.map((one) => [one.summary.operation, one['sequence-number']])).toEqual([
      ['append', 1n],
      ['append', 2n],
      ['delete', 3n],
      ['append', 4n],
    ]);
    expect(await tableRows(world)).toEqual([spelled(on(0, 3))]);
    await expectValid(world);
  });

  test('another incarnation, which has nothing in memory, does the same', async () => {
    const { world, ledger } = scenario;
    const rows = Array.from({ length: 12 }, (_, i) => on(i % 2, i));
    await appendEach(rows);
    const service = new Service(world, ledger);
    await world.clock.until(service.table.load());
    await done(
      await replaceOf(
        world,
        service,
        0,
        rows.filter((_, i) => i % 2 === 0),
      ),
      rows,
      service,
    );
    const cold = new Service(world, ledger);
    await world.clock.until(cold.table.load());
    await done(
      deleteOf(world, cold, ofDay(0)),
      rows.filter((_, i) => i % 2 === 1),
      cold,
    );
  });

  test('cost: a delete writes three metadata files and a version, and reads nothing that is in memory', async () => {
    const { world, service } = scenario;
    await appendEach(Array.from({ length: 5 }, (_, i) => on(i, i)));
    const { store } = service;
    const from = store.log.length;
    await commit(world, service, deleteOf(world, service, ofDay(2)));
    const calls = store.log.slice(from).map(({ operation, key }) => `${operation} ${/[^/]*$/.exec(key)?.[0]}`);
    expect(calls.filter((call) => call.startsWith('get'))).toEqual([]);
    // Its file is alone in its manifest: no survivors to list.
    expect(calls.filter((call) => call.startsWith('put'))).toHaveLength(3);
    expect(calls.filter((call) => call.startsWith('head'))).toHaveLength(2);
  });
});

describe('operations: own commit first', () => {
  const rows = [on(0, 1), on(0, 2)];

  test('a replace whose answer was lost is committed, though its inputs are gone by its own hand', async () => {
    const { world, service } = scenario;
    await appendEach(rows);
    const operation = await replaceOf(world, service, 0, rows);
    service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'response-lost');
    await done(operation, rows);
    expect(service.count('read-back-own')).toBe(1);
    expect(service.count('inputs-gone')).toBe(0);
  });

  test('a replace that landed late is found by its next run, and its outputs stay', async () => {
    const { world, service } = scenario;
    await appendEach(rows);
    const operation = await replaceOf(world, service, 0, rows);
    const late = service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'late');
    expect((await commit(world, service, operation)).outcome).toBe('unknown');
    await late.land();
    await appendEach([on(1, 3)]);
    const again = await commit(world, service, operation);
    expect(again).toMatchObject({ outcome: 'committed', own: false });
    expect(await tableRows(world)).toEqual(sorted([...rows, on(1, 3)]));
    await expectValid(world, false);
  });

  test('a replace found by another incarnation long after is no conflict either', async () => {
    const { world, service } = scenario;
    await appendEach(rows);
    const operation = await replaceOf(world, service, 0, rows);
    await done(operation, rows);
    await appendEach([on(0, 3)]);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    expect(await commit(world, other, operation)).toMatchObject({ outcome: 'committed', own: false });
    expect(metadataOf(other).snapshots).toHaveLength(4);
  });
});

describe('operations: conflicts', () => {
  const rows = [on(0, 1), on(0, 2)];

  test('of two replaces of the same files at once one wins; the outputs of the other may go', async () => {
    const { world, service } = scenario;
    await appendEach(rows);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.table.load());
    const [mine, theirs] = [await replaceOf(world, service, 0, rows), await replaceOf(world, other, 0, rows)];
    const held = service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'slow');
    const run = service.table.commit(mine, () => undefined);
    await world.clock.until(held.reached);
    expect((await commit(world, other, theirs)).outcome).toBe('committed');
    held.release();
    const result = await world.clock.until(run);
    expect(result).toMatchObject({ outcome: 'conflict', type: 'inputs-gone', discardable: true });
    expect(service.count('lost-race')).toBe(1);
    await world.memory.delete(mine.uploads.map(({ key }) => key));
    expect(await tableRows(world)).toEqual(sorted(rows));
    await expectValid(world, false);
  });

  test('after an unknown write nothing may go, whatever the next run finds', async () => {
    const { world, service } = scenario;
    await appendEach(rows);
    const operation = await replaceOf(world, service, 0, rows);
    service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'request-lost');
    expect((await commit(world, service, operation)).outcome).toBe('unknown');
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.table.load());
    await commit(world, other, deleteOf(world, other, ofDay(0)));
    const result = await commit(world, service, operation);
    expect(result).toMatchObject({ outcome: 'conflict', type: 'inputs-gone', discardable: false });
  });

  test('a delete that finds nothing looks again when its base was not the newest', async () => {
    const { world, service } = scenario;
    await appendEach([on(1, 1)]);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([on(0, 5)]));
    await other.drain();
    await done(deleteOf(world, service, ofDay(0)), [on(1, 1)]);
    expect(service.count('base-moved')).toBe(1);
    expect(await commit(world, service, deleteOf(world, service, ofDay(0)))).toMatchObject({ outcome: 'nothing' });
  });

  test('a base whose manifests were expired and erased is left for the newest, not taken for damage', async () => {
    const { world, service } = scenario;
    await appendEach([on(0, 1), on(1, 1)]);
    const stale = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(stale.table.load());
    await commit(world, service, rewriteManifestsOf(world, service));
    // What only the older snapshots reach goes, as after their expiry.
    const live = new Set(service.table.base?.manifests?.map(({ manifestPath }) => manifestPath));
    const keys: string[] = [];
    for await (const { key } of world.memory.list(`${PLACE.prefix}/metadata/`)) {
      if (key.endsWith('-m.avro') && !live.has(PLACE.location + key.slice(PLACE.prefix.length))) keys.push(key);
    }
    expect(keys).toHaveLength(2);
    await world.memory.delete(keys);
    const result = await commit(world, stale, deleteOf(world, stale, ofDay(0)));
    expect(result.outcome).toBe('committed');
    expect(stale.count('stalled-past-expiry')).toBe(1);
    expect(await tableRows(world)).toEqual([spelled(on(1, 1))]);
  });

  test('a manifest that the newest version lists and the store lacks is damage', async () => {
    const { world, service } = scenario;
    await appendEach([on(0, 1)]);
    const fresh = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(fresh.table.load());
    const [listed] = service.table.base?.manifests ?? [];
    await world.memory.delete([PLACE.prefix + listed.manifestPath.slice(PLACE.location.length)]);
    await expect(commit(world, fresh, deleteOf(world, fresh, ofDay(0)))).rejects.toMatchObject({
      type: 'manifest-missing',
    });
  });
});

describe('operations: a fault at each store call', () => {
  const rows = [on(0, 1), on(0, 2), on(1, 3)];
  const fresh = on(0, 9);
  const cases: [string, (service: Service) => Promise<Operation> | Operation, readonly SeriesRow[]][] = [
    ['delete', (service) => deleteOf(scenario.world, service, ofDay(0)), [on(1, 3)]],
    ['replace', (service) => replaceOf(scenario.world, service, 0, rows.slice(0, 2)), rows],
    ['overwrite', (service) => overwriteOf(scenario.world, service, ofDay(0), [fresh]), [fresh, on(1, 3)]],
    ['rewrite-manifests', (service) => rewriteManifestsOf(scenario.world, service), rows],
  ];

  test.each(cases)(
    '%s: refused, lost on either way or late, it happens once',
    { timeout: 60_000 },
    async (_, make, expected) => {
      let faults = 0;
      let retried = 0;
      await appendEach(rows);
      const kept = keep(scenario);
      const cache = newCache();
      for (const fault of ['refused', 'request-lost', 'response-lost', 'late', 'throttled'] as const) {
        for (let call = 0; ; call++) {
          scenario = again(kept);
          const { service } = scenario;
          await scenario.world.clock.until(service.table.load());
          const operation = await make(service);
          const planted = service.store.faults.next('*', null, fault, { skip: call });
          let outcome = '';
          for (let run = 0; run < 4 && outcome !== 'committed'; run++) {
            const result = await commit(scenario.world, service, operation);
            outcome = result.outcome;
            expect(['committed', 'unknown', 'unavailable']).toContain(outcome);
            if (outcome === 'unknown' && run === 1) await planted.land();
            if (run > 0) retried++;
          }
          expect(outcome).toBe('committed');
          await service.store.faults.landAll();
          const made = metadataOf(service).snapshots.filter(
            ({ summary }) => summary['sluice.commit-id'] === operation.commitId,
          );
          expect(made).toHaveLength(1);
          expect(await tableRows(scenario.world)).toEqual(sorted(expected));
          if (planted.hits === 0) break;
          faults++;
          if (call % 3 === 0) await expectValid(scenario.world, false, cache);
        }
      }
      expect(faults).toBeGreaterThan(25);
      expect(retried).toBeGreaterThan(0);
    },
  );
});
