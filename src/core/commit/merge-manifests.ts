import { SluiceError } from '../base/errors.ts';
import { DELETED, EXISTING, readManifest } from '../iceberg/manifest.ts';
import { specById } from '../iceberg/metadata.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata } from '../iceberg/types.ts';
import { headerSchema, type MadeManifest, makeManifest, rewrittenSchema } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

interface MergeInput {
  metadata: TableMetadata;
  group: readonly ManifestFile[];
  bytesOf: (manifest: ManifestFile) => Uint8Array;
  identity: CommitIdentity;
  sequenceNumber: bigint;
}

/**
 * Merges what of a group can be read; null when that is not two. A manifest that is missing or corrupt stays as it is: it holds
 * up neither the rows of the commit nor the merging of the others.
 */
export function mergeReadable(
  context: SinkContext,
  input: MergeInput,
): { made: MadeManifest; group: readonly ManifestFile[] } | null {
  let { group } = input;
  let made: MadeManifest | null = null;
  try {
    made = mergeManifests(context, input);
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    group = group.filter((manifest) => isReadable(context, input, manifest));
    if (group.length > 1) made = mergeManifests(context, { ...input, group });
  }
  return made === null ? null : { made, group };
}

function isReadable(context: SinkContext, input: MergeInput, manifest: ManifestFile): boolean {
  try {
    readGroupMember(context, input, manifest);
    return true;
  } catch (error) {
    if (!isCorrupt(error)) throw error;
    return false;
  }
}

function isCorrupt(error: unknown): boolean {
  return error instanceof SluiceError && error.kind === 'corrupt';
}

function readGroupMember({ deflate }: SinkContext, { metadata, bytesOf }: MergeInput, manifest: ManifestFile) {
  return readManifest(bytesOf(manifest), {
    deflate,
    row: manifest,
    schema: rewrittenSchema(metadata, manifest.partitionSpecId),
    specs: metadata['partition-specs'],
  });
}

/**
 * One manifest with the live entries of several, in order. They stay what they were: status existing, the snapshot that
 * added them, both sequence numbers (Q2, Q3, Q4); deleted ones drop out (E3). Null when an entry's file sequence number is
 * not known, as in manifests of some writers: then they stay apart.
 *
 * @throws corrupt `manifest-missing`
 */
export function mergeManifests(context: SinkContext, input: MergeInput): MadeManifest | null {
  const { metadata, group, identity } = input;
  const entries: ManifestEntry[] = [];
  const schemas: Schema[] = [];
  for (const manifest of group) {
    const read = readGroupMember(context, input, manifest);
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
