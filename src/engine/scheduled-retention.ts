import { RETENTION_INTERVAL_MIN_MS } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { currentSnapshot } from '../core/iceberg/snapshot.ts';
import { earliestEnd, earliestEndOf, retentionCutoff, retentionDueMs } from '../core/maintain/retention.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { LogEvent } from './commit-log.ts';
import { Tries } from './failures.ts';
import type { LiveFiles } from './live-files.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable } from './open-table.ts';
import type { Chore, ChoreState, Clock, Ledger } from './ports.ts';
import type { Retention } from './retention.ts';
import { tryUpkeep, type Upkeep } from './upkeep-try.ts';

export interface RetentionPorts {
  ledger: Ledger;
  clock: Clock;
  log(event: LogEvent): void;
}

/** When the first data of a snapshot ends, microseconds; null: none ever goes. */
interface Looked {
  snapshotId: bigint | undefined;
  end: bigint | null;
}

/**
 * Drops partitions as they fall past the table's retention. When the next one does follows from the manifest list of the
 * newest version, which a commit leaves in memory; where the list was never read, or does not tell, the next run looks. A
 * table of which nothing will ever go sets no alarm.
 */
export class ScheduledRetention implements Chore {
  readonly isOfTable = true;
  readonly #ports: RetentionPorts;
  readonly #table: OpenTable;
  readonly #retention: Retention;
  readonly #live: LiveFiles;
  readonly #tries = new Tries();
  readonly #upkeep: Upkeep;
  /** What the list in memory told: lists are never changed. */
  #told: { base: IcebergBase; end: bigint | null | 'unknown' } | null = null;
  #looked: Looked | null = null;

  /** `retention` commits inside of the writer's run. */
  constructor(ports: RetentionPorts, table: OpenTable, retention: Retention, live: LiveFiles) {
    this.#ports = ports;
    this.#table = table;
    this.#retention = retention;
    this.#live = live;
    this.#upkeep = { ports, table, tries: this.#tries, source: 'retention', failed: { event: 'retention-failed' } };
  }

  get state(): ChoreState {
    return this.#tries.state(this.dueMs());
  }

  dueMs(): number | null {
    const { base } = this.#table;
    if (base === null) return null;
    const { served, dropped, maintain, retentionMs } = tableSettings(base.metadata.properties);
    if (!served || dropped || !maintain.isAuto || retentionMs === null) return null;
    const end = this.#endOf(base);
    const dueMs = end === 'unknown' ? 0 : retentionDueMs(base.metadata, end);
    if (dueMs === null) return null;
    // Not while the outcome of a commit is open: another one would only stand in its way.
    const openMs = this.#ports.ledger.state().intent?.retryMs ?? 0;
    return Math.max(dueMs, this.#tries.notBeforeMs, openMs + 1);
  }

  /** A look where one is needed, and one commit when something is to go. */
  run(): Promise<void> {
    return tryUpkeep(this.#upkeep, async () => {
      const { clock } = this.#ports;
      const base = liveTable(this.#table.base, this.#table.place);
      if (this.#endOf(base) === 'unknown') this.#looked = await this.#look(base, null);
      const dueMs = this.dueMs();
      if (dueMs === null || dueMs > clock.now()) return null;
      const { base: after, changed, files, rows, partitions } = await this.#retention.drop(false);
      // The list told of data that is not there any more, or that is not known to be old: so each file is asked.
      if (!changed) this.#looked = await this.#look(after, retentionCutoff(after.metadata, clock.now()));
      const notBeforeMs = clock.now() + RETENTION_INTERVAL_MIN_MS;
      return { notBeforeMs, told: { event: 'retained', changed, files, rows: rows.toString(), partitions } };
    });
  }

  #endOf(base: IcebergBase): bigint | null | 'unknown' {
    const snapshot = currentSnapshot(base.metadata);
    if (snapshot === null) return null;
    if (this.#looked?.snapshotId === snapshot['snapshot-id']) return this.#looked.end;
    if (base.manifests === null) return 'unknown';
    if (this.#told?.base !== base) this.#told = { base, end: earliestEnd(base.manifests, base.metadata) };
    return this.#told.end;
  }

  /** Asks the manifest list, and the manifests where that does not tell or data up to `after` is to be left out. */
  async #look(base: IcebergBase, after: bigint | null): Promise<Looked> {
    const snapshotId = currentSnapshot(base.metadata)?.['snapshot-id'];
    const told = after === null ? earliestEnd(await this.#live.rows(base), base.metadata) : 'unknown';
    if (told !== 'unknown') return { snapshotId, end: told };
    const { files } = await this.#live.of(base);
    return { snapshotId, end: earliestEndOf(files, base.metadata, after) };
  }
}
