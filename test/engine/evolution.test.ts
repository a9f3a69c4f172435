import { beforeEach, describe, expect, test } from 'vitest';
import type { SluiceError } from '../../src/core/base/errors.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { LEFT_OUT_KEY } from '../../src/core/batch/left-out.ts';
import { parseSchemaChanges } from '../../src/core/commit/plan-schema.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import { proposedSchema } from '../../src/core/iceberg/proposal.ts';
import type { Schema } from '../../src/core/iceberg/types.ts';
import type { MetadataUpdate } from '../../src/core/iceberg/updates.ts';
import { newFrame } from '../../src/http/new-frame.ts';
import { type RowError, rowBudget, rowCollector } from '../../src/http/row-collector.ts';
import { ingestView } from '../../src/object/views.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows } from '../oracle/rows.ts';
import { expectValid, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import type { SimCall } from '../sim/sim-store.ts';
import { metadataOf } from './file-operations.ts';

/** Columns that come with rows: each test ends with a table whose every version is valid and whose rows have their values. */
let scenario: Scenario;
let service: Service;

const DAY_MS = Date.UTC(2026, 0, 1);
let second = 0;

beforeEach(async () => {
  scenario = await newScenario();
  service = scenario.service;
  second = 0;
  await until(service.changes.properties({ 'sluice.schema-evolution': 'additive' }, []));
});

function until<T>(promise: Promise<T>): Promise<T> {
  return scenario.world.clock.until(promise);
}

/** Rows of the series table, with more members, as the door makes a batch of them. */
function frameOf(given: readonly object[], by: Service = service): NewFrame {
  const base = by.table.base;
  if (base === null) throw new Error('the table is not loaded');
  const view = ingestView(base, by.writer.proposals.waiting(base.metadata));
  const { epochUnit, ingestTimeColumn: filledField } = view.settings;
  const collector = rowCollector(proposedSchema(view.schema, view.proposal), rowBudget(100), {
    onError: 'refuse',
    evolve: 'json',
    epochUnit,
    filledField,
    textual: false,
  });
  given.forEach((row, i) => {
    collector.row({ time: DAY_MS + 1000 * ++second, device: 'a', ...row }, i + 1);
  });
  const { columns } = collector.finish();
  return newFrame(columns, view, { batchId: null, producer: null }, new Uint8Array(32));
}

function send(frame: NewFrame, to: Service = service) {
  return to.writer.append(frame, metadataOf(to)['table-uuid'], 0);
}

const accept = (...given: object[]) => until(send(frameOf(given)));

/** What a batch is refused for. */
function rowErrors(make: () => NewFrame): object[] {
  try {
    make();
  } catch (error) {
    const errors = (error as SluiceError).detail['errors'] as unknown as RowError[];
    return errors.map(({ line, field, type }) => ({ line, field, type }));
  }
  throw new Error('nothing was refused');
}

/** What became of the batches, in their order. */
const states = () =>
  Array.from({ length: scenario.ledger.state().lastSequence }, (_, i) => {
    const receipt = scenario.ledger.receipt(i + 1);
    return receipt?.state === 'refused' ? receipt.type : receipt?.state;
  });

/** Columns behind those of the series table: name → id and type. */
function columnsNow(): Record<string, [id: number, type: unknown]> {
  const { fields } = currentSchema(metadataOf(service));
  return Object.fromEntries(fields.slice(4).map(({ id, name, type }) => [name, [id, type]]));
}

async function tableNow(...names: string[]): Promise<unknown[][]> {
  await expectValid(scenario.world, false);
  const found = await rows(storeBucket(scenario.world.memory), PLACE.prefix);
  const byTime = found.sort((a, b) => Number((a['time'] as bigint) - (b['time'] as bigint)));
  return byTime.map((row) => names.map((name) => row[name]));
}

describe('evolution: one commit', () => {
  test('B036: a column is added in the version that has its first rows', async () => {
    await accept({ v: 1 });
    await service.drain();
    const before = service.table.base?.version ?? 0;
    await accept({ v: 2, color: 'red' }, { v: 3 });
    expect(columnsNow()).toEqual({});
    await service.drain();
    expect(service.table.base?.version).toBe(before + 1);
    expect(columnsNow()).toEqual({ color: [5, 'string'] });
    const { snapshots } = metadataOf(service);
    expect(snapshots.at(-1)?.['schema-id']).toBe(1);
    expect(service.count('schema-evolved')).toBe(1);
    expect(await tableNow('v', 'color')).toEqual([
      [1n, null],
      [2n, 'red'],
      [3n, null],
    ]);
  });

  test('batches that wait together bring their columns together, each the same one once', async () => {
    await accept({ v: 1, a: 'x' });
    await accept({ v: 2, b: [1, 2], a: 'y' });
    await accept({ v: 3 });
    await service.drain();
    expect(columnsNow()).toMatchObject({ a: [5, 'string'], b: [6, { element: 'long', 'element-id': 7 }] });
    expect(metadataOf(service).schemas).toHaveLength(2);
    expect(await tableNow('v', 'a', 'b')).toEqual([
      [1n, 'x', null],
      [2n, 'y', [1n, 2n]],
      [3n, null, null],
    ]);
  });

  test('a column of the table gets wider with the rows that need it', async () => {
    await until(service.changes.schema(parseSchemaChanges([{ add: 'n', type: 'int' }]), null));
    await accept({ n: 1 });
    await accept({ n: 3_000_000_000 });
    await service.drain();
    expect(columnsNow()).toEqual({ n: [5, 'long'] });
    expect(await tableNow('n')).toEqual([[1n], [3_000_000_000n]]);
  });
});

test('evolution: an engine’s head object, made for the columns before, goes with the commit that changes them', async () => {
  const key = `${PLACE.prefix}/metadata/timelake-head`;
  const { memory } = scenario.world;
  await memory.putIfAbsent(key, new Uint8Array(1));
  await accept({ v: 1 });
  await service.drain();
  expect(await memory.head(key)).not.toBeNull();
  await accept({ x: 1 });
  await service.drain();
  expect(await memory.head(key)).toBeNull();
});

describe('evolution: refusals', () => {
  test('a batch that contradicts one that waits is refused at the door, not when it is committed', async () => {
    await accept({ x: 1, y: 1.5 });
    const refusal = (...given: object[]) => rowErrors(() => frameOf(given));
    expect(refusal({ x: 2 }, { x: 'one' })).toEqual([{ line: 2, field: 'x', type: 'wrong-type' }]);
    expect(refusal({ X: 1 })).toEqual([{ line: 1, field: 'X', type: 'unknown-column' }]);
    // As a column of the table would: a whole number is one of a double.
    await accept({ y: 2 });
    await service.drain();
    expect(columnsNow()).toEqual({ x: [5, 'long'], y: [6, 'double'] });
    expect(await tableNow('x', 'y')).toEqual([
      [1n, 1.5],
      [null, 2],
    ]);
  });

  test('B205: the name of a partition field is no column’s', async () => {
    for (const name of ['time_day', 'Time_Day']) {
      await expect(accept({ [name]: 1 })).rejects.toMatchObject({ type: 'bad-column-name', detail: { field: name } });
    }
    scenario.ledger.accept([frameOf([{ v: 1, time_day: 1 }]), frameOf([{ v: 2 }])], scenario.world.clock.now());
    await service.drain();
    expect(states()).toEqual(['bad-column-name', 'committed']);
    expect(await tableNow('v')).toEqual([[2n]]);
  });

  test('M25: a name that reads like the path of a nested column is none, however often it is sent', async () => {
    await accept({ o: { p: 1 } });
    await service.drain();
    await expect(accept({ 'o.p': 1 })).rejects.toMatchObject({ kind: 'invalid', type: 'bad-column-name' });
  });

  test('a batch that was read without them is to be read again', async () => {
    const [late, other] = [frameOf([{ x: 'one' }]), frameOf([{ X: 1 }])];
    // Also when both are on their way into the ledger.
    const both = await until(Promise.allSettled([send(frameOf([{ x: 1 }])), send(late)]));
    expect(both).toMatchObject([{ status: 'fulfilled' }, { reason: { kind: 'conflict', type: 'table-changed' } }]);
    await expect(until(send(other))).rejects.toMatchObject({ kind: 'conflict', type: 'table-changed' });
    await service.drain();
    expect(await tableNow('x')).toEqual([[1n]]);
  });

  test('what was not taken after all counts no more once nothing waits', async () => {
    await until(send({ ...frameOf([{ v: 1 }]), batchId: 'k' }));
    await service.drain();
    const other = { ...frameOf([{ x: 'one' }]), batchId: 'k', digest: 'another' };
    await expect(until(send(other))).rejects.toMatchObject({ type: 'idempotency-conflict' });
    await accept({ v: 2 });
    await accept({ x: 1 });
    await service.drain();
    expect(columnsNow()).toEqual({ x: [5, 'long'] });
  });

  test('batches that contradict each other and wait together: the earlier one is committed', async () => {
    // As the ledger of a build without this door, or one that was restored, may hold them.
    const frames = [frameOf([{ v: 1, x: 1 }]), frameOf([{ v: 2, x: 'one' }]), frameOf([{ v: 3, y: 1 }])];
    scenario.ledger.accept(frames, scenario.world.clock.now());
    await service.drain();
    expect(states()).toEqual(['committed', 'incompatible-type', 'committed']);
    // In one version, which says what it left out.
    expect(metadataOf(service).snapshots).toHaveLength(1);
    expect(metadataOf(service).snapshots[0].summary[LEFT_OUT_KEY]).toContain('incompatible-type');
    expect(await tableNow('v', 'x', 'y')).toEqual([
      [1n, 1n, null],
      [3n, null, 1n],
    ]);
  });

  test('what was refused counts no more once nothing waits', async () => {
    await accept({ x: 1 });
    const other = new Service(scenario.world, new SimLedger('00000000000000bb'));
    await until(other.changes.schema(parseSchemaChanges([{ add: 'x', type: 'string' }]), null));
    await service.drain();
    expect(states()).toEqual(['incompatible-type']);
    await accept({ v: 1 });
    await accept({ x: 'one' });
    await service.drain();
    expect(await tableNow('x')).toEqual([[null], ['one']]);
  });

  test('also after the object was made anew, and no more once nothing waits', async () => {
    await accept({ x: 1 });
    service = new Service(scenario.world, scenario.ledger);
    await until(service.writer.check());
    expect(rowErrors(() => frameOf([{ x: 'one' }]))).toEqual([{ line: 1, field: 'x', type: 'wrong-type' }]);
    await service.drain();
    await until(service.changes.schema(parseSchemaChanges([{ drop: 'x' }]), null));
    await accept({ x: 'one' });
    await service.drain();
    expect(columnsNow()).toEqual({ x: [6, 'string'] });
    expect(await tableNow('x')).toEqual([[null], ['one']]);
  });

  test('a table that stopped taking columns answers that it changed', async () => {
    const frame = frameOf([{ x: 1 }]);
    await until(service.changes.properties({ 'sluice.schema-evolution': 'off' }, []));
    await expect(until(send(frame))).rejects.toMatchObject({ kind: 'conflict', type: 'table-changed' });
  });

  test('what was accepted is committed, whatever the property says by then', async () => {
    await accept({ x: 1 });
    await until(service.changes.properties({}, ['sluice.schema-evolution']));
    await service.drain();
    expect(await tableNow('x')).toEqual([[1n]]);
  });
});

describe('evolution: other writers', () => {
  const newcomer = () => new Service(scenario.world, new SimLedger('00000000000000bb'));

  /** Their change, while an accepted batch of ours waits. */
  async function meanwhile(...changes: object[]): Promise<void> {
    const other = newcomer();
    await until(other.changes.schema(parseSchemaChanges(changes), null));
  }

  test('somebody added the same column: it is added once, and takes our values', async () => {
    await accept({ x: 1 }, { x: 2, y: 'mine' });
    await meanwhile({ add: 'z', type: 'string' }, { add: 'x', type: 'long' });
    await service.drain();
    expect(columnsNow()).toEqual({ z: [5, 'string'], x: [6, 'long'], y: [7, 'string'] });
    expect(states()).toEqual(['committed']);
    expect(await tableNow('x', 'y', 'z')).toEqual([
      [1n, null, null],
      [2n, 'mine', null],
    ]);
  });

  test('somebody added it while our version was on its way: prepared again on theirs', async () => {
    await accept({ x: 1 });
    const held = service.store.faults.next('putIfAbsent', /v\d+\.metadata\.json$/, 'slow');
    scenario.world.clock.advance(20_000);
    const run = service.writer.run();
    await until(held.reached);
    await meanwhile({ add: 'q', type: 'string' });
    await meanwhile({ drop: 'q' });
    await meanwhile({ add: 'x', type: 'long' });
    held.release();
    await until(run);
    await service.drain();
    expect(service.count('lost-race')).toBe(1);
    expect(columnsNow()).toEqual({ x: [6, 'long'] });
    expect(await tableNow('x')).toEqual([[1n]]);
  });

  test('a change of theirs that moves the schema, or only the list of schemas, is seen before the write', async () => {
    await meanwhile({ rename: 'v', to: 'w' });
    await until(service.table.load());
    const { fields } = currentSchema(metadataOf(service));
    const named = (name: string) => ({
      type: 'struct' as const,
      'schema-id': 0,
      fields: fields.map((field) => (field.name === 'w' ? { ...field, name } : field)),
    });
    const changes: MetadataUpdate[][] = [
      [{ action: 'add-schema', schema: named('u') }],
      [{ action: 'set-current-schema', 'schema-id': 0 }],
    ];
    for (const [i, updates] of changes.entries()) {
      await accept({ [`x${i}`]: i });
      const held = service.store.faults.next('putIfAbsent', /v\d+\.metadata\.json$/, 'slow');
      scenario.world.clock.advance(20_000);
      const run = service.writer.run();
      await until(held.reached);
      await until(newcomer().changes.update([], updates));
      held.release();
      await until(run);
      await service.drain();
      await expectValid(scenario.world, false);
    }
    expect(await tableNow('x1')).toEqual([[null], [1n]]);
    expect(currentSchema(metadataOf(service)).fields.map(({ name }) => name)).toContain('v');
  });

  test('B035: ids that others gave out and took away meanwhile, without a trace in the list of schemas, are not given again', async () => {
    await accept({ x: 1 });
    const held = service.store.faults.next('putIfAbsent', /v\d+\.metadata\.json$/, 'slow');
    scenario.world.clock.advance(20_000);
    const run = service.writer.run();
    await until(held.reached);
    await meanwhile({ add: 'q', type: 'string' });
    await meanwhile({ drop: 'q' });
    await until(newcomer().changes.update([], [{ action: 'remove-schemas', 'schema-ids': [1] }]));
    held.release();
    await until(run);
    await service.drain();
    expect(columnsNow()).toEqual({ x: [6, 'long'] });
    expect(await tableNow('x')).toEqual([[1n]]);
  });

  test('somebody added it with another type: that batch is refused, the others are committed', async () => {
    await accept({ v: 1 });
    await accept({ v: 2, x: 1 });
    await accept({ v: 3, y: true });
    await meanwhile({ add: 'x', type: 'string' });
    await service.drain();
    expect(states()).toEqual(['committed', 'incompatible-type', 'committed']);
    expect(await tableNow('v', 'x', 'y')).toEqual([
      [1n, null, null],
      [3n, null, true],
    ]);
  });

  test('rows that wait survive a change of the schema: renamed, dropped, wider, new columns', async () => {
    await until(
      service.changes.schema(
        parseSchemaChanges([
          { add: 'n', type: 'int' },
          { add: 'gone', type: 'int' },
        ]),
        null,
      ),
    );
    await accept({ v: 1, n: 5, gone: 6, fresh: 'f' });
    await meanwhile({ rename: 'v', to: 'w' }, { promote: 'n', type: 'long' }, { drop: 'gone' });
    await service.drain();
    expect(states()).toEqual(['committed']);
    expect(await tableNow('w', 'n', 'fresh')).toEqual([[1n, 5n, 'f']]);
    const schema: Schema = currentSchema(metadataOf(service));
    expect(schema.fields.map(({ name }) => name)).not.toContain('gone');
  });

  test('M24: a column dropped and added again gets an id that no other had', async () => {
    await accept({ x: 1 });
    await service.drain();
    await until(service.changes.schema(parseSchemaChanges([{ drop: 'x' }]), null));
    await accept({ x: 2 });
    await service.drain();
    expect(columnsNow()).toEqual({ x: [6, 'long'] });
    expect(await tableNow('x')).toEqual([[null], [2n]]);
  });
});

describe('evolution: crashes', () => {
  test('the intent of a batch that brings a column goes on in the next incarnation, before or after its version', async () => {
    for (const side of ['before', 'after'] as const) {
      await accept({ [`c_${side}`]: side });
      let stopped = false;
      const hook = ({ operation, key }: SimCall) => {
        if (operation !== 'putIfAbsent' || !key.endsWith('.metadata.json')) return;
        stopped = true;
        throw new Error('stopped');
      };
      if (side === 'before') service.store.onBefore(hook);
      else service.store.onAfter(hook);
      scenario.world.clock.advance(20_000);
      await until(service.writer.run());
      expect(scenario.ledger.state().intent).not.toBeNull();
      expect(stopped).toBe(true);
      service = new Service(scenario.world, scenario.ledger);
      await service.drain();
    }
    expect(Object.keys(columnsNow())).toEqual(['c_before', 'c_after']);
    expect(await tableNow('c_before', 'c_after')).toEqual([
      ['before', null],
      [null, 'after'],
    ]);
  });
});
