import {
  CHORE_RETRY,
  ERASE_GRACE_MS,
  ERASE_KEYS_MAX,
  ERASE_UPLOADS_MAX,
  METADATA_AGE_MIN_MS,
  METADATA_BELOW_HINT_MIN,
} from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { isGcDisabled } from '../core/maintain/retention-policy.ts';
import { earliest } from './chores.ts';
import type { LogEvent } from './commit-log.ts';
import { Tries } from './failures.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { Chore, ChoreState, Ledger } from './ports.ts';
import { Reach } from './reach.ts';
import { persevere } from './uploader.ts';

/** What one run deleted. */
export interface Erased {
  keys: number;
  /** Keys that the table refers to after all, or may: they left the queue and stay. */
  kept: number;
  /** Uploads in parts that were given up. */
  uploads: number;
}

export interface EraserPorts extends TablePorts {
  ledger: Ledger;
  log(event: LogEvent): void;
}

/**
 * Deletes what an expiry queued, once its time has come, and superseded metadata files. The only eraser of committed
 * files. It trusts nobody's earlier word: before each deletion the newest version is loaded and everything it reaches is
 * taken out. So keys may be queued before the commit that lets go of them is known to stand, and after a crash, a restored
 * ledger or a restored table the worst is a file left for the sweep of orphans.
 */
export class Eraser implements Chore {
  readonly #ports: EraserPorts;
  readonly #table: OpenTable;
  readonly #reach: Reach;
  readonly #tries = new Tries();

  constructor(ports: EraserPorts, table: OpenTable) {
    this.#ports = ports;
    this.#table = table;
    this.#reach = new Reach(ports, table.place, table.reached);
  }

  dueMs(): number | null {
    const { doomed, uploads } = this.#ports.ledger.state();
    const dueMs = earliest([doomed.dueMs, uploads.oldestMs === null ? null : uploads.oldestMs + ERASE_GRACE_MS]);
    return dueMs === null ? null : Math.max(dueMs, this.#tries.notBeforeMs);
  }

  get state(): ChoreState {
    return this.#tries.state(this.dueMs());
  }

  /** One deletion of at most `ERASE_KEYS_MAX` keys. What fails stays queued. */
  async run(): Promise<void> {
    const { clock, log } = this.#ports;
    try {
      const erased = await this.erase();
      log({ event: 'erased', table: this.#table.place.location, ...erased });
    } catch (error) {
      this.#table.faults.failed('erasing', error, clock.now());
      // Each try may read all lists of a table: one that lacks a file of its own lacks it for long.
      const told = this.#tries.failed(error, clock.now(), CHORE_RETRY);
      log({ event: 'erase-failed', table: this.#table.place.location, ...told });
    }
  }

  /**
   * Deletes the files that are due, at most `ERASE_KEYS_MAX`, and gives up uploads that were left.
   *
   * @throws StoreError; corrupt when a retained snapshot lacks its files: then nothing is known to be unreachable
   */
  async erase(): Promise<Erased> {
    const uploads = await this.#endUploads();
    const { keys, kept } = await this.#eraseDue();
    this.#table.faults.found('erasing', [], this.#ports.clock.now());
    this.#tries.succeeded(0);
    return { keys, kept, uploads };
  }

  /**
   * Deletes superseded metadata files, oldest first and without a hole: below the log of the newest version, well below the
   * pointer as it stands, and old by the store's clock (X10, I7). Returns how many.
   */
  async trimMetadata(base: IcebergBase): Promise<number> {
    const { store, clock } = this.#ports;
    const { sink, loader } = this.#table;
    const pointed = await loader.pointed();
    if (pointed === null) return 0;
    const logged = base.metadata['metadata-log'].map((entry) => this.#versionAt(entry['metadata-file']));
    // A pointer may hold any number.
    const kept = Math.min(Math.min(pointed, base.version) - METADATA_BELOW_HINT_MIN, ...logged);
    const below: { version: number; key: string; uploadedMs: number }[] = [];
    await persevere(this.#ports, async () => {
      below.length = 0;
      for await (const { key, uploadedMs } of store.list(sink.versionPrefix)) {
        const version = sink.versionOf(key);
        if (version !== null && version < kept) below.push({ version, key, uploadedMs });
      }
    });
    below.sort((a, b) => a.version - b.version);
    const young = below.findIndex(({ uploadedMs }) => uploadedMs > clock.now() - METADATA_AGE_MIN_MS);
    const old = (young === -1 ? below : below.slice(0, young)).slice(0, ERASE_KEYS_MAX);
    if (old.length > 0) await store.delete(old.map(({ key }) => key));
    return old.length;
  }

  /** Uploads in parts that an incarnation before this one has left, or could not end itself. */
  async #endUploads(): Promise<number> {
    const { clock, ledger, store } = this.#ports;
    const left = ledger.openUploads(clock.now() - ERASE_GRACE_MS, ERASE_UPLOADS_MAX);
    for (const { key, uploadId } of left) {
      await store.abortUpload(key, uploadId);
      ledger.uploadEnded(uploadId);
    }
    return left.length;
  }

  async #eraseDue(): Promise<{ keys: number; kept: number }> {
    const { clock, ledger, store } = this.#ports;
    const keys = ledger.doomed(clock.now(), ERASE_KEYS_MAX);
    if (keys.length === 0) return { keys: 0, kept: 0 };
    const base = await this.#table.load();
    // No version anywhere may be a bucket that is not what it was: then nothing is known to be unreachable.
    if (base === null) throw new Error('table has no version in the store');
    // It may share files with others by now.
    const isShared = isGcDisabled(base.metadata.properties);
    const unreached = isShared ? null : await this.#reach.unreached(keys, base.metadata);
    // Null, too much to read: these files are left to the sweep.
    if (unreached !== null && unreached.length > 0) await store.delete(unreached);
    ledger.erased(keys);
    const erased = unreached?.length ?? 0;
    return { keys: erased, kept: keys.length - erased };
  }

  /** Version of a location in the log; of a file that is no version of ours, one that keeps nothing. */
  #versionAt(location: string): number {
    const { location: root, prefix } = this.#table.place;
    const key = location.startsWith(`${root}/`) ? prefix + location.slice(root.length) : location;
    return this.#table.sink.versionOf(key) ?? Number.POSITIVE_INFINITY;
  }
}
