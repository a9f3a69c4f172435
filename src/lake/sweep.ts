import { CONNECTIONS_MAX, SWEEP_TABLES_MAX } from '../core/base/limits.ts';
import type { LakeTables } from './lake.ts';

export interface SweepReport {
  tables: number;
  /** Tables whose object did not answer; the next sweep asks again. */
  failed: { table: string; reason: string }[];
  /** Where the next sweep begins; null: from the start. */
  next: string | null;
}

/**
 * Asks each table's object to look whether something is due: alarms have been lost in failovers and deployments, and an
 * object that nobody calls would sleep on with rows in its buffer. Costs one listing and one call a table; an object
 * without work makes no request.
 */
export async function sweep(
  tables: LakeTables,
  wake: (namespace: string, table: string) => Promise<unknown>,
  after: string | null = null,
): Promise<SweepReport> {
  const names = await tables.names(after, SWEEP_TABLES_MAX);
  const report: SweepReport = { tables: names.length, failed: [], next: null };
  let next = 0;
  const lane = async () => {
    while (next < names.length) {
      const { namespace, table } = names[next++];
      try {
        await wake(namespace, table);
      } catch (error) {
        report.failed.push({
          table: `${namespace}/${table}`,
          reason: error instanceof Error ? error.message : String(error),
        });
      }
    }
  };
  await Promise.all(Array.from({ length: CONNECTIONS_MAX }, lane));
  const last = names.at(-1);
  if (names.length === SWEEP_TABLES_MAX && last !== undefined) report.next = `${last.namespace}/${last.table}`;
  return report;
}
