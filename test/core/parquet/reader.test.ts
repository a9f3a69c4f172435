import { gzipSync } from 'node:zlib';
import fc from 'fast-check';
import { parquetWriteBuffer } from 'hyparquet-writer';
import { describe, expect, test, vi } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import type { NestedField, Schema, Value } from '../../../src/core/iceberg/types.ts';
import {
  addIndexes,
  footerLength,
  indexRange,
  isReadWhole,
  pageCount,
  parseFooter,
  planWindow,
  rangesOf,
  readWindow,
  rowGroupRange,
  windowBytes,
} from '../../../src/core/parquet/reader.ts';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd, decompressZstd } from '../../../src/platform/zlib.ts';
import { firstDifference, queryDuckdb, readOwn, readPlanned } from './readers.ts';
import { columnOf, columnsOf, edgesOf, OPTIONS, randomFrom, schemaOf, someValues, TYPES, valuesOf } from './values.ts';

// Machines under load are slow; nothing here waits.
vi.setConfig({ testTimeout: 30_000 });

describe('reader: round trip of random columns', () => {
  test('any values, nulls, layouts and encodings', () => {
    const value = (type: string): fc.Arbitrary<Value> => {
      const edges = edgesOf(type);
      return fc.oneof(
        fc.constantFrom(...edges),
        fc.integer({ min: 0, max: 200 }).map((seed) => someValues(type, 1, 'none', seed)[0]),
      );
    };
    const column = fc.constantFrom(...TYPES).chain((type) => {
      return fc.record({
        type: fc.constant<string>(type),
        runs: fc.array(fc.tuple(fc.option(value(type)), fc.integer({ min: 1, max: 300 })), { maxLength: 20 }),
        dictionary: fc.boolean(),
      });
    });
    fc.assert(
      fc.property(
        fc.array(column, { minLength: 1, maxLength: 3 }),
        fc.integer({ min: 1, max: 5000 }),
        fc.constantFrom('auto' as const, 'compatible' as const),
        (drawn, rowGroupRows, encodings) => {
          const rows = Math.max(...drawn.map(({ runs }) => runs.reduce((sum, [, length]) => sum + length, 0)));
          const values = drawn.map(({ runs }) => {
            const flat = runs.flatMap(([held, length]) => new Array<Value>(length).fill(held));
            return Array.from({ length: rows }, (_, row): Value => flat[row] ?? null);
          });
          const schema = schemaOf(drawn.map(({ type }) => type));
          const columns = drawn.map(({ type, dictionary }, i) => columnOf(type, values[i], dictionary));
          const options = { ...OPTIONS, rowGroupRows, encodings };
          const { bytes } = writeParquet({ schema, rows, columns }, options, compressZstd);
          const groups = readOwn(bytes, schema);
          drawn.forEach(({ type }, i) => {
            const found = groups.flatMap((group) => valuesOf(group.columns[i], type));
            expect(firstDifference(found, values[i])).toBeNull();
          });
        },
      ),
      { numRuns: 40 },
    );
  });
});

