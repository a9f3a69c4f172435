import { isDueToKeep } from '../core/maintain/kept-due.ts';
import type { Chore, Clock, Ledger } from './ports.ts';

/** What the writer hears of the work beside its runs. */
export interface ChoreHooks {
  ended(): void;
}

/**
 * Upkeep of a table: chores that are part of the writer's runs, one after the other behind the flushes, and one that takes
 * seconds and goes on beside them.
 */
export class Chores {
  readonly #ports: { clock: Clock; ledger: Ledger };
  readonly #hooks: ChoreHooks;
  readonly #inRun: Chore[] = [];
  #beside: Chore | null = null;
  #underWay: Promise<void> | null = null;

  constructor(ports: { clock: Clock; ledger: Ledger }, hooks: ChoreHooks) {
    this.#ports = ports;
    this.#hooks = hooks;
  }

  add(chore: Chore): void {
    this.#inRun.push(chore);
  }

  addBeside(chore: Chore): void {
    this.#beside = chore;
  }

  /** `isLooked`: the table was looked for in this incarnation; else what the ledger has kept of it counts. */
  dueMs(isLooked: boolean): number | null {
    return earliest([this.inRunDueMs(isLooked), this.#beside?.dueMs() ?? null]);
  }

  /** Without what goes on beside: an alarm stands behind that in case it is cut off, and nobody in memory waits for it. */
  inRunDueMs(isLooked: boolean): number | null {
    const kept = isLooked ? null : this.#ports.ledger.state().choresDueMs;
    return earliest([kept, ...this.#inRun.map((chore) => chore.dueMs())]);
  }

  async run(): Promise<void> {
    for (const chore of this.#inRun) if (this.#isDue(chore)) await chore.run();
  }

  /** Starts what goes on beside, when it is due and not under way. */
  startBeside(): void {
    const chore = this.#beside;
    if (chore === null || this.#underWay !== null || !this.#isDue(chore)) return;
    this.#underWay = chore
      .run()
      .finally(() => {
        this.#underWay = null;
        this.#hooks.ended();
      })
      // The ledger's: this incarnation has lost it, and the next one goes on from there.
      .catch(() => undefined);
  }

  /** What goes on beside now; null: nothing. */
  get underWay(): Promise<void> | null {
    return this.#underWay;
  }

  /** What the table's metadata makes due is told to the ledger, for an incarnation that has not loaded it. */
  keep(): void {
    const { clock, ledger } = this.#ports;
    const ofTable = this.#inRun.filter(({ isOfTable }) => isOfTable);
    const dueMs = earliest(ofTable.map((chore) => chore.dueMs()));
    if (isDueToKeep(ledger.state().choresDueMs, dueMs, clock.now())) ledger.keepDue(dueMs);
  }

  #isDue(chore: Chore): boolean {
    const dueMs = chore.dueMs();
    return dueMs !== null && dueMs <= this.#ports.clock.now();
  }
}

/** The earliest of due times; null: nothing is due. */
export function earliest(dues: readonly (number | null)[]): number | null {
  const known = dues.filter((dueMs) => dueMs !== null);
  return known.length === 0 ? null : Math.min(...known);
}
