import { describe, expect, test } from 'vitest';
import { SUMMARY_KEYS } from '../../src/core/iceberg/summary.ts';
import { crashAt } from '../sim/crash.ts';
import {
  acknowledge,
  expectExactlyOnce,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { Service } from '../sim/service.ts';

/** One life of the table: a commit, two batches, their flush. */
async function live(scenario: Scenario): Promise<void> {
  const { service, world } = scenario;
  for (let batch = 0; batch < 2; batch++) {
    const row = uniqueRow();
    const accepted = service.append([row]).then(
      () => true,
      () => false,
    );
    if (await world.clock.until(accepted)) scenario.acknowledged.push(spelled(row));
    else maybe.push(spelled(row));
  }
  world.clock.advance(20_000);
  await world.clock.until(service.writer.run());
}

/** Rows whose answer never came: they may be there, once. */
let maybe: string[] = [];

async function crashed(point: number): Promise<{ reached: boolean; points: number; marks: Map<string, number> }> {
  maybe = [];
  const scenario = await newScenario();
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.service.drain();
  const events = [scenario.service.events];
  scenario.service = new Service(scenario.world, scenario.ledger);
  events.push(scenario.service.events);
  const crash = crashAt(scenario.service, point);
  await live(scenario);
  scenario.ledger.hook = () => undefined;
  scenario.service = new Service(scenario.world, scenario.ledger);
  events.push(scenario.service.events);
  await scenario.world.clock.until(scenario.service.writer.check());
  await scenario.service.drain();
  // What the ledger had taken, it commits, answered or not.
  const sent = maybe.filter((row) => !scenario.acknowledged.includes(row));
  const present = await tableRows(scenario.world);
  scenario.acknowledged.push(...sent.filter((row) => present.includes(row)));
  await expectExactlyOnce(scenario);
  // Whoever made it, each commit has been told of.
  const told = new Set(events.flat().flatMap(({ event, commit_id }) => (event === 'committed' ? [commit_id] : [])));
  const made =
    scenario.service.table.base?.metadata.snapshots.map(({ summary }) => summary[SUMMARY_KEYS.commitId]) ?? [];
  expect(made.length).toBeGreaterThan(0);
  expect(made.filter((id) => !told.has(id))).toEqual([]);
  return { reached: crash.reached(), points: crash.points(), marks: scenario.service.marks };
}

test('B199 crash: 10,000 rows with a restart before and after a commit: rows of the table and of its totals are 10,000', async () => {
  const scenario = await newScenario();
  const { world, ledger } = scenario;
  for (let batch = 0; batch < 10; batch++) {
    await acknowledge(
      scenario,
      Array.from({ length: 1_000 }, () => uniqueRow()),
    );
    if (batch === 3 || batch === 6) {
      // The power fails when the version is written, and the other time before it is.
      ledger.hook = (step) => {
        if (step === (batch === 3 ? 'settle' : 'seal')) throw new Error('power cut');
      };
      world.clock.advance(20_000);
      await world.clock.until(scenario.service.writer.run());
      ledger.hook = () => undefined;
      scenario.service = new Service(world, ledger);
      await world.clock.until(scenario.service.writer.check());
    }
    if (batch % 2 === 1) await scenario.service.drain();
  }
  await scenario.service.drain();
  const { snapshots } = scenario.service.table.base?.metadata ?? { snapshots: [] };
  expect(snapshots.at(-1)?.summary['total-records']).toBe('10000');
  await expectExactlyOnce(scenario);
});

describe('crash: at every step of accepting and committing', () => {
  test('crash: before and after each store call and each ledger step, everything acknowledged is there once', {
    timeout: 120_000,
  }, async () => {
    const { points } = await crashed(Number.POSITIVE_INFINITY);
    expect(points).toBeGreaterThan(30);
    const marks = new Map<string, number>();
    for (let point = 0; point < points; point++) {
      const run = await crashed(point);
      expect(run.reached, `point ${point}`).toBe(true);
      for (const [mark, count] of run.marks) marks.set(mark, (marks.get(mark) ?? 0) + count);
    }
    console.info(`${points} crash points recovered, marks ${JSON.stringify([...marks])}`);
    expect(marks.get('intent-replayed') ?? 0).toBeGreaterThan(5);
    expect(marks.get('read-back-own') ?? 0).toBeGreaterThan(0);
  });
});
