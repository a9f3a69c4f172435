import { describe, expect, test } from 'vitest';
import type { TableMetadata } from '../../../src/core/iceberg/types.ts';
import { fileStatistics } from '../../../src/core/maintain/file-statistics.ts';
import type { LiveFile } from '../../../src/core/maintain/live-files.ts';

/** As much of a table and of files as counting looks at. */
const METADATA = {
  'current-schema-id': 0,
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
    { 'spec-id': 1, fields: [{ 'source-id': 2, 'field-id': 1001, name: 'site', transform: 'identity' }] },
    { 'spec-id': 2, fields: [{ 'source-id': 9, 'field-id': 1002, name: 'gone', transform: 'identity' }] },
  ],
} as unknown as TableMetadata;

const file = (specId: number, value: number | string | null, rows: bigint, kib: number): LiveFile =>
  ({
    specId,
    partition: `${specId} ${JSON.stringify(value)}`,
    newestMicros: null,
    entry: { dataFile: { partition: [value], recordCount: rows, fileSizeInBytes: BigInt(kib * 1024) } },
  }) as unknown as LiveFile;

describe('file statistics', () => {
  test('files are counted whole and by partition, labelled as filters take them, in order', () => {
    const files = [
      file(0, 20_457, 5n, 300),
      file(0, 20_456, 2n ** 62n, 1),
      file(0, 20_457, 7n, 255),
      file(0, 20_457, 1n, 2000),
    ];
    const { all, partitions } = fileStatistics(files, METADATA, 1024 * 1024);
    expect(all).toEqual({ files: 4, rows: 2n ** 62n + 13n, bytes: 2556n * 1024n, smallFiles: 3, tiers: [2, 1, 1] });
    expect(partitions).toMatchObject([
      { specId: 0, partition: { time_day: '2026-01-03' }, files: 1, smallFiles: 1, tiers: [1] },
      { specId: 0, partition: { time_day: '2026-01-04' }, files: 3, rows: 13n, smallFiles: 2, tiers: [1, 1, 1] },
    ]);
  });

  test('a null is told from the text "null"; a partition whose column is gone has no labels', () => {
    const { partitions } = fileStatistics(
      [file(1, null, 1n, 1), file(1, 'null', 1n, 1), file(2, 'x', 1n, 1)],
      METADATA,
      1,
    );
    expect(partitions.map(({ partition }) => partition)).toEqual(
      expect.arrayContaining([{ site: null }, { site: 'null' }, {}]),
    );
    expect(partitions).toHaveLength(3);
  });

  test('a table without files has none', () => {
    expect(fileStatistics([], METADATA, 1)).toEqual({
      all: { files: 0, rows: 0n, bytes: 0n, smallFiles: 0, tiers: [] },
      partitions: [],
    });
  });
});
