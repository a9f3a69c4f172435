/** One accepted batch as the ledger keeps it. */
export interface Frame {
  /** Given by the ledger at accept, one more than the batch before: the own app's epoch. */
  sequence: number;
  /** Hexadecimal SHA-256 of the batch's body as it was sent, for idempotency. */
  digest: string;
  /** The producer's name for the batch, when it gave one. */
  batchId: string | null;
  /** Schema of the table that the columns were made for. */
  schemaId: number;
  rows: number;
  /** Partitions the batch falls into, under the spec it was admitted with. */
  partitions: number;
  /** Encoded typed columns (core/columns/frame.ts). */
  body: Uint8Array;
}

/** A batch before the ledger numbered it. */
export type NewFrame = Omit<Frame, 'sequence'>;
