import { hex } from '../../src/core/base/bytes.ts';
import type { NewFrame } from '../../src/core/batch/frame.ts';
import { ColumnsBuilder } from '../../src/core/columns/builder.ts';
import { encodeFrameBody } from '../../src/core/columns/frame.ts';
import { partitionRows } from '../../src/core/columns/partition.ts';
import { currentSchema, defaultSpec } from '../../src/core/iceberg/metadata.ts';
import type { TableDefinition } from '../../src/core/table/definition.ts';
import { codecs } from '../../src/engine/codecs.ts';
import { commitLog, type LogEvent } from '../../src/engine/commit-log.ts';
import { AdminCommits } from '../../src/engine/commit-to-end.ts';
import { Compactor } from '../../src/engine/compactor.ts';
import { Eraser } from '../../src/engine/eraser.ts';
import { Expirer } from '../../src/engine/expirer.ts';
import { IndexRebuild } from '../../src/engine/index-rebuild.ts';
import { Maintenance } from '../../src/engine/maintenance.ts';
import { OpenTable } from '../../src/engine/open-table.ts';
import { OrphanSweep } from '../../src/engine/orphan-sweep.ts';
import type { Mark, Random } from '../../src/engine/ports.ts';
import { Retention } from '../../src/engine/retention.ts';
import { ScheduledExpiry } from '../../src/engine/scheduled-expiry.ts';
import { ScheduledRetention } from '../../src/engine/scheduled-retention.ts';
import { ScheduledSweep } from '../../src/engine/scheduled-sweep.ts';
import { TableAdmin } from '../../src/engine/table-admin.ts';
import { TableChanges } from '../../src/engine/table-changes.ts';
import { TableFiles } from '../../src/engine/table-files.ts';
import { TableWriter } from '../../src/engine/table-writer.ts';
import type { MemoryStore } from '../../src/store/memory.ts';
import { MeteredStore } from '../../src/store/metered.ts';
import type { SimLedger } from './sim-ledger.ts';
import { SimStore } from './sim-store.ts';
import type { VirtualClock } from './virtual-clock.ts';

/** Random bytes from a seed (mulberry32), so that a run can be repeated. */
export class SeededRandom implements Random {
  #state: number;

  constructor(seed: number) {
    this.#state = seed >>> 0;
  }

  bytes(length: number): Uint8Array {
    return Uint8Array.from({ length }, () => this.next() & 0xff);
  }

  /** 32 random bits. */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), 1 | this.#state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return (mixed ^ (mixed >>> 14)) >>> 0;
  }
}

export const PLACE = { location: 's3://sim-lake/warehouse/ns/t', prefix: 'warehouse/ns/t' };

/** The table most scenarios use: a time series whose rows are unique by (device, time). */
export const SERIES: TableDefinition = {
  schema: {
    type: 'struct',
    fields: [
      { name: 'time', type: 'timestamptz', required: true },
      { name: 'device', type: 'string' },
      { name: 'v', type: 'long' },
    ],
  },
  timeColumn: 'time',
  seriesKey: ['device'],
  chunk: 'day',
  dedup: null,
  properties: {},
};

/** One row of `SERIES`. */
export interface SeriesRow {
  device: string;
  /** Microseconds since 1970. */
  time: bigint;
  v: bigint;
}

export interface World {
  memory: MemoryStore;
  clock: VirtualClock;
  random: SeededRandom;
}

/**
 * One incarnation of a table's object: what an object holds in memory, over a ledger and a view of the store. Drop the
 * value and make another one over the same ledger to crash it.
 */
export class Service {
  readonly store: SimStore;
  /** What passes to the store, counted. */
  readonly metered: MeteredStore;
  readonly ledger: SimLedger;
  readonly table: OpenTable;
  readonly writer: TableWriter;
  readonly admin: TableAdmin;
  readonly changes: TableChanges;
  readonly files: TableFiles;
  readonly expirer: Expirer;
  /** Runs when it is asked to, until `compactByItself`. */
  readonly compactor: Compactor;
  readonly eraser: Eraser;
  readonly sweep: OrphanSweep;
  readonly maintenance: Maintenance;
  readonly rebuild: IndexRebuild;
  /** Null: nobody expires but who is asked to, so that `drain` ends where the rows are in the table. */
  expiry: ScheduledExpiry | null = null;
  /** Null: nothing is dropped but by who is asked to, as with `expiry`. */
  retention: ScheduledRetention | null = null;
  readonly #schedule: () => ScheduledExpiry;
  sweeping: ScheduledSweep | null = null;
  readonly #sweepBy: () => ScheduledSweep;
  readonly #retain: () => ScheduledRetention;
  readonly marks = new Map<Mark, number>();
  readonly #clock: VirtualClock;
  /** What the operator would have read. */
  readonly events: LogEvent[] = [];
  /** When the writer asked to be run. */
  armedMs: number | null = null;

