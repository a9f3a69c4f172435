import { parquetMetadata, parquetReadObjects, readColumnIndex, readOffsetIndex } from 'hyparquet';
import { describe, expect, test, vi } from 'vitest';
import type { Value } from '../../../src/core/iceberg/types.ts';
import { densify } from '../../../src/core/parquet/dense.ts';
import { leafOf } from '../../../src/core/parquet/layout.ts';
import { boundBytes, extremesOf, valueAt } from '../../../src/core/parquet/statistics.ts';
import { writeParquet } from '../../../src/core/parquet/writer.ts';
import { compressZstd } from '../../../src/platform/zlib.ts';
import { bufferOf, compressors, queryDuckdb, uuidText } from './readers.ts';
import { columnOf, columnsOf, edgesOf, OPTIONS, schemaOf, TYPES } from './values.ts';

// Machines under load are slow; nothing here waits.
vi.setConfig({ testTimeout: 30_000 });

function boundsOf(type: string, values: Value[]) {
  const leaf = leafOf({ id: 1, name: 'c', required: false, type });
  const column = columnOf(type, values);
  const dense = densify(column, 0, values.length);
  const { min, max, nans } = extremesOf(leaf, dense, 0, dense.count);
  if (min === -1) return { nans, lower: null, upper: null, min: null, max: null };
  return {
    nans,
    lower: valueAt(leaf, dense, min, false),
    upper: valueAt(leaf, dense, max, true),
    min: boundBytes(leaf, dense, min, false),
    max: boundBytes(leaf, dense, max, true),
  };
}

const text = (bound: { bytes: Uint8Array; exact: boolean } | null) => {
  return bound === null
    ? null
    : [new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bound.bytes), bound.exact];
};

describe('bounds: floating point', () => {
  for (const type of ['float', 'double']) {
    test(`${type}: NaN is counted and never a bound (B7, B015, B016)`, () => {
      expect(boundsOf(type, [NaN, 4, NaN])).toMatchObject({ nans: 2, lower: 4, upper: 4 });
      expect(boundsOf(type, [NaN, NaN])).toMatchObject({ nans: 2, lower: null, upper: null });
      expect(boundsOf(type, [Infinity, -Infinity])).toMatchObject({ lower: -Infinity, upper: Infinity });
    });

    test(`${type}: a zero bounds both zeros (B8)`, () => {
      for (const values of [[0], [-0], [-0, 0], [0, -0]]) {
        const { lower, upper, min, max } = boundsOf(type, values);
        expect(lower).toBe(-0);
        expect(upper).toBe(0);
        expect(min!.bytes.at(-1)).toBe(0x80);
        expect(max!.bytes.at(-1)).toBe(0);
      }
    });
  }
});

describe('bounds: order', () => {
  test('strings by code point (B5, B003)', () => {
    expect(boundsOf('string', ['\ufffdx', '😀x'])).toMatchObject({ lower: '\ufffdx', upper: '😀x' });
  });

  test('uuid and binary by unsigned bytes (B6)', () => {
    const low = new Uint8Array(16).fill(0x7f);
    const high = new Uint8Array(16).fill(0x80);
    expect(boundsOf('uuid', [high, low])).toMatchObject({ lower: low, upper: high });
    expect(boundsOf('binary', [high, low])).toMatchObject({ lower: low, upper: high });
  });

  test('decimals by size in each physical form', () => {
    for (const type of ['decimal(5, 2)', 'decimal(18, 4)', 'decimal(38, 10)']) {
      expect(boundsOf(type, [-1n, 1n, -200n, 127n, 128n])).toMatchObject({ lower: -200n, upper: 128n });
    }
  });

  test('64-bit integers and times apart by one (B179)', () => {
    expect(boundsOf('long', [2n ** 53n + 1n, 2n ** 53n, 2n ** 53n + 2n])).toMatchObject({
      lower: 2n ** 53n,
      upper: 2n ** 53n + 2n,
    });
    // Of times every microsecond counts, below 1970 too (B179).
    const lastMicros = BigInt(Date.UTC(2024, 1, 29, 10, 0, 12)) * 1000n + 345_678n;
    expect(boundsOf('timestamptz', [lastMicros - 1n, lastMicros, -1n])).toMatchObject({
      lower: -1n,
      upper: lastMicros,
    });
    expect(boundsOf('long', [-1n, 2n ** 32n, -(2n ** 32n)])).toMatchObject({ lower: -(2n ** 32n), upper: 2n ** 32n });
  });
});

