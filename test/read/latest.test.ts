import { beforeEach, describe, expect, test } from 'vitest';
import { INDEX_BYTES_MAX, LATEST_SCAN_BYTES_MAX, LATEST_SCAN_FILES_MAX } from '../../src/core/base/index-limits.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { encodeFrameBody } from '../../src/core/columns/frame.ts';
import type { IcebergBase } from '../../src/core/commit/iceberg-base.ts';
import { parseSchemaChanges } from '../../src/core/commit/plan-schema.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import { proposedSchema } from '../../src/core/iceberg/proposal.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { NewestRows } from '../../src/engine/newest-rows.ts';
import { newestWaiting } from '../../src/engine/waiting.ts';
import { newFrame } from '../../src/http/new-frame.ts';
import { rowBudget, rowCollector } from '../../src/http/row-collector.ts';
import { ingestView } from '../../src/object/views.ts';
import { parseLatestQuery, readLatest } from '../../src/read/latest.ts';
import { rowsOf } from '../core/columns/rows.ts';
import { commit as commitTo, deleteOf, metadataOf, ofDay, on } from '../engine/file-operations.ts';
import { plantFile } from '../engine/planted-file.ts';
import { DAY, HOUR, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, SeededRandom, type SeriesRow } from '../sim/service.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

const until = <T>(promise: Promise<T>) => scenario.world.clock.until(promise);

async function commit(...rows: SeriesRow[]): Promise<void> {
  await scenario.world.clock.until(scenario.service.append(rows));
  await scenario.service.drain();
}

async function latest(query = '') {
  const { memory, clock, random } = scenario.world;
  const ports = { store: memory, clock, random, codecs };
  const asked = parseLatestQuery(new URLSearchParams(query));
  const { columns, facts } = await clock.until(readLatest(ports, PLACE, asked, null));
  return { rows: rowsOf(columns).map(([time, device, v]) => `${device} ${time} ${v}`), source: facts.source };
}

/** Ends the chain of indexes: rows of a second day go. */
async function loseIndex(): Promise<void> {
  const { service, world } = scenario;
  await commit(on(1, 1, 'gone'));
  await commitTo(world, service, deleteOf(world, service, ofDay(1)));
}

describe('the newest row of each series', () => {
  test('by the index and by looking through the files, as by looking at all rows', async () => {
    const random = new SeededRandom(11);
    const draw = (below: number) => random.next() % below;
    const newest = new Map<string, SeriesRow>();
    const expected = (devices: readonly string[]) =>
      [...newest.values()]
        .filter(({ device }) => devices.length === 0 || devices.includes(device))
        .sort((a, b) => (a.device < b.device ? -1 : 1))
        .map(({ device, time, v }) => `${device} ${time} ${v}`);
    for (let round = 0; round < 8; round++) {
      const rows = Array.from({ length: 1 + draw(30) }, () => ({
        device: `d${draw(12)}`,
        time: DAY + BigInt(draw(20)) * HOUR,
        v: BigInt(draw(1000)),
      }));
      await commit(...rows);
      for (const row of rows) if (row.time >= (newest.get(row.device)?.time ?? 0n)) newest.set(row.device, row);
      if (round === 4) await loseIndex();
      const devices = Array.from({ length: draw(3) }, () => `d${draw(14)}`);
      const query = new URLSearchParams(devices.map((device) => ['device', device]));
      expect(await latest(String(query)), `round ${round}`).toEqual({
        rows: expected(devices),
        source: round < 4 ? 'index' : 'scan',
      });
    }
  });

  test('no rows: nothing to look through', async () => {
    expect(await latest()).toEqual({ rows: [], source: 'index' });
  });

  test.each([
    ['device=1&v=1', 'not chosen by "v", but by device'],
    ['nope=1', 'not chosen by "nope"'],
    ['buffered=yes', 'neither true nor false'],
    ['buffered=true&buffered=true', 'given twice'],
  ])('refused: %s', async (query, message) => {
    await expect(latest(query)).rejects.toThrow(
      expect.objectContaining({ kind: 'invalid', type: 'malformed', message: expect.stringContaining(message) }),
    );
  });
});

