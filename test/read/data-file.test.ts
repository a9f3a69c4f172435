import { createHash } from 'node:crypto';
import { describe, expect, test } from 'vitest';
import { ROWS_STEP_BYTES } from '../../src/core/base/read-limits.ts';
import type { Columns } from '../../src/core/columns/columns.ts';
import type { Schema, Value } from '../../src/core/iceberg/types.ts';
import { equalsTest } from '../../src/core/iceberg/value-test.ts';
import { writeParquet } from '../../src/core/parquet/writer.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { compressZstd } from '../../src/platform/zlib.ts';
import { ReadBudget } from '../../src/read/budget.ts';
import { DataFileReader } from '../../src/read/data-file.ts';
import type { Candidate } from '../../src/read/plan-files.ts';
import { MeteredStore } from '../../src/store/metered.ts';
import { columnsOf, OPTIONS, schemaOf, valuesOf } from '../core/parquet/values.ts';
import { duckdbFile } from '../engine/foreign-files.ts';
import { newWorld } from '../sim/scenario.ts';

/** A file in a store, and what reading it takes. */
async function openFile(bytes: Uint8Array, rows: number) {
  const { memory, clock, random } = newWorld();
  memory.plant('data/f.parquet', bytes);
  const store = new MeteredStore(memory);
  const budget = new ReadBudget();
  const file = { recordCount: BigInt(rows), fileSizeInBytes: BigInt(bytes.length) };
  const hints = { names: null, spec: null };
  const candidate = { key: 'data/f.parquet', file, rank: 0, times: {}, hints } as unknown as Candidate;
  const tests = [equalsTest(1, 'long', [-1n])];
  const reader = await DataFileReader.open({ store, clock, random, codecs }, budget, candidate, tests);
  return { reader, budget, requests: () => store.usage().classB };
}

const SCHEMA = schemaOf(['long', 'string']);
const numbers = (columns: Columns) => valuesOf(columns.columns[0], 'long').map(Number);

describe('a data file', () => {
  test('without page indexes: its pages are read once, however many windows they hold', async () => {
    const rows = 60_000;
    const bytes = await duckdbFile(
      `select range as n, md5(range::varchar) || md5('a' || range) || md5('b' || range) || md5('c' || range) as s from range(${rows})`,
      '{n: 1, s: 2}',
      'codec zstd, row_group_size 122880',
    );
    const { reader, budget } = await openFile(bytes, rows);
    expect(reader.rowGroups).toBe(1);
    expect(2 * bytes.length).toBeGreaterThan(ROWS_STEP_BYTES);
    const windows = reader.windows(0, [], SCHEMA);
    expect(windows.length).toBeGreaterThan(3);
    const found: number[] = [];
    const isWanted = ({ from }: { from: number }) => from < 40_000;
    await reader.read(0, windows, SCHEMA, { isWanted, take: (columns) => found.push(...numbers(columns)) });
    expect(found).toEqual(Array.from({ length: windows[2].to }, (_, i) => i));
    expect(budget.bytes).toBeLessThan(1.1 * bytes.length + 65_536);
    const some = await reader.rowsAt(0, Int32Array.of(1, 30_000, rows - 1), SCHEMA);
    expect(numbers(some)).toEqual([1, 30_000, rows - 1]);
  });

  test('rows that lie far apart are read in steps, page by page', async () => {
    const rows = 17_000;
    const hash = (seed: string) => createHash('sha512').update(seed).digest('base64');
    const text = Array.from({ length: rows }, (_, row): Value => [1, 2, 3, 4].map((n) => hash(`${row} ${n}`)).join(''));
    const values = [Array.from({ length: rows }, (_, row): Value => BigInt(row)), text];
    const { bytes } = writeParquet(columnsOf(SCHEMA, values, false), OPTIONS, compressZstd);
    const { reader, budget, requests } = await openFile(bytes, rows);
    expect(bytes.length).toBeGreaterThan(ROWS_STEP_BYTES);
    const readRows = async (wanted: Int32Array) => {
      const before = [requests(), budget.bytes];
      const found = await reader.rowsAt(0, wanted, SCHEMA);
      expect(numbers(found)).toEqual([...wanted]);
      expect(valuesOf(found.columns[1], 'string')).toEqual(Array.from(wanted, (row) => text[row]));
      return { requests: requests() - before[0], bytes: budget.bytes - before[1] };
    };
    const few = await readRows(Int32Array.from({ length: 17 }, (_, i) => i * 1000));
    expect(few.bytes).toBeLessThan(bytes.length / 3);
    const all = await readRows(Int32Array.from({ length: rows }, (_, row) => row));
    expect(all.bytes).toBeGreaterThan(0.9 * bytes.length - 65_536);
    expect(all.bytes).toBeLessThan(1.1 * bytes.length);
    expect(all.requests).toBeGreaterThan(1);

    const younger: Schema = { ...SCHEMA, fields: [{ id: 9, name: 'new', type: 'int', required: false }] };
    const none = await reader.rowsAt(0, Int32Array.of(0, 9000, rows - 1), younger);
    expect(valuesOf(none.columns[0], 'int')).toEqual([null, null, null]);

    const one = await openFile(bytes, rows);
    const only: Schema = { ...SCHEMA, fields: SCHEMA.fields.slice(0, 1) };
    await one.reader.rowsAt(0, Int32Array.of(rows - 1), only);
    expect(one.budget.bytes).toBeLessThan(bytes.length / 20);
  });
});
