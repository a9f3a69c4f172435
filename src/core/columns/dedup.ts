import { release } from '../base/release.ts';
import type { Column } from './columns.ts';
import { compareWords, equalWords, type Word, wordsOf } from './order-words.ts';

/**
 * One winner for each key, out of rows in the order of that key: the row with the latest ingest time, and of those with
 * the same the one that came last. The rule is Timelake's, the same as on reading, in compaction and in the last-value
 * index.
 *
 * Null equals null: rows whose series or time is null are rows of one key like any others, since a key that is never
 * equal to itself would let every repetition of a batch in. A null ingest time is older than any other.
 *
 * `sorted` are row numbers, ordered by `key`, equal ones in the order of input (`sortByWords`). The winners come back in
 * the same order.
 */
export function winnersOf(sorted: Uint32Array, key: readonly Word[], ingestTime: Column | null): Uint32Array {
  const winners = new Uint32Array(sorted.length);
  const ingest = ingestTime === null ? [] : ingestWords(sorted.length, ingestTime);
  let count = 0;
  for (let i = 0; i < sorted.length; i++) {
    const row = sorted[i];
    if (count === 0 || !equalWords(key, winners[count - 1], row)) winners[count++] = row;
    else if (compareWords(ingest, winners[count - 1], row) <= 0) winners[count - 1] = row;
  }
  for (const { values } of ingest) release(values);
  return winners.subarray(0, count);
}

function ingestWords(rows: number, column: Column): Word[] {
  return wordsOf(rows, [{ column, type: 'timestamptz', direction: 'asc', nullOrder: 'nulls-first' }]);
}
