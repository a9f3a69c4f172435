import { hex } from '../core/base/bytes.ts';
import type { Compress } from '../core/base/codecs.ts';
import { conflict, invalid, SluiceError, unavailable } from '../core/base/errors.ts';
import { snapshotIdOf } from '../core/base/ids.ts';
import {
  BATCH_MEMORY_MS,
  BATCH_PARTITIONS_MAX,
  BUFFER_BYTES_MAX,
  BUFFER_FRAMES_MAX,
  FLUSH_INTERVAL_MIN_MS,
  FLUSHES_PER_RUN_MAX,
  INTENT_RETRY,
  PREPARE_TRIES_MAX,
  PRUNE_INTERVAL_MS,
  PRUNE_ROWS_MAX,
  WAITER_GATHER_MS,
} from '../core/base/limits.ts';
import { ownApp, readEpochs } from '../core/batch/epochs.ts';
import { flushDueMs } from '../core/batch/flush-policy.ts';
import type { Frame, NewFrame } from '../core/batch/frame.ts';
import type { Intent } from '../core/batch/intent.ts';
import { type Receipt, receiptId } from '../core/batch/receipt.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { prepareAppend } from '../core/commit/prepare-append.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { CommitResult } from './committer.ts';
import { GroupCommit } from './group.ts';
import { liveTable } from './live-table.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { ErrorRecord, Ledger, LedgerState, OpenIntent, Settlement } from './ports.ts';
import { Waiters } from './waiters.ts';

export interface WriterPorts extends TablePorts {
  ledger: Ledger;
  compress: Compress;
  /** Asks to be run at this time (null: not at all). Called in the same turn as each ledger step. */
  arm(dueMs: number | null): void;
  /** One line for the operator. */
  log(event: LogEvent): void;
}

export interface LogEvent {
  event: string;
  table: string;
  [member: string]: unknown;
}

/** An accepted batch. */
export interface Accepted {
  receipt: string;
  sequence: number;
  /** The batch had been accepted before under the same id and digest. */
  duplicate: boolean;
  state: Receipt;
}

/**
 * The writer of one table: takes batches into the ledger, and empties the ledger into the table one flush at a time.
 * Accepting goes on while a flush is under way. Whatever interrupts it, the next run goes on from the ledger.
 */
export class TableWriter {
  readonly #ports: WriterPorts;
  readonly #table: OpenTable;
  readonly #group: GroupCommit;
  readonly #waiters = new Waiters();
  /** Intents sealed by this incarnation; any other was left by one before. */
  #sealed: string | null = null;
  #checked: Promise<void> | null = null;
  #running: Promise<void> | null = null;
  #loadFailures = 0;
  #retryLoadMs = 0;
  #prunedMs = 0;
  #forced = false;
  #lastRunError: ErrorRecord | null = null;

  constructor(ports: WriterPorts, table: OpenTable) {
    this.#ports = ports;
    this.#table = table;
    this.#group = new GroupCommit(ports.ledger, ports.clock, () => this.#arm());
  }

