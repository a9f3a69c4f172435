import { SluiceError } from '../../../src/core/base/errors.ts';
import type { Batch } from '../model.ts';
import type { Rng } from '../rng.ts';
import { BRANCH, frameOf } from '../rows.ts';
import type { Owner } from '../scheduler.ts';
import type { Incarnation, SimObject } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';

/** Tries for a batch with an id. */
const TRIES_MAX = 5;

/** Sends batches to the branch, through any object; makes the branch when it is not there, and now and then drops it. */
export class BranchProducerActor implements Owner {
  readonly name = 'branch';
  ended = false;
  readonly #world: SimWorld;
  readonly #rng: Rng;

  constructor(world: SimWorld) {
    this.#world = world;
    this.#rng = world.rng('branch');
  }

  start(): void {
    const { scheduler, swarm, objects, model } = this.#world;
    scheduler.after(this.#rng.exponential(swarm.branchMs), this, 'thinks', () => {
      if (this.#world.isCalm) return;
      const object = this.#rng.pick(objects);
      if (this.#rng.chance(0.04)) {
        void object.call(({ changes }) => changes.dropRef(BRANCH)).catch((error: Error) => this.#note(error));
      } else {
        const batch = model.newBatch(this.#rng.between(1, 3), this.#rng.chance(swarm.batchIds));
        batch.branch = { life: this.#life() };
        this.#send(object, batch, batch.batchId === null ? 1 : TRIES_MAX);
      }
      this.start();
    });
  }

  /** The branch's life; none while it is not there, which an object may not have heard of yet. */
  #life(): number {
    const { history, model } = this.#world;
    return history.tip?.raw.refs?.[BRANCH] === undefined ? -1 : model.branchLife;
  }

  #send(object: SimObject, batch: Batch, tries: number): void {
    const { scheduler, swarm } = this.#world;
    const { life } = object;
    object
      .call((incarnation) => this.#append(object, incarnation, batch, life))
      .then((accepted) => {
        if (!this.#world.isCalm && this.#rng.chance(swarm.answerLost)) throw new Error('answer lost');
        scheduler.after(this.#rng.exponential(swarm.latencyMs), this, `hears of ${batch.id}`, () => {
          if (accepted !== null && object.life === life) batch.promise = accepted;
        });
      })
      .catch((error: Error) => {
        this.#note(error);
        if (tries < 2) return;
        scheduler.after(this.#rng.exponential(1_500), this, `again ${batch.id}`, () =>
          this.#send(object, batch, tries - 1),
        );
      });
  }

  async #append(object: SimObject, { writer, changes }: Incarnation, batch: Batch, life: number) {
    const { metadata } = await writer.live();
    if (metadata.refs[BRANCH] === undefined) await changes.setRef({ name: BRANCH, type: 'branch', snapshotId: null });
    const uuid = metadata['table-uuid'];
    if (batch.promise?.uuid !== uuid) batch.lives.add(`${uuid} ${life}`);
    const branchLife = this.#life();
    const frame = { ...frameOf(metadata, batch.rows, { batchId: batch.batchId }), branch: BRANCH };
    const { sequence, receipt, state, duplicate } = await writer.append(frame, uuid, 0);
    // A batch that was taken in an earlier life of the branch is of that one.
    if (!duplicate) batch.branch = { life: branchLife };
    if (duplicate && state.state === 'refused') return null;
    return { object: object.name, sequence, ledgerId: receipt.slice(0, receipt.indexOf('-')), uuid };
  }

  /** Known errors are answers; anything else is a bug. */
  #note(error: Error): void {
    this.#world.scheduler.note(`branch: ${error.message}`);
    if (error instanceof SluiceError && error.kind !== 'corrupt') return;
    if (!['Gone', 'StoreError', 'Error'].includes(error.name) && !this.#world.isErasing) {
      this.#world.violate('error', `branch: ${error.stack}`);
    }
  }
}
