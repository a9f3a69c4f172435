import type { Mutation } from '../watched-memory.ts';
import type { SimWorld } from '../world.ts';
import type { Checker } from './checker.ts';

/**
 * I2: a key never holds two contents. The pointer is moved, and a version's number may come again once somebody has deleted
 * its file; nothing else.
 */
export class ContentsChecker implements Checker {
  readonly #world: SimWorld;
  readonly #first = new Map<string, string>();

  constructor(world: SimWorld) {
    this.#world = world;
  }

  onMutation({ kind, key, by }: Mutation): void {
    if (kind === 'deleted' || key.endsWith('/version-hint.text')) return;
    if (kind === 'replaced') {
      this.#world.violate('I2', `${key} was written over by ${by}`);
      return;
    }
    if (this.#world.history.versionOf(key) !== null) return;
    const etag = this.#world.memory.peek(key)?.etag ?? '';
    const first = this.#first.get(key);
    if (first === undefined) this.#first.set(key, etag);
    else if (first !== etag) this.#world.violate('I2', `${key} holds another content, made by ${by}`);
  }
}
