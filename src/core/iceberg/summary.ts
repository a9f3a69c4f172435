import { assert } from '../base/assert.ts';
import { utf8 } from '../base/bytes.ts';
import { SUMMARY_VALUE_BYTES_MAX } from '../base/limits.ts';
import { own } from '../base/shape.ts';
import type { Summary } from './types.ts';

/** Snapshot summaries (spec: optional snapshot summary fields). All values are text (J4); counting is in bigint. */

/** What one commit adds and removes. Delete files are never ours, so only whole data files are counted. */
export interface Counts {
  addedDataFiles: bigint;
  addedRecords: bigint;
  addedFilesSize: bigint;
  deletedDataFiles: bigint;
  deletedRecords: bigint;
  removedFilesSize: bigint;
  /** Distinct partition tuples (with their spec) among the files added and deleted. */
  changedPartitionCount: bigint;
}

export const NO_COUNTS: Counts = {
  addedDataFiles: 0n,
  addedRecords: 0n,
  addedFilesSize: 0n,
  deletedDataFiles: 0n,
  deletedRecords: 0n,
  removedFilesSize: 0n,
  changedPartitionCount: 0n,
};

/** Counts of everything live in a table state. */
export interface Totals {
  dataFiles: bigint;
  records: bigint;
  filesSize: bigint;
  deleteFiles: bigint;
  positionDeletes: bigint;
  equalityDeletes: bigint;
}

export type TotalName = keyof Totals;

const TOTAL_KEYS: { readonly [name in TotalName]: string } = {
  dataFiles: 'total-data-files',
  records: 'total-records',
  filesSize: 'total-files-size',
  deleteFiles: 'total-delete-files',
  positionDeletes: 'total-position-deletes',
  equalityDeletes: 'total-equality-deletes',
};
const TOTAL_NAMES = Object.keys(TOTAL_KEYS) as TotalName[];

const NO_TOTALS: Totals = {
  dataFiles: 0n,
  records: 0n,
  filesSize: 0n,
  deleteFiles: 0n,
  positionDeletes: 0n,
  equalityDeletes: 0n,
};

/**
 * Totals after a commit, from the parent's summary (null: first snapshot). `missing` names those that the parent lacks,
 * that are no count, or that would fall below zero: they are 0 in `totals` and must be counted from the parent's
 * manifests and put in with `totalsFrom`, never guessed (S8, B170).
 */
export function totalsAfter(parent: Summary | null, counts: Counts): { totals: Totals; missing: TotalName[] } {
  const before: Totals = { ...NO_TOTALS };
  const missing: TotalName[] = [];
  for (const name of TOTAL_NAMES) {
    const known = parent === null ? 0n : counterOf(own(parent, TOTAL_KEYS[name]));
    const change = changeOf(name, counts);
    if (known === null || known + change < 0n) missing.push(name);
    else before[name] = known + change;
  }
  return { totals: before, missing };
}

/** Totals after a commit on a parent whose totals were counted from its manifests. */
export function totalsFrom(parent: Totals, counts: Counts): Totals {
  const after: Totals = { ...parent };
  for (const name of TOTAL_NAMES) {
    after[name] += changeOf(name, counts);
    assert(after[name] >= 0n, 'a commit removes no more than its parent holds');
  }
  return after;
}

function changeOf(name: TotalName, counts: Counts): bigint {
  switch (name) {
    case 'dataFiles':
      return counts.addedDataFiles - counts.deletedDataFiles;
    case 'records':
      return counts.addedRecords - counts.deletedRecords;
    case 'filesSize':
      return counts.addedFilesSize - counts.removedFilesSize;
    default:
      return 0n;
  }
}

/** Totals that a summary states; null when one is missing or malformed. */
export function totalsOf(summary: Summary): Totals | null {
  const { totals, missing } = totalsAfter(summary, NO_COUNTS);
  return missing.length === 0 ? totals : null;
}

function counterOf(text: string | undefined): bigint | null {
  return text !== undefined && /^[0-9]{1,19}$/.test(text) ? BigInt(text) : null;
}

