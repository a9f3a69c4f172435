import { beforeEach, describe, expect, test } from 'vitest';
import { ERASE_GRACE_MS, ERASE_KEYS_MAX } from '../../src/core/base/limits.ts';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import type { ExpireReport } from '../../src/engine/expirer.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { newCache, type ValidatorCache } from '../oracle/cache.ts';
import { rows } from '../oracle/rows.ts';
import type { Fault } from '../sim/faults.ts';
import {
  acknowledge,
  again,
  expectExactlyOnce,
  expectValid,
  keep,
  newScenario,
  type Scenario,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

const HOUR_MS = 3_600_000;
const DATA = `${PLACE.prefix}/data/`;
let scenario: Scenario;

beforeEach(async () => {
  scenario = await prepared();
});

/** So many commits, the first eight of which share no manifest with the last ones; two hours later. */
async function prepared(commits = 14): Promise<Scenario> {
  const made = await newScenario();
  for (let commit = 0; commit < commits; commit++) {
    await acknowledge(made, [uniqueRow()]);
    await made.service.drain();
  }
  made.world.clock.advance(2 * HOUR_MS);
  return made;
}

function current(service = scenario.service): TableMetadata {
  const metadata = service.table.base?.metadata;
  if (metadata === undefined) throw new Error('the table is not loaded');
  return metadata;
}

function expire(dryRun = false, given = scenario): Promise<ExpireReport> {
  return given.world.clock.until(given.service.expirer.expire(dryRun));
}

async function keysOf(given = scenario, prefix = PLACE.prefix): Promise<string[]> {
  const keys: string[] = [];
  for await (const { key } of given.world.memory.list(prefix)) keys.push(key);
  return keys;
}

/** Everything that is due in the next hours, as the object's alarm does it. */
async function later(given = scenario): Promise<void> {
  given.world.clock.advance(ERASE_GRACE_MS + 1);
  await given.service.drain();
}

describe('expire', () => {
  test('expire: snapshots past their age go, the newest five stay, files go an hour later and not before', async () => {
    const dry = await expire(true);
    expect(dry).toMatchObject({
      changed: false,
      snapshotIds: current()
        .snapshots.slice(0, 9)
        .map((s) => s['snapshot-id']),
    });
    const before = await keysOf();
    const done = await expire();
    expect(done).toMatchObject({ changed: true, snapshotIds: dry.snapshotIds, files: dry.files });
    // Nine lists and indexes, and the eight manifests that were merged away; no data file: all rows are in later snapshots too.
    expect(done.files).toBe(26);
    expect(current().snapshots).toHaveLength(5);
    expect((await keysOf()).filter((key) => !before.includes(key)).length).toBe(1);
    await expectExactlyOnce(scenario);
    const kept = await keysOf();
    await later();
    const after = await keysOf();
    expect(kept.length - after.length).toBe(done.files);
    expect(scenario.ledger.state().doomed).toEqual({ keys: 0, dueMs: null });
    await expectExactlyOnce(scenario);
    expect((await expire()).changed).toBe(false);
  });

  test('expire: two readers that hold old versions go on reading until the time of grace is over', async () => {
    const { service, world } = scenario;
    const read = (version: number) => rows(storeBucket(world.memory), PLACE.prefix, { version });
    const readers = [4, 9];
    const held = await Promise.all(readers.map(read));
    expect(held.map(({ length }) => length)).toEqual([3, 8]);
    const { eraseMs } = await expire();
    expect(current().snapshots.map((one) => one['sequence-number'])).not.toContain(8n);
    world.clock.advance((eraseMs ?? 0) - world.clock.now() - 1);
    await world.clock.until(service.writer.run());
    expect(await Promise.all(readers.map(read))).toEqual(held);
    world.clock.advance(1);
    await world.clock.until(service.writer.run());
    for (const reader of readers) await expect(read(reader)).rejects.toThrow();
    await expectExactlyOnce(scenario);
  });

  test('expire: a tag, a branch and a rollback keep what they reach, data files too (B138, X2, X3)', async () => {
    const { service, world } = scenario;
    const ids = current().snapshots.map((snapshot) => snapshot['snapshot-id']);
    await world.clock.until(service.changes.setRef({ name: 'kept', type: 'tag', snapshotId: ids[2] }));
    await world.clock.until(service.changes.rollback(ids[11]));
    scenario.acknowledged = scenario.acknowledged.slice(0, 12);
    const data = await keysOf(scenario, DATA);
    const done = await expire();
    expect(done.snapshotIds).not.toContain(ids[2]);
    expect(done.snapshotIds).toEqual(expect.arrayContaining([ids[12], ids[13]]));
    await later();
    // The rows that main was rolled back from are in no snapshot any more, and their files went with them.
    expect(data.length - (await keysOf(scenario, DATA)).length).toBe(2);
    await expectExactlyOnce(scenario);
    await world.clock.until(service.changes.dropRef('kept'));
    expect((await expire()).snapshotIds).toEqual([ids[2]]);
    await later();
    await expectExactlyOnce(scenario);
  });

  test('expire: a ref past its own age goes, and its snapshots with it', async () => {
    const { service, world } = scenario;
    const [first] = current().snapshots.map((snapshot) => snapshot['snapshot-id']);
    await world.clock.until(
      service.changes.setRef({ name: 'old', type: 'branch', snapshotId: first, maxRefAgeMs: HOUR_MS }),
    );
    const done = await expire();
    expect(done.refs).toEqual(['old']);
    expect(done.snapshotIds).toContain(first);
    expect(Object.keys(current().refs)).toEqual(['main']);
    await expectValid(scenario.world);
  });

  test('expire: a tag set while it is under way is seen, and its files are not erased (X5, B140)', async () => {
    const { service, world } = scenario;
    const ids = current().snapshots.map((snapshot) => snapshot['snapshot-id']);
    const held = service.store.faults.next('head', /v16\.metadata\.json$/, 'slow', { skip: 2 });
    const running = service.expirer.expire(false);
    await world.clock.until(held.reached);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.changes.setRef({ name: 'late', type: 'tag', snapshotId: ids[3] }));
    held.release();
    const done = await world.clock.until(running);
    expect(service.count('base-moved')).toBe(1);
    expect(done.snapshotIds).not.toContain(ids[3]);
    expect(done.snapshotIds).toHaveLength(8);
    await later();
    await expectExactlyOnce(scenario);
  });

  test('expire: gc.enabled=false keeps everything', async () => {
    await scenario.world.clock.until(scenario.service.changes.properties({ 'gc.enabled': 'false' }, []));
    await expect(expire()).rejects.toMatchObject({ type: 'gc-disabled' });
  });

  test('expire: progress outlives the snapshots that carried it (B115)', async () => {
    await scenario.world.clock.until(
      scenario.service.changes.properties({ 'timelake.min-snapshots': '1', 'timelake.max-snapshots': '1' }, []),
    );
    await expire();
    expect(current().snapshots).toHaveLength(1);
    const again = new Service(scenario.world, scenario.ledger);
    scenario.service = again;
    await acknowledge(scenario, [uniqueRow()]);
    await again.drain();
    await expectExactlyOnce(scenario);
    expect(again.count('ledger-lost') + again.count('ledger-restored')).toBe(0);
  });
});

