import { describe, expect, test } from 'vitest';
import { winnersOf } from '../../../src/core/columns/dedup.ts';
import { sortByWords, sortKeysOf } from '../../../src/core/columns/order.ts';
import { wordsOf } from '../../../src/core/columns/order-words.ts';
import { columnsOf, schemaOf } from './rows.ts';

const schema = schemaOf([
  ['device', 'string'],
  ['time', 'timestamptz'],
  ['_ingest_ts', 'timestamptz'],
]);

/** Row numbers of the winners, in the order of (device, time). */
function winners(rows: [string | null, bigint | null, bigint | null][], withIngestTime = true): number[] {
  const columns = columnsOf(schema, rows);
  const fields = [1, 2].map((id) => ({
    transform: 'identity',
    'source-id': id,
    direction: 'asc' as const,
    'null-order': 'nulls-first' as const,
  }));
  const key = wordsOf(rows.length, sortKeysOf(columns, { 'order-id': 1, fields }));
  const sorted = sortByWords(rows.length, key);
  return Array.from(winnersOf(sorted, key, withIngestTime ? columns.columns[2] : null));
}

describe('dedup', () => {
  test('dedup: rows of different keys all stay', () => {
    expect(
      winners([
        ['b', 1n, 1n],
        ['a', 2n, 1n],
        ['a', 1n, 1n],
      ]),
    ).toEqual([2, 1, 0]);
  });

  test('dedup: a later row with an older ingest time loses, one with the same wins', () => {
    expect(
      winners([
        ['a', 1n, 5n],
        ['a', 1n, 4n],
      ]),
    ).toEqual([0]);
    expect(
      winners([
        ['a', 1n, 5n],
        ['a', 1n, 5n],
      ]),
    ).toEqual([1]);
    expect(
      winners([
        ['a', 1n, 5n],
        ['a', 1n, 4n],
        ['a', 1n, 5n],
        ['a', 1n, 3n],
      ]),
    ).toEqual([2]);
  });

  test('dedup: ingest times are compared over the whole of int64 (B047)', () => {
    expect(
      winners([
        ['a', 1n, 2n ** 63n - 1n],
        ['a', 1n, 2n ** 63n - 2n],
      ]),
    ).toEqual([0]);
    expect(
      winners([
        ['a', 1n, -1n],
        ['a', 1n, -(2n ** 63n)],
      ]),
    ).toEqual([0]);
  });

  test('dedup: no ingest time is older than any, even the oldest', () => {
    expect(
      winners([
        ['a', 1n, -(2n ** 63n)],
        ['a', 1n, null],
      ]),
    ).toEqual([0]);
    expect(
      winners([
        ['a', 1n, null],
        ['a', 1n, null],
      ]),
    ).toEqual([1]);
  });

  test('dedup: without an ingest time column the last row wins', () => {
    expect(
      winners(
        [
          ['a', 1n, 5n],
          ['a', 1n, 4n],
        ],
        false,
      ),
    ).toEqual([1]);
  });

  test('dedup: a null key equals a null key, not an empty text or a zero time (B100)', () => {
    expect(
      winners([
        [null, 1n, 1n],
        [null, 1n, 1n],
        ['', 1n, 1n],
        ['', null, 1n],
        ['', 0n, 1n],
        ['', null, 1n],
      ]),
    ).toEqual([1, 5, 4, 2]);
  });

  test('dedup: many rows of one key leave one', () => {
    const rows = Array.from({ length: 1000 }, (_, i): [string, bigint, bigint] => ['a', 7n, BigInt((i * 7919) % 1000)]);
    expect(winners(rows)).toEqual([rows.findIndex(([, , ingest]) => ingest === 999n)]);
  });

  test('dedup: no rows', () => {
    expect(winners([])).toEqual([]);
  });
});
