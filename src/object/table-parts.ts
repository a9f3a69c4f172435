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
import type { ChoreState, Clock, Random } from '../engine/ports.ts';
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
import type { Store } from '../store/store.ts';
import { Counts } from './counts.ts';
import { SqlLedger } from './ledger.ts';
import { CountedMarks } from './marks.ts';
import type { MetricsView, Upkeep } from './metrics-view.ts';
import { migrate } from './migrate.ts';
import { Schedule } from './schedule.ts';
import type { StatusView } from './views.ts';

/** The world around an object: its bucket, the time, and bytes that nobody can predict. */
export interface World {
  store: Store;
  clock: Clock;
  random: Random;
}

function worldOf(env: Env): World {
  return { store: r2Store(env.LAKE), clock: systemClock, random: systemRandom };
}

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
  readonly startedMs: number;
  readonly found: StatusView['incarnation']['found'];

  /** Throws unavailable `ledger-newer`, and has touched nothing then. */
  constructor(ctx: Pick<DurableObjectState, 'id' | 'storage'>, env: Env, world: World = worldOf(env)) {
    const { clock, random } = world;
    this.startedMs = clock.now();
    const name = ctx.id.name?.split('/') ?? [];
    if (name.length !== 2) throw new Error('a table object is named namespace/table');
    const { lake } = settingsOf(env);
    const place = tablePlace(lake, name[0], name[1]);
    migrate(ctx.storage);
    this.ledger = new SqlLedger(ctx.storage, hex(random.bytes(8)));
    this.schedule = new Schedule(ctx.storage, clock);
    this.store = new MeteredStore(world.store);
    const ports = {
      store: this.store,
      ledger: this.ledger,
      clock,
      random,
      marks: this.marks,
      ...codecs,
      arm: (dueMs: number | null) => this.schedule.arm(dueMs),
      log: (event: LogEvent) => console.log(JSON.stringify(event)),
      refused: (type: string, batches: number) => this.counts.refused(type, batches),
    };
    const observe = commitLog({
      clock,
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
    const retention = new Retention(clock, this.table, filesInRun, live);
    this.retention = new ScheduledRetention(ports, this.table, retention, live);
    const changesInRun = new TableChanges(ports, this.table, inRun);
    this.expiry = new ScheduledExpiry(ports, this.table, new Expirer(ports, this.table, changesInRun, this.eraser));
    this.sweep = new OrphanSweep(ports, this.table);
    this.sweeping = new ScheduledSweep(ports, this.table, this.sweep);
    // In the engine's order; files are merged beside them, and what retention has dropped by then need not be.
    for (const chore of [this.eraser, this.retention, this.expiry, this.sweeping]) this.writer.alongside(chore);
    this.writer.beside(this.compactor);
    const byRequest = new Retention(clock, this.table, this.files, live);
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

  /** How all that the object does by itself stands. */
  upkeep(): MetricsView['upkeep'] {
    const { retention, compactor, expiry, eraser, sweeping } = this;
    const of = (step: Upkeep, { dueMs, failures }: Pick<ChoreState, 'dueMs' | 'failures'>) => ({
      step,
      dueMs,
      failures,
    });
    return [
      of('retention', retention.state),
      of('compact', { dueMs: compactor.dueMs(), failures: compactor.status.failures }),
      of('expire', expiry.state),
      of('erase', eraser.state),
      of('sweep', sweeping.state),
    ];
  }

  /** Sets the alarm for what is due. */
  arm(): void {
    this.schedule.arm(this.writer.dueMs());
  }

  /** Sets the alarm for what is due if it is not set: another incarnation may have done so, and the platform may have lost it. */
  resume(): Promise<void> {
    return this.schedule.repair(() => this.writer.dueMs());
  }

  /** Does what is due, when the alarm that was set to `atMs` has gone off, and sets the next one. Never throws. */
  async alarm(atMs: number): Promise<void> {
    this.schedule.fired(atMs);
    await this.writer.run();
    this.schedule.handled();
    this.arm();
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
