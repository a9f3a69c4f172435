import { describe, expect, test } from 'vitest';
import { storeBucket } from '../oracle/bucket.ts';
import { loadTable } from '../oracle/reader.ts';
import type { Fault } from '../sim/faults.ts';
import {
  acknowledge,
  expectExactlyOnce,
  expectValid,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

/** Faults on each side of the effect. `late` lands only when the scenario is over. */
const FAULTS: Fault[] = ['refused', 'request-lost', 'throttled', 'response-lost', 'late', 'unreadable'];

/** Store calls of one append in the steady state, counted once so that the loops below miss none. */
async function callsOfAppend(prepare: (scenario: Scenario) => Promise<void>): Promise<number> {
  const scenario = await newScenario();
  await prepare(scenario);
  const from = scenario.service.store.log.length;
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.service.drain();
  return scenario.service.store.log.length - from;
}

const committedBefore = async (scenario: Scenario) => {
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.service.drain();
};

/** A new incarnation: nothing is cached, so the load's calls are among those hit. */
const restarted = async (scenario: Scenario) => {
  await committedBefore(scenario);
  scenario.service = new Service(scenario.world, scenario.ledger);
};

describe('faults: each store call of an append, before and after its effect', () => {
  for (const [state, prepare] of [
    ['a warm writer', committedBefore],
    ['a new incarnation', restarted],
  ] as const) {
    for (const fault of FAULTS) {
      test(`fault: ${fault} at each call of ${state}`, { timeout: 60_000 }, async () => {
        const calls = await callsOfAppend(prepare);
        expect(calls).toBeGreaterThanOrEqual(7);
        for (let skip = 0; skip < calls; skip++) {
          const scenario = await newScenario();
          await prepare(scenario);
          const planted = scenario.service.store.faults.next('*', null, fault, { skip });
          await acknowledge(scenario, [uniqueRow()]).catch((error) => {
            // A new incarnation that cannot read the table takes nothing, and says so.
            expect(error).toMatchObject({ type: 'table-unreadable' });
          });
          await scenario.service.drain();
          expect(planted.hits).toBe(1);
          await planted.land();
          await scenario.service.drain();
          await expectExactlyOnce(scenario);
        }
      });
    }
  }

  test('fault: two in a row at each call, the second one on the way back', { timeout: 60_000 }, async () => {
    const calls = await callsOfAppend(committedBefore);
    for (let skip = 0; skip < calls; skip++) {
      const scenario = await newScenario();
      await committedBefore(scenario);
      scenario.service.store.faults.next('*', null, 'response-lost', { skip });
      scenario.service.store.faults.next('*', null, 'request-lost', { skip: skip + 1 });
      await acknowledge(scenario, [uniqueRow()]);
      await scenario.service.drain();
      await expectExactlyOnce(scenario);
    }
  });
});

describe('faults: the conditional write', () => {
  test('B105 B123 commit: lost response, own commit read back', async () => {
    const scenario = await newScenario();
    await acknowledge(scenario, [uniqueRow()]);
    scenario.service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'response-lost');
    await scenario.service.drain();
    expect(scenario.service.count('read-back-own')).toBe(1);
    expect(scenario.service.count('unknown')).toBe(0);
    await expectExactlyOnce(scenario);
  });

  test('B125 commit: what fails after the write has won does not make it fail; who waits hears that it stands', async () => {
    const { service, world } = await newScenario();
    const row = uniqueRow();
    const won = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow-response');
    const waiting = service.append([row], { waitMs: 20_000 });
    await world.clock.until(won.reached);
    const down = service.store.faults.always('*', null, 'refused');
    won.release();
    expect(await world.clock.until(waiting)).toMatchObject({ state: { state: 'committed', version: 2 } });
    await world.clock.until(service.writer.pointed());
    expect(down.hits).toBeGreaterThan(0);
    expect(service.ledger.state()).toMatchObject({ intent: null, buffer: { frames: 0 } });
    down.clear();
    await service.drain();
    expect(await tableRows(world)).toEqual([spelled(row)]);
    await expectValid(world);
  });

  test('B120 commit: unknown, then the same bytes again; nothing was deleted meanwhile', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const late = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'late');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(service.count('unknown')).toBe(1);
    const open = scenario.ledger.state().intent;
    expect(open?.failures).toBe(1);
    expect((open?.retryMs ?? 0) - world.clock.now()).toBeGreaterThanOrEqual(900);
    expect(scenario.ledger.state().lastError?.type).toBe('commit-unknown');
    // New rows wait behind it.
    await acknowledge(scenario, [uniqueRow()]);
    expect(scenario.ledger.state().buffer.frames).toBe(2);
    await service.drain();
    await late.land();
    expect(service.store.log.filter((call) => call.operation === 'delete')).toEqual([]);
    expect(service.table.base?.version).toBe(3);
    await expectExactlyOnce(scenario);
  });

  test('commit: the late write lands before it is tried again', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const late = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'late');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    await late.land();
    await service.drain();
    expect(service.count('unknown-resolved')).toBe(1);
    expect(service.table.base?.version).toBe(2);
    await expectExactlyOnce(scenario);
  });

  test('B121 commit: read-back fails too, so it stays unknown, nothing is deleted, and the next run settles it', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'response-lost');
    const unreadable = service.store.faults.always('list', null, 'unreadable');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(service.count('unknown')).toBe(1);
    unreadable.clear();
    await service.drain();
    expect(service.store.log.filter((call) => call.operation === 'delete')).toEqual([]);
    expect(service.table.base?.version).toBe(2);
    await expectExactlyOnce(scenario);
  });

  test('commit: metadata that we could not load ourselves is never written', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const { sink } = service.table;
    const parseBase = sink.parseBase.bind(sink);
    sink.parseBase = (version, bytes, etag) => {
      if (version === 2) throw new Error('planted: not loadable');
      return parseBase(version, bytes, etag);
    };
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(await world.memory.head(`${PLACE.prefix}/metadata/v2.metadata.json`)).toBeNull();
    expect(scenario.ledger.state().intent?.failures).toBe(1);
    sink.parseBase = parseBase;
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('commit: created too late to be believed, and found in the chain', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const slow = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow-response');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(slow.reached);
    world.clock.advance(60_000);
    slow.release();
    await world.clock.until(run);
    expect(service.count('read-back-own')).toBe(1);
    await expectExactlyOnce(scenario);
  });

  test('commit: a name that was opened again is fenced, and the rows land in the real chain', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const slow = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(slow.reached);
    // Another service commits versions 2 to 4, and an engine trims version 2 while we are stalled.
    const other = new Service(world, new SimLedger('00000000000000bb'));
    for (let commit = 0; commit < 3; commit++) {
      const row = uniqueRow('other');
      await world.clock.until(other.append([row]));
      scenario.acknowledged.push(`other ${row.time} ${row.v}`);
      await other.drain();
    }
    await world.memory.delete([`${PLACE.prefix}/metadata/v2.metadata.json`]);
    world.clock.advance(60_000);
    slow.release();
    await world.clock.until(run);
    expect(service.count('fenced')).toBe(1);
    await service.drain();
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    const table = await loadTable(storeBucket(world.memory), PLACE.prefix, {}, () => undefined);
    expect(table?.version).toBe(5);
  });
});
