import { hex } from '../../../src/core/base/bytes.ts';
import { uuidV4 } from '../../../src/core/base/ids.ts';
import type { Frame } from '../../../src/core/batch/frame.ts';
import type { Intent } from '../../../src/core/batch/intent.ts';
import { prepareAppend } from '../../../src/core/commit/prepare-append.ts';
import { DELETED, EXISTING, manifestFileOf, readManifest, writeManifest } from '../../../src/core/iceberg/manifest.ts';
import { currentSchema, defaultSpec } from '../../../src/core/iceberg/metadata.ts';
import type { ManifestEntry, ManifestFile, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { Missing } from '../checkers/reader.ts';
import type { Rng } from '../rng.ts';
import { frameOf } from '../rows.ts';
import { PLACE } from '../service.ts';
import type { WatchedMemory } from '../watched-memory.ts';

interface EngineCommit {
  seed: Uint8Array;
  snapshotId: bigint;
  sequenceNumber: bigint;
  timeMs: number;
}

/** Data files and their manifest for rows given by number, as any writer would make them. */
export function encodeFiles(
  metadata: TableMetadata,
  numbers: readonly number[],
  commit: { snapshotId: bigint; timeMs: number; rng: Rng },
) {
  const frame: Frame = { ...frameOf(metadata, numbers), sequence: 1 };
  const intent: Intent = {
    form: 1,
    operation: 'append',
    commitId: hex(commit.rng.bytes(16)),
    snapshotId: commit.snapshotId,
    timeMs: commit.timeMs,
    ledgerId: '0000000000000000',
    first: 1,
    last: 1,
    rows: numbers.length,
    tableUuid: metadata['table-uuid'],
    retire: [],
  };
  const operation = prepareAppend({ intent, frames: [frame], last: 1, leftOut: [], metadata, place: PLACE, ...codecs });
  if (operation.manifest === null) throw new Error('rows make a manifest');
  return { uploads: operation.uploads, row: operation.manifest.row, added: operation.added };
}

function bytesOf(memory: WatchedMemory, location: string): Uint8Array {
  const key = PLACE.prefix + location.slice(PLACE.location.length);
  const stored = memory.peek(key);
  if (stored === null) throw new Missing(key);
  return stored.bytes;
}

/** All manifests in one, live entries only. */
export function mergeAll(
  metadata: TableMetadata,
  group: readonly ManifestFile[],
  commit: EngineCommit,
  memory: WatchedMemory,
): { row: ManifestFile; bytes: Uint8Array } {
  const entries = group.flatMap((row) => liveOf(metadata, row, memory)).map(existing);
  return manifestOf(metadata, 'merged', entries, commit);
}

const existing = (entry: ManifestEntry): ManifestEntry => ({ ...entry, status: EXISTING });

function liveOf(metadata: TableMetadata, row: ManifestFile, memory: WatchedMemory): ManifestEntry[] {
  const { entries } = readManifest(bytesOf(memory, row.manifestPath), {
    deflate: codecs.deflate,
    row,
    schema: currentSchema(metadata),
    specs: metadata['partition-specs'],
  });
  return entries.filter((entry) => entry.status !== DELETED);
}

function manifestOf(metadata: TableMetadata, kind: string, entries: readonly ManifestEntry[], commit: EngineCommit) {
  const spec = defaultSpec(metadata);
  const { bytes, stats } = writeManifest({
    schema: currentSchema(metadata),
    spec,
    snapshotId: commit.snapshotId,
    entries,
    syncMarker: commit.seed,
    deflate: codecs.deflate,
  });
  const seed = codecs.digest([bytes, commit.seed]);
  const row = manifestFileOf(stats, {
    path: `${PLACE.location}/metadata/${uuidV4(seed.subarray(0, 16))}-${kind}-m.avro`,
    length: BigInt(bytes.length),
    specId: spec['spec-id'],
    snapshotId: commit.snapshotId,
    sequenceNumber: commit.sequenceNumber,
  });
  return { row, bytes };
}

/** The manifests without some files: those that hold them are written anew, what is removed goes into one of its own. */
export function rewriteWithout(
  metadata: TableMetadata,
  manifests: readonly ManifestFile[],
  gone: ReadonlySet<string>,
  commit: EngineCommit,
  memory: WatchedMemory,
) {
  const kept: ManifestEntry[] = [];
  const removed: ManifestEntry[] = [];
  const untouched: ManifestFile[] = [];
  for (const row of manifests) {
    const live = liveOf(metadata, row, memory);
    if (!live.some((entry) => gone.has(entry.dataFile.filePath))) {
      untouched.push(row);
      continue;
    }
    for (const entry of live) {
      if (gone.has(entry.dataFile.filePath)) removed.push({ ...entry, status: DELETED, snapshotId: commit.snapshotId });
      else kept.push(existing(entry));
    }
  }
  const made: { row: ManifestFile; bytes: Uint8Array }[] = [];
  if (removed.length > 0) made.push(manifestOf(metadata, 'deleted', removed, commit));
  if (kept.length > 0) made.push(manifestOf(metadata, 'merged', kept, commit));
  const sum = (of: (entry: ManifestEntry) => bigint): number =>
    removed.reduce((all, entry) => all + Number(of(entry)), 0);
  return {
    manifests: [...made.map(({ row }) => row), ...untouched],
    made,
    removed: {
      files: removed.length,
      records: sum((entry) => entry.dataFile.recordCount),
      bytes: sum((entry) => entry.dataFile.fileSizeInBytes),
    },
  };
}
