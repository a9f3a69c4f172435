import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import type { MaintainReport } from '../../src/engine/compactor.ts';
import { storeBucket } from '../oracle/bucket.ts';
import { rows as tableRows } from '../oracle/rows.ts';
import { validateTable } from '../oracle/validator.ts';
import { DAY, type Scenario } from '../sim/scenario.ts';
import { PLACE, SERIES } from '../sim/service.ts';
import { metadataOf } from './file-operations.ts';
import { commitRows, duckdbFile, NESTED, NESTED_IDS, NESTED_NAMES, newTable, theirAppend } from './foreign-files.ts';

/** Compaction of nested columns, and of files that other writers made, by DuckDB. */

const TUPLE = [Number(DAY / 86_400_000_000n)];
const FLAT_IDS = '{time: 1, device: 2, v: 3, _ingest_ts: 4}';

function maintain({ world, service }: Scenario, dryRun = false): Promise<MaintainReport> {
  return world.clock.until(service.compactor.maintain(true, dryRun));
}

/** All rows by their key, spelled: the oracle reads the files. */
async function rowsOf({ world }: Scenario): Promise<Map<string, Record<string, unknown>[]>> {
  const out = new Map<string, Record<string, unknown>[]>();
  for (const row of await tableRows(storeBucket(world.memory), PLACE.prefix)) {
    const key = `${row['device']} ${row['time']}`;
    out.set(key, [...(out.get(key) ?? []), row]);
  }
  return out;
}

/** Everything but the files of others, which have no metrics and say what they like. */
async function expectOursValid({ world }: Scenario): Promise<void> {
  const findings = await validateTable(storeBucket(world.memory), PLACE.prefix, { hintRequired: true });
  expect(findings.filter(({ key }) => !key.includes('/data/theirs-'))).toEqual([]);
}

/** Rows `from .. to` as SQL, in no order; `v` tells who wrote them, `ingest` when. */
const nested = (from: number, to: number, v: number, ingest: number) => `
  select make_timestamptz(${DAY} + i * 1000000) as time, 'd' || (i % 3) as device, ${v}::bigint as v,
    case when i % 5 = 0 then null when i % 5 = 1 then []::varchar[] else ['t' || i, null] end as tags,
    case when i % 3 = 0 then null else {'floor': i::int, 'room': 'room ' || i} end as place,
    case when i % 7 = 0 then null else map {'a': i::bigint} end as counts,
    make_timestamptz(${ingest}) as _ingest_ts
  from range(${from}, ${to}) t(i) order by hash(i)`;

function ownRow(i: number, v: number): unknown[] {
  const tags = i % 5 === 0 ? null : i % 5 === 1 ? [] : [`t${i}`, null];
  const place = i % 3 === 0 ? null : { floor: i, room: `room ${i}` };
  const counts = i % 7 === 0 ? null : new Map([['a', BigInt(i)]]);
  return [DAY + BigInt(i) * 1_000_000n, `d${i % 3}`, BigInt(v), tags, place, counts];
}

const range = (from: number, to: number) => Array.from({ length: to - from }, (_, i) => from + i);

