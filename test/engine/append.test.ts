import { beforeEach, describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { BATCH_MEMORY_MS, HINT_TRIES_MAX, PRUNE_INTERVAL_MS, PRUNE_ROWS_MAX } from '../../src/core/base/limits.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { Hint } from '../../src/engine/hint.ts';
import type { Store } from '../../src/store/store.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { icebirdRows } from '../oracle/icebird.ts';
import { liveEntries, readTable, snapshotState } from '../oracle/reader.ts';
import {
  acknowledge,
  DAY,
  expectExactlyOnce,
  expectValid,
  HOUR,
  newScenario,
  type Scenario,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, SERIES, Service } from '../sim/service.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

describe('append: the steady state', () => {
  test('append: accepted rows of several days are in the table after a flush, once', async () => {
    await acknowledge(scenario, [
      { device: 'b', time: DAY, v: 1n },
      { device: 'a', time: DAY + HOUR, v: 2n },
      { device: 'a', time: DAY + 30n * HOUR, v: 3n },
    ]);
    expect(scenario.ledger.state().buffer.rows).toBe(3);
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });

  test('B020 B023 B024 append: each of three files has the rows and the length of its own object', async () => {
    const rows = [10n, 10n, 10n].flatMap((count, day) =>
      Array.from({ length: Number(count) }, (_, i) => ({
        device: `${'d'.repeat(50 * day)}${i}`,
        time: DAY + BigInt(day * 24) * HOUR + BigInt(i),
        v: BigInt(i),
      })),
    );
    await acknowledge(scenario, rows);
    await scenario.service.drain();
    const table = await readTable(storeBucket(scenario.world.memory), PLACE.prefix, { snapshots: 'current' });
    const state = snapshotState(table);
    const files = state === undefined ? [] : [...liveEntries(state)].map(({ dataFile }) => dataFile);
    expect(files.map(({ recordCount }) => recordCount)).toEqual([10n, 10n, 10n]);
    expect(new Set(files.map(({ fileSizeInBytes }) => fileSizeInBytes)).size).toBe(3);
    for (const { filePath, fileSizeInBytes } of files) {
      const object = await scenario.world.memory.head(PLACE.prefix + filePath.slice(PLACE.location.length));
      expect(fileSizeInBytes).toBe(BigInt(object?.size ?? 0));
    }
    await expectExactlyOnce(scenario);
  });

  test('B164 append: a reader of the browser finds the rows by locations that begin with s3://', async () => {
    await acknowledge(scenario, [uniqueRow(), uniqueRow()]);
    await scenario.service.drain();
    const found = await icebirdRows(storeBucket(scenario.world.memory), PLACE.prefix, { lossless: true });
    expect(scenario.service.table.base?.metadata.location).toMatch(/^s3:/);
    expect(found.map(({ device, v }) => [device, v])).toHaveLength(2);
  });

  test('append: the flush waits for the age of the oldest row, and a second batch joins it', async () => {
    const { service, world } = scenario;
    const startMs = world.clock.now();
    await acknowledge(scenario, [uniqueRow()]);
    await acknowledge(scenario, [uniqueRow()]);
    const due = service.writer.dueMs() ?? 0;
    expect(due - startMs).toBeGreaterThanOrEqual(10_000);
    expect(due - startMs).toBeLessThan(10_100);
    await service.drain();
    expect(service.table.base?.version).toBe(2);
    await expectExactlyOnce(scenario);
  });

  test('append: duplicates of one (series, time) keep the row that came last', async () => {
    await scenario.world.clock.until(
      scenario.service.append([
        { device: 'a', time: DAY, v: 1n },
        { device: 'a', time: DAY, v: 2n },
      ]),
    );
    await scenario.world.clock.until(scenario.service.append([{ device: 'a', time: DAY, v: 3n }]));
    await scenario.service.drain();
    expect(await tableRows(scenario.world)).toEqual([`a ${DAY} 3`]);
    await expectValid(scenario.world);
  });

  test('append: a caller that waits hears the snapshot, and hurries the flush', async () => {
    const { service, world } = scenario;
    const startMs = world.clock.now();
    const waiting = service.append([uniqueRow()], { waitMs: 20_000 });
    await world.clock.until(world.clock.sleep(10));
    // The alarm is for the rows; the caller's hurry lives in memory, as the caller does.
    expect(service.armedMs).toBeGreaterThanOrEqual(startMs + 10_000);
    const accepted = await world.clock.until(waiting);
    expect(accepted.state.state).toBe('committed');
    expect(world.clock.now() - startMs).toBeLessThan(5_000);
  });

  test('append: a caller whose wait runs out hears that the rows are buffered', async () => {
    const accepted = await scenario.world.clock.until(scenario.service.append([uniqueRow()], { waitMs: 10 }));
    expect(accepted.state).toEqual({ state: 'buffered' });
  });

  test('append: requests that arrive together share one ledger step', async () => {
    const { service, world, ledger } = scenario;
    let steps = 0;
    ledger.hook = (step, side) => {
      if (step === 'accept' && side === 'after') steps++;
    };
    const all = await world.clock.until(Promise.all([1, 2, 3].map(() => service.append([uniqueRow()]))));
    expect(steps).toBe(1);
    expect(all.map((accepted) => accepted.sequence)).toEqual([1, 2, 3]);
  });
});

describe('append: what it costs', () => {
  test.each([
    ['with its last-value index', {}, 6.3, ['putIfAbsent lvi-.parquet']],
    ['without one', { 'sluice.last-value-series-max': '0' }, 5.3, []],
  ])(
    'append: over 100 commits of one partition %s, few writes and at most 2.3 small reads each, in two round trips',
    {
      timeout: 60_000,
    },
    async (_name, properties, writesMax, more) => {
      const { service, world } = scenario;
      const { store } = service;
      if (Object.keys(properties).length > 0) await world.clock.until(service.changes.properties(properties, []));
      const first = service.table.base?.version ?? 0;
      await acknowledge(scenario, [uniqueRow()]);
      await service.drain();
      const from = store.log.length;
      const rounds: number[] = [];
      for (let commit = 0; commit < 100; commit++) {
        await acknowledge(scenario, [uniqueRow()]);
        const before = store.log.length;
        await service.drain();
        rounds.push(
          store.log
            .slice(before)
            .filter((call) => /\/v[0-9]+\.metadata\.json$/.test(call.key) && call.operation === 'putIfAbsent').length,
        );
      }
      const calls = store.log.slice(from);
      const writes = calls.filter((call) => call.operation.startsWith('put')).length;
      const reads = calls.filter((call) => call.operation === 'get' || call.operation === 'head').length;
      expect(calls.length).toBe(writes + reads);
      expect(writes / 100).toBeLessThanOrEqual(writesMax);
      expect(writes / 100).toBeGreaterThan(writesMax - 0.3);
      expect(reads / 100).toBeLessThanOrEqual(2.3);
      expect(Math.max(...rounds)).toBe(1);
      // Nothing of a commit waits for anything but the uploads and then the conditional write: seen from their order.
      const one = calls.slice(-7 - more.length).map((call) => {
        const name = call.key.slice(call.key.lastIndexOf('/') + 1);
        const unnamed = name.replace(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/, '').replace(/-[0-9]+-/, '-');
        return `${call.operation} ${unnamed}`;
      });
      const last = first + 101;
      expect(one.slice(0, -2).sort()).toEqual(
        [
          ...more,
          `head v${last - 1}.metadata.json`,
          `head v${last}.metadata.json`,
          'putIfAbsent -added-m.avro',
          'putIfAbsent snap-.avro',
          'putIfAbsent .parquet',
        ].sort(),
      );
      expect(one.slice(-2)).toEqual([`putIfAbsent v${last}.metadata.json`, 'putIf version-hint.text']);
      await expectExactlyOnce(scenario);
      expect(world.clock.now()).toBeGreaterThan(0);
    },
  );

  test('B151 append: an idle table asks for nothing', async () => {
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    const before = scenario.service.store.log.length;
    expect(scenario.service.writer.dueMs()).toBeNull();
    await scenario.world.clock.until(scenario.service.writer.run());
    expect(scenario.service.store.log.length).toBe(before);
  });
});

describe('append: manifests', () => {
  test('manifests: merged upwards in tiers, entries keep their snapshot and numbers, also after a restart', async () => {
    for (let commit = 0; commit < 20; commit++) {
      // Nothing is in memory from the eleventh on, so what is merged must be read.
      if (commit === 10) scenario.service = new Service(scenario.world, scenario.ledger);
      await acknowledge(scenario, [uniqueRow()]);
      await scenario.service.drain();
    }
    const manifests = scenario.service.table.base?.manifests ?? [];
    expect(manifests.length).toBeLessThanOrEqual(8);
    expect(manifests.some((manifest) => manifest.existingFilesCount === 8)).toBe(true);
    expect(manifests.reduce((sum, one) => sum + one.addedFilesCount + one.existingFilesCount, 0)).toBe(20);
    await expectExactlyOnce(scenario);
  });
});

describe('append: batch ids', () => {
  test('batch id: the same id and body is answered with the first receipt, committed or not', async () => {
    const { service, world } = scenario;
    const row = uniqueRow();
    const first = await world.clock.until(service.append([row], { batchId: 'b-1' }));
    const again = await world.clock.until(service.append([row], { batchId: 'b-1' }));
    expect(again).toEqual({ ...first, duplicate: true });
    await service.drain();
    const late = await world.clock.until(service.append([row], { batchId: 'b-1' }));
    expect(late.receipt).toBe(first.receipt);
    expect(late.state.state).toBe('committed');
    expect(await tableRows(world)).toHaveLength(1);
  });

  test('batch id: two requests at once with one id are one batch', async () => {
    const { service, world } = scenario;
    const row = uniqueRow();
    const [first, second] = await world.clock.until(
      Promise.all([service.append([row], { batchId: 'b-1' }), service.append([row], { batchId: 'b-1' })]),
    );
    expect(second.receipt).toBe(first.receipt);
    expect([first.duplicate, second.duplicate]).toEqual([false, true]);
    expect(scenario.ledger.state().buffer.rows).toBe(1);
  });

  test('batch id: another body under the same id is refused', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.append([uniqueRow()], { batchId: 'b-1' }));
    await expect(world.clock.until(service.append([uniqueRow()], { batchId: 'b-1' }))).rejects.toMatchObject({
      type: 'idempotency-conflict',
    });
  });

  test('batch id: a commit of exactly one batch carries it for the engine', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.append([uniqueRow()], { batchId: 'b-7' }));
    await service.drain();
    const summary: Record<string, string> = service.table.base?.metadata.snapshots.at(-1)?.summary ?? {};
    expect(summary['timelake.batch-id']).toBe('b-7');
  });
});

