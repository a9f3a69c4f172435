import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { DuckDBInstance } from '@duckdb/node-api';
import { type ParquetParsers, parquetReadObjects } from 'hyparquet';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { primitive } from '../../../src/core/iceberg/primitive.ts';
import type { Schema, Value } from '../../../src/core/iceberg/types.ts';
import { parseFooter, planWindow, readWindow } from '../../../src/core/parquet/reader.ts';
import { decompressZstd } from '../../../src/platform/zlib.ts';

export const compressors = { ZSTD: (bytes: Uint8Array, length: number) => decompressZstd(bytes, length) };

const utf8 = new TextDecoder('utf-8', { fatal: false, ignoreBOM: true });

/** hyparquet's parsers round times to milliseconds and drop a leading U+FEFF; these keep what is stored. */
const parsers = {
  timestampFromMilliseconds: (value: bigint) => value,
  timestampFromMicroseconds: (value: bigint) => value,
  timestampFromNanoseconds: (value: bigint) => value,
  dateFromDays: (value: number) => value,
  stringFromBytes: (bytes?: Uint8Array) => bytes && utf8.decode(bytes),
} as unknown as ParquetParsers;

export function bufferOf(file: Uint8Array): ArrayBuffer {
  return file.buffer.slice(file.byteOffset, file.byteOffset + file.length) as ArrayBuffer;
}

/** All rows as hyparquet reads them. */
export function readWithHyparquet(file: Uint8Array, options: object = {}): Promise<Record<string, unknown>[]> {
  return parquetReadObjects({ file: bufferOf(file), compressors, parsers, utf8: false, ...options });
}

/** A value as hyparquet would give it: decimals as numbers, uuids as text. */
export function asHyparquet(type: string, value: Value): unknown {
  if (value === null) return null;
  const parts = primitive(type);
  if (parts.name === 'decimal') return Number(decimalText(value as bigint, parts.scale));
  if (parts.name === 'uuid') return uuidText(value as Uint8Array);
  return value;
}

export function uuidText(bytes: Uint8Array): string {
  return Buffer.from(bytes)
    .toString('hex')
    .replace(/^(.{8})(.{4})(.{4})(.{4})(.{12})$/, '$1-$2-$3-$4-$5');
}

/** Rows of a query over the file, which it names `$file`. */
export async function queryDuckdb(file: Uint8Array, sql: string): Promise<unknown[][]> {
  const folder = mkdtempSync(join(tmpdir(), 'sluice-parquet-'));
  try {
    const path = join(folder, 'data.parquet');
    writeFileSync(path, file);
    const instance = await DuckDBInstance.create();
    const connection = await instance.connect();
    const result = await connection.runAndReadAll(sql.replaceAll('$file', `'${path}'`));
    const rows = result.getRows();
    connection.closeSync();
    instance.closeSync();
    return rows;
  } finally {
    rmSync(folder, { recursive: true });
  }
}

/** SQL that turns a column into something compared exactly, and the same of our value. */
export function duckdbForm(type: string, column: string): { sql: string; of: (value: Value) => unknown } {
  const parts = primitive(type);
  switch (parts.name) {
    case 'timestamp':
    case 'timestamptz':
      return { sql: `epoch_us(${column})`, of: (value) => value };
    case 'date':
      return { sql: `datediff('day', date '1970-01-01', ${column})`, of: (value) => BigInt(value as number) };
    case 'time':
      return { sql: `epoch_us(${column})`, of: (value) => value };
    case 'decimal':
      return {
        sql: `${column}::varchar`,
        of: (value) => decimalText(value as bigint, parts.scale),
      };
    case 'uuid':
      return { sql: `${column}::varchar`, of: (value) => uuidText(value as Uint8Array) };
    case 'binary':
    case 'fixed':
      return { sql: `lower(hex(${column}))`, of: (value) => Buffer.from(value as Uint8Array).toString('hex') };
    case 'string':
      return { sql: `lower(hex(encode(${column})))`, of: (value) => Buffer.from(value as string).toString('hex') };
    default:
      return { sql: column, of: (value) => value };
  }
}

function decimalText(unscaled: bigint, scale: number): string {
  const digits = (unscaled < 0n ? -unscaled : unscaled).toString().padStart(scale + 1, '0');
  const text = scale === 0 ? digits : `${digits.slice(0, -scale)}.${digits.slice(-scale)}`;
  return unscaled < 0n ? `-${text}` : text;
}

/** All rows of a file by the product's own reader, a whole row group at a time. */
export function readOwn(file: Uint8Array, schema: Schema): Columns[] {
  const footer = parseFooter(file, file.length);
  return footer.rowGroups.map((group, i) =>
    readWindow(footer, i, schema, 0, group.rows, [{ offset: 0, bytes: file }], decompressZstd),
  );
}

/** One window, given exactly the bytes that were planned for it. */
export function readPlanned(file: Uint8Array, schema: Schema, rowGroup: number, from: number, to: number): Columns {
  const footer = parseFooter(file, file.length);
  const ids = schema.fields.map((field) => field.id);
  const pieces = planWindow(footer, rowGroup, ids, from, to).map(({ offset, length }) => ({
    offset,
    bytes: file.slice(offset, offset + length),
  }));
  return readWindow(footer, rowGroup, schema, from, to, pieces, decompressZstd);
}

/** First row where two columns of values differ, or null: a readable message for long columns. */
export function firstDifference(found: readonly unknown[], wanted: readonly unknown[]): unknown {
  if (found.length !== wanted.length) return { rows: found.length, wanted: wanted.length };
  for (let row = 0; row < wanted.length; row++) {
    const a = found[row];
    const b = wanted[row];
    const same = a instanceof Uint8Array && b instanceof Uint8Array ? Buffer.compare(a, b) === 0 : Object.is(a, b);
    if (!same) return { row, found: a, wanted: b };
  }
  return null;
}
