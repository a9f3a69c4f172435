import { describe, expect, test } from 'vitest';
import { CHANGES_KEY } from '../../src/core/commit/changes.ts';
import type { Changed } from '../../src/engine/table-changes.ts';
import type { Fault } from '../sim/faults.ts';
import { acknowledge, expectExactlyOnce, newScenario, type Scenario, uniqueRow } from '../sim/scenario.ts';
import { Service } from '../sim/service.ts';

/** One commit and a branch at it, and a second commit. */
async function prepared(): Promise<Scenario> {
  const scenario = await newScenario();
  const { world, service } = scenario;
  for (let commit = 0; commit < 2; commit++) {
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    if (commit > 0) continue;
    await world.clock.until(service.changes.setRef({ name: 'dev', type: 'branch', snapshotId: null }));
  }
  return scenario;
}

const forward = ({ service }: Scenario): Promise<Changed> => service.changes.fastForward('dev', 'main');

/** The change is in the table once: asked for again it is nothing, and the list holds its id once. */
async function expectOnce(scenario: Scenario): Promise<void> {
  const { world, service } = scenario;
  await world.clock.until(service.writer.check());
  await service.drain();
  const again = await world.clock.until(forward(scenario));
  const { metadata } = again.base;
  expect(metadata.refs['dev']['snapshot-id']).toBe(metadata['current-snapshot-id']);
  const ids = metadata.properties[CHANGES_KEY].split(' ');
  expect(new Set(ids).size).toBe(ids.length);
  // create, branch, forward: no change was made twice
  expect(ids).toHaveLength(3);
  await expectExactlyOnce(scenario);
}

describe('faults: each store call of a change of metadata', () => {
  const faults: Fault[] = ['refused', 'request-lost', 'throttled', 'response-lost', 'late', 'unreadable'];
  for (const fault of faults) {
    test(`fault: ${fault} at each call`, { timeout: 60_000 }, async () => {
      for (let skip = 0; ; skip++) {
        const scenario = await prepared();
        // Nothing is cached: the load's calls are among those hit.
        scenario.service = new Service(scenario.world, scenario.ledger);
        const planted = scenario.service.store.faults.next('*', null, fault, { skip });
        await scenario.world.clock.until(forward(scenario)).catch((error) => {
          expect(['table-unreadable', undefined]).toContain(error.type);
        });
        await planted.land();
        await expectOnce(scenario);
        if (planted.hits > 0) continue;
        expect(skip).toBeGreaterThanOrEqual(8);
        return;
      }
    });
  }
});

class Crash extends Error {
  override readonly name = 'Crash';
}

describe('crash: a change of metadata', () => {
  test('crash: before and after each store call and ledger step, the change is there once when it is asked for again', {
    timeout: 60_000,
  }, async () => {
    const run = async (point: number): Promise<{ points: number; reached: boolean }> => {
      const scenario = await prepared();
      scenario.service = new Service(scenario.world, scenario.ledger);
      let at = 0;
      let dead = false;
      const step = () => {
        if (dead) throw new Crash('dead');
        if (at++ !== point) return;
        dead = true;
        throw new Crash(`at point ${point}`);
      };
      scenario.service.store.onBefore(step);
      scenario.service.store.onAfter(step);
      scenario.ledger.hook = step;
      await scenario.world.clock.until(forward(scenario)).catch(() => undefined);
      scenario.ledger.hook = () => undefined;
      scenario.service = new Service(scenario.world, scenario.ledger);
      await expectOnce(scenario);
      return { points: at, reached: dead };
    };
    const { points } = await run(Number.POSITIVE_INFINITY);
    expect(points).toBeGreaterThan(15);
    for (let point = 0; point < points; point++) expect((await run(point)).reached, `point ${point}`).toBe(true);
    console.info(`${points} crash points of a change recovered`);
  });
});
