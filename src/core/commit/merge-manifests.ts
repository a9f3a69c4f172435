import { DELETED, EXISTING, readManifest } from '../iceberg/manifest.ts';
import { currentSchema, specById } from '../iceberg/metadata.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata } from '../iceberg/types.ts';
import { headerSchema, type MadeManifest, makeManifest } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/**
 * One manifest with the live entries of several, in order. They stay what they were: status existing, the snapshot that
 * added them, both sequence numbers (Q2, Q3, Q4); deleted ones drop out (E3). Null when an entry's file sequence number is
 * not known, as in manifests of some writers: then they stay apart.
 *
 * @throws corrupt `manifest-missing`
 */
export function mergeManifests(
  context: SinkContext,
  input: {
    metadata: TableMetadata;
    group: readonly ManifestFile[];
    bytesOf: (manifest: ManifestFile) => Uint8Array;
    identity: CommitIdentity;
    sequenceNumber: bigint;
  },
): MadeManifest | null {
  const { metadata, group, identity } = input;
  const entries: ManifestEntry[] = [];
  const schemas: Schema[] = [];
  for (const manifest of group) {
    const read = readManifest(input.bytesOf(manifest), {
      deflate: context.deflate,
      row: manifest,
      schema: currentSchema(metadata),
      specs: metadata['partition-specs'],
    });
    schemas.push(read.schema);
    for (const entry of read.entries) {
      if (entry.status === DELETED) continue;
      if (entry.snapshotId === null || entry.sequenceNumber === null || entry.fileSequenceNumber === null) return null;
      entries.push({ ...entry, status: EXISTING });
    }
  }
  const spec = specById(metadata, group[0].partitionSpecId);
  const schema = spec === null ? null : headerSchema(metadata, spec, schemas);
  if (spec === null || schema === null) return null;
  const label = `merged-${spec['spec-id']}`;
  const { sequenceNumber } = input;
  return makeManifest(context, { identity, sequenceNumber, kind: 'merged', label, schema, spec, entries });
}
