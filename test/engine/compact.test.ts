import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS, GROUP_WAIT_MS, MANIFEST_HELD_BYTES_MAX } from '../../src/core/base/limits.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { liveEntries, readTable, snapshotState } from '../oracle/reader.ts';
import { acknowledge, expectExactlyOnce, expectValid, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { deleteOf, metadataOf, ofDay, on } from './file-operations.ts';
import { plantFile } from './planted-file.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

/** So many commits of one row each. */
async function commits(count: number, row = (i: number): SeriesRow => on(0, i)): Promise<void> {
  for (let i = 0; i < count; i++) {
    await acknowledge(scenario, [row(i)]);
    await scenario.service.drain();
  }
}

async function liveFiles(): Promise<{ path: string; rows: number; sequence: bigint }[]> {
  const table = await readTable(storeBucket(scenario.world.memory), PLACE.prefix, { snapshots: 'current' });
  const state = snapshotState(table);
  return (state === undefined ? [] : [...liveEntries(state)]).map(({ dataFile, effective }) => ({
    path: dataFile.filePath,
    rows: Number(dataFile.recordCount),
    sequence: effective.sequenceNumber as bigint,
  }));
}

function maintain(full = false, dryRun = false) {
  return scenario.world.clock.until(scenario.service.compactor.maintain(full, dryRun));
}

const operations = () => metadataOf(scenario.service).snapshots.map(({ summary }) => summary.operation);

describe('compaction', () => {
  test('after appends: the eighth small file of a partition makes one of them, with their highest number', async () => {
    scenario.service.compactByItself();
    await commits(7);
    expect(operations()).toEqual(Array(7).fill('append'));
    await commits(1, () => on(0, 7));
    expect(operations()).toEqual([...Array(8).fill('append'), 'replace']);
    expect(await liveFiles()).toMatchObject([{ rows: 8, sequence: 8n }]);
    await expectExactlyOnce(scenario);
    await expectValid(scenario.world);
    expect(scenario.ledger.state().doomed).toEqual({ keys: 0, dueMs: null });
  });

  test('after appends: progress and the pointer go on, and rows of one key are one row afterwards', async () => {
    scenario.service.compactByItself();
    await commits(8, () => on(0, 5));
    expect(await liveFiles()).toMatchObject([{ rows: 1, sequence: 8n }]);
    expect(scenario.ledger.state().hintedVersion).toBe(scenario.service.table.base?.version);
    await commits(3, (i) => on(0, 10 + i));
    await expectValid(scenario.world);
  });

  test('after appends: a partition that data has left behind is one file, however few it had', async () => {
    scenario.service.compactByItself();
    await commits(2);
    await commits(6, (i) => on(3, i));
    expect((await liveFiles()).length).toBe(7);
    await commits(2, (i) => on(3, 6 + i));
    const files = await liveFiles();
    expect(files.filter(({ path }) => path.includes('time_day=2026-01-01'))).toMatchObject([{ rows: 2 }]);
    expect(files.filter(({ path }) => path.includes('time_day=2026-01-04'))).toMatchObject([{ rows: 8 }]);
    await expectExactlyOnce(scenario);
    await expectValid(scenario.world);
  });

  test('after appends: no timer is left, which would keep the object in memory', async () => {
    scenario.service.compactByItself();
    await commits(8, () => on(0, 5));
    expect(operations().at(-1)).toBe('replace');
    const { clock } = scenario.world;
    expect((clock.latest ?? 0) - clock.now()).toBeLessThanOrEqual(GROUP_WAIT_MS);
  });

  test('auto-maintain=false: nothing is merged until it is asked for', async () => {
    const { service, world } = scenario;
    service.compactByItself();
    await world.clock.until(service.changes.properties({ 'timelake.auto-maintain': 'false' }, []));
    await commits(9);
    expect(service.compactor.dueMs()).toBe(null);
    expect((await liveFiles()).length).toBe(9);
    expect((await maintain()).slices).toMatchObject([{ reason: 'tier', files: 9, made: { files: 1, duplicates: 0 } }]);
    expect((await liveFiles()).length).toBe(1);
  });

  test('maintain: full merges what is small, a dry run only tells, and there is nothing to do twice', async () => {
    await commits(3);
    await commits(2, (i) => on(1, i));
    const dry = await maintain(true, true);
    expect(dry).toMatchObject({ changed: false, remaining: 2, leftAlone: [] });
    expect(dry.slices.map(({ files, made }) => [files, made])).toEqual([
      [3, null],
      [2, null],
    ]);
    expect((await liveFiles()).length).toBe(5);
    const done = await maintain(true);
    expect(done).toMatchObject({ changed: true, remaining: 0 });
    expect(done.slices.map(({ files, made }) => [files, made?.rows])).toEqual([
      [3, 3n],
      [2, 2n],
    ]);
    expect((await liveFiles()).length).toBe(2);
    await expectExactlyOnce(scenario);
    await expectValid(scenario.world);
    expect(await maintain(true)).toMatchObject({ changed: false, slices: [] });
  });

  test('a conflict: files deleted while they are merged; the outputs are erased, and the rest is merged', async () => {
    await commits(8);
    await commits(8, (i) => on(1, i));
    const { service, world } = scenario;
    const held = service.store.faults.next('putIfAbsent', /data\/time_day=2026-01-01/, 'slow');
    const merging = service.compactor.run();
    await world.clock.until(held.reached);
    const deleted = await world.clock.until(service.table.commit(deleteOf(world, service, ofDay(0)), () => undefined));
    expect(deleted.outcome).toBe('committed');
    held.release();
    await world.clock.until(merging);
    expect(service.compactor.status.error).toMatchObject({ type: 'inputs-gone' });
    const [orphan, ...others] = service.store.log
      .filter(({ operation, key }) => operation === 'putIfAbsent' && key.includes('/data/time_day=2026-01-01'))
      .slice(8);
    expect([orphan.outcome, others]).toEqual(['created', []]);
    service.compactByItself();
    await service.drain();
    expect(await liveFiles()).toMatchObject([{ rows: 8 }]);
    world.clock.advance(ERASE_GRACE_MS + 1);
    await service.drain();
    expect(world.memory.keys()).not.toContain(orphan.key);
    await expectValid(scenario.world);
  });

  test('a slice under way: flushes go on, waited for or by their time, and the merge stands on top of them', async () => {
    const { service, world } = scenario;
    service.compactByItself();
    await commits(7);
    // Only the merge reads ranges.
    const held = service.store.faults.next('getRange', null, 'slow');
    await acknowledge(scenario, [on(0, 7)]);
    world.clock.advance((service.writer.dueMs() ?? 0) - world.clock.now());
    // As the alarm does: it ends with the slice, and no other goes off meanwhile.
    const alarm = service.writer.run();
    await world.clock.until(held.reached);
    const waited = await world.clock.until(service.append([on(1, 1)], { waitMs: 10_000 }));
    expect(waited.state.state).toBe('committed');
    await acknowledge(scenario, [on(1, 2)]);
    const flushed = (async () => {
      while (service.ledger.state().buffer.frames > 0) await world.clock.sleep(1_000);
    })();
    await world.clock.until(flushed);
    expect(operations()).toEqual(Array(10).fill('append'));
    held.release();
    await world.clock.until(alarm);
    expect(operations().at(-1)).toBe('replace');
    expect(service.compactor.status).toMatchObject({ failures: 0, last: { files: 8 } });
    expect(service.count('commits-beside-slice')).toBe(1);
    expect(await liveFiles()).toMatchObject([
      { rows: 8, sequence: 8n },
      { rows: 1, sequence: 10n },
      { rows: 1, sequence: 9n },
    ]);
    expect(scenario.ledger.state().hintedVersion).toBe(service.table.base?.version);
    await expectValid(world);
  });

  test("an append of another writer, between the merge's decision and its version: the merge stands on top of it", async () => {
    await commits(8);
    const { service, world } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const held = service.store.faults.next('putIfAbsent', /v10\.metadata\.json$/, 'slow');
    const merging = service.compactor.run();
    await world.clock.until(held.reached);
    await acknowledge(scenario, [on(0, 20)], other);
    await other.drain();
    held.release();
    await world.clock.until(merging);
    expect([service.count('lost-race'), service.count('rebased-over-append')]).toEqual([1, 1]);
    expect(service.compactor.status).toMatchObject({ failures: 0, last: { files: 8 } });
    expect(await liveFiles()).toMatchObject([
      { rows: 8, sequence: 8n },
      { rows: 1, sequence: 9n },
    ]);
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('an answer that is lost at the version: the merge stands, and its files are kept', async () => {
    await commits(8);
    const { service, world } = scenario;
    service.store.faults.next('putIfAbsent', /v10.metadata.json/, 'response-lost');
    await world.clock.until(service.compactor.run());
    expect(service.compactor.status).toMatchObject({ failures: 0, last: { files: 8 } });
    world.clock.advance(ERASE_GRACE_MS + 1);
    await service.drain();
    expect(await liveFiles()).toMatchObject([{ rows: 8 }]);
    await expectExactlyOnce(scenario);
    await expectValid(scenario.world);
  });

  test('a store that fails: the slice is tried again, later each time, and status says so', async () => {
    const { service, world } = scenario;
    service.compactByItself();
    await commits(7);
    const fault = service.store.faults.always('getRange', null, 'unreadable');
    await acknowledge(scenario, [on(0, 9)]);
    const waits: number[] = [];
    for (let run = 0; run < 4; run++) {
      await world.clock.until(service.writer.run());
      const { failures, retryMs, error } = service.compactor.status;
      if (failures > 0) waits.push(retryMs - world.clock.now());
      if (failures > 0) expect(error).toMatchObject({ type: 'store-unavailable' });
      world.clock.advance(Math.max(1, (service.writer.dueMs() ?? 0) - world.clock.now()));
    }
    expect(waits.length).toBeGreaterThan(1);
    expect(waits).toEqual([...waits].sort((a, b) => a - b));
    await expectExactlyOnce(scenario);
    fault.clear();
    await service.drain();
    expect(service.compactor.status).toMatchObject({ failures: 0, error: null });
    expect(await liveFiles()).toHaveLength(1);
    await expectExactlyOnce(scenario);
    await expectValid(scenario.world);
  });

  test('a file that is missing is left alone and told, and the others are merged', async () => {
    await commits(3);
    const { world } = scenario;
    const [gone] = await liveFiles();
    await world.memory.delete([PLACE.prefix + gone.path.slice(PLACE.location.length)]);
    const report = await maintain(true);
    const left = { leftAlone: [{ reason: 'unreadable', files: 1 }] };
    // It alone: the others of its run are merged.
    expect(report).toMatchObject({ changed: true, slices: [{ files: 2 }], ...left });
    expect(await maintain(true)).toMatchObject({ changed: false, slices: [], ...left });
  });

  test.each([
    ['the manifest', /-added-m\.avro$/],
    ['an output', /data\/.*\.parquet$/],
  ])('%s takes longer than the eraser waits: no version names what it has deleted (X12)', async (_, slow) => {
    await commits(3);
    const { service, world } = scenario;
    const held = service.store.faults.next('putIfAbsent', slow, 'slow');
    const merging = maintain(true);
    await world.clock.until(held.reached);
    world.clock.advance(ERASE_GRACE_MS + 1);
    await world.clock.until(service.eraser.run());
    held.release();
    // The slice gives way, and another one is begun.
    expect(await merging).toMatchObject({ slices: [{ files: 3 }] });
    expect(service.store.log.filter(({ key }) => key.includes('/data/')).length).toBeGreaterThan(3);
    await expectExactlyOnce(scenario);
  });

  test('a file that another writer has registered twice is left alone, and the others are merged (B105, B110)', async () => {
    await commits(3);
    const [twice] = await liveFiles();
    await plantFile(scenario, { filePath: twice.path });
    expect(await maintain(true)).toMatchObject({
      slices: [{ files: 2 }],
      leftAlone: [{ reason: 'listed-twice', files: 2 }],
    });
  });

  test('a file outside of the folder, or with bounds that nobody can read, holds up no other', async () => {
    await commits(3);
    await plantFile(scenario, {
      filePath: 's3://elsewhere/data/d.parquet',
      upperBounds: new Map([[1, new Uint8Array(4)]]),
    });
    expect(await maintain(true)).toMatchObject({
      slices: [{ files: 3 }],
      leftAlone: [{ reason: 'foreign-location', files: 1 }],
    });
  });

  test('manifests beyond what one commit may read: told beforehand, not merged for nothing', async () => {
    await commits(3);
    const { service, world } = scenario;
    const [first] = await liveFiles();
    const noise = new Uint8Array(MANIFEST_HELD_BYTES_MAX);
    for (let i = 0; i < noise.length; i++) noise[i] = world.random.next();
    await plantFile(scenario, { lowerBounds: new Map([[2, noise]]) });
    const made = () =>
      service.store.log.filter(({ operation, key }) => operation === 'putIfAbsent' && /\/data\//.test(key));
    const before = made().length;
    expect(await maintain(true)).toMatchObject({
      slices: [],
      leftAlone: [{ reason: 'too-many-manifests', files: 4 }],
    });
    expect(made().length).toBe(before);
    expect((await liveFiles()).map(({ path }) => path)).toContain(first.path);
  });

  test('no version can be written, and merges go on being tried: nothing of the table is deleted (B136, C11)', async () => {
    const { service, world } = scenario;
    await commits(8);
    const before = [...world.memory.keys()];
    const stuck = service.store.faults.always('putIfAbsent', /\/v[0-9]+\.metadata\.json$/, 'request-lost');
    service.compactByItself();
    for (let hour = 0; hour < 4; hour++) {
      await world.clock.until(service.writer.run());
      world.clock.advance(ERASE_GRACE_MS + 1);
      await world.clock.until(service.eraser.run());
    }
    expect(service.compactor.status.failures).toBeGreaterThan(1);
    expect(before.filter((key) => !world.memory.keys().includes(key))).toEqual([]);
    await expectExactlyOnce(scenario);
    stuck.clear();
    await service.drain();
    expect(await liveFiles()).toHaveLength(1);
    await expectExactlyOnce(scenario);
    // And of the tries there is nothing left once their hour is over.
    world.clock.advance(ERASE_GRACE_MS + 1);
    await service.drain();
    const data = world.memory.keys().filter((key) => key.includes('/data/'));
    expect(data).toHaveLength(9);
  });
});
