import { SluiceError } from '../../../src/core/base/errors.ts';
import type { Rng } from '../rng.ts';
import type { Owner } from '../scheduler.ts';
import { SERIES } from '../service.ts';
import type { SimObject } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';

/** Makes the table, drops it and makes it anew, and attaches what another writer made in its place. */
export class OperatorActor implements Owner {
  readonly name = 'operator';
  ended = false;
  readonly #world: SimWorld;
  readonly #rng: Rng;
  #busy = false;

  constructor(world: SimWorld) {
    this.#world = world;
    this.#rng = world.rng('operator');
  }

  start(): void {
    this.#tend();
    this.#dropLater();
  }

  /** Once: sees to it that there is a served table. Resolves when it tried. */
  async tend(object = this.#object()): Promise<void> {
    if (this.#busy || this.#world.history.isServed || this.#world.isErasing) return;
    this.#busy = true;
    const { history, swarm, scheduler } = this.#world;
    const isForeign = history.tip !== null && history.tip.raw.properties['sluice.dropped'] !== 'true';
    const properties = {
      'sluice.flush-interval': `${swarm.flushSeconds}s`,
      ...(swarm.compactBySelf ? { 'timelake.compact-min-files': '3' } : {}),
      ...(swarm.retention ? { 'timelake.retention': '1d' } : {}),
      'timelake.snapshot-retention': '5s',
      'timelake.min-snapshots': '2',
      'timelake.max-snapshots': '12',
    };
    scheduler.note(`operator ${isForeign ? 'attaches' : 'creates'} through ${object.name}`);
    await object
      .call(({ admin }) =>
        isForeign ? admin.attach(null).then(() => null) : admin.create({ ...SERIES, properties }).then(() => null),
      )
      .catch((error: Error) => this.#note(error));
    this.#busy = false;
  }

  #tend(): void {
    this.#world.scheduler.after(this.#rng.exponential(600), this, 'looks', () => {
      void this.tend();
      this.#tend();
    });
  }

  #dropLater(): void {
    const { scheduler, swarm } = this.#world;
    if (swarm.dropMs === 0) return;
    scheduler.after(this.#rng.exponential(swarm.dropMs), this, 'drops', () => {
      if (this.#world.isCalm) return;
      void this.#object()
        .call(({ admin }) => admin.drop())
        .catch((error: Error) => this.#note(error));
      this.#dropLater();
    });
  }

  #object(): SimObject {
    return this.#rng.pick(this.#world.objects);
  }

  /** Known errors are answers; anything else is a bug. */
  #note(error: Error): void {
    this.#world.scheduler.note(`operator: ${error.message}`);
    if (!(error instanceof SluiceError) && error.name !== 'Gone' && error.name !== 'StoreError') {
      this.#world.violate('error', `operator: ${error.stack}`);
    }
  }
}