describe('reader: windows', () => {
  const rows = 10_000;
  const types = ['long', 'string', 'double', 'boolean', 'uuid', 'date'];
  const schema = schemaOf(types);
  const values = types.map((type, i) => someValues(type, rows, i % 2 === 0 ? 'some' : 'none', 7));
  for (const dictionary of [true, false]) {
    const { bytes: file } = writeParquet(columnsOf(schema, values, dictionary), OPTIONS, compressZstd);

    test(`rows of a window come from the planned bytes alone, strings ${dictionary ? 'in a dictionary' : 'plain'}`, () => {
      for (const [from, to] of [
        [0, 4096],
        [4096, 8192],
        [8192, rows],
        [4000, 4200],
        [9999, rows],
        [5000, 5000],
        [0, rows],
      ]) {
        const window = readPlanned(file, schema, 0, from, to);
        expect(window.rows).toBe(to - from);
        types.forEach((type, c) => {
          const wanted = values[c].slice(from, to);
          expect(firstDifference(valuesOf(window.columns[c], type), wanted), `${type} ${from}-${to}`).toBeNull();
        });
      }
    });

    test(`without the offset index whole columns are planned, strings ${dictionary ? 'in a dictionary' : 'plain'}`, () => {
      const footer = parseFooter(file.subarray(file.length - footerLength(file)), file.length);
      const [group] = footer.rowGroups;
      expect(group.chunks.every((chunk) => chunk.pages === null)).toBe(true);
      const ranges = planWindow(footer, 0, [2], 4096, 8192);
      expect(ranges).toEqual([{ offset: group.chunks[1].offset, length: group.chunks[1].length }]);
      const pieces = ranges.map(({ offset, length }) => ({ offset, bytes: file.slice(offset, offset + length) }));
      const only: Schema = { ...schema, fields: [schema.fields[1]] };
      const window = readWindow(footer, 0, only, 4096, 8192, pieces, decompressZstd);
      expect(firstDifference(valuesOf(window.columns[0], 'string'), values[1].slice(4096, 8192))).toBeNull();

      const indexes = indexRange(footer)!;
      addIndexes(footer, {
        offset: indexes.offset,
        bytes: file.slice(indexes.offset, indexes.offset + indexes.length),
      });
      expect(indexRange(footer)).toBeNull();
      const total = (plan: { length: number }[]) => plan.reduce((sum, { length }) => sum + length, 0);
      expect(total(planWindow(footer, 0, [2], 4096, 8192))).toBeLessThan(total(ranges));
    });
  }

  test('strings in a dictionary stay codes, also in a window', () => {
    const held = [Array.from({ length: 9000 }, (_, row): Value => (row % 5 === 0 ? null : `site-${(row * 7) % 11}`))];
    const { bytes } = writeParquet(columnsOf(schemaOf(['string']), held), OPTIONS, compressZstd);
    const window = readPlanned(bytes, schemaOf(['string']), 0, 4096, 8192);
    const [column] = window.columns;
    expect(column.kind).toBe('dictionary');
    if (column.kind !== 'dictionary') return;
    expect(column.dictionary.offsets.length - 1).toBe(11);
    expect(column.codes[4]).toBe(held[0][4100] === null ? -1 : column.codes[4]);
    expect([...column.codes].every((code, row) => (code === -1) === (column.validity![row] === 0))).toBe(true);
  });

  test('null slots are zero, and a column without nulls has no validity', () => {
    const held = [
      [7, null, 8],
      [1, 2, 3],
    ];
    const { bytes } = writeParquet(columnsOf(schemaOf(['int', 'int']), held), OPTIONS, compressZstd);
    const [{ columns }] = readOwn(bytes, schemaOf(['int', 'int']));
    expect(columns[0]).toMatchObject({ values: Int32Array.of(7, 0, 8), validity: Uint8Array.of(1, 0, 1) });
    expect(columns[1]).toMatchObject({ validity: null });
  });

  test('adjacent stretches are one range, and gaps are bridged on request', () => {
    const { bytes } = writeParquet(columnsOf(schema, values), OPTIONS, compressZstd);
    const footer = parseFooter(bytes, bytes.length);
    expect(planWindow(footer, 0, [1, 2, 3, 4, 5, 6], 0, rows)).toEqual([rowGroupRange(footer, 0)]);
    const apart = planWindow(footer, 0, [1, 3], 0, 4096);
    expect(apart.length).toBeGreaterThan(1);
    expect(planWindow(footer, 0, [1, 3], 0, 4096, bytes.length).length).toBe(1);
    expect(planWindow(footer, 0, [99], 0, 4096)).toEqual([]);
  });
});

