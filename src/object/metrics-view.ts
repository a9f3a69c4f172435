import type { FaultKind } from '../core/maintain/table-fault.ts';
import type { KnownFault } from '../engine/faults.ts';
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
  /** What the object does by itself: when it is due next (null: never, as things are), and failures in a row. */
  upkeep: { step: Upkeep; dueMs: number | null; failures: number }[];
  /** When the last sweep of orphans ended. */
  sweptMs: number | null;
  /** What work found to be wrong with the table's files. */
  faults: { kind: FaultKind; count: number }[];
  parkedApps: number;
  startedMs: number;
  marks: Partial<Record<Mark, number>>;
  store: StoreUsage;
}

/** As steps of maintenance are named. */
export type Upkeep = 'retention' | 'compact' | 'expire' | 'erase' | 'sweep';

export interface MetricsParts {
  state: LedgerState;
  nowMs: number;
  snapshots: number | null;
  upkeep: MetricsView['upkeep'];
  faults: readonly KnownFault[];
  parkedApps: number;
  startedMs: number;
  marks: Partial<Record<Mark, number>>;
  store: StoreUsage;
  counts: CountsView;
}

/** Null for an object that has never had anything to do with a table. */
export function metricsView({ state, nowMs, counts, faults, ...rest }: MetricsParts): MetricsView | null {
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
    sweptMs: state.sweptMs,
    faults: [...Map.groupBy(faults, ({ kind }) => kind)].map(([kind, of]) => ({ kind, count: of.length })),
    ...counts,
    ...rest,
  };
}
