import { describe, expect, test } from 'vitest';
import { CHANGES_KEY } from '../../src/core/commit/changes.ts';
import { CHANGES_MATRIX, type ChangeResolution, type MyChange, type Theirs } from '../../src/core/commit/conflicts.ts';
import type { Plan } from '../../src/core/commit/plan.ts';
import { expire } from '../../src/core/commit/plan-expire.ts';
import { setProperties } from '../../src/core/commit/plan-properties.ts';
import { rollback, setRef } from '../../src/core/commit/plan-refs.ts';
import { changeSchema, parseSchemaChanges } from '../../src/core/commit/plan-schema.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import type { TableMetadata } from '../../src/core/iceberg/types.ts';
import type { Changed } from '../../src/engine/table-changes.ts';
import { acknowledge, expectValid, newScenario, type Scenario, spelled, tableRows } from '../sim/scenario.ts';
import { Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf } from './file-operations.ts';
import { BEFORE, doTheirs, type Rows } from './theirs.ts';

/** Every cell of changes of metadata, made to happen as those of operations on files are. */

const NOTE = parseSchemaChanges([{ add: 'note', type: 'string' }]);

/** Mine, on the table as it is before the race; `first` is its oldest snapshot. */
function planOf(mine: MyChange, first: bigint, nowMs: number): Plan {
  switch (mine) {
    case 'properties':
      return setProperties({ set: { 'sluice.epoch-unit': 'us' }, remove: [] });
    case 'schema':
      return changeSchema(NOTE, null);
    case 'tag':
      return setRef({ name: 'mine', type: 'tag', snapshotId: first });
    case 'rollback':
      return rollback(first);
    case 'expire':
      return expire(nowMs);
  }
}

/** What must be seen of mine afterwards, on top of theirs. */
function expectDone(mine: MyChange, metadata: TableMetadata, first: bigint): void {
  switch (mine) {
    case 'properties':
      expect(metadata.properties['sluice.epoch-unit']).toBe('us');
      break;
    case 'schema':
      expect(currentSchema(metadata).fields.some(({ name }) => name === 'note')).toBe(true);
      break;
    case 'tag':
      expect(metadata.refs['mine']).toEqual({ type: 'tag', 'snapshot-id': first });
      break;
    case 'rollback':
      expect(metadata['current-snapshot-id']).toBe(first);
      break;
    case 'expire': {
      const heads = new Set(Object.values(metadata.refs).map((ref) => ref['snapshot-id']));
      expect(metadata.snapshots.map((snapshot) => snapshot['snapshot-id']).sort()).toEqual([...heads].sort());
      break;
    }
  }
}

interface Race {
  scenario: Scenario;
  first: bigint;
  ended: Changed | Error;
  afterTheirs: Rows;
}

async function race(mine: MyChange, theirs: Theirs): Promise<Race> {
  const scenario = await newScenario();
  const { world, service } = scenario;
  for (const row of BEFORE) {
    await acknowledge(scenario, [row]);
    await service.drain();
  }
  const strict = { 'timelake.min-snapshots': '1', 'timelake.snapshot-retention': '1s', 'sluice.epoch-unit': 'ms' };
  await world.clock.until(service.changes.properties(strict, []));
  world.clock.advance(60_000);
  const [{ 'snapshot-id': first }] = metadataOf(service).snapshots;
  const other = new Service(world, new SimLedger('00000000000000bb'));
  await world.clock.until(other.table.load());
  const held = service.store.faults.next('putIfAbsent', /v7\.metadata\.json$/, 'slow');
  // Later than theirs, so that what theirs adds is old enough to go as well, when nothing holds it.
  const plan = planOf(mine, first, world.clock.now() + 3_600_000);
  const run = service.changes.change(plan).catch((error: Error) => error);
  await world.clock.until(held.reached);
  const afterTheirs = await doTheirs(theirs, 0, scenario, other);
  held.release();
  const ended = await world.clock.until(run);
  expect(service.count('lost-race')).toBeGreaterThanOrEqual(1);
  await expectValid(world, false);
  return { scenario, first, ended, afterTheirs };
}

async function expectResolved(resolution: ChangeResolution, mine: MyChange, theirs: Theirs): Promise<void> {
  const { scenario, first, ended, afterTheirs } = await race(mine, theirs);
  const expected = mine === 'rollback' ? BEFORE.slice(0, 1) : afterTheirs;
  const isRows = async (rows: Rows) => expect(await tableRows(scenario.world)).toEqual(rows.map(spelled).sort());
  if (resolution === 'gone') {
    expect(ended).toMatchObject({ kind: 'invalid', type: 'unknown-table' });
    return isRows([]);
  }
  if (resolution === 'snapshot-kept') {
    // Theirs expired the very snapshot.
    expect(ended).toMatchObject({ kind: 'conflict', type: 'unknown-snapshot' });
    return isRows(afterTheirs);
  }
  if (ended instanceof Error) throw ended;
  // Theirs has rolled back to the same snapshot: nothing is left to do.
  expect(ended.changed).toBe(!(mine === 'rollback' && theirs === 'rollback'));
  expectDone(mine, ended.base.metadata, first);
  const ids = ended.base.metadata.properties[CHANGES_KEY].split(' ');
  expect(new Set(ids).size).toBe(ids.length);
  return isRows(expected);
}

describe('conflicts: changes of metadata × theirs', () => {
  const cells = (Object.keys(CHANGES_MATRIX) as MyChange[]).flatMap((mine) =>
    (Object.keys(CHANGES_MATRIX[mine]) as Theirs[]).map((theirs): [MyChange, Theirs, ChangeResolution] => [
      mine,
      theirs,
      CHANGES_MATRIX[mine][theirs],
    ]),
  );
  test.each(cells)('conflict: %s over %s is %s', { timeout: 30_000 }, async (mine, theirs, resolution) => {
    await expectResolved(resolution, mine, theirs);
  });
});
