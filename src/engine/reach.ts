import type { Deflate } from '../core/base/codecs.ts';
import { corrupt } from '../core/base/errors.ts';
import { REACH_KEPT_BYTES_MAX, REACH_READS_MAX } from '../core/base/limits.ts';
import { readManifestList } from '../core/iceberg/manifest-list.ts';
import type { ManifestFile, Snapshot, TableMetadata } from '../core/iceberg/types.ts';
import { liveFilesOf, lostSnapshots, namedByMetadata } from '../core/maintain/reachable.ts';
import type { Store } from '../store/store.ts';
import type { TablePlace } from './open-table.ts';
import type { Clock, Random } from './ports.ts';
import { persevere, runBounded } from './uploader.ts';

/** What lists and manifests say: their rows, and the live files of each, by location. */
interface Seen {
  lists: Map<string, readonly ManifestFile[]>;
  files: Map<string, readonly string[]>;
}

/** Memory that a location takes, and that of a manifest's row beside it. */
const LOCATION_BYTES = 200;
const ROW_BYTES = 500;

/**
 * What the last look at a table read. Lists and manifests are never changed, so the next one reads what has been added: a
 * table that is written all the time has hundreds of snapshots, and what they reach is asked for several times an hour.
 */
export class ReachMemory {
  #kept: Seen = { lists: new Map(), files: new Map() };

  list(location: string): readonly ManifestFile[] | undefined {
    return this.#kept.lists.get(location);
  }

  files(location: string): readonly string[] | undefined {
    return this.#kept.files.get(location);
  }

  /** Keeps what a look used, and nothing else. */
  keep(seen: Seen): void {
    let bytes = 0;
    for (const rows of seen.lists.values()) bytes += LOCATION_BYTES + 8 * rows.length;
    for (const paths of seen.files.values()) bytes += ROW_BYTES + LOCATION_BYTES * (1 + paths.length);
    this.#kept = bytes <= REACH_KEPT_BYTES_MAX ? seen : { lists: new Map(), files: new Map() };
  }
}

/**
 * Reads what table states reach, and takes differences. Everything is compared as keys of the table's own folder: a
 * location outside of it is not ours to delete and never becomes one. But it may be a file of ours that another writer spells
 * otherwise, with another scheme or a doubled slash: then all keys of its name count as reached (B145). A missing object of a retained snapshot is damage and
 * ends the work; one of an expired snapshot only means that less is left to delete. Without a memory each look sees whether
 * all of it is still there.
 */
export class Reach {
  readonly #ports: { store: Store; clock: Clock; random: Random; deflate: Deflate };
  readonly #place: TablePlace;
  readonly #memory: ReachMemory | null;

