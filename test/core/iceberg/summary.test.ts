import { describe, expect, it } from 'vitest';
import {
  type Counts,
  carryForward,
  NO_COUNTS,
  totalsAfter,
  totalsFrom,
  totalsOf,
} from '../../../src/core/iceberg/summary.ts';
import type { Summary } from '../../../src/core/iceberg/types.ts';

const appended: Counts = {
  ...NO_COUNTS,
  addedDataFiles: 2n,
  addedRecords: 10n,
  addedFilesSize: 900n,
  changedPartitionCount: 1n,
};
const common = { operation: 'append', counts: appended, parents: [], commitId: 'c1', lastValueIndex: null } as const;
const first = (more: object = {}): Summary =>
  carryForward({ ...common, totals: totalsAfter(null, appended).totals, epochs: null, ...more });

describe('totals', () => {
  it('B170, S8: all six are there from the first snapshot on', () => {
    expect(first()).toEqual({
      operation: 'append',
      'added-data-files': '2',
      'added-records': '10',
      'added-files-size': '900',
      'changed-partition-count': '1',
      'total-data-files': '2',
      'total-records': '10',
      'total-files-size': '900',
      'total-delete-files': '0',
      'total-position-deletes': '0',
      'total-equality-deletes': '0',
      'sluice.commit-id': 'c1',
    });
  });

  it('go on from the parent, beyond 2^53', () => {
    const parent = { ...first(), 'total-records': '9007199254740993', 'total-position-deletes': '4' };
    const { totals, missing } = totalsAfter(parent, appended);
    expect(missing).toEqual([]);
    expect(totals.records).toBe(9007199254741003n);
    expect(totals.positionDeletes).toBe(4n);
  });

  it('S8: names what a parent lacks, has as nonsense, or would take below zero, instead of starting at zero', () => {
    const bare: Summary = { operation: 'append' };
    expect(totalsAfter(bare, appended).missing).toHaveLength(6);
    expect(totalsOf(bare)).toBe(null);
    expect(totalsAfter({ ...first(), 'total-records': '-5' }, appended).missing).toEqual(['records']);
    expect(totalsAfter({ ...first(), 'total-files-size': '1.5' }, appended).missing).toEqual(['filesSize']);
    const removed: Counts = { ...NO_COUNTS, deletedDataFiles: 3n };
    expect(totalsAfter(first(), removed).missing).toEqual(['dataFiles']);
  });

  it('go on from what was counted in manifests', () => {
    const counted = {
      dataFiles: 5n,
      records: 50n,
      filesSize: 500n,
      deleteFiles: 1n,
      positionDeletes: 2n,
      equalityDeletes: 3n,
    };
    expect(totalsFrom(counted, appended)).toEqual({ ...counted, dataFiles: 7n, records: 60n, filesSize: 1400n });
    expect(() => totalsFrom(counted, { ...NO_COUNTS, deletedDataFiles: 6n })).toThrow();
    expect(totalsOf(first())).toMatchObject({ dataFiles: 2n, records: 10n, filesSize: 900n });
  });
});

describe('carryForward', () => {
  const parents = [
    first({ epochs: null, lastValueIndex: 's3://b/new', batchId: 'b-9' }),
    first({ epochs: '{"a":"7"}', lastValueIndex: 's3://b/old' }),
    first({ epochs: '{"a":"6"}' }),
  ];
  const replaced = { ...common, operation: 'replace', totals: totalsAfter(null, appended).totals } as const;

  it('B116, C7: a compaction repeats the nearest progress map and the parent index', () => {
    const summary = carryForward({ ...replaced, parents, epochs: 'carry', lastValueIndex: 'carry' });
    expect(summary['sluice.epochs']).toBe('{"a":"7"}');
    expect(summary['timelake.last-value-index']).toBe('s3://b/new');
    expect(summary.operation).toBe('replace');
  });

  it('never takes an index from behind the parent: it misses rows', () => {
    const [, second] = parents;
    const summary = carryForward({ ...replaced, parents: [first(), second], epochs: 'carry', lastValueIndex: 'carry' });
    expect(summary).not.toHaveProperty(['timelake.last-value-index']);
    expect(summary['sluice.epochs']).toBe('{"a":"7"}');
  });

  it('never carries a batch id on', () => {
    const summary = carryForward({ ...replaced, parents, epochs: 'carry', lastValueIndex: 'carry' });
    expect(summary).not.toHaveProperty(['timelake.batch-id']);
    expect(first({ batchId: 'b-1' })['timelake.batch-id']).toBe('b-1');
  });

  it('writes what this commit brings', () => {
    const summary = first({
      epochs: '{"a":"8"}',
      verdict: 'ok',
      lastValueIndex: 's3://b/i',
      extra: { mine: '1', operation: 'x' },
    });
    expect(summary).toMatchObject({
      operation: 'append',
      mine: '1',
      'sluice.epochs': '{"a":"8"}',
      'sluice.verdict': 'ok',
      'timelake.last-value-index': 's3://b/i',
    });
  });

  it('S11: refuses a value that every metadata file would repeat at length', () => {
    expect(() => first({ verdict: 'x'.repeat(5000) })).toThrow(/bounded/);
  });

  it('asks the ancestry no further than needed', () => {
    let asked = 0;
    function* chain() {
      for (const parent of parents) {
        asked++;
        yield parent;
      }
    }
    carryForward({ ...replaced, parents: chain(), epochs: 'carry', lastValueIndex: null });
    expect(asked).toBe(2);
  });
});
