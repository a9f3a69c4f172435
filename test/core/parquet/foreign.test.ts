import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { beforeAll, describe, expect, test } from 'vitest';
import { foreignReader } from '../../../src/core/columns/foreign.ts';
import { MAGIC } from '../../../src/core/parquet/footer-write.ts';
import { readParquet } from '../../../src/core/parquet/foreign.ts';
import { ByteSink } from '../../../src/core/parquet/sink.ts';
import { ThriftWriter } from '../../../src/core/parquet/thrift.ts';
import { decompressGzip, decompressZstd } from '../../../src/platform/zlib.ts';

const CODECS = { zstd: decompressZstd, gzip: decompressGzip };

/** Rows of all columns: text for texts, numbers for 32 bits, bigints for 64. */
function rowsOf(bytes: Uint8Array): unknown[][] {
  const out: unknown[][] = [];
  for (const { rows, columns } of readParquet(bytes, CODECS).batches()) {
    const readers = columns.map(foreignReader);
    for (let row = 0; row < rows; row++) out.push(readers.map((read) => read(row)));
  }
  return out;
}

/** Some rows of 64-bit numbers, texts, lists, structs and maps, with nulls on every level. */
const ROWS = 5000;
const QUERY = `
  select
    case when i % 11 = 0 then null else i * 1000003 end as n,
    case when i % 7 = 0 then null else 't' || (i % 40) end as s,
    'distinct ' || i as d,
    case when i % 5 = 0 then null else range(i % 4) end as l,
    case when i % 6 = 0 then null
      else list_transform(range(i % 3), x -> case when x = 1 then null else range(x + i % 2) end) end as ll,
    case when i % 4 = 0 then null
      else {'a': i, 'b': case when i % 3 = 0 then null else {'c': 'c' || i, 'd': range(i % 2)} end} end as st,
    case when i % 8 = 0 then null
      else map_from_entries(list_transform(range(i % 3), x -> ('k' || x, case when x = 0 then null else x + i end))) end as m
  from range(${ROWS}) t(i)`;

const range = (to: number) => Array.from({ length: to }, (_, i) => BigInt(i));
const expected = Array.from({ length: ROWS }, (_, i) => {
  const n = BigInt(i);
  return [
    i % 11 === 0 ? null : n * 1_000_003n,
    i % 7 === 0 ? null : `t${i % 40}`,
    `distinct ${i}`,
    i % 5 === 0 ? null : range(i % 4),
    i % 6 === 0 ? null : range(i % 3).map((x) => (x === 1n ? null : range(Number(x) + (i % 2)))),
    i % 4 === 0 ? null : [n, i % 3 === 0 ? null : [`c${i}`, range(i % 2)]],
    i % 8 === 0 ? null : range(i % 3).map((x) => [`k${x}`, x === 0n ? null : x + n]),
  ];
});

