import { describe, expect, test } from 'vitest';
import type { SnapshotRef, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { selectExpired } from '../../../src/core/maintain/expire-select.ts';
import { type RetentionPolicy, retentionPolicy } from '../../../src/core/maintain/retention-policy.ts';
import { snapshotOf, timeTable } from '../iceberg/fixtures.ts';

/** Snapshots by id, each with its parent and the minute it was made in. */
type Chain = Record<number, [parent: number | null, minute: number]>;

const MINUTE = 60_000;

function tableOf(chain: Chain, refs: Record<string, number | (Partial<SnapshotRef> & { at: number })>): TableMetadata {
  const table = timeTable();
  const snapshots = Object.entries(chain).map(([id, [parent, minute]]) => {
    const { 'parent-snapshot-id': _, ...snapshot } = snapshotOf(table, BigInt(id), { 'timestamp-ms': minute * MINUTE });
    return parent === null ? snapshot : { ...snapshot, 'parent-snapshot-id': BigInt(parent) };
  });
  const named = Object.entries(refs).map(([name, given]): [string, SnapshotRef] => {
    const { at, ...rest } = typeof given === 'number' ? { at: given } : given;
    return [name, { type: 'branch', ...rest, 'snapshot-id': BigInt(at) }];
  });
  const byName = Object.fromEntries(named);
  return { ...table, snapshots, refs: byName, 'current-snapshot-id': byName['main']?.['snapshot-id'] };
}

const POLICY: RetentionPolicy = {
  snapshotAgeMs: 10 * MINUTE,
  snapshotsMin: 2,
  snapshotsMax: 100,
  refAgeMs: Number.POSITIVE_INFINITY,
  keepUntilMs: 0,
};

function expired(table: TableMetadata, minute: number, policy: Partial<RetentionPolicy> = {}) {
  const { refs, snapshotIds } = selectExpired(table, { ...POLICY, ...policy }, minute * MINUTE);
  return { refs, ids: snapshotIds.map(Number) };
}

/** Five snapshots in a row, a minute apart. */
const LINE: Chain = { 1: [null, 1], 2: [1, 2], 3: [2, 3], 4: [3, 4], 5: [4, 5] };

describe('expire-select: a branch (X1)', () => {
  test('branch: ancestors stay while they are young, and the newest few whatever their age', () => {
    const table = tableOf(LINE, { main: 5 });
    expect(expired(table, 11).ids).toEqual([]); // the oldest is ten minutes old to the millisecond
    expect(expired(table, 13).ids).toEqual([1, 2]);
    expect(expired(table, 99).ids).toEqual([1, 2, 3]);
    expect(expired(table, 99, { snapshotsMin: 1 }).ids).toEqual([1, 2, 3, 4]);
    expect(expired(table, 99, { snapshotsMin: 9 }).ids).toEqual([]);
  });

  test('branch: the first ancestor that is neither young nor among the newest ends the walk', () => {
    // A clock that went back: 2 is old, 1 looks young again, and goes with what is behind it.
    const table = tableOf({ 1: [null, 50], 2: [1, 2], 3: [2, 51], 4: [3, 52] }, { main: 4 });
    expect(expired(table, 53).ids).toEqual([1, 2]);
  });

  test('branch: the greatest number of snapshots cuts young ones off, never below the least', () => {
    const table = tableOf(LINE, { main: 5 });
    expect(expired(table, 6, { snapshotsMax: 3 }).ids).toEqual([1, 2]);
    expect(expired(table, 6, { snapshotsMin: 4, snapshotsMax: 3 }).ids).toEqual([1]);
  });

  test('branch: limits of its own win over those of the table', () => {
    const own = { 'max-snapshot-age-ms': 60 * MINUTE, 'min-snapshots-to-keep': 4 };
    const table = tableOf({ ...LINE, 6: [1, 6], 7: [6, 7] }, { main: 5, dev: { at: 7, ...own } });
    // dev keeps 7, 6 and 1 by its age; main loses the middle.
    expect(expired(table, 30, { snapshotsMax: 2 }).ids).toEqual([2, 3]);
    expect(expired(table, 200).ids).toEqual([2, 3]); // 1 is the third of dev's four
  });

  test('branch: the head stays, however old (X2)', () => {
    expect(expired(tableOf({ 1: [null, 1] }, { main: 1 }), 9_999, { snapshotsMin: 1 }).ids).toEqual([]);
  });

  test('branch: a chain whose older part expired before ends there', () => {
    expect(expired(tableOf({ 4: [3, 4], 5: [4, 5] }, { main: 5 }), 99, { snapshotsMin: 1 }).ids).toEqual([4]);
  });
});

describe('expire-select: refs', () => {
  test('tag: its snapshot stays, its ancestors do not on its account', () => {
    const table = tableOf(LINE, { main: 5, v1: { at: 2, type: 'tag' } });
    expect(expired(table, 99)).toEqual({ refs: [], ids: [1, 3] });
  });

  test('ref: past its own age it goes first, and what only it kept with it; main never', () => {
    const refs = { main: 5, v1: { at: 2, type: 'tag' as const, 'max-ref-age-ms': MINUTE }, dev: 1 };
    expect(expired(tableOf(LINE, refs), 99)).toEqual({ refs: ['v1'], ids: [2, 3] });
    expect(expired(tableOf(LINE, refs), 99, { refAgeMs: 5 * MINUTE })).toEqual({ refs: ['v1', 'dev'], ids: [1, 2, 3] });
  });

  test('unreferenced: left behind by a rollback, a snapshot stays while it is young', () => {
    const table = tableOf(LINE, { main: 3 });
    expect(expired(table, 13).ids).toEqual([1]);
    expect(expired(table, 15).ids).toEqual([1, 4]);
    expect(expired(table, 16).ids).toEqual([1, 4, 5]);
  });

  test('unreferenced: an ancestor of a tag that is no ancestor of a branch counts as such', () => {
    const table = tableOf({ ...LINE, 6: [3, 6], 7: [6, 7] }, { main: 5, v1: { at: 7, type: 'tag' } });
    expect(expired(table, 16).ids).toEqual([1, 2, 3]);
    expect(expired(table, 17).ids).toEqual([1, 2, 3, 6]);
  });

  test('keep-until: nothing goes before it', () => {
    const table = tableOf(LINE, { main: 5, v1: { at: 2, type: 'tag', 'max-ref-age-ms': 1 } });
    expect(expired(table, 99, { keepUntilMs: 100 * MINUTE })).toEqual({ refs: [], ids: [] });
  });

  test('empty: a table without snapshots has nothing to lose', () => {
    expect(expired(timeTable(), 99)).toEqual({ refs: [], ids: [] });
  });
});

describe('retention-policy', () => {
  test('policy: the engine’s keys, then Iceberg’s, then the defaults of whose table it is', () => {
    expect(retentionPolicy({})).toEqual({
      snapshotAgeMs: 5 * 24 * 60 * MINUTE,
      snapshotsMin: 1,
      snapshotsMax: Number.POSITIVE_INFINITY,
      refAgeMs: Number.POSITIVE_INFINITY,
      keepUntilMs: 0,
    });
    expect(retentionPolicy({ 'timelake.format-version': '0.3.0' })).toMatchObject({
      snapshotAgeMs: 60 * MINUTE,
      snapshotsMin: 5,
      snapshotsMax: 100,
    });
    expect(
      retentionPolicy({
        'timelake.format-version': '0.3.0',
        'timelake.snapshot-retention': '2h',
        'timelake.min-snapshots': '7',
        'timelake.max-snapshots': '3',
        'timelake.keep-snapshots-until': '1767225600000',
        'history.expire.max-snapshot-age-ms': '1',
        'history.expire.max-ref-age-ms': '5',
      }),
    ).toEqual({
      snapshotAgeMs: 120 * MINUTE,
      snapshotsMin: 7,
      snapshotsMax: 7,
      refAgeMs: 5,
      keepUntilMs: 1_767_225_600_000,
    });
  });

  test('policy: a value that cannot be read is as if it were not there (B177)', () => {
    const bad = {
      'timelake.snapshot-retention': 'soon',
      'timelake.min-snapshots': '-1',
      'timelake.max-snapshots': 'x',
    };
    expect(retentionPolicy({ 'timelake.format-version': '0.3.0', ...bad })).toMatchObject({
      snapshotAgeMs: 60 * MINUTE,
      snapshotsMin: 5,
      snapshotsMax: 100,
    });
    expect(retentionPolicy({ 'history.expire.max-ref-age-ms': '9223372036854775807' }).refAgeMs).toBeGreaterThan(1e18);
  });
});
