/** What became of one accepted batch. */
export type Receipt =
  | { state: 'buffered' }
  /** `snapshotId` is null when the snapshot had expired before this ledger learnt of the commit. */
  | { state: 'committed'; snapshotId: string | null; version: number; committedMs: number }
  | { state: 'refused'; type: string; message: string; atMs: number }
  /** Kept, but held up until the owner of its app skips or replaces the epoch that was refused. */
  | { state: 'parked'; type: string; message: string; atMs: number };

/** An identity of a ledger and the highest number it gave; the numbers of the next one go on from there. */
export interface Identity {
  ledgerId: string;
  last: number;
}

/**
 * True when a ledger that had these identities, oldest first, gave out a number under one of them. A restored ledger
 * gives numbers again that its lost future had given: those belong to the new identity, the old receipts to none.
 */
export function gaveNumber(identities: readonly Identity[], ledgerId: string, sequence: number): boolean {
  let floor = 0;
  for (const identity of identities) {
    if (identity.ledgerId === ledgerId) return sequence > floor && sequence <= identity.last;
    floor = identity.last;
  }
  return false;
}

/** Public name of a receipt: the ledger that gave the number, and the number. */
export function receiptId(ledgerId: string, sequence: number): string {
  return `${ledgerId}-${sequence}`;
}

/** The parts of a receipt's name, or null when it is not one. */
export function parseReceiptId(id: string): { ledgerId: string; sequence: number } | null {
  const match = /^([0-9a-f]{16})-([1-9][0-9]{0,15})$/.exec(id);
  if (match === null) return null;
  const sequence = Number(match[2]);
  return Number.isSafeInteger(sequence) ? { ledgerId: match[1], sequence } : null;
}
