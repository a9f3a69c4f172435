import { parquetMetadata } from 'hyparquet';
import { describe, expect, test, vi } from 'vitest';
import { concat } from '../../../src/core/base/bytes.ts';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { ZSTD_INPUT_BYTES_MAX } from '../../../src/core/base/limits.ts';
import type { Schema, Value } from '../../../src/core/iceberg/types.ts';
import { parseFooter } from '../../../src/core/parquet/reader.ts';
import { type ParquetOptions, ParquetWriter, writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd } from '../../../src/platform/zlib.ts';
import {
  asHyparquet,
  bufferOf,
  duckdbForm,
  firstDifference,
  queryDuckdb,
  readOwn,
  readWithHyparquet,
} from './readers.ts';
import { columnOf, columnsOf, OPTIONS, randomFrom, schemaOf, someValues, TYPES, valuesOf } from './values.ts';

const LAYOUTS = [
  { name: 'one page', rows: 500, rowGroupRows: 65_536 },
  { name: 'many pages', rows: 4700, rowGroupRows: 65_536 },
  { name: 'many row groups', rows: 4700, rowGroupRows: 2100 },
];

// Machines under load are slow; nothing here waits.
vi.setConfig({ testTimeout: 30_000 });

describe('writer: every type is read back as written', () => {
  for (const layout of LAYOUTS) {
    for (const nulls of ['none', 'some', 'all'] as const) {
      for (const [encodings, dictionary] of [
        ['auto', true],
        ['compatible', false],
      ] as const) {
        test(`${layout.name}, ${nulls} null, ${encodings}`, async () => {
          const schema = schemaOf(TYPES, nulls === 'none');
          const seed = encodings === 'auto' ? 1 : 2;
          const values = TYPES.map((type) => someValues(type, layout.rows, nulls, seed));
          const columns = columnsOf(schema, values, dictionary);
          const options = { ...OPTIONS, rowGroupRows: layout.rowGroupRows, encodings };
          const { bytes: file, facts } = writeParquet(columns, options, compressZstd);
          expect(facts.recordCount).toBe(layout.rows);
          expect(facts.fileSizeInBytes).toBe(file.length);

          const own = readOwn(file, schema);
          expect(own.length).toBe(Math.ceil(layout.rows / layout.rowGroupRows));
          const rows = await readWithHyparquet(file);
          const forms = TYPES.map((type, i) => duckdbForm(type, `c${i + 1}`));
          const found = await queryDuckdb(
            file,
            `select ${forms.map((form) => form.sql).join(', ')} from read_parquet($file)`,
          );
          TYPES.forEach((type, c) => {
            const wanted = values[c];
            const byOwn = own.flatMap((group) => valuesOf(group.columns[c], type));
            expect(firstDifference(byOwn, wanted), `${type} by own reader`).toBeNull();
            const byHyparquet = rows.map((row) => row[`c${c + 1}`] ?? null);
            const asWanted = wanted.map((value) => asHyparquet(type, value));
            expect(firstDifference(byHyparquet, asWanted), `${type} by hyparquet`).toBeNull();
            const byDuckdb = found.map((row) => row[c]);
            const ofWanted = wanted.map((value) => (value === null ? null : forms[c].of(value)));
            expect(firstDifference(byDuckdb, ofWanted), `${type} by duckdb`).toBeNull();
          });
        });
      }
    }
  }
});

