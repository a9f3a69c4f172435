import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import {
  DuckDBBlobValue,
  DuckDBDateValue,
  DuckDBDecimalValue,
  DuckDBInstance,
  DuckDBListValue,
  DuckDBMapValue,
  DuckDBStructValue,
  DuckDBTimestampTZValue,
  DuckDBTimestampValue,
  DuckDBTimeValue,
  DuckDBUUIDValue,
} from '@duckdb/node-api';
import type { Bucket } from './bucket.ts';
import { liveEntries, type ReadOptions, readTable, snapshotState } from './reader.ts';
import type { Row } from './rows.ts';

export interface DuckdbTable {
  /** Where the live data files lie, each by itself. */
  folder: string;
  /** Runs a statement; the view `live` holds the table's live rows. Values as `rows()` gives them. */
  query(sql: string): Promise<Row[]>;
  close(): void;
}

/**
 * Opens the live data files of a table's current snapshot in DuckDB, columns matched by name. The engine's Iceberg
 * extension is not among the npm packages, so its Parquet reader takes the list of live files from the oracle.
 */
export async function openDuckdb(bucket: Bucket, tablePrefix: string, options: ReadOptions = {}): Promise<DuckdbTable> {
  const table = await readTable(bucket, tablePrefix, { snapshots: 'current', ...options });
  const state = snapshotState(table);
  const entries = state === undefined ? [] : liveEntries(state);
  const folder = mkdtempSync(join(tmpdir(), 'duckdb-'));
  const paths: string[] = [];
  for (const [i, { dataFile }] of entries.entries()) {
    const key = table.keyOf(dataFile.filePath);
    const bytes = key === null ? null : await table.bucket.get(key);
    if (bytes === null) throw new Error(`data file missing: ${dataFile.filePath}`);
    paths.push(join(folder, `${i}.parquet`));
    writeFileSync(paths[i], bytes);
  }
  const instance = await DuckDBInstance.create(':memory:');
  const connection = await instance.connect();
  const list = paths.map((path) => `'${path}'`).join(', ');
  await connection.run("SET TimeZone = 'UTC'");
  if (paths.length > 0)
    await connection.run(
      `CREATE VIEW live AS SELECT * FROM read_parquet([${list}], union_by_name = true, hive_partitioning = false)`,
    );
  return {
    folder,
    query: async (sql) => {
      const reader = await connection.runAndReadAll(sql);
      return reader.getRowObjects().map((row) => native(row) as Row);
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** All live rows as DuckDB reads them. */
export async function duckdbRows(bucket: Bucket, tablePrefix: string, options: ReadOptions = {}): Promise<Row[]> {
  const table = await openDuckdb(bucket, tablePrefix, options);
  try {
    return await table.query('SELECT * FROM live');
  } finally {
    table.close();
  }
}

function native(value: unknown): unknown {
  if (value instanceof DuckDBTimestampTZValue || value instanceof DuckDBTimestampValue) return value.micros;
  if (value instanceof DuckDBTimeValue) return value.micros;
  if (value instanceof DuckDBDateValue) return value.days;
  if (value instanceof DuckDBDecimalValue) return value.value;
  if (value instanceof DuckDBUUIDValue) return value.toString();
  if (value instanceof DuckDBBlobValue) return Uint8Array.from(value.bytes);
  if (value instanceof DuckDBListValue) return value.items.map(native);
  if (value instanceof DuckDBStructValue) return native(value.entries);
  if (value instanceof DuckDBMapValue) return value.entries.map((entry) => [native(entry.key), native(entry.value)]);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, native(member)]));
}
