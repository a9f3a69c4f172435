import type { Deflate } from '../base/codecs.ts';
import { DELETED, readManifest } from '../iceberg/manifest-read.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { ManifestFile, Snapshot, TableMetadata } from '../iceberg/types.ts';

/**
 * What a table state reaches, in three layers: metadata names manifest lists, index and statistics files; lists name
 * manifests; manifests name data and delete files. Locations are compared as they are stored (X3, X7, B145).
 */

/** Snapshots of `before` that `after` no longer has. */
export function lostSnapshots(before: TableMetadata, after: TableMetadata): Snapshot[] {
  const kept = new Set(after.snapshots.map((snapshot) => snapshot['snapshot-id']));
  return before.snapshots.filter((snapshot) => !kept.has(snapshot['snapshot-id']));
}

/** Locations that metadata itself names for these snapshots: lists, indexes, statistics. */
export function namedByMetadata(metadata: TableMetadata, snapshots: readonly Snapshot[]): Set<string> {
  const named = new Set<string>();
  const ids = new Set<bigint>();
  for (const snapshot of snapshots) {
    ids.add(snapshot['snapshot-id']);
    named.add(snapshot['manifest-list']);
    const index = snapshot.summary[SUMMARY_KEYS.lastValueIndex];
    if (index !== undefined) named.add(index);
  }
  for (const file of [...metadata.statistics, ...metadata['partition-statistics']]) {
    const path = file['statistics-path'];
    if (ids.has(file['snapshot-id']) && typeof path === 'string') named.add(path);
  }
  return named;
}

/** Locations of the files that are live in a manifest: an entry of status deleted names what is gone from it. */
export function liveFilesOf(bytes: Uint8Array, row: ManifestFile, deflate: Deflate): string[] {
  return readManifest(bytes, { deflate, row })
    .entries.filter(({ status }) => status !== DELETED)
    .map(({ dataFile }) => dataFile.filePath);
}
