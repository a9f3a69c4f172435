import { invalid } from '../base/errors.ts';

/**
 * The durable record of a flush before it touches the store. What identifies the commit is fixed here: running the
 * intent again, after a crash or in a stale instance, makes the same commit or finds it made.
 */
export interface Intent {
  /** Layout of this record; a build that does not know it must not run it. 2: for a branch other than main. */
  form: 1 | 2;
  operation: 'append';
  /** 128 bits, hexadecimal. "Is that mine?" is this id in the chain, never a comparison of bytes. */
  commitId: string;
  snapshotId: bigint;
  /** Strictly increasing per ledger; fills the ingest-time column. */
  timeMs: number;
  ledgerId: string;
  /** Frames from `first` to `last`, the own app's epochs. */
  first: number;
  last: number;
  rows: number;
  tableUuid: string;
  /** The branch that the frames are for; main when absent. */
  branch?: string;
  /** Apps that leave the progress map with this commit. */
  retire: string[];
}

/** Text for the ledger. */
export function serializeIntent(intent: Intent): string {
  return JSON.stringify({ ...intent, snapshotId: intent.snapshotId.toString() });
}

/**
 * Reads an intent back.
 *
 * @throws invalid `intent-form` when a newer build wrote it: this build answers unavailable and touches nothing.
 */
export function parseIntent(text: string): Intent {
  const raw = JSON.parse(text);
  if (![1, 2].includes(raw.form) || raw.operation !== 'append') {
    throw invalid('intent-form', `intent of an unknown form: form=${raw.form} operation=${raw.operation}`);
  }
  return { ...raw, snapshotId: BigInt(raw.snapshotId) };
}
