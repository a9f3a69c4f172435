import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import { type MaintenancePlan, STEPS } from '../../src/core/maintain/steps.ts';
import { acknowledge, expectExactlyOnce, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE } from '../sim/service.ts';
import { metadataOf, on } from './file-operations.ts';

const DAY_MS = 86_400_000;
const ORPHAN = `${PLACE.prefix}/data/time_day=2026-01-01/lost.parquet`;

let scenario: Scenario;

/** Days 0 to 3 with two files each, of which day 0 is past the limit; snapshots that are old; a file of nobody's. */
beforeEach(async () => {
  scenario = await newScenario();
  const { service, world } = scenario;
  for (const [day, v] of [0, 1, 2, 3, 0, 1, 2, 3].entries()) {
    await acknowledge(scenario, [on(v, day)]);
    await service.drain();
  }
  world.memory.plant(ORPHAN, new Uint8Array(10));
  world.clock.advance(6 * DAY_MS);
  const properties = { 'timelake.retention': '5d', 'timelake.min-snapshots': '2' };
  await world.clock.until(service.changes.properties(properties, []));
});

function maintain(plan: Partial<MaintenancePlan> = {}) {
  const asked = { steps: STEPS, full: true, sweepAfter: null, dryRun: false, ...plan };
  return scenario.world.clock.until(scenario.service.maintenance.run(asked));
}

describe('maintenance', () => {
  test('a dry run tells of every step what it would do, and does nothing', async () => {
    const before = scenario.service.store.log.length;
    const report = await maintain({ dryRun: true });
    expect(report).toMatchObject({
      changed: false,
      retention: { error: null, report: { changed: false, files: 2, rows: 2n, partitions: 1 } },
      compact: { error: null, report: { changed: false, remaining: 4 } },
      expire: { error: null, report: { changed: false, snapshotIds: { length: 6 } } },
      erase: { error: null, report: { keys: 0, kept: 0, uploads: 0, remaining: 0 } },
      sweep: { error: null, report: { orphans: 1, eraseMs: null } },
    });
    const done = scenario.service.store.log.slice(before).map(({ operation }) => operation);
    expect(done.filter((operation) => /put|delete|multipart/.test(operation))).toEqual([]);
    expect(scenario.ledger.state().doomed.keys).toBe(0);
    await expectExactlyOnce(scenario);
  });

  test('all steps, each building on the one before; files go when their hour is over, and then there is nothing to do', async () => {
    const report = await maintain();
    expect(report).toMatchObject({
      changed: true,
      retention: { report: { changed: true, files: 2, partitions: 1 } },
      compact: { report: { changed: true, slices: { length: 3 }, remaining: 0 } },
      erase: { report: { keys: 0 } },
      sweep: { report: { orphans: 1 } },
    });
    expect(report.expire?.report?.snapshotIds.length).toBeGreaterThan(6);
    expect(metadataOf(scenario.service).snapshots.length).toBeLessThanOrEqual(4);
    scenario.acknowledged = scenario.acknowledged.filter((text) => !/ [04]$/.test(text));
    await expectExactlyOnce(scenario);
    expect(scenario.world.memory.keys()).toContain(ORPHAN);
    scenario.world.clock.advance(ERASE_GRACE_MS + 1);
    const queued = scenario.ledger.state().doomed.keys;
    expect((await maintain({ steps: ['erase'] })).erase).toMatchObject({
      report: { keys: queued, kept: 0, remaining: 0 },
    });
    expect(scenario.world.memory.keys()).not.toContain(ORPHAN);
    await expectExactlyOnce(scenario);
    const again = await maintain({ steps: ['retention', 'compact'] });
    expect(again).toMatchObject({ changed: false, expire: null, erase: null, sweep: null });
  });

  test('a step that fails is told; the steps beside it are done all the same', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.changes.properties({ 'gc.enabled': 'false' }, []));
    const report = await maintain();
    expect(report).toMatchObject({
      changed: true,
      retention: { error: null, report: { changed: true } },
      compact: { error: null, report: { changed: true } },
      index: { error: null, report: { changed: false, state: 'kept' } },
      expire: { error: { type: 'gc-disabled' }, report: null },
      erase: { error: null },
      sweep: { error: { type: 'gc-disabled' }, report: null },
    });
    expect(service.events.filter(({ event }) => event === 'maintain-failed').map(({ step }) => step)).toEqual([
      'expire',
      'sweep',
    ]);
    // Nothing went through: the request itself fails.
    await expect(maintain({ steps: ['expire', 'sweep'] })).rejects.toMatchObject({ type: 'gc-disabled' });
  });

  test('a table that is not there has no upkeep', async () => {
    await scenario.world.clock.until(scenario.service.admin.drop());
    await expect(maintain()).rejects.toMatchObject({ type: 'unknown-table' });
  });
});
