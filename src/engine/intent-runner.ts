import type { Compress } from '../core/base/codecs.ts';
import { SluiceError } from '../core/base/errors.ts';
import { PREPARE_TRIES_MAX } from '../core/base/limits.ts';
import { ownApp, parseEpochs, readEpochs } from '../core/batch/epochs.ts';
import type { Frame } from '../core/batch/frame.ts';
import type { Intent } from '../core/batch/intent.ts';
import { LEFT_OUT_KEY, type LeftOut, parseLeftOut } from '../core/batch/left-out.ts';
import { type Selection, select } from '../core/batch/select.ts';
import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import type { AppendOperation } from '../core/commit/operation.ts';
import { type AppendInput, prepareAppend, unfitFrames } from '../core/commit/prepare-append.ts';
import { snapshotById } from '../core/iceberg/snapshot.ts';
import { SUMMARY_KEYS } from '../core/iceberg/summary.ts';
import type { Found } from '../core/sink.ts';
import { tableSettings } from '../core/table/properties.ts';
import { messageOf, retryWaitMs } from './failures.ts';
import { forgetHead } from './head.ts';
import type { OpenTable, TablePorts } from './open-table.ts';
import type { ErrorRecord, Exception, Ledger, OpenIntent, Settlement } from './ports.ts';

export interface RunnerPorts extends TablePorts {
  ledger: Ledger;
  compress: Compress;
}

/** What the runner tells its writer. */
export interface RunnerEvents {
  /** Frames left the buffer. */
  settled(): void;
  /** Another table is at the place: nothing that was buffered can be committed. */
  replaced(base: IcebergBase, settlement: Settlement): void;
  deferred(error: ErrorRecord): void;
  /** A commit of an incarnation before this one is in the table: nobody has told of it. */
  found(intent: Intent, found: Found): void;
  /** Batches of a settled range that are not in the table by its commit. */
  leftOut(exceptions: readonly Exception[]): void;
}

/** Why a batch that did not become table data did not, for whoever holds its receipt. */
const REASONS: Readonly<Record<string, string>> = {
  'app-parked': 'an earlier epoch of the app was refused and waits for its owner',
  'epoch-left-out': 'a commit went past it without it, and its snapshot has expired',
  'epoch-gap': 'epochs before it are missing from the table, after a rollback or another writer',
};

/**
 * Runs the open intent once: finds it in the table, or commits what of it the table does not have, and settles it in the
 * ledger. What the commit holds is read from its snapshot, so that every incarnation settles it alike.
 */
export class IntentRunner {
  readonly #ports: RunnerPorts;
  readonly #table: OpenTable;
  readonly #events: RunnerEvents;
  /** Commit id of the intent that this incarnation sealed or took over; any other was left by one before. */
  #known: string | null = null;

  constructor(ports: RunnerPorts, table: OpenTable, events: RunnerEvents) {
    this.#ports = ports;
    this.#table = table;
    this.#events = events;
  }

  /** An intent that this incarnation has sealed: it cannot be in the table yet. */
  sealed(commitId: string): void {
    this.#known = commitId;
  }

