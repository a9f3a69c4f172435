import type { Frame, NewFrame } from '../core/batch/frame.ts';
import type { Intent } from '../core/batch/intent.ts';
import type { Receipt } from '../core/batch/receipt.ts';
import type { Proposal } from '../core/iceberg/proposal.ts';
import type { RebasedOver } from '../core/sink.ts';

/** Milliseconds since 1970, and waiting. The platform's clock stands still between I/O: never use it to measure CPU. */
export interface Clock {
  now(): number;
  sleep(ms: number): Promise<void>;
}

/** Bytes nobody can predict: ids, jitter. */
export interface Random {
  bytes(length: number): Uint8Array;
}

/**
 * Names situations that a test must prove it reached (`lost-race`, `read-back-own`, ...). Counted, shown by status,
 * and never read by the product itself.
 */
export interface Marks {
  hit(mark: Mark): void;
}

export type Mark =
  | 'lost-race'
  | 'read-back-own'
  | 'read-back-other'
  | 'unknown'
  | 'unknown-resolved'
  | 'fenced'
  | 'base-moved'
  | 'intent-replayed'
  | 'frames-already-committed'
  | 'ledger-lost'
  | 'ledger-restored'
  | 'table-replaced'
  | 'inputs-gone'
  | 'commits-beside-slice'
  | 'index-overtaken'
  | 'stalled-past-expiry'
  | `rebased-over-${RebasedOver}`
  | 'batch-left-out'
  | 'app-parked'
  | 'schema-evolved'
  | 'replayed-after-rollback';

/** What the flush policy and status need to know of the buffer. */
export interface BufferState {
  frames: number;
  rows: number;
  bytes: number;
  /** When the oldest buffered frame was accepted; null when the buffer is empty. */
  oldestMs: number | null;
}

/** Frames of one sealed range, chosen by `next`: contiguous from the oldest, and of one branch. */
export interface FrameRange {
  branch: string;
  first: number;
  last: number;
  rows: number;
  bytes: number;
}

/** The table this ledger last saw at its name. */
export interface KnownTable {
  uuid: string;
  version: number;
}

export interface LedgerState {
  ledgerId: string;
  /** Highest sequence ever given out by this ledger id; 0 before the first. */
  lastSequence: number;
  /** Latest intent time: intent times strictly increase per ledger. */
  lastTimeMs: number;
  table: KnownTable | null;
  /** Version that the pointer is known to have reached. */
  hintedVersion: number;
  buffer: BufferState;
  intent: OpenIntent | null;
  doomed: DoomedState;
  /** Uploads in parts that were begun and not ended, and when the first of them was begun. */
  uploads: { open: number; oldestMs: number | null };
  /** When upkeep that follows from the table's metadata is due, as it was known last; null: nothing is. */
  choresDueMs: number | null;
  /** When a sweep of orphans ended last; null: never. */
  sweptMs: number | null;
  lastCommit: CommitRecord | null;
  lastError: ErrorRecord | null;
}

/** An upload in parts, as the store can be asked to give it up. */
export interface OpenUpload {
  uploadId: string;
  key: string;
  begunMs: number;
}

/** Keys queued for deletion. */
export interface DoomedState {
  keys: number;
  /** When the first of them may go; null when there are none. */
  dueMs: number | null;
}

/** An intent that has not settled. `targets`: versions whose key was or may have been written for it. */
export interface OpenIntent {
  intent: Intent;
  targets: number[];
  /** Failed runs so far, and when the next may start. */
  failures: number;
  retryMs: number;
}

export interface CommitRecord {
  snapshotId: string | null;
  version: number;
  committedMs: number;
  rows: number;
}

export interface ErrorRecord {
  type: string;
  message: string;
  atMs: number;
}

/** What the ledger knows of a producer's app. */
export interface AppState {
  /** Highest epoch among the batches that wait in the buffer. */
  waiting: bigint | null;
  /** Bytes of the app's batches, waiting and parked. */
  bytes: number;
  /** The app's last epochs, newest first. */
  recent: readonly RecentEpoch[];
  parked: ParkedState | null;
  /** The app leaves the progress map with the next commit. */
  retiring: boolean;
}

export interface RecentEpoch {
  epoch: bigint;
  digest: string;
  sequence: number;
}

/** An epoch that was refused, and what waits behind it. */
export interface ParkedState extends ErrorRecord {
  epoch: bigint;
  sequence: number;
  /** Batches of later epochs that are kept behind it. */
  behind: number;
}

/** A frame of a settled range that ended otherwise than the rest. `parked`: it is kept, out of the buffer. */
export interface Exception {
  sequence: number;
  settlement: Settlement | ({ outcome: 'parked' } & ErrorRecord);
}

