import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { acknowledge, expectExactlyOnce, newScenario, type Scenario, tableRows, uniqueRow } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { metadataOf, ofDay } from './file-operations.ts';
import { plantFile } from './planted-file.ts';

const DAY_MS = 86_400_000;
const GRACE_MS = 3 * DAY_MS;
const at = (path: string) => `${PLACE.prefix}/${path}`;

/** Files that nothing refers to, as attempts, crashes and other writers leave them, and one of nobody's kind. */
const ORPHANS = ['data/time_day=2026-01-01/lost.parquet', 'metadata/lost-added-m.avro', 'metadata/snap-9-lost.avro'];
const OTHERS = ['data/_SUCCESS', 'metadata/stats-1.puffin'];

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
  await commit();
  await commit();
});

async function commit(): Promise<void> {
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.service.drain();
}

function plant(keys: readonly string[]): void {
  for (const key of keys) scenario.world.memory.plant(at(key), new Uint8Array(100));
}

const there = (keys: readonly string[]) => keys.filter((key) => scenario.world.memory.keys().includes(at(key)));

function sweep(dryRun = false, service = scenario.service) {
  return scenario.world.clock.until(service.sweep.sweep(dryRun));
}

/** What is queued goes, an hour later. */
async function erased(): Promise<void> {
  scenario.world.clock.advance(ERASE_GRACE_MS + 1);
  await scenario.service.drain();
}

describe('orphan sweep', () => {
  test('a dry run tells; the sweep queues; an hour later they are gone, and nothing else is', async () => {
    plant([...ORPHANS, ...OTHERS]);
    expect(await sweep(true)).toMatchObject({ orphans: 0, young: expect.any(Number), eraseMs: null });
    scenario.world.clock.advance(GRACE_MS + 1);
    const all = [...scenario.world.memory.keys()];
    const dry = await sweep(true);
    expect(dry).toMatchObject({
      listed: all.length,
      orphans: 3,
      bytes: 300,
      sample: ORPHANS,
      eraseMs: null,
      next: null,
    });
    await erased();
    expect(there(ORPHANS)).toEqual(ORPHANS);
    const done = await sweep();
    expect(done).toMatchObject({ orphans: 3, eraseMs: scenario.world.clock.now() + ERASE_GRACE_MS });
    expect(there(ORPHANS)).toEqual(ORPHANS);
    // Asked again meanwhile: they are queued already.
    expect(await sweep()).toMatchObject({ orphans: 0 });
    await erased();
    expect(there([...ORPHANS, ...OTHERS])).toEqual(OTHERS);
    const left = new Set(scenario.world.memory.keys());
    expect(all.filter((key) => !left.has(key))).toEqual(ORPHANS.map(at));
    await expectExactlyOnce(scenario);
  });

  test('what a tag, or a version in the log, still reaches is no orphan', async () => {
    const { service, world } = scenario;
    const [first] = metadataOf(service).snapshots;
    await world.clock.until(service.files.delete(ofDay(0)));
    const data = [...world.memory.keys()].filter((key) => key.includes('/data/'));
    await world.clock.until(
      service.changes.properties({ 'timelake.min-snapshots': '1', 'timelake.snapshot-retention': '1s' }, []),
    );
    await world.clock.until(service.changes.setRef({ name: 'kept', type: 'tag', snapshotId: first['snapshot-id'] }));
    world.clock.advance(GRACE_MS + 1);
    // A ledger that knows of no expiry: as if another writer had expired, and left the files.
    const { doom } = scenario.ledger;
    scenario.ledger.doom = () => undefined;
    await world.clock.until(service.expirer.expire(false));
    scenario.ledger.doom = doom;
    expect(metadataOf(service).snapshots).toHaveLength(2);
    expect(await sweep(true)).toMatchObject({ orphans: 0 });
    // Their versions leave the log.
    await world.clock.until(service.changes.properties({ 'write.metadata.previous-versions-max': '1' }, []));
    await world.clock.until(service.changes.properties({ a: '1' }, []));
    const found = await sweep(true);
    expect(found.orphans).toBeGreaterThan(0);
    expect(found.sample.map(at).filter((key) => data.includes(key))).toHaveLength(1);
    await sweep();
    await erased();
    expect([...world.memory.keys()].filter((key) => key.includes('/data/'))).toHaveLength(1);
    expect(await tableRows(world)).toEqual([]);
  });

  test('files of a commit whose outcome stays open are kept, however long that takes (B144, X12)', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const late = service.store.faults.always('putIfAbsent', /v4\.metadata\.json$/, 'request-lost');
    await world.clock.until(service.writer.flush());
    expect(scenario.ledger.state().intent).not.toBeNull();
    plant(['data/younger.parquet']);
    world.clock.advance(10 * DAY_MS);
    expect(await sweep()).toMatchObject({ orphans: 0 });
    late.clear();
    await service.drain();
    await expectExactlyOnce(scenario);
    expect((await sweep()).sample).toContain('data/younger.parquet');
  });

  test('committed after it was swept: the eraser finds it in use and leaves it', async () => {
    const { service, world } = scenario;
    const before = await world.memory.get(at('metadata/v3.metadata.json'));
    await world.clock.until(service.files.delete(ofDay(0)));
    await world.clock.until(
      service.changes.properties({ 'timelake.min-snapshots': '1', 'timelake.snapshot-retention': '1s' }, []),
    );
    world.clock.advance(GRACE_MS + 1);
    scenario.ledger.doom = () => undefined;
    await world.clock.until(service.expirer.expire(false));
    Reflect.deleteProperty(scenario.ledger, 'doom');
    await world.clock.until(service.changes.properties({ 'write.metadata.previous-versions-max': '1' }, []));
    await world.clock.until(service.changes.properties({ a: '1' }, []));
    expect((await sweep()).orphans).toBeGreaterThan(2);
    // A person restores an old version.
    const next = at(`metadata/v${(service.table.base?.version ?? 0) + 1}.metadata.json`);
    await world.memory.putIfAbsent(next, before?.bytes ?? new Uint8Array());
    await erased();
    expect(await tableRows(world)).toHaveLength(2);
  });

  test.each([
    ['another scheme', `${PLACE.location.replace('s3:', 's3a:')}/data/d.parquet`],
    ['a doubled slash', `${PLACE.location}//data/d.parquet`],
  ])(
    'a file that another writer spells with %s is not taken for an orphan, nor erased after an expiry (B145)',
    async (_, filePath) => {
      const { service, world } = scenario;
      plant(['data/d.parquet']);
      await plantFile(scenario, { filePath });
      world.clock.advance(GRACE_MS + 1);
      expect(await sweep()).toMatchObject({ orphans: 0 });
      // Whoever had queued it: the eraser asks again.
      scenario.ledger.doom([at('data/d.parquet')], world.clock.now());
      await world.clock.until(service.eraser.run());
      expect(there(['data/d.parquet'])).toHaveLength(1);
      expect(scenario.ledger.state().doomed.keys).toBe(0);
    },
  );

  test('a table that lacks files of its own, or may share them, is not swept', async () => {
    const { service, world } = scenario;
    plant(ORPHANS);
    world.clock.advance(GRACE_MS + 1);
    const list = metadataOf(service).snapshots[0]['manifest-list'];
    const key = PLACE.prefix + list.slice(PLACE.location.length);
    const bytes = world.memory.peek(key)?.bytes ?? new Uint8Array();
    await world.memory.delete([key]);
    await expect(sweep()).rejects.toMatchObject({ kind: 'corrupt', type: 'manifest-list-missing' });
    expect(scenario.ledger.state().doomed.keys).toBe(0);
    await world.memory.putIfAbsent(key, bytes);
    await world.clock.until(service.changes.properties({ 'gc.enabled': 'false' }, []));
    await expect(sweep()).rejects.toMatchObject({ type: 'gc-disabled' });
  });
});