describe('forgetting', () => {
  test('B192 forgetting: goes on with the next run while there is more than a pass takes, then rests for an hour', async () => {
    const { ledger, service, world } = scenario;
    const passes: number[] = [];
    const left = [PRUNE_ROWS_MAX, PRUNE_ROWS_MAX, 7];
    ledger.prune = (beforeMs) => {
      passes.push(world.clock.now() - beforeMs);
      return left.shift() ?? 0;
    };
    world.clock.advance(PRUNE_INTERVAL_MS);
    for (let flush = 0; flush < 5; flush++) {
      world.clock.advance(PRUNE_INTERVAL_MS / 100);
      await acknowledge(scenario, [uniqueRow()]);
      await service.drain();
    }
    expect(passes).toEqual([BATCH_MEMORY_MS, BATCH_MEMORY_MS, BATCH_MEMORY_MS]);
    world.clock.advance(PRUNE_INTERVAL_MS);
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    expect(passes).toHaveLength(4);
  });
});

describe('append: batches that came together', () => {
  /** Counts the steps by which the ledger takes batches. */
  function acceptsOf(): number[] {
    const accepts: number[] = [];
    const { ledger } = scenario;
    const accept = ledger.accept.bind(ledger);
    ledger.accept = (frames, nowMs) => {
      accepts.push(frames.length);
      return accept(frames, nowMs);
    };
    return accepts;
  }

  async function appendMany(frames: NewFrame[]) {
    const { service, world } = scenario;
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const outcomes = await world.clock.until(service.writer.appendMany(frames, uuid));
    return outcomes.map((outcome) =>
      outcome.status === 'fulfilled' ? outcome.value : (outcome.reason as { type: string }).type,
    );
  }

  test('together: one ledger step, a receipt for each, and what stands in the way of one is no matter of the others', async () => {
    const { service, ledger, world } = scenario;
    await service.writer.check();
    const rows = [uniqueRow(), uniqueRow(), uniqueRow()];
    const frames = rows.map((row, n) => service.frame([row], `b-${n}`));
    const accepts = acceptsOf();
    const outcomes = await appendMany([
      ...frames,
      service.frame([rows[0]], 'b-0'),
      service.frame([uniqueRow()], 'b-1'),
      { ...service.frame([uniqueRow()], 'b-9'), schemaId: 99 },
    ]);
    expect(accepts).toEqual([3]);
    expect(outcomes).toMatchObject([
      { sequence: 1, duplicate: false, state: { state: 'buffered' } },
      { sequence: 2, duplicate: false },
      { sequence: 3, duplicate: false },
      { sequence: 1, duplicate: true },
      'idempotency-conflict',
      'table-changed',
    ]);
    expect(ledger.state().buffer).toMatchObject({ frames: 3, rows: 3 });

    await service.drain();
    const again = await appendMany(frames);
    expect(again).toMatchObject([1, 2, 3].map((sequence) => ({ sequence, duplicate: true })));
    expect(again[0]).toMatchObject({ state: { state: 'committed' } });
    expect(accepts).toEqual([3]);
    expect(await tableRows(world)).toHaveLength(3);
    await expectValid(world);
  });

  test('together: a full buffer takes those that fit and tells the others to come back', async () => {
    const { service } = scenario;
    service.store.faults.always('*', null, 'unreadable');
    await service.writer.check();
    const body = new Uint8Array(30 * 1024 * 1024);
    const frames = [1, 2, 3].map((n) => ({ ...service.frame([uniqueRow()], `b-${n}`), body }));
    expect(await appendMany(frames)).toMatchObject([{ sequence: 1 }, { sequence: 2 }, 'busy']);
  });

  test('together: for another table than the one that is there, nothing is taken', async () => {
    const { service, world, ledger } = scenario;
    await service.writer.check();
    const appended = world.clock.until(service.writer.appendMany([service.frame([uniqueRow()], 'b')], 'another'));
    await expect(appended).rejects.toMatchObject({ type: 'table-changed' });
    expect(ledger.state().buffer.frames).toBe(0);
  });
});