describe('compaction of nested columns and of files that others wrote', () => {
  test('nested rows of our own: merged, each once, the later of a key', async () => {
    const scenario = await newTable(NESTED);
    for (let n = 0; n < 4; n++) {
      await commitRows(
        scenario,
        range(10 * n, 10 * n + 15).map((i) => ownRow(i, n)),
      );
    }
    const before = await rowsOf(scenario);
    expect(await maintain(scenario)).toMatchObject({
      leftAlone: [],
      slices: [{ files: 4, rows: 60n, made: { files: 1, rows: 45n, duplicates: 15 } }],
    });
    await expectOursValid(scenario);
    const after = await rowsOf(scenario);
    expect(after.size).toBe(45);
    for (const [key, found] of after) {
      const newest = before
        .get(key)
        ?.sort((a, b) => Number(a['v']) - Number(b['v']))
        .at(-1);
      expect(found).toEqual([newest]);
    }
  });

  test('files in no order, gzip and delta encodings, with ids and without: one file, and the winners are the newest', async () => {
    const scenario = await newTable(NESTED);
    const { world, service } = scenario;
    await world.clock.until(service.changes.properties(NESTED_NAMES, []));
    const now = world.clock.now() * 1000;
    await commitRows(
      scenario,
      range(0, 20).map((i) => ownRow(i, 1)),
    );
    const file = { rows: 20, tuple: TUPLE };
    // Taken later than ours, and earlier; of those at one time the later commit counts.
    await theirAppend(scenario, await duckdbFile(nested(10, 30, 2, now * 2), NESTED_IDS, 'codec gzip'), file);
    await theirAppend(scenario, await duckdbFile(nested(15, 35, 3, 5), null, 'codec zstd, parquet_version v2'), file);
    await theirAppend(scenario, await duckdbFile(nested(25, 45, 4, 5), NESTED_IDS, 'codec snappy'), file);
    const before = await rowsOf(scenario);
    expect(await maintain(scenario)).toMatchObject({
      leftAlone: [],
      slices: [{ files: 4, rows: 80n, made: { files: 1, rows: 45n } }],
    });
    await expectOursValid(scenario);
    const after = await rowsOf(scenario);
    const winner = (i: number) => (i < 10 ? 1 : i < 30 ? 2 : i < 35 ? 4 : 4);
    for (const i of range(0, 45)) {
      const key = `d${i % 3} ${DAY + BigInt(i) * 1_000_000n}`;
      expect(after.get(key), key).toEqual(before.get(key)?.filter(({ v }) => v === BigInt(winner(i))));
    }
    expect(after.size).toBe(45);
  });

  test('a file that claims an order it does not have is found, sorted, and merged with the others', async () => {
    const scenario = await newTable(SERIES);
    for (const v of [1, 2]) await commitRows(scenario, [[DAY + BigInt(v), 'd0', BigInt(v)]]);
    const query = `select make_timestamptz(${DAY} + i * 1000000) as time, 'd' || (i % 3) as device, i as v,
      make_timestamptz(5) as _ingest_ts from range(30) t(i) order by hash(i)`;
    const claimed = { rows: 30, tuple: TUPLE, sortOrderId: 1 };
    await theirAppend(scenario, await duckdbFile(query, FLAT_IDS, 'codec zstd'), claimed);
    expect(await maintain(scenario)).toMatchObject({ leftAlone: [], slices: [{ files: 3, made: { rows: 32n } }] });
    await expectOursValid(scenario);
    expect((await rowsOf(scenario)).size).toBe(32);
  });

  test('a file that could not be read is tried again when it has left the table and comes back whole', async () => {
    const scenario = await newTable(SERIES);
    const { world, service } = scenario;
    for (const v of [1, 2]) await commitRows(scenario, [[DAY + BigInt(v), 'd0', BigInt(v)]]);
    const before = metadataOf(service)['current-snapshot-id'] as bigint;
    const query = `select make_timestamptz(${DAY} + i) as time, 'd1' as device, i as v, make_timestamptz(5) as _ingest_ts
      from range(3) t(i)`;
    const whole = await duckdbFile(query, FLAT_IDS, 'codec zstd');
    const file = { rows: 3, tuple: TUPLE, sortOrderId: 1, filePath: `${PLACE.location}/data/theirs-again.parquet` };
    await theirAppend(scenario, new Uint8Array(whole.length), file);
    const left = [{ reason: 'unreadable', files: 1 }];
    expect(await maintain(scenario)).toMatchObject({ leftAlone: left, slices: [{ files: 2 }] });
    await world.clock.until(service.changes.rollback(before));
    expect(await maintain(scenario, true)).toMatchObject({ leftAlone: [], slices: [{ files: 2 }] });
    world.memory.plant(`${PLACE.prefix}/data/theirs-again.parquet`, whole);
    await theirAppend(scenario, whole, file);
    expect(await maintain(scenario)).toMatchObject({ leftAlone: [], slices: [{ files: 3, made: { rows: 5n } }] });
  });

  test('of rows of one key in a file that has to be sorted, taken at one time, the last one counts', async () => {
    const scenario = await newTable(SERIES);
    await commitRows(scenario, [[DAY, 'a', 0n]]);
    const query = `select make_timestamptz(${DAY} + t) as time, d as device, v::bigint as v,
      make_timestamptz(5) as _ingest_ts from (values (2, 'b', 1), (1, 'a', 2), (2, 'b', 3), (1, 'a', 4), (2, 'b', 5))
      as rows(t, d, v)`;
    await theirAppend(scenario, await duckdbFile(query, FLAT_IDS, 'codec zstd'), { rows: 5, tuple: TUPLE });
    expect(await maintain(scenario)).toMatchObject({ slices: [{ files: 2, made: { rows: 3n, duplicates: 3 } }] });
    const found = [...(await rowsOf(scenario)).values()].flat();
    expect(found.map(({ device, v }) => [device, v])).toEqual([
      ['a', 0n],
      ['a', 4n],
      ['b', 5n],
    ]);
  });

  test('a file with nulls in a required column is left alone, holds up no other, and no index is made of it (B028)', async () => {
    const scenario = await newTable(SERIES);
    for (const v of [1, 2]) await commitRows(scenario, [[DAY + BigInt(v), 'd0', BigInt(v)]]);
    const query = `select make_timestamptz(${DAY} + 1) as time, 'a' as device, 1::bigint as v, null::timestamptz as _ingest_ts`;
    await theirAppend(scenario, await duckdbFile(query, FLAT_IDS, 'codec zstd'), { rows: 1, tuple: TUPLE });
    expect(await maintain(scenario)).toMatchObject({
      slices: [{ files: 2 }],
      leftAlone: [{ reason: 'unreadable', files: 1 }],
    });
    const { world, service } = scenario;
    expect(await world.clock.until(service.rebuild.run(false))).toMatchObject({
      state: 'impossible',
      reason: 'unreadable-file',
    });
  });

  test('what takes too much memory is left alone with its reason, and the rest is merged', async () => {
    const scenario = await newTable(NESTED);
    for (const i of [1, 2]) await commitRows(scenario, [ownRow(i, 1)]);
    const many = (rows: number, more: string) => `select make_timestamptz(${DAY} + i) as time, 'a' as device,
      i as v${more}, make_timestamptz(5) as _ingest_ts from range(${rows}) t(i)`;
    const ids = '{time: 1, device: 2, v: 3, _ingest_ts: 7}';
    const tagged = '{time: 1, device: 2, v: 3, tags: {__duckdb_field_id: 4, element: 8}, _ingest_ts: 7}';
    const large = await duckdbFile(many(20_000, ', range(20)::varchar[] as tags'), tagged, 'codec zstd');
    await theirAppend(scenario, large, { rows: 20_000, tuple: TUPLE, sortOrderId: 1 });
    await theirAppend(scenario, await duckdbFile(many(60_000, ''), ids, 'codec zstd'), { rows: 60_000, tuple: TUPLE });
    const report = await maintain(scenario);
    expect(report.leftAlone.map(({ reason, files }) => [reason, files]).sort()).toEqual([
      ['row-group-too-large', 1],
      ['unsorted-too-large', 1],
    ]);
    expect(report.slices).toMatchObject([{ files: 2, made: { rows: 2n } }]);
  });

  test('files that fit the memory one by one, but not together, are merged a few at a time', async () => {
    const scenario = await newTable(NESTED);
    const tagged = '{time: 1, device: 2, v: 3, tags: {__duckdb_field_id: 4, element: 8}, _ingest_ts: 7}';
    for (let n = 0; n < 4; n++) {
      const query = `select make_timestamptz(${DAY} + ${n} * 1000000 + i) as time, 'a' as device, i as v,
        [repeat(md5(i::varchar), 70)] as tags, make_timestamptz(5) as _ingest_ts from range(2500) t(i)`;
      const bytes = await duckdbFile(query, tagged, 'codec zstd');
      await theirAppend(scenario, bytes, { rows: 2_500, tuple: TUPLE, sortOrderId: 1 });
    }
    const report = await maintain(scenario);
    expect(report.leftAlone).toEqual([]);
    expect(report.slices.map(({ files }) => files)).toEqual([2, 2, 2]);
    expect(report.slices.at(-1)).toMatchObject({ made: { files: 1, rows: 10_000n } });
    const merged = [...(await rowsOf(scenario)).values()].flat();
    expect(merged.length).toBe(10_000);
    const md5 = (v: unknown) => createHash('md5').update(String(v)).digest('hex');
    expect(merged.filter(({ v, tags }) => !(tags as string[])[0].startsWith(md5(v)))).toEqual([]);
  });
});
