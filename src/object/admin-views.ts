import type { Detail } from '../core/base/errors.ts';
import { SNAPSHOTS_PAGE } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { currentOf } from '../core/commit/make-files.ts';
import type { PartitionSpec, Schema, Snapshot, SnapshotRef, TableMetadata } from '../core/iceberg/types.ts';
import type { ExpireReport } from '../engine/expirer.ts';
import type { Changed } from '../engine/table-changes.ts';
import type { FilesChanged } from '../engine/table-files.ts';

/** Answers to what administrators ask of a table. 64-bit integers are text. Times are milliseconds since 1970. */

/** What every change is answered with: whether a version was written, and the version that holds it. */
export interface ChangedView {
  changed: boolean;
  version: number;
}

export interface PropertiesView {
  version: number;
  properties: Record<string, string>;
}

export interface SchemaView {
  version: number;
  schema: Schema;
}

export interface SpecView {
  version: number;
  /** The default: what new rows are written by. */
  partition_spec: PartitionSpec;
}

export interface SnapshotView {
  snapshot_id: string;
  parent_snapshot_id: string | null;
  sequence_number: string;
  timestamp_ms: number;
  schema_id: number | null;
  /** Branches and tags that stand at it. */
  refs: string[];
  summary: Record<string, string>;
}

export interface SnapshotsView {
  version: number;
  current_snapshot_id: string | null;
  /** Newest first. */
  snapshots: SnapshotView[];
  /** Sequence number to ask for the next page with; null on the last. */
  next_before: string | null;
}

export interface RefView {
  name: string;
  type: 'branch' | 'tag';
  snapshot_id: string;
  min_snapshots_to_keep?: number;
  max_snapshot_age_ms?: number;
  max_ref_age_ms?: number;
}

export interface ExpireView extends ChangedView {
  dry_run: boolean;
  refs: string[];
  snapshots: string[];
  retained_snapshots: number;
  /** Files queued for deletion; null: telling took too many reads, they are left to a sweep. */
  files: number | null;
  erase_ms: number | null;
  metadata_files: number;
}

export interface FilesView extends ChangedView {
  snapshot_id: string | null;
  operation: string | null;
  added: CountsView;
  removed: CountsView;
  changed_partitions: number;
  manifests: { created: number; replaced: number; kept: number };
  /** Files that the filter meets without covering them: they were left alone. */
  overlapping: { files: number; rows: string };
  /** Why nothing was done. */
  reason?: string;
  detail?: Record<string, Detail>;
}

export interface CountsView {
  files: number;
  rows: string;
  bytes: string;
}

export function changedView({ base, changed }: Changed): ChangedView {
  return { changed, version: base.version };
}

export function propertiesView({ version, metadata }: IcebergBase): PropertiesView {
  return { version, properties: metadata.properties };
}

export function schemaView({ version, metadata }: IcebergBase): SchemaView {
  return { version, schema: currentOf(metadata).schema };
}

export function specView({ version, metadata }: IcebergBase): SpecView {
  return { version, partition_spec: currentOf(metadata).spec };
}

export function refViews(metadata: TableMetadata): RefView[] {
  return Object.entries(metadata.refs)
    .map(([name, ref]) => refView(name, ref))
    .sort((a, b) => (a.name < b.name ? -1 : 1));
}

export function refView(name: string, ref: SnapshotRef): RefView {
  const min = ref['min-snapshots-to-keep'];
  const age = ref['max-snapshot-age-ms'];
  const refAge = ref['max-ref-age-ms'];
  return {
    name,
    type: ref.type,
    snapshot_id: ref['snapshot-id'].toString(),
    ...(min === undefined ? {} : { min_snapshots_to_keep: min }),
    ...(age === undefined ? {} : { max_snapshot_age_ms: age }),
    ...(refAge === undefined ? {} : { max_ref_age_ms: refAge }),
  };
}

/**
 * One page, newest first, of the snapshots whose sequence number is below `before` (null: all). Snapshots of one number share
 * a page, which may be longer for them: those that format version 1 has left have none, and so all the same.
 */
export function snapshotsView(base: IcebergBase, limit: number, before: bigint | null): SnapshotsView {
  const { metadata, version } = base;
  const most = Math.min(limit, SNAPSHOTS_PAGE.max);
  const older = metadata.snapshots
    .filter((snapshot) => before === null || snapshot['sequence-number'] < before)
    .reverse()
    .sort((a, b) => Number(b['sequence-number'] - a['sequence-number']));
  const last = older[most - 1]?.['sequence-number'];
  const page = older.filter((snapshot, i) => i < most || snapshot['sequence-number'] === last);
  const current = metadata['current-snapshot-id'];
  return {
    version,
    current_snapshot_id: current?.toString() ?? null,
    snapshots: page.map((snapshot) => snapshotView(metadata, snapshot)),
    next_before: older.length > page.length ? page[page.length - 1]['sequence-number'].toString() : null,
  };
}

function snapshotView(metadata: TableMetadata, snapshot: Snapshot): SnapshotView {
  const id = snapshot['snapshot-id'];
  return {
    snapshot_id: id.toString(),
    parent_snapshot_id: snapshot['parent-snapshot-id']?.toString() ?? null,
    sequence_number: snapshot['sequence-number'].toString(),
    timestamp_ms: snapshot['timestamp-ms'],
    schema_id: snapshot['schema-id'] ?? null,
    refs: Object.entries(metadata.refs)
      .filter(([, ref]) => ref['snapshot-id'] === id)
      .map(([name]) => name),
    summary: snapshot.summary,
  };
}

export function expireView(report: ExpireReport, dryRun: boolean): ExpireView {
  const { metadata } = report.base;
  const gone = report.changed ? 0 : report.snapshotIds.length;
  return {
    ...changedView(report),
    dry_run: dryRun,
    refs: report.refs,
    snapshots: report.snapshotIds.map(String),
    retained_snapshots: metadata.snapshots.length - gone,
    files: report.files,
    erase_ms: report.eraseMs,
    metadata_files: report.metadataFiles,
  };
}

export function filesView({ base, changed, report, reason }: FilesChanged): FilesView {
  const none = { files: 0, rows: 0n, bytes: 0n };
  const counts = ({ files, rows, bytes }: typeof none): CountsView => ({
    files,
    rows: rows.toString(),
    bytes: bytes.toString(),
  });
  return {
    changed,
    version: base.version,
    snapshot_id: report?.snapshotId.toString() ?? null,
    operation: report?.operation ?? null,
    added: counts(report?.added ?? none),
    removed: counts(report?.removed ?? none),
    changed_partitions: report?.changedPartitions ?? 0,
    manifests: report?.manifests ?? { created: 0, replaced: 0, kept: 0 },
    overlapping: { files: report?.overlapping.files ?? 0, rows: (report?.overlapping.rows ?? 0n).toString() },
    ...(reason === null ? {} : { reason: reason.message, detail: reason.detail }),
  };
}