describe('writer: what readers are told', () => {
  const values = [
    Array.from({ length: 10 }, (_, row): Value => BigInt(row)),
    Array.from({ length: 10 }, (_, row): Value => (row === 3 ? null : `t${row}`)),
  ];
  const schema: Schema = {
    type: 'struct',
    'schema-id': 7,
    fields: [
      { id: 11, name: 'at', required: true, type: 'timestamptz' },
      { id: 22, name: 'text', required: false, type: 'string' },
    ],
  };
  const options: ParquetOptions = {
    ...OPTIONS,
    rowGroupRows: 4,
    sortingColumns: [{ columnIndex: 0, descending: false, nullsFirst: true }],
    keyValues: [['k', 'v']],
  };
  const { bytes: file, facts } = writeParquet(columnsOf(schema, values), options, compressZstd);
  const metadata = parquetMetadata(bufferOf(file));

  test('ids, repetition and annotations of the schema (P1, P3-P6)', async () => {
    const all = writeParquet(
      columnsOf(
        schemaOf(TYPES),
        TYPES.map(() => [null]),
      ),
      OPTIONS,
      compressZstd,
    ).bytes;
    const sql =
      'select name, type, type_length, repetition_type, field_id, converted_type, logical_type from parquet_schema($file)';
    const rows = (await queryDuckdb(all, sql))
      .slice(1)
      .map((row) => row.map((cell) => (typeof cell === 'bigint' ? Number(cell) : cell)));
    const decimal = (precision: number, scale: number) => `DecimalType(scale=${scale}, precision=${precision})`;
    const micros = (kind: string, utc: number) =>
      `${kind}(isAdjustedToUTC=${utc}, unit=TimeUnit(MILLIS=<null>, MICROS=MicroSeconds(), NANOS=<null>))`;
    const wanted: [string, number | null, string | null, string | null][] = [
      ['BOOLEAN', null, null, null],
      ['INT32', null, null, null],
      ['INT64', null, null, null],
      ['FLOAT', null, null, null],
      ['DOUBLE', null, null, null],
      ['INT32', null, 'DECIMAL', decimal(5, 2)],
      ['INT64', null, 'DECIMAL', decimal(18, 4)],
      ['FIXED_LEN_BYTE_ARRAY', 9, 'DECIMAL', decimal(21, 0)],
      ['FIXED_LEN_BYTE_ARRAY', 16, 'DECIMAL', decimal(38, 10)],
      ['INT32', null, 'DATE', 'DateType()'],
      ['INT64', null, null, micros('TimeType', 0)],
      ['INT64', null, null, micros('TimestampType', 0)],
      ['INT64', null, 'TIMESTAMP_MICROS', micros('TimestampType', 1)],
      ['BYTE_ARRAY', null, 'UTF8', 'StringType()'],
      ['BYTE_ARRAY', null, null, null],
      ['FIXED_LEN_BYTE_ARRAY', 3, null, null],
      ['FIXED_LEN_BYTE_ARRAY', 12, null, null],
      ['FIXED_LEN_BYTE_ARRAY', 16, null, 'UUIDType()'],
    ];
    wanted.forEach(([type, length, converted, logical], i) => {
      expect(rows[i], TYPES[i]).toEqual([
        `c${i + 1}`,
        type,
        length === null ? rows[i][2] : String(length),
        'OPTIONAL',
        i + 1,
        converted,
        logical,
      ]);
    });
    expect(metadata.schema.map((element) => [element.name, element.repetition_type, element.field_id])).toEqual([
      ['table', undefined, undefined],
      ['at', 'REQUIRED', 11],
      ['text', 'OPTIONAL', 22],
    ]);
  });

  test('a small decimal is an int32 (B041)', async () => {
    const { bytes } = writeParquet(columnsOf(schemaOf(['decimal(5,2)']), [[125n]]), OPTIONS, compressZstd);
    expect(await queryDuckdb(bytes, 'select c1::varchar, typeof(c1) from read_parquet($file)')).toEqual([
      ['1.25', 'DECIMAL(5,2)'],
    ]);
    expect(parquetMetadata(bufferOf(bytes)).schema[1].type).toBe('INT32');
  });

  test('writer, key-values, order and sizes', () => {
    expect(metadata.created_by).toBe('sluice version 0.1.0');
    expect(metadata.key_value_metadata).toEqual([
      { key: 'iceberg.schema', value: JSON.stringify(schema) },
      { key: 'k', value: 'v' },
    ]);
    expect(metadata.row_groups.map((group) => Number(group.num_rows))).toEqual([4, 4, 2]);
    metadata.row_groups.forEach((group, i) => {
      expect(group.sorting_columns).toEqual([{ column_idx: 0, descending: false, nulls_first: true }]);
      expect(group.ordinal).toBe(i);
      expect(Number(group.file_offset)).toBe(facts.splitOffsets[i]);
      const compressed = group.columns.reduce(
        (sum, { meta_data }) => sum + Number(meta_data!.total_compressed_size),
        0,
      );
      const uncompressed = group.columns.reduce(
        (sum, { meta_data }) => sum + Number(meta_data!.total_uncompressed_size),
        0,
      );
      expect(Number(group.total_compressed_size)).toBe(compressed);
      expect(Number(group.total_byte_size)).toBe(uncompressed);
    });
  });

  test('facts for the manifest (E12, E14, E15, B026, B027)', () => {
    expect(facts.recordCount).toBe(10);
    const starts = metadata.row_groups.map(({ columns: [first] }) => {
      return Number(first.meta_data!.dictionary_page_offset ?? first.meta_data!.data_page_offset);
    });
    expect(facts.splitOffsets).toEqual(starts);
    expect(facts.splitOffsets[0]).toBe(4);
    const sizes = [0, 1].map((c) => {
      return metadata.row_groups.reduce(
        (sum, group) => sum + Number(group.columns[c].meta_data!.total_compressed_size),
        0,
      );
    });
    expect(facts.columns).toEqual(
      new Map([
        [11, { compressedBytes: sizes[0], valueCount: 10, nullCount: 0, nanCount: null, lower: 0n, upper: 9n }],
        [22, { compressedBytes: sizes[1], valueCount: 10, nullCount: 1, nanCount: null, lower: 't0', upper: 't9' }],
      ]),
    );
  });

  test('bounds of the facts are uncut, and null where nothing but null or NaN is', () => {
    const long = 'x'.repeat(40);
    const input = columnsOf(schemaOf(['string', 'double', 'int']), [[long], [NaN], [null]]);
    const { columns } = writeParquet(input, OPTIONS, compressZstd).facts;
    expect(columns.get(1)).toMatchObject({ lower: long, upper: long, nanCount: null });
    expect(columns.get(2)).toMatchObject({ lower: null, upper: null, nanCount: 1, nullCount: 0 });
    expect(columns.get(3)).toMatchObject({ lower: null, upper: null, nullCount: 1, valueCount: 1 });
  });

  test('the same rows make the same bytes', () => {
    expect(Buffer.compare(writeParquet(columnsOf(schema, values), options, compressZstd).bytes, file)).toBe(0);
  });
});