describe('append: backpressure', () => {
  test('buffer: beyond its bound, callers are told to come back and nothing is lost', async () => {
    const { service, world, ledger } = scenario;
    service.store.faults.always('*', null, 'unreadable');
    await acknowledge(scenario, [uniqueRow()]);
    const frame = { ...service.frame([uniqueRow()]), body: new Uint8Array(30 * 1024 * 1024) };
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    await world.clock.until(service.writer.append(frame, uuid, 0));
    await world.clock.until(service.writer.append(frame, uuid, 0));
    await expect(world.clock.until(service.writer.append(frame, uuid, 0))).rejects.toMatchObject({ type: 'busy' });
    expect(ledger.state().buffer.frames).toBe(3);
  });
});

describe('pointer', () => {
  test('pointer: a flush does not wait for the one before to move it', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    const held = service.store.faults.next('putIf', /version-hint/, 'slow');
    for (let flush = 0; flush < 2; flush++) {
      await acknowledge(scenario, [uniqueRow()]);
      world.clock.advance(20_000);
      await world.clock.until(service.writer.run());
    }
    await world.clock.until(held.reached);
    expect(service.table.base?.version).toBe(4);
    expect(service.writer.dueMs()).toBeNull();
    held.release();
    await service.drain();
    await world.clock.until(service.writer.pointed());
    await expectExactlyOnce(scenario);
  });

  test('B154 pointer: who flushes while an older move is under way hears when it is at the newest version', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    await acknowledge(scenario, [uniqueRow()]);
    const held = service.store.faults.next('putIf', /version-hint/, 'slow');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    await world.clock.until(held.reached);
    await acknowledge(scenario, [uniqueRow()]);
    const flushed = service.writer.flush();
    while (service.table.base?.version !== 4) await world.clock.until(world.clock.sleep(1));
    held.release();
    await world.clock.until(flushed);
    const hint = await world.memory.get(`${PLACE.prefix}/metadata/version-hint.text`);
    expect(new TextDecoder().decode(hint?.bytes)).toBe('4');
    expect(service.ledger.state().hintedVersion).toBe(4);
  });

  test('flush: that rows still wait is told, also when no commit was begun that could have failed', async () => {
    const { service, world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    ledger.hook = (step, side) => {
      if (step === 'seal' && side === 'before') throw new Error('database is full');
    };
    expect(await world.clock.until(service.writer.flush())).toMatchObject({
      error: { type: 'internal', message: 'database is full' },
      state: { buffer: { frames: 1 }, intent: null },
    });
    ledger.hook = () => undefined;
    expect(await world.clock.until(service.writer.flush())).toMatchObject({
      error: null,
      state: { buffer: { frames: 0 } },
    });
    await expectExactlyOnce(scenario);
  });

  test('pointer: proposals that come one by one, each while another is written, all go out', async () => {
    const { service, world } = scenario;
    let proposed = 2;
    const store = new Proxy(world.memory, {
      get: (target, name) =>
        name === 'putIf'
          ? (...args: Parameters<Store['putIf']>) => {
              if (proposed < 9) void hint.propose(++proposed);
              return target.putIf(...args);
            }
          : Reflect.get(target, name).bind(target),
    });
    const hint = new Hint({ store, clock: world.clock, random: world.random }, service.table.sink);
    await world.clock.until(hint.propose(proposed));
    const stored = await world.memory.get(`${PLACE.prefix}/metadata/version-hint.text`);
    expect(new TextDecoder().decode(stored?.bytes)).toBe('9');
  });

  test('pointer: others that are faster each time are told of, and it is tried again', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    let theirs = 0;
    const key = `${PLACE.prefix}/metadata/version-hint.text`;
    service.store.onBefore(({ operation }) => {
      // Unconditionally, and with an older version, as an engine does that is late.
      if (operation === 'putIf' && theirs++ < HINT_TRIES_MAX) world.memory.plant(key, utf8('1'), `theirs ${theirs}`);
    });
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    await world.clock.until(service.writer.pointed());
    expect(service.ledger.state().hintedVersion).toBe(1);
    expect(service.writer.lastRunError?.type).toBe('pointer-contended');
    await service.drain();
    expect(new TextDecoder().decode(world.memory.peek(key)?.bytes)).toBe('2');
    expect(service.ledger.state().hintedVersion).toBe(2);
  });

  test('B154 pointer: digits without a newline, never backwards, and moved past versions of others', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const hintKey = `${PLACE.prefix}/metadata/version-hint.text`;
    // Another writer has been further when ours comes to move the pointer.
    const held = service.store.faults.next('get', hintKey, 'slow');
    world.memory.plant(hintKey, utf8('1 '));
    const run = service.drain();
    await held.reached;
    world.memory.plant(`${PLACE.prefix}/metadata/v9.metadata.json`, new Uint8Array());
    world.memory.plant(hintKey, utf8('9'));
    held.release();
    await run;
    expect(new TextDecoder().decode((await world.memory.get(hintKey))?.bytes)).toBe('9');
  });
});

describe('create', () => {
  test('create: the same definition is answered with the table, another one is refused', async () => {
    const { service, world } = scenario;
    const again = await world.clock.until(service.admin.create(SERIES));
    expect(again.created).toBe(false);
    const other = { ...SERIES, chunk: 'hour' as const };
    await expect(world.clock.until(service.admin.create(other))).rejects.toMatchObject({ type: 'table-exists' });
  });
});
