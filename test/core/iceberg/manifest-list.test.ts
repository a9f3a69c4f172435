import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerText, openContainer } from '../../../src/core/avro/container.ts';
import { readManifestList, writeManifestList } from '../../../src/core/iceberg/manifest-list.ts';
import { MANIFEST_FILE_SCHEMA } from '../../../src/core/iceberg/manifest-schema.ts';
import type { ManifestFile } from '../../../src/core/iceberg/types.ts';
import { avscFile, avscRead, zlibDeflate } from '../avro/avsc.ts';
import { SNAPSHOT, SYNC_MARKER } from './manifests.ts';

const row: ManifestFile = {
  manifestPath: 's3://lake/ns/t/metadata/5f-added-m.avro',
  manifestLength: 7123n,
  partitionSpecId: 0,
  content: 0,
  sequenceNumber: 2n ** 53n + 1n,
  minSequenceNumber: 3n,
  addedSnapshotId: SNAPSHOT,
  addedFilesCount: 1,
  existingFilesCount: 2,
  deletedFilesCount: 0,
  addedRowsCount: 100n,
  existingRowsCount: 200n,
  deletedRowsCount: 0n,
  partitions: [
    {
      containsNull: false,
      containsNan: false,
      lowerBound: Uint8Array.of(1, 0, 0, 0),
      upperBound: Uint8Array.of(2, 0, 0, 0),
    },
    { containsNull: true, containsNan: null, lowerBound: null, upperBound: null },
  ],
  keyMetadata: null,
};

function write(
  manifests: readonly ManifestFile[],
  change: { parentSnapshotId?: bigint | null; deflated?: boolean } = {},
) {
  return writeManifestList({
    snapshotId: SNAPSHOT,
    parentSnapshotId: change.parentSnapshotId ?? null,
    sequenceNumber: 40n,
    manifests,
    syncMarker: SYNC_MARKER,
    deflate: change.deflated ? zlibDeflate : null,
  });
}

const read = (bytes: Uint8Array) => readManifestList(bytes, zlibDeflate);

/** The row as the list's Avro record, for another codec. */
function avroRow(file: ManifestFile): Record<string, unknown> {
  const blob = (bytes: Uint8Array | null) => bytes && Buffer.from(bytes);
  return {
    manifest_path: file.manifestPath,
    manifest_length: file.manifestLength,
    partition_spec_id: file.partitionSpecId,
    content: file.content,
    sequence_number: file.sequenceNumber,
    min_sequence_number: file.minSequenceNumber,
    added_snapshot_id: file.addedSnapshotId,
    added_files_count: file.addedFilesCount,
    existing_files_count: file.existingFilesCount,
    deleted_files_count: file.deletedFilesCount,
    added_rows_count: file.addedRowsCount,
    existing_rows_count: file.existingRowsCount,
    deleted_rows_count: file.deletedRowsCount,
    partitions:
      file.partitions?.map((summary) => ({
        contains_null: summary.containsNull,
        contains_nan: summary.containsNan,
        lower_bound: blob(summary.lowerBound),
        upper_bound: blob(summary.upperBound),
      })) ?? null,
    key_metadata: blob(file.keyMetadata),
  };
}

const metadata = {
  'snapshot-id': String(SNAPSHOT),
  'parent-snapshot-id': 'null',
  'sequence-number': '40',
  'format-version': '2',
};

