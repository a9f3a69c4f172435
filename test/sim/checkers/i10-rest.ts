import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';

/** I10: when faults stop, every intent settles, the buffers empty, and the pointer follows the chain. */
export class RestChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  atEnd(): void {
    for (const { name, ledger } of this.#world.objects) {
      const { intent, buffer, lastError } = ledger.state();
      if (intent !== null)
        this.#world.violate(
          'I10',
          `${name} still has an open intent: ${intent.failures} failures, ${lastError?.message}`,
        );
      else if (buffer.frames > 0)
        this.#world.violate('I10', `${name} still buffers ${buffer.frames} batches: ${lastError?.message}`);
    }
  }
}
