import { beforeEach, describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { readEpochs } from '../../src/core/batch/epochs.ts';
import type { Producer } from '../../src/core/batch/frame.ts';
import { serializeMetadata } from '../../src/core/iceberg/metadata.ts';
import { applyUpdates } from '../../src/core/iceberg/updates.ts';
import {
  expectExactlyOnce,
  expectValid,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

/** Sends one batch of an app; remembers its row as acknowledged. */
async function send(producer: Producer, options: { row?: SeriesRow; service?: Service } = {}) {
  const { row = uniqueRow(producer.app), service = scenario.service } = options;
  const { clock } = scenario.world;
  await clock.until(service.writer.check());
  const uuid = service.table.base?.metadata['table-uuid'] ?? '';
  const accepted = await clock.until(service.writer.append({ ...service.frame([row]), producer }, uuid, 0));
  if (!accepted.duplicate) scenario.acknowledged.push(spelled(row));
  return accepted;
}

const dense = (app: string, epoch: bigint): Producer => ({ app, epoch, sparse: false });
const watermark = (app: string) => readEpochs(scenario.service.table.base?.metadata ?? ({} as never)).get(app);

/** Another writer changes the table's schema: `device` becomes required, so rows without one do not fit any more. */
async function moveMain(snapshotId: bigint): Promise<void> {
  const { base } = scenario.service.table;
  if (base === null) throw new Error('not loaded');
  const next = applyUpdates(
    base.metadata,
    [{ action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': snapshotId }],
    {
      nowMs: scenario.world.clock.now(),
      previousMetadataLocation: `${PLACE.location}/metadata/v${base.version}.metadata.json`,
    },
  );
  const key = `${PLACE.prefix}/metadata/v${base.version + 1}.metadata.json`;
  await scenario.world.memory.putIfAbsent(key, utf8(serializeMetadata(next)));
}

describe('epochs: at the door', () => {
  test('epoch: committed with the rows, in the same version', async () => {
    await send(dense('a', 1n));
    await send(dense('a', 2n));
    await send(dense('b', 7n));
    expect(watermark('a')).toBeUndefined();
    await scenario.service.drain();
    expect([watermark('a'), watermark('b')]).toEqual([2n, 7n]);
    await expectExactlyOnce(scenario);
  });

  test('B110 epoch: a replay with the same body is a duplicate, waiting, committed and in a new incarnation', async () => {
    const row = uniqueRow('a');
    const first = await send(dense('a', 1n), { row });
    expect(await send(dense('a', 1n), { row })).toMatchObject({ duplicate: true, receipt: first.receipt });
    await scenario.service.drain();
    expect(await send(dense('a', 1n), { row })).toMatchObject({ duplicate: true, state: { state: 'committed' } });
    scenario.service = new Service(scenario.world, scenario.ledger);
    expect(await send(dense('a', 1n), { row })).toMatchObject({ duplicate: true, receipt: first.receipt });
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });

  test('epoch: two requests at once of one epoch are one batch', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.writer.check());
    const frame = { ...service.frame([uniqueRow('a')]), producer: dense('a', 1n) };
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const both = await world.clock.until(
      Promise.all([service.writer.append(frame, uuid, 0), service.writer.append(frame, uuid, 0)]),
    );
    expect(both.map(({ duplicate }) => duplicate)).toEqual([false, true]);
    expect(service.ledger.state().buffer.frames).toBe(1);
  });

  test('epoch: gap, behind and another body are refused by name', async () => {
    await send(dense('a', 1n));
    await expect(send(dense('a', 3n))).rejects.toMatchObject({ type: 'epoch-gap', detail: { expected: '2' } });
    await expect(send(dense('a', 1n))).rejects.toMatchObject({ type: 'epoch-conflict' });
    for (let epoch = 2n; epoch <= 70n; epoch++) await send(dense('a', epoch));
    await expect(send(dense('a', 2n))).rejects.toMatchObject({ type: 'epoch-behind' });
    await scenario.service.drain();
    await expect(send(dense('a', 2n))).rejects.toMatchObject({ type: 'epoch-behind', detail: { committed: '70' } });
    await expectExactlyOnce(scenario);
  });

  test('epoch: sparse apps count as they like', async () => {
    await send({ app: 's', epoch: 10n, sparse: true });
    await send({ app: 's', epoch: 1000n, sparse: true });
    await scenario.service.drain();
    expect(watermark('s')).toBe(1000n);
    await expectExactlyOnce(scenario);
  });

  test('epoch: as many apps as the map holds, the next one is refused at the door', async () => {
    let refused: unknown = null;
    for (let index = 0; index < 200 && refused === null; index++) {
      await send(dense(`application-number-${index}`, 1n)).catch((error) => {
        refused = error;
      });
    }
    await scenario.service.drain();
    expect(refused).toMatchObject({ type: 'too-many-apps' });
    await expectExactlyOnce(scenario);
  });
});

describe('epochs: on the base of each attempt', () => {
  test('B106 B184 one epoch by two services, the window between check and write held open: committed once', async () => {
    const { service, world } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const row = uniqueRow('a');
    await send(dense('a', 5n), { row });
    await world.clock.until(other.writer.check());
    const uuid = other.table.base?.metadata['table-uuid'] ?? '';
    const theirs = await world.clock.until(
      other.writer.append({ ...other.frame([row]), producer: dense('a', 5n) }, uuid, 0),
    );
    const held = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    await world.clock.until(other.writer.run());
    held.release();
    await world.clock.until(run);
    expect(service.count('lost-race')).toBe(1);
    expect(other.ledger.receipt(theirs.sequence)?.state).toBe('committed');
    expect(service.ledger.state().buffer.frames).toBe(0);
    expect(await tableRows(world)).toEqual([spelled(row)]);
    await expectValid(world);
  });

  test('rollback: progress goes back with the rows, and a replay is accepted again', async () => {
    const first = uniqueRow('a');
    const second = uniqueRow('a');
    await send(dense('a', 1n), { row: first });
    await scenario.service.drain();
    const earlier = scenario.service.table.base?.metadata['current-snapshot-id'] ?? 0n;
    await send(dense('a', 2n), { row: second });
    await scenario.service.drain();
    await moveMain(earlier);
    await scenario.world.clock.until(scenario.service.table.load());
    expect(watermark('a')).toBe(1n);
    const again = await send(dense('a', 2n), { row: second });
    expect(again.duplicate).toBe(false);
    expect(scenario.service.count('replayed-after-rollback')).toBe(1);
    await scenario.service.drain();
    expect(await tableRows(scenario.world)).toEqual([spelled(first), spelled(second)].sort());
    await expectValid(scenario.world);
  });

  test('rollback: batches that waited are refused as a gap, and nobody else is', async () => {
    await send(dense('a', 1n));
    await scenario.service.drain();
    const earlier = scenario.service.table.base?.metadata['current-snapshot-id'] ?? 0n;
    await send(dense('a', 2n));
    await scenario.service.drain();
    const waiting = await send(dense('a', 3n));
    const plain = await scenario.world.clock.until(scenario.service.append([uniqueRow('plain')]));
    await moveMain(earlier);
    await scenario.service.drain();
    expect(scenario.ledger.receipt(waiting.sequence)).toMatchObject({ state: 'refused', type: 'epoch-gap' });
    expect(scenario.ledger.receipt(plain.sequence)?.state).toBe('committed');
    expect(scenario.service.count('batch-left-out')).toBe(1);
    await expect(send(dense('a', 4n))).rejects.toMatchObject({ type: 'epoch-gap', detail: { expected: '2' } });
    await expectValid(scenario.world);
  });
});

describe('epochs: parked apps', () => {
  /** App `a` sends 1 and 2, its first batch being one that does not fit; app `b` sends one that does. */
  async function park() {
    const { service, world } = scenario;
    await world.clock.until(service.writer.check());
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const broken = { ...service.frame([uniqueRow('a')]), producer: dense('a', 1n) };
    const bad = await world.clock.until(service.writer.append({ ...broken, body: broken.body.slice(0, -2) }, uuid, 0));
    const behindRow = uniqueRow('a');
    const behind = await send(dense('a', 2n), { row: behindRow });
    await send(dense('b', 1n));
    await service.drain();
    return { bad, behind, behindRow };
  }

  test('parked: a refused batch holds up its own app and nobody else', async () => {
    const { bad, behind } = await park();
    expect(scenario.ledger.receipt(bad.sequence)).toMatchObject({ state: 'parked', type: 'frame-corrupt' });
    expect(scenario.ledger.receipt(behind.sequence)).toMatchObject({ state: 'parked', type: 'app-parked' });
    expect(watermark('b')).toBe(1n);
    expect(watermark('a')).toBeUndefined();
    expect(scenario.service.count('app-parked')).toBe(1);
    const told = scenario.service.events.filter(({ event }) => event === 'batches-refused');
    expect(told.map(({ outcome, type, batches }) => [outcome, type, batches])).toEqual([
      ['parked', 'frame-corrupt', 1],
      ['parked', 'app-parked', 1],
    ]);
    await expect(send(dense('a', 3n))).rejects.toMatchObject({ type: 'app-parked', detail: { epoch: '1' } });
    await send(dense('b', 2n));
    await scenario.service.drain();
    expect(watermark('b')).toBe(2n);
    const { parked } = scenario.service.writer.apps.status('a');
    expect(parked).toMatchObject({ epoch: 1n, type: 'frame-corrupt', behind: 1 });
  });

  test('skip: the epoch counts as done without its rows, those behind it follow', async () => {
    const { bad, behind } = await park();
    expect(() => scenario.service.writer.apps.skip('a', 2n)).toThrow('another epoch');
    scenario.service.writer.apps.skip('a', 1n);
    await scenario.service.drain();
    expect(watermark('a')).toBe(2n);
    expect(scenario.ledger.receipt(bad.sequence)).toMatchObject({ state: 'refused', type: 'epoch-skipped' });
    expect(scenario.ledger.receipt(behind.sequence)?.state).toBe('committed');
    await send(dense('a', 3n));
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });

  test('skip: not while a batch waits that was taken before the refusal was known; it would come first', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.writer.check());
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const broken = { ...service.frame([uniqueRow('a')]), producer: dense('a', 1n) };
    await world.clock.until(service.writer.append({ ...broken, body: broken.body.slice(0, -2) }, uuid, 0));
    await send(dense('a', 2n));
    // The commit that leaves them out is under way when the third comes.
    await send(dense('b', 1n));
    const held = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    const third = await send(dense('a', 3n));
    held.release();
    await world.clock.until(run);
    expect(() => service.writer.apps.skip('a', 1n)).toThrow('wait for their commit');
    await service.drain();
    expect(scenario.ledger.receipt(third.sequence)).toMatchObject({ state: 'parked', type: 'app-parked' });
    service.writer.apps.skip('a', 1n);
    await service.drain();
    expect(watermark('a')).toBe(3n);
    await expectExactlyOnce(scenario);
  });

  test('replace: another body takes the epoch, and a crash in between changes nothing', async () => {
    await park();
    const row = uniqueRow('a');
    scenario.service.writer.apps.replace('a', 1n, scenario.service.frame([row]));
    scenario.acknowledged.push(spelled(row));
    scenario.service = new Service(scenario.world, scenario.ledger);
    await scenario.world.clock.until(scenario.service.writer.check());
    await scenario.service.drain();
    expect(watermark('a')).toBe(2n);
    await expectExactlyOnce(scenario);
  });

  test('skip: alone in the buffer, it moves progress on by a commit without rows', async () => {
    const { service, world } = scenario;
    await world.clock.until(service.writer.check());
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const frame = { ...service.frame([uniqueRow('a')]), producer: dense('a', 1n) };
    await world.clock.until(service.writer.append({ ...frame, body: frame.body.slice(0, -2) }, uuid, 0));
    await service.drain();
    expect(service.table.base?.version).toBe(1);
    service.writer.apps.skip('a', 1n);
    await service.drain();
    expect(watermark('a')).toBe(1n);
    await expectExactlyOnce(scenario);
  });

  test('retire: the app leaves the map with the next commit, and may begin anew', async () => {
    await send(dense('a', 5n));
    await scenario.service.drain();
    scenario.service.writer.apps.retire('a');
    await expect(send(dense('a', 6n))).rejects.toMatchObject({ type: 'app-retiring' });
    await scenario.service.drain();
    expect(watermark('a')).toBeUndefined();
    expect(() => scenario.service.writer.apps.status('a')).toThrow('not known');
    await send(dense('a', 1n));
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });
});

describe('epochs: what a commit leaves out is in its snapshot', () => {
  test('B119 crash: between the commit and its settling, the next incarnation settles the same batches the same way', async () => {
    const { service, world, ledger } = scenario;
    await world.clock.until(service.writer.check());
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const broken = { ...service.frame([uniqueRow('a')]), producer: dense('a', 1n) };
    const bad = await world.clock.until(service.writer.append({ ...broken, body: broken.body.slice(0, -2) }, uuid, 0));
    const good = await send(dense('b', 1n));
    ledger.hook = (step) => {
      if (step === 'settle' || step === 'defer') throw new Error('power cut');
    };
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    ledger.hook = () => undefined;
    expect(ledger.state().intent).not.toBeNull();
    scenario.service = new Service(world, ledger);
    await world.clock.until(scenario.service.writer.check());
    await scenario.service.drain();
    expect(scenario.service.count('read-back-own')).toBe(1);
    expect(ledger.receipt(bad.sequence)).toMatchObject({ state: 'parked', type: 'frame-corrupt' });
    expect(ledger.receipt(good.sequence)?.state).toBe('committed');
    await expectExactlyOnce(scenario);
  });
});
