import type { Receipt } from '../core/batch/receipt.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { indexOf, seriesOf } from '../core/commit/last-value.ts';
import { currentOf } from '../core/commit/make-files.ts';
import type { Proposal } from '../core/iceberg/proposal.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import { SUMMARY_KEYS, totalsOf } from '../core/iceberg/summary.ts';
import type { PartitionSpec, Schema, SortOrder } from '../core/iceberg/types.ts';
import type { FaultKind } from '../core/maintain/table-fault.ts';
import { type TableSettings, tableSettings } from '../core/table/properties.ts';
import type { AppStatus } from '../engine/apps.ts';
import type { ChoreState, CommitRecord, ErrorRecord, Mark } from '../engine/ports.ts';
import type { StoreUsage } from '../store/metered.ts';
import type { CompactionView } from './maintain-views.ts';

/** What the rows endpoint needs to turn a body into a frame. */
export interface IngestView {
  tableUuid: string;
  schema: Schema;
  /** What batches that wait ask of the schema: rows are read as if it had it. Absent: nothing. */
  proposal?: Proposal;
  spec: PartitionSpec;
  settings: TableSettings;
}

/** The newest rows of what waits in the buffer, as a frame's columns. */
export interface WaitingView {
  tableUuid: string;
  /** Rows that wait. */
  rows: number;
  schema: Schema;
  body: Uint8Array;
}

/** A table as its owner sees it. 64-bit integers are text. Times are milliseconds since 1970. */
export interface TableView {
  location: string;
  table_uuid: string;
  version: number;
  schema: Schema;
  partition_spec: PartitionSpec;
  sort_order: SortOrder;
  properties: Record<string, string>;
  snapshot: {
    snapshot_id: string;
    sequence_number: string;
    timestamp_ms: number;
    summary: Record<string, string>;
  } | null;
}

/** Upkeep that the object does by itself: when it is due next, and what kept the last try from it. */
export interface ChoreView {
  due_ms: number | null;
  failures: number;
  last_error: FailureView | null;
}

/** What kept work from being done, and when. */
export interface FailureView {
  type: string;
  message: string;
  at_ms: number;
}

/** The buffer and what happens to it. */
export interface StatusView {
  ledger_id: string;
  last_sequence: number;
  buffer: { batches: number; rows: number; bytes: number; oldest_ms: number | null; age_ms: number | null };
  intent: {
    commit_id: string;
    rows: number;
    first_sequence: number;
    last_sequence: number;
    failures: number;
    retry_ms: number;
  } | null;
  last_commit: { snapshot_id: string | null; version: number; committed_ms: number; rows: number } | null;
  last_error: FailureView | null;
  hinted_version: number;
  /** Files queued for deletion after an expiry, and when the first may go. */
  doomed: { keys: number; due_ms: number | null };
  /** Deleting them: a try that failed is made again, later each time. */
  erasing: ChoreView;
  /** When snapshots expire next by the table's properties, null: none do; and what kept the last try from it. */
  expiry: ChoreView;
  /** When the next partition falls past the table's retention, null: none ever does. */
  retention: ChoreView;
  /** Looks for files that nothing refers to, as far as the table asks for them; and when the last one ended. */
  sweep: ChoreView & { swept_ms: number | null };
  /** When each piece of work is due by itself, null: never, as things are; and the first of them, for which the alarm is set. */
  schedule: {
    next_ms: number | null;
    flush_ms: number | null;
    retention_ms: number | null;
    compaction_ms: number | null;
    expiry_ms: number | null;
    erasing_ms: number | null;
    sweep_ms: number | null;
  };
  compaction: CompactionView;
  /** Whether the newest row of each series is kept, and why not; null: there is no such table, or it has no time column. */
  last_value_index: { state: 'kept' | 'empty' | 'none'; reason: string | null; location: string | null } | null;
  /** What work on the table found to be wrong with its files. Nothing is deleted because of it. */
  faults: { kind: FaultKind; what: string; since_ms: number }[];
  incarnation: {
    started_ms: number;
    /** What this incarnation found when it began. */
    found: { open_intent: boolean; buffered_batches: number };
    /** Why the last run ended early; null when it went through. */
    last_run_error: FailureView | null;
    marks: Partial<Record<Mark, number>>;
    /** Requests to the bucket, by operation and billing class. */
    store: StoreUsage;
  };
}

