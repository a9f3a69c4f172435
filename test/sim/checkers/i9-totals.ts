import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { Missing, type RawSnapshot } from './reader.ts';

/** I9: the totals of a summary are the sums over the manifests. */
export class TotalsChecker implements Checker {
  readonly #world: SimWorld;
  readonly #checked = new Set<number>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { raw, by }: SeenVersion): void {
    if (arrival === 'reopens') return;
    for (const snapshot of raw.snapshots ?? []) {
      const id = snapshot['snapshot-id'];
      if (this.#checked.has(id)) continue;
      this.#checked.add(id);
      this.#compare(snapshot, by);
    }
  }

  #compare({ summary, ...snapshot }: RawSnapshot, by: string): void {
    let live: readonly { records: number; bytes: number }[];
    try {
      live = this.#world.history.reader.reached({ summary, ...snapshot }).live;
    } catch (error) {
      if (error instanceof Missing) return; // I3 says so
      throw error;
    }
    const sums: Record<string, number> = {
      'total-data-files': live.length,
      'total-records': live.reduce((sum, file) => sum + file.records, 0),
      'total-files-size': live.reduce((sum, file) => sum + file.bytes, 0),
    };
    for (const [key, sum] of Object.entries(sums)) {
      if (Number(summary[key]) !== sum) {
        this.#world.violate(
          'I9',
          `snapshot ${snapshot['snapshot-id']} by ${by} says ${key}=${summary[key]}, it is ${sum}`,
        );
      }
    }
  }
}
