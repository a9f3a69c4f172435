import { beforeEach, describe, expect, test } from 'vitest';
import { CHANGES_KEPT_MAX } from '../../../src/core/base/limits.ts';
import { CHANGES_KEY, changesAfter } from '../../../src/core/commit/changes.ts';
import { prepareDelete } from '../../../src/core/commit/decide-delete.ts';
import { prepareOverwrite } from '../../../src/core/commit/decide-overwrite.ts';
import type { Operation } from '../../../src/core/commit/operation.ts';
import { codecs } from '../../../src/engine/codecs.ts';
import { PLACE } from '../../sim/service.ts';
import { PureTable, row } from './pure-table.ts';

describe('list of changes', () => {
  test('newest first, each once, as many as are kept', () => {
    const ids = Array.from({ length: CHANGES_KEPT_MAX + 3 }, (_, i) => `c${i}`);
    let properties: Record<string, string> = {};
    for (const id of ids) properties = { [CHANGES_KEY]: changesAfter(properties, id) };
    expect(properties[CHANGES_KEY].split(' ')).toEqual(ids.slice(3).reverse());
    const again = changesAfter(properties, 'c5').split(' ');
    expect(again).toHaveLength(CHANGES_KEPT_MAX);
    expect(again.slice(0, 2)).toEqual(['c5', ids.at(-1)]);
  });
});

describe('a commit whose snapshot is gone before its writer looks', () => {
  let table: PureTable;
  const filter = { kind: 'partitions', partitions: [{ time_day: '2026-01-01' }] } as const;

  beforeEach(() => {
    table = new PureTable();
    table.append(row(0, 1), row(1, 1));
  });

  /** Commits it, takes rows of the same day in, and has everything but the newest snapshot expired. */
  function committedAndExpired(operation: Operation): void {
    table.run(operation);
    table.append(row(0, 2));
    const { 'snapshot-id': newest } = table.snapshot;
    const ids = table.metadata.snapshots.map((snapshot) => snapshot['snapshot-id']).filter((id) => id !== newest);
    table.update({ action: 'remove-snapshots', 'snapshot-ids': ids });
    expect(table.metadata.snapshots).toHaveLength(1);
  }

  test('a delete is found, and so does not take what came after it', () => {
    const operation = prepareDelete(table.identity(), filter, table.metadata);
    committedAndExpired(operation);
    if (table.base === null) throw new Error('no table');
    expect(table.sink.find(operation, table.base)).toEqual({ snapshotId: null, version: table.base.version });
  });

  test('an overwrite is found', () => {
    const identity = table.identity();
    const frames = [table.frame([row(0, 9)])];
    const operation = prepareOverwrite({ identity, filter, frames, metadata: table.metadata, place: PLACE, ...codecs });
    committedAndExpired(operation);
    if (table.base === null) throw new Error('no table');
    expect(table.sink.find(operation, table.base)).toEqual({ snapshotId: null, version: table.base.version });
  });

  test('one that never landed is not', () => {
    const operation = prepareDelete(table.identity(), filter, table.metadata);
    committedAndExpired(prepareDelete(table.identity(), filter, table.metadata));
    if (table.base === null) throw new Error('no table');
    expect(table.sink.find(operation, table.base)).toBeNull();
  });
});