describe('reader: rows apart', () => {
  const rows = 10_000;
  const long = Array.from({ length: rows }, (_, row): Value => `${row}`.padEnd(40, String((row * 7919) % 9973)));
  const schema = schemaOf(['long', 'string']);
  const values = [Array.from({ length: rows }, (_, row): Value => BigInt(row)), long];
  const { bytes: file } = writeParquet(columnsOf(schema, values, false), OPTIONS, compressZstd);
  const footer = parseFooter(file, file.length);
  const wanted = Int32Array.of(0, 4, 4095, 4096, 9999);

  test('ranges end where no page of a column holds rows of both sides', () => {
    expect([1, 2, 9].map((id) => pageCount(footer, 0, id) > 3)).toEqual([false, true, false]);
    expect(rangesOf(footer, 0, [1], wanted)).toEqual([
      { from: 0, to: 4096 },
      { from: 4096, to: 4097 },
      { from: 9999, to: 10_000 },
    ]);
    const narrow = rangesOf(footer, 0, [2], wanted);
    expect(narrow[0]).toEqual({ from: 0, to: 5 });
    expect(rangesOf(footer, 0, [1, 2], wanted)).toEqual(rangesOf(footer, 0, [1], wanted));
    for (const ids of [[], [9]]) expect(rangesOf(footer, 0, ids, wanted)).toEqual([{ from: 0, to: 10_000 }]);
    expect(rangesOf(footer, 0, [1], new Int32Array())).toEqual([]);
  });

  test('without an offset index all is one range, and what a window takes is known beforehand', () => {
    const blind = parseFooter(file.subarray(file.length - footerLength(file)), file.length);
    expect([isReadWhole(blind, 0, [1]), isReadWhole(footer, 0, [1]), isReadWhole(blind, 0, [9])]).toEqual([
      true,
      false,
      false,
    ]);
    expect(rangesOf(blind, 0, [1], wanted)).toEqual([{ from: 0, to: 10_000 }]);
    const whole = windowBytes(footer, 0, [1, 2], { from: 0, to: rows });
    expect(whole).toBeGreaterThan(rows * 40);
    expect(windowBytes(footer, 0, [1, 2], { from: 0, to: 1 })).toBeLessThan(whole / 2);
  });
});

describe('reader: schema of the table, not of the file', () => {
  const field = (id: number, name: string, type: string, required = false): NestedField => ({
    id,
    name,
    type,
    required,
  });
  const table = (...fields: NestedField[]): Schema => ({ type: 'struct', 'schema-id': 1, fields });

  test('fields are found by id, renamed or not; absent ones are null (P18)', () => {
    const { bytes } = writeParquet(
      columnsOf(schemaOf(['int', 'string']), [
        [1, 2],
        ['a', null],
      ]),
      OPTIONS,
      compressZstd,
    );
    const wanted = table(field(2, 'renamed', 'string'), field(9, 'c1', 'double'), field(8, 'new', 'string'));
    const [{ columns, rows }] = readOwn(bytes, wanted);
    expect(rows).toBe(2);
    expect(valuesOf(columns[0], 'string')).toEqual(['a', null]);
    expect(valuesOf(columns[1], 'double')).toEqual([null, null]);
    expect(valuesOf(columns[2], 'string')).toEqual([null, null]);
  });

  test('a required field that the file does not have is damage', () => {
    const { bytes } = writeParquet(columnsOf(schemaOf(['int']), [[1]]), OPTIONS, compressZstd);
    expect(() => readOwn(bytes, table(field(5, 'must', 'int', true)))).toThrow('required column must is missing');
  });

  test('narrower types are widened (M23)', () => {
    for (const [from, to, values, wanted] of [
      ['int', 'long', [-1, null, 2 ** 31 - 1], [-1n, null, 2n ** 31n - 1n]],
      ['float', 'double', [1.5, -0, null], [1.5, -0, null]],
      ['decimal(5, 2)', 'decimal(9, 2)', [-125n, null], [-125n, null]],
      ['decimal(5, 2)', 'decimal(18, 2)', [-125n, null], [-125n, null]],
      ['decimal(5, 2)', 'decimal(38, 2)', [-125n, null], [-125n, null]],
      ['decimal(18, 2)', 'decimal(21, 2)', [-(10n ** 17n), null], [-(10n ** 17n), null]],
      ['decimal(21, 2)', 'decimal(38, 2)', [-(10n ** 20n), 10n ** 20n], [-(10n ** 20n), 10n ** 20n]],
    ] as [string, string, Value[], Value[]][]) {
      const { bytes } = writeParquet(columnsOf(schemaOf([from]), [values]), OPTIONS, compressZstd);
      const [{ columns }] = readOwn(bytes, schemaOf([to]));
      expect(valuesOf(columns[0], to), `${from} as ${to}`).toEqual(wanted);
      expect(columns[0].kind).toBe(columnOf(to, wanted).kind);
    }
  });

  test('other types are left to the general reader', () => {
    const { bytes } = writeParquet(columnsOf(schemaOf(['long', 'timestamp']), [[1n], [2n]]), OPTIONS, compressZstd);
    for (const [id, type] of [
      [1, 'int'],
      [1, 'double'],
      [1, 'timestamptz'],
      [2, 'timestamptz'],
      [2, 'long'],
    ] as const) {
      expect(errorOf(() => readOwn(bytes, table(field(id, 'c', type))))).toMatchObject({ type: 'parquet-unsupported' });
    }
  });
});