describe('writer: what it refuses', () => {
  test('a null in a required column, naming column and row, before anything is encoded (B028)', () => {
    const columns = columnsOf(schemaOf(['long', 'string'], true), [
      [1n, 2n, 3n],
      ['a', null, 'b'],
    ]);
    const writer = new ParquetWriter(columns.schema, OPTIONS, compressZstd);
    const before = writer.byteLength;
    const error = errorOf(() => writer.append(columns));
    expect(error).toMatchObject({ kind: 'invalid', type: 'null-in-required-column', detail: { column: 'c2', row: 1 } });
    expect(error.message).toBe('column c2: null in a required column at row 1');
    expect(writer.byteLength).toBe(before);
    writer.append(columns, 2, 3);
    expect(writer.finish().recordCount).toBe(1);
  });

  test('decimals with more digits than their type (P16)', () => {
    for (const [type, most] of [
      ['decimal(5, 2)', 99_999n],
      ['decimal(18, 4)', 10n ** 18n - 1n],
      ['decimal(21, 0)', 10n ** 21n - 1n],
      ['decimal(38, 10)', 10n ** 38n - 1n],
    ] as const) {
      const write = (value: Value) => writeParquet(columnsOf(schemaOf([type]), [[null, value]]), OPTIONS, compressZstd);
      write(most);
      write(-most);
      for (const value of [most + 1n, -most - 1n]) {
        expect(errorOf(() => write(value))).toMatchObject({
          kind: 'invalid',
          type: 'decimal-overflow',
          detail: { row: 1 },
        });
      }
    }
  });

  test('codes that are not in the dictionary', () => {
    const columns = columnsOf(schemaOf(['string']), [['a', 'b']]);
    const [column] = columns.columns;
    if (column.kind === 'dictionary') column.codes[1] = 2;
    expect(() => writeParquet(columns, OPTIONS, compressZstd)).toThrow('code 2 of row 1 is not in its dictionary of 2');
  });
});

