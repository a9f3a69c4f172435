import { describe, expect, it } from 'vitest';
import {
  ancestors,
  currentSnapshot,
  isAncestor,
  snapshotById,
  snapshotOfRef,
} from '../../../src/core/iceberg/snapshot.ts';
import { append, commit, snapshotOf, timeTable } from './fixtures.ts';

const ids = (items: Iterable<{ 'snapshot-id': bigint }>) => [...items].map((item) => item['snapshot-id']);

describe('ancestry', () => {
  const three = append(append(append(timeTable(), 1n), 2n), 3n);

  it('goes from a snapshot to its parents', () => {
    expect(ids(ancestors(three, 3n))).toEqual([3n, 2n, 1n]);
    expect(ids(ancestors(three, 99n))).toEqual([]);
    expect(isAncestor(three, 3n, 1n)).toBe(true);
    expect(isAncestor(three, 2n, 3n)).toBe(false);
  });

  it('ends at an expired parent', () => {
    const expired = commit(three, { action: 'remove-snapshots', 'snapshot-ids': [2n] });
    expect(ids(ancestors(expired, 3n))).toEqual([3n]);
    expect(isAncestor(expired, 3n, 1n)).toBe(false);
  });

  it('ends in a chain that bites its tail', () => {
    const loop = {
      ...three,
      snapshots: [
        snapshotOf(three, 5n, { 'parent-snapshot-id': 6n }),
        snapshotOf(three, 6n, { 'parent-snapshot-id': 5n }),
      ],
    };
    expect(ids(ancestors(loop, 5n))).toEqual([5n, 6n]);
    expect(isAncestor(loop, 5n, 7n)).toBe(false);
  });
});

describe('look-up', () => {
  it('finds current, by id and by ref', () => {
    const table = append(append(timeTable(), 1n), 2n, 'audit');
    expect(currentSnapshot(table)?.['snapshot-id']).toBe(1n);
    expect(snapshotOfRef(table, 'audit')?.['snapshot-id']).toBe(2n);
    expect(snapshotOfRef(table, 'constructor')).toBe(null);
    expect(snapshotById(table, 3n)).toBe(null);
    expect(currentSnapshot(timeTable())).toBe(null);
    expect(snapshotOfRef(timeTable(), 'main')).toBe(null);
  });
});
