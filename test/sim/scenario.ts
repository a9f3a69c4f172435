import { expect } from 'vitest';
import { MemoryStore } from '../../src/store/memory.ts';
import { storeBucket } from '../oracle/bucket.ts';
import type { ValidatorCache } from '../oracle/cache.ts';
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

/** A scenario as it was kept: what is in the store and in the ledger. Incarnations are not. */
export interface Kept {
  objects: Map<string, Uint8Array>;
  ledger: ReturnType<SimLedger['snapshot']>;
  nowMs: number;
  acknowledged: readonly string[];
}

export function keep({ world: { memory, clock }, ledger, acknowledged }: Scenario): Kept {
  const objects = new Map(memory.keys().map((key) => [key, memory.peek(key)?.bytes ?? new Uint8Array()]));
  return { objects, ledger: ledger.snapshot(), nowMs: clock.now(), acknowledged: [...acknowledged] };
}

/** A copy of its own of the kept scenario, with an incarnation that knows nothing yet. */
export function again({ objects, ledger: durable, nowMs, acknowledged }: Kept): Scenario {
  const clock = new VirtualClock(nowMs);
  const memory = new MemoryStore({ now: () => clock.now() });
  for (const [key, bytes] of objects) memory.plant(key, bytes);
  const world = { clock, memory, random: new SeededRandom(11) };
  const ledger = new SimLedger('copy');
  ledger.restore(durable);
  return { world, ledger, service: new Service(world, ledger), acknowledged: [...acknowledged] };
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

/** `cache`: of copies of one scenario, which share most of their files. */
export async function expectValid(world: World, hintRequired = true, cache?: ValidatorCache): Promise<void> {
  const options = { bucketName: 'sim-lake', hintRequired, ...(cache && { cache }) };
  await assertValidTable(storeBucket(world.memory), PLACE.prefix, options);
}

/** The table holds each acknowledged row once and nothing else, and every file of it is right. */
export async function expectExactlyOnce(scenario: Scenario, cache?: ValidatorCache): Promise<void> {
  expect(await tableRows(scenario.world)).toEqual([...scenario.acknowledged].sort());
  await expectValid(scenario.world, true, cache);
  expect(scenario.ledger.state().buffer.frames).toBe(0);
  expect(scenario.ledger.state().intent).toBeNull();
}
