import { SluiceError } from '../../../src/core/base/errors.ts';
import { progressOf } from '../checkers/i5-progress.ts';
import type { Batch } from '../model.ts';
import type { Rng } from '../rng.ts';
import { frameOf } from '../rows.ts';
import type { Owner } from '../scheduler.ts';
import type { Incarnation, SimObject } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';

/** What the producer does once it has heard. */
type Heard = 'next' | 'again';

/**
 * A producer that keeps its progress in the table: epochs of one app, one after another. It sends the next when the one
 * before was acknowledged (a careless one does not wait), resends what was not answered, replays old ones, asks after a
 * refusal where it stands and goes on from there, and lets its app go on when a batch of it was refused. After a rollback it
 * finds itself further back and sends again what is missing.
 */
export class AppProducerActor implements Owner {
  readonly name: string;
  ended = false;
  readonly #world: SimWorld;
  readonly #object: SimObject;
  readonly #rng: Rng;
  readonly #app: string;
  readonly #sparse: boolean;
  readonly #careless: boolean;
  /** Batches by epoch; a skipped epoch has none. */
  readonly #sent = new Map<bigint, Batch>();
  #epoch: bigint;

  constructor(world: SimWorld, object: SimObject, name: string) {
    this.name = name;
    this.#world = world;
    this.#object = object;
    this.#rng = world.rng(name);
    this.#app = `app-${name}`;
    this.#sparse = this.#rng.chance(0.3);
    this.#careless = this.#rng.chance(0.3);
    this.#epoch = BigInt(this.#rng.between(0, 5));
  }

  start(): void {
    this.#think(this.#rng.exponential(this.#world.swarm.thinkMs));
  }

  #think(afterMs: number): void {
    this.#world.scheduler.after(afterMs, this, 'thinks', () => {
      if (this.#world.isCalm) return;
      const isReplay = this.#sent.size > 0 && this.#rng.chance(this.#world.swarm.replay);
      if (isReplay) void this.#send(this.#rng.pick([...this.#sent.keys()]));
      const sending = this.#send(this.#epoch).then((heard) => {
        if (heard === 'next') this.#epoch += this.#sparse ? BigInt(this.#rng.between(1, 4)) : 1n;
        if (!this.#careless) this.start();
      });
      if (!this.#careless) return;
      void sending;
      this.start();
    });
  }

  async #send(epoch: bigint): Promise<Heard> {
    const { model, swarm, scheduler } = this.#world;
    let batch = this.#sent.get(epoch);
    if (batch === undefined) {
      batch = model.newBatch(this.#rng.between(1, 3), false);
      batch.app = this.#app;
      batch.isDamaged = this.#rng.chance(swarm.damaged);
      this.#sent.set(epoch, batch);
    }
    // Through the other service now and then, once the table has all that came before: what one service has accepted it
    // alone knows, and an epoch in the table tells the other that those before it are done with.
    const { tip } = this.#world.history;
    const committed = tip === null ? undefined : progressOf(tip.raw).get(this.#app);
    const mayMove = !this.#sparse && !this.#careless && swarm.damaged === 0 && committed === epoch - 1n;
    const object = mayMove && this.#rng.chance(0.15) ? this.#rng.pick(this.#world.objects) : this.#object;
    const { life } = object;
    await this.#travel(`sends ${batch.id} as epoch ${epoch}`);
    try {
      const heard = await object.call((incarnation) => this.#append(incarnation, batch, epoch));
      if (!this.#world.isCalm && this.#rng.chance(swarm.answerLost)) throw new Error('answer lost');
      await this.#travel(`hears of ${batch.id}`);
      if (heard !== null && object.life === life) {
        batch.promise = { ...heard.promise, object: object.name };
        if (!heard.duplicate) batch.excuse = null;
      }
      return 'next';
    } catch (error) {
      scheduler.note(`${this.name}: ${epoch} failed: ${(error as Error).message}`);
      return this.#react(error as Error, object, epoch);
    }
  }

  async #append(incarnation: Incarnation, batch: Batch, epoch: bigint) {
    const { metadata } = await incarnation.writer.live();
    const uuid = metadata['table-uuid'];
    batch.lives.add(`${uuid} app`);
    const producer = { app: this.#app, epoch, sparse: this.#sparse };
    const frame = frameOf(metadata, batch.rows, { producer });
    // A batch that was damaged on the way to the buffer: it is found out when its columns are read.
    if (batch.isDamaged) frame.body[frame.body.length >> 1] ^= 0x55;
    const { sequence, receipt, state, duplicate } = await incarnation.writer.append(frame, uuid, 0);
    if (duplicate && state.state === 'refused') return null;
    const promise = { sequence, ledgerId: receipt.slice(0, receipt.indexOf('-')), uuid };
    return { promise, duplicate };
  }

  /** What a refusal says about where to go on. */
  async #react(error: Error, object: SimObject, epoch: bigint): Promise<Heard> {
    if (!(error instanceof SluiceError)) return 'again';
    switch (error.type) {
      case 'epoch-gap':
        this.#goTo(BigInt((error.detail as { expected: string }).expected));
        return 'again';
      case 'epoch-behind':
        return 'next';
      case 'app-parked':
        await object.call((incarnation) => this.#unpark(incarnation)).catch(() => undefined);
        return 'again';
      case 'epoch-conflict':
        // Skipped or replaced by its owner; whoever sends it again goes on behind it.
        return epoch === this.#epoch ? 'next' : 'again';
      default:
        return 'again';
    }
  }

  #goTo(epoch: bigint): void {
    this.#epoch = epoch;
  }

  /** The owner's decision about a refused epoch. */
  async #unpark(incarnation: Incarnation): Promise<void> {
    const { metadata } = await incarnation.writer.live();
    const { parked } = incarnation.writer.apps.status(this.#app);
    if (parked === null) return;
    const { epoch } = parked;
    this.#world.scheduler.note(`${this.name} lets ${epoch} go`);
    if (this.#rng.chance(0.5)) {
      incarnation.writer.apps.skip(this.#app, epoch);
      return;
    }
    const batch = this.#world.model.newBatch(1, false);
    batch.app = this.#app;
    batch.lives.add(`${metadata['table-uuid']} app`);
    this.#sent.set(epoch, batch);
    incarnation.writer.apps.replace(this.#app, epoch, frameOf(metadata, batch.rows));
  }

  #travel(label: string): Promise<void> {
    const { scheduler, swarm } = this.#world;
    return new Promise((resolve) => {
      scheduler.after(this.#rng.exponential(swarm.latencyMs), this, label, () => resolve());
    });
  }
}
