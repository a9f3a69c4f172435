import { countByStatus, readManifest } from '../iceberg/manifest.ts';
import type { ManifestFile } from '../iceberg/types.ts';
import type { Seen } from './iceberg-base.ts';
import { liveFiles } from './manifest-policy.ts';
import type { SinkContext } from './sink-context.ts';

/**
 * Rows as a list of ours has them: those whose writer left counts out, as format version 1 allows, with counts from their
 * manifests, and none that turns out to hold nothing (E3).
 */
export function countedRows(context: SinkContext, rows: readonly ManifestFile[], seen: Seen): readonly ManifestFile[] {
  if (!rows.some((row) => row.isUncounted)) return rows;
  return rows
    .map((row) => (row.isUncounted ? counted(row, seen.bytesOf(row), context) : row))
    .filter((row) => liveFiles(row) > 0);
}

function counted(row: ManifestFile, bytes: Uint8Array, { deflate }: SinkContext): ManifestFile {
  const { isUncounted: _, ...known } = row;
  return { ...known, ...countByStatus(readManifest(bytes, { deflate, row }).entries) };
}
