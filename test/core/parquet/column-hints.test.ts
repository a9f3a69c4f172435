import { expect, test } from 'vitest';
import type { PartitionSpec, Schema } from '../../../src/core/iceberg/types.ts';
import { applyHints } from '../../../src/core/parquet/column-hints.ts';
import { footerLength, parseFooter } from '../../../src/core/parquet/reader.ts';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd } from '../../../src/platform/zlib.ts';
import { duckdbFile } from '../../engine/foreign-files.ts';
import { columnsOf } from '../columns/rows.ts';

const footerOf = (bytes: Uint8Array) => parseFooter(bytes.subarray(bytes.length - footerLength(bytes)), bytes.length);

const spec = (transform: string): PartitionSpec => ({
  'spec-id': 0,
  fields: [{ 'source-id': 2, 'field-id': 1000, name: 'site', transform }],
});

const schema: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [{ id: 1, name: 'v', required: false, type: 'long' }],
};
const options = { rowGroupRows: 10, encodings: 'auto' as const, sortingColumns: [], keyValues: [] };
const { bytes: withIds } = writeParquet(columnsOf(schema, [[1n]]), options, compressZstd);

test('a file that keeps its partition column in the name of its folder is refused, not read as nulls', () => {
  const apply = (transform: string) => () => applyHints(footerOf(withIds), { names: null, spec: spec(transform) });
  expect(apply('identity')).toThrow(
    expect.objectContaining({
      type: 'parquet-unsupported',
      message: 'parquet file: partition column site is not in the file',
    }),
  );
  expect(apply('bucket[4]')).not.toThrow();
  expect(() => applyHints(footerOf(withIds), { names: null, spec: null })).not.toThrow();
});

test('ids come of names on every level; of a file with ids the names do not matter', async () => {
  const bytes = await duckdbFile(
    "select 1::bigint as v, [{'a': 1, 'b': 2}] as l, map {'k': {'a': 1}} as m, 3 as unknown",
    null,
    'codec zstd',
  );
  const field = (id: number, name: string, ...fields: object[]) => ({ id, names: [name], fields: fields as never[] });
  const names = [
    field(1, 'v'),
    field(2, 'l', field(4, 'element', field(5, 'b'), field(6, 'a'))),
    field(3, 'm', field(7, 'key'), field(8, 'value', field(9, 'a'))),
  ];
  const footer = footerOf(bytes);
  applyHints(footer, { names, spec: null });
  expect(footer.columns.map(({ name, id }) => [name, id])).toEqual([
    ['v', 1],
    ['a', 6],
    ['b', 5],
    ['key', 7],
    ['a', 9],
    ['unknown', null],
  ]);
  expect([...footer.groupIds].sort()).toEqual([2, 3, 4, 8]);
  const own = footerOf(withIds);
  applyHints(own, { names: [field(77, 'v')], spec: null });
  expect(own.columns.map(({ id }) => id)).toEqual([1]);
});