describe('reader: files of other writers', () => {
  const rows = 5000;
  const numbers = Array.from({ length: rows }, (_, row) => BigInt(row * row));
  const texts = Array.from({ length: rows }, (_, row) => (row % 4 === 0 ? null : `t${row % 40}`));
  const flags = Array.from({ length: rows }, (_, row) => row % 3 === 0);

  const foreign = (codec: 'ZSTD' | 'UNCOMPRESSED' | 'SNAPPY' | 'GZIP', encoding?: 'DELTA_BINARY_PACKED' | 'PLAIN') => {
    const buffer = parquetWriteBuffer({
      columnData: [
        { name: 'n', data: numbers, nullable: false, encoding },
        { name: 's', data: texts },
        { name: 'b', data: flags },
      ],
      schema: [
        { name: 'root', num_children: 3 },
        { name: 'n', type: 'INT64', repetition_type: 'REQUIRED', field_id: 1 },
        { name: 's', type: 'BYTE_ARRAY', converted_type: 'UTF8', repetition_type: 'OPTIONAL', field_id: 2 },
        { name: 'b', type: 'BOOLEAN', repetition_type: 'OPTIONAL', field_id: 3 },
      ],
      codec,
      compressors: { ZSTD: compressZstd, GZIP: (bytes) => gzipSync(bytes) },
      pageSize: 8000,
      rowGroupSize: 3000,
    });
    return new Uint8Array(buffer);
  };
  const schema = schemaOf(['long', 'string', 'boolean']);

  for (const codec of ['ZSTD', 'UNCOMPRESSED', 'SNAPPY'] as const) {
    for (const encoding of ['PLAIN', 'DELTA_BINARY_PACKED'] as const) {
      test(`pages of version 2, ${codec}, ${encoding}`, () => {
        const groups = readOwn(foreign(codec, encoding), schema);
        const all = (c: number, type: string) => groups.flatMap((group) => valuesOf(group.columns[c], type));
        expect(firstDifference(all(0, 'long'), numbers)).toBeNull();
        expect(firstDifference(all(1, 'string'), texts)).toBeNull();
        expect(firstDifference(all(2, 'boolean'), flags)).toBeNull();
      });
    }
  }

  test('another codec is left to the general reader', () => {
    expect(errorOf(() => readOwn(foreign('GZIP'), schema))).toMatchObject({
      kind: 'invalid',
      type: 'parquet-unsupported',
    });
  });

  test('a file without field ids is left to the general reader, not read as nulls', () => {
    const bytes = new Uint8Array(
      parquetWriteBuffer({ columnData: [{ name: 'c1', data: [1n] }], codec: 'UNCOMPRESSED' }),
    );
    expect(errorOf(() => readOwn(bytes, schemaOf(['long'])))).toMatchObject({ type: 'parquet-unsupported' });
  });

  test('a file that DuckDB wrote', async () => {
    const random = randomFrom(21);
    const ids = Array.from({ length: 3000 }, () => Math.floor(random() * 1e6));
    const { mkdtempSync, readFileSync, rmSync } = await import('node:fs');
    const { tmpdir } = await import('node:os');
    const { join } = await import('node:path');
    const folder = mkdtempSync(join(tmpdir(), 'sluice-duckdb-'));
    try {
      const path = join(folder, 'out.parquet');
      const { bytes } = writeParquet(
        columnsOf(schemaOf(['int', 'string']), [ids, ids.map((id) => `n${id % 17}`)]),
        OPTIONS,
        compressZstd,
      );
      await queryDuckdb(
        bytes,
        `copy (select * from read_parquet($file)) to '${path}' (format parquet, codec zstd, field_ids {c1: 1, c2: 2})`,
      );
      const groups = readOwn(new Uint8Array(readFileSync(path)), schemaOf(['int', 'string']));
      expect(groups.flatMap((group) => valuesOf(group.columns[0], 'int'))).toEqual(ids);
      expect(groups.flatMap((group) => valuesOf(group.columns[1], 'string'))).toEqual(ids.map((id) => `n${id % 17}`));
    } finally {
      rmSync(folder, { recursive: true });
    }
  });
});

