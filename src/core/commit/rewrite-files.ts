import { corrupt } from '../base/errors.ts';
import { MANIFEST_TARGET_BYTES, MANIFEST_TARGET_FILES } from '../base/limits.ts';
import { DELETED, EXISTING } from '../iceberg/manifest.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata } from '../iceberg/types.ts';
import { headerSchema, type MadeManifest, makeManifest } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import type { TouchedManifest } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';

export interface RewriteInput {
  metadata: TableMetadata;
  identity: CommitIdentity;
  sequenceNumber: bigint;
}

/**
 * What a commit that removes files makes of the manifests they were in, one pair a partition spec, as the engine lays
 * them out: survivors in a `merged` manifest, existing with the snapshot that added them and both numbers (C5, B133);
 * removed files in a `deleted` one, with both numbers and this snapshot's id (Q2, Q3). Null numbers were resolved
 * against the list's rows on reading (Q4, B134). The merged ones come first.
 */
export function rewriteTouched(
  context: SinkContext,
  input: RewriteInput,
  touched: readonly TouchedManifest[],
): MadeManifest[] {
  const merged: MadeManifest[] = [];
  const deleted: MadeManifest[] = [];
  for (const specId of new Set(touched.map(({ spec }) => spec['spec-id']))) {
    const group = touched.filter(({ spec }) => spec['spec-id'] === specId);
    const schemas = group.map(({ schema }) => schema);
    const rows = group.map(({ row }) => row);
    const survivors = group.flatMap((manifest) => manifest.survivors).map(existing);
    merged.push(...writeEntries(context, input, { kind: 'merged', specId, schemas, rows, entries: survivors }));
    const { snapshotId } = input.identity;
    const removed = group
      .flatMap((manifest) => manifest.removed)
      .map((entry): ManifestEntry => ({ ...entry, status: DELETED, snapshotId }));
    deleted.push(...writeEntries(context, input, { kind: 'deleted', specId, schemas, rows, entries: removed }));
  }
  return [...merged, ...deleted];
}

/** A live entry as a later manifest lists it. */
export function existing(entry: ManifestEntry): ManifestEntry {
  return { ...entry, status: EXISTING };
}

/**
 * Manifests of one spec for entries, in their order, begun anew at the target size; none for no entries (E4). The size is
 * told from the manifests the entries came from.
 */
export function writeEntries(
  context: SinkContext,
  input: RewriteInput,
  given: {
    kind: 'merged' | 'deleted';
    specId: number;
    schemas: readonly Schema[];
    rows: readonly ManifestFile[];
    entries: readonly ManifestEntry[];
  },
): MadeManifest[] {
  const { kind, specId, entries } = given;
  const { metadata, identity, sequenceNumber } = input;
  const spec = metadata['partition-specs'].find((known) => known['spec-id'] === specId);
  const schema = spec === undefined ? null : headerSchema(metadata, spec, given.schemas);
  if (spec === undefined || schema === null) {
    throw corrupt('metadata-corrupt', `columns of partition spec are in no schema: ${specId}`);
  }
  const most = filesPerManifest(given.rows);
  const made: MadeManifest[] = [];
  for (let from = 0; from < entries.length; from += most) {
    const label = `${kind}-${specId}-${made.length}`;
    const part = entries.slice(from, from + most);
    made.push(makeManifest(context, { identity, sequenceNumber, kind, label, schema, spec, entries: part }));
  }
  return made;
}

/** Files of one manifest: the target, or fewer where entries are so large that it would pass the target size. */
export function filesPerManifest(rows: readonly ManifestFile[]): number {
  const bytes = rows.reduce((sum, row) => sum + Number(row.manifestLength), 0);
  const entries = rows.reduce(
    (sum, row) => sum + row.addedFilesCount + row.existingFilesCount + row.deletedFilesCount,
    0,
  );
  const entryBytes = Math.max(1, bytes / Math.max(1, entries));
  return Math.max(1, Math.min(MANIFEST_TARGET_FILES, Math.floor(MANIFEST_TARGET_BYTES / entryBytes)));
}
