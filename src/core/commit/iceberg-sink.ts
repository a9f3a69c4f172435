import { unreachable } from '../base/assert.ts';
import { textOf, utf8 } from '../base/bytes.ts';
import type { Compress, Decompress, Deflate, Digest } from '../base/codecs.ts';
import { corrupt, SluiceError } from '../base/errors.ts';
import { INDEX_FILE_BYTES_MAX } from '../base/index-limits.ts';
import {
  metadataKey,
  parseVersionHint,
  versionHintKey,
  versionHintText,
  versionOfMetadata,
  versionPrefix,
} from '../iceberg/locations.ts';
import { parseMetadata } from '../iceberg/metadata.ts';
import { currentSnapshot } from '../iceberg/snapshot.ts';
import { SUMMARY_KEYS } from '../iceberg/summary.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { IndexMemory } from '../lastvalue/memory.ts';
import type { Decision, Found, RebasedOver, Sink } from '../sink.ts';
import { findChange } from './changes.ts';
import { changesBetween } from './conflicts.ts';
import { appendNeeds, decideAppend } from './decide-append.ts';
import { decideDelete, deleteNeeds } from './decide-delete.ts';
import { decideIndex, indexOperationNeeds } from './decide-index.ts';
import { decideOverwrite, overwriteNeeds } from './decide-overwrite.ts';
import { decideReplace, replaceNeeds } from './decide-replace.ts';
import { decideRewriteManifests, rewriteManifestsNeeds } from './decide-rewrite-manifests.ts';
import { decideAttach, decideCreate, decideDrop } from './decide-table.ts';
import { decideUpdate, updateNeeds } from './decide-update.ts';
import { findCommit, type IcebergBase, NOTHING_KEPT } from './iceberg-base.ts';
import type { Operation } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

interface SinkCodecs {
  deflate: Deflate;
  digest: Digest;
  compress: Compress;
  decompress: Decompress;
}

/** Iceberg format version 2 in the Hadoop layout, behind the driver's seam. */
export class IcebergSink implements Sink<IcebergBase, Operation> {
  readonly versionPrefix: string;
  readonly pointerKey: string;
  readonly #prefix: string;
  readonly #context: SinkContext;

