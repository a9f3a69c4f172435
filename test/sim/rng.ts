import type { Random } from '../../src/engine/ports.ts';

/**
 * Numbers from a seed (mulberry32). Each actor of a simulation has its own, named after it, so that an actor that is
 * switched off does not change what the others draw.
 */
export class Rng implements Random {
  #state: number;

  constructor(seed: number, name = '') {
    let state = seed >>> 0;
    for (let i = 0; i < name.length; i++) state = Math.imul(state ^ name.charCodeAt(i), 0x01000193) >>> 0;
    this.#state = Math.imul(state ^ (state >>> 16), 0x85ebca6b) >>> 0;
  }

  /** 32 random bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }

  /** In [0, 1). */
  float(): number {
    return this.next() / 2 ** 32;
  }

  /** A whole number from 0 to below `end`. */
  below(end: number): number {
    return Math.floor(this.float() * end);
  }

  /** A whole number from `low` to `high`, both included. */
  between(low: number, high: number): number {
    return low + this.below(high - low + 1);
  }

  chance(probability: number): boolean {
    return this.float() < probability;
  }

  /** One of the items; undefined of none. */
  pick<T>(items: readonly T[]): T {
    return items[this.below(items.length)];
  }

  /** Waiting time of a Poisson process, milliseconds. */
  exponential(meanMs: number): number {
    return -Math.log(1 - this.float()) * meanMs;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.next() & 0xff);
  }
}
