import type { TableDefinition } from '../src/core/table/definition.ts';
import { TableParts } from '../src/object/table-parts.ts';
import type { Env } from '../src/settings.ts';
import { MemoryStore } from '../src/store/memory.ts';
import { MeteredStore } from '../src/store/metered.ts';
import { SeededRandom } from '../test/sim/service.ts';
import { VirtualClock } from '../test/sim/virtual-clock.ts';
import { type DayTable, dayBatch, STEADY } from './day-table.ts';

/** What is billed by the piece. */
export interface Used {
  classA: number;
  classB: number;
  /** Rows written to the object's database; setting an alarm is one, as the platform bills it. */
  rowsWritten: number;
  /** Of them. */
  alarmsSet: number;
  rowsRead: number;
  /** Requests to the object: calls, and alarms that went off. */
  objectRequests: number;
}

/** Rows in the order of their time, a batch every ten seconds and a commit for each, with all properties as they come. */
export const IN_ORDER: DayTable = {
  ...STEADY,
  name: 'in order',
  about: '50 series, a partition a day, rows in the order of their time',
  definition: { ...STEADY.definition, properties: {} },
  lateEvery: Number.POSITIVE_INFINITY,
};

/** The same with late rows. */
export const LATE: DayTable = { ...IN_ORDER, name: 'late', about: STEADY.about, lateEvery: STEADY.lateEvery };

/** A batch is one call of the object, and so is its Worker's question for the table's columns, asked every five seconds. */
const CALLS_PER_BATCH = 2;

/**
 * A table's object as it is deployed, with its database and its alarm, over a store and a clock that are simulated. What it
 * uses is counted where it leaves the object: so counts are exact, and say nothing about speed.
 */
export class CostObject {
  readonly clock: VirtualClock;
  /** What all incarnations ask of the store. */
  readonly #store: MeteredStore;
  readonly #random = new SeededRandom(1);
  readonly #context: MeteredContext;
  readonly #env: Env;
  #parts: TableParts;
  #before: Used;
  #calls = 0;
  #batches = 0;

  /** `state` is that of an object that has nothing in it. */
  constructor(state: DurableObjectState, env: Env, startMs: number) {
    this.clock = new VirtualClock(startMs);
    this.#store = new MeteredStore(new MemoryStore({ now: () => this.clock.now() }));
    this.#context = new MeteredContext(state);
    this.#env = env;
    this.#parts = this.#incarnation();
    this.#before = this.#total();
  }

  get parts(): TableParts {
    return this.#parts;
  }

  /** When the alarm goes off; null: it is not set. */
  get alarmMs(): number | null {
    return this.#context.alarmMs;
  }

  /** What was used since it was asked last. */
  used(): Used {
    const total = this.#total();
    const before = this.#before;
    this.#before = total;
    const names = Object.keys(total) as (keyof Used)[];
    return Object.fromEntries(names.map((name) => [name, total[name] - before[name]])) as unknown as Used;
  }

  async create(definition: TableDefinition): Promise<void> {
    await this.clock.until(this.#parts.admin.create(definition));
    await this.until(this.clock.now());
  }

  /** One batch of the table, now. */
  async append(table: DayTable): Promise<void> {
    const { base } = this.#parts.table;
    if (base === null) throw new Error('table is not loaded');
    const at = { number: ++this.#batches, nowMs: this.clock.now() };
    const frame = dayBatch(table, base.metadata, at, this.#random);
    this.#calls += CALLS_PER_BATCH;
    await this.clock.until(this.#parts.writer.append(frame, base.metadata['table-uuid'], 0));
    await this.clock.idle();
  }

  /** Batches at even times. */
  async appends(table: DayTable, count: number, everyMs: number): Promise<void> {
    for (let i = 0; i < count; i++) {
      await this.append(table);
      await this.until(this.clock.now() + everyMs);
    }
  }

  /** Time goes on, and alarms go off. */
  async until(untilMs: number): Promise<void> {
    for (let alarmMs = this.alarmMs; alarmMs !== null && alarmMs <= untilMs; alarmMs = this.alarmMs) {
      await this.#advanceTo(alarmMs);
      this.#context.alarmMs = null;
      this.#calls++;
      await this.clock.until(this.#parts.alarm(alarmMs));
      await this.clock.idle();
    }
    await this.#advanceTo(untilMs);
  }

  /** As long as an alarm is set. */
  async rest(): Promise<void> {
    while (this.alarmMs !== null) await this.until(this.alarmMs);
  }

  /** The object is gone from memory and made again. */
  async evict(): Promise<void> {
    this.#parts = this.#incarnation();
    await this.#parts.resume();
  }

  /** The sweep asks whether something is due. */
  async wake(): Promise<void> {
    this.#calls++;
    await this.clock.until(this.#parts.resume());
  }

  #incarnation(): TableParts {
    const world = { store: this.#store, clock: this.clock, random: this.#random };
    return new TableParts(this.#context, this.#env, world);
  }

  async #advanceTo(ms: number): Promise<void> {
    if (ms > this.clock.now()) this.clock.advance(ms - this.clock.now());
    await this.clock.idle();
  }

  #total(): Used {
    const { classA, classB } = this.#store.usage();
    const { written, read, alarms } = this.#context.count();
    return {
      classA,
      classB,
      rowsWritten: written + alarms,
      alarmsSet: alarms,
      rowsRead: read,
      objectRequests: this.#calls,
    };
  }
}

/** The state of an object, with rows counted by the database's own count, and an alarm that goes by our clock. */
class MeteredContext {
  readonly id: DurableObjectState['id'];
  readonly storage: DurableObjectStorage;
  alarmMs: number | null = null;
  readonly #counted = { written: 0, read: 0, alarms: 0 };
  /** Rows are read as they are asked for. */
  #cursors: { rowsRead: number; rowsWritten: number }[] = [];

  constructor({ storage }: DurableObjectState) {
    this.id = { name: 'ns/t' } as DurableObjectState['id'];
    const exec: SqlStorage['exec'] = (query, ...bindings) => {
      const cursor = storage.sql.exec(query, ...bindings);
      this.#cursors.push(cursor);
      return cursor as never;
    };
    const ours = {
      sql: { exec },
      transactionSync: storage.transactionSync.bind(storage),
      setAlarm: async (atMs: number) => {
        this.#counted.alarms++;
        this.alarmMs = atMs;
      },
      getAlarm: async () => this.alarmMs,
    };
    // What else there is must not be used without being counted.
    this.storage = ours as unknown as DurableObjectStorage;
  }

  count(): { written: number; read: number; alarms: number } {
    for (const { rowsRead, rowsWritten } of this.#cursors) {
      this.#counted.read += rowsRead;
      this.#counted.written += rowsWritten;
    }
    this.#cursors = [];
    return { ...this.#counted };
  }
}
