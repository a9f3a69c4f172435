import { tableFromIPC } from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import { concat, textOf } from '../../src/core/base/bytes.ts';
import { jsonLines } from '../../src/core/columns/json-rows.ts';
import { currentSchema } from '../../src/core/iceberg/metadata.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { rowsFormat, rowsResponse } from '../../src/http/rows-answer.ts';
import { readRows } from '../../src/read/rows.ts';
import { parseRowsQuery } from '../../src/read/rows-query.ts';
import { MeteredStore } from '../../src/store/metered.ts';
import { metadataOf } from '../engine/file-operations.ts';
import {
  commitRows,
  duckdbFile,
  NESTED,
  NESTED_IDS,
  NESTED_NAMES,
  newTable,
  theirAppend,
} from '../engine/foreign-files.ts';
import { update } from '../engine/theirs.ts';
import { DAY, HOUR, newScenario, type Scenario } from '../sim/scenario.ts';
import { PLACE, SeededRandom, type SeriesRow } from '../sim/service.ts';

async function commit({ world, service }: Scenario, rows: readonly SeriesRow[]): Promise<void> {
  await world.clock.until(service.append(rows));
  await service.drain();
}

async function ask({ world }: Scenario, query: string) {
  const store = new MeteredStore(world.memory);
  const reading = readRows(
    { store, clock: world.clock, random: world.random, codecs },
    PLACE,
    parseRowsQuery(new URLSearchParams(query)),
  );
  const { columns, facts } = await world.clock.until(reading);
  const text = textOf(concat([...jsonLines(columns)]));
  const rows =
    text === ''
      ? []
      : text
          .trimEnd()
          .split('\n')
          .map((line) => JSON.parse(line) as Record<string, unknown>);
  return { rows, facts, found: { columns, facts }, usage: store.usage() };
}

const noise = new SeededRandom(5);

/** So many rows of each series in an hour, with values that do not compress. */
function anHour(hour: number, series: number, steps: number): SeriesRow[] {
  const start = DAY + BigInt(hour) * HOUR;
  const step = HOUR / BigInt(steps);
  return Array.from({ length: steps * series }, (_, i) => ({
    device: `device-${String(i % series).padStart(4, '0')}`,
    time: start + BigInt(Math.floor(i / series)) * step,
    v: BigInt(noise.next()) * 2n ** 29n + BigInt(noise.next()),
  }));
}

const iso = (micros: bigint): string => new Date(Number(micros / 1000n)).toISOString();

