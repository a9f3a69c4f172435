import type { Proposal } from '../iceberg/proposal.ts';

/** Whose batch it is and which one, in the producer's own strictly increasing numbers. */
export interface Producer {
  app: string;
  epoch: bigint;
  /** Any higher epoch is next (Delta's txn); else only the last + 1. */
  sparse: boolean;
}

/** One accepted batch as the ledger keeps it. */
export interface Frame {
  /** Given by the ledger at accept, one more than the batch before: the own app's epoch. */
  sequence: number;
  /**
   * Hexadecimal SHA-256 of the batch's body as it was sent, and the branch if it names one: for idempotency. Of no meaning
   * without a batch id or producer.
   */
  digest: string;
  /** The producer's name for the batch, when it gave one. */
  batchId: string | null;
  /** The producer's progress, when it keeps one in the table. */
  producer: Producer | null;
  /** The branch it is for; main when absent. */
  branch?: string;
  /** Schema of the table that the columns were made for. */
  schemaId: number;
  /** What the batch asks of that schema; the columns are made for the schema with it. Absent: nothing. */
  proposal?: Proposal;
  /** 0 for a batch that only moves progress on (a skipped epoch, a retired app). */
  rows: number;
  /** Partitions the batch falls into, under the spec it was admitted with. */
  partitions: number;
  /** Encoded typed columns (core/columns/frame.ts). */
  body: Uint8Array;
}

/** A batch before the ledger numbered it. */
export type NewFrame = Omit<Frame, 'sequence'>;