  /**
   * Takes one batch. Resolves once it is in the ledger (the platform holds the answer until that is durable), or with
   * `waitMs` above zero once its outcome is known or the wait is over.
   *
   * @throws invalid `unknown-table`; conflict `table-changed` when the caller knew another table or schema; rejected
   * `idempotency-conflict`; unavailable `busy` when the buffer is full
   */
  async append(frame: NewFrame, tableUuid: string, waitMs: number): Promise<Accepted> {
    const { ledger, clock } = this.#ports;
    await this.check();
    const base = liveTable(this.#table.base, this.#table.place);
    if (base.metadata['table-uuid'] !== tableUuid) throw conflict('table-changed', 'table was replaced by another one');
    if (!base.metadata.schemas.some((schema) => schema['schema-id'] === frame.schemaId)) {
      throw conflict('table-changed', `schema is not known to the table: schema-id=${frame.schemaId}`);
    }
    // Looked up and taken in one turn: two requests at once under one id are one batch.
    const before = this.#earlier(frame);
    const duplicate = before !== null;
    const sequence = await (before ?? this.#accept(frame));
    if (waitMs > 0 && this.#receipt(sequence).state === 'buffered') {
      const waiting = this.#waiters.wait(sequence, clock.now(), clock.sleep(waitMs));
      this.#arm();
      this.#kick();
      await waiting;
    } else {
      this.#kick();
    }
    return {
      receipt: receiptId(ledger.state().ledgerId, sequence),
      sequence,
      duplicate,
      state: this.#receipt(sequence),
    };
  }

  /** Flushes what is buffered now and resolves when it is settled or a try at it failed. */
  async flush(): Promise<{ state: LedgerState; error: ErrorRecord | null }> {
    const { ledger } = this.#ports;
    await this.check();
    const until = ledger.state().lastSequence;
    const failuresBefore = ledger.state().intent?.failures ?? 0;
    for (let run = 0; run < FLUSHES_PER_RUN_MAX; run++) {
      this.#forced = true;
      await this.run();
      const state = ledger.state();
      const open = state.intent;
      if (open !== null && open.failures > failuresBefore) return { state, error: state.lastError };
      if (state.buffer.frames === 0 || this.#oldestSequence() > until) break;
    }
    return { state: ledger.state(), error: null };
  }

  /** Does all that is due: the open intent, flushes, the pointer, forgetting. Never throws; joins a run under way. */
  run(): Promise<void> {
    this.#running ??= this.#runAll()
      .catch((error) => this.#log('ledger-failed', this.#record(error)))
      .finally(() => {
        this.#running = null;
        this.#arm();
      });
    return this.#running;
  }

  /** Why the last run ended early, before any intent could say so; null when it went through. */
  get lastRunError(): ErrorRecord | null {
    return this.#lastRunError;
  }

  /** When something is due, for the object's alarm; null when nothing is. */
  dueMs(): number | null {
    const { ledger } = this.#ports;
    const state = ledger.state();
    const due: number[] = [];
    if (state.intent !== null) due.push(state.intent.retryMs);
    else {
      const flush = this.#flushDueMs(state);
      if (flush !== null) due.push(flush);
    }
    if (state.table !== null && state.hintedVersion < state.table.version) due.push(0);
    if (due.length === 0) return null;
    return Math.max(Math.min(...due), this.#retryLoadMs);
  }

  /**
   * Loads the table once per incarnation, before the first batch is accepted, and compares the ledger with it: a
   * ledger restored to an earlier time must not give out numbers that the table has already seen.
   *
   * @throws unavailable `table-unreadable` when the store does not answer
   */
  check(): Promise<void> {
    this.#checked ??= this.#compare().catch((error) => {
      this.#checked = null;
      throw error instanceof SluiceError
        ? error
        : unavailable('table-unreadable', 'table cannot be loaded now', {}, error);
    });
    return this.#checked;
  }

  /** The table was dropped, created or attached by this object: what was buffered for another one is let go. */
  replaced(base: IcebergBase | null, settlement: Settlement): number {
    const { ledger } = this.#ports;
    const discarded = ledger.discard(settlement);
    ledger.know(base === null ? null : { uuid: base.metadata['table-uuid'], version: base.version });
    this.#waiters.wake(ledger.state().lastSequence);
    this.#arm();
    return discarded;
  }

  async #compare(): Promise<void> {
    const { ledger, marks } = this.#ports;
    const state = ledger.state();
    const base = await this.#table.load(state.table?.version ?? null);
    if (base === null) return;
    const uuid = base.metadata['table-uuid'];
    const epochs = readEpochs(base.metadata);
    if (
      state.table === null &&
      state.lastSequence === 0 &&
      [...epochs.keys()].some((app) => app.startsWith('sluice/'))
    ) {
      marks.hit('ledger-lost');
    }
    if (state.table !== null && state.table.uuid !== uuid) {
      marks.hit('table-replaced');
      this.replaced(base, this.#refusal('table-replaced', 'table was dropped and another one is at its place'));
      return;
    }
    const watermark = epochs.get(ownApp(state.ledgerId));
    if (watermark !== undefined && watermark > BigInt(state.lastSequence)) {
      marks.hit('ledger-restored');
      this.replaced(base, {
        outcome: 'committed',
        snapshotId: null,
        version: base.version,
        tableUuid: uuid,
        committedMs: this.#ports.clock.now(),
        rows: state.buffer.rows,
      });
      ledger.renew(hex(this.#ports.random.bytes(8)));
    }
    ledger.know({ uuid, version: base.version });
  }

  /** The sequence under which this batch was accepted before, also while its group is still being written. */
  #earlier(frame: NewFrame): Promise<number> | number | null {
    if (frame.batchId === null) return null;
    const known = this.#ports.ledger.batch(frame.batchId) ?? this.#joining.get(frame.batchId);
    if (known === undefined) return null;
    if (known.digest !== frame.digest) {
      throw invalid('idempotency-conflict', `batch id was used for another body: ${frame.batchId}`);
    }
    return known.sequence;
  }

  readonly #joining = new Map<string, { digest: string; sequence: Promise<number> }>();

  #accept(frame: NewFrame): Promise<number> {
    const { buffer } = this.#ports.ledger.state();
    const { pending } = this.#group;
    const bytes = buffer.bytes + pending.bytes + frame.body.length;
    if ((buffer.frames > 0 && bytes > BUFFER_BYTES_MAX) || buffer.frames + pending.frames >= BUFFER_FRAMES_MAX) {
      throw unavailable('busy', `buffer is full: bytes=${buffer.bytes} batches=${buffer.frames}`, { retryAfter: 5 });
    }
    const sequence = this.#group.join(frame);
    const { batchId } = frame;
    if (batchId === null) return sequence;
    this.#joining.set(batchId, { digest: frame.digest, sequence });
    return sequence.finally(() => this.#joining.delete(batchId));
  }

  #receipt(sequence: number): Receipt {
    return this.#ports.ledger.receipt(sequence) ?? { state: 'buffered' };
  }

  #flushDueMs(state: LedgerState): number | null {
    const properties = this.#table.base?.metadata.properties ?? {};
    return flushDueMs(
      {
        ...state.buffer,
        waiterMs: this.#waiters.sinceMs,
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
  }

  /** Starts a run now if something is due now; the alarm stands behind it. */
  #kick(): void {
    const due = this.dueMs();
    if (due !== null && due <= this.#ports.clock.now()) void this.run();
  }

  async #runAll(): Promise<void> {
    const { clock, ledger } = this.#ports;
    try {
      await this.check();
      this.#loadFailures = 0;
      this.#lastRunError = null;
      this.#retryLoadMs = 0;
      for (let flush = 0; flush < FLUSHES_PER_RUN_MAX; flush++) {
        const state = ledger.state();
        const forced = this.#forced;
        if (state.intent !== null) {
          if (!forced && state.intent.retryMs > clock.now()) break;
          if (!(await this.#runIntent(state.intent))) break;
          continue;
        }
        const due = this.#flushDueMs(state);
        if (due === null || (!forced && due > clock.now())) break;
        if (!this.#seal(state)) break;
      }
      this.#forced = false;
      await this.#point();
      this.#prune();
    } catch (error) {
      // Nothing is lost: what was due stays due, in the ledger.
      this.#forced = false;
      this.#loadFailures++;
      this.#retryLoadMs = clock.now() + retryWaitMs(this.#loadFailures);
      const record = this.#record(error);
      this.#lastRunError = record;
      if (ledger.state().intent !== null) ledger.defer(this.#retryLoadMs, record);
      this.#log('run-failed', record);
    }
  }

  /** Opens an intent for the oldest batches. False when there is nothing to flush. */
  #seal(state: LedgerState): boolean {
    const { clock, ledger, random } = this.#ports;
    const base = liveTable(this.#table.base, this.#table.place);
    const settings = tableSettings(base.metadata.properties);
    const range = ledger.next({
      rowsMax: settings.flush.rows,
      bytesMax: settings.flush.bytes,
      partitionsMax: BATCH_PARTITIONS_MAX,
    });
    if (range === null) return false;
    const intent: Intent = {
      form: 1,
      operation: 'append',
      commitId: hex(random.bytes(16)),
      snapshotId: this.#freshSnapshotId(base),
      timeMs: Math.max(clock.now(), state.lastTimeMs + 1),
      ledgerId: state.ledgerId,
      first: range.first,
      last: range.last,
      rows: range.rows,
      tableUuid: base.metadata['table-uuid'],
      retire: [],
    };
    ledger.seal(intent, base.version + 1);
    this.#sealed = intent.commitId;
    this.#arm();
    return true;
  }

  #freshSnapshotId(base: IcebergBase): bigint {
    const taken = new Set(base.metadata.snapshots.map((snapshot) => snapshot['snapshot-id']));
    for (;;) {
      const id = snapshotIdOf(this.#ports.random.bytes(8));
      if (!taken.has(id)) return id;
    }
  }

  /** Runs the open intent once. True when it settled. */
  async #runIntent(open: OpenIntent): Promise<boolean> {
    const { ledger, clock, marks } = this.#ports;
    const { intent } = open;
    if (this.#sealed !== intent.commitId) {
      // Left by an incarnation before this one: perhaps it is in the table already.
      marks.hit('intent-replayed');
      this.#sealed = intent.commitId;
      const base = await this.#table.load();
      const found = base === null ? null : this.#table.sink.findCommit(base, intent.commitId);
      if (base !== null && found !== null) {
        marks.hit('read-back-own');
        this.#settle(base, found.snapshotId, found.version, intent.rows);
        return true;
      }
    }
    for (let attempt = 0; attempt < PREPARE_TRIES_MAX; attempt++) {
      const base = this.#table.base ?? (await this.#table.load());
      if (base === null) return this.#defer(open, { type: 'table-gone', message: 'table has no version in the store' });
      const frames = this.#uncommitted(base, ledger.frames(intent.first, intent.last), intent);
      if (frames.length === 0) {
        this.#settle(base, null, base.version, 0);
        return true;
      }
      const operation = prepareAppend({
        ...this.#ports,
        place: this.#table.place,
        intent,
        frames,
        metadata: base.metadata,
      });
      const result = await this.#table.commit(operation, (version) => ledger.noteTarget(version));
      switch (result.outcome) {
        case 'committed':
          this.#settle(result.base, result.found.snapshotId, result.found.version, intent.rows);
          return true;
        case 'again':
          continue;
        case 'refused':
          return this.#refused(open, result);
        case 'conflict':
          return this.#defer(open, { type: 'commit-conflict', message: 'other writers were first at every attempt' });
        case 'unavailable':
          return this.#defer(open, { type: 'store-unavailable', message: result.error.message });
        case 'unknown':
          return this.#defer(open, { type: 'commit-unknown', message: messageOf(result.error) });
      }
    }
    return this.#defer(open, {
      type: 'commit-conflict',
      message: `table moved under the commit again and again: ${clock.now()}`,
    });
  }

  /** Frames that the base does not hold yet: ranges are compared, since a part of the intent may have been committed. */
  #uncommitted(base: IcebergBase, frames: Frame[], intent: Intent): Frame[] {
    const watermark = readEpochs(base.metadata).get(ownApp(intent.ledgerId)) ?? 0n;
    const rest = frames.filter((frame) => BigInt(frame.sequence) > watermark);
    if (rest.length < frames.length) this.#ports.marks.hit('frames-already-committed');
    return rest;
  }

  #refused(open: OpenIntent, result: Extract<CommitResult<IcebergBase>, { outcome: 'refused' }>): boolean {
    if (result.base === null) {
      // Missing everywhere may be a bucket that is not what it was: keep the rows, a person must look.
      return this.#defer(open, { type: result.type, message: result.message });
    }
    this.replaced(result.base, this.#refusal(result.type, result.message));
    return true;
  }

  #settle(base: IcebergBase, snapshotId: bigint | null, version: number, rows: number): void {
    const { ledger, clock } = this.#ports;
    ledger.settle({
      outcome: 'committed',
      snapshotId,
      version,
      tableUuid: base.metadata['table-uuid'],
      committedMs: clock.now(),
      rows,
    });
    this.#waiters.wake(ledger.state().lastSequence - ledger.state().buffer.frames);
    this.#arm();
  }

  #defer(open: OpenIntent, error: { type: string; message: string }): false {
    const nowMs = this.#ports.clock.now();
    this.#ports.ledger.defer(nowMs + retryWaitMs(open.failures + 1), { ...error, atMs: nowMs });
    this.#log('commit-deferred', { ...error, failures: open.failures + 1 });
    return false;
  }

  #log(event: string, members: object): void {
    this.#ports.log({ event, table: this.#table.place.location, ...members });
  }

  #refusal(type: string, message: string): Settlement {
    return { outcome: 'refused', type, message, atMs: this.#ports.clock.now() };
  }

  async #point(): Promise<void> {
    const { ledger } = this.#ports;
    const state = ledger.state();
    if (state.table === null || state.hintedVersion >= state.table.version) return;
    ledger.hinted(await this.#table.point());
  }

  #prune(): void {
    const nowMs = this.#ports.clock.now();
    if (nowMs - this.#prunedMs < PRUNE_INTERVAL_MS) return;
    this.#prunedMs = nowMs;
    this.#ports.ledger.prune(nowMs - BATCH_MEMORY_MS, PRUNE_ROWS_MAX);
  }

  #record(error: unknown): ErrorRecord {
    return {
      type: error instanceof SluiceError ? error.type : 'internal',
      message: messageOf(error),
      atMs: this.#ports.clock.now(),
    };
  }
}

/** At least a second, doubling, at most a minute: unknown outcomes and store faults pass by themselves. */
function retryWaitMs(failures: number): number {
  return Math.min(INTENT_RETRY.capMs, INTENT_RETRY.baseMs * 2 ** Math.min(failures - 1, 20));
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