describe('reader: damaged files', () => {
  const rows = 200;
  const types = ['long', 'string', 'double', 'boolean', 'decimal(21, 0)', 'binary', 'int'];
  const schema = schemaOf(types);
  const values = types.map((type, i) => someValues(type, rows, i % 2 === 0 ? 'some' : 'none', 4 + i));
  const files = (['auto', 'compatible'] as const).map((encodings) => {
    const options = { ...OPTIONS, rowGroupRows: 120, encodings };
    return writeParquet(columnsOf(schema, values, encodings === 'auto'), options, compressZstd).bytes;
  });

  /** What reading gives: `same` values, a `refused` file, or `wrong` values; anything else is thrown on. */
  function outcomeOf(file: Uint8Array): 'same' | 'refused' | 'wrong' {
    try {
      const groups = readOwn(file, schema);
      const same = types.every((type, c) => {
        return (
          firstDifference(
            groups.flatMap((group) => valuesOf(group.columns[c], type)),
            values[c],
          ) === null
        );
      });
      return same ? 'same' : 'wrong';
    } catch (error) {
      if (error instanceof SluiceError && (error.type === 'parquet-corrupt' || error.type === 'parquet-unsupported')) {
        return 'refused';
      }
      throw error;
    }
  }

  test('any flipped bit in pages and their headers is found or harmless', () => {
    const counts = { same: 0, refused: 0, wrong: 0 };
    for (const file of files) {
      const end = file.length - footerLength(file);
      const random = randomFrom(99);
      for (let i = 0; i < 200; i++) {
        const damaged = file.slice();
        damaged[Math.floor(random() * end)] ^= 1 << Math.floor(random() * 8);
        counts[outcomeOf(damaged)]++;
      }
    }
    expect(counts.wrong).toBe(0);
    expect(counts.refused).toBeGreaterThan(350);
  });

  test('every bit of the page headers', () => {
    const counts = { same: 0, refused: 0, wrong: 0 };
    for (const file of files) {
      const footer = parseFooter(file, file.length);
      for (const chunk of footer.rowGroups[0].chunks) {
        for (let at = chunk.offset; at < chunk.offset + 18; at++) {
          for (let bit = 0; bit < 8; bit++) {
            const damaged = file.slice();
            damaged[at] ^= 1 << bit;
            counts[outcomeOf(damaged)]++;
          }
        }
      }
    }
    expect(counts.wrong).toBe(0);
    expect(counts.refused).toBeGreaterThan(1000);
  });

  test('damage in the footer never hangs and never throws anything but a clear error', () => {
    // The footer has no checksum: a flipped id or name is another valid footer. Values may differ, nothing else.
    const counts = { same: 0, refused: 0, wrong: 0 };
    for (const file of files) {
      const start = file.length - footerLength(file);
      const random = randomFrom(7);
      for (let i = 0; i < 200; i++) {
        const damaged = file.slice();
        for (let k = 0; k <= i % 3; k++) damaged[start + Math.floor(random() * (file.length - start))] = random() * 256;
        counts[outcomeOf(damaged)]++;
      }
    }
    expect(counts.refused).toBeGreaterThan(counts.wrong);
  });

  test('a file cut short or filled with anything is refused', () => {
    for (const file of files) {
      for (const length of [0, 3, 4, 11, 12, 500, file.length - 1]) {
        expect(outcomeOf(file.slice(0, length)), `${length} bytes`).toBe('refused');
      }
    }
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 200 }), fc.integer({ min: 0, max: 300 }), (bytes, length) => {
        const tail = new Uint8Array(8);
        new DataView(tail.buffer).setUint32(0, length, true);
        tail.set([0x50, 0x41, 0x52, 0x31], 4);
        const file = Buffer.concat([Uint8Array.of(0x50, 0x41, 0x52, 0x31), bytes, tail]);
        expect(outcomeOf(file)).not.toBe('same');
      }),
    );
  });

  test('bytes that were not read are asked for by name, not invented', () => {
    const footer = parseFooter(files[0], files[0].length);
    expect(() => readWindow(footer, 0, schema, 0, 120, [], decompressZstd)).toThrow('were not read');
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
