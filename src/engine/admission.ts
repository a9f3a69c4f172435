import { conflict, invalid, unavailable } from '../core/base/errors.ts';
import { ADMIT_LOOKS_MAX, APP_BUFFER_BYTES_MAX, BUFFER_BYTES_MAX, BUFFER_FRAMES_MAX } from '../core/base/limits.ts';
import { admit, EPOCH_MAX, type Admission as Verdict } from '../core/batch/admission.ts';
import { ownApp, readEpochs, serializeEpochs } from '../core/batch/epochs.ts';
import type { NewFrame, Producer } from '../core/batch/frame.ts';
import type { Receipt } from '../core/batch/receipt.ts';
import { MAIN } from '../core/iceberg/snapshot.ts';
import type { GroupCommit } from './group.ts';
import type { OpenTable } from './open-table.ts';
import type { Ledger, Marks } from './ports.ts';

/** A batch that is in the ledger, now or since before. */
export interface Admitted {
  sequence: number;
  duplicate: boolean;
}

/** An accepted batch, as its sender is told of it. */
export interface Accepted {
  receipt: string;
  sequence: number;
  /** The batch had been accepted before under the same id and digest. */
  duplicate: boolean;
  state: Receipt;
}

interface Joining {
  digest: string;
  sequence: Promise<number>;
}

/**
 * The door of the ledger: batch ids, producers' epochs, bounds. What is on its way into the ledger counts as being there: a
 * question is asked and answered, and the batch taken, in one turn.
 */
export class Admission {
  readonly #ledger: Ledger;
  readonly #marks: Marks;
  readonly #table: OpenTable;
  readonly #group: GroupCommit;
  readonly #joiningIds = new Map<string, Joining>();
  /** Newest epoch of an app on its way, and all of them by epoch. */
  readonly #joiningEpochs = new Map<string, Map<bigint, Joining>>();

  constructor(ports: { ledger: Ledger; marks: Marks }, table: OpenTable, group: GroupCommit) {
    this.#ledger = ports.ledger;
    this.#marks = ports.marks;
    this.#table = table;
    this.#group = group;
  }

