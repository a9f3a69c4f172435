import { beforeEach, describe, expect, test } from 'vitest';
import { EPOCH_MAX } from '../../src/core/batch/admission.ts';
import { ownApp, readEpochs } from '../../src/core/batch/epochs.ts';
import { MAIN, snapshotOfRef } from '../../src/core/iceberg/snapshot.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows } from '../oracle/rows.ts';
import {
  acknowledge,
  expectExactlyOnce,
  newScenario,
  type Scenario,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf } from './file-operations.ts';

/** Rows that go to a branch, through ledger, flush and commit, beside those that go to main. */

const BRANCH = 'audit';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
  await acknowledge(scenario, [uniqueRow()]);
  await scenario.service.drain();
  await makeBranch();
});

function makeBranch(service = scenario.service) {
  return scenario.world.clock.until(service.changes.setRef({ name: BRANCH, type: 'branch', snapshotId: null }));
}

/** Accepts rows for a branch. */
async function send(given: readonly SeriesRow[], branch: string, batchId: string | null = null) {
  const { service, world } = scenario;
  const { metadata } = await world.clock.until(service.writer.live());
  const plain = service.frame(given, batchId);
  const frame = { ...plain, branch, digest: `${plain.digest} ${branch}` };
  return world.clock.until(service.writer.append(frame, metadata['table-uuid'], 0));
}

async function branchRows(branch = BRANCH): Promise<string[]> {
  const { world, service } = scenario;
  const metadata = (await world.clock.until(service.table.load()))?.metadata;
  const snapshotId = metadata === undefined ? undefined : snapshotOfRef(metadata, branch)?.['snapshot-id'];
  const found = await rows(storeBucket(world.memory), PLACE.prefix, { snapshotId });
  return found.map((row) => `${row['device']} ${row['time']} ${row['v']}`).sort();
}

