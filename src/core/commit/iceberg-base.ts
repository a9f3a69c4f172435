import type { Deflate } from '../base/codecs.ts';
import { corrupt } from '../base/errors.ts';
import { readManifestList } from '../iceberg/manifest-list.ts';
import { currentSnapshot } from '../iceberg/snapshot.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { ManifestFile, TableMetadata } from '../iceberg/types.ts';
import type { Based, Found } from '../sink.ts';

/** One version of an Iceberg table, with what was loaded or written along with it. */
export interface IcebergBase extends Based {
  metadata: TableMetadata;
  /** Rows of the current snapshot's manifest list, once somebody read it. */
  manifests: readonly ManifestFile[] | null;
  /** Bytes of small manifests among them, by location: merging them then reads nothing. Bounded. */
  kept: ReadonlyMap<string, Uint8Array>;
}

/** Nothing is kept of a version that was only read. */
export const NOTHING_KEPT: ReadonlyMap<string, Uint8Array> = new Map();

/**
 * The commit in the retained snapshots of a base: every version lists them all, so a commit stays findable until its
 * snapshot expires, also after a rollback went past it.
 */
export function findCommit(base: IcebergBase, commitId: string): Found | null {
  for (const snapshot of base.metadata.snapshots) {
    if (snapshot.summary[SUMMARY_KEYS.commitId] === commitId) {
      return { snapshotId: snapshot['snapshot-id'], version: versionOf(base, snapshot['snapshot-id']) };
    }
  }
  return null;
}

/**
 * The version that made a snapshot. Metadata does not say it; the metadata log does by time as far back as it goes,
 * and a snapshot that is not the newest and older than the log is given the version it was seen in.
 */
function versionOf(base: IcebergBase, snapshotId: bigint): number {
  const { metadata } = base;
  const entry = metadata['snapshot-log'].find((log) => log['snapshot-id'] === snapshotId);
  if (entry === undefined || entry['timestamp-ms'] === metadata['last-updated-ms']) return base.version;
  const log = metadata['metadata-log'];
  for (let back = 0; back < log.length; back++) {
    const past = log[log.length - 1 - back];
    if (past['timestamp-ms'] === entry['timestamp-ms']) return base.version - 1 - back;
  }
  return base.version;
}

/**
 * The rows of the current snapshot's manifest list: from the base, or from the bytes the driver fetched.
 *
 * @throws corrupt `manifest-list-missing` when the store does not have it
 */
export function manifestsOf(
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
  keyOf: (location: string) => string,
  deflate: Deflate,
): readonly ManifestFile[] {
  const snapshot = currentSnapshot(base.metadata);
  if (snapshot === null) return [];
  if (base.manifests !== null) return base.manifests;
  const bytes = seen.get(keyOf(snapshot['manifest-list']));
  if (bytes === undefined) {
    throw corrupt(
      'manifest-list-missing',
      `manifest list of the current snapshot is missing: ${snapshot['manifest-list']}`,
    );
  }
  return readManifestList(bytes, deflate);
}
