import { beforeEach, describe, expect, test } from 'vitest';
import { readEpochs } from '../../../src/core/batch/epochs.ts';
import { prepareDelete } from '../../../src/core/commit/decide-delete.ts';
import type { FileFilter } from '../../../src/core/commit/file-filter.ts';
import { reportOf } from '../../../src/core/commit/report.ts';
import type { ManifestFile } from '../../../src/core/iceberg/types.ts';
import { PureTable, row, spelled } from './pure-table.ts';

let table: PureTable;

beforeEach(() => {
  table = new PureTable();
});

const day = (label: string): FileFilter => ({ kind: 'partitions', partitions: [{ time_day: label }] });
const remove = (filter: FileFilter) => prepareDelete(table.identity(), filter, table.metadata);

describe('delete: what it leaves', () => {
  test('B133 C5 Q2 Q3: survivors are existing as they were, removed files deleted with both numbers and this snapshot', async () => {
    table.append(row(0, 1), row(1, 2));
    const [kept] = table.live().filter(({ dataFile }) => dataFile.filePath.includes('2026-01-02'));
    const [gone] = table.live().filter(({ dataFile }) => dataFile.filePath.includes('2026-01-01'));
    table.append(row(0, 3));
    const operation = remove(day('2026-01-01'));
    table.run(operation);
    const manifests = table.list().map((manifest) => table.entriesOf(manifest));
    expect(table.list().map(({ manifestPath }) => /-(merged|deleted|added)-m/.exec(manifestPath)?.[1])).toEqual([
      'merged',
      'deleted',
    ]);
    expect(manifests[0]).toEqual([{ ...kept, status: 0 }]);
    expect(manifests[1]).toHaveLength(2);
    const deleted = manifests[1].find(({ dataFile }) => dataFile.filePath === gone.dataFile.filePath);
    expect(deleted).toEqual({ ...gone, status: 2, snapshotId: operation.identity.snapshotId });
    expect(deleted?.sequenceNumber).toBe(1n);
    await table.valid();
    expect(await table.rows()).toEqual([spelled(row(1, 2))]);
  });

  test('C9 S3 S7 S8: the snapshot is a delete with the next number, counts and totals', () => {
    table.append(row(0, 1), row(1, 2), row(1, 3));
    const operation = remove(day('2026-01-02'));
    table.run(operation);
    expect(table.snapshot['sequence-number']).toBe(2n);
    expect(table.snapshot.summary).toMatchObject({
      operation: 'delete',
      'deleted-data-files': '1',
      'deleted-records': '2',
      'changed-partition-count': '1',
      'total-data-files': '1',
      'total-records': '1',
      'total-delete-files': '0',
    });
    expect(reportOf(table.metadata, operation.commitId)).toMatchObject({
      operation: 'delete',
      added: { files: 0, rows: 0n },
      removed: { files: 1, rows: 2n },
      changedPartitions: 1,
      manifests: { created: 2, replaced: 1, kept: 0 },
    });
  });

  test('B159: nothing is deleted by files that name the paths of others, so a table may move', () => {
    table.append(row(0, 1), row(1, 2));
    table.run(remove(day('2026-01-02')));
    table.append(row(1, 3));
    expect(table.snapshot.summary).toMatchObject({
      'total-delete-files': '0',
      'total-position-deletes': '0',
      'total-equality-deletes': '0',
    });
  });

  test('E3: a manifest of deleted files alone is in the list of the snapshot that deletes them, and in no later one', async () => {
    table.append(row(0, 1));
    table.append(row(1, 1));
    table.run(remove(day('2026-01-01')));
    expect(table.list()).toHaveLength(2);
    table.append(row(2, 1));
    expect(table.list().map(({ deletedFilesCount }) => deletedFilesCount)).toEqual([0, 0]);
    await table.valid();
  });

  test('ML13: everything deleted leaves a valid, empty table that takes rows again', async () => {
    table.append(row(0, 1));
    table.run(remove({ kind: 'all' }));
    expect(await table.rows()).toEqual([]);
    await table.valid();
    table.append(row(0, 2));
    expect(table.list()).toHaveLength(1);
    expect(await table.rows()).toEqual([spelled(row(0, 2))]);
    await table.valid();
  });

  test('U7: progress, and its mirror, go on; the last-value index does not', () => {
    table.append(row(0, 1));
    table.append(row(1, 1));
    const before = readEpochs(table.metadata);
    expect(before.size).toBe(1);
    table.run(remove(day('2026-01-01')));
    expect(readEpochs(table.metadata)).toEqual(before);
    expect(table.snapshot.summary['sluice.epochs']).toBeDefined();
    const mirror = table.metadata.properties['sluice.epochs-main'] ?? '';
    expect(mirror.startsWith(`${table.snapshot['snapshot-id']} 3 `)).toBe(true);
  });

  test('untouched manifests are carried unchanged', () => {
    table.append(row(0, 1));
    table.append(row(1, 1));
    const carried = table.list().find((manifest) => manifest.sequenceNumber === 2n);
    table.run(remove(day('2026-01-01')));
    expect(table.list().at(-1)).toEqual(carried);
  });
});

