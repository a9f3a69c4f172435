import { corrupt } from '../base/errors.ts';
import { MANIFEST_TARGET_BYTES, MANIFEST_TARGET_FILES } from '../base/limits.ts';
import { DELETED, EXISTING } from '../iceberg/manifest.ts';
import { specById } from '../iceberg/metadata.ts';
import type { ManifestEntry, ManifestFile, Schema, TableMetadata } from '../iceberg/types.ts';
import type { FileMatcher } from './file-filter.ts';
import type { Seen } from './iceberg-base.ts';
import { headerSchema, type MadeManifest, makeManifest } from './made-manifest.ts';
import type { CommitIdentity } from './operation.ts';
import { liveEntriesOf } from './select-files.ts';
import type { SinkContext } from './sink-context.ts';

export interface RewriteInput {
  metadata: TableMetadata;
  identity: CommitIdentity;
  sequenceNumber: bigint;
}

/**
 * What a commit that removes files makes of the manifests they were in, for each partition spec as the engine lays them
 * out: survivors in `merged` manifests, existing with the snapshot that added them and both numbers (C5, B133); removed
 * files in `deleted` ones, with both numbers and this snapshot's id (Q2, Q3). Null numbers were resolved against the
 * list's rows on reading (Q4, B134). The merged ones come first. One manifest is read at a time.
 */
export function rewriteTouched(
  context: SinkContext,
  input: RewriteInput,
  touched: readonly ManifestFile[],
  known: Seen,
  matcher: FileMatcher,
): MadeManifest[] {
  const { metadata, identity } = input;
  const merged: MadeManifest[] = [];
  const deleted: MadeManifest[] = [];
  for (const specId of new Set(touched.map((row) => row.partitionSpecId))) {
    const survivors = new EntryWriter(context, input, 'merged', specId);
    const removed = new EntryWriter(context, input, 'deleted', specId);
    for (const row of touched) {
      if (row.partitionSpecId !== specId) continue;
      const { entries, schema } = liveEntriesOf(context, metadata, row, known);
      const entryBytes = entryBytesOf(row);
      for (const entry of entries) {
        if (matcher.match(specId, entry.dataFile) === 'inside') {
          removed.add({ ...entry, status: DELETED, snapshotId: identity.snapshotId }, schema, entryBytes);
        } else {
          survivors.add(existing(entry), schema, entryBytes);
        }
      }
    }
    merged.push(...survivors.finish());
    deleted.push(...removed.finish());
  }
  return [...merged, ...deleted];
}

/** A live entry as a later manifest lists it. */
export function existing(entry: ManifestEntry): ManifestEntry {
  return { ...entry, status: EXISTING };
}

/** Stored bytes of one entry of a manifest, on average. */
export function entryBytesOf(row: ManifestFile): number {
  const entries = row.addedFilesCount + row.existingFilesCount + row.deletedFilesCount;
  return Number(row.manifestLength) / Math.max(1, entries);
}

/** Manifests of one kind and spec, begun anew at the target size; none for no entries (E4). */
export class EntryWriter {
  readonly #context: SinkContext;
  readonly #input: RewriteInput;
  readonly #kind: 'merged' | 'deleted';
  readonly #specId: number;
  readonly #made: MadeManifest[] = [];
  #entries: ManifestEntry[] = [];
  #schemas = new Set<Schema>();
  #bytes = 0;

  constructor(context: SinkContext, input: RewriteInput, kind: 'merged' | 'deleted', specId: number) {
    this.#context = context;
    this.#input = input;
    this.#kind = kind;
    this.#specId = specId;
  }

  /** `schema`: that of the manifest it comes from; `bytes`: what it took there. */
  add(entry: ManifestEntry, schema: Schema, bytes: number): void {
    const isFull = this.#bytes + bytes > MANIFEST_TARGET_BYTES || this.#entries.length >= MANIFEST_TARGET_FILES;
    if (isFull) this.#write();
    this.#entries.push(entry);
    this.#schemas.add(schema);
    this.#bytes += bytes;
  }

  finish(): MadeManifest[] {
    this.#write();
    return this.#made;
  }

  #write(): void {
    if (this.#entries.length === 0) return;
    const { metadata, identity, sequenceNumber } = this.#input;
    const kind = this.#kind;
    const spec = specById(metadata, this.#specId);
    const schema = spec === null ? null : headerSchema(metadata, spec, [...this.#schemas]);
    if (spec === null || schema === null) {
      throw corrupt('metadata-corrupt', `columns of a manifest's partition spec are in no schema: ${this.#specId}`);
    }
    const label = `${kind}-${this.#specId}-${this.#made.length}`;
    const entries = this.#entries;
    this.#made.push(makeManifest(this.#context, { identity, sequenceNumber, kind, label, schema, spec, entries }));
    this.#entries = [];
    this.#schemas = new Set();
    this.#bytes = 0;
  }
}
