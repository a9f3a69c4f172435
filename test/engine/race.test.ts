import { describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { serializeMetadata } from '../../src/core/iceberg/metadata.ts';
import { applyUpdates } from '../../src/core/iceberg/updates.ts';
import {
  acknowledge,
  expectExactlyOnce,
  expectValid,
  newScenario,
  newWorld,
  spelled,
  tableRows,
  uniqueRow,
} from '../sim/scenario.ts';
import { PLACE, SERIES, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

describe('race: two services, one table', () => {
  test('B127 race: the window between check and write is held open, and exactly one version each comes of it', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await acknowledge(scenario, [uniqueRow()]);
    const row = uniqueRow('other');
    await world.clock.until(other.append([row]));
    scenario.acknowledged.push(spelled(row));

    // Ours has decided and confirmed its base; its conditional write waits.
    const held = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    await world.clock.until(other.writer.run());
    expect(other.table.base?.version).toBe(2);
    held.release();
    await world.clock.until(run);

    expect(service.count('lost-race')).toBe(1);
    expect(service.count('read-back-other')).toBe(1);
    expect(service.table.base?.version).toBe(3);
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
    // The lost attempt's manifest list and index are gone, nothing else is.
    const deleted = service.store.log.filter((call) => call.operation === 'delete').flatMap((call) => call.keys);
    expect(deleted.map((key) => /\/metadata\/(\w+)-/.exec(key)?.[1])).toEqual(['snap', 'lvi']);
  });

  test('race: the data files of a lost race are reused, not uploaded again', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await acknowledge(scenario, [uniqueRow()]);
    await world.clock.until(other.append([uniqueRow('other')]));
    const held = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    await world.clock.until(other.writer.run());
    held.release();
    await world.clock.until(run);
    const data = service.store.log.filter((call) => call.operation === 'putIfAbsent' && call.key.includes('/data/'));
    expect(data).toHaveLength(1);
  });

  test('race: a base that moved before the write is noticed by its confirmation', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([uniqueRow('other')]));
    await acknowledge(scenario, [uniqueRow()]);
    await other.drain();
    await service.drain();
    expect(service.count('base-moved')).toBe(1);
    expect(service.count('lost-race')).toBe(0);
    expect(service.table.base?.version).toBe(3);
    expect(await tableRows(world)).toHaveLength(2);
    await expectValid(world);
  });

  test('race: a merged manifest of a lost attempt that the next one makes again is not deleted', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    for (let commit = 0; commit < 8; commit++) {
      await acknowledge(scenario, [uniqueRow()]);
      await service.drain();
    }
    await acknowledge(scenario, [uniqueRow()]);
    const held = service.store.faults.next('putIfAbsent', /v10\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    // Another writer changes a property: its version has the same manifests.
    const metadata = service.table.base?.metadata;
    if (metadata === undefined) throw new Error('not loaded');
    const context = {
      nowMs: world.clock.now(),
      previousMetadataLocation: `${PLACE.location}/metadata/v9.metadata.json`,
    };
    const next = applyUpdates(metadata, [{ action: 'set-properties', updates: { owner: 'b' } }], context);
    await world.memory.putIfAbsent(`${PLACE.prefix}/metadata/v10.metadata.json`, utf8(serializeMetadata(next)));
    held.release();
    await world.clock.until(run);
    expect(service.count('lost-race')).toBe(1);
    expect(service.table.base?.manifests?.map((manifest) => manifest.existingFilesCount)).toEqual([0, 8]);
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
  });

  test('race: a zombie and its successor run one intent at once; it is committed once', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const zombie = scenario.service;
    const held = zombie.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    world.clock.advance(20_000);
    const run = zombie.writer.run();
    await world.clock.until(held.reached);
    // The object moved: its storage now belongs to a new incarnation, the old one may only finish requests.
    const successor = new Service(world, ledger);
    await world.clock.until(successor.writer.run());
    expect(successor.count('intent-replayed')).toBe(1);
    expect(ledger.state().intent).toBeNull();
    ledger.hook = () => {
      throw new Error('storage belongs to somebody else');
    };
    held.release();
    await world.clock.until(run);
    ledger.hook = () => undefined;
    expect(await tableRows(world)).toEqual(scenario.acknowledged);
    expect(successor.table.base?.version).toBe(2);
    await expectValid(world);
  });

  test('race: many rounds of two writers, each row once, both have lost races', { timeout: 60_000 }, async () => {
    const scenario = await newScenario(11);
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const both = [service, other];
    for (const one of both) {
      // Each conditional write takes its own time, so that either may be first.
      one.store.onBefore((call) =>
        call.operation === 'head' ? world.clock.sleep(world.random.next() % 50) : undefined,
      );
      one.store.onBefore((call) =>
        call.operation === 'putIfAbsent' ? world.clock.sleep(world.random.next() % 100) : undefined,
      );
    }
    for (let round = 0; round < 40; round++) {
      for (const one of both) {
        const row = uniqueRow(one === service ? 'a' : 'other');
        await world.clock.until(one.append([row]));
        scenario.acknowledged.push(spelled(row));
      }
      world.clock.advance(20_000);
      await world.clock.until(Promise.all(both.map((one) => one.writer.run())));
    }
    await service.drain();
    await other.drain();
    expect(service.count('lost-race')).toBeGreaterThanOrEqual(5);
    expect(other.count('lost-race')).toBeGreaterThanOrEqual(5);
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
  });
});

