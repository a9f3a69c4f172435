import type { Deflate } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { REACH_READS_MAX } from '../core/base/limits.ts';
import { readManifestList } from '../core/iceberg/manifest-list.ts';
import type { ManifestFile, Snapshot, TableMetadata } from '../core/iceberg/types.ts';
import { liveFilesOf, lostSnapshots, namedByMetadata } from '../core/maintain/reachable.ts';
import type { Store } from '../store/store.ts';
import type { TablePlace } from './open-table.ts';
import type { Clock, Random } from './ports.ts';
import { persevere, runBounded } from './uploader.ts';

/**
 * Reads what table states reach, and takes differences. Everything is compared as keys of the table's own folder: a
 * location outside of it is not ours to delete and never becomes one. A missing object of a retained snapshot is damage and
 * ends the work; one of an expired snapshot only means that less is left to delete.
 */
export class Reach {
  readonly #ports: { store: Store; clock: Clock; random: Random; deflate: Deflate };
  readonly #place: TablePlace;

  constructor(ports: { store: Store; clock: Clock; random: Random; deflate: Deflate }, place: TablePlace) {
    this.#ports = ports;
    this.#place = place;
  }

  /**
   * Keys that `before` reaches and `after` does not, with all refs and retained snapshots of both (X3). Null when telling
   * takes more reads than one invocation should make.
   *
   * @throws corrupt `manifest-list-missing`, `manifest-missing` of a retained snapshot
   */
  async lost(before: TableMetadata, after: TableMetadata): Promise<string[] | null> {
    const lost = lostSnapshots(before, after);
    if (lost.length === 0) return [];
    if (before.snapshots.length + after.snapshots.length > REACH_READS_MAX) return null;
    const kept = await this.#manifests(after.snapshots, true);
    const gone = await this.#manifests(lost, false);
    for (const path of kept.keys()) gone.delete(path);
    if (before.snapshots.length + kept.size + gone.size > REACH_READS_MAX) return null;
    const keys = this.#keys([...namedByMetadata(before, lost), ...gone.keys()]);
    await this.#files(gone, false, (paths) => {
      for (const key of this.#keys(paths)) keys.add(key);
    });
    await this.#strike(keys, after, kept);
    return [...keys];
  }

  /**
   * Those of the keys that the table state does not reach, nor any of the `past` ones, of which files may be gone by now.
   * Null as above.
   */
  async unreached(
    keys: readonly string[],
    metadata: TableMetadata,
    past: readonly TableMetadata[] = [],
  ): Promise<string[] | null> {
    const rest = new Set(keys);
    const left = pastSnapshots(metadata, past);
    const lists = metadata.snapshots.length + left.length;
    if (lists > REACH_READS_MAX) return null;
    const kept = await this.#manifests(metadata.snapshots, true);
    const gone = await this.#manifests(left, false);
    for (const path of kept.keys()) gone.delete(path);
    if (lists + kept.size + gone.size > REACH_READS_MAX) return null;
    await this.#strike(rest, metadata, kept);
    for (const state of past) this.#take(rest, namedByMetadata(state, state.snapshots));
    this.#take(rest, gone.keys());
    if (rest.size > 0) await this.#files(gone, false, (paths) => this.#take(rest, paths));
    return [...rest];
  }

  #take(keys: Set<string>, locations: Iterable<string>): void {
    for (const key of this.#keys(locations)) keys.delete(key);
  }

  /** Takes out what the state reaches. Manifests are read only when files that only they name are among the keys. */
  async #strike(
    keys: Set<string>,
    metadata: TableMetadata,
    manifests: ReadonlyMap<string, ManifestFile>,
  ): Promise<void> {
    const strike = (paths: Iterable<string>) => this.#take(keys, paths);
    strike(namedByMetadata(metadata, metadata.snapshots));
    strike(manifests.keys());
    if (keys.size > 0) await this.#files(manifests, true, strike);
  }

  /** Manifests of the snapshots, each once. */
  async #manifests(snapshots: readonly Snapshot[], required: boolean): Promise<Map<string, ManifestFile>> {
    const found = new Map<string, ManifestFile>();
    await runBounded(
      snapshots.map((snapshot) => async () => {
        const bytes = await this.#get(snapshot['manifest-list']);
        if (bytes === null) {
          if (!required) return;
          throw corrupt(
            'manifest-list-missing',
            `manifest list of snapshot ${snapshot['snapshot-id']} is missing: ${snapshot['manifest-list']}`,
          );
        }
        for (const row of readManifestList(bytes, this.#ports.deflate)) found.set(row.manifestPath, row);
      }),
    );
    return found;
  }

  async #files(
    manifests: ReadonlyMap<string, ManifestFile>,
    required: boolean,
    take: (paths: readonly string[]) => void,
  ): Promise<void> {
    await runBounded(
      [...manifests.values()].map((row) => async () => {
        const bytes = await this.#get(row.manifestPath);
        if (bytes !== null) take(liveFilesOf(bytes, row, this.#ports.deflate));
        else if (required) throw corrupt('manifest-missing', `manifest of a snapshot is missing: ${row.manifestPath}`);
      }),
    );
  }

  async #get(location: string): Promise<Uint8Array | null> {
    const key = this.#keyOf(location);
    if (key === null) throw corrupt('foreign-location', `table refers to a file outside its folder: ${location}`);
    const stored = await persevere(this.#ports, () => this.#ports.store.get(key));
    return stored?.bytes ?? null;
  }

  #keys(locations: Iterable<string>): Set<string> {
    const keys = new Set<string>();
    for (const location of locations) {
      const key = this.#keyOf(location);
      if (key !== null) keys.add(key);
    }
    return keys;
  }

  #keyOf(location: string): string | null {
    const { location: root, prefix } = this.#place;
    return location.startsWith(`${root}/`) ? prefix + location.slice(root.length) : null;
  }
}

/** Snapshots of earlier states that this one does not have, each once. */
function pastSnapshots(metadata: TableMetadata, past: readonly TableMetadata[]): Snapshot[] {
  const lists = new Set(metadata.snapshots.map((snapshot) => snapshot['manifest-list']));
  return past
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ 'manifest-list': list }) => !lists.has(list) && lists.add(list));
}
