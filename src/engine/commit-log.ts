import type { Intent } from '../core/batch/intent.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { Operation } from '../core/commit/operation.ts';
import type { Found } from '../core/sink.ts';
import type { CommitResult } from './committer.ts';
import type { Clock, Exception } from './ports.ts';

/** One line of the log, about a table. */
export interface LogEvent {
  event: string;
  table: string;
  [member: string]: unknown;
}

/** How a run of an operation ended: as the committer says, or with an error that it does not know. */
export type CommitEnd = CommitResult<IcebergBase> | { outcome: 'failed'; error: unknown };

/** Told of every run of an operation when it ends. */
export type CommitObserver = (operation: Operation, end: CommitEnd, tookMs: number) => void;

export interface CommitLogPorts {
  clock: Clock;
  /** When the oldest buffered row was taken; null when none is. A commit's rows are still in the buffer when it is told. */
  oldestMs(): number | null;
  count(operation: Operation['kind'], outcome: CommitEnd['outcome'], lagMs: number | null): void;
  log(members: { event: string; [member: string]: unknown }): void;
}

/**
 * Counts the end of each run, and writes a line for it: `committed`, or `not-committed` with the reason. An append that is
 * to be tried again has a line of the writer's, which knows when.
 */
export function commitLog({ clock, oldestMs, count, log }: CommitLogPorts): CommitObserver {
  return (operation, end, tookMs) => {
    const { kind, commitId } = operation;
    const { outcome } = end;
    const isAppend = kind === 'append';
    const oldest = isAppend && outcome === 'committed' ? oldestMs() : null;
    const lagMs = oldest === null ? null : Math.max(0, clock.now() - oldest);
    count(kind, outcome, lagMs);
    const about = { operation: kind, commit_id: commitId, took_ms: tookMs };
    if (end.outcome === 'committed') {
      const { found, base, own } = end;
      const rows = operation.kind === 'append' ? { rows: operation.added.records.toString() } : {};
      log({
        event: 'committed',
        ...about,
        version: found.version,
        snapshot_id: found.snapshotId?.toString() ?? null,
        newest_version: base.version,
        // False: an earlier run had written it, and this one found it.
        own,
        ...rows,
        ...(lagMs === null ? {} : { lag_ms: lagMs }),
      });
      return;
    }
    const isTriedAgain = isAppend && (outcome === 'conflict' || outcome === 'unavailable' || outcome === 'unknown');
    if (outcome === 'again' || isTriedAgain) return;
    log({ event: 'not-committed', ...about, outcome, ...reasonOf(end) });
  };
}

function reasonOf(end: Exclude<CommitEnd, { outcome: 'committed' }>): { type?: string; message: string } {
  switch (end.outcome) {
    case 'again':
      return { message: end.reason };
    case 'nothing':
      return { message: end.message };
    case 'refused':
    case 'conflict':
      return { type: end.type, message: end.message };
    case 'unavailable':
    case 'unknown':
    case 'failed':
      return { message: end.error instanceof Error ? end.error.message : String(end.error) };
  }
}

/** An append that an incarnation before this one committed: nobody has told of it. */
export function foundLine({ commitId, rows }: Intent, { version, snapshotId }: Found): object {
  const about = { operation: 'append', commit_id: commitId, own: false };
  return { ...about, version, snapshot_id: snapshotId?.toString() ?? null, rows: String(rows) };
}

/** Batches that were taken and are not in the table, for one reason. `parked`: they wait for their app's owner. */
export interface Refusal {
  outcome: 'refused' | 'parked';
  type: string;
  message: string;
  batches: number;
  first_sequence?: number;
}

/** What a settled range left out, by reason: its batches share few. */
export function refusalsOf(exceptions: readonly Exception[]): Refusal[] {
  const found = new Map<string, Refusal>();
  for (const { sequence, settlement } of exceptions) {
    if (settlement.outcome === 'committed') continue;
    const { outcome, type, message } = settlement;
    const known = found.get(`${outcome} ${type}`);
    if (known === undefined)
      found.set(`${outcome} ${type}`, { outcome, type, message, batches: 1, first_sequence: sequence });
    else known.batches++;
  }
  return [...found.values()];
}
