import { DuckDBInstance } from '@duckdb/node-api';

/** DuckDB in memory, offline: reads the sources, and the files of the tables. */
export interface Engine {
  /** Rows of a query. Integers beyond the safe ones as bigint. */
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Rows of a query as JSON texts, `batchRows` at a time, in order; the result is never held whole. */
  lines(sql: string, batchRows: number): AsyncGenerator<string[]>;
  close(): void;
}

export async function openEngine(): Promise<Engine> {
  const instance = await DuckDBInstance.create(':memory:', {
    autoinstall_known_extensions: 'false',
    autoload_known_extensions: 'false',
    threads: '2',
  });
  const connection = await instance.connect();
  return {
    query: async (sql) => {
      const rows = (await connection.runAndReadAll(sql)).getRowObjectsJS();
      return rows.map((row) => Object.fromEntries(Object.entries(row).map(([name, value]) => [name, plain(value)])));
    },
    lines: async function* (sql, batchRows) {
      // A result that is still being read keeps its connection.
      const own = await instance.connect();
      try {
        // Timestamps in ISO 8601; DuckDB's own text of them has a space.
        const rows = `SELECT * REPLACE (strftime(date, '%Y-%m-%dT%H:%M:%S.%f') AS date) FROM (${sql})`;
        const result = await own.stream(`SELECT to_json(line)::VARCHAR FROM (${rows}) AS line`);
        let batch: string[] = [];
        for (;;) {
          const chunk = await result.fetchChunk();
          if (chunk === null || chunk.rowCount === 0) break;
          for (const line of chunk.getColumnValues(0)) {
            batch.push(String(line));
            if (batch.length < batchRows) continue;
            yield batch;
            batch = [];
          }
        }
        if (batch.length > 0) yield batch;
      } finally {
        own.closeSync();
      }
    },
    close: () => {
      connection.closeSync();
      instance.closeSync();
    },
  };
}

/** Whole numbers as numbers where they are exact. */
function plain(value: unknown): unknown {
  const isSafe = typeof value === 'bigint' && Number.isSafeInteger(Number(value));
  return isSafe ? Number(value) : value;
}
