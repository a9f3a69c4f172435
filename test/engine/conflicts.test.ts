import { describe, expect, test } from 'vitest';
import { MATRIX, type Mine, type Resolution, type Theirs } from '../../src/core/commit/conflicts.ts';
import type { IcebergBase } from '../../src/core/commit/iceberg-base.ts';
import { indexOf as lastValueIndexOf } from '../../src/core/commit/last-value.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import type { CommitResult } from '../../src/engine/committer.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows } from '../oracle/rows.ts';
import { acknowledge, expectValid, newScenario, type Scenario, spelled, tableRows } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import {
  commit,
  deleteOf,
  indexOf,
  metadataOf,
  ofDay,
  on,
  overwriteOf,
  replaceOf,
  rewriteManifestsOf,
} from './file-operations.ts';
import { BEFORE, doTheirs, type Rows, without } from './theirs.ts';

/**
 * Every cell of the table of concurrent operations, made to happen: mine has decided and confirmed its base and its
 * conditional write waits; theirs goes through; mine is let go. What is expected follows from `MATRIX`.
 */

const NEW = on(0, 50, 'mine');

/** The branch of an append to one; theirs moves it, when it is about refs. */
const BRANCH = 'b';

const SERIES_MAX = 'sluice.last-value-series-max';

/** What an operation does to the rows of a table, as a reader of main sees it. */
const EFFECT: { readonly [mine in Mine]: (rows: Rows) => Rows } = {
  append: (rows) => [...rows, NEW],
  'append-to-branch': (rows) => rows,
  replace: (rows) => rows,
  delete: (rows) => without(rows, 0),
  overwrite: (rows) => [...without(rows, 0), NEW],
  'rewrite-manifests': (rows) => rows,
  index: (rows) => rows,
};

async function mineOf(mine: Mine, { world, service }: Scenario): Promise<Operation | null> {
  switch (mine) {
    case 'append':
    case 'append-to-branch':
      return null;
    case 'replace':
      return replaceOf(world, service, 0, BEFORE.slice(0, 2));
    case 'delete':
      return deleteOf(world, service, ofDay(0));
    case 'overwrite':
      return overwriteOf(world, service, ofDay(0), [NEW]);
    case 'rewrite-manifests':
      return rewriteManifestsOf(world, service);
    case 'index':
      return indexOf(world, service, BEFORE);
  }
}

interface Race {
  scenario: Scenario;
  result: CommitResult<IcebergBase> | null;
  afterTheirs: Rows;
  operation: Operation | null;
}

async function race(mine: Mine, theirs: Theirs | 'branch dropped', day: number): Promise<Race> {
  const scenario = await newScenario();
  const { world, service } = scenario;
  // Rows come while the table is not to have an index, which is made once it may have one.
  if (mine === 'index') await world.clock.until(service.changes.properties({ [SERIES_MAX]: '0' }, []));
  for (const row of BEFORE) {
    await acknowledge(scenario, [row]);
    await service.drain();
  }
  if (mine === 'index') await world.clock.until(service.changes.properties({}, [SERIES_MAX]));
  const other = new Service(world, new SimLedger('00000000000000bb'));
  await world.clock.until(other.table.load());
  if (mine === 'append') await acknowledge(scenario, [NEW]);
  if (mine === 'append-to-branch') await sendToBranch(scenario);
  const operation = await mineOf(mine, scenario);
  const target = (service.table.base?.version ?? 0) + 1;
  const held = service.store.faults.next('putIfAbsent', new RegExp(`v${target}\\.metadata\\.json$`), 'slow');
  world.clock.advance(20_000);
  const run =
    operation === null ? service.writer.run().then(() => null) : service.table.commit(operation, () => undefined);
  await world.clock.until(held.reached);
  let afterTheirs = BEFORE;
  if (theirs === 'branch dropped') await world.clock.until(other.changes.dropRef(BRANCH));
  else afterTheirs = await doTheirs(theirs, day, scenario, other);
  held.release();
  const result = await world.clock.until(run);
  // The window was open, and somebody else went through it.
  expect(service.count('lost-race')).toBeGreaterThanOrEqual(1);
  return { scenario, result, afterTheirs, operation };
}

async function sendToBranch({ world, service }: Scenario): Promise<void> {
  await world.clock.until(service.changes.setRef({ name: BRANCH, type: 'branch', snapshotId: null }));
  await service.drain();
  const { metadata } = await world.clock.until(service.writer.live());
  await world.clock.until(
    service.writer.append({ ...service.frame([NEW]), branch: BRANCH }, metadata['table-uuid'], 0),
  );
}

/** The new row is on the branch, on top of what that held where it was moved to. */
async function expectOnBranch({ world, service }: Scenario, before: Rows): Promise<void> {
  const snapshotId = metadataOf(service).refs[BRANCH]['snapshot-id'];
  const found = await rows(storeBucket(world.memory), PLACE.prefix, { snapshotId });
  const texts = found.map((row) => `${row['device']} ${row['time']} ${row['v']}`).sort();
  expect(texts).toEqual(sorted([...before, NEW]));
}