  /**
   * `tableUuid`: the table that the batch is for, which is the one that was seen last.
   *
   * @throws conflict `table-changed`; invalid `idempotency-conflict`, `epoch-conflict`; conflict `epoch-gap`, `epoch-behind`, `app-parked`,
   * `app-retiring`; rejected `too-many-apps`; unavailable `busy`
   */
  async admit(frame: NewFrame, tableUuid: string): Promise<Admitted> {
    const { batchId, producer } = frame;
    if (batchId !== null) {
      const known = this.#ledger.batch(batchId) ?? this.#joiningIds.get(batchId);
      if (known !== undefined) {
        if (known.digest === frame.digest) return { sequence: await known.sequence, duplicate: true };
        throw invalid('idempotency-conflict', `batch id was used for another body: ${batchId}`);
      }
    }
    if (producer === null) return { sequence: await this.#take(frame), duplicate: false };
    for (let look = 0; ; look++) {
      // The look may have shown another table: what it knows of the producer says nothing of this batch.
      const seen = [this.#table.base?.metadata['table-uuid'], this.#ledger.state().table?.uuid];
      if (seen.some((uuid) => uuid !== tableUuid)) throw conflict('table-changed', 'table was replaced by another one');
      const verdict = this.#judge(frame, producer);
      if (verdict.verdict === 'accept') {
        // Known, and yet the next one: the table was rolled back to before it.
        if (this.#recent(producer) !== undefined) this.#marks.hit('replayed-after-rollback');
        return { sequence: await this.#take(frame), duplicate: false };
      }
      if (verdict.verdict !== 'duplicate') throw refusalOf(verdict, producer, this.#ledger);
      const joining = this.#joiningEpochs.get(producer.app)?.get(producer.epoch);
      const sequence = joining === undefined ? this.#recent(producer)?.sequence : await joining.sequence;
      const isBuffered = sequence !== undefined && this.#ledger.receipt(sequence)?.state === 'buffered';
      // That it is in the table is a claim about the table: it is made after a fresh look, not from memory.
      if (sequence !== undefined && (isBuffered || look > 0)) return { sequence, duplicate: true };
      if (look >= ADMIT_LOOKS_MAX) throw conflict('epoch-behind', `epoch was taken before: ${producer.epoch}`);
      await this.#table.load();
    }
  }

  #judge({ digest }: NewFrame, { app, epoch, sparse }: Producer): Verdict {
    const state = this.#ledger.app(app);
    if (state.retiring) throw conflict('app-retiring', `app is about to leave the table: ${app}`, { app });
    const joining = this.#joiningEpochs.get(app);
    let { waiting } = state;
    for (const one of joining?.keys() ?? []) if (waiting === null || one > waiting) waiting = one;
    const metadata = this.#table.base?.metadata;
    const committed = metadata === undefined ? null : (readEpochs(metadata).get(app) ?? null);
    const known = joining?.get(epoch) ?? state.recent.find((recent) => recent.epoch === epoch);
    const facts = { committed, waiting, parked: state.parked?.epoch ?? null, digest: known?.digest ?? null };
    return admit(facts, { epoch, digest, sparse });
  }

  #recent({ app, epoch }: Producer) {
    return this.#ledger.app(app).recent.find((recent) => recent.epoch === epoch);
  }

  #take(frame: NewFrame): Promise<number> {
    this.#checkRoom(frame);
    const sequence = this.#group.join(frame);
    const { batchId, producer, digest } = frame;
    if (batchId === null && producer === null) return sequence;
    const joining = { digest, sequence };
    if (batchId !== null) this.#joiningIds.set(batchId, joining);
    if (producer !== null) {
      const epochs = this.#joiningEpochs.get(producer.app) ?? new Map<bigint, Joining>();
      this.#joiningEpochs.set(producer.app, epochs.set(producer.epoch, joining));
    }
    return sequence.finally(() => {
      if (batchId !== null) this.#joiningIds.delete(batchId);
      if (producer === null) return;
      const epochs = this.#joiningEpochs.get(producer.app);
      epochs?.delete(producer.epoch);
      if (epochs?.size === 0) this.#joiningEpochs.delete(producer.app);
    });
  }

  #checkRoom({ body, producer, branch = MAIN }: NewFrame): void {
    const { buffer } = this.#ledger.state();
    const { pending } = this.#group;
    const bytes = buffer.bytes + pending.bytes + body.length;
    if ((buffer.frames > 0 && bytes > BUFFER_BYTES_MAX) || buffer.frames + pending.frames >= BUFFER_FRAMES_MAX) {
      throw unavailable('busy', `buffer is full: bytes=${buffer.bytes} batches=${buffer.frames}`, { retryAfter: 5 });
    }
    if (branch !== MAIN) this.#checkBranchMap(branch);
    if (producer === null) return;
    const held = this.#ledger.app(producer.app).bytes;
    if (held > 0 && held + body.length > APP_BUFFER_BYTES_MAX) {
      throw unavailable('busy', `app has its share of the buffer: app=${producer.app} bytes=${held}`, {
        retryAfter: 5,
      });
    }
    this.#checkMap(producer);
  }

  /**
   * Throws when the map of progress would not fit any more: better at the door than once rows are acknowledged. Every
   * epoch is counted with all its digits to come, and our own app with them.
   */
  #checkMap({ app }: Producer): void {
    const { base } = this.#table;
    const inTable = base === null ? [] : [...readEpochs(base.metadata).keys()];
    const known = new Set([...inTable, ...this.#ledger.appNames(), ...this.#joiningEpochs.keys()]);
    if (known.has(app)) return;
    const names = [...known, app, ownApp(this.#ledger.state().ledgerId)];
    serializeEpochs(new Map(names.map((name) => [name, EPOCH_MAX])));
  }

  /** The same for a branch, whose commits carry the apps that it had when it was made, and one of ours beside them. */
  #checkBranchMap(branch: string): void {
    const { base } = this.#table;
    const names = [
      ...(base === null ? [] : readEpochs(base.metadata, branch).keys()),
      ownApp(this.#ledger.state().ledgerId, branch),
    ];
    serializeEpochs(new Map(names.map((name) => [name, EPOCH_MAX])));
  }
}

function refusalOf(
  verdict: Exclude<Verdict, { verdict: 'accept' | 'duplicate' }>,
  { app, epoch }: Producer,
  ledger: Ledger,
) {
  switch (verdict.verdict) {
    case 'conflict':
      return invalid('epoch-conflict', `epoch was taken with another body: app=${app} epoch=${epoch}`, { app });
    case 'gap': {
      const expected = verdict.expected.toString();
      return conflict('epoch-gap', `epoch is not the next one: app=${app} epoch=${epoch} expected=${expected}`, {
        app,
        expected,
      });
    }
    case 'behind': {
      const committed = verdict.committed.toString();
      const message = `epoch is behind what is committed: app=${app} epoch=${epoch} committed=${committed}`;
      return conflict('epoch-behind', message, { app, committed });
    }
    case 'parked': {
      const reason = ledger.app(app).parked;
      return conflict('app-parked', `app is held up by a refused epoch: app=${app} epoch=${verdict.epoch}`, {
        app,
        epoch: verdict.epoch.toString(),
        reason: reason?.type ?? 'refused',
      });
    }
  }
}
