import { assert } from '../core/base/assert.ts';
import { MOVES_MAX, RECEIPTS_MAX } from '../core/base/limits.ts';
import type { Frame, NewFrame } from '../core/batch/frame.ts';
import { type Intent, parseIntent, serializeIntent } from '../core/batch/intent.ts';
import { gaveNumber, type Identity, type Receipt } from '../core/batch/receipt.ts';
import type { Proposal } from '../core/iceberg/proposal.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import type {
  AppState,
  CommitRecord,
  ErrorRecord,
  Exception,
  FrameRange,
  KnownTable,
  Ledger,
  LedgerState,
  OpenIntent,
  OpenUpload,
  Settlement,
} from '../engine/ports.ts';
import { LedgerApps } from './ledger-apps.ts';
import { LedgerDoomed } from './ledger-doomed.ts';
import { LedgerFrames } from './ledger-frames.ts';
import { LedgerUploads } from './ledger-uploads.ts';

/**
 * The ledger on the object's SQLite. Every statement of the service is in this file, in `ledger-frames.ts`, in
 * `ledger-apps.ts`, in `ledger-doomed.ts`, in `ledger-uploads.ts` and in `migrations/`.
 *
 * Headers and the few fields of state are mirrored in memory, since an object has its database to itself. Memory is
 * changed only after the transaction went through; what a crash takes, it takes from both.
 */
export class SqlLedger implements Ledger {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  readonly #frames: LedgerFrames;
  readonly #apps: LedgerApps;
  readonly #doomed: LedgerDoomed;
  readonly #uploads: LedgerUploads;
  #row: StateRow;
  #intent: OpenIntent | null;