describe('branches: rows that name one', () => {
  test('append: to the branch alone, with a receipt; main and its progress stay', async () => {
    const before = await tableRows(scenario.world);
    const row = uniqueRow();
    const { sequence } = await send([row], BRANCH);
    await scenario.service.drain();
    expect(scenario.ledger.receipt(sequence)).toMatchObject({ state: 'committed' });
    expect(await branchRows()).toEqual([...before, spelled(row)].sort());
    await expectExactlyOnce(scenario);
    const app = ownApp('00000000000000aa', BRANCH);
    expect(readEpochs(metadataOf(scenario.service), BRANCH).get(app)).toBe(BigInt(sequence));
    expect(readEpochs(metadataOf(scenario.service)).has(app)).toBe(false);
  });

  test('flush: one commit is of one branch, and batches of both are in order and once', async () => {
    const { service, world } = scenario;
    const version = service.table.base?.version ?? 0;
    const sent: [string, SeriesRow][] = [MAIN, MAIN, BRANCH, BRANCH, MAIN, BRANCH].map((b) => [b, uniqueRow()]);
    for (const [branch, row] of sent) {
      if (branch === MAIN) await acknowledge(scenario, [row]);
      else await send([row], branch);
    }
    world.clock.advance(20_000);
    await world.clock.until(service.writer.flush());
    expect((service.table.base?.version ?? 0) - version).toBe(4);
    await expectExactlyOnce(scenario);
    const mine = sent.filter(([branch]) => branch === BRANCH).map(([, row]) => spelled(row));
    expect(await branchRows()).toEqual([scenario.acknowledged[0], ...mine].sort());
  });

  test('door: an unknown branch and a tag are refused, one that another service made is found', async () => {
    const { service, world, ledger } = scenario;
    await expect(send([uniqueRow()], 'nowhere')).rejects.toMatchObject({ kind: 'invalid', type: 'unknown-ref' });
    await world.clock.until(service.changes.setRef({ name: 't', type: 'tag', snapshotId: null }));
    await expect(send([uniqueRow()], 't')).rejects.toMatchObject({ kind: 'invalid', type: 'bad-ref' });
    expect(ledger.state().buffer.frames).toBe(0);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.changes.setRef({ name: 'theirs', type: 'branch', snapshotId: null }));
    await expect(send([uniqueRow()], 'theirs')).resolves.toMatchObject({ state: { state: 'buffered' } });
  });

  test('door: the same batch id for another branch is another batch', async () => {
    const row = uniqueRow();
    const first = await send([row], BRANCH, 'b-1');
    expect(await send([row], BRANCH, 'b-1')).toMatchObject({ sequence: first.sequence, duplicate: true });
    await expect(send([row], MAIN, 'b-1')).rejects.toMatchObject({ type: 'idempotency-conflict' });
  });

  test('a branch that goes while rows wait: they are refused visibly, and nobody else', async () => {
    const { service, world, ledger } = scenario;
    const lost = await send([uniqueRow()], BRANCH);
    await acknowledge(scenario, [uniqueRow()]);
    await world.clock.until(service.changes.dropRef(BRANCH));
    await service.drain();
    expect(ledger.receipt(lost.sequence)).toMatchObject({ state: 'refused', type: 'unknown-ref' });
    expect(ledger.state().lastError).toMatchObject({ type: 'unknown-ref' });
    await expectExactlyOnce(scenario);
  });

  test('main moves forward to the branch: rows that wait for main are not taken for committed', async () => {
    const { service, world } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const held = service.store.faults.always('putIfAbsent', /\.parquet$/, 'refused');
    await world.clock.until(service.writer.flush());
    held.clear();
    const base = await world.clock.until(service.table.load());
    // Another service commits to the branch, far above every number of ours, and main moves there.
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const { metadata } = await world.clock.until(other.writer.live());
    const row = uniqueRow();
    const frame = { ...other.frame([row]), branch: BRANCH };
    await world.clock.until(other.writer.append(frame, metadata['table-uuid'], 0));
    await other.drain();
    await world.clock.until(other.changes.fastForward(MAIN, BRANCH));
    scenario.acknowledged.push(spelled(row));
    expect(other.table.base?.version).toBeGreaterThan(base?.version ?? 0);
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('a ledger restored to before a batch of a branch is noticed, and its numbers are not given again', async () => {
    const { service, world, ledger } = scenario;
    const copy = ledger.snapshot();
    await send([uniqueRow()], BRANCH);
    await service.drain();
    const before = await branchRows();
    ledger.restore(copy);
    scenario.service = new Service(world, ledger);
    const row = uniqueRow();
    await send([row], BRANCH);
    await scenario.service.drain();
    expect(scenario.service.count('ledger-restored')).toBe(1);
    expect(await branchRows()).toEqual([...before, spelled(row)].sort());
    await expectExactlyOnce(scenario);
  });

  test('an app that retires leaves with a commit of main, not with one of a branch', async () => {
    const { service, world, ledger } = scenario;
    const { metadata } = await world.clock.until(service.writer.live());
    const producer = { app: 'a', epoch: 1n, sparse: false };
    const row = uniqueRow();
    await world.clock.until(service.writer.append({ ...service.frame([row]), producer }, metadata['table-uuid'], 0));
    scenario.acknowledged.push(spelled(row));
    await service.drain();
    await send([uniqueRow()], BRANCH);
    service.writer.apps.retire('a');
    await service.drain();
    expect(ledger.appNames()).toEqual([]);
    expect(readEpochs(metadataOf(service)).has('a')).toBe(false);
    await expectExactlyOnce(scenario);
  });

  test('a branch whose map of progress is full: refused at the door, or with its batches, and main goes on', async () => {
    const { service, world, ledger } = scenario;
    const { metadata } = await world.clock.until(service.writer.live());
    // Epochs of as many digits as there are, under names of all lengths, until no app fits any more.
    let count = 0;
    for (const length of [100, 60, 20, 8, 3]) {
      for (let full = false; !full; ) {
        const producer = { app: `${count++}`.padEnd(length, 'x'), epoch: EPOCH_MAX, sparse: true };
        const row = uniqueRow();
        const frame = { ...service.frame([row]), producer };
        await world.clock.until(service.writer.append(frame, metadata['table-uuid'], 0)).then(
          () => scenario.acknowledged.push(spelled(row)),
          (error) => {
            expect(error).toMatchObject({ kind: 'rejected', type: 'too-many-apps' });
            full = true;
          },
        );
      }
    }
    const { sequence } = await send([uniqueRow()], BRANCH);
    // The commit of the branch cannot be written, and meanwhile the branch is made anew where main is.
    const version = service.table.base?.version ?? 0;
    const held = service.store.faults.always(
      'putIfAbsent',
      new RegExp(`v${version + 2}\\.metadata\\.json$`),
      'refused',
    );
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    held.clear();
    expect(ledger.state()).toMatchObject({ intent: { intent: { branch: BRANCH } }, buffer: { frames: 1 } });
    await world.clock.until(service.changes.dropRef(BRANCH));
    await makeBranch();
    await expect(send([uniqueRow()], BRANCH)).rejects.toMatchObject({ type: 'too-many-apps' });
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    expect(ledger.receipt(sequence)).toMatchObject({ state: 'refused', type: 'too-many-apps' });
    await expectExactlyOnce(scenario);
  });
});
