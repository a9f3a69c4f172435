import { beforeEach, describe, expect, test } from 'vitest';
import { INDEX_FILE_BYTES_MAX } from '../../src/core/base/index-limits.ts';
import type { IcebergBase } from '../../src/core/commit/iceberg-base.ts';
import { parseSchemaChanges } from '../../src/core/commit/plan-schema.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import { currentSnapshot } from '../../src/core/iceberg/snapshot.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rowsOfFile } from '../oracle/rows.ts';
import { acknowledge, DAY, expectExactlyOnce, expectValid, HOUR, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { commit, deleteOf, metadataOf, ofDay, overwriteOf, replaceOf, rewriteManifestsOf } from './file-operations.ts';
import { update } from './theirs.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

const at = (device: string, minute: number, v = minute): SeriesRow => ({
  device,
  time: DAY + BigInt(minute) * 60_000_000n,
  v: BigInt(v),
});

function summary(base: IcebergBase | null = scenario.service.table.base): Record<string, string> {
  const snapshot = base === null ? null : currentSnapshot(base.metadata);
  if (snapshot === null) throw new Error('no snapshot');
  return snapshot.summary;
}

const indexOf = (of = summary()) => of['timelake.last-value-index'];
const reason = (of = summary()) => of['sluice.no-last-value-index'];

/** What the current index says: `device minute v`. */
async function indexed(): Promise<string[] | null> {
  const location = indexOf();
  if (location === undefined) return null;
  const bytes = await storeBucket(scenario.world.memory).get(PLACE.prefix + location.slice(PLACE.location.length));
  const { metadata } = scenario.service.table.base as IcebergBase;
  const schema = metadata.schemas.find((known) => known['schema-id'] === metadata['current-schema-id']);
  const rows = await rowsOfFile(bytes as Uint8Array, schema as never);
  return rows.map((row) => `${row['device']} ${((row['time'] as bigint) - DAY) / 60_000_000n} ${row['v'] ?? row['w']}`);
}

async function append(rows: SeriesRow[], service = scenario.service): Promise<void> {
  await acknowledge(scenario, rows, service);
  await service.drain();
}

/** Reads of index files by a service so far. */
const readsOf = (service: Service) =>
  service.store.log.filter(({ operation, key }) => operation === 'getRange' && /\/lvi-/.test(key)).length;

/** Data files whose footer was read. */
const dataReads = () =>
  new Set(
    scenario.service.store.log
      .filter(({ operation, key }) => operation === 'getRange' && key.includes('/data/'))
      .map(({ key }) => key),
  ).size;

describe('last-value index: appends', () => {
  test('the first append makes it, later ones merge theirs into it without reading it', async () => {
    await append([at('b', 1), at('a', 5), at('a', 3)]);
    expect(await indexed()).toEqual(['a 5 5', 'b 1 1']);
    await append([at('c', 2), at('a', 4), at('b', 9)]);
    expect(await indexed()).toEqual(['a 5 5', 'b 9 9', 'c 2 2']);
    expect(readsOf(scenario.service)).toBe(0);
    await expectExactlyOnce(scenario);
  });

  test('of equal times the later ingest, the later commit wins', async () => {
    await append([at('a', 5, 1)]);
    await scenario.world.clock.until(scenario.service.append([at('a', 5, 2)]));
    await scenario.service.drain();
    expect(await indexed()).toEqual(['a 5 2']);
    await expectValid(scenario.world);
  });

  test('rows of several partitions: a series counts once', async () => {
    await append([at('a', 5), at('a', 24 * 60 + 1), at('b', 7), at('a', 48 * 60)]);
    expect(await indexed()).toEqual([`a ${48 * 60} ${48 * 60}`, 'b 7 7']);
    await expectExactlyOnce(scenario);
  });

  test('another incarnation reads the index once, and goes on from there', async () => {
    await append([at('a', 5), at('b', 1)]);
    scenario.service = new Service(scenario.world, scenario.ledger);
    await append([at('b', 2)]);
    await append([at('b', 3)]);
    expect(await indexed()).toEqual(['a 5 5', 'b 3 3']);
    expect(readsOf(scenario.service)).toBe(1);
    await expectExactlyOnce(scenario);
  });

  test('a flush that only moves progress on keeps it as it is', async () => {
    await append([at('a', 5)]);
    const before = indexOf();
    await commit(scenario.world, scenario.service, rewriteManifestsOf(scenario.world, scenario.service));
    expect(indexOf()).toBe(before);
  });
});

describe('last-value index: other writers', () => {
  test('a lost race: the index of the winner is read and merged, the loser’s own is deleted', async () => {
    const other = new Service(scenario.world, new SimLedger('00000000000000bb'));
    await append([at('a', 1)]);
    const held = scenario.service.store.faults.next('putIfAbsent', /v3\.metadata\.json$/, 'slow');
    await acknowledge(scenario, [at('a', 2)]);
    scenario.world.clock.advance(20_000);
    const run = scenario.service.writer.run();
    await scenario.world.clock.until(held.reached);
    await append([at('a', 3), at('b', 1)], other);
    held.release();
    await scenario.world.clock.until(run);
    expect(scenario.service.count('lost-race')).toBe(1);
    expect(readsOf(scenario.service)).toBe(1);
    expect(await indexed()).toEqual(['a 3 3', 'b 1 1']);
    await expectExactlyOnce(scenario);
    const kept: string[] = [];
    for await (const { key } of scenario.world.memory.list(`${PLACE.prefix}/metadata/lvi-`)) kept.push(key);
    expect(kept).toHaveLength(3);
  });

  test.each([
    ['missing', null],
    ['damaged', new Uint8Array(100)],
    ['larger than may be read', new Uint8Array(INDEX_FILE_BYTES_MAX + 1)],
  ])('an index that is %s ends the chain, not the append', async (_name, bytes) => {
    await append([at('a', 1)]);
    const key = PLACE.prefix + indexOf().slice(PLACE.location.length);
    if (bytes === null) await scenario.world.memory.delete([key]);
    else scenario.world.memory.plant(key, bytes);
    scenario.service = new Service(scenario.world, scenario.ledger);
    await append([at('a', 2)]);
    expect(indexOf()).toBeUndefined();
    expect(reason()).toBe('unreadable');
    await append([at('a', 3)]);
    expect(reason()).toBe('unreadable');
  });

  test('a branch has an index of its own parent', async () => {
    await append([at('a', 1)]);
    const id = scenario.service.table.base?.metadata['current-snapshot-id'] as bigint;
    const { service, world } = scenario;
    await world.clock.until(service.changes.setRef({ name: 'b', type: 'branch', snapshotId: id }));
    const frame = { ...service.frame([at('b', 7)]), branch: 'b' };
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    await world.clock.until(service.writer.append(frame, uuid, 0));
    await service.drain();
    await append([at('c', 2)]);
    expect(await indexed()).toEqual(['a 1 1', 'c 2 2']);
    await expectValid(world);
  });
});

describe('last-value index: operations', () => {
  test('a replace keeps it; a delete and an overwrite drop it, and an empty table begins anew', async () => {
    await append([at('a', 1), at('b', 24 * 60)]);
    const { service, world } = scenario;
    const before = indexOf();
    await commit(world, service, await replaceOf(world, service, 0, [at('a', 1)]));
    expect(indexOf()).toBe(before);
    await commit(world, service, overwriteOf(world, service, ofDay(0), [at('a', 2)]));
    expect(indexOf()).toBeUndefined();
    expect(reason()).toBe('rows-removed');
    await commit(world, service, deleteOf(world, service, ofDay(0)));
    await commit(world, service, deleteOf(world, service, ofDay(1)));
    expect(summary()['total-records']).toBe('0');
    await world.clock.until(service.append([at('c', 3)]));
    await service.drain();
    expect(await indexed()).toEqual(['c 3 3']);
    expect(reason()).toBeUndefined();
    await expectValid(world);
  });

  test('retention takes out the series that have no row left', async () => {
    const days = BigInt(2) * 24n * HOUR;
    const nowMicros = () => BigInt(scenario.world.clock.now()) * 1000n;
    const old = { device: 'old', time: nowMicros() - 3n * days, v: 1n };
    const young = { device: 'young', time: nowMicros(), v: 2n };
    await scenario.world.clock.until(scenario.service.append([old, young, { ...old, device: 'young' }]));
    await scenario.service.drain();
    const { service, world } = scenario;
    await world.clock.until(service.changes.properties({ 'timelake.retention': '2d' }, []));
    const cutoff = nowMicros() - days;
    await world.clock.until(service.files.retain(cutoff));
    expect(summary().operation).toBe('delete');
    expect((await indexed())?.map((row) => row.split(' ')[0])).toEqual(['young']);
    await expectValid(world);
    const before = indexOf();
    expect((await world.clock.until(service.files.retain(cutoff))).changed).toBe(false);
    expect(indexOf()).toBe(before);
  });

  test('retention after another writer has added a column: the index has it too, for an engine goes by places', async () => {
    const { service, world } = scenario;
    const nowMicros = BigInt(world.clock.now()) * 1000n;
    const old = { device: 'old', time: nowMicros - 144n * HOUR, v: 1n };
    await world.clock.until(service.append([old, { device: 'young', time: nowMicros, v: 2n }]));
    await service.drain();
    const schema = currentSchema(metadataOf(service));
    const fields = [...schema.fields, { id: 9, name: 'fresh_column', required: false, type: 'int' }];
    await update(
      scenario,
      service,
      { action: 'add-schema', schema: { ...schema, fields } },
      { action: 'set-current-schema', 'schema-id': -1 },
      { action: 'set-properties', updates: { 'timelake.retention': '2d' } },
    );
    await world.clock.until(service.table.load());
    await world.clock.until(service.files.retain(nowMicros - 48n * HOUR));
    expect((await indexed())?.map((row) => row.split(' ')[0])).toEqual(['young']);
    const made = await world.memory.get(PLACE.prefix + (indexOf() ?? '').slice(PLACE.location.length));
    expect(Buffer.from(made?.bytes ?? []).toString('latin1')).toContain('fresh_column');
    await expectValid(world);
  });

  test('a rollback goes back to the index of its snapshot', async () => {
    await append([at('a', 1)]);
    const first = scenario.service.table.base?.metadata['current-snapshot-id'] as bigint;
    const before = indexOf();
    await append([at('a', 9)]);
    const { service, world } = scenario;
    await world.clock.until(service.changes.rollback(first));
    expect(indexOf()).toBe(before);
    await world.clock.until(service.append([at('b', 2)]));
    await service.drain();
    expect((await indexed())?.filter((row) => row.startsWith('b'))).toEqual(['b 2 2']);
    await expectValid(world);
  });

  test('a change of columns writes it anew, under another name', async () => {
    await append([at('a', 1)]);
    const before = indexOf();
    const { service, world } = scenario;
    await world.clock.until(
      service.changes.schema(
        parseSchemaChanges([
          { add: 'n', type: 'int' },
          { rename: 'v', to: 'w' },
        ]),
        null,
      ),
    );
    expect(indexOf()).not.toBe(before);
    expect(await indexed()).toEqual(['a 1 1']);
    await expectValid(world);
  });
});

describe('last-value index: made again', () => {
  /** An overwrite drops the index. */
  async function broken(): Promise<void> {
    await append([at('a', 1), at('b', 2), at('a', 24 * 60)]);
    const { service, world } = scenario;
    await commit(world, service, overwriteOf(world, service, ofDay(0), [at('a', 3), at('c', 3)]));
    expect(indexOf()).toBeUndefined();
  }

  const rebuild = (dryRun = false) => scenario.world.clock.until(scenario.service.rebuild.run(dryRun));

  test('all live files are looked through; appends go on from there, and there is nothing to do twice', async () => {
    await broken();
    expect(await rebuild(true)).toMatchObject({ state: 'needed', changed: false });
    expect(await rebuild()).toMatchObject({ state: 'made', changed: true, series: 2, files: 2, reason: null });
    expect(await indexed()).toEqual([`a ${24 * 60} ${24 * 60}`, 'c 3 3']);
    expect(reason()).toBeUndefined();
    expect(summary()).toMatchObject({ operation: 'replace', 'total-records': '3' });
    await expectValid(scenario.world);
    await scenario.world.clock.until(scenario.service.append([at('c', 4)]));
    await scenario.service.drain();
    expect(await indexed()).toEqual([`a ${24 * 60} ${24 * 60}`, 'c 4 4']);
    expect(await rebuild()).toMatchObject({ state: 'kept', changed: false });
    await expectValid(scenario.world);
  });

  test('appends that get in between are looked at too, and only they', async () => {
    await broken();
    const other = new Service(scenario.world, new SimLedger('00000000000000bb'));
    const held = scenario.service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'slow');
    const made = rebuild();
    await scenario.world.clock.until(held.reached);
    await scenario.world.clock.until(other.append([at('d', 9)]));
    await other.drain();
    const readBefore = dataReads();
    held.release();
    expect(await made).toMatchObject({ state: 'made', series: 3, files: 3 });
    expect(dataReads() - readBefore).toBe(1);
    expect(scenario.service.count('index-overtaken')).toBe(1);
    expect(await indexed()).toEqual([`a ${24 * 60} ${24 * 60}`, 'c 3 3', 'd 9 9']);
    await expectValid(scenario.world);
  });

  test('a delete that gets in between begins it anew', async () => {
    await broken();
    const other = new Service(scenario.world, new SimLedger('00000000000000bb'));
    await scenario.world.clock.until(other.writer.check());
    const held = scenario.service.store.faults.next('putIfAbsent', /v4\.metadata\.json$/, 'slow');
    const made = rebuild();
    await scenario.world.clock.until(held.reached);
    await commit(scenario.world, other, deleteOf(scenario.world, other, ofDay(1)));
    held.release();
    expect(await made).toMatchObject({ state: 'made', series: 2, files: 1 });
    expect(await indexed()).toEqual(['a 3 3', 'c 3 3']);
    await expectValid(scenario.world);
  });

  for (const [what, harm] of [
    ['is gone', (key: string) => scenario.world.memory.delete([key])],
    ['is cut short', async (key: string) => void scenario.world.memory.plant(key, new Uint8Array(40).fill(7))],
  ] as const) {
    test(`an index whose file ${what} is made again, whoever has its rows in memory`, async () => {
      await append([at('a', 1), at('b', 2)]);
      await append([at('a', 3)]);
      const lost = indexOf() as string;
      await harm(PLACE.prefix + lost.slice(PLACE.location.length));
      expect(await rebuild(true)).toMatchObject({ state: 'needed' });
      expect(await rebuild()).toMatchObject({ state: 'made', series: 2, files: 2 });
      expect(indexOf()).not.toBe(lost);
      expect(await indexed()).toEqual(['a 3 3', 'b 2 2']);
      expect(await rebuild()).toMatchObject({ state: 'kept' });
    });
  }

  test('an index that another has mended meanwhile is left as it is', async () => {
    await append([at('a', 1)]);
    const lost = indexOf() as string;
    await scenario.world.memory.delete([PLACE.prefix + lost.slice(PLACE.location.length)]);
    const other = new Service(scenario.world, new SimLedger('00000000000000bb'));
    await scenario.world.clock.until(other.writer.check());
    const held = scenario.service.store.faults.next('putIfAbsent', /v3\.metadata\.json$/, 'slow');
    const made = rebuild();
    await scenario.world.clock.until(held.reached);
    expect(await scenario.world.clock.until(other.rebuild.run(false))).toMatchObject({ state: 'made' });
    const mended = indexOf(summary(other.table.base));
    held.release();
    expect(await made).toMatchObject({ state: 'kept', changed: false });
    expect(indexOf()).toBe(mended);
  });

  test('what stands in the way is told: too many series, a table without rows has nothing to make', async () => {
    expect(await rebuild()).toMatchObject({ state: 'kept', changed: false });
    await broken();
    const { service, world } = scenario;
    await world.clock.until(service.changes.properties({ 'sluice.last-value-series-max': '1' }, []));
    expect(await rebuild()).toMatchObject({ state: 'impossible', changed: false, reason: 'too-many-series' });
    await world.clock.until(service.changes.properties({ 'sluice.last-value-series-max': '0' }, []));
    expect(await rebuild()).toMatchObject({ state: 'kept' });
  });

  test('a store that fails leaves the table as it is', async () => {
    await broken();
    scenario.service.store.faults.always('putIfAbsent', /\/lvi-/, 'unreadable');
    await expect(rebuild()).rejects.toMatchObject({ type: 'store-unavailable' });
    expect(indexOf()).toBeUndefined();
    await expectValid(scenario.world);
  });
});

describe('last-value index: its bound', () => {
  test('beyond the series that a table allows there is none, and the snapshots say so', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.changes.properties({ 'sluice.last-value-series-max': '2' }, []));
    await append([at('a', 1), at('b', 1)]);
    expect(await indexed()).toEqual(['a 1 1', 'b 1 1']);
    await append([at('c', 1)]);
    expect(indexOf()).toBeUndefined();
    expect(reason()).toBe('too-many-series');
    await append([at('a', 2)]);
    expect(reason()).toBe('too-many-series');
    await expectExactlyOnce(scenario);
  });
});