describe('writer: pages', () => {
  const pagesOf = (file: Uint8Array) => {
    return parseFooter(file, file.length).rowGroups.map((group) => group.chunks.map((chunk) => chunk.pages!));
  };
  const text = (length: number, random: () => number) => {
    return Array.from({ length }, () => String.fromCharCode(33 + Math.floor(random() * 90))).join('');
  };

  test('all columns have a boundary at each window, and none passes the zstd bound', async () => {
    const rows = 10_000;
    const random = randomFrom(5);
    const types = ['long', 'string', 'uuid', 'boolean', 'fixed[12]'];
    const values: Value[][] = [
      Array.from({ length: rows }, (_, row) => BigInt(row) * 7n),
      Array.from({ length: rows }, () => text(Math.floor(random() * 60), random)),
      ...types.slice(2).map((type) => someValues(type, rows, 'some', 3)),
    ];
    const inputs: number[] = [];
    const { bytes: file } = writeParquet(columnsOf(schemaOf(types), values, false), OPTIONS, (bytes) => {
      inputs.push(bytes.length);
      return compressZstd(bytes);
    });
    expect(Math.max(...inputs)).toBeLessThanOrEqual(ZSTD_INPUT_BYTES_MAX);
    const [chunks] = pagesOf(file);
    for (const pages of chunks) {
      const starts = pages.map((page) => page.firstRow);
      for (const window of [0, 4096, 8192]) expect(starts).toContain(window);
    }
    expect(chunks[0].length).toBe(3);
    expect(chunks[1].length).toBeGreaterThan(6);
    expect(chunks[2].map((page) => page.firstRow % 2048)).toEqual(new Array(5).fill(0));
    const own = readOwn(file, schemaOf(types));
    types.forEach((type, c) => {
      expect(firstDifference(valuesOf(own[0].columns[c], type), values[c]), type).toBeNull();
    });
    const found = await queryDuckdb(file, 'select lower(hex(encode(c2))) from read_parquet($file)');
    const wanted = values[1].map((value) => Buffer.from(value as string).toString('hex'));
    expect(
      firstDifference(
        found.map(([cell]) => cell),
        wanted,
      ),
    ).toBeNull();
  });

  test('one value of a megabyte, among small ones', async () => {
    const values: Value[] = ['a', text(1_000_000, randomFrom(9)), 'b', null];
    for (const dictionary of [true, false]) {
      const { bytes: file, facts } = writeParquet(
        columnsOf(schemaOf(['string']), [values], dictionary),
        OPTIONS,
        compressZstd,
      );
      expect(valuesOf(readOwn(file, schemaOf(['string']))[0].columns[0], 'string')).toEqual(values);
      expect((await readWithHyparquet(file)).map((row) => row.c1 ?? null)).toEqual(values);
      expect((await queryDuckdb(file, 'select c1 from read_parquet($file)')).map(([cell]) => cell)).toEqual(values);
      expect(facts.columns.get(1)!.lower).toBe([values[1] as string, 'a'].sort()[0]);
    }
  });

  test('65,536 distinct strings', async () => {
    const values = Array.from({ length: 65_536 }, (_, row): Value => `serial-${(row * 40_503) % 65_536}`);
    for (const dictionary of [true, false]) {
      const { bytes: file } = writeParquet(
        columnsOf(schemaOf(['string']), [values], dictionary),
        OPTIONS,
        compressZstd,
      );
      const byOwn = readOwn(file, schemaOf(['string'])).flatMap((group) => valuesOf(group.columns[0], 'string'));
      expect(firstDifference(byOwn, values)).toBeNull();
      const found = await queryDuckdb(file, 'select count(distinct c1), min(c1), max(c1) from read_parquet($file)');
      expect(found).toEqual([[65_536n, 'serial-0', 'serial-9999']]);
    }
  });

  test('row groups are closed by bytes when a few values are huge (P17, B103)', () => {
    const random = randomFrom(11);
    const values = Array.from({ length: 10 }, (): Value => text(30_000, random));
    for (const dictionary of [true, false]) {
      const options = { ...OPTIONS, rowGroupBytesMax: 100_000 };
      const { bytes: file, facts } = writeParquet(
        columnsOf(schemaOf(['string']), [values], dictionary),
        options,
        compressZstd,
      );
      expect(parseFooter(file, file.length).rowGroups.map((group) => group.rows)).toEqual([3, 3, 3, 1]);
      expect(facts.splitOffsets.length).toBe(4);
    }
  });

  test('appends in pieces make one file, whose chunks can be taken on the way', async () => {
    const values = [someValues('long', 3000, 'some'), someValues('string', 3000, 'some')];
    const columns = columnsOf(schemaOf(['long', 'string']), values);
    const writer = new ParquetWriter(columns.schema, { ...OPTIONS, rowGroupRows: 700 }, compressZstd);
    const taken: Uint8Array[] = [];
    for (let from = 0; from < 3000; from += 1000) {
      writer.append(columns, from, from + 1000);
      taken.push(...writer.takeChunks());
      expect(taken.reduce((sum, chunk) => sum + chunk.length, 0)).toBe(writer.byteLength);
    }
    const facts = writer.finish();
    taken.push(...writer.takeChunks());
    const file = Buffer.concat(taken);
    expect(file.length).toBe(facts.fileSizeInBytes);
    const groups = readOwn(file, columns.schema);
    expect(groups.map((group) => group.rows)).toEqual([700, 300, 700, 300, 700, 300]);
    const byOwn = groups.flatMap((group) => valuesOf(group.columns[1], 'string'));
    expect(firstDifference(byOwn, values[1])).toBeNull();
    expect((await queryDuckdb(file, 'select count(*), count(c1) from read_parquet($file)'))[0]).toEqual([
      3000n,
      BigInt(values[0].filter((value) => value !== null).length),
    ]);
  });

  test('a file without rows is still a file', async () => {
    const { bytes: file, facts } = writeParquet(columnsOf(schemaOf(['long']), [[]]), OPTIONS, compressZstd);
    expect(facts).toMatchObject({ recordCount: 0, splitOffsets: [] });
    expect(await queryDuckdb(file, 'select count(*) from read_parquet($file)')).toEqual([[0n]]);
  });
});