  /** True when the intent is settled; false when it stays for another run. */
  async run(open: OpenIntent): Promise<boolean> {
    const { intent } = open;
    const { marks } = this.#ports;
    if (this.#known !== intent.commitId && (await this.#takeOver(intent))) return true;
    let frames = this.#ports.ledger.frames(intent.first, intent.last);
    let refused: ReadonlyMap<number, string> = new Map();
    for (let attempt = 0; attempt < PREPARE_TRIES_MAX; ) {
      const base = this.#table.base ?? (await this.#table.load());
      if (!this.#isOpen(intent)) return true;
      if (base === null) return this.#defer(open, 'table-gone', 'table has no version in the store');
      if (base.metadata['table-uuid'] !== intent.tableUuid) return this.#otherTable(open);
      const selection = this.#select(base, intent, frames, refused);
      if (selection.included.length === 0) {
        this.#settleWithout(base, selection, intent);
        return true;
      }
      const input = { ...this.#ports, place: this.#table.place, intent, metadata: base.metadata };
      const prepared = prepare({ ...input, ...selection, frames: selection.included });
      if ('refused' in prepared) {
        // Each round refuses at least one frame more, or takes half as many: it ends.
        if (prepared.refused.size > 0) refused = new Map([...refused, ...prepared.refused]);
        else frames = frames.slice(0, Math.ceil(frames.length / 2));
        continue;
      }
      attempt++;
      const result = await this.#table.commit(prepared.operation, (version) => {
        if (this.#isOpen(intent)) this.#ports.ledger.noteTarget(version);
      });
      // Let go of meanwhile, with all that was buffered: another table took the place.
      if (!this.#isOpen(intent)) return true;
      switch (result.outcome) {
        case 'committed':
          this.#settle(result.base, result.found, intent);
          if (prepared.operation.evolution !== null) {
            marks.hit('schema-evolved');
            await forgetHead(this.#ports.store, this.#table.place.prefix);
          }
          return true;
        case 'again':
          continue;
        case 'refused':
          if (result.base === null) return this.#defer(open, result.type, result.message);
          if (isOfBranch(result.type)) {
            // Only the batches of the branch: the table is there, and takes others.
            this.#ports.ledger.settle(this.#refusal(result.type, result.message));
            this.#events.settled();
            return true;
          }
          this.#events.replaced(result.base, this.#refusal(result.type, result.message));
          return true;
        case 'conflict':
          return this.#defer(open, 'commit-conflict', 'other writers were first at every attempt');
        case 'unavailable':
          return this.#defer(open, 'store-unavailable', result.error.message);
        case 'unknown':
          return this.#defer(open, 'commit-unknown', messageOf(result.error));
      }
    }
    return this.#defer(open, 'commit-conflict', 'table moved under the commit again and again');
  }

  /** An intent left by an incarnation before this one: perhaps it is in the table already. */
  async #takeOver(intent: Intent): Promise<boolean> {
    const { marks } = this.#ports;
    marks.hit('intent-replayed');
    this.#known = intent.commitId;
    const base = await this.#table.load();
    const found = base === null ? null : this.#table.sink.findCommit(base, intent.commitId);
    if (!this.#isOpen(intent)) return true;
    if (base === null || found === null) return false;
    marks.hit('read-back-own');
    this.#events.found(intent, found);
    this.#settle(base, found, intent);
    return true;
  }

  #isOpen({ commitId }: Intent): boolean {
    return this.#ports.ledger.state().intent?.intent.commitId === commitId;
  }

  /** Asked before anything is made of the frames: of another table they know neither schema nor progress. */
  async #otherTable(open: OpenIntent): Promise<boolean> {
    const base = await this.#table.load();
    if (!this.#isOpen(open.intent)) return true;
    if (base === null) return this.#defer(open, 'table-gone', 'table has no version in the store');
    if (base.metadata['table-uuid'] === open.intent.tableUuid) return this.run(open);
    const type = tableSettings(base.metadata.properties).dropped ? 'table-dropped' : 'table-replaced';
    this.#events.replaced(base, this.#refusal(type, 'table is not the one that took the rows'));
    return true;
  }

  #select(
    base: IcebergBase,
    intent: Intent,
    frames: readonly Frame[],
    refused: ReadonlyMap<number, string>,
  ): Selection {
    const { ledger, marks } = this.#ports;
    const parked = new Set(ledger.heldApps().filter((app) => ledger.app(app).parked !== null));
    const { ledgerId, branch } = intent;
    const epochs = readEpochs(base.metadata, branch);
    const selection = select(frames, { epochs, ledgerId, branch, refused, parked });
    if (selection.leftOut.some(({ outcome }) => outcome === 'committed')) marks.hit('frames-already-committed');
    return selection;
  }

  /** Settles what a commit in the chain holds and leaves out, as its own snapshot says. */
  #settle(base: IcebergBase, found: Found, intent: Intent): void {
    const { ledger, clock, marks } = this.#ports;
    const summary = found.snapshotId === null ? undefined : snapshotById(base.metadata, found.snapshotId)?.summary;
    const epochs = summary?.[SUMMARY_KEYS.epochs];
    const watermark =
      epochs === undefined ? undefined : parseEpochs(epochs).get(ownApp(intent.ledgerId, intent.branch));
    const last = watermark === undefined ? intent.last : Math.min(intent.last, Number(watermark));
    const leftOut = parseLeftOut(summary?.[LEFT_OUT_KEY]);
    if (leftOut.length > 0) marks.hit('batch-left-out');
    if (leftOut.some(({ outcome }) => outcome === 'parked')) marks.hit('app-parked');
    const without = new Set(leftOut.map(({ sequence }) => sequence));
    const rows = ledger
      .frames(intent.first, last)
      .reduce((sum, frame) => sum + (without.has(frame.sequence) ? 0 : frame.rows), 0);
    ledger.settle(
      {
        outcome: 'committed',
        snapshotId: found.snapshotId,
        version: found.version,
        tableUuid: base.metadata['table-uuid'],
        committedMs: clock.now(),
        rows,
      },
      this.#exceptions(base, leftOut),
      last,
    );
    this.#events.settled();
  }

  /** Nothing of the range is to be committed: each frame is in the table already, or refused, or held up. */
  #settleWithout(base: IcebergBase, { leftOut, last }: Selection, intent: Intent): void {
    const { marks, ledger } = this.#ports;
    if (leftOut.some(({ outcome }) => outcome !== 'committed')) marks.hit('batch-left-out');
    if (leftOut.some(({ outcome }) => outcome === 'parked')) marks.hit('app-parked');
    const exceptions = this.#exceptions(base, leftOut);
    const refused = exceptions.find(({ settlement }) => settlement.outcome !== 'committed')?.settlement;
    const settlement: Settlement =
      refused === undefined || refused.outcome === 'committed'
        ? this.#committedBefore(base)
        : this.#refusal(refused.type, refused.message);
    ledger.settle(settlement, exceptions, Math.min(last, intent.last));
    this.#events.settled();
  }

