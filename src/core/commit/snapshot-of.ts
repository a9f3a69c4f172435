import { utf8 } from '../base/bytes.ts';
import { contentName, syncMarker } from '../base/ids.ts';
import { MANIFESTS_KEPT_BYTES_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import { EPOCHS_MIRROR_KEY, type Epochs, readEpochs, serializeEpochs, serializeMirror } from '../batch/epochs.ts';
import { manifestListName } from '../iceberg/locations.ts';
import { writeManifestList } from '../iceberg/manifest-list.ts';
import { DELETED, readManifest } from '../iceberg/manifest-read.ts';
import { serializeMetadata } from '../iceberg/metadata.ts';
import { ancestors, MAIN } from '../iceberg/snapshot.ts';
import { type Counts, carryForward, NO_COUNTS, type Totals, totalsAfter, totalsFrom } from '../iceberg/summary.ts';
import type { ManifestFile, Snapshot, Summary } from '../iceberg/types.ts';
import { applyUpdates, commitTime, type MetadataUpdate } from '../iceberg/updates.ts';
import type { Decision } from '../sink.ts';
import { countedRows } from './counted-rows.ts';
import { headOf, type IcebergBase, type Seen } from './iceberg-base.ts';
import type { IndexOfSnapshot } from './last-value.ts';
import { type MadeManifest, seedOf } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/** One snapshot on top of a base, as every operation that makes one describes it. */
export interface SnapshotPlan extends IndexOfSnapshot {
  base: IcebergBase;
  identity: CommitIdentity;
  /** The branch it becomes the head of; main when absent. It exists, or the table has no snapshot yet. */
  branch?: string;
  operation: Summary['operation'];
  /** Schema the snapshot's rows are read with. */
  schemaId: number;
  /** Rows of the parent's manifest list. */
  parentRows: readonly ManifestFile[];
  /** Manifests of this commit, in the order of the list: added, merged, deleted. */
  made: readonly MadeManifest[];
  /** Rows of the parent that go on as they are, but for counts that they lack. */
  carried: readonly ManifestFile[];
  counts: Counts;
  /** The complete progress map after this commit; `carry`: it commits no batch, so the parent's goes on. */
  epochs: Epochs | 'carry';
  batchId?: string | null;
  verdict?: string | null;
  /** Further keys of the summary. */
  extra?: Readonly<Record<string, string>>;
  /** Further updates of the same commit, after the snapshot's own. */
  updates?: readonly MetadataUpdate[];
}

/**
 * The only builder of snapshots: sequence number, manifest list, summary with totals, progress and commit id, the
 * mirror of progress, the metadata, and what the driver keeps of the result. So no operation can forget to carry state on.
 */
export function snapshotOf(
  context: SinkContext,
  plan: SnapshotPlan,
  seen: Seen,
  nowMs: number,
): Extract<Decision<IcebergBase>, { kind: 'proceed' }> {
  const { base, identity, branch = MAIN, made } = plan;
  const { metadata } = base;
  const parent = headOf(metadata, branch);
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const manifests = [...made.map(({ row }) => row), ...countedRows(context, plan.carried, seen)];
  const listBytes = writeManifestList({
    snapshotId: identity.snapshotId,
    parentSnapshotId: parent?.['snapshot-id'] ?? null,
    sequenceNumber,
    manifests,
    syncMarker: syncMarker(seedOf(identity.commitId), `list-${base.version}`, context.digest),
    deflate: context.deflate,
  });
  const listName = manifestListName(identity.snapshotId, contentName(identity.timeMs, context.digest([listBytes])));
  const timeMs = commitTime(metadata, nowMs);
  // Also an empty map is written: else a mirror that a rollback put aside would be believed again.
  const progress = plan.epochs === 'carry' && branch === MAIN ? readEpochs(metadata) : plan.epochs;
  const parents = parent === null ? [] : [...ancestors(metadata, parent['snapshot-id'])].map(({ summary }) => summary);
  const snapshot: Snapshot = {
    'snapshot-id': identity.snapshotId,
    ...(parent === null ? {} : { 'parent-snapshot-id': parent['snapshot-id'] }),
    'sequence-number': sequenceNumber,
    'timestamp-ms': timeMs,
    'manifest-list': `${context.location}/metadata/${listName}`,
    summary: carryForward({
      operation: plan.operation,
      counts: plan.counts,
      totals: totals(context, plan, parent, seen),
      parents,
      commitId: identity.commitId,
      epochs: progress === 'carry' ? 'carry' : serializeEpochs(progress),
      lastValueIndex: plan.lastValueIndex,
      noIndex: plan.noIndex,
      batchId: plan.batchId,
      verdict: plan.verdict,
      extra: plan.extra,
    }),
    'schema-id': plan.schemaId,
  };
  const mirror: MetadataUpdate[] =
    branch !== MAIN || progress === 'carry'
      ? []
      : [
          {
            action: 'set-properties',
            updates: { [EPOCHS_MIRROR_KEY]: serializeMirror(identity.snapshotId, sequenceNumber, progress) },
          },
        ];
  const next = applyUpdates(
    metadata,
    [
      { action: 'add-snapshot', snapshot },
      {
        ...(own(metadata.refs, branch) ?? { type: 'branch' }),
        action: 'set-snapshot-ref',
        'ref-name': branch,
        'snapshot-id': identity.snapshotId,
      },
      ...mirror,
      ...(plan.updates ?? []),
    ],
    { nowMs: timeMs, previousMetadataLocation: context.versionLocation(base.version) },
  );
  const fresh = made.map(({ row, bytes }): [string, Uint8Array] => [row.manifestPath, bytes]);
  const listed = branch === MAIN ? manifests : base.manifests;
  return {
    kind: 'proceed',
    uploads: [
      { key: context.keyOf(snapshot['manifest-list']), bytes: listBytes },
      ...made.filter(({ once }) => !once).map(({ row, bytes }) => ({ key: context.keyOf(row.manifestPath), bytes })),
      ...(plan.uploads ?? []),
    ],
    bytes: utf8(serializeMetadata(next)),
    next: (etag) => ({
      version: base.version + 1,
      etag,
      metadata: next,
      manifests: listed,
      kept: kept([...fresh, ...base.kept], listed ?? []),
    }),
  };
}

/**
 * Manifests to be read because the parent's summary lacks totals, or states less than a commit with these counts would
 * take from them (S8): all of them; else those whose own counts the list lacks.
 */
export function rowsToCount(
  base: IcebergBase,
  parentRows: readonly ManifestFile[],
  counts: Counts = NO_COUNTS,
  branch: string = MAIN,
): readonly ManifestFile[] {
  const parent = headOf(base.metadata, branch);
  if (parent !== null && totalsAfter(parent.summary, counts).missing.length > 0) return parentRows;
  return parentRows.filter((row) => row.isUncounted);
}

function totals(context: SinkContext, plan: SnapshotPlan, parent: Snapshot | null, seen: Seen): Totals {
  const stated = totalsAfter(parent?.summary ?? null, plan.counts);
  if (stated.missing.length === 0) return stated.totals;
  const counted: Totals = {
    dataFiles: 0n,
    records: 0n,
    filesSize: 0n,
    deleteFiles: 0n,
    positionDeletes: 0n,
    equalityDeletes: 0n,
  };
  for (const row of plan.parentRows) {
    const bytes = seen.bytesOf(row);
    for (const { status, dataFile } of readManifest(bytes, { deflate: context.deflate, row }).entries) {
      if (status === DELETED) continue;
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
  return totalsFrom(counted, plan.counts);
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
