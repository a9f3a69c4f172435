import { DOOMED_KEYS_MAX, ERASE_GRACE_MS, ERASE_ROUNDS_PER_CALL, ERASE_UPLOADS_MAX } from '../core/base/limits.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { MaintenancePlan, Step } from '../core/maintain/steps.ts';
import type { LogEvent } from './commit-log.ts';
import type { Compactor, MaintainReport } from './compactor.ts';
import type { Erased, Eraser } from './eraser.ts';
import type { ExpireReport, Expirer } from './expirer.ts';
import { errorRecord } from './failures.ts';
import type { FaultSource } from './faults.ts';
import type { IndexRebuild, IndexReport } from './index-rebuild.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable } from './open-table.ts';
import type { OrphanSweep, SweepReport } from './orphan-sweep.ts';
import type { Clock, ErrorRecord, Ledger } from './ports.ts';
import type { Retention, RetentionReport } from './retention.ts';

export interface EraseReport extends Erased {
  /** Keys that are due and were left for another request. */
  remaining: number;
}

/** What a step did, or what kept it from that. */
export type Outcome<T> = { error: null; report: T } | { error: ErrorRecord; report: null };

/** What was done; null: a step that was not asked for. */
export interface MaintenanceReport {
  base: IcebergBase;
  changed: boolean;
  retention: Outcome<RetentionReport> | null;
  compact: Outcome<MaintainReport> | null;
  index: Outcome<IndexReport> | null;
  expire: Outcome<ExpireReport> | null;
  erase: Outcome<EraseReport> | null;
  sweep: Outcome<SweepReport> | null;
}

export interface MaintenanceParts {
  clock: Clock;
  ledger: Ledger;
  table: OpenTable;
  retention: Retention;
  compactor: Compactor;
  indexRebuild: IndexRebuild;
  expirer: Expirer;
  eraser: Eraser;
  sweep: OrphanSweep;
  log(event: LogEvent): void;
}

const SOURCES: Readonly<Record<Step, FaultSource>> = {
  retention: 'retention',
  compact: 'compaction',
  index: 'index',
  expire: 'expiry',
  erase: 'erasing',
  sweep: 'sweep',
};

/** All upkeep of a table by request. A step that fails is told, and neither undoes nor hides the others. */
export class Maintenance {
  readonly #parts: MaintenanceParts;

  constructor(parts: MaintenanceParts) {
    this.#parts = parts;
  }

  /** @throws invalid `unknown-table`, `not-attached`; what the first step throws when every one fails; StoreError */
  async run({ steps, full, sweepAfter, dryRun }: MaintenancePlan): Promise<MaintenanceReport> {
    const { table, retention, compactor, indexRebuild, expirer, sweep } = this.#parts;
    liveTable(await table.load(), table.place);
    const thrown: unknown[] = [];
    const step = async <T>(name: Step, work: () => Promise<T>): Promise<Outcome<T> | null> => {
      if (!steps.includes(name)) return null;
      try {
        const report = await work();
        // Compaction tells itself which files it goes around.
        if (name !== 'compact') table.faults.found(SOURCES[name], [], this.#parts.clock.now());
        return { error: null, report };
      } catch (error) {
        thrown.push(error);
        return { error: this.#failed(name, error), report: null };
      }
    };
    const done = {
      retention: await step('retention', () => retention.drop(dryRun)),
      compact: await step('compact', () => compactor.maintain(full, dryRun)),
      index: await step('index', () => indexRebuild.run(dryRun)),
      expire: await step('expire', () => expirer.expire(dryRun)),
      erase: await step('erase', () => this.#erase(dryRun)),
      sweep: await step('sweep', () => sweep.sweep(dryRun, sweepAfter)),
    };
    if (thrown.length > 0 && thrown.length === steps.length) throw thrown[0];
    const changed = [done.retention, done.compact, done.index, done.expire].some(
      (outcome) => outcome?.report?.changed === true,
    );
    return { base: liveTable(table.base, table.place), changed, ...done };
  }

  /** What is due now; what this very request has queued waits for its hour. */
  async #erase(dryRun: boolean): Promise<EraseReport> {
    const { clock, eraser, ledger } = this.#parts;
    const due = () => ledger.doomed(clock.now(), DOOMED_KEYS_MAX).length;
    if (dryRun) {
      const uploads = ledger.openUploads(clock.now() - ERASE_GRACE_MS, ERASE_UPLOADS_MAX).length;
      return { keys: due(), kept: 0, uploads, remaining: 0 };
    }
    const all: Erased = { keys: 0, kept: 0, uploads: 0 };
    for (let round = 0; round < ERASE_ROUNDS_PER_CALL; round++) {
      const { keys, kept, uploads } = await eraser.erase();
      all.keys += keys;
      all.kept += kept;
      all.uploads += uploads;
      if (keys + kept + uploads === 0) break;
    }
    return { ...all, remaining: due() };
  }

  #failed(step: Step, error: unknown): ErrorRecord {
    const { clock, table } = this.#parts;
    const record = errorRecord(error, clock.now());
    table.faults.failed(SOURCES[step], error, clock.now());
    this.#parts.log({ event: 'maintain-failed', table: this.#parts.table.place.location, step, ...record });
    return record;
  }
}
