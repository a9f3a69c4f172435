import { beforeEach, describe, expect, test } from 'vitest';
import { LATEST_SCAN_BYTES_MAX } from '../../src/core/base/index-limits.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { parseLatestQuery, readLatest } from '../../src/read/latest.ts';
import { rowsOf } from '../core/columns/rows.ts';
import { commit as commitTo, deleteOf, ofDay, on } from '../engine/file-operations.ts';
import { plantFile } from '../engine/planted-file.ts';
import { DAY, HOUR, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, SeededRandom, type SeriesRow } from '../sim/service.ts';

let scenario: Scenario;

beforeEach(async () => {
  scenario = await newScenario();
});

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
