/** What the producers sent and what they were told: the only memory of a simulation beside the bucket itself. */

export interface Batch {
  id: number;
  /** The numbers of its rows. */
  rows: number[];
  /** App whose epoch it is; null: it has none. */
  app: string | null;
  /** Its columns cannot be read: it must never be in a table. */
  isDamaged: boolean;
  batchId: string | null;
  /**
   * Tables it was sent to, each with the life of the ledger that may have taken it: more than one life of one table only
   * after a ledger was lost or restored.
   */
  lives: Set<string>;
  /** What binds the service: its receipt must be there, and what it says must be so. Null: nothing does (any more). */
  promise: { object: string; sequence: number; ledgerId: string; uuid: string } | null;
  /** Seen in the table, or in its branch, at the last check. */
  present: boolean;
  /** Why it may be absent although it had been there. */
  excuse: string | null;
  /** It is for the branch, in the life that the branch had when it was last sent; null: it is for main. */
  branch: { life: number } | null;
}

/** One append of the foreign writer. */
export interface ForeignAppend {
  rows: number[];
  uuid: string;
  state: 'sent' | 'committed' | 'failed';
  present: boolean;
  excuse: string | null;
}

export class Model {
  readonly batches: Batch[] = [];
  readonly foreign: ForeignAppend[] = [];
  /** Rows that an operation removed with their files: theirs is to be absent, until a rollback. */
  readonly removed = new Set<number>();
  readonly batchOf = new Map<number, Batch>();
  readonly foreignOf = new Map<number, ForeignAppend>();
  /** Snapshots that main was rolled back to on purpose, by version. */
  readonly rollbacks = new Set<string>();
  /** Grows whenever the branch is seen not to be there: what was in it is gone with it. */
  branchLife = 0;
  #row = 0;
  #foreignRow = 1_000_000;

  newBatch(count: number, withId: boolean): Batch {
    const id = this.batches.length;
    const rows = Array.from({ length: count }, () => ++this.#row);
    const batch: Batch = {
      id,
      rows,
      app: null,
      isDamaged: false,
      batchId: withId ? `b-${id}` : null,
      lives: new Set(),
      promise: null,
      present: false,
      excuse: null,
      branch: null,
    };
    this.batches.push(batch);
    for (const row of rows) this.batchOf.set(row, batch);
    return batch;
  }

  newForeign(count: number, uuid: string): ForeignAppend {
    const rows = Array.from({ length: count }, () => ++this.#foreignRow);
    const append: ForeignAppend = { rows, uuid, state: 'sent', present: false, excuse: null };
    this.foreign.push(append);
    for (const row of rows) this.foreignOf.set(row, append);
    return append;
  }

  /** Lets go of promises whose receipt is as told. */
  forgive(object: string, is: (batch: Batch, sequence: number) => boolean): void {
    for (const batch of this.batches) {
      if (batch.promise?.object === object && is(batch, batch.promise.sequence)) batch.promise = null;
    }
  }

  /** The ledger lost what it promised, from the sequence `after` on. */
  release(object: string, after: number): void {
    for (const batch of this.batches) {
      if (batch.promise?.object === object && batch.promise.sequence > after) batch.promise = null;
    }
  }
}

/** How many lives of the ledger may have taken a batch for one table. */
export function livesIn(batch: Batch, uuid: string): number {
  let lives = 0;
  for (const life of batch.lives) if (life.startsWith(`${uuid} `)) lives++;
  return lives;
}
