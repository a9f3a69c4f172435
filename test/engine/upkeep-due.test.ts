import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { acknowledge, expectExactlyOnce, newScenario, type Scenario, tableRows, uniqueRow } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const START_MS = Date.UTC(2026, 0, 1);

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

/** The object as it starts when nobody has asked it anything yet. */
function cold(): Service {
  const service = new Service(scenario.world, scenario.ledger);
  service.retainBySchedule();
  service.expireBySchedule();
  scenario.service = service;
  return service;
}

async function commit(): Promise<void> {
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.world.clock.until(scenario.service.writer.flush());
}

describe('upkeep: known before the table is loaded', () => {
  test('an idle table whose partition falls due: a cold object knows when, without a request, and drops it then', async () => {
    const { world } = scenario;
    cold();
    await world.clock.until(scenario.service.changes.properties({ 'timelake.retention': '2d' }, []));
    await commit();
    expect(scenario.ledger.state().choresDueMs).toBe(START_MS + 3 * DAY_MS);
    world.clock.advance(HOUR_MS);
    const idle = cold();
    expect(idle.writer.dueMs()).toBe(START_MS + 3 * DAY_MS);
    expect(idle.store.log).toEqual([]);
    world.clock.advance(3 * DAY_MS);
    const later = cold();
    await world.clock.until(later.writer.run());
    expect(await tableRows(world)).toEqual([]);
    await world.clock.until(later.writer.pointed());
    // Both snapshots are among the newest five: nothing is due any more, and that is kept too.
    expect(scenario.ledger.state().choresDueMs).toBeNull();
    expect(cold().writer.dueMs()).toBeNull();
  });

  test('the store is down when the alarm of a cold object goes off: it stays due, later each time', async () => {
    const { world } = scenario;
    cold();
    for (let n = 0; n < 9; n++) {
      await commit();
      world.clock.advance(2_000);
    }
    const dueMs = scenario.ledger.state().choresDueMs ?? 0;
    expect(dueMs).toBeGreaterThan(world.clock.now());
    world.clock.advance(dueMs - world.clock.now());
    const woken = cold();
    const down = woken.store.faults.always('*', null, 'unreadable');
    const waits: number[] = [];
    for (let round = 0; round < 3; round++) {
      await world.clock.until(woken.writer.run());
      const next = woken.writer.dueMs();
      expect(woken.armedMs).toBe(next);
      waits.push((next ?? 0) - world.clock.now());
      world.clock.advance(waits[round]);
    }
    expect(waits[0]).toBeGreaterThan(0);
    expect(waits[2]).toBeGreaterThan(waits[0]);
    down.clear();
    await world.clock.until(woken.writer.run());
    expect(woken.table.base?.metadata.snapshots).toHaveLength(5);
    await expectExactlyOnce(scenario);
  });

  test('a table that is written all the time: the kept time is written now and then, not with each commit', async () => {
    cold();
    let writes = 0;
    scenario.ledger.hook = (step, side) => {
      if (step === 'keepDue' && side === 'before') writes++;
    };
    for (let n = 0; n < 30; n++) {
      await commit();
      scenario.world.clock.advance(10_000);
    }
    expect(writes).toBe(1);
  });

  test('the table is gone: what was due for it is not', async () => {
    const { world, ledger } = scenario;
    ledger.keepDue(world.clock.now() - 1);
    await world.memory.delete([...world.memory.keys()]);
    const service = cold();
    expect(service.writer.dueMs()).not.toBeNull();
    await world.clock.until(service.writer.run());
    expect(ledger.state().choresDueMs).toBeNull();
    expect(service.writer.dueMs()).toBeNull();
  });
});

describe('uploads in parts', () => {
  test('one that a crash has left is given up an hour later, by whoever is there then', async () => {
    const { world, ledger } = scenario;
    const upload = await world.memory.multipart(`${PLACE.prefix}/data/x.parquet`);
    ledger.uploadBegan({
      key: `${PLACE.prefix}/data/x.parquet`,
      uploadId: upload.uploadId,
      begunMs: world.clock.now(),
    });
    const service = cold();
    expect(service.writer.dueMs()).toBe(world.clock.now() + ERASE_GRACE_MS);
    world.clock.advance(ERASE_GRACE_MS);
    const refused = service.store.faults.next('abort', null, 'refused');
    await world.clock.until(service.writer.run());
    expect([refused.hits, world.memory.openUploads]).toEqual([1, 1]);
    await service.drain();
    expect(world.memory.openUploads).toBe(0);
    expect(ledger.state().uploads).toEqual({ open: 0, oldestMs: null });
    expect(service.writer.dueMs()).toBeNull();
  });
});
