import { fromHex, utf8 } from '../base/bytes.ts';
import { corrupt } from '../base/errors.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { MANIFESTS_KEPT_BYTES_MAX } from '../base/limits.ts';
import { EPOCHS_MIRROR_KEY, ownApp, readEpochs, serializeEpochs, serializeMirror } from '../batch/epochs.ts';
import { manifestListName } from '../iceberg/locations.ts';
import { writeManifestList } from '../iceberg/manifest-list.ts';
import { readManifest } from '../iceberg/manifest-read.ts';
import { serializeMetadata } from '../iceberg/metadata.ts';
import { currentSnapshot, MAIN } from '../iceberg/snapshot.ts';
import { type Counts, carryForward, NO_COUNTS, type Totals, totalsAfter, totalsFrom } from '../iceberg/summary.ts';
import type { ManifestFile, Snapshot } from '../iceberg/types.ts';
import { applyUpdates, commitTime } from '../iceberg/updates.ts';
import type { Decision } from '../sink.ts';
import { tableSettings } from '../table/properties.ts';
import { type IcebergBase, manifestsOf } from './iceberg-base.ts';
import { liveFiles, manifestsToMerge } from './manifest-policy.ts';
import { type MergedManifest, mergeManifests } from './merge-manifests.ts';
import type { AppendOperation } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/**
 * An append against one base. The premises, in order: the table is the one the rows were accepted for; none of the
 * rows is committed already (ranges are compared: a predecessor may have committed a part); the files were made for
 * the schema, spec and order that still stand. Only then the snapshot.
 */
export function decideAppend(
  context: SinkContext,
  operation: AppendOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
  nowMs: number,
): Decision<IcebergBase> {
  const { intent } = operation;
  if (base === null) return { kind: 'refused', type: 'table-gone', message: 'table has no version in the store' };
  const { metadata } = base;
  if (metadata['table-uuid'] !== intent.tableUuid) {
    const type = tableSettings(metadata.properties).dropped ? 'table-dropped' : 'table-replaced';
    return { kind: 'refused', type, message: `table is not the one that took the rows: ${metadata['table-uuid']}` };
  }
  const app = ownApp(intent.ledgerId);
  const epochs = readEpochs(metadata);
  if ((epochs.get(app) ?? 0n) >= operation.first) return { kind: 'again', reason: 'a part is committed already' };
  const stands =
    metadata['current-schema-id'] === operation.schemaId &&
    metadata['default-spec-id'] === operation.specId &&
    metadata['default-sort-order-id'] === operation.sortOrderId;
  if (!stands) return { kind: 'again', reason: 'schema, partition spec or sort order moved' };

  const parent = currentSnapshot(metadata);
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const own = operation.manifest(sequenceNumber);
  const carried = manifestsOf(base, seen, context.keyOf, context.deflate).filter((manifest) => liveFiles(manifest) > 0);
  const merged = mergedManifests(context, operation, base, carried, seen);
  const manifests = [own, ...merged.map(({ row }) => row), ...carried.filter((row) => !isMerged(merged, row))];
  const listBytes = writeManifestList({
    snapshotId: intent.snapshotId,
    parentSnapshotId: parent?.['snapshot-id'] ?? null,
    sequenceNumber,
    manifests,
    syncMarker: syncMarker(seedOf(intent.commitId), `list-${base.version}`, context.digest),
    deflate: context.deflate,
  });
  const listName = manifestListName(intent.snapshotId, contentName(intent.timeMs, context.digest([listBytes])));
  const counts: Counts = {
    ...NO_COUNTS,
    addedDataFiles: BigInt(operation.added.files),
    addedRecords: BigInt(operation.added.records),
    addedFilesSize: BigInt(operation.added.bytes),
    changedPartitionCount: BigInt(operation.added.partitions),
  };
  const after = new Map(epochs).set(app, operation.last);
  const timeMs = commitTime(metadata, nowMs);
  const snapshot: Snapshot = {
    'snapshot-id': intent.snapshotId,
    ...(parent === null ? {} : { 'parent-snapshot-id': parent['snapshot-id'] }),
    'sequence-number': sequenceNumber,
    'timestamp-ms': timeMs,
    'manifest-list': `${context.location}/metadata/${listName}`,
    summary: carryForward({
      operation: 'append',
      counts,
      totals: totals(context, base, carried, seen, counts),
      parents: [],
      commitId: intent.commitId,
      epochs: serializeEpochs(after),
      // An index is only extended by who has read it; a stale one would answer wrongly, so it is left out.
      lastValueIndex: null,
      batchId: operation.batchId,
    }),
    'schema-id': operation.schemaId,
  };
  const next = applyUpdates(
    metadata,
    [
      { action: 'add-snapshot', snapshot },
      { action: 'set-snapshot-ref', 'ref-name': MAIN, type: 'branch', 'snapshot-id': intent.snapshotId },
      {
        action: 'set-properties',
        updates: { [EPOCHS_MIRROR_KEY]: serializeMirror(intent.snapshotId, sequenceNumber, after) },
      },
    ],
    { nowMs: timeMs, previousMetadataLocation: context.versionLocation(base.version) },
  );
  const fresh: [string, Uint8Array][] = [
    [own.manifestPath, operation.manifestBytes],
    ...merged.map(({ row, bytes }): [string, Uint8Array] => [row.manifestPath, bytes]),
  ];
  return {
    kind: 'proceed',
    uploads: [
      { key: context.keyOf(snapshot['manifest-list']), bytes: listBytes },
      ...merged.map(({ row, bytes }) => ({ key: context.keyOf(row.manifestPath), bytes })),
    ],
    bytes: utf8(serializeMetadata(next)),
    next: (etag) => ({
      version: base.version + 1,
      etag,
      metadata: next,
      manifests,
      kept: kept([...fresh, ...base.kept], manifests),
    }),
  };
}

