import type { Deflate, Digest } from '../base/codecs.ts';
import { corrupt } from '../base/errors.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { manifestName } from '../iceberg/locations.ts';
import { DELETED, EXISTING, manifestFileOf, readManifest, writeManifest } from '../iceberg/manifest.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { fieldById } from '../iceberg/schema.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata } from '../iceberg/types.ts';

/** A merged manifest: its row for the list, and its bytes. */
export interface MergedManifest {
  row: ManifestFile;
  bytes: Uint8Array;
}

/**
 * One manifest with the live entries of several, in order. They stay what they were: status existing, the snapshot that
 * added them, both sequence numbers (Q2, Q3, Q4); deleted ones drop out (E3). Null when an entry's file sequence number is
 * not known, as in manifests of some writers: then they stay apart.
 *
 * @throws corrupt `manifest-missing`
 */
export function mergeManifests(input: {
  metadata: TableMetadata;
  group: readonly ManifestFile[];
  bytesOf: (manifest: ManifestFile) => Uint8Array | undefined;
  /** What identifies the commit, and names its files. */
  commit: { seed: Uint8Array; snapshotId: bigint; sequenceNumber: bigint; timeMs: number };
  location: string;
  deflate: Deflate;
  digest: Digest;
}): MergedManifest | null {
  const { metadata, group, commit, location } = input;
  const entries: ManifestEntry[] = [];
  const schemas: Schema[] = [currentSchema(metadata)];
  for (const manifest of group) {
    const bytes = input.bytesOf(manifest);
    if (bytes === undefined) {
      throw corrupt('manifest-missing', `manifest of the current snapshot is missing: ${manifest.manifestPath}`);
    }
    const read = readManifest(bytes, {
      deflate: input.deflate,
      row: manifest,
      schema: schemas[0],
      specs: metadata['partition-specs'],
    });
    schemas.push(read.schema);
    for (const entry of read.entries) {
      if (entry.status === DELETED) continue;
      if (entry.snapshotId === null || entry.sequenceNumber === null || entry.fileSequenceNumber === null) return null;
      entries.push({ ...entry, status: EXISTING });
    }
  }
  const specId = group[0].partitionSpecId;
  const spec = metadata['partition-specs'].find((known) => known['spec-id'] === specId);
  const schema = schemas.find((known) => spec?.fields.every((field) => fieldById(known, field['source-id']) !== null));
  if (spec === undefined || schema === undefined) return null;
  const { bytes, stats } = writeManifest({
    schema,
    spec,
    snapshotId: commit.snapshotId,
    entries,
    syncMarker: syncMarker(commit.seed, `merged-${specId}`, input.digest),
    deflate: input.deflate,
  });
  const name = manifestName('merged', contentName(commit.timeMs, input.digest([bytes])));
  const row = manifestFileOf(stats, {
    path: `${location}/metadata/${name}`,
    length: BigInt(bytes.length),
    specId,
    snapshotId: commit.snapshotId,
    sequenceNumber: commit.sequenceNumber,
  });
  return { row, bytes };
}