describe('manifest list: writing', () => {
  const rows: ManifestFile[] = [
    row,
    { ...row, manifestPath: 'b', partitions: [], keyMetadata: Uint8Array.of(1, 2) },
    { ...row, manifestPath: 'c', partitions: null, content: 1 },
  ];

  test.each([false, true])('the file: the bytes that avsc makes of the same rows, deflate %s', async (deflated) => {
    const options = { metadata, syncMarker: SYNC_MARKER, deflate: deflated };
    const expected = await avscFile(MANIFEST_FILE_SCHEMA, rows.map(avroRow), options);
    expect(Buffer.from(write(rows, { deflated })).equals(expected)).toBe(true);
  });

  test('ML1 the header: ids and numbers as text, `null` for no parent', () => {
    const text = (bytes: Uint8Array, key: string) => headerText(openContainer(bytes).metadata, key);
    for (const [key, value] of Object.entries(metadata)) expect(text(write(rows), key)).toBe(value);
    expect(text(write(rows, { parentSnapshotId: SNAPSHOT - 1n }), 'parent-snapshot-id')).toBe('4065603974947107064');
  });

  test('ML7 B169 an empty list of summaries: stays empty and does not become null', async () => {
    const { records } = await avscRead(write([{ ...row, partitions: [] }]));
    expect(records).toMatchObject([{ partitions: [] }]);
    expect(read(write([{ ...row, partitions: [] }]))[0].partitions).toEqual([]);
  });

  test('ML13 no rows: a legal file', () => {
    expect(read(write([]))).toEqual([]);
  });

  test('Q6 rows of any content, read and written again: equal bytes', () => {
    const int64 = fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    const blob = fc.option(fc.uint8Array({ maxLength: 70 }), { nil: null });
    const file = fc.record<ManifestFile>({
      manifestPath: fc.string({ unit: 'grapheme', maxLength: 100 }),
      manifestLength: int64,
      partitionSpecId: fc.nat(),
      content: fc.constantFrom(0 as const, 1 as const),
      sequenceNumber: int64,
      minSequenceNumber: int64,
      addedSnapshotId: int64,
      addedFilesCount: fc.nat(),
      existingFilesCount: fc.nat(),
      deletedFilesCount: fc.nat(),
      addedRowsCount: int64,
      existingRowsCount: int64,
      deletedRowsCount: int64,
      partitions: fc.option(
        fc.array(
          fc.record({
            containsNull: fc.boolean(),
            containsNan: fc.option(fc.boolean(), { nil: null }),
            lowerBound: blob,
            upperBound: blob,
          }),
          { maxLength: 4 },
        ),
        { nil: null },
      ),
      keyMetadata: blob,
    });
    fc.assert(
      fc.property(fc.array(file, { maxLength: 5 }), (files) => {
        const bytes = write(files);
        expect(read(bytes)).toEqual(files);
        expect(write(read(bytes))).toEqual(bytes);
      }),
      { numRuns: 100 },
    );
  });
});

describe('manifest list of another writer', () => {
  type Field = { name: string; type: unknown; default?: unknown; 'field-id': number };
  const fields = (): Field[] => structuredClone((MANIFEST_FILE_SCHEMA as { fields: unknown }).fields) as Field[];
  const foreign = (changed: Field[], records: unknown[]) =>
    avscFile({ type: 'record', name: 'row', fields: changed }, records, { metadata: {}, syncMarker: SYNC_MARKER });

  test('ML3 the names of older drafts, nullable, in another order: read by id', async () => {
    const changed = fields().reverse();
    for (const field of changed) {
      field.name = field.name.replace('_files_count', '_data_files_count');
      if ([504, 505, 506, 512, 515].includes(field['field-id'])) field.type = ['null', field.type];
    }
    const record = Object.fromEntries(
      Object.entries(avroRow(row)).map(([name, value]) => [name.replace('_files_count', '_data_files_count'), value]),
    );
    expect(read(await foreign(changed, [record]))).toEqual([row]);
  });

  test('version 1 columns only: sequence numbers, content and rows are 0, no summaries', async () => {
    const changed = fields().filter((field) => ![517, 515, 516, 512, 513, 514, 507, 519].includes(field['field-id']));
    expect(read(await foreign(changed, [avroRow(row)]))).toEqual([
      {
        ...row,
        content: 0,
        sequenceNumber: 0n,
        minSequenceNumber: 0n,
        addedRowsCount: 0n,
        existingRowsCount: 0n,
        deletedRowsCount: 0n,
        partitions: null,
        keyMetadata: null,
      },
    ]);
  });

  test('ML6 an unknown file count, as version 1 allows: some files are assumed, never none', async () => {
    const some = { addedFilesCount: 0, existingFilesCount: expect.toSatisfy((count) => count > 0), isUncounted: true };
    for (const id of [504, 505, 506]) {
      const changed = fields();
      const field = changed.find((one) => one['field-id'] === id)!;
      field.type = ['null', 'int'];
      const isNull = await foreign(changed, [{ ...avroRow(row), [field.name]: null }]);
      expect(read(isNull)).toEqual([{ ...row, ...some, deletedFilesCount: 0 }]);
      const absent = await foreign(
        fields().filter((one) => one['field-id'] !== id),
        [avroRow(row)],
      );
      expect(read(absent)).toEqual([{ ...row, ...some, deletedFilesCount: 0 }]);
    }
  });

  test('ML6 a row without counts: never written', async () => {
    expect(() => write([{ ...row, isUncounted: true }])).toThrow('counts of every manifest');
  });

  test('later columns: skipped', async () => {
    const changed = [...fields(), { name: 'first_row_id', type: ['null', 'long'], 'field-id': 520 }];
    expect(read(await foreign(changed, [{ ...avroRow(row), first_row_id: 5n }]))).toEqual([row]);
  });

  test('a content that is none: corrupt', async () => {
    const bytes = await foreign(fields(), [{ ...avroRow(row), content: 2 }]);
    expect(() => read(bytes)).toThrow(expect.objectContaining({ kind: 'corrupt', type: 'manifest-corrupt' }));
  });
});