describe('erase', () => {
  test('erase: what the table refers to again is taken out of the queue, not deleted', async () => {
    const { memory } = scenario.world;
    const old = await memory.get(`${PLACE.prefix}/metadata/v15.metadata.json`);
    await expire();
    const kept = await keysOf();
    // A person restores the version before the expiry.
    const base = scenario.service.table.base;
    await memory.putIfAbsent(
      `${PLACE.prefix}/metadata/v${(base?.version ?? 0) + 1}.metadata.json`,
      old?.bytes ?? new Uint8Array(),
    );
    await later();
    expect(scenario.ledger.state().doomed.keys).toBe(0);
    expect((await keysOf()).filter((key) => key.endsWith('.avro'))).toEqual(
      kept.filter((key) => key.endsWith('.avro')),
    );
  });

  test('erase: nothing that was queued goes once the table says that its files may be shared', async () => {
    const { service, world, ledger } = scenario;
    await expire();
    await world.clock.until(service.changes.properties({ 'gc.enabled': 'false' }, []));
    const kept = await keysOf();
    await later();
    expect(ledger.state().doomed.keys).toBe(0);
    expect(kept.filter((key) => !world.memory.keys().includes(key))).toEqual([]);
  });

  test('erase: thousands of keys go in bounded steps, and another incarnation goes on from there (B192, X11)', async () => {
    const { world, ledger, service } = scenario;
    const keys = Array.from({ length: 2 * ERASE_KEYS_MAX + 500 }, (_, i) => `${DATA}lost-${i}.parquet`);
    for (const key of keys) world.memory.plant(key, new Uint8Array(1));
    ledger.doom(keys, world.clock.now());
    const left: number[] = [];
    for (const one of [service, new Service(world, ledger), service]) {
      await world.clock.until(one.eraser.run());
      left.push((await keysOf(scenario, `${DATA}lost-`)).length);
    }
    expect(left).toEqual([ERASE_KEYS_MAX + 500, 500, 0]);
    expect(ledger.state().doomed.keys).toBe(0);
    await expectExactlyOnce(scenario);
  });

  test('erase: nothing is deleted while the table cannot be loaded, or is nowhere', async () => {
    await expire();
    const { service, world, ledger } = scenario;
    const queued = ledger.state().doomed.keys;
    const unreadable = service.store.faults.always('get', null, 'unreadable');
    world.clock.advance(ERASE_GRACE_MS + 1);
    await world.clock.until(service.writer.run());
    expect(ledger.state().doomed.keys).toBe(queued);
    const waits: number[] = [];
    for (let run = 0; run < 8; run++) {
      waits.push((service.eraser.dueMs() ?? 0) - world.clock.now());
      world.clock.advance(waits[run]);
      await world.clock.until(service.eraser.run());
    }
    expect(waits.slice(0, 3)).toEqual([60_000, 120_000, 240_000]);
    expect(waits[7]).toBe(3_600_000);
    unreadable.clear();
    const versions = (await keysOf()).filter((key) => /\/v[0-9]+\.metadata\.json$/.test(key));
    const held = await Promise.all(versions.map(async (key) => [key, await world.memory.get(key)] as const));
    await world.memory.delete(versions);
    world.clock.advance(3_600_000);
    await world.clock.until(service.writer.run());
    expect(ledger.state().doomed.keys).toBe(queued);
    for (const [key, stored] of held) await world.memory.putIfAbsent(key, stored?.bytes ?? new Uint8Array());
    world.clock.advance(3_600_000);
    await service.drain();
    expect(ledger.state().doomed.keys).toBe(0);
    await expectExactlyOnce(scenario);
  });

  test('erase: superseded metadata goes oldest first, below the log and well below the pointer (X10, I7)', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.changes.properties({ 'write.metadata.previous-versions-max': '5' }, []));
    for (let round = 0; round < 40; round++)
      await world.clock.until(service.changes.properties({ round: String(round) }, []));
    const young = await expire();
    expect(young.metadataFiles).toBe(15);
    world.clock.advance(2 * HOUR_MS);
    const done = await expire();
    const versions = (await keysOf())
      .map((key) => Number(/\/v([0-9]+)\.metadata\.json$/.exec(key)?.[1] ?? 0))
      .filter((version) => version > 0)
      .sort((a, b) => a - b);
    const newest = service.table.base?.version ?? 0;
    expect(done.metadataFiles).toBeGreaterThan(10);
    expect(versions).toEqual(Array.from({ length: 21 }, (_, index) => newest - 20 + index));
    // The pointer lags: nothing below it is safe then.
    await world.memory.delete([`${PLACE.prefix}/metadata/version-hint.text`]);
    await world.memory.putIfAbsent(
      `${PLACE.prefix}/metadata/version-hint.text`,
      new TextEncoder().encode(String(newest - 15)),
    );
    world.clock.advance(2 * HOUR_MS);
    expect((await expire()).metadataFiles).toBe(0);
    // Nor does one count that is ahead of every version, with a log that holds next to nothing.
    await world.clock.until(service.changes.properties({ 'write.metadata.previous-versions-max': '1' }, []));
    world.memory.plant(`${PLACE.prefix}/metadata/version-hint.text`, new TextEncoder().encode('7742398473'));
    world.clock.advance(2 * HOUR_MS);
    await expire();
    const kept = (await keysOf()).filter((key) => /\/v[0-9]+\.metadata\.json$/.test(key));
    expect(kept.length).toBeGreaterThanOrEqual(21);
  });
});

