import { parquetMetadata } from 'hyparquet';
import { describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import type { Column, Columns } from '../../../src/core/columns/columns.ts';
import type { Schema, Type } from '../../../src/core/iceberg/types.ts';
import { parseFooter, readWindow } from '../../../src/core/parquet/reader.ts';
import { ParquetWriter, writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd, decompressZstd } from '../../../src/platform/zlib.ts';
import { bufferOf, queryDuckdb, readWithHyparquet } from './readers.ts';
import { columnOf, OPTIONS, randomFrom, valuesOf } from './values.ts';

// Machines under load are slow; nothing here waits.
vi.setConfig({ testTimeout: 30_000 });

const listOf = (id: number, element: Type, required = false): Type => {
  return { type: 'list', 'element-id': id, element, 'element-required': required };
};
const mapOf = (keyId: number, key: Type, valueId: number, value: Type): Type => {
  return { type: 'map', 'key-id': keyId, key, 'value-id': valueId, value, 'value-required': false };
};

function nested(values: unknown[]): Column {
  return { kind: 'nested', values, validity: Uint8Array.from(values, (value) => (value === null ? 0 : 1)) };
}

function tableOf(type: Type, values: unknown[], required = false): Columns {
  const schema: Schema = {
    type: 'struct',
    'schema-id': 0,
    fields: [
      { id: 1, name: 'n', required: true, type: 'long' },
      { id: 2, name: 'v', required, type },
    ],
  };
  const numbers = values.map((_, row) => BigInt(row));
  return { schema, rows: values.length, columns: [columnOf('long', numbers), nested(values)] };
}

async function readBack(type: Type, values: unknown[], rowGroupRows = 1000) {
  const { bytes, facts } = writeParquet(tableOf(type, values), { ...OPTIONS, rowGroupRows }, compressZstd);
  const byHyparquet = (await readWithHyparquet(bytes)).map((row) => row.v ?? null);
  return { bytes, facts, byHyparquet };
}

describe('nested: null, empty and holding null are three things (P11)', () => {
  test('lists (B032)', async () => {
    const values = [null, [], [null], ['a', null, ''], ['b']];
    const { bytes, byHyparquet } = await readBack(listOf(3, 'string'), values);
    expect(byHyparquet).toEqual(values);
    const sql = 'select v is null, len(v), v[1] is null, v[1] from read_parquet($file) order by n';
    expect(await queryDuckdb(bytes, sql)).toEqual([
      [true, null, true, null],
      [false, 0n, true, null],
      [false, 1n, true, null],
      [false, 3n, false, 'a'],
      [false, 1n, false, 'b'],
    ]);
  });

  test('structs', async () => {
    const type: Type = {
      type: 'struct',
      fields: [
        { id: 3, name: 'x', required: false, type: 'double' },
        { id: 4, name: 'constructor', required: false, type: 'string' },
      ],
    };
    const values: unknown[] = [null, { x: null, constructor: null }, { x: 1.5, constructor: 'c' }, { x: 2 }];
    const { bytes } = await readBack(type, values);
    const sql = 'select v is null, v.x, v.constructor from read_parquet($file) order by n';
    expect(await queryDuckdb(bytes, sql)).toEqual([
      [true, null, null],
      [false, null, null],
      [false, 1.5, 'c'],
      [false, 2, null],
    ]);
  });

  test('maps, in each of their forms', async () => {
    const type = mapOf(3, 'string', 4, 'long');
    const values = [null, new Map(), new Map([['k', null]]), { a: 1n }, [['p', 2n]], [{ key: 'q', value: 3n }]];
    const { bytes } = await readBack(type, values);
    const sql =
      'select v is null, cardinality(v), map_keys(v)[1], map_values(v)[1] from read_parquet($file) order by n';
    expect(await queryDuckdb(bytes, sql)).toEqual([
      [true, null, null, null],
      [false, 0n, null, null],
      [false, 1n, 'k', null],
      [false, 1n, 'a', 1n],
      [false, 1n, 'p', 2n],
      [false, 1n, 'q', 3n],
    ]);
  });

  test('lists of structs of lists', async () => {
    const type = listOf(3, {
      type: 'struct',
      fields: [
        { id: 4, name: 'name', required: true, type: 'string' },
        { id: 5, name: 'points', required: false, type: listOf(6, 'int') },
      ],
    });
    const values = [
      [],
      [{ name: 'a', points: null }],
      [
        { name: 'b', points: [] },
        { name: 'c', points: [1, null, 3] },
      ],
      null,
    ];
    const { byHyparquet, bytes } = await readBack(type, values);
    expect(byHyparquet).toEqual(values.map((row) => row?.map((item) => ({ ...item })) ?? null));
    const sql = 'select sum(len(v)), list(v[2].points) filter (n = 2) from read_parquet($file)';
    const [[count]] = await queryDuckdb(bytes, sql);
    expect(Number(count)).toBe(3);
  });
});

describe('nested: exact values', () => {
  test('both zeros, NaN and 64-bit integers, repeated often enough for a dictionary', async () => {
    const doubles = Array.from({ length: 2000 }, (_, row) => [[-0, 0, NaN, 1.5][row % 4]]);
    expect((await readBack(listOf(3, 'double'), doubles)).byHyparquet).toEqual(doubles);
    const longs = Array.from({ length: 2000 }, (_, row) => [[2n ** 53n + 1n, 2n ** 53n, -(2n ** 63n)][row % 3]]);
    expect((await readBack(listOf(3, 'long'), longs)).byHyparquet).toEqual(longs);
  });

  test('every primitive type inside a list', async () => {
    const uuid = Uint8Array.from({ length: 16 }, (_, i) => 255 - i);
    for (const [type, value, sql, wanted] of [
      ['boolean', true, 'v[1]', true],
      ['int', -(2 ** 31), 'v[1]', -(2 ** 31)],
      ['float', 1.5, 'v[1]', 1.5],
      ['decimal(5, 2)', -125n, 'v[1]::varchar', '-1.25'],
      ['decimal(18, 4)', 10n ** 18n - 1n, 'v[1]::varchar', '99999999999999.9999'],
      ['decimal(38, 10)', 1n - 10n ** 38n, 'v[1]::varchar', `-${'9'.repeat(28)}.${'9'.repeat(10)}`],
      ['date', -719_162, 'v[1]::varchar', '0001-01-01'],
      ['time', 86_399_999_999n, 'epoch_us(v[1])', 86_399_999_999n],
      ['timestamp', -1n, 'epoch_us(v[1])', -1n],
      ['timestamptz', 253_402_300_799_999_999n, 'epoch_us(v[1])', 253_402_300_799_999_999n],
      ['string', '😀', 'v[1]', '😀'],
      ['binary', Uint8Array.of(0, 255), 'lower(hex(v[1]))', '00ff'],
      ['fixed[3]', Uint8Array.of(1, 2, 3), 'lower(hex(v[1]))', '010203'],
      ['uuid', uuid, 'v[1]::varchar', 'fffefdfc-fbfa-f9f8-f7f6-f5f4f3f2f1f0'],
    ] as const) {
      const { bytes } = writeParquet(tableOf(listOf(3, type), [[value], null]), OPTIONS, compressZstd);
      const found = await queryDuckdb(bytes, `select ${sql}, typeof(v) from read_parquet($file) where n = 0`);
      expect(found[0][0], type).toEqual(wanted);
    }
  });
});

describe('nested: schema and facts', () => {
  const type: Type = {
    type: 'struct',
    fields: [
      { id: 3, name: 'x', required: false, type: 'double' },
      { id: 4, name: 'tags', required: true, type: listOf(5, 'string', true) },
      { id: 6, name: 'deep', required: false, type: mapOf(7, 'string', 8, 'decimal(20, 1)') },
    ],
  };
  const values = [
    { x: 2, tags: ['a'], deep: null },
    null,
    { x: NaN, tags: [], deep: { k: 5n } },
    { x: -0, tags: ['b'] },
  ];
  const options = {
    ...OPTIONS,
    rowGroupRows: 3,
    sortingColumns: [{ columnIndex: 0, descending: true, nullsFirst: false }],
  };
  const { bytes, facts } = writeParquet(tableOf(type, values), options, compressZstd);

  test('field ids at every level, three-level lists and maps (P1, P2)', async () => {
    const sql = 'select name, repetition_type, field_id, num_children, converted_type from parquet_schema($file)';
    const rows = (await queryDuckdb(bytes, sql)).map((row) =>
      row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell)),
    );
    expect(rows.slice(1)).toEqual([
      ['n', 'REQUIRED', 1, null, null],
      ['v', 'OPTIONAL', 2, 3, null],
      ['x', 'OPTIONAL', 3, null, null],
      ['tags', 'REQUIRED', 4, 1, 'LIST'],
      ['list', 'REPEATED', null, 1, null],
      ['element', 'REQUIRED', 5, null, 'UTF8'],
      ['deep', 'OPTIONAL', 6, 1, 'MAP'],
      ['key_value', 'REPEATED', null, 2, null],
      ['key', 'REQUIRED', 7, null, 'UTF8'],
      ['value', 'OPTIONAL', 8, null, 'DECIMAL'],
    ]);
  });

  test('facts of struct fields, none inside lists and maps (E17, B18)', () => {
    expect([...facts.columns.keys()].sort()).toEqual([1, 3]);
    expect(facts.columns.get(1)).toMatchObject({ valueCount: 4, nullCount: 0, nanCount: null, lower: 0n, upper: 3n });
    expect(facts.columns.get(3)).toMatchObject({ valueCount: 4, nullCount: 1, nanCount: 1, lower: -0, upper: 2 });
    expect(facts.recordCount).toBe(4);
    expect(facts.fileSizeInBytes).toBe(bytes.length);
  });

  test('row groups: offsets, order, key-values', () => {
    const metadata = parquetMetadata(bufferOf(bytes));
    expect(facts.splitOffsets).toEqual(metadata.row_groups.map((group) => Number(group.file_offset)));
    expect(facts.splitOffsets.length).toBe(2);
    expect(metadata.row_groups[0].sorting_columns).toEqual([{ column_idx: 0, descending: true, nulls_first: false }]);
    expect(metadata.created_by).toBe('sluice version 0.1.0');
    expect(metadata.key_value_metadata![0].key).toBe('iceberg.schema');
    expect(metadata.row_groups[0].columns.every((chunk) => chunk.meta_data!.codec === 'ZSTD')).toBe(true);
  });

  test('primitive columns beside nested ones are read by the own reader; nested ones are not', () => {
    const footer = parseFooter(bytes, bytes.length);
    const pieces = [{ offset: 0, bytes }];
    const { fields } = tableOf(type, values).schema;
    const only = (id: number): Schema => ({
      type: 'struct',
      'schema-id': 0,
      fields: fields.filter((field) => field.id === id),
    });
    const window = readWindow(footer, 0, only(1), 0, 3, pieces, decompressZstd);
    expect(valuesOf(window.columns[0], 'long')).toEqual([0n, 1n, 2n]);
    expect(errorOf(() => readWindow(footer, 0, only(2), 0, 3, pieces, decompressZstd)).type).toBe(
      'parquet-unsupported',
    );
  });

  test('every input of the compressor stays below the zstd bound but for huge values and dictionaries', () => {
    const random = randomFrom(2);
    const texts = Array.from({ length: 5000 }, () => [`日本語-${random()}`, `${random()}`]);
    const inputs: number[] = [];
    writeParquet(tableOf(listOf(3, 'string'), texts), OPTIONS, (part) => {
      inputs.push(part.length);
      return compressZstd(part);
    });
    expect(inputs.length).toBeGreaterThan(5);
    expect(inputs.filter((length) => length > 40_000)).toEqual([]);
  });

  test('chunks can be taken on the way', async () => {
    const columns = tableOf(
      listOf(3, 'int'),
      Array.from({ length: 100 }, (_, row) => [row, row + 1]),
    );
    const writer = new ParquetWriter(columns.schema, { ...OPTIONS, rowGroupRows: 30 }, compressZstd);
    const taken: Uint8Array[] = [];
    for (const [from, to] of [
      [0, 50],
      [50, 100],
    ]) {
      writer.append(columns, from, to);
      taken.push(...writer.takeChunks());
    }
    const written = writer.finish();
    taken.push(...writer.takeChunks());
    const file = Buffer.concat(taken);
    expect(file.length).toBe(written.fileSizeInBytes);
    expect(await queryDuckdb(file, 'select count(*), sum(v[1]), sum(v[2]) from read_parquet($file)')).toEqual([
      [100n, 4950n, 5050n],
    ]);
  });
});

