import type { CompactionStatus, LeftAloneFiles, SliceReport } from '../engine/compactor.ts';
import type { IndexReport } from '../engine/index-rebuild.ts';
import type { MaintenanceReport, Outcome } from '../engine/maintenance.ts';
import type { SweepReport } from '../engine/orphan-sweep.ts';
import type { RetentionReport } from '../engine/retention.ts';
import { type ChangedView, changedView, type ExpireView, expireView } from './admin-views.ts';
import { type FailureView, failureView } from './views.ts';

/** Answers about maintenance. 64-bit integers are text. Times are milliseconds since 1970. */

/** One run of files that were, or would be, merged. */
export interface SliceView {
  /** Values of the partition, as text. */
  partition: string[];
  /** `tier`: enough small files of one size; `cold`: data has moved on; `full`: it was asked for. */
  reason: SliceReport['reason'];
  files: number;
  bytes: number;
  rows: string;
  /** Null in a dry run. */
  made: { files: number; bytes: number; rows: string; duplicates: number } | null;
}

/** Small files that are not merged here. */
export interface LeftAloneView {
  reason: LeftAloneFiles['reason'];
  files: number;
  bytes: number;
}

/** What a step of maintenance did, or what kept it from that. */
export interface StepView<T> {
  error: { type: string; message: string } | null;
  report: T | null;
}

export interface RetentionStepView extends ChangedView {
  /** Partitions that end at or before this time go; null: the table keeps all. */
  before_ms: number | null;
  files: number;
  rows: string;
  bytes: string;
  partitions: number;
}

/** The last-value index of a table that has lost it. */
export interface IndexStepView extends ChangedView {
  /** `kept`: nothing to do; `needed`: a dry run; `made`; `impossible`: see `reason`. */
  state: IndexReport['state'];
  reason: IndexReport['reason'];
  /** Of an index that was made; files looked through for it. */
  series: number;
  files: number;
}

export interface SweepStepView {
  listed: number;
  young: number;
  other: number;
  orphans: number;
  bytes: number;
  /** Some of them, below the table's folder. */
  sample: string[];
  erase_ms: number | null;
  /** For `sweep_after` of the next request; null: the whole folder was looked at. */
  next: string | null;
}

export interface MaintainView extends ChangedView {
  dry_run: boolean;
  /** Of compaction. */
  slices: SliceView[];
  /** Runs that are left for another request. */
  remaining: number;
  left_alone: LeftAloneView[];
  /** Null: not asked for. */
  steps: {
    retention: StepView<RetentionStepView> | null;
    compact: StepView<ChangedView> | null;
    index: StepView<IndexStepView> | null;
    expire: StepView<ExpireView> | null;
    erase: StepView<{ keys: number; kept: number; uploads: number; remaining: number }> | null;
    sweep: StepView<SweepStepView> | null;
  };
}

/** How the merging of small files stands in this incarnation. */
export interface CompactionView {
  last: (SliceView & { at_ms: number }) | null;
  /** Failed tries since the last that went through, and when the next may start. */
  failures: number;
  retry_ms: number;
  last_error: FailureView | null;
  left_alone: LeftAloneView[];
}

export function maintainView(report: MaintenanceReport, dryRun: boolean): MaintainView {
  const compacted = report.compact?.report ?? null;
  return {
    ...changedView(report),
    dry_run: dryRun,
    slices: compacted?.slices.map(sliceView) ?? [],
    remaining: compacted?.remaining ?? 0,
    left_alone: compacted?.leftAlone ?? [],
    steps: {
      retention: stepView(report.retention, retentionStepView),
      compact: stepView(report.compact, changedView),
      index: stepView(report.index, indexStepView),
      expire: stepView(report.expire, (expired) => expireView(expired, dryRun)),
      erase: stepView(report.erase, (erased) => erased),
      sweep: stepView(report.sweep, sweepStepView),
    },
  };
}

function stepView<T, V>(outcome: Outcome<T> | null, view: (report: T) => V): StepView<V> | null {
  if (outcome === null) return null;
  if (outcome.error === null) return { error: null, report: view(outcome.report) };
  const { type, message } = outcome.error;
  return { error: { type, message }, report: null };
}

function retentionStepView(report: RetentionReport): RetentionStepView {
  const { cutoff, files, rows, bytes, partitions } = report;
  return {
    ...changedView(report),
    before_ms: cutoff === null ? null : Number(cutoff / 1000n),
    files,
    rows: rows.toString(),
    bytes: bytes.toString(),
    partitions,
  };
}

function indexStepView(report: IndexReport): IndexStepView {
  const { state, reason, series, files } = report;
  return { ...changedView(report), state, reason, series, files };
}

function sweepStepView({ listed, young, other, orphans, bytes, sample, eraseMs, next }: SweepReport): SweepStepView {
  return { listed, young, other, orphans, bytes, sample, erase_ms: eraseMs, next };
}

export function compactionView({ last, failures, retryMs, error, leftAlone }: CompactionStatus): CompactionView {
  return {
    last: last === null ? null : { ...sliceView(last), at_ms: last.atMs },
    failures,
    retry_ms: retryMs,
    last_error: failureView(error),
    left_alone: leftAlone,
  };
}

function sliceView({ partition, reason, files, bytes, rows, made }: SliceReport): SliceView {
  return {
    partition: [...partition],
    reason,
    files,
    bytes,
    rows: rows.toString(),
    made: made === null ? null : { ...made, rows: made.rows.toString() },
  };
}