describe('parquet of other writers', () => {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-foreign-'));
  const files = new Map<string, Uint8Array>();

  beforeAll(async () => {
    const instance = await DuckDBInstance.create();
    const connection = await instance.connect();
    for (const [name, options] of [
      ['snappy', 'codec snappy'],
      ['gzip', 'codec gzip, row_group_size 2048'],
      ['zstd', 'codec zstd, parquet_version v2, row_group_size 2048'],
      ['plain', 'codec uncompressed, dictionary_size_limit 1'],
      ['brotli', 'codec brotli'],
      ['lz4', 'codec lz4_raw'],
    ]) {
      const path = join(folder, `${name}.parquet`);
      await connection.run(`copy (${QUERY}) to '${path}' (format parquet, ${options})`);
      files.set(name, new Uint8Array(readFileSync(path)));
    }
    connection.closeSync();
    instance.closeSync();
    rmSync(folder, { recursive: true });
  });

  test.each(['snappy', 'gzip', 'zstd', 'plain'])('B032: nested and flat columns by DuckDB, %s', (name) => {
    const body = readParquet(files.get(name)!, CODECS);
    expect(body.rows).toBe(ROWS);
    expect(body.fields.map((field) => field.type.kind)).toEqual([
      'integer',
      'text',
      'text',
      'list',
      'list',
      'struct',
      'map',
    ]);
    const found = rowsOf(files.get(name)!);
    expect(found.length).toBe(ROWS);
    for (let row = 0; row < ROWS; row++) expect(found[row], `row ${row}`).toEqual(expected[row]);
  });

  test('flat columns come as arrays, whatever stands beside them', () => {
    const [batch] = readParquet(files.get('snappy')!, CODECS).batches();
    expect(batch.columns.map((column) => column.data.form)).toEqual([
      'int64',
      'dictionary',
      'strings',
      'values',
      'values',
      'values',
      'values',
    ]);
  });

  test.each([
    ['brotli', 'BROTLI'],
    ['lz4', 'LZ4_RAW'],
  ])('compression that is not read is named: %s', (name, codec) => {
    expect(() => rowsOf(files.get(name)!)).toThrow(
      expect.objectContaining({
        kind: 'invalid',
        type: 'unsupported-compression',
        message: expect.stringContaining(codec),
      }),
    );
  });

  test('lists of two levels, and repeated columns that are no list by name', () => {
    // Levels of [1, 2], [], null or no more, [3], by bits from the lowest on.
    const old = twoLevels('old', [0, 1, 0, 0, 0], [2, 2, 1, 0, 2], [1, 2, 3]);
    const integers = { kind: 'integer', bits: 32, signed: true };
    expect(readParquet(old, CODECS).fields).toEqual([
      { name: 'old', type: { kind: 'list', element: { name: 'array', type: integers } } },
    ]);
    expect(rowsOf(old)).toEqual([[[1, 2]], [[]], [null], [[3]]]);
    const loose = twoLevels(null, [0, 1, 0, 0], [1, 1, 0, 1], [1, 2, 3]);
    expect(readParquet(loose, CODECS).fields).toEqual([
      { name: 'array', type: { kind: 'list', element: { name: 'array', type: integers } } },
    ]);
    expect(rowsOf(loose)).toEqual([[[1, 2]], [[]], [[3]]]);
  });

  test('a file that speaks of more than it holds is refused before it is believed', () => {
    // 50 MB of one repeated byte in a few kilobytes.
    const text = 'x'.repeat(50_000_000);
    const bytes = new Uint8Array(
      parquetWriteBuffer({
        columnData: [
          { name: 'a', data: [text] },
          { name: 'b', data: [text] },
        ],
        codec: 'SNAPPY',
      }),
    );
    expect(bytes.length).toBeLessThan(10_000_000);
    expect(() => rowsOf(bytes)).toThrow(expect.objectContaining({ kind: 'invalid', type: 'too-large' }));
  });
});

/** A file of one repeated int32 column, in a group that says it is a list, or in none. */
function twoLevels(list: string | null, repetition: number[], definition: number[], values: number[]): Uint8Array {
  const rows = repetition.filter((level) => level === 0).length;
  const levels = (width: number, each: number[]) => {
    const bits = each.reduce((sum, level, i) => sum | (level << (width * i)), 0);
    const run = [3, ...Array.from({ length: width }, (_, i) => (bits >> (8 * i)) & 0xff)];
    return [run.length, 0, 0, 0, ...run];
  };
  const plain = new Uint8Array(Int32Array.from(values).buffer);
  const body = Uint8Array.from([...levels(1, repetition), ...levels(list === null ? 1 : 2, definition), ...plain]);
  const sink = new ByteSink();
  sink.append(MAGIC);
  const at = sink.length;
  const page = new ThriftWriter(sink);
  page.i32(1, 0);
  page.i32(2, body.length);
  page.i32(3, body.length);
  page.struct(5);
  page.i32(1, repetition.length);
  for (const [id, encoding] of [
    [2, 0],
    [3, 3],
    [4, 3],
  ])
    page.i32(id, encoding);
  page.end();
  page.end();
  sink.append(body);
  const length = sink.length - at;
  const start = sink.length;
  const footer = new ThriftWriter(sink);
  footer.i32(1, 1);
  const groups = list === null ? ['root'] : ['root', list];
  footer.structs(2, [...groups, 'array'], (name) => {
    if (name === 'array') footer.i32(1, 1);
    footer.i32(3, name === 'array' ? 2 : 1);
    footer.text(4, name);
    if (name !== 'array') footer.i32(5, 1);
    if (name === list) footer.i32(6, 3);
  });
  footer.i64(3, rows);
  footer.structs(4, [0], () => {
    footer.structs(1, [0], () => {
      footer.i64(2, at);
      footer.struct(3);
      footer.i32(1, 1);
      footer.i32s(2, [0, 3]);
      footer.binaries(
        3,
        [...groups.slice(1), 'array'].map((name) => new TextEncoder().encode(name)),
      );
      footer.i32(4, 0);
      footer.i64(5, repetition.length);
      footer.i64(6, length);
      footer.i64(7, length);
      footer.i64(9, at);
      footer.end();
    });
    footer.i64(2, length);
    footer.i64(3, rows);
  });
  footer.end();
  sink.append(new Uint8Array(Int32Array.of(sink.length - start).buffer));
  sink.append(MAGIC);
  return sink.copy();
}
