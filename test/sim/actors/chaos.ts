import { INDEX_KEY, keyOf } from '../checkers/reader.ts';
import type { Rng } from '../rng.ts';
import type { Owner } from '../scheduler.ts';
import type { SimWorld } from '../world.ts';

/**
 * What befalls the objects: they crash, are cut off and go on, lose their storage or get an earlier one back. And the file of
 * the last-value index, which rows never wait for: it vanishes or is cut short.
 */
export class ChaosActor implements Owner {
  readonly name = 'chaos';
  ended = false;
  readonly #world: SimWorld;
  readonly #rng: Rng;

  constructor(world: SimWorld) {
    this.#world = world;
    this.#rng = world.rng('chaos');
  }

  start(): void {
    const { swarm, objects } = this.#world;
    this.#every(swarm.crashMs, 'ends', () => {
      this.#rng.pick(objects).end(this.#rng.chance(swarm.zombie) ? 'cut' : 'crash');
    });
    this.#every(swarm.loseMs, 'loses', () => this.#rng.pick(objects).lose());
    if (swarm.restoreMs > 0) this.#every(swarm.restoreMs / 4, 'copies', () => this.#rng.pick(objects).keepCopy());
    this.#every(swarm.restoreMs, 'restores', () => {
      const object = this.#rng.pick(objects);
      // Not while a request of it is on its way: see `restore`.
      if (object.copies.length > 0 && !object.isBusy) object.restore(this.#rng.below(object.copies.length));
    });
    this.#every(swarm.damageMs, 'harms the index', () => harmIndex(this.#world, this.#rng));
  }

  #every(meanMs: number, label: string, act: () => void): void {
    if (meanMs === 0) return;
    this.#world.scheduler.after(this.#rng.exponential(meanMs), this, label, () => {
      if (this.#world.isCalm) return;
      act();
      this.#every(meanMs, label, act);
    });
  }
}

/** The file of the index that the table names vanishes, or is cut short. */
export function harmIndex(world: SimWorld, rng: Rng): void {
  const { history, memory, harmed } = world;
  const named = history.current?.summary[INDEX_KEY];
  const key = named === undefined ? null : keyOf(named);
  const stored = key === null ? null : memory.peek(key);
  if (key === null || stored === null || harmed.has(key)) return;
  harmed.add(key);
  if (rng.chance(0.5)) void memory.as('chaos').delete([key]);
  else memory.harm(key, stored.bytes.slice(0, stored.bytes.length >> 1));
  world.hit('index-harmed');
}
