import { describe, expect, test } from 'vitest';
import { type FileMatch, fileMatcher } from '../../../src/core/commit/file-filter.ts';
import { encodeValue } from '../../../src/core/iceberg/single-value.ts';
import type { DataFile, ManifestFile, TableMetadata } from '../../../src/core/iceberg/types.ts';
import { type LiveFile, liveFileOf } from '../../../src/core/maintain/live-files.ts';
import {
  earliestEnd,
  earliestEndOf,
  pastFiles,
  retentionCutoff,
  retentionDueMs,
} from '../../../src/core/maintain/retention.ts';

const DAY_MS = 86_400_000;
const DAY = 86_400_000_000n;

/** As much of a table as retention looks at: by day, by month, by nothing, by another column, by a column that is gone. */
const table = (properties: Record<string, string> = { 'timelake.retention': '2d' }): TableMetadata =>
  ({
    'current-schema-id': 0,
    'default-spec-id': 0,
    'default-sort-order-id': 0,
    'sort-orders': [{ 'order-id': 0, fields: [] }],
    schemas: [
      {
        type: 'struct',
        'schema-id': 0,
        fields: [
          { id: 1, name: 'time', type: 'timestamptz', required: true },
          { id: 2, name: 'site', type: 'string', required: false },
        ],
      },
    ],
    'partition-specs': [
      { 'spec-id': 0, fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }] },
      { 'spec-id': 1, fields: [{ 'source-id': 1, 'field-id': 1001, name: 'time_month', transform: 'month' }] },
      { 'spec-id': 2, fields: [] },
      {
        'spec-id': 3,
        fields: [
          { 'source-id': 2, 'field-id': 1002, name: 'site', transform: 'identity' },
          { 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' },
        ],
      },
      { 'spec-id': 4, fields: [{ 'source-id': 9, 'field-id': 1003, name: 'gone', transform: 'identity' }] },
    ],
    properties: { 'timelake.time-column': 'time', ...properties },
  }) as unknown as TableMetadata;

const bounds = (micros: bigint) => new Map([[1, encodeValue('timestamptz', micros)]]);

function file(specId: number, partition: unknown[], times: [bigint, bigint] | null = null): LiveFile {
  return {
    specId,
    partition: `${specId} ${partition}`,
    newestMicros: times?.[1] ?? null,
    entry: {
      dataFile: {
        partition,
        recordCount: 3n,
        fileSizeInBytes: 100n,
        lowerBounds: times === null ? null : bounds(times[0]),
        upperBounds: times === null ? null : bounds(times[1]),
        nullValueCounts: null,
      },
    },
  } as unknown as LiveFile;
}

function row(partitionSpecId: number, lower: number | null, more: Partial<ManifestFile> = {}): ManifestFile {
  const lowerBound = lower === null ? null : encodeValue('date', lower);
  const summary = { containsNull: false, containsNan: null, lowerBound, upperBound: lowerBound };
  return {
    partitionSpecId,
    content: 0,
    addedFilesCount: 1,
    existingFilesCount: 0,
    partitions: [summary],
    ...more,
  } as ManifestFile;
}

function matched(given: LiveFile, before: bigint): FileMatch {
  return fileMatcher({ kind: 'retention', before }, table()).match(given.specId, given.entry.dataFile as DataFile);
}

describe('retention: what goes', () => {
  test('a partition that ends at or before the limit, and none that is under way, however old its rows are', () => {
    expect(matched(file(0, [9]), 10n * DAY)).toBe('inside');
    expect(matched(file(0, [9]), 10n * DAY - 1n)).toBe('outside');
    expect(matched(file(0, [10], [10n * DAY, 10n * DAY + 5n]), 10n * DAY + 6n)).toBe('outside');
    expect(matched(file(1, [0]), 31n * DAY)).toBe('inside');
    expect(matched(file(1, [0]), 31n * DAY - 1n)).toBe('outside');
    expect(matched(file(3, ['a', -1]), 0n)).toBe('inside');
  });

  test('files that are in no partition by time: those wholly older by their bounds; in doubt they stay', () => {
    expect(matched(file(2, [], [1n, 9n]), 10n)).toBe('inside');
    expect(matched(file(2, [], [1n, 10n]), 10n)).toBe('overlapping');
    expect(matched(file(2, []), 10n)).toBe('overlapping');
    expect(matched(file(0, [null]), 10n ** 15n)).toBe('outside');
    expect(matched(file(4, ['x'], [1n, 9n]), 10n)).toBe('inside');
  });

  test('counted: what would go', () => {
    const files = [file(0, [1]), file(0, [1]), file(0, [2]), file(2, [], [1n, 9n]), file(2, [])];
    expect(pastFiles(files, table(), 2n * DAY)).toEqual({ files: 3, rows: 9n, bytes: 300n, partitions: 2 });
    expect(pastFiles(files, table(), 3n * DAY).files).toBe(4);
  });
});

