import { fromHex } from '../base/bytes.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { type ManifestKind, manifestName } from '../iceberg/locations.ts';
import { manifestFileOf, writeManifest } from '../iceberg/manifest.ts';
import { currentSchema, specById } from '../iceberg/metadata.ts';
import { fieldById } from '../iceberg/schema.ts';
import type { ManifestEntry, ManifestFile, PartitionSpec, Schema, TableMetadata } from '../iceberg/types.ts';
import type { CommitIdentity } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/** A manifest that a commit makes: its row for the list, and its bytes. */
export interface MadeManifest {
  row: ManifestFile;
  bytes: Uint8Array;
  /** Made once for all attempts and uploaded with the change's own files. */
  once?: true;
}

/** Seed of whatever must come out the same whenever a commit is run again. */
export function seedOf(commitId: string): Uint8Array {
  return fromHex(commitId) ?? new Uint8Array(16);
}

/**
 * A schema for a manifest's header: the current one, else the newest of the table, else one of the older ones, that still has
 * the columns the spec partitions by. Null when none is left.
 */
export function headerSchema(metadata: TableMetadata, spec: PartitionSpec, older: readonly Schema[]): Schema | null {
  const knows = (schema: Schema) =>
    spec.fields.every((field) => field.transform === 'void' || fieldById(schema, field['source-id']) !== null);
  return [currentSchema(metadata), ...metadata.schemas.toReversed(), ...older].find(knows) ?? null;
}

/** The schema whose types a manifest is read in to be written again: of a column that is gone, types differ from manifest to manifest. */
export function rewrittenSchema(metadata: TableMetadata, specId: number): Schema {
  const spec = specById(metadata, specId);
  return (spec === null ? null : headerSchema(metadata, spec, [])) ?? currentSchema(metadata);
}

/**
 * Writes one manifest and names it after its content. `label` tells the manifests of one commit apart; entries are as
 * `writeManifest` wants them.
 */
export function makeManifest(
  context: SinkContext,
  input: {
    identity: CommitIdentity;
    sequenceNumber: bigint;
    kind: ManifestKind;
    label: string;
    schema: Schema;
    spec: PartitionSpec;
    /** 0 data (default), 1 deletes. */
    content?: 0 | 1;
    entries: readonly ManifestEntry[];
  },
): MadeManifest {
  const { identity, spec } = input;
  const { bytes, stats } = writeManifest({
    schema: input.schema,
    spec,
    content: input.content,
    snapshotId: identity.snapshotId,
    entries: input.entries,
    syncMarker: syncMarker(seedOf(identity.commitId), input.label, context.digest),
    deflate: context.deflate,
  });
  const name = manifestName(input.kind, contentName(identity.timeMs, context.digest([bytes])));
  const row = manifestFileOf(stats, {
    path: `${context.location}/metadata/${name}`,
    length: BigInt(bytes.length),
    specId: spec['spec-id'],
    snapshotId: identity.snapshotId,
    sequenceNumber: input.sequenceNumber,
  });
  return { row, bytes };
}
