import { describe, expect, test } from 'vitest';
import type { SnapshotRef, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { selectExpired } from '../../../src/core/maintain/expire-select.ts';
import { expiryDueMs } from '../../../src/core/maintain/expiry-due.ts';
import { expiresByItself, type RetentionPolicy } from '../../../src/core/maintain/retention-policy.ts';
import { snapshotOf, timeTable } from '../iceberg/fixtures.ts';

const MINUTE = 60_000;
const PACE = { batch: 3, lateMs: 5 * MINUTE };
const POLICY: RetentionPolicy = {
  snapshotAgeMs: 10 * MINUTE,
  snapshotsMin: 2,
  snapshotsMax: 100,
  refAgeMs: Number.POSITIVE_INFINITY,
  keepUntilMs: 0,
};

/** Snapshots 1, 2, … in a row, a minute apart, main at the last. */
function lineOf(count: number, refs: Record<string, SnapshotRef> = {}): TableMetadata {
  const table = timeTable();
  const snapshots = Array.from({ length: count }, (_, i) => {
    const { 'parent-snapshot-id': _parent, ...snapshot } = snapshotOf(table, BigInt(i + 1), {
      'timestamp-ms': (i + 1) * MINUTE,
    });
    return i === 0 ? snapshot : { ...snapshot, 'parent-snapshot-id': BigInt(i) };
  });
  const main: SnapshotRef = { type: 'branch', 'snapshot-id': BigInt(count) };
  return {
    ...table,
    snapshots,
    refs: count === 0 ? {} : { main, ...refs },
    'current-snapshot-id': count === 0 ? undefined : BigInt(count),
    'last-updated-ms': count * MINUTE,
  };
}

const due = (table: TableMetadata, policy: Partial<RetentionPolicy> = {}) =>
  expiryDueMs(table, { ...POLICY, ...policy }, PACE);

describe('expiry: when it is due', () => {
  test('never, where nothing will ever expire by itself', () => {
    expect(due(lineOf(0))).toBeNull();
    expect(due(lineOf(2))).toBeNull();
    expect(due(lineOf(9), { snapshotAgeMs: Number.POSITIVE_INFINITY })).toBeNull();
    const { refs, ...rest } = lineOf(3, { t: { type: 'tag', 'snapshot-id': 1n } });
    expect(due({ ...rest, refs })).toBeNull();
  });

  test('a while after the first, where fewer than a batch will go', () => {
    // Of four the first two can go, the older one at the eleventh minute.
    expect(due(lineOf(4))).toBe(11 * MINUTE + 1 + PACE.lateMs);
  });

  test('with a batch, when that comes first', () => {
    expect(due(lineOf(9))).toBe(13 * MINUTE + 1);
    expect(due(lineOf(5))).toBe(13 * MINUTE + 1);
  });

  test('at once, where the number of snapshots is past its bound', () => {
    expect(due(lineOf(9), { snapshotsMax: 5 })).toBe(9 * MINUTE);
    expect(due(lineOf(9), { snapshotsMax: 8 })).toBe(13 * MINUTE + 1);
  });

  test('not before the table allows it', () => {
    expect(due(lineOf(9), { keepUntilMs: 60 * MINUTE })).toBe(60 * MINUTE);
  });

  test('ages of a branch and of a tag count too', () => {
    const branch: SnapshotRef = { type: 'branch', 'snapshot-id': 9n, 'max-snapshot-age-ms': 2 * MINUTE };
    expect(due({ ...lineOf(9), refs: { main: branch } })).toBe(9 * MINUTE);
    const tag: SnapshotRef = { type: 'tag', 'snapshot-id': 2n, 'max-ref-age-ms': 30 * MINUTE };
    expect(due(lineOf(2, { t: tag }))).toBe(32 * MINUTE + 1 + PACE.lateMs);
  });

  test('what is due then does go, and a moment earlier would not', () => {
    for (const count of [5, 9, 12]) {
      const table = lineOf(count);
      const atMs = due(table) ?? 0;
      expect(selectExpired(table, POLICY, atMs).snapshotIds.length).toBeGreaterThanOrEqual(PACE.batch);
      expect(selectExpired(table, POLICY, atMs - 1).snapshotIds.length).toBeLessThan(PACE.batch);
    }
  });
});

describe('expiry: which tables', () => {
  test.each([
    [{ 'timelake.snapshot-retention': '1h' }, true],
    [{ 'timelake.max-snapshots': '9' }, true],
    [{ 'history.expire.max-snapshot-age-ms': '1' }, true],
    [{}, false],
    [{ 'timelake.format-version': '0.3.9' }, false],
    [{ 'timelake.snapshot-retention': '1h', 'gc.enabled': 'FALSE' }, false],
    [{ 'timelake.snapshot-retention': '1h', 'timelake.auto-maintain': 'false' }, false],
    [{ 'timelake.snapshot-retention': '1h', 'timelake.auto-maintain': 'true' }, true],
  ])('%j: %s', (properties, expected) => {
    expect(expiresByItself(properties as Record<string, string>)).toBe(expected);
  });
});
