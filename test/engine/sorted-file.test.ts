import { expect, test } from 'vitest';
import type { DataFile, Schema, SortOrder } from '../../src/core/iceberg/types.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { FileWindows } from '../../src/engine/file-windows.ts';
import { isSorted, SortedFile, type Windows } from '../../src/engine/sorted-file.ts';
import { rowsOf } from '../core/columns/rows.ts';
import { newWorld } from '../sim/scenario.ts';
import { duckdbFile } from './foreign-files.ts';

const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [
    { id: 1, name: 'n', required: false, type: 'long' },
    { id: 2, name: 's', required: false, type: 'string' },
    {
      id: 3,
      name: 'l',
      required: false,
      type: { type: 'list', 'element-id': 4, element: 'string', 'element-required': false },
    },
  ],
};
const ORDER: SortOrder = {
  'order-id': 1,
  fields: [{ 'source-id': 1, transform: 'identity', direction: 'asc', 'null-order': 'nulls-first' }],
};
const ROWS = 5000;

/** Numbers in `order`, each `value` twice, with a text and a list that tell which row it is; two row groups. */
async function opened(order: string): Promise<FileWindows> {
  const world = newWorld();
  const query = `select (i // 2)::bigint as n, 'text ' || i as s, ['a ' || i, null] as l from range(${ROWS}) t(i) order by ${order}`;
  const bytes = await duckdbFile(
    query,
    '{n: 1, s: 2, l: {__duckdb_field_id: 3, element: 4}}',
    'codec gzip, row_group_size 2048',
  );
  world.memory.plant('f.parquet', bytes);
  const file = { recordCount: BigInt(ROWS), fileSizeInBytes: BigInt(bytes.length) } as DataFile;
  return FileWindows.open({ ...world, store: world.memory, ...codecs }, 'f.parquet', file, SCHEMA, 1);
}

async function readAll(file: Windows, rowsMax: number): Promise<unknown[][]> {
  const out: unknown[][] = [];
  for (let isLast = false; !isLast; ) {
    const next = await file.next(rowsMax);
    isLast = next.isLast;
    expect(next.window.rows).toBeLessThanOrEqual(rowsMax);
    out.push(...rowsOf(next.window));
  }
  return out;
}

const row = (i: number) => [BigInt(Math.floor(i / 2)), `text ${i}`, [`a ${i}`, null]];

test('windows of columns that only the general reader knows: every row in its place, over row groups', async () => {
  expect(await readAll(await opened('i'), 100)).toEqual(Array.from({ length: ROWS }, (_, i) => row(i)));
});

test('a file in another order comes out sorted, equal rows as they lay, and by windows too', async () => {
  const file = await opened('i % 2, i desc');
  expect(file.wholeBytes).toBeGreaterThan(file.heldBytes);
  const sorted = await SortedFile.load(file, { schema: SCHEMA, order: ORDER }, 10_000_000);
  expect(await readAll(sorted as SortedFile, 300)).toEqual(Array.from({ length: ROWS }, (_, i) => row(i)));
});

test('a file that takes more than it may is not sorted', async () => {
  expect(await SortedFile.load(await opened('i'), { schema: SCHEMA, order: ORDER }, 100_000)).toBe(null);
});

test('whether a file is in order is told, also where only its row groups are not', async () => {
  expect(await isSorted(await opened('i'), ORDER)).toBe(true);
  expect(await isSorted(await opened('i desc'), ORDER)).toBe(false);
  expect(await isSorted(await opened('case when i < 2048 then 1 when i < 4096 then 0 else 2 end, i'), ORDER)).toBe(
    false,
  );
});
