import { isDueToKeep } from '../core/maintain/kept-due.ts';
import type { Chore, Clock, Ledger } from './ports.ts';

/** Upkeep that is done in the writer's runs, behind the flushes. */
export class Chores {
  readonly #ports: { clock: Clock; ledger: Ledger };
  readonly #list: Chore[] = [];

  constructor(ports: { clock: Clock; ledger: Ledger }) {
    this.#ports = ports;
  }

  add(chore: Chore): void {
    this.#list.push(chore);
  }

  /** `isLooked`: the table was looked for in this incarnation; else what the ledger has kept of it counts. */
  dueMs(isLooked: boolean): number | null {
    const kept = isLooked ? null : this.#ports.ledger.state().choresDueMs;
    return earliest([kept, ...this.#list.map((chore) => chore.dueMs())]);
  }

  async run(): Promise<void> {
    for (const chore of this.#list) {
      const dueMs = chore.dueMs();
      if (dueMs !== null && dueMs <= this.#ports.clock.now()) await chore.run();
    }
  }

  /** What the table's metadata makes due is told to the ledger, for an incarnation that has not loaded it. */
  keep(): void {
    const { clock, ledger } = this.#ports;
    const ofTable = this.#list.filter(({ isOfTable }) => isOfTable);
    const dueMs = earliest(ofTable.map((chore) => chore.dueMs()));
    if (isDueToKeep(ledger.state().choresDueMs, dueMs, clock.now())) ledger.keepDue(dueMs);
  }
}

/** The earliest of due times; null: nothing is due. */
export function earliest(dues: readonly (number | null)[]): number | null {
  const known = dues.filter((dueMs) => dueMs !== null);
  return known.length === 0 ? null : Math.min(...known);
}