describe('race: ledgers that were lost or restored', () => {
  test('B111 ledger: restored to an earlier time, it drops what the table has and takes a new identity', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const earlier = ledger.snapshot();
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    const before = ledger.state().ledgerId;

    ledger.restore(earlier);
    const service = new Service(world, ledger);
    scenario.service = service;
    await acknowledge(scenario, [uniqueRow()]);
    expect(service.count('ledger-restored')).toBe(1);
    expect(ledger.state().ledgerId).not.toBe(before);
    await service.drain();
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
  });

  test('ledger: restored, it still knows the batch ids of what the table has', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    const row = uniqueRow();
    const first = await world.clock.until(scenario.service.append([row], { batchId: 'k' }));
    scenario.acknowledged.push(spelled(row));
    const earlier = ledger.snapshot();
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();

    ledger.restore(earlier);
    scenario.service = new Service(world, ledger);
    const again = await world.clock.until(scenario.service.append([row], { batchId: 'k' }));
    expect(scenario.service.count('ledger-restored')).toBe(1);
    expect(again).toMatchObject({ duplicate: true, sequence: first.sequence, state: { state: 'committed' } });
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });

  test('ledger: restored to before the table was made anew, it gives no number twice', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    const earlier = ledger.snapshot();
    await world.clock.until(scenario.service.admin.drop());
    await world.clock.until(scenario.service.admin.create(SERIES));
    scenario.acknowledged = [];
    for (let batch = 0; batch < 3; batch++) await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();

    ledger.restore(earlier);
    scenario.service = new Service(world, ledger);
    await acknowledge(scenario, [uniqueRow()]);
    expect(scenario.service.count('table-replaced')).toBe(1);
    expect(scenario.service.count('ledger-restored')).toBe(1);
    await scenario.service.drain();
    await expectExactlyOnce(scenario);
  });

  test('ledger: lost altogether, the new one swallows nothing and repeats nothing', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    ledger.lose('00000000000000cc');
    scenario.service = new Service(world, ledger);
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    expect(scenario.service.count('ledger-lost')).toBe(1);
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
  });

  test('ledger: lost while its commit was under way, the rows are there once if they landed', async () => {
    const scenario = await newScenario();
    const { world, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const held = scenario.service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'late');
    world.clock.advance(20_000);
    await world.clock.until(scenario.service.writer.run());
    ledger.lose('00000000000000cc');
    await held.land();
    scenario.service = new Service(world, ledger);
    await acknowledge(scenario, [uniqueRow()]);
    await scenario.service.drain();
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await expectValid(world);
  });
});

