import type { Incarnation, SimObject } from '../sim-object.ts';
import type { Mutation } from '../watched-memory.ts';
import type { Arrival, SeenVersion } from './history.ts';

/** One invariant, watched over. What it finds it says with `world.violate`. */
export interface Checker {
  /** Each change of the bucket, once the history has taken it in. */
  onMutation?(mutation: Mutation): void;
  /** Each version, as it arrived. */
  onVersion?(arrival: Arrival, seen: SeenVersion, before: SeenVersion | null): void;
  /** Each step of a ledger, before it happens. */
  onLedger?(object: SimObject, incarnation: Incarnation, step: string, args: readonly unknown[]): void;
  /** Each commit that an object takes for made. */
  onCommitted?(incarnation: Incarnation, commitId: string): void;
  /** After an event that changed the chain or a ledger. */
  atRest?(): void | Promise<void>;
  /** When the faults have stopped and everything has come to rest. */
  atEnd?(): void | Promise<void>;
}
