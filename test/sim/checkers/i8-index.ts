import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { currentOf, INDEX_KEY, keyOf, Missing, type RawMetadata, type RawSnapshot } from './reader.ts';

/** A served table with rows that names no index, or one whose file was harmed: maintenance is to make it again. */
export function isMendable({ history, harmed }: SimWorld): boolean {
  const { current, isServed } = history;
  if (!isServed || current === null || current.summary['total-records'] === '0') return false;
  const index = current.summary[INDEX_KEY];
  return index === undefined || harmed.has(keyOf(index) ?? '');
}

/** The row of a series that is held against an index. */
interface Newest {
  time: bigint;
  v: number;
}

/**
 * I8: the last-value index, where a snapshot names one, holds the newest row of each series of all live files of that snapshot,
 * whoever made it and on whatever branch. It is there for as long as the snapshot is, unless its file was harmed.
 */
export class IndexChecker implements Checker {
  readonly #world: SimWorld;
  /** Manifest lists of the snapshots that were looked at: a snapshot is told by its list. */
  readonly #checked = new Set<string>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  /** The chain of indexes breaks where another writer, or a removal of rows, commits on top of a snapshot that names one. */
  onVersion(arrival: Arrival, { raw }: SeenVersion, before: SeenVersion | null): void {
    if (arrival !== 'extends' || before === null) return;
    const [was, is] = [currentOf(before.raw), currentOf(raw)];
    const [indexBefore, index] = [was?.summary[INDEX_KEY], is?.summary[INDEX_KEY]];
    if (is === null || indexBefore === undefined) return;
    if (index === undefined) this.#world.hit('index-lost');
    // A compaction carries the index of its parent on.
    const isRebuilt = is.summary['operation'] === 'replace' && index !== indexBefore;
    const isSameSchema = raw['current-schema-id'] === before.raw['current-schema-id'];
    if (isRebuilt && isSameSchema && this.#world.harmed.has(keyOf(indexBefore) ?? '')) this.#world.hit('index-mended');
  }

  async atRest(): Promise<void> {
    const raw = this.#world.history.tip?.raw;
    if (raw === undefined || this.#world.isErasing) return;
    for (const snapshot of raw.snapshots ?? []) {
      const index = snapshot.summary[INDEX_KEY];
      if (index === undefined || this.#checked.has(snapshot['manifest-list'])) continue;
      this.#checked.add(snapshot['manifest-list']);
      await this.#check(raw, snapshot, index);
    }
  }

  async #check(raw: RawMetadata, snapshot: RawSnapshot, index: string): Promise<void> {
    const key = keyOf(index);
    if (key === null) this.#world.violate('I8', `index lies outside the bucket: ${index}`);
    if (key === null || this.#world.harmed.has(key)) return;
    const what = `index ${index} of snapshot ${snapshot['snapshot-id']}`;
    try {
      const { live } = this.#world.history.reader.reached(snapshot);
      const indexed = await this.#newest(raw, [index]);
      for (const [device, { time, v }] of await this.#newest(
        raw,
        live.map(({ path }) => path),
      )) {
        const known = indexed.get(device);
        if (known?.time !== time || known.v !== v)
          this.#world.violate('I8', `${what} is not at the newest row of ${device}`);
        indexed.delete(device);
      }
      for (const device of indexed.keys()) this.#world.violate('I8', `${what} knows ${device}, the table does not`);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      // Of anything else I3 says so.
      if (error.key === key) this.#world.violate('I8', `${what}: ${error.message}`);
    }
  }

  async #newest(raw: RawMetadata, files: readonly string[]): Promise<Map<string, Newest>> {
    const fields = raw.schemas.find((known) => known['schema-id'] === raw['current-schema-id'])?.fields ?? [];
    const newest = new Map<string, Newest>();
    for (const file of files) {
      for (const { device, time, v } of await this.#world.history.reader.rows(file, fields)) {
        const known = newest.get(device);
        if (known === undefined || time > known.time) newest.set(device, { time, v });
      }
    }
    return newest;
  }
}
