import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import { compare } from '../../../scripts/demo/compare.ts';
import { DATA_SETS, type DataSet, quoted } from '../../../scripts/demo/data-sets.ts';
import { type Engine, openEngine } from '../../../scripts/demo/engine.ts';
import { FLUSH_ROWS_MAX } from '../../../src/core/base/limits.ts';

let engine: Engine;
let folder: string;
let files = 0;

beforeAll(async () => {
  engine = await openEngine();
  folder = mkdtempSync(join(tmpdir(), 'demo-test-'));
});

afterAll(() => {
  engine.close();
  rmSync(folder, { recursive: true, force: true });
});

function dataSet(table: string): DataSet {
  const found = DATA_SETS.find((data) => data.table === table);
  if (found === undefined) throw new Error(`no data set ${table}`);
  return found;
}

async function fileOf(sql: string): Promise<string> {
  const path = join(folder, `${files++}.parquet`);
  await engine.query(`COPY (${sql}) TO ${quoted(path)} (FORMAT parquet)`);
  return path;
}

async function different(data: DataSet, sql: string): Promise<string[]> {
  const compared = await compare(engine, data, [await fileOf(sql)]);
  expect(compared.equal).toBe(compared.checks.every(({ equal }) => equal));
  return compared.checks.filter(({ equal }) => !equal).map(({ name }) => name);
}

describe('demonstration: comparison of table and source', () => {
  const weather = dataSet('weather');
  const rows = weather.expected;

  test('compare: the same rows in another order, in two files, are equal', async () => {
    const half = (odd: number) =>
      fileOf(`SELECT * FROM (${rows}) WHERE day(date) % 2 = ${odd} ORDER BY wind DESC, date DESC`);
    const compared = await compare(engine, weather, [await half(0), await half(1)]);
    expect(compared).toMatchObject({ rows: 2922, equal: true });
  });

  test('compare: a missing, a repeated and a changed row are found', async () => {
    const first = "location = 'Seattle' AND date = '2012-01-01'";
    const missing = await different(weather, `SELECT * FROM (${rows}) WHERE NOT (${first})`);
    expect(missing).toEqual(expect.arrayContaining(['rows', 'sum(wind)', 'rows missing']));
    const repeated = await different(weather, `(${rows}) UNION ALL (SELECT * FROM (${rows}) WHERE ${first})`);
    expect(repeated).toEqual(expect.arrayContaining(['rows', 'sum(wind)', 'rows too many']));
    const changed = `SELECT * REPLACE (if(${first}, 'fog', weather) AS weather) FROM (${rows})`;
    // Counts and sums are as they were; only the look at whole rows sees it.
    expect(await different(weather, changed)).toEqual(['rows missing', 'rows too many']);
  });

  test('compare: of rows with one key, the older one in the table is found', async () => {
    const departures = dataSet('departures');
    const oldest = departures.expected.replace('file_row_number DESC', 'file_row_number ASC');
    expect(oldest).not.toBe(departures.expected);
    const names = await different(departures, oldest);
    expect(names).toContain('rows missing');
    expect(names).not.toContain('rows');
  });

  test('compare: a table without files is no success', async () => {
    await expect(compare(engine, weather, [])).rejects.toThrow('table has no data files');
  });
});

describe('demonstration: data sets', () => {
  test('sources: at least 500,000 flights, and the table of one flush fits one flush', async () => {
    const many = async (sql: string) => (await engine.query(`SELECT count(*) AS n FROM (${sql})`))[0]?.['n'];
    expect(await many(dataSet('flights').source)).toBe(508_239);
    const departures = dataSet('departures');
    expect(await many(departures.source)).toBe(97_154);
    expect(97_154).toBeLessThan(FLUSH_ROWS_MAX);
    expect(departures).toMatchObject({ oneFlush: true, inFlight: 1 });
  });

  test('lines: rows come as JSON in the order of the source, in batches of the size asked for', async () => {
    const batches: string[][] = [];
    for await (const batch of engine.lines(dataSet('weather').source, 1000)) batches.push(batch);
    expect(batches.map(({ length }) => length)).toEqual([1000, 1000, 922]);
    expect(JSON.parse(batches[0][0])).toEqual({
      location: 'Seattle',
      date: '2012-01-01T00:00:00.000000',
      precipitation: 0,
      temp_max: 12.8,
      temp_min: 5,
      wind: 4.7,
      weather: 'drizzle',
    });
  });
});
