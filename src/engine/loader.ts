import { corrupt } from '../core/base/errors.ts';
import { PROBES_MAX } from '../core/base/limits.ts';
import type { Based, Change, Sink } from '../core/sink.ts';
import type { Store } from '../store/store.ts';
import type { Clock, Random } from './ports.ts';
import { persevere } from './uploader.ts';

/**
 * Finds the newest version of a table. A missing object and an unreadable one are different things: the first moves
 * the search on, the second ends it with the store's error.
 */
export class Loader<Base extends Based, C extends Change> {
  readonly #ports: { store: Store; clock: Clock; random: Random };
  readonly #sink: Sink<Base, C>;

  constructor(ports: { store: Store; clock: Clock; random: Random }, sink: Sink<Base, C>) {
    this.#ports = ports;
    this.#sink = sink;
  }

  /**
   * The newest version, or null when the table has none. Probes forward from a version seen before, and lists the folder
   * when there is none, when it is not what it was, or when that does not lead to an end soon.
   *
   * A number alone is no place to begin, be it from the pointer or from memory: its file may have been trimmed with all
   * that followed it, and the name opened again by a writer who had stalled. Then it has no successor, and is not the newest.
   */
  async load(seen: { version: number; etag: string } | null = null): Promise<Base | null> {
    if (seen === null) return this.newest();
    const start = seen.version;
    const [stored, after] = await Promise.all([this.#get(start), this.#exists(start + 1)]);
    if (stored === null || stored.etag !== seen.etag) return this.newest();
    if (!after) return this.#sink.parseBase(start, stored.bytes, stored.etag);
    let version = start + 1;
    for (let probe = 0; probe < PROBES_MAX; probe++) {
      if (!(await this.#exists(version + 1))) {
        const newest = await this.#get(version);
        return newest === null ? this.newest() : this.#sink.parseBase(version, newest.bytes, newest.etag);
      }
      version++;
    }
    return this.newest();
  }

  /** The newest version by listing: what the chain is, whatever the pointer says. */
  async newest(): Promise<Base | null> {
    // A version can be trimmed between the list and the read; then a newer one is there.
    for (let attempt = 0; attempt < PROBES_MAX; attempt++) {
      const version = await this.newestVersion();
      if (version === null) return null;
      const stored = await this.#get(version);
      if (stored !== null) return this.#sink.parseBase(version, stored.bytes, stored.etag);
    }
    throw corrupt('versions-vanish', `versions are listed but missing when read: prefix=${this.#sink.versionPrefix}`);
  }

  /** Highest version number in the table's folder, or null. */
  async newestVersion(): Promise<number | null> {
    return persevere(this.#ports, async () => {
      let highest: number | null = null;
      for await (const object of this.#ports.store.list(this.#sink.versionPrefix)) {
        const version = this.#sink.versionOf(object.key);
        if (version !== null && (highest === null || version > highest)) highest = version;
      }
      return highest;
    });
  }

  /**
   * The base's confirmation as two requests, to run beside the uploads: its version is still stored under the etag
   * seen, and the next one is missing (without a base: the first is). `holds` answers once they have run.
   */
  confirmation(base: Base | null): { tasks: (() => Promise<void>)[]; holds: () => boolean } {
    let stands = base === null;
    let isNewest = false;
    const next = async () => {
      isNewest = !(await this.#exists((base?.version ?? 0) + 1));
    };
    if (base === null) return { tasks: [next], holds: () => isNewest };
    return {
      tasks: [
        async () => {
          const head = await persevere(this.#ports, () => this.#ports.store.head(this.#sink.versionKey(base.version)));
          stands = head !== null && head.etag === base.etag;
        },
        next,
      ],
      holds: () => stands && isNewest,
    };
  }

  /** Version that the pointer names now; null when there is none, or it cannot be read. */
  async pointed(): Promise<number | null> {
    const stored = await persevere(this.#ports, () => this.#ports.store.get(this.#sink.pointerKey));
    return stored === null ? null : this.#sink.parsePointer(stored.bytes);
  }

  #get(version: number) {
    return persevere(this.#ports, () => this.#ports.store.get(this.#sink.versionKey(version)));
  }

  async #exists(version: number): Promise<boolean> {
    return (await persevere(this.#ports, () => this.#ports.store.head(this.#sink.versionKey(version)))) !== null;
  }
}