/** Keys of ours, and of Timelake's that we write. */
export const SUMMARY_KEYS = {
  commitId: 'sluice.commit-id',
  epochs: 'sluice.epochs',
  verdict: 'sluice.verdict',
  batchId: 'timelake.batch-id',
  lastValueIndex: 'timelake.last-value-index',
  /** Why a snapshot of ours on a table with a time column names no index. */
  noIndex: 'sluice.no-last-value-index',
} as const;

/**
 * The only place that builds a summary of ours, for every kind of commit, so that none can forget to carry state on.
 *
 * - `epochs`: the complete progress map after this commit, as text (`core/batch/epochs.ts`); null while there is none.
 *   `parents` are the summaries of the ancestry, newest first: when `epochs` is `carry`, the nearest map is repeated.
 * - `lastValueIndex`: location of this snapshot's index; `carry` keeps the parent's (same rows, as after compaction),
 *   null leaves it out. Only the parent itself is asked: an older index misses rows. Why there is none is carried likewise.
 * - `batchId`: only when the commit holds exactly one batch. It is never carried: it belongs to the commit that made it.
 */
export function carryForward(input: {
  operation: Summary['operation'];
  counts: Counts;
  totals: Totals;
  parents: Iterable<Summary>;
  commitId: string;
  epochs: string | 'carry' | null;
  lastValueIndex: string | 'carry' | null;
  /** Why there is none. */
  noIndex?: string | null;
  batchId?: string | null;
  verdict?: string | null;
  /** Further keys, for instance of a caller's own. Keys made here win. */
  extra?: Readonly<Record<string, string>>;
}): Summary {
  const { counts, totals } = input;
  let carriedEpochs: string | null = null;
  let carriedIndex: string | null = null;
  let carriedReason: string | null = null;
  if (input.epochs === 'carry' || input.lastValueIndex === 'carry') {
    let nearest = true;
    for (const parent of input.parents) {
      if (nearest) {
        carriedIndex = own(parent, SUMMARY_KEYS.lastValueIndex) ?? null;
        carriedReason = own(parent, SUMMARY_KEYS.noIndex) ?? null;
      }
      nearest = false;
      carriedEpochs = own(parent, SUMMARY_KEYS.epochs) ?? null;
      if (carriedEpochs !== null || input.epochs !== 'carry') break;
    }
  }
  const entries: [string, string | null | undefined][] = [
    ...Object.entries(input.extra ?? {}),
    ['operation', input.operation],
    ['added-data-files', count(counts.addedDataFiles)],
    ['deleted-data-files', count(counts.deletedDataFiles)],
    ['added-records', count(counts.addedRecords)],
    ['deleted-records', count(counts.deletedRecords)],
    ['added-files-size', count(counts.addedFilesSize)],
    ['removed-files-size', count(counts.removedFilesSize)],
    ['changed-partition-count', String(counts.changedPartitionCount)],
    ...TOTAL_NAMES.map((name): [string, string] => [TOTAL_KEYS[name], String(totals[name])]),
    [SUMMARY_KEYS.batchId, input.batchId],
    [SUMMARY_KEYS.lastValueIndex, input.lastValueIndex === 'carry' ? carriedIndex : input.lastValueIndex],
    [SUMMARY_KEYS.noIndex, input.lastValueIndex === 'carry' ? carriedReason : input.noIndex],
    [SUMMARY_KEYS.commitId, input.commitId],
    [SUMMARY_KEYS.verdict, input.verdict],
    [SUMMARY_KEYS.epochs, input.epochs === 'carry' ? carriedEpochs : input.epochs],
  ];
  const present = entries.filter((entry): entry is [string, string] => entry[1] !== null && entry[1] !== undefined);
  for (const [key, text] of present) {
    assert(utf8(text).length <= SUMMARY_VALUE_BYTES_MAX, `summary value is bounded: ${key}`);
  }
  return { ...Object.fromEntries(present), operation: input.operation };
}

/** Counters of zero are left out, as the reference writer does; totals never are. */
function count(value: bigint): string | null {
  return value === 0n ? null : String(value);
}
