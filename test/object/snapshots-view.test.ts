import { describe, expect, test } from 'vitest';
import type { IcebergBase } from '../../src/core/commit/iceberg-base.ts';
import type { Snapshot } from '../../src/core/iceberg/types.ts';
import { snapshotsView } from '../../src/object/admin-views.ts';

/** A table whose snapshots have these sequence numbers, in order. */
function baseOf(...numbers: number[]): IcebergBase {
  const snapshots = numbers.map(
    (number, i): Snapshot => ({
      'snapshot-id': BigInt(100 + i),
      'sequence-number': BigInt(number),
      'timestamp-ms': i,
      'manifest-list': 's3://b/l',
      summary: { operation: 'append' },
    }),
  );
  return { version: 1, metadata: { snapshots, refs: {} } } as unknown as IcebergBase;
}

function pagesOf(base: IcebergBase, limit: number): string[][] {
  const pages: string[][] = [];
  let before: bigint | null = null;
  for (;;) {
    const { snapshots, next_before } = snapshotsView(base, limit, before);
    pages.push(snapshots.map(({ snapshot_id }) => snapshot_id));
    if (next_before === null) return pages;
    before = BigInt(next_before);
  }
}

describe('pages of snapshots', () => {
  test('newest first, each once', () => {
    expect(pagesOf(baseOf(1, 2, 3, 4, 5), 2)).toEqual([['104', '103'], ['102', '101'], ['100']]);
    expect(pagesOf(baseOf(), 2)).toEqual([[]]);
  });

  test('those of a table that began in format version 1 share a number, and a page: none is passed over', () => {
    expect(pagesOf(baseOf(0, 0, 0, 1), 2)).toEqual([['103', '102', '101', '100']]);
    expect(pagesOf(baseOf(0, 0, 0, 1), 1)).toEqual([['103'], ['102', '101', '100']]);
  });
});
