/**
 * Whether a producer's epoch may enter. Pure: the same question is asked at the door, against the ledger and the table as
 * last seen, and again in every attempt of a commit, against the base of that attempt.
 */

/** What is known of one app when one of its batches arrives. */
export interface AppFacts {
  /** Highest epoch in the table (its watermark); null: the table has never heard of the app. */
  committed: bigint | null;
  /** Highest epoch that is accepted and waits; null: none waits. */
  waiting: bigint | null;
  /** The epoch that was refused and holds the app up until its owner skips or replaces it. */
  parked: bigint | null;
  /** Digest of the body that came under this epoch, while it is remembered; null: not (any more). */
  digest: string | null;
}

export interface EpochRequest {
  epoch: bigint;
  digest: string;
  /** Sparse: any higher epoch is next, as with Delta's txn. Dense: the next is the last + 1. */
  sparse: boolean;
}

export type Admission =
  /** It is the next one. */
  | { verdict: 'accept' }
  /** It was taken before, with the same body. */
  | { verdict: 'duplicate' }
  /** It was taken before with another body. */
  | { verdict: 'conflict' }
  /** It is not the next one: something before it is missing. */
  | { verdict: 'gap'; expected: bigint }
  /** It is at or below what is committed, and nobody knows any more with which body. */
  | { verdict: 'behind'; committed: bigint }
  /** The app waits for its owner. */
  | { verdict: 'parked'; epoch: bigint };

/** A new app may begin with any epoch: nothing is known that it could leave out. */
export function admit(facts: AppFacts, request: EpochRequest): Admission {
  const { epoch, digest, sparse } = request;
  if (facts.parked !== null && epoch >= facts.parked) return { verdict: 'parked', epoch: facts.parked };
  const last = highest(facts.committed, facts.waiting);
  if (last === null || epoch > last) {
    if (sparse || last === null || epoch === last + 1n) return { verdict: 'accept' };
    return { verdict: 'gap', expected: last + 1n };
  }
  if (facts.digest === null) return { verdict: 'behind', committed: facts.committed ?? last };
  return { verdict: facts.digest === digest ? 'duplicate' : 'conflict' };
}

function highest(a: bigint | null, b: bigint | null): bigint | null {
  if (a === null || b === null) return a ?? b;
  return a > b ? a : b;
}

/** Whether a waiting batch may be part of a commit on a base whose watermark for its app is `committed`. */
export function placeOf(
  batch: { epoch: bigint; sparse: boolean },
  committed: bigint | null,
): 'next' | 'committed' | 'gap' {
  if (committed === null) return 'next';
  if (batch.epoch <= committed) return 'committed';
  return batch.sparse || batch.epoch === committed + 1n ? 'next' : 'gap';
}

const APP = /^[A-Za-z0-9][A-Za-z0-9._:@/-]{0,127}$/;

/** True for names that producers may use: short, printable, and not under the prefix of the service's own apps. */
export function isAppName(name: string): boolean {
  return APP.test(name) && !name.startsWith('sluice/');
}

/** Highest epoch: int64, as in Delta's txn. */
export const EPOCH_MAX = 2n ** 63n - 1n;

/** The epoch in a text: decimal, 0 to 2^63 - 1; null when it is none. */
export function parseEpoch(text: string): bigint | null {
  if (!/^(0|[1-9][0-9]{0,18})$/.test(text)) return null;
  const epoch = BigInt(text);
  return epoch <= EPOCH_MAX ? epoch : null;
}