  /** Reads the ledger, or makes it with `ledgerId` (16 hexadecimal digits) on first use. The schema is migrated. */
  constructor(storage: DurableObjectStorage, ledgerId: string) {
    this.#storage = storage;
    this.#sql = storage.sql;
    this.#sql.exec(
      `INSERT OR IGNORE INTO ledger (id, ledger_id, earlier_ids, floor_sequence, last_time_ms, hinted_version)
       VALUES (1, ?, '[]', 0, 0, 0)`,
      ledgerId,
    );
    this.#row = this.#sql.exec<StateRow>('SELECT * FROM ledger').one();
    this.#intent = this.#readIntent();
    this.#row.last_time_ms = Math.max(this.#row.last_time_ms, this.#intent?.intent.timeMs ?? 0);
    this.#frames = new LedgerFrames(storage.sql);
    this.#apps = new LedgerApps(storage.sql);
    this.#doomed = new LedgerDoomed(storage.sql);
    this.#uploads = new LedgerUploads(storage.sql);
  }

  state(): LedgerState {
    const row = this.#row;
    return {
      ledgerId: row.ledger_id,
      lastSequence: this.#lastSequence(),
      lastTimeMs: row.last_time_ms,
      table: row.table_uuid === null ? null : { uuid: row.table_uuid, version: row.table_version ?? 0 },
      hintedVersion: row.hinted_version,
      buffer: this.#frames.buffer,
      intent: this.#intent,
      doomed: this.#doomed.state,
      uploads: this.#uploads.state,
      choresDueMs: row.chores_due_ms,
      sweptMs: row.swept_ms,
      lastCommit: row.last_commit === null ? null : (JSON.parse(row.last_commit) as CommitRecord),
      lastError: row.last_error === null ? null : (JSON.parse(row.last_error) as ErrorRecord),
    };
  }

  accept(frames: readonly NewFrame[], nowMs: number): number {
    assert(frames.length > 0, 'a group has at least one frame');
    const groups = this.#transaction(() => this.#insert(frames, nowMs));
    this.#frames.remember(groups);
    return groups[0].frames[0].sequence;
  }

  next(bounds: { rowsMax: number; bytesMax: number; partitionsMax: number }): FrameRange | null {
    const taken = { branch: MAIN, first: 0, last: 0, rows: 0, bytes: 0 };
    let partitions = 0;
    for (const frame of this.#frames.headers()) {
      const fits =
        taken.rows + frame.rows <= bounds.rowsMax &&
        taken.bytes + frame.bytes <= bounds.bytesMax &&
        partitions + frame.partitions <= bounds.partitionsMax;
      const branch = frame.branch ?? MAIN;
      if (taken.first === 0) {
        taken.first = frame.sequence;
        taken.branch = branch;
      } else if (!fits || branch !== taken.branch) break;
      taken.last = frame.sequence;
      taken.rows += frame.rows;
      taken.bytes += frame.bytes;
      partitions += frame.partitions;
    }
    return taken.first === 0 ? null : taken;
  }

  proposals(): Proposal[] {
    return this.#frames.proposals;
  }

  frames(first: number, last: number): Frame[] {
    return this.#frames.read(first, last);
  }

  seal(intent: Intent, target: number | null): void {
    assert(this.#intent === null, 'one append intent is open at a time');
    const targets = target === null ? [] : [target];
    // In the place of the last one, whose frames have left: closing and opening are no rows of their own.
    this.#sql.exec(
      `INSERT INTO intents (kind, body, targets, failures, retry_ms) VALUES ('append', ?, ?, 0, 0)
       ON CONFLICT (kind) DO UPDATE SET
         body = excluded.body, targets = excluded.targets, failures = excluded.failures, retry_ms = excluded.retry_ms`,
      serializeIntent(intent),
      JSON.stringify(targets),
    );
    this.#intent = { intent, targets, failures: 0, retryMs: 0 };
    this.#row.last_time_ms = intent.timeMs;
  }

  noteTarget(version: number): void {
    const open = this.#open();
    if (open.targets.includes(version)) return;
    const targets = [...open.targets, version];
    this.#sql.exec("UPDATE intents SET targets = ? WHERE kind = 'append'", JSON.stringify(targets));
    open.targets = targets;
  }

  settle(settlement: Settlement, exceptions: readonly Exception[] = [], last?: number): void {
    const { intent } = this.#open();
    this.#leave(intent.first, last ?? intent.last, settlement, { intent, exceptions });
    this.#intent = null;
  }

  defer(retryMs: number, error: ErrorRecord): void {
    const open = this.#open();
    const text = JSON.stringify(error);
    this.#storage.transactionSync(() => {
      this.#sql.exec("UPDATE intents SET failures = failures + 1, retry_ms = ? WHERE kind = 'append'", retryMs);
      this.#sql.exec('UPDATE ledger SET last_error = ?', text);
    });
    open.failures++;
    open.retryMs = retryMs;
    this.#row.last_error = text;
  }

  forget(last: number, settlement: Settlement): void {
    assert(this.#intent === null, 'frames of an open intent leave with it');
    const range = this.#frames.range;
    if (range === null || range.first > last) return;
    this.#leave(range.first, last, settlement, null);
  }

  discard(settlement: Settlement): number {
    const { rows } = this.#frames.buffer;
    const range = this.#frames.range;
    if (range !== null) this.#leave(range.first, range.last, settlement, null);
    if (settlement.outcome === 'committed') {
      this.#transaction(() => this.#sql.exec('DELETE FROM intents'));
      this.#intent = null;
      return rows;
    }
    const parked = this.#transaction(() => {
      this.#sql.exec('DELETE FROM intents');
      this.#sql.exec('DELETE FROM batches');
      const headers = this.#apps.clear();
      for (const { sequence } of headers) this.#writeReceipt(sequence, sequence, settlement);
      return headers;
    });
    this.#intent = null;
    return parked.reduce((sum, header) => sum + header.rows, rows);
  }

  renew(ledgerId: string): void {
    const earlier = JSON.stringify(this.#identities());
    this.#sql.exec('UPDATE ledger SET ledger_id = ?, earlier_ids = ?', ledgerId, earlier);
    this.#row.ledger_id = ledgerId;
    this.#row.earlier_ids = earlier;
  }

  app(name: string): AppState {
    let waiting: bigint | null = null;
    const { bytes, ...state } = this.#apps.state(name);
    let held = bytes;
    for (const { producer, bytes: own } of this.#frames.headers()) {
      if (producer?.app !== name) continue;
      held += own;
      if (waiting === null || producer.epoch > waiting) waiting = producer.epoch;
    }
    return { ...state, waiting, bytes: held };
  }

  appNames(): string[] {
    return this.#apps.names();
  }

  heldApps(): string[] {
    return this.#apps.held();
  }

  unpark(app: string, replacement: NewFrame, verdict: Settlement, nowMs: number): number {
    const groups = this.#transaction(() => {
      const [refused, ...behind] = this.#apps.unpark(app);
      const inserted = this.#insert([replacement, ...behind], nowMs);
      if (refused !== undefined) this.#writeReceipt(refused.sequence, refused.sequence, verdict);
      const first = inserted[0].frames[0].sequence;
      behind.forEach((frame, index) => {
        this.#sql.exec('INSERT INTO moved (sequence, target) VALUES (?, ?)', frame.sequence, first + index + 1);
      });
      return inserted;
    });
    this.#frames.remember(groups);
    return groups[0].frames[0].sequence;
  }

  retire(app: string, retiring: boolean): void {
    this.#transaction(() => this.#apps.retire(app, retiring));
  }

  know(table: KnownTable | null): void {
    const uuid = table?.uuid ?? null;
    const version = table?.version ?? null;
    if (uuid === this.#row.table_uuid && version === this.#row.table_version) return;
    this.#sql.exec('UPDATE ledger SET table_uuid = ?, table_version = ?', uuid, version);
    this.#row.table_uuid = uuid;
    this.#row.table_version = version;
  }

  hinted(version: number): void {
    if (version === this.#row.hinted_version) return;
    this.#sql.exec('UPDATE ledger SET hinted_version = ?', version);
    this.#row.hinted_version = version;
  }

  receipt(sequence: number): Receipt | null {
    let at = sequence;
    for (let move = 0; move <= MOVES_MAX; move++) {
      const moved = this.#sql.exec<{ target: number }>('SELECT target FROM moved WHERE sequence = ?', at).toArray()[0];
      if (moved === undefined) return this.#receiptAt(at);
      at = moved.target;
    }
    return null;
  }

  gave(ledgerId: string, sequence: number): boolean {
    return gaveNumber(this.#identities(), ledgerId, sequence);
  }

  batch(batchId: string): { sequence: number; digest: string } | null {
    const found = this.#sql
      .exec<{ sequence: number; digest: string }>('SELECT sequence, digest FROM batches WHERE batch_id = ?', batchId)
      .toArray();
    return found[0] ?? null;
  }

  doom(keys: readonly string[], notBeforeMs: number): void {
    if (keys.length > 0) this.#transaction(() => this.#doomed.add(keys, notBeforeMs));
  }

  doomed(nowMs: number, most: number): string[] {
    return this.#doomed.due(nowMs, most);
  }

  erased(keys: readonly string[]): void {
    this.#transaction(() => this.#doomed.remove(keys));
  }

  uploadBegan(upload: OpenUpload): void {
    this.#uploads.began(upload);
  }

  uploadEnded(uploadId: string): void {
    this.#uploads.ended(uploadId);
  }

  openUploads(beforeMs: number, most: number): OpenUpload[] {
    return this.#uploads.before(beforeMs, most);
  }

  keepDue(dueMs: number | null): void {
    if (dueMs === this.#row.chores_due_ms) return;
    this.#sql.exec('UPDATE ledger SET chores_due_ms = ?', dueMs);
    this.#row.chores_due_ms = dueMs;
  }

  swept(atMs: number): void {
    this.#sql.exec('UPDATE ledger SET swept_ms = ?', atMs);
    this.#row.swept_ms = atMs;
  }

  prune(beforeMs: number, most: number): number {
    return this.#storage.transactionSync(() => {
      const batches = this.#sql.exec(
        'DELETE FROM batches WHERE batch_id IN (SELECT batch_id FROM batches WHERE accepted_ms < ? LIMIT ?)',
        beforeMs,
        most,
      ).rowsWritten;
      const receipts = this.#sql.exec(
        `DELETE FROM receipts WHERE last_sequence IN (
           SELECT last_sequence FROM receipts
           WHERE settled_ms < ? OR last_sequence <= (
             SELECT last_sequence FROM receipts ORDER BY last_sequence DESC LIMIT 1 OFFSET ?)
           ORDER BY last_sequence LIMIT ?)`,
        beforeMs,
        RECEIPTS_MAX,
        most,
      ).rowsWritten;
      // A move is of use as long as the receipt it leads to.
      const moves = this.#sql.exec(
        `DELETE FROM moved WHERE sequence IN (
           SELECT sequence FROM moved WHERE target < (SELECT min(first_sequence) FROM receipts) LIMIT ?)`,
        most,
      ).rowsWritten;
      return batches + receipts + moves;
    });
  }

  /** Writes frames behind the last ones; memory is the caller's to change once the transaction went through. */
  #insert(frames: readonly NewFrame[], nowMs: number) {
    const groups = this.#frames.insert(frames, this.#lastSequence() + 1, nowMs);
    const headers = groups.flatMap((group) => group.frames);
    for (const { batchId, digest, sequence } of headers) {
      if (batchId === null) continue;
      this.#sql.exec(
        'INSERT OR REPLACE INTO batches (batch_id, digest, sequence, accepted_ms) VALUES (?, ?, ?, ?)',
        batchId,
        digest,
        sequence,
        nowMs,
      );
    }
    this.#apps.accepted(headers);
    return groups;
  }

  /** Drops the frames of a range and writes its receipts, in one transaction; `closing` is the open intent, which ends with them. */
  #leave(
    first: number,
    last: number,
    settlement: Settlement,
    closing: { intent: Intent; exceptions: readonly Exception[] } | null,
  ): void {
    const row = stateAfter(this.#row, last, settlement);
    const removal = this.#frames.removal(last);
    const exceptions = closing?.exceptions ?? [];
    const parked = this.#parked(first, last, exceptions);
    const rest = this.#transaction(() => {
      const written = this.#frames.remove(removal);
      let from = first;
      for (const { sequence, settlement: other } of exceptions) {
        if (sequence > from) this.#writeReceipt(from, sequence - 1, settlement);
        this.#writeReceipt(sequence, sequence, other);
        from = sequence + 1;
      }
      if (from <= last) this.#writeReceipt(from, last, settlement);
      for (const { frame, error } of parked) this.#apps.park(frame, error);
      if (closing !== null && settlement.outcome === 'committed') this.#apps.left(closing.intent.retire);
      this.#sql.exec(
        `UPDATE ledger SET floor_sequence = ?, last_time_ms = ?, table_uuid = ?, table_version = ?, last_commit = ?,
           last_error = ?`,
        row.floor_sequence,
        row.last_time_ms,
        row.table_uuid,
        row.table_version,
        row.last_commit,
        row.last_error,
      );
      return written;
    });
    this.#row = row;
    this.#frames.forget(removal, rest);
  }

  /** The frames of a range that are to be parked, each with its reason. */
  #parked(first: number, last: number, exceptions: readonly Exception[]): { frame: Frame; error: ErrorRecord }[] {
    if (!exceptions.some(({ settlement }) => settlement.outcome === 'parked')) return [];
    // Read together: there may be thousands, and each group is read whole.
    const frames = new Map(this.frames(first, last).map((frame) => [frame.sequence, frame]));
    return exceptions.flatMap(({ sequence, settlement }) => {
      const frame = frames.get(sequence);
      return settlement.outcome === 'parked' && frame !== undefined ? [{ frame, error: errorOf(settlement) }] : [];
    });
  }

  /** Runs a step; what it changed in memory of the apps is read anew when it fails. */
  #transaction<T>(step: () => T): T {
    try {
      return this.#storage.transactionSync(step);
    } catch (error) {
      this.#apps.load();
      this.#doomed.load();
      throw error;
    }
  }

  #writeReceipt(first: number, last: number, settlement: Exception['settlement']): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO receipts (last_sequence, first_sequence, settled_ms, receipt) VALUES (?, ?, ?, ?)',
      last,
      first,
      settlement.outcome === 'committed' ? settlement.committedMs : settlement.atMs,
      JSON.stringify(receiptOf(settlement)),
    );
  }

  #receiptAt(sequence: number): Receipt | null {
    if (sequence > this.#lastSequence()) return null;
    const row = this.#sql
      .exec<ReceiptRow>(
        'SELECT first_sequence, receipt FROM receipts WHERE last_sequence >= ? ORDER BY last_sequence LIMIT 1',
        sequence,
      )
      .toArray()[0];
    if (row !== undefined && row.first_sequence <= sequence) return JSON.parse(row.receipt) as Receipt;
    const range = this.#frames.range;
    return range !== null && sequence >= range.first ? { state: 'buffered' } : null;
  }

  /** The intent that was sealed last; null once its frames have left the buffer, which is how it closes. */
  #readIntent(): OpenIntent | null {
    const row = this.#sql
      .exec<IntentRow>("SELECT body, targets, failures, retry_ms FROM intents WHERE kind = 'append'")
      .toArray()[0];
    if (row === undefined) return null;
    const { body, targets, failures, retry_ms } = row;
    const intent = parseIntent(body);
    if (intent.first <= this.#row.floor_sequence) return null;
    return { intent, targets: JSON.parse(targets), failures, retryMs: retry_ms };
  }

  #identities(): Identity[] {
    const earlier = JSON.parse(this.#row.earlier_ids) as Identity[];
    return [...earlier, { ledgerId: this.#row.ledger_id, last: this.#lastSequence() }];
  }

  #lastSequence(): number {
    return this.#frames.range?.last ?? this.#row.floor_sequence;
  }

  #open(): OpenIntent {
    assert(this.#intent !== null, 'an append intent is open');
    return this.#intent;
  }
}