  constructor(world: World, ledger: SimLedger, store = new SimStore(world.memory)) {
    this.store = store;
    this.metered = new MeteredStore(store);
    this.ledger = ledger;
    this.#clock = world.clock;
    const ports = {
      store: this.metered,
      ledger,
      clock: world.clock,
      random: world.random,
      marks: { hit: (mark: Mark) => this.marks.set(mark, this.count(mark) + 1) },
      ...codecs,
      log: (event: LogEvent) => this.events.push(event),
      arm: (dueMs: number | null) => {
        this.armedMs = dueMs;
      },
    };
    const observe = commitLog({
      clock: world.clock,
      oldestMs: () => ledger.state().buffer.oldestMs,
      count: () => undefined,
      log: ({ event, ...members }) => this.events.push({ event, table: PLACE.location, ...members }),
    });
    this.table = new OpenTable(ports, PLACE, observe);
    this.writer = new TableWriter(ports, this.table);
    this.admin = new TableAdmin(ports, this.table, this.writer);
    this.eraser = new Eraser(ports, this.table);
    this.writer.alongside(this.eraser);
    const commits = new AdminCommits(ports, this.table, this.writer);
    this.changes = new TableChanges(ports, this.table, commits);
    this.files = new TableFiles(ports, this.table, commits);
    this.expirer = new Expirer(ports, this.table, this.changes, this.eraser);
    this.compactor = new Compactor(ports, this.table);
    this.rebuild = new IndexRebuild(ports, this.table, commits, this.compactor.live);
    const inRun = new AdminCommits(ports, this.table, this.writer, true);
    const changesInRun = new TableChanges(ports, this.table, inRun);
    this.#schedule = () =>
      new ScheduledExpiry(ports, this.table, new Expirer(ports, this.table, changesInRun, this.eraser));
    const { live } = this.compactor;
    const retention = new Retention(world.clock, this.table, new TableFiles(ports, this.table, inRun), live);
    this.sweep = new OrphanSweep(ports, this.table);
    this.#sweepBy = () => new ScheduledSweep(ports, this.table, this.sweep);
    const { table, compactor, expirer, eraser, sweep } = this;
    const byRequest = new Retention(world.clock, this.table, this.files, live);
    const indexRebuild = this.rebuild;
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
    this.#retain = () => new ScheduledRetention(ports, this.table, retention, live);
  }

  /** Partitions are dropped as the table's retention says, from here on. */
  retainBySchedule(): void {
    this.retention = this.#retain();
    this.writer.alongside(this.retention);
  }

  /** Snapshots expire as the table says, from here on. */
  expireBySchedule(): void {
    this.expiry = this.#schedule();
    this.writer.alongside(this.expiry);
  }

  /** Orphans are looked for as the table says, from here on. */
  sweepBySchedule(): void {
    this.sweeping = this.#sweepBy();
    this.writer.alongside(this.sweeping);
  }

  /** Files are merged after appends, from here on. */
  compactByItself(): void {
    this.writer.beside(this.compactor);
  }

  count(mark: Mark): number {
    return this.marks.get(mark) ?? 0;
  }

  /** Rows of `SERIES` as a batch for the table as this incarnation knows it. */
  frame(rows: readonly SeriesRow[], batchId: string | null = null): NewFrame {
    const metadata = this.table.base?.metadata;
    if (metadata === undefined) throw new Error('the table is not loaded');
    const schema = currentSchema(metadata);
    const builder = new ColumnsBuilder(schema);
    const [time, device, v] = builder.fields;
    for (const row of rows) {
      if (time.kind !== 'int64' || v.kind !== 'int64' || device.kind !== 'text')
        throw new Error('not the series table');
      time.pushBigint(row.time);
      device.pushString(row.device);
      v.pushBigint(row.v);
      builder.endRow();
    }
    const columns = builder.finish();
    const body = encodeFrameBody(columns);
    return {
      digest: hex(codecs.digest([body])),
      batchId,
      producer: null,
      schemaId: schema['schema-id'],
      rows: columns.rows,
      partitions: partitionRows(columns, defaultSpec(metadata)).tuples.length,
      body,
    };
  }

  /** Accepts a batch, and resolves when the ledger has it. */
  async append(rows: readonly SeriesRow[], options: { batchId?: string; waitMs?: number } = {}) {
    await this.writer.check();
    const uuid = this.table.base?.metadata['table-uuid'] ?? '';
    return this.writer.append(this.frame(rows, options.batchId ?? null), uuid, options.waitMs ?? 0);
  }

  /** Runs what is due until nothing is, moving the clock to each due time. Bounded. */
  async drain(roundsMax = 50): Promise<void> {
    for (let round = 0; round < roundsMax; round++) {
      const due = this.writer.dueMs();
      if (due === null) return;
      if (due > this.#clock.now()) this.#clock.advance(due - this.#clock.now());
      await this.#clock.until(this.writer.run());
      await this.#clock.until(this.writer.pointed());
    }
    throw new Error('work is still due after many runs');
  }
}
