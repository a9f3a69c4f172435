import type { Deflate } from '../base/codecs.ts';
import { corrupt } from '../base/errors.ts';
import { readManifestList } from '../iceberg/manifest-list.ts';
import { currentSnapshot, MAIN, snapshotOfRef } from '../iceberg/snapshot.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { ManifestFile, Snapshot, TableMetadata } from '../iceberg/types.ts';
import type { Based, Found } from '../sink.ts';
import type { SinkContext } from './sink-context.ts';

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

/** The snapshot that a branch's next one follows; null while it has none. */
export function headOf(metadata: TableMetadata, branch: string): Snapshot | null {
  return branch === MAIN ? currentSnapshot(metadata) : snapshotOfRef(metadata, branch);
}

/**
 * The rows of a branch's manifest list: from the base, or from the bytes the driver fetched.
 *
 * @throws corrupt `manifest-list-missing` when the store does not have it
 */
export function manifestsOf(
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
  keyOf: (location: string) => string,
  deflate: Deflate,
  branch: string = MAIN,
): readonly ManifestFile[] {
  const snapshot = headOf(base.metadata, branch);
  if (snapshot === null) return [];
  if (base.manifests !== null && snapshot === currentSnapshot(base.metadata)) return base.manifests;
  const bytes = seen.get(keyOf(snapshot['manifest-list']));
  if (bytes === undefined) {
    throw corrupt('manifest-list-missing', `manifest list of the snapshot is missing: ${snapshot['manifest-list']}`);
  }
  return readManifestList(bytes, deflate);
}

/** Key of a branch's manifest list when its rows are not known yet; null when nothing need be read. */
export function listNeed(
  context: SinkContext,
  base: IcebergBase,
  seen: ReadonlyMap<string, Uint8Array>,
  branch: string = MAIN,
): string | null {
  const snapshot = headOf(base.metadata, branch);
  if (snapshot === null || (base.manifests !== null && snapshot === currentSnapshot(base.metadata))) return null;
  const key = context.keyOf(snapshot['manifest-list']);
  return seen.has(key) ? null : key;
}

/** Manifests as a decision sees them: kept with the base, or fetched by the driver. */
export interface Seen {
  /** Keys of those that are still to be fetched. */
  missing(rows: readonly ManifestFile[]): string[];
  /** Throws corrupt `manifest-missing`: the store does not have what the snapshot lists. */
  bytesOf(row: ManifestFile): Uint8Array;
}

export function seenOf(context: SinkContext, base: IcebergBase, seen: ReadonlyMap<string, Uint8Array>): Seen {
  const find = ({ manifestPath }: ManifestFile) => base.kept.get(manifestPath) ?? seen.get(context.keyOf(manifestPath));
  return {
    missing: (rows) =>
      rows.filter((row) => find(row) === undefined).map(({ manifestPath }) => context.keyOf(manifestPath)),
    bytesOf(row) {
      const bytes = find(row);
      if (bytes === undefined) {
        throw corrupt('manifest-missing', `manifest of the current snapshot is missing: ${row.manifestPath}`);
      }
      return bytes;
    },
  };
}
