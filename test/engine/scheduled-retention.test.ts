import { beforeEach, describe, expect, test } from 'vitest';
import { RETENTION_INTERVAL_MIN_MS } from '../../src/core/base/limits.ts';
import { acknowledge, expectExactlyOnce, expectValid, newScenario, type Scenario, tableRows } from '../sim/scenario.ts';
import { Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf, on } from './file-operations.ts';

const DAY_MS = 86_400_000;
/** The clock of scenarios begins here: with the first day of rows. */
const START_MS = Date.UTC(2026, 0, 1);

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
  await scenario.world.clock.until(scenario.service.changes.properties({ 'timelake.retention': '2d' }, []));
  scenario.service.retainBySchedule();
});

/** Rows of one day in a commit of their own. */
async function commit(day: number, count = 2, service = scenario.service): Promise<void> {
  const rows = Array.from({ length: count }, (_, i) => on(day, day * 100 + i));
  await acknowledge(scenario, rows, service);
  await scenario.world.clock.until(service.writer.flush());
}

/** What an alarm does. */
async function alarm(service = scenario.service): Promise<void> {
  const { world } = scenario;
  const due = service.writer.dueMs();
  expect(due).not.toBeNull();
  world.clock.advance(Math.max(0, (due ?? 0) - world.clock.now()));
  await world.clock.until(service.writer.run());
  await world.clock.until(service.writer.pointed());
}

const said = (event: string) => scenario.service.events.filter((one) => one.event === event);

function forget(...days: number[]): void {
  scenario.acknowledged = scenario.acknowledged.filter(
    (text) => !days.includes(Math.floor((Number(text.split(' ')[1]) / 1000 - START_MS) / DAY_MS)),
  );
}

describe('scheduled retention', () => {
  test('a partition goes when it ended as long ago as the table keeps rows, whole, and the next one a day later', async () => {
    await commit(0);
    await commit(1);
    await commit(0);
    const { service } = scenario;
    expect(service.writer.dueMs()).toBe(START_MS + 3 * DAY_MS);
    expect(service.armedMs).toBe(service.writer.dueMs());
    await alarm();
    expect(said('retained')).toMatchObject([{ changed: true, files: 2, rows: '4', partitions: 1 }]);
    expect(metadataOf(service).snapshots.at(-1)?.summary).toMatchObject({
      operation: 'delete',
      'deleted-data-files': '2',
      'sluice.retention-cutoff': String(BigInt(START_MS + DAY_MS) * 1000n),
    });
    forget(0);
    await expectExactlyOnce(scenario);
    expect(service.retention?.state.dueMs).toBe(START_MS + 4 * DAY_MS);
    await alarm();
    expect(await tableRows(scenario.world)).toEqual([]);
    expect(service.retention?.state).toEqual({ dueMs: null, failures: 0, lastError: null });
    expect(service.writer.dueMs()).toBeNull();
    await expectValid(scenario.world);
  });

  test('rows that come when their day is past the limit are dropped again, one commit a minute at most', async () => {
    const { world, service } = scenario;
    world.clock.advance(5 * DAY_MS);
    await commit(0);
    expect(said('retained')).toHaveLength(1);
    const droppedMs = world.clock.now();
    await commit(1);
    await commit(4);
    expect(said('retained')).toHaveLength(1);
    const nextMs = service.writer.dueMs() ?? 0;
    expect(Math.abs(nextMs - droppedMs - RETENTION_INTERVAL_MIN_MS)).toBeLessThan(3_000);
    await alarm();
    expect(said('retained')).toHaveLength(2);
    forget(0, 1);
    await expectExactlyOnce(scenario);
  });

  test('an incarnation that finds the table: one read of the manifest list, and none once it knows', async () => {
    await commit(0);
    const { world } = scenario;
    world.clock.advance(60_000);
    const again = new Service(world, scenario.ledger);
    again.retainBySchedule();
    await world.clock.until(again.writer.check());
    expect(again.retention?.dueMs()).toBeLessThanOrEqual(world.clock.now());
    const readsBefore = again.store.log.filter(({ operation }) => operation === 'get').length;
    await world.clock.until(again.writer.run());
    const reads = again.store.log.filter(({ operation }) => operation === 'get').slice(readsBefore);
    expect(reads.map(({ key }) => key.replace(/^.*\/(snap|v)[^/]*$/, '$1'))).toEqual(['snap']);
    expect(again.writer.dueMs()).toBe(START_MS + 3 * DAY_MS);
    await alarm(again);
    forget(0);
    scenario.service = again;
    await expectExactlyOnce(scenario);
  });

  test('what fails is due again later and later, shown, and holds up nobody', async () => {
    const { service, world } = scenario;
    await commit(0);
    await commit(2);
    const down = service.store.faults.always('putIfAbsent', /-deleted-|-merged-|snap-/, 'refused');
    const waits: number[] = [];
    for (let round = 1; round <= 4; round++) {
      await alarm();
      const { dueMs, failures, lastError } = service.retention?.state ?? { dueMs: 0, failures: 0, lastError: null };
      expect(failures).toBe(round);
      expect(lastError).toMatchObject({ type: 'store-unavailable' });
      waits.push(Math.round(((dueMs ?? 0) - world.clock.now()) / 60_000));
    }
    expect(waits).toEqual([1, 2, 4, 8]);
    expect(said('retention-failed')).toHaveLength(4);
    down.clear();
    await commit(2, 3);
    await alarm();
    expect(service.retention?.state).toMatchObject({ failures: 0, lastError: null });
  });

  test('the limit is taken away while a drop is on its way: nothing goes', async () => {
    const { service, world } = scenario;
    await commit(0);
    world.clock.advance(4 * DAY_MS);
    const held = service.store.faults.next('head', /v4\.metadata\.json$/, 'slow', { skip: 2 });
    const running = service.writer.run();
    await world.clock.until(held.reached);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.changes.properties({ 'timelake.retention': '30d' }, []));
    held.release();
    await world.clock.until(running);
    expect(said('retained')).toMatchObject([{ changed: false, files: 0 }]);
    await expectExactlyOnce(scenario);
    expect(service.retention?.dueMs()).toBe(START_MS + 31 * DAY_MS);
  });

  test('no limit, nobody is to maintain the table, or it was dropped: never', async () => {
    const { service, world } = scenario;
    await commit(0);
    await world.clock.until(service.changes.properties({ 'timelake.auto-maintain': 'false' }, []));
    expect(service.writer.dueMs()).toBeNull();
    await world.clock.until(service.changes.properties({}, ['timelake.auto-maintain']));
    expect(service.writer.dueMs()).not.toBeNull();
    await world.clock.until(service.changes.properties({}, ['timelake.retention']));
    expect(service.writer.dueMs()).toBeNull();
    await world.clock.until(service.changes.properties({ 'timelake.retention': '1d' }, []));
    await world.clock.until(service.admin.drop());
    expect(service.writer.dueMs()).toBeNull();
  });
});
