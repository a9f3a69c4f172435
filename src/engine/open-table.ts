import type { Compress, Decompress, Deflate, Digest } from '../core/base/codecs.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { IcebergSink } from '../core/commit/iceberg-sink.ts';
import type { Operation } from '../core/commit/operation.ts';
import type { Store } from '../store/store.ts';
import type { CommitObserver } from './commit-log.ts';
import { type CommitResult, Committer } from './committer.ts';
import { Faults } from './faults.ts';
import { Hint } from './hint.ts';
import { Loader } from './loader.ts';
import type { Clock, Marks, Random } from './ports.ts';
import { ReachMemory } from './reach.ts';

/** Where a table is: its folder in the bucket and the location that metadata names. */
export interface TablePlace {
  /** `s3://bucket/prefix/namespace/table` */
  location: string;
  /** Key prefix of the same folder, without a trailing slash. */
  prefix: string;
}

export interface TablePorts {
  store: Store;
  clock: Clock;
  random: Random;
  marks: Marks;
  deflate: Deflate;
  digest: Digest;
  compress: Compress;
  decompress: Decompress;
  gunzip: Decompress;
}

/**
 * One table as this incarnation sees it: the newest base it knows, and the way to commit on top of it. Commits go one
 * at a time; the base it keeps is a cache that every commit confirms.
 */
export class OpenTable {
  readonly place: TablePlace;
  readonly sink: IcebergSink;
  readonly loader: Loader<IcebergBase, Operation>;
  /** What work on it found to be wrong with it. */
  readonly faults = new Faults();
  /** What was read of the files that its states reach. */
  readonly reached = new ReachMemory();
  readonly #committer: Committer<IcebergBase, Operation>;
  readonly #hint: Hint<IcebergBase, Operation>;
  readonly #clock: Clock;
  readonly #observe: CommitObserver;
  #base: IcebergBase | null = null;
  #turn: Promise<unknown> = Promise.resolve();

  /** `observe` is told of the end of every run. */
  constructor(ports: TablePorts, place: TablePlace, observe: CommitObserver = () => undefined) {
    this.place = place;
    this.#clock = ports.clock;
    this.#observe = observe;
    this.sink = new IcebergSink(place, ports);
    this.loader = new Loader(ports, this.sink);
    this.#committer = new Committer(ports, this.sink, this.loader);
    this.#hint = new Hint(ports, this.sink);
  }

  /** The newest base seen, or null before the first load and when there is no table. */
  get base(): IcebergBase | null {
    return this.#base;
  }

  /** Asks the store for the newest version; null when there is none. */
  async load(): Promise<IcebergBase | null> {
    const before = this.#base;
    const loaded = await this.loader.load(before);
    // A commit ended meanwhile, or another load: what it left stays, unless this one has read a later version of it.
    if (this.#base !== before && !this.#isLater(loaded)) return this.#base;
    // Unchanged: keep the one whose manifests are in memory.
    if (before === null || loaded === null || loaded.etag !== before.etag) this.#take(loaded);
    return this.#base;
  }

  /** Runs an operation after those before it have ended. `note`: see `Committer.commit`. */
  commit(operation: Operation, note: (version: number) => void): Promise<CommitResult<IcebergBase>> {
    const run = this.#turn.then(() => this.#run(operation, note));
    this.#turn = run.catch(() => undefined);
    return run;
  }

  /** Moves the pointer to the newest version known; returns that version, 0 when there is none. */
  async point(): Promise<number> {
    const version = this.#base?.version ?? 0;
    if (version > 0) await this.#hint.propose(version);
    return version;
  }

  async #run(operation: Operation, note: (version: number) => void): Promise<CommitResult<IcebergBase>> {
    const before = this.#base;
    const startedMs = this.#clock.now();
    const tookMs = () => this.#clock.now() - startedMs;
    let result: CommitResult<IcebergBase>;
    try {
      result = await this.#committer.commit(operation, before, note);
    } catch (error) {
      this.#observe(operation, { outcome: 'failed', error }, tookMs());
      throw error;
    }
    this.#observe(operation, result, tookMs());
    switch (result.outcome) {
      case 'committed':
        // Somebody else's version in between: the pointer may have moved without us.
        if (result.base.version !== (before?.version ?? 0) + 1) this.#hint.invalidate();
        if (!this.#isPast(before, result.base)) this.#take(result.base);
        break;
      case 'again':
      case 'refused':
      case 'nothing':
      case 'conflict':
        if (!this.#isPast(before, result.base) && !this.#isBehind(before, result.base)) this.#take(result.base);
        this.#hint.invalidate();
        break;
      case 'unavailable':
      case 'unknown':
        break;
    }
    return result;
  }

  /**
   * A commit on the table as it was before ended late, and a load beside it has seen another table since: what the commit
   * left is of the one that is gone. What a commit itself made of the table (creation, drop) is never past.
   */
  #isPast(before: IcebergBase | null, result: IcebergBase | null): boolean {
    const [was, is, ended] = [before, this.#base, result].map((base) => base?.metadata['table-uuid']);
    return is !== was && ended === was;
  }

  #isLater(loaded: IcebergBase | null): boolean {
    if (loaded === null || this.#base === null) return false;
    const isSame = loaded.metadata['table-uuid'] === this.#base.metadata['table-uuid'];
    return isSame && loaded.version > this.#base.version;
  }

  /**
   * A commit that made nothing was decided on a version that a load beside it has gone past meanwhile. The table may have been
   * dropped and made anew between the two, so that neither is of the table there was before.
   */
  #isBehind(before: IcebergBase | null, result: IcebergBase | null): boolean {
    return this.#base !== before && (result?.version ?? 0) < (this.#base?.version ?? 0);
  }

  #take(base: IcebergBase | null): void {
    const before = this.#base?.metadata['table-uuid'];
    if (before !== undefined && base?.metadata['table-uuid'] !== before) this.#hint.beginAnew();
    this.#base = base;
  }
}
