import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { STEPS } from '../../src/core/maintain/steps.ts';
import { liveTable } from '../../src/engine/live-table.ts';
import { acknowledge, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { metadataOf, on } from './file-operations.ts';
import { plantFile } from './planted-file.ts';

const DAY_MS = 86_400_000;

let scenario: Scenario;

/** Six commits of one day, some of old snapshots; retention, expiry and compaction have something to do. */
beforeEach(async () => {
  scenario = await newScenario();
  const { service, world } = scenario;
  const properties = { 'timelake.min-snapshots': '2', 'timelake.compact-min-files': '2', 'timelake.retention': '30d' };
  await world.clock.until(service.changes.properties(properties, []));
  for (let v = 0; v < 6; v++) await commit(v);
  world.clock.advance(2 * DAY_MS);
});

async function commit(v: number): Promise<void> {
  await acknowledge(scenario, [on(0, v)]);
  await scenario.service.drain();
}

const keyOf = (location: string) => PLACE.prefix + location.slice(PLACE.location.length);
const keys = (pattern: RegExp) => scenario.world.memory.keys().filter((key) => pattern.test(key));

function maintain(service = scenario.service) {
  const plan = { steps: STEPS, full: true, sweepAfter: null, dryRun: false };
  return scenario.world.clock.until(service.maintenance.run(plan));
}

/** An object that has nothing of the table in memory, with all its chores. */
function cold(): Service {
  const service = new Service(scenario.world, scenario.ledger);
  service.retainBySchedule();
  service.expireBySchedule();
  service.compactByItself();
  service.sweepBySchedule();
  scenario.service = service;
  return service;
}

/** Nothing but what was faulty is missing, also when all that could be queued has had its hour. */
async function expectKept(before: readonly string[], but: readonly string[] = []): Promise<void> {
  scenario.world.clock.advance(ERASE_GRACE_MS + 1);
  await scenario.world.clock.until(scenario.service.writer.run());
  const now = new Set(scenario.world.memory.keys());
  expect(before.filter((key) => !now.has(key))).toEqual(but);
}

/** Rows are taken and committed as ever. */
async function expectIngest(service: Service, count = 1): Promise<void> {
  for (let v = 100; v < 100 + count; v++) {
    await scenario.world.clock.until(service.append([on(1, v)]));
    const { error } = await scenario.world.clock.until(service.writer.flush());
    expect(error).toBeNull();
  }
  expect(service.ledger.state().buffer.frames).toBe(0);
}

const below = (key: string) => key.slice(PLACE.prefix.length + 1);

const faults = (service: Service) => service.table.faults.list.map(({ kind, what }) => [kind, what]);

describe('a faulted table: told by kind, nothing deleted, ingest goes on where it can', () => {
  test('a missing data file', async () => {
    const [file] = keys(/\/data\//);
    await scenario.world.memory.delete([file]);
    const data = keys(/\/data\//);
    const service = cold();
    await expectIngest(service);
    await scenario.world.clock.until(service.writer.run());
    expect(faults(service)).toEqual([['missing-data-file', below(file)]]);
    const since = service.table.faults.list[0].sinceMs;
    scenario.world.clock.advance(60_000);
    const { report } = (await maintain()).compact ?? {};
    expect(report?.leftAlone).toMatchObject([{ reason: 'unreadable', files: 1 }]);
    expect(service.table.faults.list).toMatchObject([{ kind: 'missing-data-file', sinceMs: since }]);
    // The others of its day are there, and are merged.
    const { files } = await scenario.world.clock.until(service.compactor.live.of(liveTable(service.table.base, PLACE)));
    expect(files.filter(({ entry }) => entry.dataFile.filePath.includes('time_day=2026-01-01'))).toHaveLength(2);
    await expectKept(data);
    await expectIngest(service);
    // The file is deleted from the table: the fault is gone with it.
    const paths = [PLACE.location + file.slice(PLACE.prefix.length)];
    await scenario.world.clock.until(service.files.delete({ kind: 'paths', paths }));
    await maintain();
    expect(faults(service)).toEqual([]);
  });

  test('a corrupt data file: it alone is left alone', async () => {
    const [, file] = keys(/\/data\//);
    const bytes = (await scenario.world.memory.get(file))?.bytes ?? new Uint8Array();
    scenario.world.memory.plant(file, bytes.fill(0xff, bytes.length - 30));
    const service = cold();
    expect((await maintain()).compact?.report?.leftAlone).toMatchObject([{ reason: 'unreadable', files: 1 }]);
    expect(faults(service)).toEqual([['corrupt-data-file', below(file)]]);
  });

  test('a corrupt manifest', async () => {
    const [manifest] = keys(/-added-m\.avro$/);
    scenario.world.memory.plant(manifest, new TextEncoder().encode('no manifest'));
    const before = [...scenario.world.memory.keys()];
    const service = cold();
    const report = await maintain();
    expect(report).toMatchObject({
      compact: { error: { type: 'avro-corrupt' } },
      expire: { error: { type: 'avro-corrupt' } },
    });
    expect(faults(service)).toContainEqual(['corrupt-manifest', below(manifest)]);
    await expectKept(before);
    // Enough for manifests to be merged: the others are.
    await expectIngest(service, 12);
    expect(service.table.base?.manifests?.length).toBeLessThan(12);
    expect(service.table.base?.manifests?.map(({ manifestPath }) => keyOf(manifestPath))).toContain(manifest);
    await expectKept(before);
  });

  test('a missing manifest', async () => {
    const [manifest] = keys(/-added-m\.avro$/);
    await scenario.world.memory.delete([manifest]);
    const before = [...scenario.world.memory.keys()];
    const service = cold();
    expect((await maintain()).compact).toMatchObject({ error: { type: 'manifest-missing' } });
    expect(faults(service)).toContainEqual(['missing-manifest', below(manifest)]);
    await expectIngest(service, 12);
    await expectKept(before);
  });

  test('delete files of another writer: its partition is not merged, the rest is', async () => {
    const { world } = scenario;
    await expectIngest(scenario.service, 3);
    await plantFile(scenario, { content: 1 });
    const before = [...world.memory.keys()];
    const service = cold();
    const report = await maintain();
    expect(report.compact?.report?.leftAlone).toMatchObject([{ reason: 'delete-files', files: 6 }]);
    const { files } = await world.clock.until(service.compactor.live.of(liveTable(service.table.base, PLACE)));
    expect(files.filter(({ entry }) => entry.dataFile.filePath.includes('time_day=2026-01-02'))).toHaveLength(1);
    expect(faults(service)).toEqual([['foreign-delete-files', 'data/d.parquet']]);
    expect(report.expire).toMatchObject({ error: null, report: { changed: true } });
    await expectIngest(service);
    const data = before.filter((key) => key.includes('/data/'));
    await expectKept(data);
  });

  test('a missing manifest list: rows wait, and go in once a person has rolled the table back', async () => {
    const { snapshots } = metadataOf(scenario.service);
    const list = keyOf(snapshots.at(-1)?.['manifest-list'] ?? '');
    await scenario.world.memory.delete([list]);
    const before = [...scenario.world.memory.keys()];
    const service = cold();
    await scenario.world.clock.until(service.append([on(1, 100)]));
    const { error } = await scenario.world.clock.until(service.writer.flush());
    expect(error).toMatchObject({ type: 'manifest-list-missing' });
    expect(service.ledger.state().buffer.rows).toBe(1);
    await expect(maintain()).resolves.toMatchObject({ compact: { error: { type: 'manifest-list-missing' } } });
    expect(faults(service)).toEqual([['missing-manifest-list', below(list)]]);
    await expectKept(before);
    await scenario.world.clock.until(service.changes.rollback(snapshots.at(-2)?.['snapshot-id'] ?? 0n));
    scenario.world.clock.advance(60_000);
    await scenario.world.clock.until(service.writer.flush());
    expect(service.ledger.state().buffer.rows).toBe(0);
  });
});
