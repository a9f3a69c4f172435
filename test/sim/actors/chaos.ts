import type { Rng } from '../rng.ts';
import type { Owner } from '../scheduler.ts';
import type { SimWorld } from '../world.ts';

/** What befalls the objects: they crash, are cut off and go on, lose their storage or get an earlier one back. */
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