describe('nested: what is refused before anything is encoded', () => {
  const refuse = (type: Type, values: unknown[], required = false) => {
    const columns = tableOf(type, values, required);
    const writer = new ParquetWriter(columns.schema, OPTIONS, compressZstd);
    const before = writer.byteLength;
    const error = errorOf(() => writer.append(columns));
    expect(writer.byteLength).toBe(before);
    return [error.type, error.detail.column, error.detail.row];
  };

  test('nulls where a value is required, at any depth (B028)', () => {
    const inner: Type = { type: 'struct', fields: [{ id: 3, name: 'x', required: true, type: 'int' }] };
    expect(refuse(listOf(3, 'int', true), [[1], [1, null]])).toEqual(['null-in-required-column', 'v.element', 1]);
    expect(refuse(inner, [{ x: 1 }, null, { y: 1 }])).toEqual(['null-in-required-column', 'v.x', 2]);
    expect(refuse(mapOf(3, 'string', 4, 'int'), [[[null, 1]]])).toEqual(['null-in-required-column', 'v.key', 0]);
    expect(refuse(listOf(3, 'int'), [[1], null], true)).toEqual(['null-in-required-column', 'v', 1]);
  });

  test('values of another type or out of range (P16), lone surrogates (B084)', () => {
    for (const [type, value] of [
      ['int', 2 ** 31],
      ['int', 1.5],
      ['long', 1],
      ['long', 2n ** 63n],
      ['decimal(5, 2)', 100_000n],
      ['fixed[3]', new Uint8Array(2)],
      ['uuid', new Uint8Array(15)],
      ['string', 'x\ud83d'],
      ['string', 7],
      ['boolean', 1],
      ['double', '1'],
    ] as const) {
      expect(refuse(listOf(3, type), [[value]]), `${type} ${String(value)}`).toEqual(['wrong-type', 'v.element', 0]);
    }
    expect(refuse(listOf(3, 'int'), [7])).toEqual(['wrong-type', 'v', 0]);
  });

  test('a struct without fields (P10)', () => {
    expect(errorOf(() => writeParquet(tableOf({ type: 'struct', fields: [] }, [{}]), OPTIONS, compressZstd)).type).toBe(
      'unknown-type',
    );
  });
});

function errorOf(work: () => unknown): SluiceError {
  try {
    work();
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
  throw new Error('no error');
}
