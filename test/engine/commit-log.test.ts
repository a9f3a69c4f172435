import { describe, expect, it } from 'vitest';
import type { IcebergBase } from '../../src/core/commit/iceberg-base.ts';
import type { Operation } from '../../src/core/commit/operation.ts';
import { type CommitEnd, commitLog, refusalsOf } from '../../src/engine/commit-log.ts';
import { StoreError } from '../../src/store/store.ts';

const base = { version: 7 } as IcebergBase;
const append = { kind: 'append', commitId: 'c1', added: { records: 12n } } as unknown as Operation;
const update = { kind: 'update', commitId: 'c2' } as unknown as Operation;
const committed: CommitEnd = { outcome: 'committed', base, found: { snapshotId: 5n, version: 6 }, own: true };

/** Lines and counts of one end. */
function told(operation: Operation, end: CommitEnd, oldestMs: number | null = 400) {
  const lines: object[] = [];
  const counts: unknown[] = [];
  const observe = commitLog({
    clock: { now: () => 1000, sleep: async () => undefined },
    oldestMs: () => oldestMs,
    count: (...count) => counts.push(count),
    log: (line) => lines.push(line),
  });
  observe(operation, end, 30);
  return { lines, counts };
}

describe('commit log', () => {
  it('a commit has one line, an append with its rows and their lag', () => {
    const about = { event: 'committed', version: 6, snapshot_id: '5', newest_version: 7, own: true, took_ms: 30 };
    expect(told(append, committed)).toEqual({
      lines: [{ ...about, operation: 'append', commit_id: 'c1', rows: '12', lag_ms: 600 }],
      counts: [['append', 'committed', 600]],
    });
    expect(told(update, committed)).toEqual({
      lines: [{ ...about, operation: 'update', commit_id: 'c2' }],
      counts: [['update', 'committed', null]],
    });
    expect(told(append, committed, null).counts).toEqual([['append', 'committed', null]]);
  });

  it('whatever else ends a change has one line with the reason', () => {
    const error = new StoreError('get', 'k', 'no', new Error('down'));
    const ends: [end: CommitEnd, said: object][] = [
      [
        { outcome: 'refused', base, type: 'main-fixed', message: 'm' },
        { type: 'main-fixed', message: 'm' },
      ],
      [{ outcome: 'nothing', base, message: 'as asked', detail: {} }, { message: 'as asked' }],
      [
        { outcome: 'conflict', base, type: 't', message: 'm', discardable: true },
        { type: 't', message: 'm' },
      ],
      [{ outcome: 'unavailable', error }, { message: error.message }],
      [{ outcome: 'unknown', error: 'no answer' }, { message: 'no answer' }],
      [{ outcome: 'failed', error: new Error('corrupt') }, { message: 'corrupt' }],
    ];
    for (const [end, said] of ends) {
      const { outcome } = end;
      const about = { event: 'not-committed', operation: 'update', commit_id: 'c2', took_ms: 30, outcome };
      expect(told(update, end)).toEqual({ lines: [{ ...about, ...said }], counts: [['update', outcome, null]] });
    }
  });

  it('an append that is tried again is counted here, and has its line from the writer', () => {
    const error = new StoreError('get', 'k', 'no');
    const ends: CommitEnd[] = [
      { outcome: 'unavailable', error },
      { outcome: 'unknown', error },
      { outcome: 'conflict', base, type: 'commit-conflict', message: 'm', discardable: true },
      { outcome: 'again', base, reason: 'schema' },
    ];
    for (const end of ends) {
      expect(told(append, end)).toEqual({ lines: [], counts: [['append', end.outcome, null]] });
    }
    expect(told(append, { outcome: 'refused', base, type: 'table-dropped', message: 'm' }).lines).toHaveLength(1);
  });
});

describe('refused batches', () => {
  it('are told by reason, not one by one', () => {
    const about = (type: string, outcome: 'refused' | 'parked' = 'refused') => ({
      outcome,
      type,
      message: type,
      atMs: 1,
    });
    const done = { snapshotId: null, version: 1, tableUuid: 'u', committedMs: 1, rows: 1 };
    expect(
      refusalsOf([
        { sequence: 3, settlement: about('bad') },
        { sequence: 4, settlement: { outcome: 'committed', ...done } },
        { sequence: 5, settlement: about('bad') },
        { sequence: 6, settlement: about('app-parked', 'parked') },
      ]),
    ).toEqual([
      { outcome: 'refused', type: 'bad', message: 'bad', batches: 2, first_sequence: 3 },
      { outcome: 'parked', type: 'app-parked', message: 'app-parked', batches: 1, first_sequence: 6 },
    ]);
  });
});
