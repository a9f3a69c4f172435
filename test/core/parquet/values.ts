import type { Column, Columns } from '../../../src/core/columns/columns.ts';
import { primitive } from '../../../src/core/iceberg/primitive.ts';
import type { Schema, Value } from '../../../src/core/iceberg/types.ts';
import { storageOf } from '../../../src/core/parquet/layout.ts';
import type { ParquetOptions } from '../../../src/core/parquet/writer.ts';

/** Every primitive type that a v2 table can have, decimals in each of their three physical forms. */
export const TYPES = [
  'boolean',
  'int',
  'long',
  'float',
  'double',
  'decimal(5, 2)',
  'decimal(18, 4)',
  'decimal(21, 0)',
  'decimal(38, 10)',
  'date',
  'time',
  'timestamp',
  'timestamptz',
  'string',
  'binary',
  'fixed[3]',
  'fixed[12]',
  'uuid',
] as const;

export const OPTIONS: ParquetOptions = {
  rowGroupRows: 65_536,
  encodings: 'auto',
  sortingColumns: [],
  keyValues: [],
};

/** A small generator of numbers from 0 to 1, the same for the same seed. */
export function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** A schema of optional (or required) fields `c1`, `c2`, ... with ids from 1. */
export function schemaOf(types: readonly string[], required = false): Schema {
  const fields = types.map((type, i) => ({ id: i + 1, name: `c${i + 1}`, required, type }));
  return { type: 'struct', 'schema-id': 0, fields };
}

/** Values as a typed column. Strings and binary become a dictionary when `dictionary` is set. */
export function columnOf(type: string, values: readonly Value[], dictionary = true): Column {
  const nulls = values.some((value) => value === null);
  const validity = nulls ? Uint8Array.from(values, (value) => (value === null ? 0 : 1)) : null;
  const { physical, length } = storageOf(type);
  const rows = values.length;
  if (type === 'string' || type === 'binary') {
    const bytes = values.map((value) => (value === null ? null : bytesOf(value)));
    return dictionary
      ? { ...dictionaryOf(bytes), validity }
      : { kind: 'bytes', values: stringsOf(bytes.map((value) => value ?? new Uint8Array())), validity };
  }
  switch (physical) {
    case 0:
      return { kind: 'boolean', values: Uint8Array.from(values, (value) => (value === true ? 1 : 0)), validity };
    case 1:
      return { kind: 'int32', values: Int32Array.from(values, (value) => Number(value ?? 0)), validity };
    case 2:
      return {
        kind: 'int64',
        values: BigInt64Array.from(values, (value) => BigInt((value as bigint) ?? 0n)),
        validity,
      };
    case 4:
      return { kind: 'float32', values: Float32Array.from(values, (value) => (value as number) ?? 0), validity };
    case 5:
      return { kind: 'float64', values: Float64Array.from(values, (value) => (value as number) ?? 0), validity };
  }
  const out = new Uint8Array(rows * length);
  values.forEach((value, row) => {
    if (value === null) return;
    if (typeof value === 'bigint') {
      let rest = value;
      for (let k = length - 1; k >= 0; k--) {
        out[row * length + k] = Number(rest & 0xffn);
        rest >>= 8n;
      }
    } else out.set(value as Uint8Array, row * length);
  });
  return { kind: 'fixed', width: length, values: out, validity };
}

export function bytesOf(value: Value): Uint8Array {
  return typeof value === 'string' ? new TextEncoder().encode(value) : (value as Uint8Array);
}

export function stringsOf(entries: readonly Uint8Array[]): { bytes: Uint8Array; offsets: Int32Array } {
  const offsets = new Int32Array(entries.length + 1);
  entries.forEach((entry, i) => {
    offsets[i + 1] = offsets[i] + entry.length;
  });
  const bytes = new Uint8Array(offsets[entries.length]);
  entries.forEach((entry, i) => {
    bytes.set(entry, offsets[i]);
  });
  return { bytes, offsets };
}

function dictionaryOf(values: readonly (Uint8Array | null)[]) {
  const places = new Map<string, number>();
  const entries: Uint8Array[] = [];
  const codes = Int32Array.from(values, (value) => {
    if (value === null) return -1;
    const key = Buffer.from(value).toString('latin1');
    let code = places.get(key);
    if (code === undefined) {
      code = entries.push(value) - 1;
      places.set(key, code);
    }
    return code;
  });
  return { kind: 'dictionary' as const, codes, dictionary: stringsOf(entries) };
}

/** A column's values, read independently of the product's own accessors. */
export function valuesOf(column: Column, type: string): Value[] {
  const rows = rowsOf(column);
  const { name } = primitive(type);
  const valueAt = (row: number): Value => {
    if (column.validity !== null && column.validity[row] === 0) return null;
    switch (column.kind) {
      case 'boolean':
        return column.values[row] === 1;
      case 'int32':
        return name === 'decimal' ? BigInt(column.values[row]) : column.values[row];
      case 'int64':
      case 'float32':
      case 'float64':
        return column.values[row];
      case 'fixed': {
        const bytes = column.values.slice(row * column.width, (row + 1) * column.width);
        if (name !== 'decimal') return bytes;
        return BigInt.asIntN(8 * bytes.length, BigInt(`0x${Buffer.from(bytes).toString('hex')}`));
      }
      case 'dictionary':
      case 'bytes': {
        const strings = column.kind === 'bytes' ? column.values : column.dictionary;
        const at = column.kind === 'bytes' ? row : column.codes[row];
        const bytes = strings.bytes.slice(strings.offsets[at], strings.offsets[at + 1]);
        return name === 'string' ? new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(bytes) : bytes;
      }
      case 'nested':
        return column.values[row] as Value;
    }
  };
  return Array.from({ length: rows }, (_, row) => valueAt(row));
}

