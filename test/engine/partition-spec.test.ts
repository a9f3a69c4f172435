import { beforeEach, describe, expect, test } from 'vitest';
import { parseSpecChanges } from '../../src/core/commit/plan-spec.ts';
import type { TableDefinition } from '../../src/core/table/definition.ts';
import {
  acknowledge,
  expectExactlyOnce,
  expectValid,
  newScenario,
  newWorld,
  type Scenario,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, SERIES, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';
import { metadataOf } from './file-operations.ts';

/** Columns of the series table, and nothing that makes it one. */
const PLAIN: TableDefinition = { ...SERIES, timeColumn: null, seriesKey: [], chunk: null };

let scenario: Scenario;

beforeEach(async () => {
  const world = newWorld();
  const ledger = new SimLedger('00000000000000aa');
  const service = new Service(world, ledger);
  await world.clock.until(service.admin.create(PLAIN));
  scenario = { world, ledger, service, acknowledged: [] };
});

function change(changes: unknown, expected: number | null = null, service = scenario.service) {
  return scenario.world.clock.until(service.changes.spec(parseSpecChanges(changes), expected));
}

async function append(device: string): Promise<void> {
  await acknowledge(scenario, [uniqueRow(device)]);
  await scenario.service.drain();
}

/** Folder of every data file that was written. */
function files(): string[] {
  const keys = scenario.world.memory.keys().filter((key) => key.includes('/data/'));
  return keys.map((key) => key.slice(`${PLACE.prefix}/data/`.length).replace(/[^/]*$/, '')).sort();
}

describe('partition spec: changed', () => {
  test('new rows are written by it, files of the one before stay, and all are read', async () => {
    await append('a');
    const added = await change([{ add: 'device' }, { add: 'time', transform: 'day' }]);
    expect(added.changed).toBe(true);
    await append('b');
    await change([{ remove: 'device' }, { add: 'v', transform: 'bucket[4]', name: 'part' }]);
    await append('c');
    expect(metadataOf(scenario.service)).toMatchObject({
      'default-spec-id': 2,
      'partition-specs': [
        { 'spec-id': 0, fields: [] },
        {
          'spec-id': 1,
          fields: [
            { 'field-id': 1000, name: 'device', transform: 'identity' },
            { 'field-id': 1001, name: 'time_day', transform: 'day' },
          ],
        },
        {
          'spec-id': 2,
          fields: [
            { 'field-id': 1001, name: 'time_day' },
            { 'field-id': 1002, name: 'part', transform: 'bucket[4]' },
          ],
        },
      ],
      'last-partition-id': 1002,
    });
    const folders = files();
    expect(folders.slice(0, 2)).toEqual(['', 'device=b/time_day=2026-01-01/']);
    expect(folders[2]).toMatch(/^time_day=2026-01-01\/part=[0-3]\/$/);
    await expectExactlyOnce(scenario);
  });

  test('rows that were buffered before it are written by it', async () => {
    await acknowledge(scenario, [uniqueRow('a'), uniqueRow('b')]);
    await change([{ add: 'device' }]);
    await scenario.service.drain();
    expect(files()).toEqual(['device=a/', 'device=b/']);
    await expectExactlyOnce(scenario);
  });

  test('while a flush is at its write: its files are made again by the new one', async () => {
    const { service, world } = scenario;
    await append('a');
    await acknowledge(scenario, [uniqueRow('b')]);
    world.clock.advance(20_000);
    const held = service.store.faults.next('putIfAbsent', /v3\.metadata\.json$/, 'slow');
    const run = service.writer.run();
    await world.clock.until(held.reached);
    await change([{ add: 'device' }], null, new Service(world, new SimLedger('00000000000000bb')));
    held.release();
    await world.clock.until(run);
    await service.drain();
    expect(service.count('lost-race')).toBe(1);
    expect(files()).toContain('device=b/');
    await expectExactlyOnce(scenario);
  });

  test('operations on whole files go on over files of several specs', async () => {
    const { service, world } = scenario;
    await append('a');
    await change([{ add: 'device' }]);
    await append('b');
    await append('c');
    await world.clock.until(service.files.rewriteManifests());
    await expectExactlyOnce(scenario);
    await world.clock.until(service.files.delete({ kind: 'partitions', partitions: [{ device: 'b' }] }));
    const left = scenario.acknowledged.filter((text) => !text.startsWith('b '));
    expect(await tableRows(world)).toEqual([...left].sort());
    await expectValid(world, false);
  });

  test('back to one that the table had: it has its number again; as it is: nothing is written', async () => {
    await change([{ add: 'device' }]);
    await change([{ remove: 'device' }]);
    expect(metadataOf(scenario.service)).toMatchObject({ 'default-spec-id': 0 });
    expect(metadataOf(scenario.service)['partition-specs']).toHaveLength(2);
    const { changed } = await change([{ add: 'device' }, { remove: 'device' }]);
    expect(changed).toBe(false);
  });

  test('a column that it partitions by cannot be dropped; once it does not, it can, and its files are read on', async () => {
    const { service, world } = scenario;
    await change([{ add: 'device' }]);
    await append('a');
    const drop = () => world.clock.until(service.changes.schema([{ kind: 'drop', column: 'device' }], null));
    await expect(drop()).rejects.toMatchObject({ type: 'column-in-use' });
    await change([{ remove: 'device' }]);
    await drop();
    await world.clock.until(service.files.rewriteManifests());
    await expectValid(world, false);
  });
});

describe('partition spec: refused', () => {
  test.each([
    [[{ add: 'nothing' }], 'unknown-partition-field'],
    [[{ remove: 'device' }], 'unknown-partition-field'],
    [[{ add: 'device', transform: 'day' }], 'bad-transform'],
    [[{ add: 'device', transform: 'void' }], 'bad-transform'],
    [[{ add: 'device' }, { add: 'device' }], 'bad-spec'],
    [[{ add: 'device', transform: 'bucket[8]', name: 'v' }], 'bad-spec'],
    [[{ add: 'device', name: 'partition' }], 'bad-spec'],
    [Array.from({ length: 21 }, (_, i) => ({ add: 'v', transform: `bucket[${i + 2}]` })), 'bad-spec'],
  ])('%j is %s, and nothing is written', async (changes, type) => {
    await expect(change(changes)).rejects.toMatchObject({ kind: 'invalid', type });
    expect(scenario.world.memory.keys().filter((key) => key.endsWith('.metadata.json'))).toHaveLength(1);
  });

  test.each([
    [[], 'malformed'],
    [[{}], 'malformed'],
    [[{ add: 'a', remove: 'b' }], 'malformed'],
    [[{ remove: 'a', transform: 'day' }], 'malformed'],
    [[{ add: 'a', transform: 'week' }], 'unknown-transform'],
    [[{ add: 1 }], 'malformed'],
  ])('as a request: %j is %s', (changes, type) => {
    expect(() => parseSpecChanges(changes)).toThrow(expect.objectContaining({ kind: 'invalid', type }));
  });

  test('of a time-series table, whose chunks the Timelake engine goes by', async () => {
    const { service, world } = await newScenario();
    const changed = world.clock.until(service.changes.spec(parseSpecChanges([{ add: 'device' }]), null));
    await expect(changed).rejects.toMatchObject({ kind: 'rejected', type: 'spec-fixed' });
  });

  test('when it was made for another spec', async () => {
    await change([{ add: 'device' }]);
    await expect(change([{ add: 'v' }], 0)).rejects.toMatchObject({ kind: 'conflict', type: 'requirement-failed' });
    expect((await change([{ add: 'v' }], 1)).changed).toBe(true);
  });

  test('when the table has had too many', async () => {
    for (let n = 1; n < 100; n++) {
      await change([...(n === 1 ? [] : [{ remove: 'part' }]), { add: 'v', transform: `bucket[${n}]`, name: 'part' }]);
    }
    await expect(change([{ add: 'device' }])).rejects.toMatchObject({ kind: 'rejected', type: 'too-many-specs' });
    await append('a');
    await expectExactlyOnce(scenario);
  });
});
