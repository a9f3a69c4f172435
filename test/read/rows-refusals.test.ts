import { describe, expect, test } from 'vitest';
import { ROWS_ANSWER_BYTES_MAX } from '../../src/core/base/read-limits.ts';
import type { Columns } from '../../src/core/columns/columns.ts';
import type { TableDefinition } from '../../src/core/table/definition.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { readRows } from '../../src/read/rows.ts';
import { parseRowsQuery } from '../../src/read/rows-query.ts';
import { type Store, StoreError } from '../../src/store/store.ts';
import { rowsOf } from '../core/columns/rows.ts';
import { on } from '../engine/file-operations.ts';
import { plantFile } from '../engine/planted-file.ts';
import { newScenario, newWorld, type Scenario } from '../sim/scenario.ts';
import { PLACE, SERIES, type SeriesRow, Service } from '../sim/service.ts';
import { SimLedger } from '../sim/sim-ledger.ts';

type Table = Pick<Scenario, 'world' | 'service'>;

async function ask({ world }: Table, query: string, store: Store = world.memory): Promise<Columns> {
  const ports = { store, clock: world.clock, random: world.random, codecs };
  const reading = readRows(ports, PLACE, parseRowsQuery(new URLSearchParams(query)));
  return (await world.clock.until(reading)).columns;
}

async function commit({ world, service }: Table, rows: readonly SeriesRow[]): Promise<void> {
  await world.clock.until(service.append(rows));
  await service.drain();
}

async function tableOf(definition: TableDefinition): Promise<Table> {
  const world = newWorld();
  const service = new Service(world, new SimLedger('00000000000000aa'));
  await world.clock.until(service.admin.create(definition));
  return { world, service };
}

const refusal = (kind: string, type: string, message: string, detail: object = {}) =>
  expect.objectContaining({
    kind,
    type,
    message: expect.stringContaining(message),
    detail: expect.objectContaining(detail),
  });

const plain: TableDefinition = { ...SERIES, timeColumn: null, seriesKey: [], chunk: null };

describe('rows: what a request may ask', () => {
  test('columns and series by names that the table has, which the refusal tells', async () => {
    const table = await newScenario();
    await commit(table, [on(0, 1)]);
    const names = ['time', 'device', 'v', '_ingest_ts'];
    await expect(ask(table, 'columns=time,nope')).rejects.toThrow(
      refusal('invalid', 'malformed', 'no column of this name: nope', { parameter: 'columns', expected: names }),
    );
    await expect(ask(table, 'nope=1')).rejects.toThrow(
      refusal('invalid', 'malformed', 'not chosen by "nope", but by device', {
        parameter: 'nope',
        expected: ['device'],
      }),
    );
    // Which row of a key counts is decided before rows are chosen.
    await expect(ask(table, 'v=1')).rejects.toThrow(refusal('invalid', 'malformed', 'not chosen by "v"'));
    // Also where there is nothing to read yet.
    const empty = await newScenario();
    await expect(ask(empty, 'columns=nope')).rejects.toThrow(refusal('invalid', 'malformed', 'nope'));
    expect(rowsOf(await ask(empty, 'device=a&columns=v'))).toEqual([]);
  });

  test('a time only where there is one; without, any column chooses, and rows stand as their files do', async () => {
    const table = await tableOf(plain);
    for (const v of [3, 1, 2]) await commit(table, [on(0, v, 'b'), on(0, v + 10, 'a')]);
    for (const query of ['from=2026-01-01', 'to=2026-01-01', 'order=desc']) {
      await expect(ask(table, query), query).rejects.toThrow(refusal('invalid', 'no-time-column', 'no time column'));
    }
    const found = async (query: string) => rowsOf(await ask(table, query)).flat();
    expect(await found('columns=v&order=asc')).toEqual([3n, 13n, 1n, 11n, 2n, 12n]);
    expect(await found('columns=v&v=11&v=2')).toEqual([11n, 2n]);
    expect(await found('columns=v&device=b&limit=2')).toEqual([3n, 1n]);
  });

  test('snapshots and refs of the table', async () => {
    const table = await newScenario();
    await commit(table, [on(0, 1)]);
    await expect(ask(table, 'snapshot_id=7')).rejects.toThrow(refusal('invalid', 'unknown-snapshot', '7'));
    await expect(ask(table, 'ref=nope')).rejects.toThrow(refusal('invalid', 'unknown-ref', 'nope'));
    await expect(ask(table, 'ref=constructor')).rejects.toThrow(refusal('invalid', 'unknown-ref', 'constructor'));
    expect(rowsOf(await ask(table, 'ref=main&columns=v'))).toEqual([[1n]]);
  });

  test('a table that is there', async () => {
    const world = newWorld();
    const service = new Service(world, new SimLedger('00000000000000aa'));
    await expect(ask({ world, service }, '')).rejects.toThrow(refusal('invalid', 'unknown-table', 'does not exist'));
    const table = await newScenario();
    await table.world.clock.until(table.service.admin.drop());
    await expect(ask(table, '')).rejects.toThrow(refusal('invalid', 'unknown-table', 'was dropped'));
  });
});