/** How an intent ended. Frames from `first` to `last` leave the buffer in the same transaction. */
export type Settlement =
  | {
      outcome: 'committed';
      snapshotId: bigint | null;
      version: number;
      tableUuid: string;
      committedMs: number;
      rows: number;
    }
  | { outcome: 'refused'; type: string; message: string; atMs: number };

/**
 * The object's durable memory: accepted batches that are not yet committed, the open intent, receipts and batch ids.
 * Synchronous; each method is one transaction that happened or did not. It never holds what the table itself says.
 */
export interface Ledger {
  state(): LedgerState;
  /** Appends frames in order, giving each the next sequence number; returns the first. */
  accept(frames: readonly NewFrame[], nowMs: number): number;
  /**
   * The longest contiguous range of one branch from the oldest frame within the bounds; at least one frame; null when
   * empty.
   */
  next(bounds: { rowsMax: number; bytesMax: number; partitionsMax: number }): FrameRange | null;
  /** Frames of a range, in order. */
  frames(first: number, last: number): Frame[];
  /** What buffered frames ask of the table's schema: each once, oldest first. */
  proposals(): Proposal[];
  /** Opens an intent. There is none open. */
  seal(intent: Intent, target: number | null): void;
  /** Remembers that `version` is about to be written for the open intent. */
  noteTarget(version: number): void;
  /**
   * Closes the open intent: its frames up to `last` (all of them when left out) leave, receipts are filled. `exceptions`
   * are frames among them, in order, that ended otherwise.
   */
  settle(settlement: Settlement, exceptions?: readonly Exception[], last?: number): void;
  /** Keeps the open intent for another run at `retryMs`. */
  defer(retryMs: number, error: ErrorRecord): void;
  /** Drops frames up to `last` that the table already holds, without an intent. */
  forget(last: number, settlement: Settlement): void;
  /**
   * Discards everything buffered and the open intent; returns the rows. Refused: the table is gone, and with it go parked
   * batches, batch ids and apps, since what is said of a batch is said of a table. Committed: the table has what was
   * buffered already, and all else stays. Receipts stay.
   */
  discard(settlement: Settlement): number;
  /** Takes a new identity: the old one's numbers may have been given out twice. */
  renew(ledgerId: string): void;
  app(app: string): AppState;
  /** All apps that the ledger remembers. */
  appNames(): string[];
  /** Apps that are parked or retiring. */
  heldApps(): string[];
  /**
   * Lets a parked app go on: `replacement` takes the place of the refused batch, whose receipt becomes `verdict`; those
   * behind it follow, under new sequences. Returns the replacement's sequence.
   */
  unpark(app: string, replacement: NewFrame, verdict: Settlement, nowMs: number): number;
  /** Marks an app to leave with the next commit, or takes the mark away. */
  retire(app: string, retiring: boolean): void;
  know(table: KnownTable | null): void;
  hinted(version: number): void;
  receipt(sequence: number): Receipt | null;
  /** True when this ledger gave out that number under that identity, and not another one before or after it. */
  gave(ledgerId: string, sequence: number): boolean;
  /** The batch that came under this id, while it is remembered. */
  batch(batchId: string): { sequence: number; digest: string } | null;
  /**
   * Queues keys to be deleted at `notBeforeMs` or later, when the table then does not refer to them: they may be queued
   * before the commit that lets go of them, and a key may be queued twice.
   */
  doom(keys: readonly string[], notBeforeMs: number): void;
  /** The keys that are due, oldest first, at most `most`. */
  doomed(nowMs: number, most: number): string[];
  /** Takes keys out of the queue: they are deleted, or the table refers to them. */
  erased(keys: readonly string[]): void;
  /** Remembers an upload in parts until it is ended, so that another incarnation can give it up. */
  uploadBegan(upload: OpenUpload): void;
  uploadEnded(uploadId: string): void;
  /** Uploads that were begun at `beforeMs` or earlier, oldest first, at most `most`. */
  openUploads(beforeMs: number, most: number): OpenUpload[];
  /** Keeps when upkeep is due, for an incarnation that has not loaded the table. */
  keepDue(dueMs: number | null): void;
  swept(atMs: number): void;
  /** Forgets receipts and batch ids older than the given time, at most `most` rows; returns how many. */
  prune(beforeMs: number, most: number): number;
}

/** How a chore stands, for the table's status. */
export interface ChoreState {
  /** When it is due next; null: there is nothing to do, ever, as the table is now. */
  dueMs: number | null;
  /** Failed tries since the last that went through. */
  failures: number;
  lastError: ErrorRecord | null;
}

/** Further work of the table's object. `run` does a bounded part of it and never throws. */
export interface Chore {
  /** Its due time follows from the table's metadata: the ledger keeps it for when the table is not loaded. */
  readonly isOfTable?: boolean;
  dueMs(): number | null;
  run(): Promise<void>;
}
