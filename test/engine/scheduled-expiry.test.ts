import { beforeEach, describe, expect, test } from 'vitest';
import { EXPIRY_INTERVAL_MIN_MS, EXPIRY_PACE } from '../../src/core/base/limits.ts';
import { acknowledge, expectExactlyOnce, newScenario, type Scenario, uniqueRow } from '../sim/scenario.ts';
import { Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf } from './file-operations.ts';

const HOUR_MS = 3_600_000;

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
  scenario.service.expireBySchedule();
});

/** So many commits, a few seconds apart: nothing of it is old. */
async function commits(count: number): Promise<void> {
  const { world, service } = scenario;
  for (let commit = 0; commit < count; commit++) {
    await acknowledge(scenario, [uniqueRow()]);
    await world.clock.until(service.writer.flush());
    world.clock.advance(2_000);
  }
}

/** What an alarm does. */
async function alarm(): Promise<void> {
  const { world, service } = scenario;
  const due = service.writer.dueMs();
  expect(due).not.toBeNull();
  world.clock.advance(Math.max(0, (due ?? 0) - world.clock.now()));
  await world.clock.until(service.writer.run());
  await world.clock.until(service.writer.pointed());
}

const said = (event: string) => scenario.service.events.filter((one) => one.event === event);

describe('scheduled expiry', () => {
  test('a table of which nothing is to expire sets no alarm', async () => {
    await commits(5);
    expect(scenario.service.writer.dueMs()).toBeNull();
    expect(scenario.service.expiry?.state).toEqual({ dueMs: null, failures: 0, lastError: null });
  });

  test('a table that came to rest is tidied up a while after its snapshots are past their age, and then left alone', async () => {
    await commits(9);
    const oldest = metadataOf(scenario.service).snapshots[0]['timestamp-ms'];
    expect(scenario.service.writer.dueMs()).toBe(oldest + HOUR_MS + 1 + EXPIRY_PACE.lateMs);
    expect(scenario.service.armedMs).toBe(scenario.service.writer.dueMs());
    await alarm();
    expect(metadataOf(scenario.service).snapshots).toHaveLength(5);
    expect(said('expired')).toMatchObject([{ changed: true, snapshots: 4 }]);
    await expectExactlyOnce(scenario);
    // What is left to do is the files.
    expect(scenario.service.writer.dueMs()).toBe(scenario.ledger.state().doomed.dueMs);
    await alarm();
    expect(scenario.service.writer.dueMs()).toBeNull();
    await expectExactlyOnce(scenario);
  });

  test('a table that is written all the time: a batch at once, and not one expiry a snapshot', async () => {
    const { world, service } = scenario;
    await world.clock.until(service.changes.properties({ 'timelake.max-snapshots': '10' }, []));
    await commits(EXPIRY_PACE.batch + 9);
    expect(said('expired')).toEqual([]);
    await commits(1);
    expect(said('expired')).toMatchObject([{ changed: true, snapshots: EXPIRY_PACE.batch }]);
    expect(metadataOf(service).snapshots).toHaveLength(10);
    await expectExactlyOnce(scenario);
    // Not again at once, however fast the table grows.
    await commits(EXPIRY_PACE.batch + 1);
    expect(said('expired')).toHaveLength(1);
    world.clock.advance(EXPIRY_INTERVAL_MIN_MS);
    await world.clock.until(service.writer.run());
    expect(said('expired')).toHaveLength(2);
  });

  test('a table that is written all the time: an expiry reads what was added since the one before, and no more', async () => {
    const { world, service } = scenario;
    await world.clock.until(service.changes.properties({ 'timelake.max-snapshots': '30' }, []));
    /** Reads of the run that expires the next batch. */
    const reads = async (): Promise<number> => {
      await commits(EXPIRY_PACE.batch - 1);
      world.clock.advance(EXPIRY_INTERVAL_MIN_MS);
      const before = said('expired').length;
      service.metered.reset();
      await commits(1);
      expect(said('expired')).toHaveLength(before + 1);
      return service.metered.usage().operations.get?.requests ?? 0;
    };
    await commits(30);
    // A list for each snapshot, and the manifests that they name; then those of a batch.
    expect(await reads()).toBeGreaterThan(100);
    expect(await reads()).toBeLessThan(60);
  });

  test('what fails is due again later and later, shown, and holds up nobody', async () => {
    const { service, world } = scenario;
    await commits(9);
    const down = service.store.faults.always('get', /snap-/, 'unreadable');
    const waits: number[] = [];
    for (let round = 1; round <= 8; round++) {
      await alarm();
      const { dueMs, failures, lastError } = service.expiry?.state ?? { dueMs: 0, failures: 0, lastError: null };
      expect(failures).toBe(round);
      expect(lastError).toMatchObject({ type: 'store-unavailable' });
      waits.push(Math.round(((dueMs ?? 0) - world.clock.now()) / 60_000));
    }
    expect(waits).toEqual([1, 2, 4, 8, 16, 32, 60, 60]);
    down.clear();
    await commits(1);
    await expectExactlyOnce(scenario);
    await alarm();
    expect(service.expiry?.state).toMatchObject({ failures: 0, lastError: null });
    expect(metadataOf(service).snapshots).toHaveLength(5);
  });

  test('another writer was first: nothing is done, and it is not asked again at once', async () => {
    const { service, world } = scenario;
    await commits(9);
    world.clock.advance(2 * HOUR_MS);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.expirer.expire(false));
    await alarm();
    expect(said('expired')).toMatchObject([{ changed: false, snapshots: 0 }]);
    expect(service.expiry?.state.dueMs).toBeNull();
  });

  test('not while the outcome of a commit is open, whose snapshot would be looked for', async () => {
    const { service, world, ledger } = scenario;
    await commits(9);
    await acknowledge(scenario, [uniqueRow()]);
    const late = service.store.faults.next('putIfAbsent', /v11\.metadata\.json$/, 'late');
    const blind = service.store.faults.always('list', null, 'unreadable');
    await world.clock.until(service.writer.flush());
    expect(ledger.state().lastError).toMatchObject({ type: 'commit-unknown' });
    world.clock.advance(2 * HOUR_MS);
    const { retryMs } = ledger.state().intent ?? { retryMs: 0 };
    expect(service.expiry?.state.dueMs).toBeGreaterThan(retryMs);
    blind.clear();
    await late.land();
    await world.clock.until(service.writer.run());
    await expectExactlyOnce(scenario);
    expect(said('expired')).toHaveLength(1);
  });

  test('the table says that nobody is to maintain it, or was dropped: never', async () => {
    const { service, world } = scenario;
    await commits(9);
    await world.clock.until(service.changes.properties({ 'timelake.auto-maintain': 'false' }, []));
    expect(service.writer.dueMs()).toBeNull();
    await world.clock.until(service.changes.properties({}, ['timelake.auto-maintain']));
    expect(service.writer.dueMs()).not.toBeNull();
    await world.clock.until(service.admin.drop());
    expect(service.writer.dueMs()).toBeNull();
  });
});
