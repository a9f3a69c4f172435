import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { type PastFiles, pastFiles, retentionCutoff } from '../core/maintain/retention.ts';
import type { LiveFiles } from './live-files.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable } from './open-table.ts';
import type { Clock } from './ports.ts';
import type { TableFiles } from './table-files.ts';

/** What a table's retention dropped, or would drop. */
export interface RetentionReport extends PastFiles {
  base: IcebergBase;
  changed: boolean;
  /** What ended at or before this instant goes, microseconds since 1970; null: the table keeps all. */
  cutoff: bigint | null;
}

const NO_FILES: PastFiles = { files: 0, rows: 0n, bytes: 0n, partitions: 0 };

/** Drops partitions that are past the table's retention, all in one commit. */
export class Retention {
  readonly #clock: Clock;
  readonly #table: OpenTable;
  readonly #files: TableFiles;
  readonly #live: LiveFiles;

  constructor(clock: Clock, table: OpenTable, files: TableFiles, live: LiveFiles) {
    this.#clock = clock;
    this.#table = table;
    this.#files = files;
    this.#live = live;
  }

  /** @throws invalid `unknown-table`, `not-attached`; rejected `too-many-manifests`; what commits of administrators throw */
  async drop(dryRun: boolean): Promise<RetentionReport> {
    const nowMs = this.#clock.now();
    const base = liveTable(await this.#table.load(), this.#table.place);
    const cutoff = retentionCutoff(base.metadata, nowMs);
    if (cutoff === null) return { base, changed: false, cutoff, ...NO_FILES };
    if (dryRun) {
      const { files } = await this.#live.of(base);
      return { base, changed: false, cutoff, ...pastFiles(files, base.metadata, cutoff) };
    }
    const { base: after, changed, report } = await this.#files.retain(cutoff);
    if (report === null) return { base: after, changed, cutoff, ...NO_FILES };
    const { removed, changedPartitions } = report;
    return { base: after, changed, cutoff, ...removed, partitions: changedPartitions };
  }
}