function rowsOf(column: Column): number {
  switch (column.kind) {
    case 'dictionary':
      return column.codes.length;
    case 'bytes':
      return column.values.offsets.length - 1;
    case 'fixed':
      return column.values.length / column.width;
    default:
      return column.values.length;
  }
}

export function columnsOf(schema: Schema, values: readonly (readonly Value[])[], dictionary = true): Columns {
  const columns = schema.fields.map((field, i) => columnOf(field.type as string, values[i], dictionary));
  return { schema, rows: values[0]?.length ?? 0, columns };
}

/** Plausible values of a type: repeated ones, extremes, runs. `distinct` bounds the number of different ones. */
export function someValues(type: string, rows: number, nulls: 'none' | 'some' | 'all', seed = 1): Value[] {
  const random = randomFrom(seed);
  const pick = (values: readonly Value[]): Value => values[Math.floor(random() * values.length)];
  const edges = edgesOf(type);
  const valueAt = (row: number): Value => {
    if (nulls === 'all' || (nulls === 'some' && random() < 0.3)) return null;
    if (random() < 0.05) return pick(edges);
    const step = row % 700;
    switch (primitive(type).name) {
      case 'boolean':
        return row % 20 < 11;
      case 'int':
        return step * 31 - 7000 + Math.floor(random() * 5);
      case 'long':
        return BigInt(step) * 1_000_000_007n - 3n * BigInt(Math.floor(random() * 1e9));
      case 'float':
        return Math.fround(random() * 100 - 50);
      case 'double':
        return seed % 2 === 0 ? Math.round(random() * 1000) / 10 : random() * 1e6 - 5e5;
      case 'decimal':
        return BigInt(Math.floor(random() * 99_999)) - 50_000n;
      case 'date':
        return 19_000 + (step >> 4);
      case 'time':
        return BigInt(Math.floor(random() * 86_400_000_000));
      case 'timestamp':
      case 'timestamptz':
        return 1_700_000_000_000_000n + BigInt(row) * 1_000_003n + BigInt(Math.floor(random() * 1000));
      case 'string':
        return seed % 2 === 0 ? `device-${step}` : `text ${random()} – é日😀`.slice(0, 4 + Math.floor(random() * 18));
      case 'binary':
        return Uint8Array.from({ length: Math.floor(random() * 20) }, () => random() * 256);
      case 'fixed':
      case 'uuid':
        return Uint8Array.from({ length: storageOf(type).length }, () => random() * 256);
    }
  };
  return Array.from({ length: rows }, (_, row) => valueAt(row));
}

/** The value list of iceberg-correctness.md section 17(2). */
export function edgesOf(type: string): Value[] {
  const parts = primitive(type);
  switch (parts.name) {
    case 'boolean':
      return [true, false];
    case 'int':
      return [-(2 ** 31), 2 ** 31 - 1, 0, -1, 127, 128, 255, 256, -128, -129];
    case 'long':
      return [
        -(2n ** 63n),
        2n ** 63n - 1n,
        0n,
        -1n,
        2n ** 53n - 1n,
        2n ** 53n + 1n,
        2n ** 32n,
        -(2n ** 32n),
        127n,
        255n,
      ];
    case 'float':
      return [-0, 0, Infinity, -Infinity, NaN, 3.4028234663852886e38, -3.4028234663852886e38, 1.401298464324817e-45];
    case 'double':
      return [-0, 0, Infinity, -Infinity, NaN, Number.MAX_VALUE, -Number.MAX_VALUE, Number.MIN_VALUE, 2 ** 53 + 2];
    case 'decimal': {
      const most = 10n ** BigInt(parts.precision) - 1n;
      return [most, -most, 0n, -1n, 1n, 127n, 128n, -128n, -129n, 255n];
    }
    case 'date':
      return [-719_162, 2_932_896, 0, -1];
    case 'time':
      return [0n, 86_399_999_999n];
    case 'timestamp':
    case 'timestamptz':
      return [-62_135_596_800_000_000n, 253_402_300_799_999_999n, -1n, 0n, 1n];
    case 'string':
      return [
        '',
        'a'.repeat(15),
        'a'.repeat(16),
        'a'.repeat(17),
        `${'a'.repeat(15)}😀`,
        `${'a'.repeat(15)}😀b`,
        `${'b'.repeat(15)}\ud7ffx`,
        `${'b'.repeat(15)}\u{10ffff}x`,
        '\ufffd',
        '\u{1f600}',
        '\u{10ffff}'.repeat(17),
        '\u007f',
        '\u0080',
        '\ufeffbom',
        'device-0000-alpha-9',
        'device-0000-alpha-1',
      ];
    case 'binary':
      return [
        new Uint8Array(),
        Uint8Array.of(0),
        Uint8Array.of(0x7f),
        Uint8Array.of(0x80),
        Uint8Array.of(0xff),
        new Uint8Array(16).fill(0xff),
        new Uint8Array(17).fill(0xff),
        Uint8Array.of(...new Array(15).fill(0xff), 0x7f, 1),
        Uint8Array.of(...new Array(15).fill(1), 0xff, 1),
      ];
    case 'fixed':
    case 'uuid': {
      const { length } = storageOf(type);
      return [new Uint8Array(length), new Uint8Array(length).fill(0xff), new Uint8Array(length).fill(0x80)];
    }
  }
}
