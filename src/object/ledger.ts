import { assert } from '../core/base/assert.ts';
import { concat } from '../core/base/bytes.ts';
import { RECEIPTS_MAX, ROW_BLOB_BYTES_MAX } from '../core/base/limits.ts';
import type { Frame, NewFrame } from '../core/batch/frame.ts';
import { type Intent, parseIntent, serializeIntent } from '../core/batch/intent.ts';
import { gaveNumber, type Identity, type Receipt } from '../core/batch/receipt.ts';
import type {
  BufferState,
  CommitRecord,
  ErrorRecord,
  FrameRange,
  KnownTable,
  Ledger,
  LedgerState,
  OpenIntent,
  Settlement,
} from '../engine/ports.ts';

/** Header of one frame as stored; the body's place in the group follows from the order of the headers. */
interface FrameHeader {
  sequence: number;
  digest: string;
  batchId: string | null;
  schemaId: number;
  rows: number;
  partitions: number;
  bytes: number;
}

/** One group as remembered in memory: headers, not bodies. */
interface Group {
  position: number;
  parts: number;
  acceptedMs: number;
  frames: FrameHeader[];
}

/**
 * The ledger on the object's SQLite. Every statement of the service is in this file and in `migrations/`.
 *
 * Headers and the few fields of state are mirrored in memory, since an object has its database to itself. Memory is
 * changed only after the transaction went through; what a crash takes, it takes from both.
 */
