import { hex } from '../core/base/bytes.ts';
import { SluiceError } from '../core/base/errors.ts';
import { tablePlace } from '../core/iceberg/locations.ts';
import { codecs } from '../engine/codecs.ts';
import { commitLog, type LogEvent } from '../engine/commit-log.ts';
import { AdminCommits } from '../engine/commit-to-end.ts';
import { Compactor } from '../engine/compactor.ts';
import { Eraser } from '../engine/eraser.ts';
import { Expirer } from '../engine/expirer.ts';
import { IndexRebuild } from '../engine/index-rebuild.ts';
import { Maintenance } from '../engine/maintenance.ts';
import { OpenTable } from '../engine/open-table.ts';
import { OrphanSweep } from '../engine/orphan-sweep.ts';
import { Retention } from '../engine/retention.ts';
import { ScheduledExpiry } from '../engine/scheduled-expiry.ts';
import { ScheduledRetention } from '../engine/scheduled-retention.ts';
import { ScheduledSweep } from '../engine/scheduled-sweep.ts';
import { TableAdmin } from '../engine/table-admin.ts';
import { TableChanges } from '../engine/table-changes.ts';
import { TableFiles } from '../engine/table-files.ts';
import { TableWriter } from '../engine/table-writer.ts';
import { systemClock, systemRandom } from '../platform/system.ts';
import { type Env, settingsOf } from '../settings.ts';
import { MeteredStore } from '../store/metered.ts';
import { r2Store } from '../store/r2.ts';
import { Counts } from './counts.ts';
import { SqlLedger } from './ledger.ts';
import { CountedMarks } from './marks.ts';
import { migrate } from './migrate.ts';
import { Schedule } from './schedule.ts';
import type { StatusView } from './views.ts';

/** What one incarnation of a table's object is made of: the engine over this object's ledger, bucket and alarm. */
export class TableParts {
  readonly ledger: SqlLedger;
  readonly table: OpenTable;
  readonly writer: TableWriter;
  readonly admin: TableAdmin;
  readonly changes: TableChanges;
  readonly files: TableFiles;
  readonly expirer: Expirer;
  readonly retention: ScheduledRetention;
  readonly expiry: ScheduledExpiry;
  readonly compactor: Compactor;
  readonly eraser: Eraser;
  readonly sweep: OrphanSweep;
  readonly maintenance: Maintenance;
  readonly sweeping: ScheduledSweep;
  readonly schedule: Schedule;
  readonly store: MeteredStore;
  readonly marks = new CountedMarks();
  readonly counts = new Counts();
  readonly startedMs = systemClock.now();
  readonly found: StatusView['incarnation']['found'];

  /** Throws unavailable `ledger-newer`, and has touched nothing then. */
  constructor(ctx: DurableObjectState, env: Env) {
    const name = ctx.id.name?.split('/') ?? [];
    if (name.length !== 2) throw new Error('a table object is named namespace/table');
    const { lake } = settingsOf(env);
    const place = tablePlace(lake, name[0], name[1]);
    migrate(ctx.storage);
    this.ledger = new SqlLedger(ctx.storage, hex(systemRandom.bytes(8)));
    this.schedule = new Schedule(ctx.storage, systemClock);
    this.store = new MeteredStore(r2Store(env.LAKE));
    const ports = {
      store: this.store,
      ledger: this.ledger,
      clock: systemClock,
      random: systemRandom,
      marks: this.marks,
      ...codecs,
      arm: (dueMs: number | null) => this.schedule.arm(dueMs),
      log: (event: LogEvent) => console.log(JSON.stringify(event)),
      refused: (type: string, batches: number) => this.counts.refused(type, batches),
    };
    const observe = commitLog({
      clock: systemClock,
      oldestMs: () => this.ledger.state().buffer.oldestMs,
      count: (kind, outcome, lagMs) => this.counts.commit(kind, outcome, lagMs),
      log: ({ event, ...members }) => ports.log({ event, table: place.location, ...members }),
    });
    this.table = new OpenTable(ports, place, observe);
    this.writer = new TableWriter(ports, this.table);
    this.admin = new TableAdmin(ports, this.table, this.writer);
    const commits = new AdminCommits(ports, this.table, this.writer);
    this.eraser = new Eraser(ports, this.table);
    this.changes = new TableChanges(ports, this.table, commits);
    this.files = new TableFiles(ports, this.table, commits);
    this.expirer = new Expirer(ports, this.table, this.changes, this.eraser);
    this.compactor = new Compactor(ports, this.table);
    const { live } = this.compactor;
    const inRun = new AdminCommits(ports, this.table, this.writer, true);
    const filesInRun = new TableFiles(ports, this.table, inRun);
    const retention = new Retention(systemClock, this.table, filesInRun, live);
    this.retention = new ScheduledRetention(ports, this.table, retention, live);
    const changesInRun = new TableChanges(ports, this.table, inRun);
    this.expiry = new ScheduledExpiry(ports, this.table, new Expirer(ports, this.table, changesInRun, this.eraser));
    this.sweep = new OrphanSweep(ports, this.table);
    this.sweeping = new ScheduledSweep(ports, this.table, this.sweep);
    // In the engine's order; files are merged beside them, and what retention has dropped by then need not be.
    for (const chore of [this.eraser, this.retention, this.expiry, this.sweeping]) this.writer.alongside(chore);
    this.writer.beside(this.compactor);
    const byRequest = new Retention(systemClock, this.table, this.files, live);
    const { table, compactor, expirer, eraser, sweep } = this;
    const indexRebuild = new IndexRebuild(ports, this.table, commits, live);
    this.maintenance = new Maintenance({
      ...ports,
      table,
      retention: byRequest,
      compactor,
      indexRebuild,
      expirer,
      eraser,
      sweep,
    });
    const state = this.ledger.state();
    this.found = { open_intent: state.intent !== null, buffered_batches: state.buffer.frames };
  }

  /** Sets the alarm for what is due. */
  arm(): void {
    this.schedule.arm(this.writer.dueMs());
  }
}

/** The parts, or why this build cannot have them. */
export function makeParts(ctx: DurableObjectState, env: Env): TableParts | SluiceError {
  try {
    return new TableParts(ctx, env);
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
}