describe('bounds in footer and page index: cut (B14)', () => {
  test('a cut upper bound is rounded up (B001)', () => {
    const { min, max } = boundsOf('string', ['device-0000-alpha-9', 'device-0000-alpha-1']);
    expect(text(min)).toEqual(['device-0000-alph', false]);
    expect(text(max)).toEqual(['device-0000-alpi', false]);
  });

  test('cuts lie between characters (B10, B005, B006)', () => {
    const { min, max } = boundsOf('string', [`${'a'.repeat(15)}€ and more`]);
    expect(text(min)).toEqual([`${'a'.repeat(15)}€`, false]);
    expect(text(max)).toEqual([`${'a'.repeat(15)}₭`, false]);
  });

  test('sixteen characters are not cut (B13), the empty string is a bound (B16)', () => {
    expect(text(boundsOf('string', ['😀'.repeat(16)]).max)).toEqual(['😀'.repeat(16), true]);
    expect(text(boundsOf('string', ['']).max)).toEqual(['', true]);
  });

  test('the last character before the surrogates and the last of all (B11)', () => {
    const a = 'a'.repeat(15);
    expect(text(boundsOf('string', [`${a}\ud7ffx`]).max)).toEqual([`${a}\ue000`, false]);
    expect(text(boundsOf('string', [`${a}\u{10ffff}x`]).max)).toEqual([`${'a'.repeat(14)}b`, false]);
    expect(text(boundsOf('string', [`${a}\u007fx`]).max)).toEqual([`${a}\u0080`, false]);
    expect(text(boundsOf('string', ['\u{10ffff}'.repeat(17)]).max)).toEqual(['\u{10ffff}'.repeat(17), true]);
  });

  test('binary: the last byte that can be incremented (B12)', () => {
    const ones = (length: number) => new Uint8Array(length).fill(0xff);
    expect(boundsOf('binary', [ones(17)]).max).toEqual({ bytes: ones(17), exact: true });
    const mixed = Uint8Array.of(1, ...ones(16));
    expect(boundsOf('binary', [mixed]).max).toEqual({ bytes: Uint8Array.of(2), exact: false });
  });

  test('fixed and uuid are never cut', () => {
    expect(boundsOf('fixed[20]', [new Uint8Array(20).fill(7)]).max).toEqual({
      bytes: new Uint8Array(20).fill(7),
      exact: true,
    });
  });
});

describe('page index', () => {
  const rows = 3 * 4096;

  async function indexOf(type: string, values: Value[]) {
    const { bytes } = writeParquet(columnsOf(schemaOf([type]), [values]), OPTIONS, compressZstd);
    const metadata = parquetMetadata(bufferOf(bytes));
    const [chunk] = metadata.row_groups[0].columns;
    const view = (offset: bigint, length: number) => {
      return { view: new DataView(bufferOf(bytes), Number(offset), length), offset: 0 };
    };
    const offsetIndex = readOffsetIndex(view(chunk.offset_index_offset!, chunk.offset_index_length!));
    const columnIndex =
      chunk.column_index_offset === undefined
        ? null
        : readColumnIndex(view(chunk.column_index_offset, chunk.column_index_length!), metadata.schema[1]);
    return { offsetIndex, columnIndex };
  }

  test('pages of nulls, counts and order of bounds', async () => {
    const values = Array.from(
      { length: rows },
      (_, row): Value => (row >> 12 === 1 ? null : row % 3 === 0 ? null : row),
    );
    const { columnIndex, offsetIndex } = await indexOf('int', values);
    expect(offsetIndex.page_locations.map((page) => Number(page.first_row_index))).toEqual([0, 4096, 8192]);
    expect(columnIndex).toMatchObject({
      null_pages: [false, true, false],
      min_values: [1, undefined, 8192].map((value) => (value === undefined ? expect.anything() : value)),
      max_values: [4094, expect.anything(), 12_287],
      boundary_order: 'ASCENDING',
    });
    expect(columnIndex!.null_counts!.map(Number)).toEqual([1366, 4096, 1365]);
  });

  test('order of bounds: descending and none', async () => {
    const down = Array.from({ length: rows }, (_, row): Value => BigInt(-row));
    expect((await indexOf('long', down)).columnIndex!.boundary_order).toBe('DESCENDING');
    const wild = Array.from({ length: rows }, (_, row): Value => BigInt((row >> 12) % 2));
    expect((await indexOf('long', wild)).columnIndex!.boundary_order).toBe('UNORDERED');
  });

  test('a page of NaN alone leaves the column index out (P13)', async () => {
    const values = Array.from({ length: rows }, (_, row): Value => (row >> 12 === 1 ? NaN : row));
    const { columnIndex, offsetIndex } = await indexOf('double', values);
    expect(columnIndex).toBeNull();
    expect(offsetIndex.page_locations.length).toBe(3);
    const some = values.map((value, row) => (row % 2 === 0 ? value : 1));
    expect((await indexOf('double', some)).columnIndex).not.toBeNull();
  });
});

