import { ERASER } from '../actors/engine.ts';
import type { Mutation } from '../watched-memory.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';
import type { Arrival, SeenVersion } from './history.ts';
import { Missing, type RawSnapshot } from './reader.ts';

/**
 * I3: every file that a retained snapshot needs is there: when its version arrives, and as long as it is retained. A snapshot is told
 * by its manifest list: one whose commit expired before its writer heard of it is made again, under the same id.
 */
export class ReferencesChecker implements Checker {
  readonly #world: SimWorld;
  readonly #reached = new Map<string, ReadonlySet<string>>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onVersion(arrival: Arrival, { raw, key, by }: SeenVersion): void {
    // No part of the chain; or one that is being deleted, and the version with it.
    if (arrival === 'reopens' || this.#world.isErasing) return;
    for (const snapshot of raw.snapshots ?? []) {
      if (!this.#reached.has(snapshot['manifest-list'])) this.#look(snapshot, key, by);
    }
  }

  onMutation({ kind, key, by }: Mutation): void {
    if (kind !== 'deleted' || by === ERASER || this.#world.harmed.has(key)) return;
    for (const snapshot of this.#world.history.tip?.raw.snapshots ?? []) {
      if (this.#reached.get(snapshot['manifest-list'])?.has(key)) {
        this.#world.violate('I3', `${by} deleted ${key}, which snapshot ${snapshot['snapshot-id']} needs`);
        return;
      }
    }
  }

  #look(snapshot: RawSnapshot, key: string, by: string): void {
    try {
      this.#reached.set(snapshot['manifest-list'], this.#world.history.reader.reached(snapshot).keys);
    } catch (error) {
      if (!(error instanceof Missing)) throw error;
      this.#reached.set(snapshot['manifest-list'], new Set());
      this.#world.violate(
        'I3',
        `${key} by ${by} names snapshot ${snapshot['snapshot-id']}, which needs ${error.key}: missing`,
      );
    }
  }
}
