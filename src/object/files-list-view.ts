import { FILE_PARTITIONS_PAGE } from '../core/base/limits.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import type { FileCounts } from '../core/maintain/file-statistics.ts';
import { tierTop } from '../core/maintain/tiers.ts';
import type { FileListing } from '../engine/file-listing.ts';

/** Live data files counted together. 64-bit integers are text. */
export interface FileCountsView {
  files: number;
  rows: string;
  bytes: string;
  /** Those that compaction would merge with others. */
  small_files: number;
  /** How many files are smaller than this, and not counted before; tiers without files are left out. */
  tiers: { below_bytes: number; files: number }[];
}

export interface FileListView extends FileCountsView {
  version: number;
  snapshot_id: string | null;
  /** Size at which files roll over, and below which a file is small. */
  target_bytes: number;
  small_below_bytes: number;
  /** Files of deleted rows, which other engines write. */
  delete_files: number;
  partition_count: number;
  /** In the order of their labels. */
  partitions: (FileCountsView & { spec_id: number; partition: Record<string, string | null> })[];
  /** Where the next page begins; null on the last. */
  next_offset: number | null;
}

/** One page of partitions from number `offset`, and the table whole. */
export function fileListView(listing: FileListing, limit: number, offset: number): FileListView {
  const { base, statistics, deleteFiles, targetBytes, smallBelow } = listing;
  const { all, partitions } = statistics;
  const most = Math.min(limit, FILE_PARTITIONS_PAGE.max);
  const page = partitions.slice(offset, offset + most);
  return {
    version: base.version,
    snapshot_id: currentSnapshot(base.metadata)?.['snapshot-id'].toString() ?? null,
    target_bytes: targetBytes,
    small_below_bytes: smallBelow,
    ...countsView(all),
    delete_files: deleteFiles,
    partition_count: partitions.length,
    partitions: page.map((counts) => ({
      spec_id: counts.specId,
      partition: counts.partition,
      ...countsView(counts),
    })),
    next_offset: offset + page.length < partitions.length ? offset + page.length : null,
  };
}

function countsView({ files, rows, bytes, smallFiles, tiers }: FileCounts): FileCountsView {
  return {
    files,
    rows: rows.toString(),
    bytes: bytes.toString(),
    small_files: smallFiles,
    tiers: tiers.flatMap((count, tier) => (count === 0 ? [] : [{ below_bytes: tierTop(tier), files: count }])),
  };
}
