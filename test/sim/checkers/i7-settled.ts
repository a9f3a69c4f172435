import type { Incarnation, SimObject } from '../sim-object.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';

/** I7: nothing is believed or settled as committed that the chain has never held. */
export class SettledChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onCommitted(incarnation: Incarnation, commitId: string): void {
    if (!this.#world.history.commits.has(commitId)) {
      this.#world.violate('I7', `${incarnation.name} believes ${commitId}, which was never in the chain`);
    }
  }

  onLedger(object: SimObject, incarnation: Incarnation, step: string, args: readonly unknown[]): void {
    if (step !== 'settle') return;
    const settlement = args[0] as { outcome: string; snapshotId?: bigint | null };
    const open = object.ledger.state().intent;
    if (open === null || settlement.outcome !== 'committed') return;
    // Without a snapshot: somebody committed the frames before, which I1 sees.
    if (settlement.snapshotId === null || settlement.snapshotId === undefined) return;
    const { commitId } = open.intent;
    if (!this.#world.history.commits.has(commitId)) {
      this.#world.violate('I7', `${incarnation.name} settles ${commitId}, which was never in the chain`);
    }
  }
}