describe('rows: what is not read', () => {
  test('rows that delete files may take away, as far as the request comes near them', async () => {
    const table = await newScenario();
    await commit(table, [on(0, 1)]);
    await commit(table, [on(1, 2)]);
    await plantFile(table, { content: 1 });
    await expect(ask(table, '')).rejects.toThrow(
      refusal('rejected', 'delete-files', `read the table with an engine: ${PLACE.location}/data/d.parquet`),
    );
    await expect(ask(table, 'to=2026-01-02')).rejects.toThrow(refusal('rejected', 'delete-files', 'd.parquet'));
    expect(rowsOf(await ask(table, 'from=2026-01-02&columns=v'))).toEqual([[2n]]);
  });

  test.each([
    ['another format', { fileFormat: 'ORC' }],
    ['encrypted', { keyMetadata: Uint8Array.of(1) }],
  ])('files that are no plain Parquet: %s', async (_, given) => {
    const table = await newScenario();
    await commit(table, [on(0, 1)]);
    await plantFile(table, given);
    await expect(ask(table, '')).rejects.toThrow(
      refusal('rejected', 'unsupported-file', `encrypted or no Parquet file: ${PLACE.location}/data/d.parquet`),
    );
    expect(rowsOf(await ask(table, 'from=2026-01-02'))).toEqual([]);
  });

  const tooMuch = refusal('rejected', 'too-much-to-read', 'ask for fewer', { bytesMax: ROWS_ANSWER_BYTES_MAX });
  /** So many rows whose texts are more than an answer holds. */
  const wide = (rows: number, text: (row: number) => string) =>
    Array.from({ length: rows }, (_, v) => on(0, v, text(v).padEnd(ROWS_ANSWER_BYTES_MAX / (rows - 1), 'x')));

  test.each([
    ['which order them', SERIES],
    ['of another column', plain],
  ])('more values than an answer holds, %s; fewer rows or columns are answered', async (_, definition) => {
    const table = await tableOf(definition);
    // One text, in memory once, and in the answer as often as there are rows.
    await commit(
      table,
      wide(5000, () => 'a'),
    );
    await expect(ask(table, 'columns=device&limit=100000')).rejects.toThrow(tooMuch);
    expect((await ask(table, 'columns=device')).rows).toBe(1000);
    expect((await ask(table, 'columns=v&limit=100000')).rows).toBe(5000);
  });

  test('columns that are known already and those that are read count together', async () => {
    const table = await newScenario();
    // With the four bytes that each takes, texts of so many rows just fit; eight bytes more a row do not.
    const rows = 5000;
    const text = 'a'.repeat(Math.floor(ROWS_ANSWER_BYTES_MAX / rows) - 4 - 3);
    await commit(
      table,
      Array.from({ length: rows }, (_, v) => on(0, v, text)),
    );
    expect((await ask(table, 'columns=device&limit=100000')).rows).toBe(rows);
    await expect(ask(table, 'columns=device,v&limit=100000')).rejects.toThrow(tooMuch);
  });

  test('more series than are held while rows are put in order', async () => {
    const table = await newScenario();
    await commit(
      table,
      wide(9, (row) => `${row}`),
    );
    await expect(ask(table, 'columns=v')).rejects.toThrow(tooMuch);
    expect((await ask(table, 'columns=v&limit=6')).rows).toBe(6);
  });

  test('a data file that is gone, or shorter than its manifest says', async () => {
    for (const [given, type] of [
      [{}, 'data-file-missing'],
      [{ fileSizeInBytes: 11n }, 'parquet-corrupt'],
    ] as const) {
      const table = await newScenario();
      await commit(table, [on(0, 1)]);
      await plantFile(table, given);
      await expect(ask(table, '')).rejects.toThrow(refusal('corrupt', type, 'data/d.parquet'));
    }
  });

  test('a store that does not answer: later', async () => {
    const table = await newScenario();
    await commit(table, [on(0, 1)]);
    const { memory } = table.world;
    const down = new Proxy(memory, {
      get: (store, name) =>
        name === 'getRange'
          ? async (key: string) => {
              throw new StoreError('getRange', key, 'no');
            }
          : (Reflect.get(store, name) as () => unknown).bind(store),
    });
    await expect(ask(table, '', down)).rejects.toThrow(refusal('unavailable', 'store-unavailable', 'getRange'));
  });
});
