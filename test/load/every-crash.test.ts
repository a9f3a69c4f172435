import { afterAll, describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { ERASE_GRACE_MS } from '../../src/core/base/limits.ts';
import type { Producer } from '../../src/core/batch/frame.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import { serializeMetadata } from '../../src/core/iceberg/metadata.ts';
import { currentSnapshot } from '../../src/core/iceberg/snapshot.ts';
import type { Snapshot, Summary, TableMetadata } from '../../src/core/iceberg/types.ts';
import { STEPS_DEFAULT } from '../../src/core/maintain/steps.ts';
import { metadataOf, ofDay, on, replaceOf } from '../engine/file-operations.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { newCache } from '../oracle/cache.ts';
import { rows } from '../oracle/rows.ts';
import { assertValidTable } from '../oracle/validator.ts';
import { crashAt } from '../sim/crash.ts';
import { again, type Kept, keep, newScenario, type Scenario, spelled, tableRows, uniqueRow } from '../sim/scenario.ts';
import { PLACE, SERIES, type SeriesRow, Service } from '../sim/service.ts';

/** Three commits on two days, and a snapshot in between to go back to. */
const ROWS: SeriesRow[] = [on(0, 1), on(0, 2), on(1, 3)];

/** What takes the place of the first day. */
const OVERWRITTEN = on(0, 9, 'b');

interface Case {
  name: string;
  /** Makes the table ready for the operation, before the incarnation that is to crash. */
  prepare?: (scenario: Scenario) => Promise<unknown>;
  /** The operation; what it throws is an answer. */
  run: (service: Service, scenario: Scenario) => Promise<unknown>;
  /** Rows once it is done, of those that were there before. */
  rows?: (before: string[]) => string[];
  /** What must be so beside the rows, once it was run again. */
  after?: (scenario: Scenario) => void;
  /** False when the table cannot take rows afterwards. */
  appendable?: boolean;
}

const unchanged = (before: string[]): string[] => before;
const withoutDay = (day: number) => (before: string[]) =>
  before.filter(
    (text) =>
      !ROWS.some((row) => spelled(row) === text && row.time / 86_400_000_000n === on(day, 0).time / 86_400_000_000n),
  );

/** A file that nothing refers to. */
const ORPHAN = `${PLACE.prefix}/data/time_day=2026-01-01/lost.parquet`;

let firstSnapshot = 0n;
let harmed = '';

/** The newest version as another hand would have made it. */
async function remade(
  { world, service }: Scenario,
  change: (metadata: TableMetadata) => Partial<TableMetadata>,
): Promise<void> {
  const metadata = metadataOf(service);
  const foreign = { ...metadata, ...change(metadata) };
  const key = `${PLACE.prefix}/metadata/v${service.table.base?.version ?? 0}.metadata.json`;
  await world.memory.delete([key]);
  await world.memory.putIfAbsent(key, utf8(serializeMetadata(foreign)));
}

const rewritten = (
  scenario: Scenario,
  change: (properties: Record<string, string>) => Record<string, string>,
): Promise<void> => remade(scenario, ({ properties }) => ({ properties: change(properties) }));

/** Key of the last-value index that the table names. */
function indexKey({ service }: Scenario): string | undefined {
  const named = currentSnapshot(metadataOf(service))?.summary['timelake.last-value-index'];
  return named === undefined ? undefined : PLACE.prefix + named.slice(PLACE.location.length);
}

/** A snapshot that names no index is what a writer leaves that knows of none. */
const withoutIndex = ({ summary, ...snapshot }: Snapshot): Snapshot => {
  const { 'timelake.last-value-index': _, ...rest } = summary;
  return { ...snapshot, summary: rest as Summary };
};

const dataKeys = ({ world }: Scenario): string[] => world.memory.keys().filter((key) => key.includes('/data/'));

/** A part of a file that was being written by an incarnation before. */
async function beginUpload({ world, ledger }: Scenario): Promise<void> {
  const key = `${PLACE.prefix}/data/time_day=2026-01-01/half.parquet`;
  const upload = await world.memory.multipart(key);
  await upload.part(1, new Uint8Array(10));
  ledger.uploadBegan({ key, uploadId: upload.uploadId, begunMs: world.clock.now() });
}

const CASES: Case[] = [
  {
    name: 'create',
    prepare: async ({ world }) => world.memory.delete([...world.memory.keys()]),
    run: ({ admin }) => admin.create(SERIES),
    rows: () => [],
  },
  {
    name: 'attach',
    prepare: (scenario) => rewritten(scenario, ({ 'sluice.format-version': _, ...properties }) => properties),
    run: ({ admin }) => admin.attach(null),
  },
  { name: 'drop', run: ({ admin }) => admin.drop(), rows: () => [], appendable: false },
  { name: 'delete', run: ({ files }) => files.delete(ofDay(0)), rows: withoutDay(0) },
  {
    name: 'overwrite',
    run: async (service) => {
      const { metadata } = await service.writer.live();
      return service.files.overwrite(service.frame([OVERWRITTEN]), metadata['table-uuid'], ofDay(0));
    },
    rows: (before) => [...withoutDay(0)(before).filter((text) => text !== spelled(OVERWRITTEN)), spelled(OVERWRITTEN)],
  },
  { name: 'rewrite manifests', run: ({ files }) => files.rewriteManifests() },
  {
    name: 'replace',
    run: async (service, { world }) => {
      await service.writer.live();
      const rows = ROWS.filter((row) => withoutDay(0)([spelled(row)]).length === 0);
      const operation: Operation = await replaceOf(world, service, 0, rows).catch(() => null as never);
      return service.table.commit(operation, () => undefined);
    },
  },
  {
    name: 'compaction',
    prepare: ({ service }) => service.append([on(0, 5), on(0, 6)]),
    run: ({ compactor }) => compactor.maintain(true, false),
  },
  {
    name: 'compaction after appends',
    prepare: ({ service }) => service.changes.properties({ 'timelake.compact-min-files': '2' }, []),
    run: async (service) => {
      service.compactByItself();
      await service.writer.check();
      await service.writer.run();
    },
  },
  { name: 'expire', run: ({ expirer }) => expirer.expire(false) },
  {
    name: 'scheduled expiry',
    run: async (service, { world }) => {
      service.expireBySchedule();
      await service.writer.check();
      world.clock.advance(60 * 60_000);
      await service.writer.run();
    },
  },
  {
    name: 'retention',
    prepare: ({ service }) => service.changes.properties({ 'timelake.retention': '1d' }, []),
    run: async (service, { world }) => {
      // By request: a schedule would go on, and drop what the case appends afterwards.
      world.clock.advance(Math.max(0, Number(on(2, 0).time / 1000n) - world.clock.now()));
      await service.maintenance.run({ steps: ['retention'], full: false, sweepAfter: null, dryRun: false });
    },
    rows: withoutDay(0),
  },
  {
    name: 'sweep, and the deletion of what it found',
    prepare: async ({ world, service }) => {
      await service.changes.properties({ 'gc.kind': 'own' }, []);
      world.memory.plant(ORPHAN, new Uint8Array(10));
    },
    run: async (service, { world }) => {
      world.clock.advance(Math.max(0, Number(on(5, 0).time / 1000n) - world.clock.now()));
      await service.sweep.sweep(false);
      world.clock.advance(ERASE_GRACE_MS + 1);
      await service.writer.run();
    },
    after: ({ world }) => expect(world.memory.keys()).not.toContain(ORPHAN),
  },
  {
    name: 'expire, and the deletion of what it let go',
    prepare: ({ service }) => service.compactor.maintain(true, false),
    run: async (service, { world }) => {
      await service.writer.check();
      world.clock.advance(2_000);
      await service.expirer.expire(false);
      world.clock.advance(ERASE_GRACE_MS + 1);
      await service.writer.run();
    },
    // Two days, one file each: what was merged is gone with the snapshots that had it.
    after: (scenario) => {
      expect(dataKeys(scenario)).toHaveLength(2);
      expect(scenario.ledger.state().doomed.keys).toBe(0);
    },
  },
  {
    name: 'the end of an upload in parts that was left behind',
    run: async (service, scenario) => {
      const { world } = scenario;
      await beginUpload(scenario);
      await service.writer.check();
      world.clock.advance(ERASE_GRACE_MS + 1);
      await service.writer.run();
    },
    after: ({ ledger }) => expect(ledger.state().uploads.oldestMs).toBeNull(),
  },
  {
    name: 'the last-value index made again that another writer has dropped',
    prepare: (scenario) =>
      remade(scenario, ({ snapshots }) => ({
        snapshots: [...snapshots.slice(0, -1), withoutIndex(snapshots[snapshots.length - 1])],
      })),
    run: async ({ maintenance }) => maintenance.run({ steps: ['index'], full: false, sweepAfter: null, dryRun: false }),
    // The validator holds it against the rows.
    after: (scenario) => expect(indexKey(scenario)).toBeDefined(),
  },
  {
    name: 'the last-value index made again whose file was damaged',
    prepare: async (scenario) => {
      harmed = indexKey(scenario) ?? '';
      scenario.world.memory.plant(harmed, new Uint8Array(40));
    },
    run: ({ rebuild }) => rebuild.run(false),
    after: (scenario) => {
      expect(indexKey(scenario)).toBeDefined();
      expect(indexKey(scenario)).not.toBe(harmed);
    },
  },
  {
    name: 'maintenance by request',
    prepare: ({ service }) => service.append([on(0, 5), on(0, 6)]),
    run: ({ maintenance }) => maintenance.run({ steps: STEPS_DEFAULT, full: true, sweepAfter: null, dryRun: false }),
  },
  { name: 'properties', run: ({ changes }) => changes.properties({ owner: 'a' }, []) },
  {
    name: 'schema',
    run: ({ changes }) =>
      changes.schema([{ kind: 'add', parent: null, field: { id: 0, name: 'w', required: false, type: 'long' } }], null),
  },
  {
    name: 'partition spec',
    // A time-series table keeps its partitions: so it is none here any more.
    prepare: (scenario) =>
      rewritten(scenario, (properties) =>
        Object.fromEntries(
          Object.entries(properties).filter(([key]) => !/^timelake\.(time-column|chunk|dedup|series)/.test(key)),
        ),
      ),
    run: ({ changes }) =>
      changes.spec(
        [
          { kind: 'remove', name: 'time_day' },
          { kind: 'add', column: 'device', transform: 'identity', name: null },
        ],
        0,
      ),
  },
  { name: 'upgrade', run: ({ changes }) => changes.upgrade() },
  { name: 'tag', run: ({ changes }) => changes.setRef({ name: 't', type: 'tag', snapshotId: null }) },
  {
    name: 'branch moved',
    prepare: ({ service }) => service.changes.setRef({ name: 'b', type: 'branch', snapshotId: firstSnapshot }),
    run: ({ changes }) => changes.fastForward('b', 'main'),
  },
  {
    name: 'ref dropped',
    prepare: ({ service }) => service.changes.setRef({ name: 't', type: 'tag', snapshotId: null }),
    run: ({ changes }) => changes.dropRef('t'),
  },
  {
    name: 'rollback',
    run: ({ changes }) => changes.rollback(firstSnapshot),
    rows: (before) => before.filter((text) => text === spelled(ROWS[0])),
  },
];

/** A table with rows: each point begins with a copy of it. */
async function kept({ prepare }: Pick<Case, 'prepare'>): Promise<Kept> {
  const scenario = await newScenario();
  const { world } = scenario;
  const expiry = { 'timelake.snapshot-retention': '1s', 'timelake.min-snapshots': '1' };
  await world.clock.until(scenario.service.changes.properties(expiry, []));
  for (const row of ROWS) {
    await world.clock.until(scenario.service.append([row]));
    await scenario.service.drain();
    world.clock.advance(2_000);
  }
  firstSnapshot = metadataOf(scenario.service).snapshots[0]['snapshot-id'];
  if (prepare !== undefined) await world.clock.until(prepare(scenario));
  await scenario.service.drain();
  return keep(scenario);
}

/** What was validated before need not be read again: the copies share most of their files. */
const cache = newCache();

async function expectValidAt({ world }: Scenario, where: string): Promise<void> {
  const options = { bucketName: 'sim-lake', hintRequired: true, cache };
  await assertValidTable(storeBucket(world.memory), PLACE.prefix, options).catch((error) => {
    throw new Error(`${where}: ${error.message}`);
  });
}

const answered = (promise: Promise<unknown>): Promise<unknown> => promise.catch((error) => error);

/** Crashes the operation at one point, and sees that the table is as before it or as after it, and goes on. */
async function crashed(one: Case, state: Kept, point: number): Promise<{ reached: boolean; points: number }> {
  const scenario = again(state);
  const { world, ledger } = scenario;
  const rowsAfter = one.rows ?? unchanged;
  const before = await tableRows(world).catch(() => []);
  const after = rowsAfter(before).sort();
  const crash = crashAt(scenario.service, point);
  await world.clock.until(answered(one.run(scenario.service, scenario)));
  await world.clock.idle();

  ledger.hook = () => undefined;
  const next = new Service(world, ledger);
  scenario.service = next;
  await world.clock.until(answered(next.writer.check()));
  await next.drain();
  const found = await tableRows(world).catch(() => []);
  expect([before, after], `${one.name} at ${point}`).toContainEqual(found);
  // Whoever got no answer asks again: it is done, once.
  await world.clock.until(answered(one.run(next, scenario)));
  expect(await tableRows(world), `${one.name} again, after ${point}`).toEqual(after);
  one.after?.(scenario);
  if (one.appendable === false) await world.clock.until(next.admin.create(SERIES));
  const row = uniqueRow('last');
  await world.clock.until(next.writer.live());
  await world.clock.until(next.append([row]));
  await next.drain();
  expect(await tableRows(world), `${one.name} and an append, after ${point}`).toEqual([...after, spelled(row)].sort());
  await expectValidAt(scenario, `${one.name} at ${point}`);
  expect(ledger.state()).toMatchObject({ intent: null, buffer: { frames: 0 } });
  return { reached: crash.reached(), points: crash.points() };
}

const counted = new Map<string, number>();

async function everyCrash(name: string, at: (point: number) => Promise<{ reached: boolean; points: number }>) {
  const { points } = await at(Number.POSITIVE_INFINITY);
  for (let point = 0; point < points; point++) {
    const { reached } = await at(point);
    expect(reached, `${name} at ${point}`).toBe(true);
  }
  counted.set(name, points);
  return points;
}

describe('every crash: each operation stopped before and after each of its steps', () => {
  afterAll(() => {
    const all = [...counted.values()].reduce((sum, points) => sum + points, 0);
    console.info(`${all} crash points recovered: ${[...counted].map(([name, n]) => `${name} ${n}`).join(', ')}`);
  });

  for (const one of CASES) {
    test(`every crash: ${one.name}`, { timeout: 120_000 }, async () => {
      const state = await kept(one);
      expect(await everyCrash(one.name, (point) => crashed(one, state, point))).toBeGreaterThan(5);
    });
  }

  test('every crash: a flush of main and of a branch, each batch once and in its own', {
    timeout: 120_000,
  }, async () => {
    const state = await kept({
      prepare: ({ service }) => service.changes.setRef({ name: 'b', type: 'branch', snapshotId: firstSnapshot }),
    });
    const points = await everyCrash('append to a branch', async (point) => {
      const scenario = again(state);
      const { world, ledger } = scenario;
      const before = await tableRows(world);
      const sent = [undefined, 'b', undefined].map((branch, i) => ({ branch, batchId: `k${i}`, row: uniqueRow() }));
      const send = async (service: Service) => {
        for (const { branch, batchId, row } of sent) {
          const { metadata } = await service.writer.live();
          const frame = { ...service.frame([row], batchId), branch };
          await service.writer.append(frame, metadata['table-uuid'], 0);
        }
        await service.writer.flush();
      };
      const crash = crashAt(scenario.service, point);
      await world.clock.until(answered(send(scenario.service)));
      await world.clock.idle();
      ledger.hook = () => undefined;
      const next = new Service(world, ledger);
      // Sent again, whatever became of it.
      expect(await world.clock.until(answered(send(next)))).toBeUndefined();
      await next.drain();
      const of = (name?: string) => sent.filter(({ branch }) => branch === name).map(({ row }) => spelled(row));
      expect(await tableRows(world)).toEqual([...before, ...of()].sort());
      const snapshotId = metadataOf(next).refs['b']['snapshot-id'];
      const found = await rows(storeBucket(world.memory), PLACE.prefix, { snapshotId });
      const onBranch = found.map((row) => `${row['device']} ${row['time']} ${row['v']}`).sort();
      expect(onBranch).toEqual([spelled(ROWS[0]), ...of('b')].sort());
      await expectValidAt(scenario, `append to a branch at ${point}`);
      return { reached: crash.reached(), points: crash.points() };
    });
    expect(points).toBeGreaterThan(30);
  });

  test('every crash: an append of two producers, whose epochs come once', { timeout: 120_000 }, async () => {
    const state = await kept({});
    const points = await everyCrash('append', async (point) => {
      const scenario = again(state);
      const { world, ledger } = scenario;
      const before = await tableRows(world);
      const sent = ['a', 'b'].map((app) => ({
        producer: { app, epoch: 1n, sparse: false } as Producer,
        row: uniqueRow(app),
      }));
      const send = async (service: Service) => {
        for (const { producer, row } of sent) {
          const { metadata } = await service.writer.live();
          await service.writer.append({ ...service.frame([row]), producer }, metadata['table-uuid'], 0);
        }
        await service.writer.flush();
      };
      const crash = crashAt(scenario.service, point);
      await world.clock.until(answered(send(scenario.service)));
      await world.clock.idle();
      ledger.hook = () => undefined;
      const next = new Service(world, ledger);
      // Sent again, whatever became of it.
      const second = await world.clock.until(answered(send(next)));
      expect(second).toBeUndefined();
      await next.drain();
      expect(await tableRows(world)).toEqual([...before, ...sent.map(({ row }) => spelled(row))].sort());
      await expectValidAt(scenario, `append at ${point}`);
      return { reached: crash.reached(), points: crash.points() };
    });
    expect(points).toBeGreaterThan(20);
  });
});