describe('rows of a table', () => {
  test('any question is answered as by looking at all rows', async () => {
    const scenario = await newScenario();
    const random = new SeededRandom(3);
    const draw = (below: number) => random.next() % below;
    const winners = new Map<string, SeriesRow>();
    for (let round = 0; round < 12; round++) {
      const rows = Array.from({ length: 1 + draw(40) }, () => {
        const time = DAY + BigInt(draw(40)) * HOUR;
        return { device: `d${draw(4)}`, time, v: BigInt(draw(1000)) };
      });
      await commit(scenario, rows);
      for (const row of rows) winners.set(`${row.device} ${row.time}`, row);
      if (round === 5) await scenario.world.clock.until(scenario.service.compactor.maintain(true, false));
    }
    let cut = 0;
    for (let i = 0; i < 150; i++) {
      const from = draw(3) === 0 ? null : DAY + BigInt(draw(40)) * HOUR;
      const to = draw(3) === 0 ? null : (from ?? DAY) + BigInt(1 + draw(20)) * HOUR;
      const devices = Array.from({ length: draw(3) }, () => `d${draw(5)}`);
      const order = draw(2) === 0 ? 'asc' : 'desc';
      const limit = 1 + draw(30);
      const query = new URLSearchParams({ order, limit: String(limit) });
      if (from !== null) query.set('from', iso(from));
      if (to !== null) query.set('to', iso(to));
      for (const device of devices) query.append('device', device);
      const wanted = [...winners.values()]
        .filter(
          ({ device, time }) =>
            (from === null || time >= from) &&
            (to === null || time < to) &&
            (devices.length === 0 || devices.includes(device)),
        )
        .sort((a, b) =>
          a.time === b.time ? (a.device < b.device ? -1 : 1) : a.time < b.time === (order === 'asc') ? -1 : 1,
        );
      const { rows, facts } = await ask(scenario, `${query}&columns=v,device,time`);
      expect(
        rows.map(({ device, v }) => `${device} ${v}`),
        String(query),
      ).toEqual(wanted.slice(0, limit).map(({ device, v }) => `${device} ${v}`));
      expect(facts.more).toBe(wanted.length > limit);
      cut += facts.more ? 1 : 0;
    }
    expect(cut).toBeGreaterThan(20);
  });

  test('one series and one hour of a day: few bytes of one file are read', async () => {
    const scenario = await newScenario();
    for (let hour = 0; hour < 6; hour++) await commit(scenario, anHour(hour, 500, 40));
    const all = scenario.world.memory;
    let stored = 0;
    for await (const { key, size } of all.list(`${PLACE.prefix}/data/`)) stored += key.endsWith('.parquet') ? size : 0;
    const query = `device=device-0123&from=${iso(DAY + 2n * HOUR)}&to=${iso(DAY + 3n * HOUR)}`;
    const { rows, facts, usage } = await ask(scenario, query);
    expect(rows).toHaveLength(40);
    expect(new Set(rows.map(({ device }) => device))).toEqual(new Set(['device-0123']));
    expect(facts).toMatchObject({ more: false, files_considered: 6, files_read: 1 });
    expect(stored).toBeGreaterThan(600_000);
    expect(facts.bytes_read).toBeLessThan(stored / 5);
    expect(usage.classB).toBeLessThanOrEqual(11);
    expect(usage.classA).toBe(1);
  });

  test('pages: of a merged file those of the series alone, and of its columns those that are asked for', async () => {
    const scenario = await newScenario();
    for (let hour = 0; hour < 6; hour++) await commit(scenario, anHour(hour, 500, 40));
    await scenario.world.clock.until(scenario.service.compactor.maintain(true, false));
    const one = await ask(scenario, 'device=device-0123&limit=1000');
    expect(one.rows).toHaveLength(240);
    expect(one.facts).toMatchObject({ files_considered: 1, files_read: 1 });
    const narrow = await ask(scenario, 'device=device-0123&limit=1000&columns=time');
    expect(narrow.facts.bytes_read).toBeLessThan(one.facts.bytes_read);
    const all = await ask(scenario, 'limit=100000');
    expect(all.rows).toHaveLength(100_000);
    expect(all.facts.more).toBe(true);
    expect(one.facts.bytes_read).toBeLessThan(all.facts.bytes_read / 3);
  });

  test('the newest rows: files of older rows are not opened', async () => {
    const scenario = await newScenario();
    for (let hour = 0; hour < 20; hour++) await commit(scenario, anHour(hour, 10, 6));
    const newest = await ask(scenario, 'order=desc&limit=5');
    expect(newest.facts).toMatchObject({ more: true, files_considered: 20, files_read: 1 });
    expect(newest.rows.map(({ time }) => time)).toEqual(Array(5).fill('2026-01-01T19:50:00.000000Z'));
    const oldest = await ask(scenario, 'limit=65');
    expect(oldest.facts.files_read).toBeLessThanOrEqual(3);
    expect(oldest.rows[64].time).toBe('2026-01-01T01:00:00.000000Z');
    // One more is looked for, to tell whether there are more.
    const exact = await ask(scenario, 'limit=1200');
    expect(exact.facts).toMatchObject({ more: false, files_read: 20 });
  });

  test('an older state: by the names of its own columns, also where the key was named otherwise', async () => {
    const scenario = await newScenario();
    const { service, world } = scenario;
    await commit(scenario, [{ device: 'a', time: DAY, v: 1n }]);
    await commit(scenario, [
      { device: 'a', time: DAY, v: 2n },
      { device: 'b', time: DAY, v: 3n },
    ]);
    const { snapshot_id: before } = (await ask(scenario, '')).facts;
    const schema = currentSchema(metadataOf(service));
    const fields = schema.fields.map((field) => (field.name === 'device' ? { ...field, name: 'machine' } : field));
    await update(
      scenario,
      service,
      { action: 'add-schema', schema: { ...schema, fields } },
      { action: 'set-current-schema', 'schema-id': -1 },
      { action: 'set-properties', updates: { 'timelake.series-key': 'machine' } },
    );
    await world.clock.until(service.table.load());
    const v = async (query: string) => (await ask(scenario, query)).rows.map((row) => row['v']);
    expect(await v('machine=a')).toEqual([2]);
    expect(await v(`snapshot_id=${before}&device=a`)).toEqual([2]);
    expect(await v(`snapshot_id=${before}`)).toEqual([2, 3]);
  });
});