  /** `prefix`: the key prefix of the table's folder, `location`: the same as metadata names it; neither ends in "/". */
  constructor(place: { location: string; prefix: string }, codecs: SinkCodecs) {
    const { location, prefix } = place;
    this.#prefix = prefix;
    this.versionPrefix = versionPrefix(prefix);
    this.pointerKey = versionHintKey(prefix);
    this.#context = {
      location,
      deflate: codecs.deflate,
      digest: codecs.digest,
      compress: codecs.compress,
      decompress: codecs.decompress,
      indexes: new IndexMemory(),
      keyOf(path) {
        if (!path.startsWith(`${location}/`)) {
          throw corrupt('foreign-location', `table refers to a file outside its folder: ${path}`);
        }
        return prefix + path.slice(location.length);
      },
      versionLocation: (version) => metadataKey(location, version),
    };
  }

  versionKey(version: number): string {
    return metadataKey(this.#prefix, version);
  }

  versionOf(key: string): number | null {
    return key.startsWith(this.versionPrefix) ? versionOfMetadata(key) : null;
  }

  pointer(version: number): Uint8Array {
    return utf8(versionHintText(version));
  }

  parsePointer(bytes: Uint8Array): number | null {
    // Written by others too: longer than any number is no version.
    return bytes.length > 64 ? null : parseVersionHint(new TextDecoder().decode(bytes));
  }

  parseBase(version: number, bytes: Uint8Array, etag: string): IcebergBase {
    const metadata = metadataAt(this.versionKey(version), bytes);
    if (metadata.location !== this.#context.location) {
      throw corrupt(
        'location-moved',
        `table says it lies elsewhere: location=${metadata.location} expected=${this.#context.location}`,
      );
    }
    return { version, etag, metadata, manifests: currentSnapshot(metadata) === null ? [] : null, kept: NOTHING_KEPT };
  }

  bytesMaxOf(key: string): number | null {
    // Of Parquet files decisions read last-value indexes alone, and those may be anybody's.
    return key.endsWith('.parquet') ? INDEX_FILE_BYTES_MAX : null;
  }

  needs(operation: Operation, base: IcebergBase | null, seen: ReadonlyMap<string, Uint8Array>): string[] {
    switch (operation.kind) {
      case 'append':
        return appendNeeds(this.#context, operation, base, seen);
      case 'delete':
        return deleteNeeds(this.#context, operation, base, seen);
      case 'replace':
        return replaceNeeds(this.#context, operation, base, seen);
      case 'overwrite':
        return overwriteNeeds(this.#context, operation, base, seen);
      case 'rewrite-manifests':
        return rewriteManifestsNeeds(this.#context, operation, base, seen);
      case 'index':
        return indexOperationNeeds(this.#context, operation, base, seen);
      case 'update':
        return updateNeeds(this.#context, operation, base, seen);
      default:
        return [];
    }
  }

  decide(
    operation: Operation,
    base: IcebergBase | null,
    seen: ReadonlyMap<string, Uint8Array>,
    nowMs: number,
  ): Decision<IcebergBase> {
    switch (operation.kind) {
      case 'append':
        return decideAppend(this.#context, operation, base, seen, nowMs);
      case 'delete':
        return decideDelete(this.#context, operation, base, seen, nowMs);
      case 'replace':
        return decideReplace(this.#context, operation, base, seen, nowMs);
      case 'overwrite':
        return decideOverwrite(this.#context, operation, base, seen, nowMs);
      case 'rewrite-manifests':
        return decideRewriteManifests(this.#context, operation, base, seen, nowMs);
      case 'index':
        return decideIndex(this.#context, operation, base, seen, nowMs);
      case 'update':
        return decideUpdate(this.#context, operation, base, seen, nowMs);
      case 'create':
        return decideCreate(this.#context, operation, base, nowMs);
      case 'attach':
        return decideAttach(this.#context, operation, base, nowMs);
      case 'drop':
        return decideDrop(this.#context, operation, base, nowMs);
      default:
        return unreachable(operation);
    }
  }

  find(operation: Operation, base: IcebergBase): Found | null {
    switch (operation.kind) {
      case 'append':
      case 'replace':
      case 'rewrite-manifests':
      case 'index':
        return findCommit(base, operation.commitId);
      case 'delete':
      case 'overwrite':
        return findCommit(base, operation.commitId) ?? findChange(base, operation.commitId);
      case 'update':
      case 'create':
      case 'attach':
      case 'drop':
        return findChange(base, operation.commitId);
      default:
        return unreachable(operation);
    }
  }

  rebasedOver(from: IcebergBase | null, to: IcebergBase | null): RebasedOver[] {
    return changesBetween(from?.metadata ?? null, to?.metadata ?? null);
  }

  refersTo(base: IcebergBase, key: string): boolean {
    const { metadata, manifests } = base;
    const named = metadata.snapshots.flatMap((snapshot) => {
      const index = snapshot.summary[SUMMARY_KEYS.lastValueIndex];
      return index === undefined ? [snapshot['manifest-list']] : [snapshot['manifest-list'], index];
    });
    if (named.includes(this.#locationOf(key))) return true;
    if (/\/metadata\/(snap|lvi)-/.test(key)) return false;
    // A merged manifest of a lost attempt is made again under the same name when its inputs did not change.
    return manifests === null || manifests.some(({ manifestPath }) => this.#context.keyOf(manifestPath) === key);
  }

  #locationOf(key: string): string {
    return this.#context.location + key.slice(this.#prefix.length);
  }

  /** A commit by its id alone, for an intent whose files are not made again yet. */
  findCommit(base: IcebergBase, commitId: string): Found | null {
    return findCommit(base, commitId);
  }
}

/** The metadata in a file; what is wrong with it is told with the file's key, which a person needs to look. */
function metadataAt(key: string, bytes: Uint8Array): TableMetadata {
  let text: string;
  try {
    text = textOf(bytes);
  } catch (cause) {
    throw corrupt('bad-metadata', `metadata is not UTF-8: ${key}`, { key }, cause);
  }
  try {
    return parseMetadata(text);
  } catch (cause) {
    if (!(cause instanceof SluiceError)) throw cause;
    throw new SluiceError(cause.kind, cause.type, `${cause.message}: ${key}`, { ...cause.detail, key }, cause);
  }
}
