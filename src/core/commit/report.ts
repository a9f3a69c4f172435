import { own } from '../base/shape.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { Snapshot, Summary, TableMetadata } from '../iceberg/types.ts';
import type { MadeManifest } from './made-manifest.ts';

/** What a commit on files did, for its caller. Counts are small enough for doubles; bytes and rows stay bigint. */
export interface CommitReport {
  snapshotId: bigint;
  operation: Summary['operation'];
  added: { files: number; rows: bigint; bytes: bigint };
  removed: { files: number; rows: bigint; bytes: bigint };
  changedPartitions: number;
  /** `replaced`: of the parent, made anew; `kept`: of the parent, gone on as they were. */
  manifests: { created: number; replaced: number; kept: number };
  /** Files that a time range meets without covering them: left alone. */
  overlapping: { files: number; rows: bigint };
}

const OVERLAPPING_FILES = 'sluice.overlapping-files';
const OVERLAPPING_ROWS = 'sluice.overlapping-rows';

/** Keys of the summary from which the report is read back: so it can be told also when the answer was lost. */
export function reportKeys(given: {
  made: readonly MadeManifest[];
  replaced: number;
  kept: number;
  overlapping?: { files: number; records: bigint };
}): Record<string, string> {
  const { overlapping } = given;
  return {
    'manifests-created': String(given.made.length),
    'manifests-replaced': String(given.replaced),
    'manifests-kept': String(given.kept),
    ...(overlapping === undefined || overlapping.files === 0
      ? {}
      : { [OVERLAPPING_FILES]: String(overlapping.files), [OVERLAPPING_ROWS]: String(overlapping.records) }),
  };
}

/** The report of a commit that a table state still holds; null when its snapshot expired. */
export function reportOf(metadata: TableMetadata, commitId: string): CommitReport | null {
  const made = ({ summary }: Snapshot) => own(summary, SUMMARY_KEYS.commitId) === commitId;
  const snapshot = metadata.snapshots.find(made);
  if (snapshot === undefined) return null;
  const { summary } = snapshot;
  const count = (key: string) => BigInt(/^[0-9]{1,19}$/.exec(own(summary, key) ?? '')?.[0] ?? 0);
  return {
    snapshotId: snapshot['snapshot-id'],
    operation: summary.operation,
    added: {
      files: Number(count('added-data-files')),
      rows: count('added-records'),
      bytes: count('added-files-size'),
    },
    removed: {
      files: Number(count('deleted-data-files')),
      rows: count('deleted-records'),
      bytes: count('removed-files-size'),
    },
    changedPartitions: Number(count('changed-partition-count')),
    manifests: {
      created: Number(count('manifests-created')),
      replaced: Number(count('manifests-replaced')),
      kept: Number(count('manifests-kept')),
    },
    overlapping: { files: Number(count(OVERLAPPING_FILES)), rows: count(OVERLAPPING_ROWS) },
  };
}
