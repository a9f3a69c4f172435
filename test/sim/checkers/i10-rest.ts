import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';

/** I10: when faults stop, every intent settles, the buffers empty, and the pointer follows the chain. */
export class RestChecker implements Checker {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  atEnd(): void {
    this.#pointer();
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

  /** The pointer is at the newest version, if that is ours and the foreign writer has not taken the pointer back. */
  #pointer(): void {
    const { history, memory } = this.#world;
    const { tip, pointedBack } = history;
    if (tip === null || tip.by.startsWith('engine') || pointedBack > tip.at) return;
    // A version by an incarnation that was cut off is pointed at once its successor hears of it.
    if (!this.#world.objects.some(({ current }) => current?.name === tip.by)) return;
    const hint = memory.peek(tip.key.replace(/v[0-9]+\.metadata\.json$/, 'version-hint.text'));
    const version = hint === null ? 0 : Number(new TextDecoder().decode(hint.bytes));
    if (version < tip.version)
      this.#world.violate('I10', `the pointer stays at ${version}, the table is at ${tip.version}`);
  }
}