export interface ReceiptView {
  receipt: string;
  state: Receipt['state'];
  snapshot_id?: string | null;
  version?: number;
  committed_ms?: number;
  type?: string;
  message?: string;
}

/** A producer's app. Epochs are 64-bit, hence text. */
export interface AppView {
  app: string;
  committed_epoch: string | null;
  accepted_epoch: string | null;
  parked: { epoch: string; type: string; message: string; at_ms: number; batches_behind: number } | null;
  retiring: boolean;
}

export function lastValueView(base: IcebergBase | null): StatusView['last_value_index'] {
  if (base === null || seriesOf(currentOf(base.metadata).schema, tableSettings(base.metadata.properties)) === null)
    return null;
  const summary = currentSnapshot(base.metadata)?.summary;
  if (summary === undefined || totalsOf(summary)?.records === 0n)
    return { state: 'empty', reason: null, location: null };
  const location = indexOf(base.metadata);
  if (location !== null) return { state: 'kept', reason: null, location };
  return { state: 'none', reason: summary[SUMMARY_KEYS.noIndex] ?? 'not-carried', location };
}

export function choreView({ dueMs, failures, lastError }: ChoreState): ChoreView {
  return { due_ms: dueMs, failures, last_error: failureView(lastError) };
}

export function failureView(error: ErrorRecord | null): FailureView | null {
  return error === null ? null : { type: error.type, message: error.message, at_ms: error.atMs };
}

export function commitView(commit: CommitRecord | null): StatusView['last_commit'] {
  if (commit === null) return null;
  const { snapshotId, version, committedMs, rows } = commit;
  return { snapshot_id: snapshotId, version, committed_ms: committedMs, rows };
}

export function appView({ app, committed, accepted, parked, retiring }: AppStatus): AppView {
  return {
    app,
    committed_epoch: committed?.toString() ?? null,
    accepted_epoch: accepted?.toString() ?? null,
    parked:
      parked === null
        ? null
        : {
            epoch: parked.epoch.toString(),
            type: parked.type,
            message: parked.message,
            at_ms: parked.atMs,
            batches_behind: parked.behind,
          },
    retiring,
  };
}

export function ingestView({ metadata }: IcebergBase, proposal: Proposal | null = null): IngestView {
  const { schema, spec } = currentOf(metadata);
  return {
    tableUuid: metadata['table-uuid'],
    schema,
    ...(proposal === null ? {} : { proposal }),
    spec,
    settings: tableSettings(metadata.properties),
  };
}

export function tableView(base: IcebergBase): TableView {
  const { schema, spec, sortOrder } = currentOf(base.metadata);
  const snapshot = currentSnapshot(base.metadata);
  return {
    location: base.metadata.location,
    table_uuid: base.metadata['table-uuid'],
    version: base.version,
    schema,
    partition_spec: spec,
    sort_order: sortOrder,
    properties: base.metadata.properties,
    snapshot:
      snapshot === null
        ? null
        : {
            snapshot_id: snapshot['snapshot-id'].toString(),
            sequence_number: snapshot['sequence-number'].toString(),
            timestamp_ms: snapshot['timestamp-ms'],
            summary: snapshot.summary,
          },
  };
}

export function receiptView(id: string, receipt: Receipt): ReceiptView {
  switch (receipt.state) {
    case 'buffered':
      return { receipt: id, state: 'buffered' };
    case 'committed':
      return {
        receipt: id,
        state: 'committed',
        snapshot_id: receipt.snapshotId,
        version: receipt.version,
        committed_ms: receipt.committedMs,
      };
    case 'refused':
    case 'parked':
      return { receipt: id, state: receipt.state, type: receipt.type, message: receipt.message };
  }
}
