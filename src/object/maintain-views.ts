import type { CompactionStatus, LeftAloneFiles, MaintainReport, SliceReport } from '../engine/compactor.ts';
import type { ErrorRecord } from '../engine/ports.ts';
import { type ChangedView, changedView } from './admin-views.ts';

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

export interface MaintainView extends ChangedView {
  dry_run: boolean;
  slices: SliceView[];
  /** Runs that are left for another request. */
  remaining: number;
  left_alone: LeftAloneView[];
}

/** How the merging of small files stands in this incarnation. */
export interface CompactionView {
  last: (SliceView & { at_ms: number }) | null;
  /** Failed tries since the last that went through, and when the next may start. */
  failures: number;
  retry_ms: number;
  last_error: ErrorRecord | null;
  left_alone: LeftAloneView[];
}

export function maintainView(report: MaintainReport, dryRun: boolean): MaintainView {
  return {
    ...changedView(report),
    dry_run: dryRun,
    slices: report.slices.map(sliceView),
    remaining: report.remaining,
    left_alone: report.leftAlone,
  };
}

export function compactionView({ last, failures, retryMs, error, leftAlone }: CompactionStatus): CompactionView {
  return {
    last: last === null ? null : { ...sliceView(last), at_ms: last.atMs },
    failures,
    retry_ms: retryMs,
    last_error: error,
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
