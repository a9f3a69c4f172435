import { hex } from '../core/base/bytes.ts';
import type { Compress } from '../core/base/codecs.ts';
import { conflict, SluiceError } from '../core/base/errors.ts';
import {
  BATCH_PARTITIONS_MAX,
  FLUSH_INTERVAL_MIN_MS,
  FLUSHES_PER_RUN_MAX,
  RUN_ALARM_MS,
  WAITER_GATHER_MS,
} from '../core/base/limits.ts';
import { flushDueMs } from '../core/batch/flush-policy.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import type { Intent } from '../core/batch/intent.ts';
import { type Receipt, receiptId } from '../core/batch/receipt.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import { tableSettings } from '../core/table/properties.ts';
import { type Accepted, Admission, type Admitted } from './admission.ts';
import { Apps } from './apps.ts';
import { Chores } from './chores.ts';
import { foundLine, type LogEvent, type Refusal, refusalsOf } from './commit-log.ts';
import { errorRecord, Tries } from './failures.ts';
import { Forgetting } from './forgetting.ts';
import { GroupCommit } from './group.ts';
import { freshSnapshotId } from './identity.ts';
import { IntentRunner } from './intent-runner.ts';
import { LedgerCheck } from './ledger-check.ts';
import { liveTable, liveWithBranch } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import { Pointer } from './pointer.ts';
import type { Chore, ErrorRecord, Ledger, LedgerState, Settlement } from './ports.ts';
import { Proposals } from './proposals.ts';
import { Timer } from './timer.ts';
import { Waiters } from './waiters.ts';

export interface WriterPorts extends TablePorts {
  ledger: Ledger;
  compress: Compress;
  /** Asks to be run at this time (null: not at all). Called in the same turn as each ledger step. */
  arm(dueMs: number | null): void;
  /** One line for the operator. */
  log(event: LogEvent): void;
  /** Batches that were taken and then refused. */
  refused?(type: string, batches: number): void;
}

/**
 * The writer of one table: takes batches into the ledger, and empties the ledger into the table one flush at a time.
 * Accepting goes on while a flush is under way. Whatever interrupts it, the next run goes on from the ledger.
 */
export class TableWriter {
  readonly #ports: WriterPorts;
  readonly #table: OpenTable;
  readonly apps: Apps;
  readonly proposals: Proposals;
  readonly #admission: Admission;
  readonly #runner: IntentRunner;
  readonly #forgetting: Forgetting;
  readonly #pointer: Pointer;
  readonly #waiters = new Waiters();
  readonly #chores: Chores;
  readonly #ledgerCheck: LedgerCheck;
  #running: Promise<void> | null = null;
  /** For what an alarm of the object is not set for. */
  readonly #timer: Timer;
  /** How runs ended before any intent could say so. */
  readonly #tries = new Tries();
  #forced = false;