describe('point lookups: every stored value is found (B20)', () => {
  /** Each edge value fills a stretch of rows, so that pages and row groups have narrow bounds of their own. */
  const build = (type: string) => {
    const edges = edgesOf(type);
    const rows = 9000;
    const values = Array.from({ length: rows }, (_, row): Value => edges[Math.floor((row * edges.length) / rows)]);
    const columns = columnsOf(schemaOf([type]), [values]);
    const { bytes } = writeParquet(columns, { ...OPTIONS, rowGroupRows: 6000 }, compressZstd);
    return { edges, values, bytes };
  };

  const sqlOf = (type: string, value: Value): string => {
    if (typeof value === 'string') return `decode(unhex('${Buffer.from(value).toString('hex')}'))`;
    if (value instanceof Uint8Array) {
      return type === 'uuid' ? `'${uuidText(value)}'::uuid` : `unhex('${Buffer.from(value).toString('hex')}')`;
    }
    if (typeof value === 'number' && type !== 'date' && type !== 'int') {
      return Number.isNaN(value) || !Number.isFinite(value) || Object.is(value, -0)
        ? `'${Object.is(value, -0) ? '-0' : value}'::${type}`
        : `${value}::${type}`;
    }
    switch (type) {
      case 'date':
        return `(date '1970-01-01' + (${value})::int)`;
      case 'time':
        return `(time '00:00:00' + to_microseconds(${value}))`;
      case 'timestamp':
        return `make_timestamp(${value})`;
      case 'timestamptz':
        return `(make_timestamp(${value}) at time zone 'UTC')`;
      case 'long':
        return `(${value})::hugeint::bigint`;
      case 'int':
        return `(${value})::int`;
      case 'boolean':
        return `${value}`;
    }
    return decimalSql(value as bigint, Number(type.match(/, (\d+)\)/)![1]), type);
  };
  const decimalSql = (value: bigint, scale: number, type: string): string => {
    const digits = (value < 0n ? -value : value).toString().padStart(scale + 1, '0');
    const point = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
    return `'${value < 0n ? '-' : ''}${point}'::${type}`;
  };

  for (const type of TYPES) {
    test(`${type} by duckdb`, async () => {
      const { edges, values, bytes } = build(type);
      const lookups = edges.map((edge) => `(select count(*) from read_parquet($file) where c1 = ${sqlOf(type, edge)})`);
      const [found] = await queryDuckdb(bytes, `select ${lookups.join(', ')}`);
      const same = (a: Value, b: Value) => {
        if (a instanceof Uint8Array && b instanceof Uint8Array) return Buffer.compare(a, b) === 0;
        return a === b || (Number.isNaN(a) && Number.isNaN(b));
      };
      edges.forEach((edge, i) => {
        const wanted = values.filter((value) => same(value, edge)).length;
        expect(Number(found[i]), `${type} ${String(edge)}`).toBe(wanted);
      });
    });
  }

  for (const type of ['int', 'long', 'double', 'string', 'date']) {
    test(`${type} by hyparquet through the page index`, async () => {
      const { edges, values, bytes } = build(type);
      for (const edge of edges) {
        // hyparquet compares NaN with nothing, and drops a leading U+FEFF.
        if (Number.isNaN(edge) || edge === '\ufeffbom') continue;
        const wanted = values.filter((value) => value === edge).length;
        const value = type === 'date' ? new Date((edge as number) * 86_400_000) : edge;
        const rows = await parquetReadObjects({
          file: bufferOf(bytes),
          compressors,
          filter: { c1: { $eq: value } },
          usePageIndex: true,
        } as never);
        expect(rows.length, String(edge)).toBe(wanted);
      }
    });
  }
});
