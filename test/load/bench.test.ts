import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { describe, expect, test } from 'vitest';
import { benchAppend } from '../../bench/append.ts';
import { appendText } from '../../bench/append-text.ts';
import { benchCompact } from '../../bench/compact.ts';
import { check } from '../../bench/compact-check.ts';
import { casesOf, fill, merge } from '../../bench/compact-tables.ts';
import { compactText } from '../../bench/compact-text.ts';
import { bundle, removeBundle, startRuntime } from '../../bench/support/runtime.ts';

describe('bench: append', () => {
  test('a tiny run commits its rows on the production bundle and reports every stage', {
    timeout: 90_000,
  }, async () => {
    const report = await benchAppend({ rows: [1000], runs: 1, restMs: 1100 });
    const [size] = report.sizes;
    // Of the values alone: it changes with the rows that are sent and with nothing else.
    expect(size.endToEnd.digest).toBe('51973badeacd37a1');
    // Data, manifest, list and version; the answer does not wait for the pointer.
    expect(size.endToEnd.bucketRequests['put']).toBeGreaterThanOrEqual(4);
    expect(size.endToEnd.warm.cpuMs.min).toBeGreaterThan(0);
    expect(size.memory.peakBytes).toBeGreaterThan(size.memory.idle.used);
    expect(size.stages.length).toBeGreaterThanOrEqual(16);
    expect(size.stagesCpuMs.min).toBeGreaterThan(0);
    expect(size.library.cpuMs.min).toBeGreaterThan(0);
    expect(report.yardstick).toBeNull();
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
    expect(appendText(report)).toContain('| frame: encode |');
  });
});

describe('bench: compact', () => {
  test('a tiny run merges, compares with DuckDB, and sends rows beside it', { timeout: 120_000 }, async () => {
    const report = await benchCompact({
      files: 3,
      rows: 400,
      runs: 1,
      cases: ['day'],
      pauses: ['day'],
      extras: true,
    });
    const [day] = report.cases;
    expect(day.slices).toMatchObject([{ reason: 'full', files: 3, made: { files: 1, duplicates: 0 } }]);
    expect(day.checked).toEqual({ rows: 1200, tooMany: 0, missing: 0, outOfOrder: 0 });
    expect(day.cpuMs.min).toBeGreaterThan(0);
    expect(day.memory.peakBytes).toBeGreaterThan(day.memory.idle.used);
    expect(report.besideBytes).toBeGreaterThan(day.memory.idle.used);
    const [{ sliceBytes, idle, beside }] = report.pauses;
    expect(sliceBytes).toBe(day.inputs.bytes);
    expect(idle.acknowledged.requests).toBeGreaterThan(1);
    expect(Math.min(beside.acknowledged.requests, beside.committed.requests)).toBeGreaterThan(0);
    expect(report.library).toMatchObject({ holds: false });
    expect(compactText(report)).toContain('| 3 files, an hour each: beside |');
  });

  test('with keys that repeat: the winners stay, and what is wrong is found', { timeout: 120_000 }, async () => {
    const made = await bundle('src/index.ts', 'TableObject');
    const runtime = await startRuntime(made, false);
    const folder = mkdtempSync(join(tmpdir(), 'sluice-unsorted-'));
    try {
      const given = casesOf(4, 400).find(({ name }) => name === 'duplicates') as ReturnType<typeof casesOf>[number];
      const inputs = await fill(runtime, given);
      const { objects } = runtime.bucket;
      expect(await merge(runtime.url, given.full)).toMatchObject([
        { files: 4, made: { rows: '1540', duplicates: 60 } },
      ]);
      expect(given.rowsLeft).toBe(1540);
      expect(await check(objects, inputs)).toEqual({ rows: 1540, tooMany: 0, missing: 0, outOfOrder: 0 });
      // The older rows as winners; a file that was not merged.
      expect(await check(objects, [...inputs].reverse())).toMatchObject({ tooMany: 60, missing: 60, outOfOrder: 0 });
      expect(await check(objects, inputs.slice(0, 3))).toMatchObject({ tooMany: 400, missing: 20 });
      // The same rows in another order.
      const [key] = [...objects.keys()].filter((name) => name.includes('/data/')).slice(-1);
      const stored = objects.get(key) as NonNullable<ReturnType<typeof objects.get>>;
      const [from, to] = [join(folder, 'from.parquet'), join(folder, 'to.parquet')];
      writeFileSync(from, stored.bytes);
      const duckdb = await (await DuckDBInstance.create(':memory:')).connect();
      await duckdb.run(`COPY (SELECT * FROM '${from}' ORDER BY time) TO '${to}' (FORMAT parquet)`);
      duckdb.closeSync();
      objects.set(key, { ...stored, bytes: readFileSync(to) });
      const found = await check(objects, inputs);
      expect(found).toMatchObject({ rows: 1540, tooMany: 0, missing: 0 });
      expect(found.outOfOrder).toBeGreaterThan(0);
    } finally {
      await runtime.stop();
      removeBundle(made);
      rmSync(folder, { recursive: true, force: true });
    }
  });
});
