import type { Deflate, Digest } from '../base/codecs.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { manifestName } from '../iceberg/locations.ts';
import { manifestFileOf, writeManifest } from '../iceberg/manifest.ts';
import type { ManifestEntry, ManifestFile, PartitionSpec, Schema } from '../iceberg/types.ts';
import type { Upload } from '../sink.ts';
import { type MadeManifest, seedOf } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';

/**
 * The manifest of the files that a commit adds, made once for all its attempts: what it gets from each attempt, the
 * commit's sequence number, is in its row of the list alone (Q1, Q5).
 */
export interface AddedManifest extends Upload {
  row: (sequenceNumber: bigint) => ManifestFile;
}

/** Writes and names it. `entries` are at least one. */
export function addedManifest(
  input: {
    identity: Pick<CommitIdentity, 'commitId' | 'snapshotId' | 'timeMs'>;
    place: { location: string; prefix: string };
    deflate: Deflate;
    digest: Digest;
  },
  layout: { schema: Schema; spec: PartitionSpec },
  entries: readonly ManifestEntry[],
): AddedManifest {
  const { identity, place, digest, deflate } = input;
  const { schema, spec } = layout;
  const syncBytes = syncMarker(seedOf(identity.commitId), 'manifest', digest);
  const { bytes, stats } = writeManifest({
    schema,
    spec,
    snapshotId: identity.snapshotId,
    entries,
    syncMarker: syncBytes,
    deflate,
  });
  const name = manifestName('added', contentName(identity.timeMs, digest([bytes])));
  return {
    key: `${place.prefix}/metadata/${name}`,
    bytes,
    row: (sequenceNumber) =>
      manifestFileOf(stats, {
        path: `${place.location}/metadata/${name}`,
        length: BigInt(bytes.length),
        specId: spec['spec-id'],
        snapshotId: identity.snapshotId,
        sequenceNumber,
      }),
  };
}

/** Its place among the manifests of one attempt. */
export function madeOnce(manifest: AddedManifest, sequenceNumber: bigint): MadeManifest {
  return { row: manifest.row(sequenceNumber), bytes: manifest.bytes, once: true };
}