const sorted = (rows: Rows) => rows.map(spelled).sort();

async function expectRebased({ scenario, result, afterTheirs }: Race, mine: Mine, theirs: Theirs): Promise<void> {
  const { service, world } = scenario;
  if (result === null) expect(scenario.ledger.state().intent).toBeNull();
  else expect(result.outcome).toBe('committed');
  expect(service.count(`rebased-over-${theirs}`)).toBe(1);
  expect(await tableRows(world)).toEqual(sorted(EFFECT[mine](afterTheirs)));
  if (mine === 'index') expect(lastValueIndexOf(metadataOf(service))).not.toBeNull();
  if (mine === 'append-to-branch') await expectOnBranch(scenario, theirs === 'refs' ? BEFORE.slice(0, 1) : BEFORE);
  await expectValid(world, false);
}

/** Cells in which theirs, on the same day, did all that mine was to do: no version is written. */
const NOTHING_LEFT = new Set([
  'delete delete',
  'rewrite-manifests rewrite-manifests',
  // Back to the first snapshot, of one manifest.
  'rewrite-manifests rollback',
]);

async function expectResolved(resolution: Resolution, mine: Mine, theirs: Theirs): Promise<void> {
  switch (resolution) {
    case 'rebase':
    case 'layout-known':
      return expectRebased(await race(mine, theirs, 1), mine, theirs);
    case 'choose-again': {
      // On the same day, so that what theirs added or removed is what mine is about.
      const raced = await race(mine, theirs, 0);
      if (!NOTHING_LEFT.has(`${mine} ${theirs}`)) return expectRebased(raced, mine, theirs);
      const { scenario, result, afterTheirs } = raced;
      expect(result?.outcome).toBe('nothing');
      expect(scenario.service.table.base?.version).toBe(6);
      expect(await tableRows(scenario.world)).toEqual(sorted(afterTheirs));
      await expectValid(scenario.world, false);
      return theirs === 'rewrite-manifests' ? undefined : expectRebased(await race(mine, theirs, 1), mine, theirs);
    }
    case 'inputs-live': {
      await expectRebased(await race(mine, theirs, 1), mine, theirs);
      const { scenario, result, afterTheirs } = await race(mine, theirs, 0);
      expect(result).toMatchObject({ outcome: 'conflict', type: 'inputs-gone', discardable: true });
      expect(scenario.service.count('inputs-gone')).toBe(1);
      expect(await tableRows(scenario.world)).toEqual(sorted(afterTheirs));
      return expectValid(scenario.world, false);
    }
    case 'branch-there': {
      await expectRebased(await race(mine, theirs, 1), mine, theirs);
      const { scenario } = await race(mine, 'branch dropped', 1);
      expect(scenario.ledger.receipt(5)).toMatchObject({ state: 'refused', type: 'unknown-ref' });
      expect(scenario.ledger.state()).toMatchObject({ intent: null, buffer: { frames: 0 } });
      expect(await tableRows(scenario.world)).toEqual(sorted(BEFORE));
      return expectValid(scenario.world, false);
    }
    case 'look-again': {
      const { scenario, result, afterTheirs } = await race(mine, theirs, 0);
      expect(result).toMatchObject({ outcome: 'conflict', type: 'index-behind' });
      expect(await tableRows(scenario.world)).toEqual(sorted(afterTheirs));
      return expectValid(scenario.world, false);
    }
    case 'prepare-again': {
      const raced = await race(mine, theirs, 1);
      const { scenario, result, afterTheirs } = raced;
      if (result !== null) {
        expect(result.outcome).toBe('again');
        const operation = await mineOf(mine, scenario);
        if (operation === null) throw new Error('not an operation');
        expect((await commit(scenario.world, scenario.service, operation)).outcome).toBe('committed');
      }
      expect(await tableRows(scenario.world)).toEqual(sorted(EFFECT[mine](afterTheirs)));
      if (mine === 'append-to-branch') await expectOnBranch(scenario, BEFORE);
      return expectValid(scenario.world, false);
    }
    case 'gone': {
      const { scenario, result } = await race(mine, theirs, 1);
      if (result !== null) expect(result).toMatchObject({ outcome: 'refused', type: 'table-dropped' });
      else expect(scenario.ledger.receipt(5)).toMatchObject({ state: 'refused', type: 'table-dropped' });
      expect(await tableRows(scenario.world)).toEqual([]);
      return expectValid(scenario.world, false);
    }
  }
}

describe('conflicts: mine × theirs', () => {
  const cells = (Object.keys(MATRIX) as Mine[]).flatMap((mine) =>
    (Object.keys(MATRIX[mine]) as Theirs[]).map((theirs): [Mine, Theirs, Resolution] => [
      mine,
      theirs,
      MATRIX[mine][theirs],
    ]),
  );
  test.each(cells)('conflict: %s over %s is %s', { timeout: 30_000 }, async (mine, theirs, resolution) => {
    await expectResolved(resolution, mine, theirs);
  });
});
