import type { Service } from './service.ts';

/** What a killed incarnation throws at itself: nothing after it may happen. */
export class Crash extends Error {
  override readonly name = 'Crash';
}

/**
 * Kills an incarnation at its step `point`, counted over store calls and ledger steps, each before and after its
 * effect. From then on every call of that incarnation fails without an effect: it is dead.
 */
export function crashAt(service: Service, point: number): { reached: () => boolean; points: () => number } {
  let at = 0;
  let dead = false;
  const step = () => {
    if (dead) throw new Crash('dead');
    if (at++ === point) {
      dead = true;
      throw new Crash(`at point ${point}`);
    }
  };
  service.store.onBefore(step);
  service.store.onAfter(step);
  service.ledger.hook = step;
  return { reached: () => dead, points: () => at };
}
