import { beforeEach, describe, expect, test } from 'vitest';
import { readEpochs } from '../../../src/core/batch/epochs.ts';
import { prepareDelete } from '../../../src/core/commit/decide-delete.ts';
import { groupsToRewrite, prepareRewriteManifests } from '../../../src/core/commit/decide-rewrite-manifests.ts';
import { reportOf } from '../../../src/core/commit/report.ts';
import { EntryWriter, entryBytesOf, existing } from '../../../src/core/commit/rewrite-files.ts';
import type { ManifestFile } from '../../../src/core/iceberg/types.ts';
import { PureTable, row } from './pure-table.ts';

let table: PureTable;

beforeEach(() => {
  table = new PureTable();
});

const rewrite = () => prepareRewriteManifests(table.identity());

describe('rewrite-manifests', () => {
  test('the same files are listed by partition in one manifest, as existing and with their numbers', async () => {
    for (let i = 0; i < 6; i++) table.append(row(i % 3, i));
    const before = table.live();
    const rows = await table.rows();
    const epochs = readEpochs(table.metadata);
    const operation = rewrite();
    table.run(operation);
    const [manifest, ...rest] = table.list();
    expect(rest).toEqual([]);
    expect(manifest).toMatchObject({ existingFilesCount: 6, addedFilesCount: 0, deletedFilesCount: 0 });
    const entries = table.entriesOf(manifest);
    const expected = new Map(before.map((entry) => [entry.dataFile.filePath, { ...entry, status: 0 }]));
    for (const entry of entries) expect(entry).toEqual(expected.get(entry.dataFile.filePath));
    // By partition, the newest first within.
    expect(entries.map(({ sequenceNumber }) => sequenceNumber)).toEqual([4n, 1n, 5n, 2n, 6n, 3n]);
    expect(await table.rows()).toEqual(rows);
    expect(readEpochs(table.metadata)).toEqual(epochs);
    await table.valid();
    expect(table.snapshot.summary).toMatchObject({
      operation: 'replace',
      'changed-partition-count': '0',
      'total-data-files': '6',
      'total-records': '6',
      'manifests-created': '1',
      'manifests-replaced': '6',
      'manifests-kept': '0',
    });
    expect(table.snapshot.summary['added-data-files']).toBeUndefined();
    expect(reportOf(table.metadata, operation.commitId)).toMatchObject({
      operation: 'replace',
      manifests: { created: 1, replaced: 6, kept: 0 },
    });
  });

  test('nothing to gain makes no version', () => {
    expect(table.run(rewrite()).kind).toBe('nothing');
    table.append(row(0, 1));
    expect(table.run(rewrite()).kind).toBe('nothing');
    table.append(row(0, 2));
    expect(table.run(rewrite()).kind).toBe('proceed');
    expect(table.run(rewrite()).kind).toBe('nothing');
  });

  test('E3: deleted entries drop out', async () => {
    table.append(row(0, 1), row(1, 1));
    table.append(row(2, 1));
    table.run(
      prepareDelete(table.identity(), { kind: 'partitions', partitions: [{ time_day: '2026-01-01' }] }, table.metadata),
    );
    table.run(rewrite());
    expect(table.list().map(({ deletedFilesCount }) => deletedFilesCount)).toEqual([0]);
    expect(table.live()).toHaveLength(2);
    await table.valid();
  });

  test('it reads the list and the manifests once, kept ones not at all', () => {
    for (let i = 0; i < 4; i++) table.append(row(i, i));
    table.decide(rewrite());
    expect(table.read).toEqual([]);
    table.cold();
    table.decide(rewrite());
    expect(table.read).toHaveLength(5);
  });

  test('what one operation may read bounds it: the smallest manifests are taken, the rest another time', () => {
    table.append(row(0, 1));
    const [listed] = table.list();
    const sized = (megabytes: number, files = 100): ManifestFile => ({
      ...listed,
      manifestLength: BigInt(Math.round(megabytes * 1024 * 1024)),
      addedFilesCount: files,
    });
    const rows = [sized(1.25), sized(0.125), sized(0.25), sized(0.0625)];
    expect(groupsToRewrite(table.metadata, rows)).toEqual([[rows[3], rows[1], rows[2]]]);
    expect(groupsToRewrite(table.metadata, [sized(5), sized(1)])).toEqual([]);
    const small = [1, 2, 3, 4].map((size) => sized(size / 100, 500));
    const crowded = sized(0.1, 10_000);
    expect(groupsToRewrite(table.metadata, [crowded, ...small])).toEqual([[...small, crowded]]);
    expect(groupsToRewrite(table.metadata, [{ ...crowded, addedFilesCount: 10_001 }, ...small])).toEqual([small]);
  });

  test('the next manifest begins at the target of files or of bytes', () => {
    table.append(row(0, 1));
    const [listed] = table.list();
    const [entry] = table.live().map(existing);
    const identity = table.identity();
    const input = { metadata: table.metadata, identity, sequenceNumber: 2n };
    const filesOf = (count: number, bytes: number) => {
      const writer = new EntryWriter(table.context, input, 'merged', 0);
      for (let i = 0; i < count; i++) {
        const filePath = `${entry.dataFile.filePath}${i}`;
        writer.add({ ...entry, dataFile: { ...entry.dataFile, filePath } }, table.metadata.schemas[0], bytes);
      }
      return writer.finish().map(({ row: made }) => made.existingFilesCount);
    };
    expect(filesOf(4001, 1)).toEqual([4000, 1]);
    expect(filesOf(5, 200_000)).toEqual([2, 2, 1]);
    expect(filesOf(2, 900_000)).toEqual([1, 1]);
    expect(filesOf(0, 1)).toEqual([]);
    expect(entryBytesOf({ ...listed, manifestLength: 1000n, deletedFilesCount: 3 })).toBe(250);
  });
});
