import type { Batch } from '../model.ts';
import type { Rng } from '../rng.ts';
import { frameOf } from '../rows.ts';
import type { Owner } from '../scheduler.ts';
import type { Incarnation, SimObject } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';

/**
 * Sends batches, and does not wait for one before it sends the next. A batch with an id is sent again until it is answered,
 * and sometimes once more after that; one without is sent once.
 */
export class ProducerActor implements Owner {
  readonly name: string;
  ended = false;
  readonly #world: SimWorld;
  readonly #object: SimObject;
  readonly #rng: Rng;
  readonly #sent: Batch[] = [];

  constructor(world: SimWorld, object: SimObject, name: string) {
    this.name = name;
    this.#world = world;
    this.#object = object;
    this.#rng = world.rng(name);
  }

  start(): void {
    const { scheduler, swarm } = this.#world;
    scheduler.after(this.#rng.exponential(swarm.thinkMs), this, 'thinks', () => {
      if (this.#world.isCalm) return;
      this.#act();
      this.start();
    });
  }

  #act(): void {
    const { model, swarm } = this.#world;
    if (this.#sent.length > 0 && this.#rng.chance(swarm.replay)) {
      const batch = this.#rng.pick(this.#sent);
      if (batch.batchId !== null) this.#send(batch, 1);
      return;
    }
    const batch = model.newBatch(this.#rng.between(1, 4), this.#rng.chance(swarm.batchIds));
    this.#sent.push(batch);
    this.#send(batch, batch.batchId === null ? 1 : 6);
  }

  #send(batch: Batch, tries: number): void {
    const { scheduler, swarm } = this.#world;
    const leaves = this.#rng.exponential(swarm.latencyMs);
    scheduler.after(leaves, this, `sends ${batch.id}`, () => {
      const object = this.#object;
      const { life } = object;
      object
        .call((incarnation) => this.#append(incarnation, batch, life))
        .then((accepted) => {
          if (!this.#world.isCalm && this.#rng.chance(swarm.answerLost)) throw new Error('answer lost');
          scheduler.after(this.#rng.exponential(swarm.latencyMs), this, `hears of ${batch.id}`, () => {
            // Heard after the ledger was lost: the promise went with it.
            if (accepted !== null && object.life === life) batch.promise = newer(batch.promise, accepted);
          });
        })
        .catch((error: Error) => {
          scheduler.note(`${this.name}: ${batch.id} failed: ${error.message}`);
          if (tries > 1) this.#sendLater(batch, tries - 1);
        });
    });
  }

  #sendLater(batch: Batch, tries: number): void {
    this.#world.scheduler.after(this.#rng.exponential(1_500), this, `again ${batch.id}`, () =>
      this.#send(batch, tries),
    );
  }

  async #append(incarnation: Incarnation, batch: Batch, life: number) {
    const { metadata } = await incarnation.writer.live();
    const uuid = metadata['table-uuid'];
    // From here on it may be in the ledger, whatever the answer.
    if (batch.promise?.uuid !== uuid) batch.lives.add(`${uuid} ${life}`);
    const waitMs = this.#rng.chance(0.2) ? 2_000 : 0;
    const frame = frameOf(metadata, batch.rows, { batchId: batch.batchId });
    const { sequence, receipt, state, duplicate } = await incarnation.writer.append(frame, uuid, waitMs);
    // Told that an earlier try was refused: that is an answer, and promises nothing.
    if (duplicate && state.state === 'refused') return null;
    return { object: this.#object.name, sequence, ledgerId: receipt.slice(0, receipt.indexOf('-')), uuid };
  }
}

/** Batch ids are forgotten with their table: what was said last counts. */
function newer(known: Batch['promise'], heard: NonNullable<Batch['promise']>): Batch['promise'] {
  return known !== null && known.sequence > heard.sequence && known.ledgerId === heard.ledgerId ? known : heard;
}