describe('race: tables that go and come', () => {
  test('B155 B158 drop: a last valid version stays, buffered rows are refused visibly, and the numbering goes on', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    const uuid = service.table.base?.metadata['table-uuid'];
    const { sequence } = await world.clock.until(service.append([uniqueRow()]));
    const dropped = await world.clock.until(service.admin.drop());
    expect(dropped).toEqual({ version: 3, discardedRows: 1 });
    expect(ledger.receipt(sequence)).toMatchObject({ state: 'refused', type: 'table-dropped' });
    await expect(world.clock.until(service.append([uniqueRow()]))).rejects.toMatchObject({ type: 'unknown-table' });
    await expectValid(world);
    expect(await tableRows(world)).toEqual([]);

    const again = await world.clock.until(service.admin.create(SERIES));
    expect(again.created).toBe(true);
    expect(again.base.version).toBe(4);
    expect(again.base.metadata['table-uuid']).not.toBe(uuid);
    scenario.acknowledged = [];
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    expect(await tableRows(world)).toEqual(scenario.acknowledged);
    await expectValid(world);
  });

  test('drop: a second service with a stale base commits nothing into the table made anew', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const { sequence } = await world.clock.until(other.append([uniqueRow('other')]));
    await world.clock.until(service.admin.drop());
    await world.clock.until(service.admin.create(SERIES));
    await other.drain();
    expect(other.ledger.receipt(sequence)).toMatchObject({ state: 'refused', type: 'table-replaced' });
    expect(other.ledger.state().lastError?.type).toBe('table-replaced');
    expect(await tableRows(world)).toEqual([]);
    await expectValid(world);
  });

  test('drop: rows of a schema that the table made anew does not have are refused as of another table', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    await world.clock.until(
      service.changes.schema(
        [{ kind: 'add', parent: null, field: { id: 0, name: 'w', required: false, type: 'long' } }],
        null,
      ),
    );
    const { sequence } = await world.clock.until(service.append([uniqueRow()]));
    service.store.faults.next('putIfAbsent', /v3\.metadata\.json$/, 'request-lost');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(scenario.ledger.state().intent).not.toBeNull();
    await world.memory.delete([...world.memory.keys()]);
    await world.clock.until(new Service(world, new SimLedger('00000000000000bb')).admin.create(SERIES));
    await service.drain();
    expect(scenario.ledger.receipt(sequence)).toMatchObject({ state: 'refused', type: 'table-replaced' });
  });

  test('drop: a table that vanished altogether keeps its rows buffered and says so', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const keys: string[] = [];
    for await (const object of world.memory.list(PLACE.prefix)) keys.push(object.key);
    await world.memory.delete(keys);
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(ledger.state().buffer.rows).toBe(1);
    expect(ledger.state().lastError?.type).toBe('table-gone');
  });

  test('create: two services at once, one makes the table and the other finds it', async () => {
    const world = newWorld();
    const one = new Service(world, new SimLedger('00000000000000aa'));
    const two = new Service(world, new SimLedger('00000000000000bb'));
    const held = one.store.faults.next('putIfAbsent', /v1\.metadata\.json$/, 'slow');
    const creating = one.admin.create(SERIES);
    await world.clock.until(held.reached);
    const second = await world.clock.until(two.admin.create(SERIES));
    held.release();
    const first = await world.clock.until(creating);
    expect([first.created, second.created]).toEqual([false, true]);
    expect(one.count('lost-race')).toBe(1);
    expect(first.base.metadata['table-uuid']).toBe(second.base.metadata['table-uuid']);
  });

  test('create: a lost response is read back as our own', async () => {
    const world = newWorld();
    const service = new Service(world, new SimLedger('00000000000000aa'));
    service.store.faults.next('putIfAbsent', /v1\.metadata\.json$/, 'response-lost');
    const made = await world.clock.until(service.admin.create(SERIES));
    expect(made.created).toBe(true);
    expect(service.count('read-back-own')).toBe(1);
  });
});
