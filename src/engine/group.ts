import { conflict } from '../core/base/errors.ts';
import { GROUP_BYTES_MAX, GROUP_WAIT_MS } from '../core/base/limits.ts';
import type { NewFrame } from '../core/batch/frame.ts';
import type { Clock, Ledger } from './ports.ts';

interface Group {
  /** Table that the ledger is for, and the frames with it. */
  table: string | null;
  frames: NewFrame[];
  bytes: number;
  /** First sequence of the group, once it is in the ledger. */
  written: Promise<number>;
  write: () => void;
}

/**
 * Lets requests that arrive within a few milliseconds share one ledger row and one transaction: rows written are
 * billed one by one, and each transaction waits for its own confirmation.
 */
export class GroupCommit {
  readonly #ledger: Ledger;
  readonly #clock: Clock;
  readonly #onWritten: () => void;
  #group: Group | null = null;

  /** `onWritten` runs in the same turn as the ledger step, so that what it writes is part of the same transaction. */
  constructor(ledger: Ledger, clock: Clock, onWritten: () => void) {
    this.#ledger = ledger;
    this.#clock = clock;
    this.#onWritten = onWritten;
  }

  /** What waits in memory for its ledger step. */
  get pending(): { frames: number; bytes: number } {
    return { frames: this.#group?.frames.length ?? 0, bytes: this.#group?.bytes ?? 0 };
  }

  /**
   * Resolves with the frame's sequence once the ledger has it. Frames keep their order of arrival.
   *
   * @throws conflict `table-changed` when another table took the place before the ledger had it
   */
  join(frame: NewFrame): Promise<number> {
    const table = this.#table();
    if (this.#group !== null && this.#group.table !== table) this.#group.write();
    this.#group ??= this.#start(table);
    const group = this.#group;
    const index = group.frames.push(frame) - 1;
    group.bytes += frame.body.length;
    const sequence = group.written.then((first) => first + index);
    if (group.bytes >= GROUP_BYTES_MAX) group.write();
    return sequence;
  }

  #table(): string | null {
    return this.#ledger.state().table?.uuid ?? null;
  }

  #start(table: string | null): Group {
    let resolve: (first: number) => void = () => undefined;
    let reject: (error: unknown) => void = () => undefined;
    const written = new Promise<number>((done, fail) => {
      resolve = done;
      reject = fail;
    });
    const group: Group = {
      table,
      frames: [],
      bytes: 0,
      written,
      write: () => {
        if (this.#group !== group) return; // written before its time came
        this.#group = null;
        try {
          // What waited here for the table before is nothing that the one made anew may get.
          if (this.#table() !== table) throw conflict('table-changed', 'table was replaced by another one');
          const first = this.#ledger.accept(group.frames, this.#clock.now());
          this.#onWritten();
          resolve(first);
        } catch (error) {
          reject(error);
        }
      },
    };
    void this.#clock.sleep(GROUP_WAIT_MS).then(group.write);
    return group;
  }
}
