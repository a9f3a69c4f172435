import { expect } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { PLACE, SERIES, SeededRandom, type SeriesRow, Service, type World } from './service.ts';
import { SimLedger } from './sim-ledger.ts';
import { VirtualClock } from './virtual-clock.ts';

/** Midnight of the first day of scenarios, and an hour: microseconds. */
export const DAY = BigInt(Date.UTC(2026, 0, 1)) * 1000n;
export const HOUR = 3_600_000_000n;

let next = 0n;

/** A row that no other call has made: its key is unique, so counting it once means that it was committed once. */
export function uniqueRow(device = 'a'): SeriesRow {
  next += 1n;
  return { device, time: DAY + next * 1_000_000n, v: next };
}

/** One table, one ledger, and the rows that were acknowledged. */
export interface Scenario {
  world: World;
  ledger: SimLedger;
  service: Service;
  /** Acknowledged rows, spelled. */
  acknowledged: string[];
}

export function newWorld(seed = 7): World {
  const clock = new VirtualClock();
  return { clock, random: new SeededRandom(seed), memory: new MemoryStore({ now: () => clock.now() }) };
}

/** A world with the series table in it, and a service that made it. */
export async function newScenario(seed = 7): Promise<Scenario> {
  const world = newWorld(seed);
  const ledger = new SimLedger('00000000000000aa');
  const service = new Service(world, ledger);
  await world.clock.until(service.admin.create(SERIES));
  return { world, ledger, service, acknowledged: [] };
}

export const spelled = (row: SeriesRow): string => `${row.device} ${row.time} ${row.v}`;

/** Appends rows and remembers them once the service said that it has them. */
export async function acknowledge(scenario: Scenario, given: SeriesRow[], service = scenario.service): Promise<void> {
  await scenario.world.clock.until(service.append(given));
  scenario.acknowledged.push(...given.map(spelled));
}

/** All rows of the table's newest version, read by readers that are not ours. */
export async function tableRows(world: World): Promise<string[]> {
  const found = await rows(storeBucket(world.memory), PLACE.prefix);
  return found.map((row) => `${row['device']} ${row['time']} ${row['v']}`).sort();
}

export async function expectValid(world: World, hintRequired = true): Promise<void> {
  await assertValidTable(storeBucket(world.memory), PLACE.prefix, { bucketName: 'sim-lake', hintRequired });
}

/** The table holds each acknowledged row once and nothing else, and every file of it is right. */
export async function expectExactlyOnce(scenario: Scenario): Promise<void> {
  expect(await tableRows(scenario.world)).toEqual([...scenario.acknowledged].sort());
  await expectValid(scenario.world);
  expect(scenario.ledger.state().buffer.frames).toBe(0);
  expect(scenario.ledger.state().intent).toBeNull();
}
