import { CHORE_RETRY } from '../core/base/limits.ts';
import type { LogEvent } from './commit-log.ts';
import type { Tries } from './failures.ts';
import type { FaultSource } from './faults.ts';
import type { OpenTable } from './open-table.ts';
import type { Clock } from './ports.ts';

/** Scheduled upkeep of a table: what its tries have in common. */
export interface Upkeep {
  ports: { clock: Clock; log(event: LogEvent): void };
  table: OpenTable;
  tries: Tries;
  source: FaultSource;
  /** Of the log, when a try fails. */
  failed: { event: string };
}

/** What a try did, as the log tells it, and when the next one may begin. */
export interface Done {
  notBeforeMs: number;
  told: { event: string; [member: string]: unknown };
}

/**
 * One try; never throws. What fails stays due, later each time, and is told: as a fault of the table where it is one. What gets
 * through has met no fault. Null: nothing was to be done after all.
 */
export async function tryUpkeep(
  { ports: { clock, log }, table, tries, source, failed }: Upkeep,
  work: () => Promise<Done | null>,
): Promise<void> {
  const { location } = table.place;
  try {
    const done = await work();
    if (done === null) return;
    table.faults.found(source, [], clock.now());
    tries.succeeded(done.notBeforeMs);
    const { event, ...told } = done.told;
    log({ event, table: location, ...told });
  } catch (error) {
    table.faults.failed(source, error, clock.now());
    const told = tries.failed(error, clock.now(), CHORE_RETRY);
    log({ ...failed, table: location, ...told });
  }
}