describe('rows of nested columns, and of files that others wrote', () => {
  const time = (i: number) => DAY + BigInt(i) * 1_000_000n;
  const DAY_ORDINAL = Number(DAY / 86_400_000_000n);

  /** Row `i` as NDJSON has it. */
  const told = (i: number) => ({
    time: new Date(Number(time(i) / 1000n)).toISOString().replace('Z', '000Z'),
    device: `d${i % 3}`,
    v: i % 4 === 0 ? null : i,
    tags: i % 5 === 0 ? null : i % 5 === 1 ? [] : [`t${i}`, null],
    place: i % 3 === 0 ? null : { floor: i, room: null },
    counts: i % 7 === 0 ? null : { a: i },
  });

  /** The same rows by DuckDB, in no order. */
  const query = (from: number, to: number) => `
    select make_timestamptz(${DAY} + i * 1000000) as time, 'd' || (i % 3) as device,
      case when i % 4 = 0 then null else i end::bigint as v,
      case when i % 5 = 0 then null when i % 5 = 1 then []::varchar[] else ['t' || i, null] end as tags,
      case when i % 3 = 0 then null else {'floor': i::int, 'room': null::varchar} end as place,
      case when i % 7 = 0 then null else map {'a': i::bigint} end as counts,
      make_timestamptz(${DAY}) as _ingest_ts
    from range(${from}, ${to}) t(i) order by hash(i)`;

  /** 20 rows of our own, 20 by another writer with ids, and 20 by one without. */
  async function prepared(): Promise<Scenario> {
    const scenario = await newTable(NESTED);
    const rows = Array.from({ length: 20 }, (_, i) => {
      const { device, v, tags, place, counts } = told(i);
      const map = counts === null ? null : new Map(Object.entries(counts).map(([key, n]) => [key, BigInt(n)]));
      return [time(i), device, v === null ? null : BigInt(v), tags, place, map];
    });
    await commitRows(scenario, rows);
    const file = { rows: 20, tuple: [DAY_ORDINAL] };
    await theirAppend(scenario, await duckdbFile(query(20, 40), NESTED_IDS, 'codec gzip'), file);
    await theirAppend(scenario, await duckdbFile(query(40, 60), null, 'codec zstd, parquet_version v2'), file);
    return scenario;
  }

  test('a file without field ids is refused by name; with a name mapping its rows are there', async () => {
    const scenario = await prepared();
    await expect(ask(scenario, 'limit=100')).rejects.toMatchObject({
      kind: 'rejected',
      type: 'unsupported-file',
      message: expect.stringMatching(/no field ids: warehouse\/ns\/t\/data\/.*\.parquet/),
    });
    const { world, service } = scenario;
    await world.clock.until(service.changes.properties(NESTED_NAMES, []));
    const { rows } = await ask(scenario, 'limit=100&columns=time,device,v,tags,place,counts');
    expect(rows).toEqual(Array.from({ length: 60 }, (_, i) => told(i)));
    const some = await ask(scenario, 'order=desc&limit=3&device=d1&columns=place,tags');
    expect(some.rows).toEqual([58, 55, 52].map((i) => ({ place: told(i).place, tags: told(i).tags })));
  });

  test('JSON, NDJSON and Arrow say the same', async () => {
    const scenario = await prepared();
    const { world, service } = scenario;
    await world.clock.until(service.changes.properties(NESTED_NAMES, []));
    const { found } = await ask(scenario, 'limit=100&columns=time,device,v,tags,place,counts');
    const wanted = Array.from({ length: 60 }, (_, i) => told(i));
    const answer = (accept: string) => rowsResponse(rowsFormat(accept), found.columns, found.facts);
    expect(await answer('application/json').json()).toMatchObject({ rows: wanted, more: false });
    const lines = (await answer('application/x-ndjson').text()).trimEnd().split('\n');
    expect(lines.map((line) => JSON.parse(line))).toEqual(wanted);
    const arrow = tableFromIPC(new Uint8Array(await answer('application/vnd.apache.arrow.stream').arrayBuffer()));
    const rows = arrow.toArray().map(({ v, tags, place, counts }) => ({
      v: v === null ? null : Number(v),
      tags: tags === null ? null : [...tags],
      place: place === null ? null : place.toJSON(),
      counts: counts === null ? null : Object.fromEntries([...counts].map(([key, n]) => [key, Number(n)])),
    }));
    expect(rows).toEqual(wanted.map(({ v, tags, place, counts }) => ({ v, tags, place, counts })));
  });

  test('what is compressed in a way that is not read, or takes too much memory, is refused by file and column', async () => {
    const scenario = await newTable(NESTED);
    const brotli = await duckdbFile(query(0, 9), NESTED_IDS, 'codec brotli');
    const dataFile = await theirAppend(scenario, brotli, { rows: 9, tuple: [DAY_ORDINAL] });
    const refused = { kind: 'rejected', type: 'unsupported-file' };
    const key = dataFile.filePath.slice('s3://sim-lake/'.length);
    await expect(ask(scenario, 'limit=9')).rejects.toMatchObject({
      ...refused,
      message: `parquet file: column time is compressed with BROTLI: ${key}`,
    });
    const many = await newTable(NESTED);
    const large = `select make_timestamptz(${DAY}) as time, 'a' as device, 0::bigint as v,
      range(40)::varchar[] as tags, make_timestamptz(${DAY}) as _ingest_ts from range(20000)`;
    const bytes = await duckdbFile(
      large,
      '{time: 1, device: 2, v: 3, tags: {__duckdb_field_id: 4, element: 8}, _ingest_ts: 7}',
      'codec zstd',
    );
    await theirAppend(many, bytes, { rows: 20_000, tuple: [DAY_ORDINAL] });
    await expect(ask(many, 'limit=9&columns=tags')).rejects.toMatchObject({
      ...refused,
      message: expect.stringContaining('columns of a row group would take too much memory, ask for others: tags'),
    });
    expect((await ask(many, 'limit=9&columns=v')).rows).toEqual([{ v: 0 }]);
  });
});
