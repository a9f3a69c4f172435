import { EXPIRY_INTERVAL_MIN_MS, EXPIRY_PACE } from '../core/base/limits.ts';
import { expiryDueMs } from '../core/maintain/expiry-due.ts';
import { expiresByItself, retentionPolicy } from '../core/maintain/retention-policy.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { LogEvent } from './commit-log.ts';
import type { Expirer } from './expirer.ts';
import { Tries } from './failures.ts';
import type { OpenTable } from './open-table.ts';
import type { Chore, ChoreState, Clock, Ledger } from './ports.ts';
import { tryUpkeep, type Upkeep } from './upkeep-try.ts';

export interface ExpiryPorts {
  ledger: Ledger;
  clock: Clock;
  log(event: LogEvent): void;
}

/**
 * Expires snapshots when the table's properties say that it is time. When that is follows from the newest version that is
 * known: nothing is kept beside it, and a table of which nothing is to expire sets no alarm.
 */
export class ScheduledExpiry implements Chore {
  readonly isOfTable = true;
  readonly #ports: ExpiryPorts;
  readonly #table: OpenTable;
  readonly #expirer: Expirer;
  readonly #pace: typeof EXPIRY_PACE;
  readonly #tries = new Tries();
  readonly #upkeep: Upkeep;
  /** Due time of a version; versions are never changed in place. */
  #known: { metadata: object; dueMs: number | null } | null = null;

  /** `expirer` commits inside of the writer's run. */
  constructor(ports: ExpiryPorts, table: OpenTable, expirer: Expirer, pace: typeof EXPIRY_PACE = EXPIRY_PACE) {
    this.#ports = ports;
    this.#table = table;
    this.#expirer = expirer;
    this.#pace = pace;
    this.#upkeep = { ports, table, tries: this.#tries, source: 'expiry', failed: { event: 'expire-failed' } };
  }

  get state(): ChoreState {
    return this.#tries.state(this.dueMs());
  }

  dueMs(): number | null {
    const metadata = this.#table.base?.metadata;
    if (metadata === undefined) return null;
    if (this.#known?.metadata !== metadata) {
      const { served, dropped } = tableSettings(metadata.properties);
      const isOurs = served && !dropped && expiresByItself(metadata.properties);
      const dueMs = isOurs ? expiryDueMs(metadata, retentionPolicy(metadata.properties), this.#pace) : null;
      this.#known = { metadata, dueMs };
    }
    const { dueMs } = this.#known;
    if (dueMs === null) return null;
    // Not before a commit whose outcome is open: its next run may have to look for it among the snapshots.
    const openMs = this.#ports.ledger.state().intent?.retryMs ?? 0;
    return Math.max(dueMs, this.#tries.notBeforeMs, openMs + 1);
  }

  /** One expiry. */
  run(): Promise<void> {
    return tryUpkeep(this.#upkeep, async () => {
      const { changed, snapshotIds, refs, files, metadataFiles } = await this.#expirer.expire(false);
      // Nothing to do, although it was due: somebody else was first, or ages of a branch and of its ref cross.
      const notBeforeMs = this.#ports.clock.now() + (changed ? EXPIRY_INTERVAL_MIN_MS : this.#pace.lateMs);
      const counts = { snapshots: snapshotIds.length, refs: refs.length, files, metadataFiles };
      return { notBeforeMs, told: { event: 'expired', changed, ...counts } };
    });
  }
}