  #exceptions(base: IcebergBase, leftOut: readonly LeftOut[]): Exception[] {
    const atMs = this.#ports.clock.now();
    const exceptions = leftOut.map(({ sequence, outcome, type }): Exception => {
      if (outcome === 'committed') return { sequence, settlement: this.#committedBefore(base) };
      return {
        sequence,
        settlement: { outcome, type, message: REASONS[type] ?? 'batch does not fit the table', atMs },
      };
    });
    if (exceptions.length > 0) this.#events.leftOut(exceptions);
    return exceptions;
  }

  /** In the table by a commit that this ledger did not make or does not remember. */
  #committedBefore(base: IcebergBase): Settlement {
    return {
      outcome: 'committed',
      snapshotId: null,
      version: base.version,
      tableUuid: base.metadata['table-uuid'],
      committedMs: this.#ports.clock.now(),
      rows: 0,
    };
  }

  #defer(open: OpenIntent, type: string, message: string): false {
    const nowMs = this.#ports.clock.now();
    const error = { type, message, atMs: nowMs };
    this.#ports.ledger.defer(nowMs + retryWaitMs(open.failures + 1), error);
    this.#events.deferred(error);
    return false;
  }

  #refusal(type: string, message: string): Settlement {
    return { outcome: 'refused', type, message, atMs: this.#ports.clock.now() };
  }
}

/** The operation, or the frames that do not fit the table, each with its reason; none when they do not fit together. */
function prepare(input: AppendInput): { operation: AppendOperation } | { refused: Map<number, string> } {
  try {
    return { operation: prepareAppend(input) };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const refused = unfitFrames(input);
    // One frame alone, fit on its own: then the fault is not the frames'.
    if (refused.size === 0 && input.frames.length === 1) throw error;
    return { refused };
  }
}

/** Refusals that say nothing of the table, only of the branch that the batches are for. */
function isOfBranch(type: string): boolean {
  return type === 'unknown-ref' || type === 'too-many-apps';
}