  constructor(
    ports: { store: Store; clock: Clock; random: Random; deflate: Deflate },
    place: TablePlace,
    memory: ReachMemory | null = null,
  ) {
    this.#ports = ports;
    this.#place = place;
    this.#memory = memory;
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
    const seen: Seen = { lists: new Map(), files: new Map() };
    const kept = await this.#manifests(after.snapshots, true, seen);
    const gone = await this.#manifests(lost, false, seen);
    for (const path of kept.keys()) gone.delete(path);
    if (before.snapshots.length + kept.size + gone.size > REACH_READS_MAX) return null;
    const keys = this.#keys([...namedByMetadata(before, lost), ...gone.keys()]);
    await this.#files(gone, false, seen, (paths) => {
      for (const key of this.#keys(paths)) keys.add(key);
    });
    const rest = new Unreached(keys);
    await this.#strike(rest, after, kept, seen);
    this.#memory?.keep(seen);
    return [...rest.keys];
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
    const rest = new Unreached(new Set(keys));
    const left = pastSnapshots(metadata, past);
    const lists = metadata.snapshots.length + left.length;
    if (lists > REACH_READS_MAX) return null;
    const seen: Seen = { lists: new Map(), files: new Map() };
    const kept = await this.#manifests(metadata.snapshots, true, seen);
    const gone = await this.#manifests(left, false, seen);
    for (const path of kept.keys()) gone.delete(path);
    if (lists + kept.size + gone.size > REACH_READS_MAX) return null;
    await this.#strike(rest, metadata, kept, seen);
    for (const state of past) this.#take(rest, namedByMetadata(state, state.snapshots));
    this.#take(rest, gone.keys());
    if (rest.keys.size > 0) await this.#files(gone, false, seen, (paths) => this.#take(rest, paths));
    this.#memory?.keep(seen);
    return [...rest.keys];
  }

  #take(rest: Unreached, locations: Iterable<string>): void {
    for (const location of locations) {
      const key = this.#keyOf(location);
      if (key === null || ODDLY_SPELLED.test(key)) rest.takeNamed(location);
      if (key !== null) rest.keys.delete(key);
    }
  }

  /** Takes out what the state reaches. Manifests are read only when files that only they name are among the keys. */
  async #strike(
    rest: Unreached,
    metadata: TableMetadata,
    manifests: ReadonlyMap<string, ManifestFile>,
    seen: Seen,
  ): Promise<void> {
    const strike = (paths: Iterable<string>) => this.#take(rest, paths);
    strike(namedByMetadata(metadata, metadata.snapshots));
    strike(manifests.keys());
    if (rest.keys.size > 0) await this.#files(manifests, true, seen, strike);
  }

  /** Manifests of the snapshots, each once. */
  async #manifests(snapshots: readonly Snapshot[], required: boolean, seen: Seen): Promise<Map<string, ManifestFile>> {
    const found = new Map<string, ManifestFile>();
    await runBounded(
      snapshots.map((snapshot) => async () => {
        const location = snapshot['manifest-list'];
        const known = this.#memory?.list(location) ?? (await this.#list(location));
        if (known === null) {
          if (!required) return;
          const id = snapshot['snapshot-id'];
          throw corrupt('manifest-list-missing', `manifest list of snapshot ${id} is missing: ${location}`);
        }
        const rows = known.map((row) => {
          // One object a manifest, however many lists name it.
          const first = found.get(row.manifestPath) ?? row;
          found.set(row.manifestPath, first);
          return first;
        });
        seen.lists.set(location, rows);
      }),
    );
    return found;
  }

  /** Rows of a list, without their summaries, which would keep the list's bytes in memory. */
  async #list(location: string): Promise<readonly ManifestFile[] | null> {
    const bytes = await this.#get(location);
    return bytes && readManifestList(bytes, this.#ports.deflate).map((row) => ({ ...row, partitions: null }));
  }

  async #files(
    manifests: ReadonlyMap<string, ManifestFile>,
    required: boolean,
    seen: Seen,
    take: (paths: readonly string[]) => void,
  ): Promise<void> {
    await runBounded(
      [...manifests.values()].map((row) => async () => {
        const location = row.manifestPath;
        const paths = this.#memory?.files(location) ?? (await this.#filesOf(row));
        if (paths === null) {
          if (!required) return;
          throw corrupt('manifest-missing', `manifest of a snapshot is missing: ${location}`);
        }
        seen.files.set(location, paths);
        take(paths);
      }),
    );
  }

  async #filesOf(row: ManifestFile): Promise<readonly string[] | null> {
    const bytes = await this.#get(row.manifestPath);
    return bytes && liveFilesOf(bytes, row, this.#ports.deflate);
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

/** Keys of which nobody has said yet that they are reached. */
class Unreached {
  readonly keys: Set<string>;
  /** Keys by the name of their file; made when it is first needed, which is hardly ever. */
  #byName: Map<string, string[]> | null = null;

  constructor(keys: Set<string>) {
    this.keys = keys;
  }

  /** Takes out all keys that have the name of this location's file. */
  takeNamed(location: string): void {
    this.#byName ??= Map.groupBy(this.keys, nameOf);
    for (const key of this.#byName.get(nameOf(location)) ?? []) this.keys.delete(key);
  }
}

/** Keys that some file systems take for others. */
const ODDLY_SPELLED = /\/\.{0,2}\//;

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('/') + 1);
}

/** Snapshots of earlier states that this one does not have, each once. */
function pastSnapshots(metadata: TableMetadata, past: readonly TableMetadata[]): Snapshot[] {
  const lists = new Set(metadata.snapshots.map((snapshot) => snapshot['manifest-list']));
  return past
    .flatMap(({ snapshots }) => snapshots)
    .filter(({ 'manifest-list': list }) => !lists.has(list) && lists.add(list));
}

/** Whether a later version still has every snapshot of an earlier one: what is missing of those is damage then, and no trace of an expiry. */
export function retainsAll(newest: { metadata: TableMetadata } | null, metadata: TableMetadata): boolean {
  // By their lists: a commit that is made again after its snapshot has expired has its id (ARCHITECTURE, "Outcomes").
  const retained = new Set(newest?.metadata.snapshots.map((snapshot) => snapshot['manifest-list']));
  return metadata.snapshots.every((snapshot) => retained.has(snapshot['manifest-list']));
}