describe('a table without an index that cannot be looked through', () => {
  const refusal = (index: string, reason: string) =>
    expect.objectContaining({ kind: 'rejected', type: 'no-last-value-index', detail: { index, reason } });

  test('more bytes of files than one request looks through', async () => {
    await commit(on(0, 1));
    await loseIndex();
    expect(await latest()).toMatchObject({ source: 'scan' });
    await plantFile(scenario, { fileSizeInBytes: BigInt(LATEST_SCAN_BYTES_MAX) });
    await expect(latest()).rejects.toThrow(refusal('not-carried', 'table-too-large'));
  });

  test('more files than one request may read, however small: none of them is opened', async () => {
    const { world, service } = scenario;
    await commit(on(0, 1));
    const { files } = await until(service.compactor.live.of(service.table.base as IcebergBase));
    const many = Array.from({ length: LATEST_SCAN_FILES_MAX + 1 }, (_, i) => ({
      ...files[0],
      entry: { ...files[0].entry, dataFile: { ...files[0].entry.dataFile, filePath: `${PLACE.location}/data/${i}` } },
    }));
    const schema = currentSchema(metadataOf(service));
    const of = { schema, series: { keyIds: [2], timeId: 1, ingestTimeId: null }, metadata: metadataOf(service) };
    const bounds = { seriesMax: 10, bytesMax: LATEST_SCAN_BYTES_MAX, filesMax: LATEST_SCAN_FILES_MAX };
    const ports = { store: world.memory, clock: world.clock, random: world.random, ...codecs };
    const newest = new NewestRows(ports, PLACE, { ...of, ...bounds });
    expect(await newest.add({ files: many, deletes: [] })).toBe('table-too-large');
  });

  test('delete files, and files that are not read here', async () => {
    await commit(on(0, 1));
    await loseIndex();
    await plantFile(scenario, { fileFormat: 'ORC' });
    await expect(latest()).rejects.toThrow(refusal('not-carried', 'unreadable-file'));
    await plantFile(scenario, { content: 1 });
    await expect(latest()).rejects.toThrow(refusal('not-carried', 'delete-files'));
  });

  test('the index is back once it was made again', async () => {
    await commit(on(0, 1));
    await loseIndex();
    const plan = { steps: ['index' as const], full: true, sweepAfter: null, dryRun: false };
    await scenario.world.clock.until(scenario.service.maintenance.run(plan));
    expect(await latest()).toMatchObject({ source: 'index', rows: [`a ${DAY + 1_000_000n} 1`] });
  });
});

describe('rows that wait, in a table whose batches bring columns', () => {
  const change = (...changes: object[]) => until(scenario.service.changes.schema(parseSchemaChanges(changes), null));

  beforeEach(async () => {
    await until(scenario.service.changes.properties({ 'sluice.schema-evolution': 'additive' }, []));
  });

  /** Rows of an hour of the day, as the door makes a batch of them. */
  function frameOf(hour: number, ...given: object[]): NewFrame {
    const { service } = scenario;
    const metadata = metadataOf(service);
    const view = ingestView(service.table.base as never, service.writer.proposals.waiting(metadata));
    const { epochUnit, ingestTimeColumn: filledField } = view.settings;
    const options = { onError: 'refuse', evolve: 'json', epochUnit, filledField, textual: false } as const;
    const collector = rowCollector(proposedSchema(view.schema, view.proposal), rowBudget(100_000), options);
    const time = Number(DAY / 1000n) + 3_600_000 * hour;
    for (const [i, row] of given.entries()) collector.row({ time, device: 'a', v: 1, ...row }, i + 1);
    return newFrame(collector.finish().columns, view, { batchId: null, producer: null }, new Uint8Array(32));
  }

  async function wait(hour: number, ...given: object[]): Promise<void> {
    const frame = frameOf(hour, ...given);
    await until(scenario.service.writer.append(frame, metadataOf(scenario.service)['table-uuid'], 0));
  }

  /** As the object answers. */
  function waiting() {
    const { ledger, service, world } = scenario;
    const metadata = metadataOf(service);
    const newest = newestWaiting(ledger, metadata, world.clock.now());
    if (newest === null) throw new Error('the table has a time column');
    const rows = ledger.state().buffer.rows;
    return { tableUuid: metadata['table-uuid'], rows, schema: newest.schema, body: encodeFrameBody(newest) };
  }

  async function latestWith(asked: ReturnType<typeof waiting>, query = '') {
    const { memory, clock, random } = scenario.world;
    const ports = { store: memory, clock, random, codecs };
    const { columns } = await until(readLatest(ports, PLACE, parseLatestQuery(new URLSearchParams(query)), asked));
    const names = columns.schema.fields.map(({ name }) => name);
    return rowsOf(columns).map((row) => Object.fromEntries(row.map((value, i) => [names[i], value])));
  }

  test('a wider type that waits takes the committed values along, in filters too', async () => {
    await change({ add: 'n', type: 'int' });
    await wait(1, { n: 1 });
    await scenario.service.drain();
    await wait(2, { device: 'b', n: 3_000_000_000 });
    expect(await latestWith(waiting())).toMatchObject([
      { device: 'a', n: 1n },
      { device: 'b', n: 3_000_000_000n },
    ]);
  });

  test('an id that another writer gave away meanwhile is no id of a column that waits', async () => {
    await wait(1, { device: 'a', mine: 'of ours' });
    const asked = waiting();
    await change({ add: 'theirs', type: 'string' });
    expect(await latestWith(asked)).toMatchObject([{ device: 'a', theirs: null, mine: 'of ours' }]);
    await change({ add: 'mine', type: 'string' });
    expect(await latestWith(asked, 'device=a')).toMatchObject([{ theirs: null, mine: 'of ours' }]);
  });

  test('more than an index may have is refused, and not handed on', () => {
    const text = 'x'.repeat(INDEX_BYTES_MAX / 4);
    // As while the store is down: nothing is flushed.
    for (let i = 0; i < 5; i++) scenario.ledger.accept([frameOf(i, { device: `${i}${text}` })], 0);
    expect(waiting).toThrow(expect.objectContaining({ kind: 'rejected', type: 'too-much-to-read' }));
  });
});