export class SqlLedger implements Ledger {
  readonly #storage: DurableObjectStorage;
  readonly #sql: SqlStorage;
  #groups: Group[] = [];
  #row: StateRow;
  #intent: OpenIntent | null;
  #totals = { frames: 0, rows: 0, bytes: 0 };

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
    for (const row of this.#sql.exec<HeaderRow>(
      'SELECT position, part, accepted_ms, frames FROM frame_groups ORDER BY position',
    )) {
      if (row.part > 0) this.#groups[this.#groups.length - 1].parts++;
      else
        this.#groups.push({
          position: row.position,
          parts: 1,
          acceptedMs: row.accepted_ms,
          frames: JSON.parse(row.frames),
        });
    }
    this.#count();
    const open = this.#sql
      .exec<IntentRow>("SELECT body, targets, failures, retry_ms FROM intents WHERE kind = 'append'")
      .toArray()[0];
    this.#intent =
      open === undefined
        ? null
        : {
            intent: parseIntent(open.body),
            targets: JSON.parse(open.targets),
            failures: open.failures,
            retryMs: open.retry_ms,
          };
  }

  state(): LedgerState {
    const row = this.#row;
    return {
      ledgerId: row.ledger_id,
      lastSequence: this.#lastSequence(),
      lastTimeMs: row.last_time_ms,
      table: row.table_uuid === null ? null : { uuid: row.table_uuid, version: row.table_version ?? 0 },
      hintedVersion: row.hinted_version,
      buffer: this.#buffer(),
      intent: this.#intent,
      lastCommit: row.last_commit === null ? null : (JSON.parse(row.last_commit) as CommitRecord),
      lastError: row.last_error === null ? null : (JSON.parse(row.last_error) as ErrorRecord),
    };
  }

  accept(frames: readonly NewFrame[], nowMs: number): number {
    assert(frames.length > 0, 'a group has at least one frame');
    const first = this.#lastSequence() + 1;
    const headers = frames.map((frame, index): FrameHeader => {
      const { body, ...header } = frame;
      return { ...header, sequence: first + index, bytes: body.length };
    });
    const body = frames.length === 1 ? frames[0].body : concat(frames.map((frame) => frame.body));
    const parts = Math.max(1, Math.ceil(body.length / ROW_BLOB_BYTES_MAX));
    const last = this.#groups[this.#groups.length - 1];
    const position = last === undefined ? 1 : last.position + last.parts;
    this.#storage.transactionSync(() => {
      for (let part = 0; part < parts; part++) {
        this.#sql.exec(
          'INSERT INTO frame_groups (position, part, accepted_ms, frames, body) VALUES (?, ?, ?, ?, ?)',
          position + part,
          part,
          nowMs,
          part === 0 ? JSON.stringify(headers) : '',
          body.slice(part * ROW_BLOB_BYTES_MAX, (part + 1) * ROW_BLOB_BYTES_MAX),
        );
      }
      for (const header of headers) {
        if (header.batchId === null) continue;
        this.#sql.exec(
          'INSERT INTO batches (batch_id, digest, sequence, accepted_ms) VALUES (?, ?, ?, ?)',
          header.batchId,
          header.digest,
          header.sequence,
          nowMs,
        );
      }
    });
    this.#groups.push({ position, parts, acceptedMs: nowMs, frames: headers });
    for (const header of headers) this.#add(header);
    return first;
  }

  next(bounds: { rowsMax: number; bytesMax: number; partitionsMax: number }): FrameRange | null {
    const taken = { first: 0, last: 0, rows: 0, bytes: 0 };
    let partitions = 0;
    for (const frame of this.#headers()) {
      const fits =
        taken.rows + frame.rows <= bounds.rowsMax &&
        taken.bytes + frame.bytes <= bounds.bytesMax &&
        partitions + frame.partitions <= bounds.partitionsMax;
      if (taken.first === 0) taken.first = frame.sequence;
      else if (!fits) break;
      taken.last = frame.sequence;
      taken.rows += frame.rows;
      taken.bytes += frame.bytes;
      partitions += frame.partitions;
    }
    return taken.first === 0 ? null : taken;
  }

  frames(first: number, last: number): Frame[] {
    const frames: Frame[] = [];
    for (const group of this.#groups) {
      const from = group.frames[0].sequence;
      const to = group.frames[group.frames.length - 1].sequence;
      if (to < first || from > last) continue;
      const body = this.#body(group);
      let at = 0;
      for (const header of group.frames) {
        const { bytes, ...rest } = header;
        if (header.sequence >= first && header.sequence <= last)
          frames.push({ ...rest, body: body.subarray(at, at + bytes) });
        at += bytes;
      }
    }
    return frames;
  }

  seal(intent: Intent, target: number | null): void {
    assert(this.#intent === null, 'one append intent is open at a time');
    const targets = target === null ? [] : [target];
    this.#storage.transactionSync(() => {
      this.#sql.exec(
        "INSERT INTO intents (kind, body, targets, failures, retry_ms) VALUES ('append', ?, ?, 0, 0)",
        serializeIntent(intent),
        JSON.stringify(targets),
      );
      this.#sql.exec('UPDATE ledger SET last_time_ms = ?', intent.timeMs);
    });
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

  settle(settlement: Settlement): void {
    const { intent } = this.#open();
    this.#leave(intent.first, intent.last, settlement, true);
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
    const first = this.#groups[0]?.frames[0].sequence;
    if (first === undefined || first > last) return;
    this.#leave(first, last, settlement, false);
  }

  discard(settlement: Settlement): number {
    const { rows } = this.#buffer();
    const first = this.#groups[0]?.frames[0].sequence;
    if (first === undefined) {
      this.#sql.exec('DELETE FROM intents');
    } else {
      this.#leave(first, this.#lastSequence(), settlement, true);
    }
    this.#intent = null;
    return rows;
  }

  renew(ledgerId: string): void {
    const earlier = JSON.stringify([...this.#earlier(), { ledgerId: this.#row.ledger_id, last: this.#lastSequence() }]);
    this.#sql.exec('UPDATE ledger SET ledger_id = ?, earlier_ids = ?', ledgerId, earlier);
    this.#row.ledger_id = ledgerId;
    this.#row.earlier_ids = earlier;
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
    if (sequence > this.#lastSequence()) return null;
    const row = this.#sql
      .exec<ReceiptRow>(
        'SELECT first_sequence, receipt FROM receipts WHERE last_sequence >= ? ORDER BY last_sequence LIMIT 1',
        sequence,
      )
      .toArray()[0];
    if (row !== undefined && row.first_sequence <= sequence) return JSON.parse(row.receipt) as Receipt;
    for (const frame of this.#headers()) if (frame.sequence === sequence) return { state: 'buffered' };
    return null;
  }

  gave(ledgerId: string, sequence: number): boolean {
    return gaveNumber(
      [...this.#earlier(), { ledgerId: this.#row.ledger_id, last: this.#lastSequence() }],
      ledgerId,
      sequence,
    );
  }

  #earlier(): Identity[] {
    return JSON.parse(this.#row.earlier_ids) as Identity[];
  }

  batch(batchId: string): { sequence: number; digest: string } | null {
    const found = this.#sql
      .exec<{ sequence: number; digest: string }>('SELECT sequence, digest FROM batches WHERE batch_id = ?', batchId)
      .toArray();
    return found[0] ?? null;
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
      return batches + receipts;
    });
  }

  /** Drops the frames of a range and writes its receipt, in one transaction; `closing` ends the open intent with it. */
  #leave(first: number, last: number, settlement: Settlement, closing: boolean): void {
    const kept: Group[] = [];
    const gone: Group[] = [];
    let split: { group: Group; keep: FrameHeader[] } | null = null;
    for (const group of this.#groups) {
      const keep = group.frames.filter((frame) => frame.sequence > last);
      if (keep.length === group.frames.length) kept.push(group);
      else if (keep.length === 0) gone.push(group);
      else split = { group, keep };
    }
    const receipt: Receipt =
      settlement.outcome === 'committed'
        ? {
            state: 'committed',
            snapshotId: settlement.snapshotId?.toString() ?? null,
            version: settlement.version,
            committedMs: settlement.committedMs,
          }
        : { state: 'refused', type: settlement.type, message: settlement.message, atMs: settlement.atMs };
    const settledMs = settlement.outcome === 'committed' ? settlement.committedMs : settlement.atMs;
    const row = { ...this.#row, floor_sequence: Math.max(this.#row.floor_sequence, last) };
    if (settlement.outcome === 'committed') {
      const commit: CommitRecord = {
        snapshotId: settlement.snapshotId?.toString() ?? null,
        version: settlement.version,
        committedMs: settlement.committedMs,
        rows: settlement.rows,
      };
      row.last_commit = JSON.stringify(commit);
      row.table_uuid = settlement.tableUuid;
      row.table_version = Math.max(
        row.table_uuid === this.#row.table_uuid ? (row.table_version ?? 0) : 0,
        settlement.version,
      );
    } else {
      const error: ErrorRecord = { type: settlement.type, message: settlement.message, atMs: settlement.atMs };
      row.last_error = JSON.stringify(error);
    }
    const rest = split === null ? null : this.#splitBody(split.group, split.keep);
    this.#storage.transactionSync(() => {
      // Groups leave from the oldest on, so one range delete does it.
      const newest = split?.group ?? gone[gone.length - 1];
      if (newest !== undefined) {
        this.#sql.exec('DELETE FROM frame_groups WHERE position < ?', newest.position + newest.parts);
      }
      if (split !== null && rest !== null) {
        const parts = Math.max(1, Math.ceil(rest.length / ROW_BLOB_BYTES_MAX));
        for (let part = 0; part < parts; part++) {
          this.#sql.exec(
            'INSERT INTO frame_groups (position, part, accepted_ms, frames, body) VALUES (?, ?, ?, ?, ?)',
            split.group.position + part,
            part,
            split.group.acceptedMs,
            part === 0 ? JSON.stringify(split.keep) : '',
            rest.slice(part * ROW_BLOB_BYTES_MAX, (part + 1) * ROW_BLOB_BYTES_MAX),
          );
        }
      }
      this.#sql.exec(
        'INSERT OR REPLACE INTO receipts (last_sequence, first_sequence, settled_ms, receipt) VALUES (?, ?, ?, ?)',
        last,
        first,
        settledMs,
        JSON.stringify(receipt),
      );
      if (closing) this.#sql.exec("DELETE FROM intents WHERE kind = 'append'");
      this.#sql.exec(
        'UPDATE ledger SET floor_sequence = ?, table_uuid = ?, table_version = ?, last_commit = ?, last_error = ?',
        row.floor_sequence,
        row.table_uuid,
        row.table_version,
        row.last_commit,
        row.last_error,
      );
    });
    this.#row = row;
    this.#groups =
      split === null || rest === null
        ? kept
        : [
            { ...split.group, parts: Math.max(1, Math.ceil(rest.length / ROW_BLOB_BYTES_MAX)), frames: split.keep },
            ...kept,
          ];
    this.#count();
  }

  #count(): void {
    this.#totals = { frames: 0, rows: 0, bytes: 0 };
    for (const header of this.#headers()) this.#add(header);
  }

  #add(header: FrameHeader): void {
    this.#totals.frames++;
    this.#totals.rows += header.rows;
    this.#totals.bytes += header.bytes;
  }

  /** The bodies of the frames that stay when a group is cut in two; they are the group's last ones. */
  #splitBody(group: Group, keep: readonly FrameHeader[]): Uint8Array {
    const body = this.#body(group);
    const bytes = keep.reduce((sum, frame) => sum + frame.bytes, 0);
    return body.subarray(body.length - bytes);
  }

  #body(group: Group): Uint8Array {
    const parts = this.#sql
      .exec<{ body: ArrayBuffer }>(
        'SELECT body FROM frame_groups WHERE position >= ? AND position < ? ORDER BY position',
        group.position,
        group.position + group.parts,
      )
      .toArray();
    const arrays = parts.map((part) => new Uint8Array(part.body));
    return arrays.length === 1 ? arrays[0] : concat(arrays);
  }

  *#headers(): Generator<FrameHeader> {
    for (const group of this.#groups) yield* group.frames;
  }

  #lastSequence(): number {
    const last = this.#groups[this.#groups.length - 1];
    return last === undefined ? this.#row.floor_sequence : last.frames[last.frames.length - 1].sequence;
  }

  #buffer(): BufferState {
    return { ...this.#totals, oldestMs: this.#groups[0]?.acceptedMs ?? null };
  }

  #open(): OpenIntent {
    assert(this.#intent !== null, 'an append intent is open');
    return this.#intent;
  }
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
};
type HeaderRow = { position: number; part: number; accepted_ms: number; frames: string };
type IntentRow = { body: string; targets: string; failures: number; retry_ms: number };
type ReceiptRow = { first_sequence: number; receipt: string };