/** The state row once the frames up to `last` are settled. */
function stateAfter(row: StateRow, last: number, settlement: Settlement): StateRow {
  const after = { ...row, floor_sequence: Math.max(row.floor_sequence, last) };
  if (settlement.outcome === 'refused') return { ...after, last_error: JSON.stringify(errorOf(settlement)) };
  const { version, committedMs, rows, tableUuid } = settlement;
  const commit: CommitRecord = { snapshotId: settlement.snapshotId?.toString() ?? null, version, committedMs, rows };
  const known = tableUuid === row.table_uuid ? (row.table_version ?? 0) : 0;
  return {
    ...after,
    last_commit: JSON.stringify(commit),
    table_uuid: tableUuid,
    table_version: Math.max(known, version),
  };
}

/** What a settlement leaves for whoever asks. */
function receiptOf(settlement: Exception['settlement']): Receipt {
  if (settlement.outcome !== 'committed') return { state: settlement.outcome, ...errorOf(settlement) };
  const { version, committedMs } = settlement;
  return { state: 'committed', snapshotId: settlement.snapshotId?.toString() ?? null, version, committedMs };
}

function errorOf({ type, message, atMs }: ErrorRecord): ErrorRecord {
  return { type, message, atMs };
}

// Type aliases, not interfaces: the driver wants an index signature, which an alias has implicitly.
type StateRow = {
  ledger_id: string;
  earlier_ids: string;
  floor_sequence: number;
  last_time_ms: number;
  table_uuid: string | null;
  table_version: number | null;
  hinted_version: number;
  last_commit: string | null;
  last_error: string | null;
  chores_due_ms: number | null;
  swept_ms: number | null;
};
type IntentRow = { body: string; targets: string; failures: number; retry_ms: number };
type ReceiptRow = { first_sequence: number; receipt: string };