/** Two commits of which one is kept, two hours later: as few calls as an expiry can have. */
async function small(): Promise<Scenario> {
  const made = await prepared(2);
  await made.world.clock.until(
    made.service.changes.properties({ 'timelake.min-snapshots': '1', 'timelake.snapshot-retention': '1s' }, []),
  );
  return made;
}

/** After an expiry that was interrupted at any point and asked for again: the table is whole, and no list is left. */
async function expectClean(given: Scenario, cache?: ValidatorCache): Promise<void> {
  await expire(false, given);
  await later(given);
  await expectExactlyOnce(given, cache);
  expect(current(given.service).snapshots).toHaveLength(1);
  expect((await keysOf(given)).filter((key) => key.includes('/snap-'))).toHaveLength(1);
}

describe('faults: each store call of an expiry and of the deletion after it', () => {
  const faults: Fault[] = ['refused', 'request-lost', 'response-lost', 'half-applied', 'late', 'unreadable'];
  for (const fault of faults) {
    test(`fault: ${fault} at each call`, { timeout: 60_000 }, async () => {
      for (let skip = 0; ; skip++) {
        const given = await small();
        const planted = given.service.store.faults.next('*', null, fault, { skip });
        await expire(false, given).catch((error) => {
          expect(['store-unavailable', 'commit-unknown', 'table-unreadable', undefined]).toContain(error.type);
        });
        await planted.land();
        await later(given);
        if (planted.hits === 0) {
          expect(skip).toBeGreaterThan(15);
          return;
        }
        await expectClean(given);
      }
    });
  }
});