  constructor(ports: WriterPorts, table: OpenTable) {
    this.#ports = ports;
    this.#table = table;
    const group = new GroupCommit(ports.ledger, ports.clock, () => this.#arm());
    this.apps = new Apps(ports, table, () => this.#arm());
    this.#admission = new Admission(ports, table, group);
    this.#pointer = new Pointer(ports.ledger, table, {
      failed: (error) => this.#log('pointer-failed', this.#failed(error)),
      ended: () => this.#arm(),
    });
    this.#ledgerCheck = new LedgerCheck(ports, table, {
      loaded: () => this.#pointer.loaded(),
      replaced: (base, settlement) => this.replaced(base, settlement),
    });
    this.proposals = new Proposals(ports.ledger, group);
    this.#forgetting = new Forgetting(ports);
    this.#timer = new Timer(ports.clock, () => {
      this.#kick();
      this.#hurry(); // it may have gone off a moment early
    });
    this.#chores = new Chores(ports, {
      ended: () => {
        this.#pointer.move();
        this.#arm();
      },
    });
    this.#runner = new IntentRunner(ports, table, {
      settled: () => {
        const { lastSequence, buffer } = ports.ledger.state();
        this.#waiters.wake(lastSequence - buffer.frames);
        this.#arm();
      },
      replaced: (base, settlement) => this.replaced(base, settlement),
      deferred: (error) => this.#log('commit-deferred', error),
      found: (intent, found) => this.#log('committed', foundLine(intent, found)),
      leftOut: (exceptions) => this.#refused(...refusalsOf(exceptions)),
    });
  }

  /**
   * Takes one batch. Resolves once it is in the ledger (the platform holds the answer until that is durable), or with
   * `waitMs` above zero once its outcome is known or the wait is over.
   *
   * @throws invalid `unknown-table`, `unknown-ref`, `bad-ref`; conflict `table-changed` when the caller knew another table
   * or schema, or not the columns that wait; rejected `idempotency-conflict`; unavailable `busy` when the buffer is full
   */
  async append(frame: NewFrame, tableUuid: string, waitMs: number): Promise<Accepted> {
    const { clock } = this.#ports;
    const base = await liveWithBranch(await this.live(), frame.branch ?? MAIN, this.#table);
    this.#expect(base, tableUuid);
    const { sequence, duplicate } = await this.#admit(frame, base);
    if (waitMs > 0 && this.#receipt(sequence).state === 'buffered') {
      const waiting = this.#waiters.wait(sequence, clock.now(), clock.sleep(waitMs));
      this.#arm();
      this.#kick();
      await waiting;
    } else {
      this.#kick();
    }
    return this.#accepted({ sequence, duplicate });
  }

  /**
   * Takes batches that came together, each for itself: what stands in the way of one is no matter of the others. They are
   * admitted in one turn, and so share one ledger row and one transaction.
   *
   * @throws as `append`, for what concerns the table; the outcomes tell what concerns a batch
   */
  async appendMany(frames: readonly NewFrame[], tableUuid: string): Promise<PromiseSettledResult<Accepted>[]> {
    const base = await this.live();
    this.#expect(base, tableUuid);
    const outcomes = await Promise.allSettled(
      frames.map(async (frame) => this.#accepted(await this.#admit(frame, base))),
    );
    this.#kick();
    return outcomes;
  }

  /** Throws when the table is not the one that batches are for. Lets go of what the ledger holds for another one. */
  #expect(base: IcebergBase, tableUuid: string): void {
    const uuid = base.metadata['table-uuid'];
    if (uuid !== tableUuid) throw conflict('table-changed', 'table was replaced by another one');
    // What the ledger holds is for one table: the one it knows.
    if (this.#ports.ledger.state().table?.uuid !== uuid) {
      this.replaced(base, this.#refusal('table-replaced', 'another table took the place of the one before'));
    }
  }

  /** In the turn in which the table was looked at: nothing comes between question and answer. */
  #admit(frame: NewFrame, { metadata }: IcebergBase): Promise<Admitted> {
    if (!metadata.schemas.some((schema) => schema['schema-id'] === frame.schemaId)) {
      throw conflict('table-changed', `schema is not known to the table: schema-id=${frame.schemaId}`);
    }
    this.proposals.take(frame, metadata);
    return this.#admission.admit(frame, metadata['table-uuid']);
  }

  #accepted({ sequence, duplicate }: Admitted): Accepted {
    const { ledger } = this.#ports;
    const receipt = receiptId(ledger.state().ledgerId, sequence);
    return { receipt, sequence, duplicate, state: this.#receipt(sequence) };
  }

  /** Flushes what is buffered now and resolves when it is settled or a try at it failed. */
  async flush(): Promise<{ state: LedgerState; error: ErrorRecord | null }> {
    const { ledger } = this.#ports;
    await this.check();
    const until = ledger.state().lastSequence;
    const failuresBefore = ledger.state().intent?.failures ?? 0;
    for (let run = 0; run < FLUSHES_PER_RUN_MAX; run++) {
      this.#forced = true;
      await this.runFlushes();
      const state = ledger.state();
      const open = state.intent;
      if (open !== null && open.failures > failuresBefore) return { state, error: state.lastError };
      if (state.buffer.frames === 0 || this.#oldestSequence() > until) break;
    }
    // Who flushes wants to read: readers that go by the pointer see it too.
    await this.pointed();
    const state = ledger.state();
    const isDone = state.buffer.frames === 0 || this.#oldestSequence() > until;
    return { state, error: isDone ? null : (this.lastRunError ?? this.#unfinished()) };
  }

  /** A commit is of one branch, so rows that take turns may need more commits than one request waits for. */
  #unfinished(): ErrorRecord {
    return { type: 'busy', message: 'rows still wait for further commits', atMs: this.#ports.clock.now() };
  }

  /** Does all that is due, and what goes on beside. Never throws; joins what is under way. */
  async run(): Promise<void> {
    await this.runFlushes();
    await this.#chores.underWay;
  }

  /**
   * Does all that is due but what goes on beside, which it starts: the open intent, flushes, the pointer, forgetting. Never
   * throws; joins a run under way.
   */
  runFlushes(): Promise<void> {
    this.#running ??= this.#runAll()
      .catch((error) => this.#log('ledger-failed', errorRecord(error, this.#ports.clock.now())))
      .finally(() => {
        this.#running = null;
        this.#arm();
      });
    return this.#running;
  }

  /** Resolves when the pointer is at the version known now, or could not be moved there. Never throws. */
  pointed(): Promise<void> {
    return this.#pointer.reached();
  }

  /** Work to be done in the writer's runs, behind the flushes, when it is due. */
  alongside(chore: Chore): void {
    this.#chores.add(chore);
  }

  /**
   * Work that takes seconds: started by the writer's runs when it is due, and flushes go on while it is under way. It commits
   * for itself, like any writer of the table.
   */
  beside(chore: Chore): void {
    this.#chores.addBeside(chore);
  }

  /** Why the last run ended early, before any intent could say so; null when it went through. */
  get lastRunError(): ErrorRecord | null {
    return this.#tries.lastError;
  }

  /**
   * When something is due, for the object's alarm; null when nothing is. Waiting callers are no part of it: they end with
   * this incarnation, and so does the timer for them.
   */
  dueMs(): number | null {
    return this.#earliest(null, this.#chores.dueMs(this.#ledgerCheck.isLooked));
  }

  /** When the buffer is flushed, or the open commit tried again; null: nothing waits. */
  get flushMs(): number | null {
    const state = this.#ports.ledger.state();
    return state.intent?.retryMs ?? this.#flushDueMs(state, null);
  }

  /** When something is due, for somebody who waits since `waiterMs` (null: nobody), with chores that are at `choresMs`. */
  #earliest(waiterMs: number | null, choresMs: number | null): number | null {
    const { ledger, clock } = this.#ports;
    const state = ledger.state();
    const due: number[] = [];
    // A run under way has the intent in hand; the alarm is for when that run is cut off.
    const cutOffMs = this.#running === null ? 0 : clock.now() + RUN_ALARM_MS;
    if (state.intent !== null) due.push(Math.max(state.intent.retryMs, cutOffMs));
    else {
      const flush = this.#flushDueMs(state, waiterMs);
      if (flush !== null) due.push(flush);
    }
    // A run under way moves the pointer at its end: an alarm for that would find nothing to do.
    const isMoving = this.#running !== null || this.#pointer.isMoving;
    if (this.#pointer.isBehind && !isMoving) due.push(0);
    if (choresMs !== null) due.push(choresMs);
    if (due.length === 0) return null;
    return Math.max(Math.min(...due), this.#tries.notBeforeMs);
  }

  /**
   * Loads the table once per incarnation and compares the ledger with it.
   *
   * @throws unavailable `table-unreadable` when the store does not answer
   */
  check(): Promise<void> {
    return this.#ledgerCheck.check();
  }

  /** As `check`, for a table that was loaded since: it may be another one by now. */
  checkFor(base: IcebergBase): Promise<void> {
    return this.#ledgerCheck.checkFor(base);
  }

  /**
   * The table as it is served, looked for again when there seems to be none.
   *
   * @throws as `check` and `liveTable`
   */
  live(): Promise<IcebergBase> {
    return this.#ledgerCheck.live();
  }

  /**
   * The table was dropped, created or attached by this object: what was buffered for another one is let go. What came in
   * for this very one, while the answer to its creation was on its way, stays; and so does what is for yet another one,
   * when the answer to the end of `gone` comes late.
   */
  replaced(base: IcebergBase | null, settlement: Settlement, gone: string | null = null): number {
    const { ledger } = this.#ports;
    if (gone !== null && ledger.state().table !== null && ledger.state().table?.uuid !== gone) return 0;
    if (settlement.outcome === 'refused' && base !== null) {
      const uuid = base.metadata['table-uuid'];
      if (ledger.state().table?.uuid === uuid) {
        ledger.know({ uuid, version: base.version });
        this.#arm();
        return 0;
      }
    }
    const { frames } = ledger.state().buffer;
    const discarded = ledger.discard(settlement);
    if (settlement.outcome === 'refused' && frames > 0) this.#refused({ ...settlement, batches: frames });
    // Where the pointer stood says nothing of this table, whose numbers may begin below.
    ledger.hinted(0);
    ledger.know(base === null ? null : { uuid: base.metadata['table-uuid'], version: base.version });
    this.#waiters.wake(ledger.state().lastSequence);
    this.#arm();
    return discarded;
  }

  #receipt(sequence: number): Receipt {
    return this.#ports.ledger.receipt(sequence) ?? { state: 'buffered' };
  }

  #flushDueMs(state: LedgerState, waiterMs: number | null): number | null {
    const properties = this.#table.base?.metadata.properties ?? {};
    return flushDueMs(
      {
        ...state.buffer,
        waiterMs,
        lastCommitMs: state.lastCommit?.committedMs ?? null,
      },
      tableSettings(properties).flush,
      { gatherMs: WAITER_GATHER_MS, commitIntervalMinMs: FLUSH_INTERVAL_MIN_MS },
    );
  }

  #oldestSequence(): number {
    const range = this.#ports.ledger.next({ rowsMax: 0, bytesMax: 0, partitionsMax: 0 });
    return range?.first ?? Number.POSITIVE_INFINITY;
  }

  #arm(): void {
    this.#ports.arm(this.dueMs());
    this.#hurry();
  }

  /**
   * Sets the timer for waiting callers, and for all that is due while work goes on beside: the alarm may have begun that, and
   * then waits for its end. A run under way looks again when it ends. What only an alarm is for sets no timer: one that waits
   * keeps the object in memory.
   */
  #hurry(): void {
    const { sinceMs } = this.#waiters;
    const isAsked = sinceMs !== null || this.#chores.underWay !== null;
    if (!isAsked || this.#running !== null) return;
    const dueMs = this.#earliest(sinceMs, this.#chores.inRunDueMs(this.#ledgerCheck.isLooked));
    if (dueMs !== null) this.#timer.set(dueMs);
  }

  /** Starts a run now if something is due now; the alarm stands behind it. */
  #kick(): void {
    const due = this.#earliest(this.#waiters.sinceMs, this.#chores.dueMs(this.#ledgerCheck.isLooked));
    if (due !== null && due <= this.#ports.clock.now()) void this.run();
  }

  async #runAll(): Promise<void> {
    const { clock, ledger } = this.#ports;
    try {
      await this.check();
      for (let flush = 0; flush < FLUSHES_PER_RUN_MAX; flush++) {
        const state = ledger.state();
        const forced = this.#forced;
        if (state.intent !== null) {
          if (!forced && state.intent.retryMs > clock.now()) break;
          if (!(await this.#runner.run(state.intent))) break;
          continue;
        }
        const due = this.#flushDueMs(state, this.#waiters.sinceMs);
        if (due === null || (!forced && due > clock.now())) break;
        if (!this.#seal(state)) break;
      }
      this.#forced = false;
      this.#tries.succeeded(0);
      this.#table.faults.found('commit', [], clock.now());
      this.#pointer.move();
      await this.#chores.run();
      this.#pointer.move(); // to what a chore made
      this.#chores.keep();
      this.#forgetting.run();
      this.#chores.startBeside();
    } catch (error) {
      // Nothing is lost: what was due stays due, in the ledger.
      // What is known says that there is no such table: it is looked for again, since nobody else may ask.
      if (error instanceof SluiceError && error.kind === 'invalid') this.#ledgerCheck.again();
      this.#forced = false;
      const record = this.#failed(error);
      if (ledger.state().intent !== null) ledger.defer(this.#tries.notBeforeMs, record);
      this.#log('run-failed', record);
    }
  }

  /** Opens an intent for the oldest batches. False when there is nothing to flush. */
  #seal(state: LedgerState): boolean {
    const { clock, ledger, random } = this.#ports;
    const known = this.#table.base;
    // Before it is asked whether that one is served: what waits is not for it, whoever made it.
    if (known !== null && state.table !== null && state.table.uuid !== known.metadata['table-uuid']) {
      const type = tableSettings(known.metadata.properties).dropped ? 'table-dropped' : 'table-replaced';
      this.replaced(known, this.#refusal(type, 'another table took the place of the one before'));
      return false;
    }
    const base = liveTable(known, this.#table.place);
    const settings = tableSettings(base.metadata.properties);
    const range = ledger.next({
      rowsMax: settings.flush.rows,
      bytesMax: settings.flush.bytes,
      partitionsMax: BATCH_PARTITIONS_MAX,
    });
    if (range === null) return false;
    const isMain = range.branch === MAIN;
    const intent: Intent = {
      form: isMain ? 1 : 2,
      operation: 'append',
      commitId: hex(random.bytes(16)),
      snapshotId: freshSnapshotId(random, base.metadata),
      timeMs: Math.max(clock.now(), state.lastTimeMs + 1),
      ledgerId: state.ledgerId,
      first: range.first,
      last: range.last,
      rows: range.rows,
      tableUuid: base.metadata['table-uuid'],
      ...(isMain ? {} : { branch: range.branch }),
      // Apps are of main, and leave its map.
      retire: isMain ? ledger.heldApps().filter((app) => ledger.app(app).retiring) : [],
    };
    ledger.seal(intent, base.version + 1);
    this.#runner.sealed(intent.commitId);
    this.#arm();
    return true;
  }

  #refused(...refusals: Refusal[]): void {
    for (const refusal of refusals) {
      this.#log('batches-refused', refusal);
      this.#ports.refused?.(refusal.type, refusal.batches);
    }
  }

  #log(event: string, members: object): void {
    this.#ports.log({ event, table: this.#table.place.location, ...members });
  }

  #refusal(type: string, message: string): Settlement {
    return { outcome: 'refused', type, message, atMs: this.#ports.clock.now() };
  }

  /** What failed is tried again, later each time. */
  #failed(error: unknown): ErrorRecord {
    const nowMs = this.#ports.clock.now();
    this.#table.faults.failed('commit', error, nowMs);
    const { type, message, atMs } = this.#tries.failed(error, nowMs);
    return { type, message, atMs };
  }
}
