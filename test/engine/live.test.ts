import { describe, expect, test } from 'vitest';
import { utf8 } from '../../src/core/base/bytes.ts';
import { serializeMetadata } from '../../src/core/iceberg/metadata.ts';
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

describe('live: which table the buffer is for', () => {
  test('create: a batch taken while the answer to the creation was on its way is not refused', async () => {
    const world = newWorld();
    const ledger = new SimLedger('00000000000000aa');
    const service = new Service(world, ledger);
    const slow = service.store.faults.next('putIfAbsent', /v1\.metadata\.json$/, 'slow-response');
    const creating = service.admin.create(SERIES);
    await world.clock.until(slow.reached);
    const scenario = { world, ledger, service, acknowledged: [] };
    await acknowledge(scenario, [uniqueRow()]);
    slow.release();
    await world.clock.until(creating);
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('create: an object that saw no table finds the one that another made', async () => {
    const world = newWorld();
    const ledger = new SimLedger('00000000000000bb');
    const service = new Service(world, ledger);
    await expect(world.clock.until(service.writer.live())).rejects.toMatchObject({ type: 'unknown-table' });
    await world.clock.until(new Service(world, new SimLedger('00000000000000aa')).admin.create(SERIES));
    await world.clock.until(service.writer.live());
    const scenario = { world, ledger, service, acknowledged: [] };
    await acknowledge(scenario, [uniqueRow()]);
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('drop: an object that saw the tombstone finds the table that another made on top of it', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([uniqueRow('other')]));
    await world.clock.until(service.admin.drop());
    await other.drain();
    await expect(world.clock.until(other.writer.live())).rejects.toMatchObject({ type: 'unknown-table' });
    await world.clock.until(service.admin.create(SERIES));
    await world.clock.until(other.writer.live());
    const row = uniqueRow('other');
    await world.clock.until(other.append([row]));
    await other.drain();
    expect(await tableRows(world)).toEqual([`${row.device} ${row.time} ${row.v}`]);
    await expectValid(world);
  });

  test('drop: batches for a table made by another meanwhile are not taken for those of the one before', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const ledger = new SimLedger('00000000000000bb');
    const other = new Service(world, ledger);
    await world.clock.until(other.append([uniqueRow('other')]));
    await other.drain();
    await world.clock.until(service.admin.drop());
    await world.clock.until(service.admin.create(SERIES));
    // Loaded behind the writer's back, as an operation of the administrator does.
    await world.clock.until(other.table.load());
    const row = uniqueRow('other');
    await world.clock.until(other.append([row]));
    const next = new Service(world, ledger);
    await world.clock.until(next.writer.check());
    await next.drain();
    expect(next.count('table-replaced')).toBe(0);
    expect(await tableRows(world)).toEqual([`${row.device} ${row.time} ${row.v}`]);
  });

  test('drop: a commit that was refused on the tombstone ends late, and the table made anew is not forgotten', async () => {
    const { world, service } = await newScenario();
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([uniqueRow('other')]));
    await world.clock.until(service.admin.drop());
    const held = other.store.faults.next('get', /v2\.metadata\.json$/, 'slow-response');
    const flushed = other.writer.flush().catch(() => undefined);
    await world.clock.until(held.reached);
    await world.clock.until(service.admin.create(SERIES));
    expect((await world.clock.until(other.table.load()))?.version).toBe(3);
    held.release();
    await world.clock.until(flushed);
    expect(other.table.base?.version).toBe(3);
  });

  test('drop: a change by an object that knew the table before takes the pointer along', async () => {
    const { world, service } = await newScenario();
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([uniqueRow('other')]));
    await other.drain();
    await world.clock.until(service.admin.drop());
    await world.clock.until(service.admin.create(SERIES));
    await world.clock.until(other.changes.properties({ owner: 'a' }, []));
    expect(other.count('table-replaced')).toBe(1);
    const hint = world.memory.peek(`${PLACE.prefix}/metadata/version-hint.text`);
    expect(new TextDecoder().decode(hint?.bytes)).toBe(String(other.table.base?.version));
  });

  test('gone: a table without any version is looked for with pauses, not at once again and again', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'request-lost');
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(ledger.state().intent).not.toBeNull();
    await world.memory.delete([...world.memory.keys()]);
    ledger.hinted(0);
    const next = new Service(world, ledger);
    world.clock.advance(20_000);
    await world.clock.until(next.writer.run());
    expect(ledger.state().lastError?.type).toBe('table-gone');
    expect((next.writer.dueMs() ?? 0) - world.clock.now()).toBeGreaterThanOrEqual(900);
  });

  test('pointer: it follows a table that another writer made anew from version 1', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    for (let commit = 0; commit < 3; commit++) {
      await acknowledge(scenario, [uniqueRow()]);
      await service.drain();
    }
    await world.memory.delete([...world.memory.keys()]);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.admin.create(SERIES));
    const next = new Service(world, scenario.ledger);
    await world.clock.until(next.writer.check());
    scenario.service = next;
    scenario.acknowledged = [];
    await acknowledge(scenario, [uniqueRow()]);
    await next.drain();
    await expectExactlyOnce(scenario);
    const hint = world.memory.peek(`${PLACE.prefix}/metadata/version-hint.text`);
    expect(new TextDecoder().decode(hint?.bytes)).toBe('2');
  });

  test('pointer: one that names a version which is not there is taken back to the newest', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    const key = `${PLACE.prefix}/metadata/version-hint.text`;
    world.memory.plant(key, utf8('11'));
    const next = new Service(world, scenario.ledger);
    await world.clock.until(next.writer.check());
    await next.drain();
    expect(service.table.base?.version).toBe(1);
    expect(new TextDecoder().decode(world.memory.peek(key)?.bytes)).toBe('2');
    await expectValid(world);
  });

  test('pointer: one on its way for the table before says nothing of the one made anew', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    for (let commit = 0; commit < 3; commit++) {
      await acknowledge(scenario, [uniqueRow()]);
      if (commit < 2) await service.drain();
    }
    const held = service.store.faults.next('putIf', null, 'slow-response');
    world.clock.advance(20_000);
    const run = service.writer.run();
    await world.clock.until(held.reached);
    await world.memory.delete([...world.memory.keys()]);
    const creating = service.admin.create(SERIES);
    await world.clock.idle();
    held.release();
    await world.clock.until(Promise.all([run, creating]));
    await service.drain();
    expect(ledger.state().hintedVersion).toBe(1);
    const hint = world.memory.peek(`${PLACE.prefix}/metadata/version-hint.text`);
    expect(new TextDecoder().decode(hint?.bytes)).toBe('1');
  });

  test('reopened: a stalled creation under a trimmed number is no other table; nothing buffered is refused', async () => {
    const world = newWorld();
    const stalled = new Service(world, new SimLedger('00000000000000bb'));
    const held = stalled.store.faults.next('putIfAbsent', /v1\.metadata\.json$/, 'slow');
    const creating = stalled.admin.create(SERIES).catch(() => undefined);
    await world.clock.until(held.reached);
    const ledger = new SimLedger('00000000000000aa');
    const service = new Service(world, ledger);
    await world.clock.until(service.admin.create(SERIES));
    const scenario = { world, ledger, service, acknowledged: [] };
    await acknowledge(scenario, [uniqueRow()]);
    // Another writer goes on, trims hard, and its pointer lags; then the first one's write arrives.
    const other = new Service(world, new SimLedger('00000000000000cc'));
    for (let commit = 0; commit < 3; commit++) {
      const row = uniqueRow('other');
      await world.clock.until(other.append([row]));
      (scenario.acknowledged as string[]).push(`${row.device} ${row.time} ${row.v}`);
      await other.drain();
    }
    await world.memory.delete([1, 2, 3].map((version) => `${PLACE.prefix}/metadata/v${version}.metadata.json`));
    world.memory.plant(`${PLACE.prefix}/metadata/version-hint.text`, utf8('1'));
    held.release();
    await world.clock.idle();

    for (const one of [service, new Service(world, ledger)]) {
      scenario.service = one;
      await acknowledge(scenario, [uniqueRow()], one);
      await one.drain();
      expect(one.count('table-replaced')).toBe(0);
    }
    expect(await tableRows(world)).toEqual([...scenario.acknowledged].sort());
    await world.clock.until(creating);
  });

  test('drop: an answer that comes late lets go of nothing that is for the table made anew', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    const slow = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow-response');
    const dropping = service.admin.drop();
    await world.clock.until(slow.reached);
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.admin.create(SERIES));
    await service.table.load();
    await acknowledge(scenario, [uniqueRow()]);
    slow.release();
    await world.clock.until(dropping);
    expect(ledger.state().buffer.frames).toBe(1);
    await world.clock.until(service.writer.live());
    await service.drain();
    await expectExactlyOnce(scenario);
  });

  test('load: of two beside each other the later one tells the newest version it has read, whichever ends first', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    const commit = async () => {
      await acknowledge(scenario, [uniqueRow()], other);
      await other.drain();
    };
    await commit();
    const older = service.store.faults.next('head', /v3\.metadata\.json$/, 'slow-response');
    const first = service.table.load();
    await world.clock.until(older.reached);
    await commit();
    const newer = service.store.faults.next('head', /v4\.metadata\.json$/, 'slow-response');
    const second = service.table.load();
    await world.clock.until(newer.reached);
    older.release();
    expect((await world.clock.until(first))?.version).toBe(2);
    newer.release();
    expect((await world.clock.until(second))?.version).toBe(3);
    expect(service.table.base?.version).toBe(3);
  });

  test('group: a batch that waits for its ledger step when another table takes the place is told so', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.writer.live());
    await world.clock.until(service.admin.drop());
    const { base } = await world.clock.until(service.admin.create(SERIES));
    // For the table before, as far as this object knows; then it hears of the new one, before the batch is in the ledger.
    const joining = other.append([uniqueRow('other')]).catch((error) => error);
    await world.clock.idle();
    await other.table.load();
    other.writer.replaced(base, { outcome: 'refused', type: 'table-replaced', message: 'm', atMs: 1 });
    expect(await world.clock.until(joining)).toMatchObject({ type: 'table-changed' });
    await other.drain();
    expect(await tableRows(world)).toEqual([]);
  });

  test('epoch: one sent again, whose look shows that another table took the place, is not taken for that one', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    const uuid = service.table.base?.metadata['table-uuid'] ?? '';
    const frame = { ...service.frame([uniqueRow('a')]), producer: { app: 'a', epoch: 1n, sparse: false } };
    await world.clock.until(service.writer.append(frame, uuid, 0));
    await service.drain();
    // Its answer was lost, so it comes again; meanwhile another service drops the table and makes it anew.
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.writer.live());
    await world.clock.until(other.admin.drop());
    await world.clock.until(other.admin.create(SERIES));
    const held = service.store.faults.next('head', /v3\.metadata\.json$/, 'slow');
    const again = service.writer.append(frame, uuid, 0).catch((error) => error);
    await world.clock.until(held.reached);
    held.release();
    expect(await world.clock.until(again)).toMatchObject({ type: 'table-changed' });
    await service.drain();
    await other.drain();
    expect(await tableRows(world)).toEqual([]);
  });

  test('an engine made it anew, and nobody has attached it: what waits is refused, and no alarm is set for it', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await foreignTable(scenario);
    // As a request for its description does.
    await world.clock.until(service.table.load());
    world.clock.advance(20_000);
    await world.clock.until(service.writer.run());
    expect(ledger.receipt(1)).toMatchObject({ state: 'refused', type: 'table-replaced' });
    expect(service.writer.dueMs()).toBeNull();
  });

  test('it was gone, and another service made it anew: found by the run itself, though nobody asks', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await world.memory.delete([...world.memory.keys()]);
    await world.clock.until(service.table.load());
    const alarm = async () => {
      world.clock.advance(Math.max(0, (service.writer.dueMs() ?? 0) - world.clock.now()));
      await world.clock.until(service.writer.run());
    };
    await alarm();
    expect(service.writer.lastRunError).toMatchObject({ type: 'unknown-table' });
    expect(ledger.receipt(1)).toEqual({ state: 'buffered' });
    await world.clock.until(new Service(world, new SimLedger('00000000000000bb')).admin.create(SERIES));
    await alarm();
    expect(ledger.receipt(1)).toMatchObject({ state: 'refused', type: 'table-replaced' });
    await service.drain();
    expect(service.writer.lastRunError).toBeNull();
  });

  test('a table of a newer build: tried again later each time, and not every second for ever', async () => {
    const scenario = await newScenario();
    const { world, service } = scenario;
    await acknowledge(scenario, [uniqueRow()]);
    await rewritten(scenario, (properties) => ({ ...properties, 'sluice.format-version': '99' }));
    await world.clock.until(service.table.load());
    const waits: number[] = [];
    for (let round = 0; round < 4; round++) {
      world.clock.advance(Math.max(0, (service.writer.dueMs() ?? 0) - world.clock.now()));
      await world.clock.until(service.writer.run());
      waits.push((service.writer.dueMs() ?? 0) - world.clock.now());
    }
    expect(service.writer.lastRunError).toMatchObject({ type: 'table-newer' });
    expect(waits).toEqual([1_000, 2_000, 4_000, 8_000]);
  });

  test('a commit on the table before that ends late does not bring it back', async () => {
    const scenario = await newScenario();
    const { world, service, ledger } = scenario;
    // A lost race leaves a list to clean up, and that is slow.
    const other = new Service(world, new SimLedger('00000000000000bb'));
    await world.clock.until(other.append([uniqueRow('other')]));
    await world.clock.until(service.append([uniqueRow()]));
    const held = service.store.faults.next('putIfAbsent', /v2\.metadata\.json$/, 'slow');
    const slow = service.store.faults.next('delete', /snap-/, 'slow');
    const flushed = service.writer.flush();
    await world.clock.until(held.reached);
    await world.clock.until(other.writer.flush());
    held.release();
    await world.clock.until(slow.reached);

    await world.memory.delete([...world.memory.keys()]);
    await world.clock.until(new Service(world, new SimLedger('00000000000000cc')).admin.create(SERIES));
    await world.clock.until(service.table.load());
    const row = uniqueRow('new');
    const { sequence } = await world.clock.until(service.append([row]));
    slow.release();
    await world.clock.until(flushed);
    await service.drain();
    expect(service.writer.lastRunError).toBeNull();
    expect(ledger.receipt(sequence - 1)).toMatchObject({ state: 'refused', type: 'table-replaced' });
    expect(ledger.receipt(sequence)).toMatchObject({ state: 'committed' });
    expect(await tableRows(world)).toEqual([`${row.device} ${row.time} ${row.v}`]);
    await expectValid(world);
  });
});

/** The folder emptied, and begun again at version 1 by somebody else. */
async function foreignTable(scenario: Scenario): Promise<void> {
  const { world } = scenario;
  await world.memory.delete([...world.memory.keys()]);
  const other = new Service(world, new SimLedger('00000000000000bb'));
  await world.clock.until(other.admin.create(SERIES));
  await rewritten({ ...scenario, service: other }, ({ 'sluice.format-version': _, ...properties }) => properties);
}

/** The newest version as another hand would have made it, with other properties. */
async function rewritten(
  { world, service }: Pick<Scenario, 'world' | 'service'>,
  change: (properties: Record<string, string>) => Record<string, string>,
): Promise<void> {
  const metadata = metadataOf(service);
  const key = `${PLACE.prefix}/metadata/v${service.table.base?.version ?? 0}.metadata.json`;
  await world.memory.delete([key]);
  await world.memory.putIfAbsent(
    key,
    utf8(serializeMetadata({ ...metadata, properties: change(metadata.properties) })),
  );
}
