import { own } from '../base/shape.ts';
import { placeOf } from '../batch/admission.ts';
import { type Epochs, epochsFit, ownApp, readEpochs } from '../batch/epochs.ts';
import { LEFT_OUT_KEY } from '../batch/left-out.ts';
import { MAIN } from '../iceberg/snapshot.ts';
import { NO_COUNTS } from '../iceberg/summary.ts';
import type { ManifestFile } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import { tableSettings } from '../table/properties.ts';
import { madeOnce } from './added-manifest.ts';
import { isLayoutOf } from './evolve.ts';
import { type IcebergBase, listNeed, manifestsOf, type Seen, seenOf } from './iceberg-base.ts';
import { indexAfterAppend, indexNeeds } from './last-value.ts';
import type { MadeManifest } from './made-manifest.ts';
import { liveFiles, manifestsToMerge } from './manifest-policy.ts';
import { mergeReadable } from './merge-manifests.ts';
import type { AppendOperation } from './operation.ts';
import { countsOf } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';
import { rowsToCount, snapshotOf } from './snapshot-of.ts';

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
  const { branch } = operation;
  if (branch !== MAIN && own(metadata.refs, branch)?.type !== 'branch') {
    return { kind: 'refused', type: 'unknown-ref', message: `table has no branch of this name: ${branch}` };
  }
  const app = ownApp(intent.ledgerId, branch);
  const epochs = readEpochs(metadata, branch);
  if ((epochs.get(app) ?? 0n) >= operation.first) return { kind: 'again', reason: 'a part is committed already' };
  for (const [producer, { first, sparse }] of operation.progress) {
    if (placeOf({ epoch: first, sparse }, epochs.get(producer) ?? null) !== 'next') {
      return { kind: 'again', reason: `progress of ${producer} moved` };
    }
  }
  if (branch !== MAIN && !epochsFit(epochsAfter(epochs, operation))) {
    // Told here, so that a full map holds up nothing but its branch.
    return { kind: 'refused', type: 'too-many-apps', message: `progress map of the branch is full: ${branch}` };
  }
  if (!isLayoutOf(metadata, operation.layout, operation.evolution))
    return { kind: 'again', reason: 'schema, partition spec or sort order moved' };

  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const parentRows = manifestsOf(base, seen, context.keyOf, context.deflate, branch).filter(
    (row) => liveFiles(row) > 0,
  );
  const known = seenOf(context, base, seen);
  const merged = mergedManifests(context, operation, base, parentRows, known);
  return snapshotOf(
    context,
    {
      base,
      identity: intent,
      branch,
      operation: 'append',
      schemaId: operation.layout.schemaId,
      parentRows,
      made: [...ownManifest(operation, sequenceNumber), ...merged.map(({ made }) => made)],
      carried: parentRows.filter((row) => !merged.some(({ group }) => group.includes(row))),
      counts: countsOf(operation.added, null),
      epochs: epochsAfter(epochs, operation),
      ...indexAfterAppend(context, { base, identity: intent, branch, newest: operation.newest }, seen),
      batchId: operation.batchId,
      extra: operation.leftOut === null ? {} : { [LEFT_OUT_KEY]: operation.leftOut },
      updates: operation.evolution?.updates,
    },
    known,
    nowMs,
  );
}

function ownManifest({ manifest }: AppendOperation, sequenceNumber: bigint): MadeManifest[] {
  return manifest === null ? [] : [madeOnce(manifest, sequenceNumber)];
}

/** The map after the commit: its apps moved on, retired ones gone. */
function epochsAfter(before: Epochs, { intent, branch, last, progress }: AppendOperation): Epochs {
  const after = new Map(before).set(ownApp(intent.ledgerId, branch), last);
  for (const app of intent.retire) after.delete(app);
  for (const [app, moved] of progress) after.set(app, moved.last);
  return after;
}

/** Manifests of the parent that this commit merges. */
function groupsToMerge(
  operation: AppendOperation,
  rows: readonly ManifestFile[],
  sequenceNumber: bigint,
): ManifestFile[][] {
  return operation.manifest === null ? [] : manifestsToMerge(rows, operation.manifest.row(sequenceNumber));
}

function mergedManifests(
  context: SinkContext,
  operation: AppendOperation,
  base: IcebergBase,
  parentRows: readonly ManifestFile[],
  known: Seen,
): { made: MadeManifest; group: readonly ManifestFile[] }[] {
  const { metadata } = base;
  const sequenceNumber = metadata['last-sequence-number'] + 1n;
  const merged: { made: MadeManifest; group: readonly ManifestFile[] }[] = [];
  for (const group of groupsToMerge(operation, parentRows, sequenceNumber)) {
    const { intent: identity } = operation;
    const one = mergeReadable(context, { metadata, group, bytesOf: known.bytesOf, identity, sequenceNumber });
    if (one !== null) merged.push(one);
  }
  return merged;
}

/**
 * Keys that the decision reads: the parent's manifest list; its manifests that are to be merged and are not kept in
 * memory; all of them where its totals must be counted; its last-value index.
 */
export function appendNeeds(
  context: SinkContext,
  operation: AppendOperation,
  base: IcebergBase | null,
  seen: ReadonlyMap<string, Uint8Array>,
): string[] {
  if (base === null) return [];
  const { branch } = operation;
  const list = listNeed(context, base, seen, branch);
  const index = operation.newest === null || operation.newest.rows === 0 ? [] : indexNeeds(context, base, seen, branch);
  if (list !== null) return [list, ...index];
  const rows = manifestsOf(base, seen, context.keyOf, context.deflate, branch).filter((row) => liveFiles(row) > 0);
  const toMerge = groupsToMerge(operation, rows, base.metadata['last-sequence-number'] + 1n).flat();
  const manifests = [...new Set([...toMerge, ...rowsToCount(base, rows, NO_COUNTS, branch)])];
  return [...seenOf(context, base, seen).missing(manifests), ...index];
}