interface MergedGroup extends MergedManifest {
  group: readonly ManifestFile[];
}

function mergedManifests(
  context: SinkContext,
  operation: AppendOperation,
  base: IcebergBase,
  carried: readonly ManifestFile[],
  seen: ReadonlyMap<string, Uint8Array>,
): MergedGroup[] {
  const { intent } = operation;
  const sequenceNumber = base.metadata['last-sequence-number'] + 1n;
  const merged: MergedGroup[] = [];
  for (const group of manifestsToMerge(carried, operation.manifest(sequenceNumber))) {
    const one = mergeManifests({
      metadata: base.metadata,
      group,
      bytesOf: ({ manifestPath }) => base.kept.get(manifestPath) ?? seen.get(context.keyOf(manifestPath)),
      commit: { seed: seedOf(intent.commitId), snapshotId: intent.snapshotId, sequenceNumber, timeMs: intent.timeMs },
      location: context.location,
      deflate: context.deflate,
      digest: context.digest,
    });
    if (one !== null) merged.push({ ...one, group });
  }
  return merged;
}

function isMerged(merged: readonly MergedGroup[], row: ManifestFile): boolean {
  return merged.some(({ group }) => group.includes(row));
}

/** The newest of the given manifests that are still in the list, up to a bound of bytes. */
function kept(
  candidates: Iterable<[string, Uint8Array]>,
  manifests: readonly ManifestFile[],
): ReadonlyMap<string, Uint8Array> {
  const listed = new Set(manifests.map(({ manifestPath }) => manifestPath));
  const out = new Map<string, Uint8Array>();
  let bytes = 0;
  for (const [path, content] of candidates) {
    if (!listed.has(path) || bytes + content.length > MANIFESTS_KEPT_BYTES_MAX) continue;
    out.set(path, content);
    bytes += content.length;
  }
  return out;
}

/**
 * Keys that the decision reads: the parent's manifest list; its manifests that are to be merged and are not kept in
 * memory; all of them where its totals must be counted.
 */
export function appendNeeds(
  context: SinkContext,
  operation: AppendOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  const parent = base === null ? null : currentSnapshot(base.metadata);
  if (base === null || parent === null) return [];
  const listKey = context.keyOf(parent['manifest-list']);
  if (base.manifests === null && !seen.has(listKey)) return [listKey];
  const carried = manifestsOf(base, seen, context.keyOf, context.deflate);
  const isCounted = totalsAfter(parent.summary, NO_COUNTS).missing.length > 0;
  const read = isCounted
    ? carried
    : manifestsToMerge(carried, operation.manifest(base.metadata['last-sequence-number'] + 1n))
        .flat()
        .filter(({ manifestPath }) => !base.kept.has(manifestPath));
  return read.map(({ manifestPath }) => context.keyOf(manifestPath)).filter((key) => !seen.has(key));
}

function totals(
  context: SinkContext,
  base: IcebergBase,
  manifests: readonly ManifestFile[],
  seen: ReadonlyMap<string, Uint8Array>,
  counts: Counts,
): Totals {
  const parent = currentSnapshot(base.metadata);
  const stated = totalsAfter(parent?.summary ?? null, counts);
  if (stated.missing.length === 0) return stated.totals;
  const counted: Totals = {
    dataFiles: 0n,
    records: 0n,
    filesSize: 0n,
    deleteFiles: 0n,
    positionDeletes: 0n,
    equalityDeletes: 0n,
  };
  for (const manifest of manifests) {
    const bytes = seen.get(context.keyOf(manifest.manifestPath));
    if (bytes === undefined) {
      throw corrupt('manifest-missing', `manifest of the current snapshot is missing: ${manifest.manifestPath}`);
    }
    for (const { status, dataFile } of readManifest(bytes, { deflate: context.deflate, row: manifest }).entries) {
      if (status === 2) continue;
      counted.filesSize += dataFile.fileSizeInBytes;
      if (dataFile.content === 0) {
        counted.dataFiles += 1n;
        counted.records += dataFile.recordCount;
      } else {
        counted.deleteFiles += 1n;
        if (dataFile.content === 1) counted.positionDeletes += dataFile.recordCount;
        else counted.equalityDeletes += dataFile.recordCount;
      }
    }
  }
  return totalsFrom(counted, counts);
}

function seedOf(commitId: string): Uint8Array {
  return fromHex(commitId) ?? new Uint8Array(16);
}
