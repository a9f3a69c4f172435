/** What a merge left, held against its inputs by DuckDB, which reads both for itself. */
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { mapBucket } from '../test/oracle/bucket.ts';
import { openDuckdb } from '../test/oracle/duckdb.ts';
import type { StoredObject } from './support/bucket.ts';

/** What was found. All but the rows must be none. */
export interface Checked {
  rows: number;
  /** Rows of the table that no input has, or that another one of their key takes the place of. */
  tooMany: number;
  /** Rows that should be there and are not. */
  missing: number;
  /** Rows of a file that are not behind the one before, by series and time. */
  outOfOrder: number;
}

/**
 * Compares the live rows of a table, value by value, with those of the files it was made of (the oldest first), of each key
 * the row of the latest file; and looks at the order of the rows in each file.
 */
export async function check(
  objects: ReadonlyMap<string, Pick<StoredObject, 'bytes'>>,
  inputs: readonly Uint8Array[],
): Promise<Checked> {
  const anchor = [...objects.keys()].find((key) => key.endsWith('/metadata/v1.metadata.json')) as string;
  const bucket = mapBucket(new Map([...objects].map(([key, { bytes }]) => [key, bytes])));
  const folder = mkdtempSync(join(tmpdir(), 'sluice-inputs-'));
  const duckdb = await openDuckdb(bucket, anchor.slice(0, anchor.indexOf('/metadata/')));
  try {
    for (const [n, bytes] of inputs.entries()) {
      writeFileSync(join(folder, `${String(n).padStart(4, '0')}.parquet`), bytes);
    }
    const read = `read_parquet('${folder}/*.parquet', union_by_name = true, hive_partitioning = false, filename = true)`;
    await duckdb.query(
      `CREATE TABLE wanted AS SELECT * EXCLUDE (filename) FROM ${read}
         QUALIFY row_number() OVER (PARTITION BY device_id, time ORDER BY filename DESC) = 1`,
    );
    // Columns in one order on both sides: rows are compared as a whole.
    const columns = (await duckdb.query('DESCRIBE wanted')).map((row) => `"${row['column_name']}"`).join(', ');
    const without = async (from: string, of: string): Promise<number> =>
      count(
        await duckdb.query(
          `SELECT count(*) AS n FROM (SELECT ${columns} FROM ${from} EXCEPT ALL SELECT ${columns} FROM ${of})`,
        ),
      );
    const [tooMany, missing] = [await without('live', 'wanted'), await without('wanted', 'live')];
    const outOfOrder = count(
      await duckdb.query(
        `SELECT count(*) AS n FROM (
           SELECT device_id, time, lag(device_id) OVER w AS device_before, lag(time) OVER w AS time_before
             FROM read_parquet('${duckdb.folder}/*.parquet', filename = true, file_row_number = true, union_by_name = true)
             WINDOW w AS (PARTITION BY filename ORDER BY file_row_number))
         WHERE encode(device_id) < encode(device_before) OR (device_id = device_before AND time <= time_before)`,
      ),
    );
    const rows = count(await duckdb.query('SELECT count(*) AS n FROM live'));
    return { rows, tooMany, missing, outOfOrder };
  } finally {
    duckdb.close();
    rmSync(folder, { recursive: true, force: true });
  }
}

function count(rows: readonly Record<string, unknown>[]): number {
  return Number(rows[0]['n']);
}

/** Throws when a merge left anything but what it should. */
export function assertChecked(found: Checked, rowsWanted: number): void {
  const { rows, tooMany, missing, outOfOrder } = found;
  if (rows !== rowsWanted || tooMany + missing + outOfOrder > 0)
    throw new Error(`${rowsWanted} rows should be in the table: ${JSON.stringify(found)}`);
}