describe('scheduled sweep', () => {
  test('off unless the table asks for it; then at once, and again when its time has come, also for a cold object', async () => {
    const { world, ledger } = scenario;
    scenario.service.sweepBySchedule();
    expect(scenario.service.sweeping?.state).toEqual({ dueMs: null, failures: 0, lastError: null });
    plant(ORPHANS);
    world.clock.advance(GRACE_MS + 1);
    await world.clock.until(scenario.service.changes.properties({ 'sluice.sweep-interval': '7d' }, []));
    await world.clock.until(scenario.service.writer.run());
    expect(scenario.service.events.find(({ event }) => event === 'swept')).toMatchObject({ orphans: 3, is_last: true });
    const sweptMs = ledger.state().sweptMs ?? 0;
    expect(scenario.service.sweeping?.dueMs()).toBe(sweptMs + 7 * DAY_MS);
    world.clock.advance(ERASE_GRACE_MS + 1);
    await world.clock.until(scenario.service.writer.run());
    expect(there(ORPHANS)).toEqual([]);
    const cold = new Service(world, ledger);
    cold.sweepBySchedule();
    expect(cold.writer.dueMs()).toBeLessThanOrEqual(sweptMs + 7 * DAY_MS);
    expect(cold.store.log).toEqual([]);
  });

  test('what fails is due again later and later, and shown', async () => {
    const { world, service } = scenario;
    service.sweepBySchedule();
    const down = service.store.faults.always('list', new RegExp(`${PLACE.prefix}/$`), 'unreadable');
    await world.clock.until(service.changes.properties({ 'sluice.sweep-interval': '1d' }, []));
    await world.clock.until(service.writer.run());
    expect(service.sweeping?.state).toMatchObject({ failures: 1, lastError: { type: 'store-unavailable' } });
    const waitMs = (service.sweeping?.dueMs() ?? 0) - world.clock.now();
    expect(waitMs).toBeGreaterThan(50_000);
    down.clear();
    world.clock.advance(waitMs);
    await world.clock.until(service.writer.run());
    expect(service.sweeping?.state).toMatchObject({ failures: 0, lastError: null });
  });
});
