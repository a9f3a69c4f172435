import { tableSettings } from '../core/table/properties.ts';
import type { LogEvent } from './commit-log.ts';
import { Tries } from './failures.ts';
import type { OpenTable } from './open-table.ts';
import type { OrphanSweep } from './orphan-sweep.ts';
import type { Chore, ChoreState, Clock, Ledger } from './ports.ts';
import { tryUpkeep, type Upkeep } from './upkeep-try.ts';

export interface SweepPorts {
  ledger: Ledger;
  clock: Clock;
  log(event: LogEvent): void;
}

/** Sweeps orphans where the table's properties ask for it, a part of the folder in each run. When it did last is in the ledger. */
export class ScheduledSweep implements Chore {
  readonly isOfTable = true;
  readonly #ports: SweepPorts;
  readonly #table: OpenTable;
  readonly #sweep: OrphanSweep;
  readonly #tries = new Tries();
  readonly #upkeep: Upkeep;
  /** Where the sweep under way goes on; null: none is. A crash lets it begin anew. */
  #after: string | null = null;

  constructor(ports: SweepPorts, table: OpenTable, sweep: OrphanSweep) {
    this.#ports = ports;
    this.#table = table;
    this.#sweep = sweep;
    this.#upkeep = { ports, table, tries: this.#tries, source: 'sweep', failed: { event: 'sweep-failed' } };
  }

  get state(): ChoreState {
    return this.#tries.state(this.dueMs());
  }

  dueMs(): number | null {
    const { base } = this.#table;
    if (base === null) return null;
    const { served, dropped, sweep } = tableSettings(base.metadata.properties);
    if (!served || dropped || sweep.intervalMs === null) return null;
    const { sweptMs } = this.#ports.ledger.state();
    const dueMs = this.#after !== null || sweptMs === null ? 0 : sweptMs + sweep.intervalMs;
    return Math.max(dueMs, this.#tries.notBeforeMs);
  }

  /** One part of the folder. */
  run(): Promise<void> {
    return tryUpkeep(this.#upkeep, async () => {
      const { clock, ledger } = this.#ports;
      const { listed, orphans, bytes, next } = await this.#sweep.sweep(false, this.#after);
      this.#after = next;
      if (next === null) ledger.swept(clock.now());
      return { notBeforeMs: 0, told: { event: 'swept', listed, orphans, bytes, is_last: next === null } };
    });
  }
}