class Crash extends Error {
  override readonly name = 'Crash';
}

describe('crash: an expiry and the deletion after it', () => {
  test('crash: before and after each store call and ledger step, the table is whole and no list is left behind', {
    timeout: 120_000,
  }, async () => {
    const kept = keep(await small());
    const cache = newCache();
    const run = async (point: number): Promise<{ points: number; reached: boolean }> => {
      const given = again(kept);
      let at = 0;
      let dead = false;
      const step = () => {
        if (dead) throw new Crash('dead');
        if (at++ !== point) return;
        dead = true;
        throw new Crash(`at point ${point}`);
      };
      given.service.store.onBefore(step);
      given.service.store.onAfter(step);
      given.ledger.hook = step;
      await expire(false, given).catch(() => undefined);
      given.world.clock.advance(ERASE_GRACE_MS + 1);
      await given.world.clock.until(given.service.writer.run());
      given.ledger.hook = () => undefined;
      given.service = new Service(given.world, given.ledger);
      await later(given);
      await expectClean(given, cache);
      return { points: at, reached: dead };
    };
    const { points } = await run(Number.POSITIVE_INFINITY);
    expect(points).toBeGreaterThan(40);
    for (let point = 0; point < points; point++) expect((await run(point)).reached, `point ${point}`).toBe(true);
    console.info(`${points} crash points of an expiry recovered`);
  });
});
