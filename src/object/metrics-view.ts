import type { LedgerState, Mark } from '../engine/ports.ts';
import type { StoreUsage } from '../store/metered.ts';
import type { CountsView } from './counts.ts';

/** What a table's object can say of itself without asking the store. Times are milliseconds since 1970. */
export interface MetricsView extends CountsView {
  buffer: { batches: number; rows: number; bytes: number; ageMs: number };
  lastSequence: number;
  /** Failed runs of the open intent; null when none is open. */
  intentFailures: number | null;
  lastCommitMs: number | null;
  /** Version that the object knows, and the one that the pointer is known to have reached. */
  version: number | null;
  hintedVersion: number;
  /** Of the newest metadata that this incarnation has read; null before it has. */
  snapshots: number | null;
  doomed: { keys: number; dueMs: number | null };
  expiry: { dueMs: number | null; failures: number };
  parkedApps: number;
  startedMs: number;
  marks: Partial<Record<Mark, number>>;
  store: StoreUsage;
}

export interface MetricsParts {
  state: LedgerState;
  nowMs: number;
  snapshots: number | null;
  expiry: MetricsView['expiry'];
  parkedApps: number;
  startedMs: number;
  marks: Partial<Record<Mark, number>>;
  store: StoreUsage;
  counts: CountsView;
}

/** Null for an object that has never had anything to do with a table. */
export function metricsView({ state, nowMs, counts, ...rest }: MetricsParts): MetricsView | null {
  if (state.table === null && state.lastSequence === 0) return null;
  const { frames, rows, bytes, oldestMs } = state.buffer;
  return {
    buffer: { batches: frames, rows, bytes, ageMs: oldestMs === null ? 0 : Math.max(0, nowMs - oldestMs) },
    lastSequence: state.lastSequence,
    intentFailures: state.intent?.failures ?? null,
    lastCommitMs: state.lastCommit?.committedMs ?? null,
    version: state.table?.version ?? null,
    hintedVersion: state.hintedVersion,
    doomed: state.doomed,
    ...counts,
    ...rest,
  };
}