describe('retention: when', () => {
  test('bounds that nobody can read tell nothing (B011)', () => {
    const spoilt = {
      containsNull: true,
      containsNan: null,
      lowerBound: new Uint8Array(8),
      upperBound: new Uint8Array(8),
    };
    expect(earliestEnd([row(0, 5), row(0, 1, { partitions: [spoilt] })], table())).toBe('unknown');
    const times = new Map([[1, new Uint8Array(4)]]);
    const given = file(2, []);
    const dataFile = { ...given.entry.dataFile, lowerBounds: times, upperBounds: times };
    expect(matched({ ...given, entry: { ...given.entry, dataFile } }, 10n)).toBe('overlapping');
    expect(
      liveFileOf({ ...given.entry, dataFile }, { partitionSpecId: 2, minSequenceNumber: 0n }, 1).newestMicros,
    ).toBeNull();
  });

  test('the limit is now less the property; none without it, without a time column, or before the calendar', () => {
    expect(retentionCutoff(table(), 5 * DAY_MS + 7)).toBe(3n * DAY + 7000n);
    expect(retentionCutoff(table({}), 5 * DAY_MS)).toBeNull();
    expect(retentionCutoff(table({ 'timelake.retention': 'many' }), 5 * DAY_MS)).toBeNull();
    expect(retentionCutoff(table({ 'timelake.time-column': 'other', 'timelake.retention': '1d' }), 0)).toBeNull();
    expect(retentionCutoff(table({ 'timelake.retention': '900000y' }), 0)).toBeNull();
  });

  test('due in the millisecond in which the limit reaches the end, and not before', () => {
    for (const end of [3n * DAY, 3n * DAY + 1n, -1n, -2000n, 1001n]) {
      const dueMs = retentionDueMs(table(), end) ?? 0;
      expect(retentionCutoff(table(), dueMs)).toBeGreaterThanOrEqual(end);
      expect(retentionCutoff(table(), dueMs - 1)).toBeLessThan(end);
    }
    expect(retentionDueMs(table(), null)).toBeNull();
    expect(retentionDueMs(table({}), 0n)).toBeNull();
  });

  test('from the manifest list: the earliest end of a live partition', () => {
    expect(earliestEnd([row(0, 8), row(0, 5), row(0, 9)], table())).toBe(6n * DAY);
    expect(earliestEnd([], table())).toBeNull();
    const ofNothing = { addedFilesCount: 0, deletedFilesCount: 3 };
    expect(earliestEnd([row(0, 8), row(0, 5, ofNothing), row(0, 1, { content: 1 })], table())).toBe(9n * DAY);
    const [nulls] = row(0, null).partitions ?? [];
    expect(earliestEnd([row(0, 8), row(0, null, { partitions: [{ ...nulls, containsNull: true }] })], table())).toBe(
      9n * DAY,
    );
  });

  test('the list does not tell: no bounds, or no partition by time', () => {
    expect(earliestEnd([row(0, 8), row(0, null)], table())).toBe('unknown');
    expect(earliestEnd([row(0, 8, { partitions: undefined })], table())).toBe('unknown');
    expect(earliestEnd([row(2, null, { partitions: [] })], table())).toBe('unknown');
    expect(earliestEnd([row(4, 8)], table())).toBe('unknown');
  });

  test('from the files: the earliest end, or the next after a limit', () => {
    const files = [file(0, [8]), file(0, [null]), file(2, [], [5n, 6n * DAY]), file(2, [])];
    expect(earliestEndOf(files, table(), null)).toBe(6n * DAY + 1n);
    expect(earliestEndOf(files, table(), 6n * DAY + 1n)).toBe(9n * DAY);
    expect(earliestEndOf(files, table(), 9n * DAY)).toBeNull();
  });
});
