import { CONNECTIONS_MAX, SWEEP_LISTED_MAX, SWEEP_TABLES_MAX } from '../core/base/limits.ts';
import type { LakeTables } from './lake.ts';

export interface SweepReport {
  /** Tables of the lake, and those of them that were called. */
  tables: number;
  woken: number;
  /** Tables whose object did not answer; another sweep asks again. */
  failed: { table: string; reason: string }[];
}

/**
 * Asks each table's object to look whether something is due: alarms have been lost in failovers and deployments, and an
 * object that nobody calls would sleep on with rows in its buffer. Costs one listing and one call a table; an object
 * without work makes no request and writes nothing.
 *
 * Where there are more tables than one sweep may call, it calls a part of them, chosen by `draw` (any whole number): by
 * chance, so that no rhythm of the sweeps leaves one out for ever.
 */
export async function sweep(
  tables: Pick<LakeTables, 'names'>,
  wake: (namespace: string, table: string) => Promise<unknown>,
  draw: number,
): Promise<SweepReport> {
  const names = await tables.names(null, SWEEP_LISTED_MAX);
  const parts = Math.max(1, Math.ceil(names.length / SWEEP_TABLES_MAX));
  const called = names.filter((_, i) => i % parts === draw % parts);
  const report: SweepReport = { tables: names.length, woken: called.length, failed: [] };
  let next = 0;
  const lane = async () => {
    while (next < called.length) {
      const { namespace, table } = called[next++];
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
  return report;
}