describe('writer: encodings', () => {
  const encodingsOf = (type: string, values: Value[], encodings: 'auto' | 'compatible', dictionary = true) => {
    const { bytes } = writeParquet(
      columnsOf(schemaOf([type]), [values], dictionary),
      { ...OPTIONS, encodings },
      compressZstd,
    );
    return parquetMetadata(bufferOf(bytes)).row_groups[0].columns[0].meta_data!.encodings.filter(
      (name) => name !== 'RLE',
    );
  };
  const random = randomFrom(3);
  const rising = Array.from(
    { length: 5000 },
    (_, row): Value => 1_700_000_000_000_000n + BigInt(row * 1_000_000 + Math.floor(random() * 5000)),
  );
  const precise = Array.from({ length: 5000 }, (): Value => 1000 + random());
  const rounded = Array.from({ length: 5000 }, (): Value => Math.round(random() * 300) / 10);

  test('auto takes delta for rising times and byte streams for full-precision doubles', () => {
    expect(encodingsOf('timestamptz', rising, 'auto')).toEqual(['DELTA_BINARY_PACKED']);
    expect(encodingsOf('double', precise, 'auto')).toEqual(['BYTE_STREAM_SPLIT']);
    expect(encodingsOf('double', rounded, 'auto')).toEqual(['PLAIN', 'RLE_DICTIONARY']);
  });

  test('compatible takes plain or dictionary alone', () => {
    for (const [type, values] of [
      ['timestamptz', rising],
      ['double', precise],
      ['double', rounded],
    ] as const) {
      const found = encodingsOf(type, [...values], 'compatible');
      expect(found.every((name) => name === 'PLAIN' || name === 'RLE_DICTIONARY')).toBe(true);
    }
  });

  test('strings of few values become a dictionary, also when they come as bytes', () => {
    const values = Array.from({ length: 5000 }, (_, row): Value => `site-${row % 20}`);
    expect(encodingsOf('string', values, 'auto', true)).toEqual(['PLAIN', 'RLE_DICTIONARY']);
    expect(encodingsOf('string', values, 'auto', false)).toEqual(['PLAIN', 'RLE_DICTIONARY']);
  });

  test('few values are plain untried, and the choice is made by the row group that has enough', () => {
    expect(encodingsOf('timestamptz', rising.slice(0, 31), 'auto')).toEqual(['PLAIN']);
    expect(encodingsOf('timestamptz', rising.slice(0, 32), 'auto')).toEqual(['DELTA_BINARY_PACKED']);
    const schema = schemaOf(['timestamptz']);
    const writer = new ParquetWriter(schema, OPTIONS, compressZstd);
    for (const rows of [10, 1000, 10]) writer.append(columnsOf(schema, [rising.slice(0, rows)]));
    writer.finish();
    const groups = parquetMetadata(bufferOf(concat(writer.takeChunks()))).row_groups;
    const encodings = groups.map((group) => group.columns[0].meta_data!.encodings.find((name) => name !== 'RLE'));
    expect(encodings).toEqual(['PLAIN', 'DELTA_BINARY_PACKED', 'DELTA_BINARY_PACKED']);
  });

  test('values of which none comes twice are compressed once: nothing is tried where there is no choice', () => {
    const compressions = (values: readonly Value[]): number => {
      const compress = vi.fn(compressZstd);
      writeParquet(columnsOf(schemaOf(['string']), [values]), OPTIONS, compress);
      return compress.mock.calls.length;
    };
    const text = (i: number) => `a text of more than a few bytes: ${i}`;
    expect(compressions(Array.from({ length: 12 }, (_, i) => text(i)))).toBe(1);
    expect(compressions(Array.from({ length: 12 }, (_, i) => text(i % 3)))).toBeGreaterThan(1);
  });

  test('a dictionary keeps both zeros and the bits of each NaN apart', () => {
    const column = columnOf('double', new Array(1000).fill(0));
    if (column.kind !== 'float64') throw new Error('a double column');
    const bits = new BigUint64Array(column.values.buffer);
    const kinds = [0n, 1n << 63n, 0x7ff8_0000_0000_0000n, 0x7ff8_0000_0000_0001n, 0xfff8_0000_0000_0000n];
    for (let row = 0; row < bits.length; row++) bits[row] = kinds[Math.floor(random() * 5)];
    const schema = schemaOf(['double']);
    const { bytes } = writeParquet(
      { schema, rows: 1000, columns: [column] },
      { ...OPTIONS, encodings: 'compatible' },
      compressZstd,
    );
    expect(parquetMetadata(bufferOf(bytes)).row_groups[0].columns[0].meta_data!.dictionary_page_offset).toBeDefined();
    const [read] = readOwn(bytes, schema)[0].columns;
    if (read.kind !== 'float64') throw new Error('a double column');
    expect(firstDifference([...new BigUint64Array(read.values.buffer)], [...bits])).toBeNull();
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