describe('delete: what it chooses', () => {
  test('S10: nothing to delete makes no version', () => {
    table.append(row(0, 1));
    expect(table.run(remove(day('2027-01-01')))).toMatchObject({ kind: 'nothing' });
    expect(table.base?.version).toBe(2);
  });

  test('an empty table has nothing to delete', () => {
    expect(table.run(remove({ kind: 'all' }))).toMatchObject({ kind: 'nothing' });
  });

  test('a time range takes the files it covers and tells of those it overlaps', () => {
    table.append(row(0, 10), row(0, 20));
    table.append(row(0, 30), row(1, 10), row(1, 20));
    const start = BigInt(Date.UTC(2026, 0, 1)) * 1000n;
    // From 25 s of the first day to 15 s of the second.
    const filter: FileFilter = {
      kind: 'time-range',
      from: start + 25_000_000n,
      to: start + 86_400_000_000n + 15_000_000n,
    };
    const operation = remove(filter);
    table.run(operation);
    expect(reportOf(table.metadata, operation.commitId)).toMatchObject({
      removed: { files: 1, rows: 1n },
      overlapping: { files: 1, rows: 2n },
    });
    const again = table.run(remove(filter));
    expect(again).toMatchObject({ kind: 'nothing', detail: { overlappingFiles: 1, overlappingRows: '2' } });
  });

  test('paths: those that are live go, others are no error', async () => {
    table.append(row(0, 1), row(1, 1));
    const [{ dataFile }] = table.live();
    const paths = [dataFile.filePath, `${dataFile.filePath}.gone`];
    table.run(remove({ kind: 'paths', paths }));
    expect(table.live()).toHaveLength(1);
    expect(table.run(remove({ kind: 'paths', paths })).kind).toBe('nothing');
    await table.valid();
  });

  test('chosen anew on each base: a delete decided on an older base takes what was appended since', async () => {
    table.append(row(0, 1));
    const operation = remove(day('2026-01-01'));
    expect(table.decide(operation).kind).toBe('proceed');
    table.append(row(0, 2), row(1, 3));
    table.run(operation);
    expect(await table.rows()).toEqual([spelled(row(1, 3))]);
  });

  test('deciding is pure: the same base gives the same bytes', () => {
    table.append(row(0, 1), row(1, 1));
    const operation = remove(day('2026-01-01'));
    const [one, two] = [table.decide(operation), table.decide(operation)];
    expect(one).toMatchObject({ kind: 'proceed' });
    if (one.kind !== 'proceed' || two.kind !== 'proceed') throw new Error('not decided');
    expect(two.bytes).toEqual(one.bytes);
    expect(two.uploads).toEqual(one.uploads);
  });
});

describe('delete: what it reads', () => {
  test('only the list and manifests that may hold a match; those in memory not at all', () => {
    for (let i = 0; i < 6; i++) table.append(row(i, 1));
    expect(table.decide(remove(day('2026-01-03'))).kind).toBe('proceed');
    expect(table.read).toEqual([]);
    table.cold();
    table.decide(remove(day('2026-01-03')));
    expect(table.read).toHaveLength(2);
    table.decide(remove(day('2027-01-03')));
    expect(table.read).toHaveLength(1);
    table.decide(remove({ kind: 'all' }));
    expect(table.read).toHaveLength(7);
  });

  test('S8: totals that the parent lacks, or that are too low, are counted from all manifests', () => {
    const stated: Record<string, string>[] = [
      {},
      { 'total-records': '0', 'total-data-files': '9', 'total-files-size': '99999' },
    ];
    for (const summary of stated) {
      table = new PureTable();
      for (let i = 0; i < 3; i++) table.append(row(i, 1));
      const wrong = {
        ...table.snapshot,
        'snapshot-id': 77n,
        'parent-snapshot-id': table.snapshot['snapshot-id'],
        'sequence-number': 4n,
        summary: { operation: 'append' as const, ...summary },
      };
      table.update(
        { action: 'add-snapshot', snapshot: wrong },
        { action: 'set-snapshot-ref', 'ref-name': 'main', type: 'branch', 'snapshot-id': 77n },
      );
      table.run(remove(day('2026-01-02')));
      expect(table.read).toHaveLength(4);
      expect(table.snapshot.summary).toMatchObject({ 'total-records': '2', 'total-data-files': '2' });
    }
  });

  test('more manifests than one operation reads are refused before any is read', () => {
    table.append(row(0, 1));
    const [listed] = table.list();
    const many = Array.from(
      { length: 1001 },
      (_, i): ManifestFile => ({ ...listed, manifestPath: `${listed.manifestPath}${i}` }),
    );
    if (table.base === null) throw new Error('no base');
    const crowded = { ...table.base, manifests: many, kept: new Map() };
    expect(table.decide(remove(day('2026-01-01')), crowded)).toMatchObject({
      kind: 'refused',
      type: 'too-many-manifests',
    });
    expect(table.read).toEqual([]);
    const large = { ...crowded, manifests: [{ ...listed, manifestLength: 5_000_000n }] };
    expect(table.decide(remove(day('2026-01-01')), large)).toMatchObject({ type: 'too-many-manifests' });
    expect(table.decide(remove(day('2026-01-02')), large)).toMatchObject({ kind: 'nothing' });
  });

  test('a manifest that the store does not have is damage, named', () => {
    table.append(row(0, 1));
    const [{ manifestPath }] = table.list();
    table.cold();
    table.files.delete(table.context.keyOf(manifestPath));
    expect(() => table.decide(remove(day('2026-01-01')))).toThrow(
      expect.objectContaining({ kind: 'corrupt', type: 'manifest-missing' }),
    );
  });
});

describe('delete: premises', () => {
  test('another table at the place is left alone', () => {
    table.append(row(0, 1));
    const operation = prepareDelete(table.identity('another'), { kind: 'all' }, table.metadata);
    expect(table.run(operation)).toMatchObject({ kind: 'refused', type: 'table-replaced' });
    expect(table.decide(operation, null)).toMatchObject({ kind: 'refused', type: 'table-gone' });
  });
});
