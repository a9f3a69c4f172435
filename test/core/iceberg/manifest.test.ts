import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerText, openContainer } from '../../../src/core/avro/container.ts';
import { AVRO_BLOCK_BYTES } from '../../../src/core/base/limits.ts';
import { type ManifestWrite, manifestFileOf, readManifest, writeManifest } from '../../../src/core/iceberg/manifest.ts';
import { manifestEntrySchema } from '../../../src/core/iceberg/manifest-schema.ts';
import { resultType } from '../../../src/core/iceberg/transform.ts';
import type { ManifestEntry, PartitionSpec, Value } from '../../../src/core/iceberg/types.ts';
import { avscFile, avscRead, zlibDeflate } from '../avro/avsc.ts';
import {
  added,
  avroRecord,
  byDay,
  deleted,
  existing,
  SNAPSHOT,
  SYNC_MARKER,
  schema,
  specOf,
  unpartitioned,
} from './manifests.ts';

function write(entries: readonly ManifestEntry[], change: Partial<ManifestWrite> = {}) {
  return writeManifest({
    schema,
    spec: unpartitioned,
    snapshotId: SNAPSHOT,
    entries,
    syncMarker: SYNC_MARKER,
    deflate: null,
    ...change,
  });
}

const read = (bytes: Uint8Array) => readManifest(bytes, { deflate: zlibDeflate });

const metadata = {
  schema: JSON.stringify(schema),
  'schema-id': '3',
  'partition-spec': '[]',
  'partition-spec-id': '0',
  'format-version': '2',
  content: 'data',
};

describe('manifest: writing', () => {
  const entries = [
    added({ partition: [20_454] }),
    existing({ filePath: 'b', partition: [-1], columnSizes: null, splitOffsets: null, sortOrderId: null }),
    deleted({ filePath: 'c', partition: [null], lowerBounds: new Map(), keyMetadata: Uint8Array.of(1) }),
  ];
  const records = entries.map((entry) => avroRecord(entry, { ts_day: entry.dataFile.partition[0] }));
  const header = {
    ...metadata,
    'partition-spec': '[{"name":"ts_day","transform":"day","source-id":1,"field-id":1000}]',
    'partition-spec-id': '4',
  };
  const avro = manifestEntrySchema(byDay, ['date']);

  test.each([false, true])('the file: the bytes that avsc makes of the same records, deflate %s', async (deflated) => {
    const { bytes } = write(entries, { spec: byDay, deflate: deflated ? zlibDeflate : null });
    const expected = await avscFile(avro, records, { metadata: header, syncMarker: SYNC_MARKER, deflate: deflated });
    expect(Buffer.from(bytes).equals(expected)).toBe(true);
  });

  test('A1 A2 A3 A4 B168 the header: table schema with its id, spec fields, ids as text', () => {
    const container = openContainer(write(entries, { spec: byDay }).bytes);
    for (const [key, value] of Object.entries(header)) expect(headerText(container.metadata, key)).toBe(value);
    const keys = Object.keys(JSON.parse(headerText(container.metadata, 'schema') ?? ''));
    expect(keys).toEqual(['type', 'schema-id', 'fields']);
  });

  test('identifier fields: in the header schema', () => {
    const identified = { ...schema, 'identifier-field-ids': [1] };
    expect(read(write([added()], { schema: identified }).bytes).schema['identifier-field-ids']).toEqual([1]);
  });

  test('deletes: content said in header, stats and read back', () => {
    const entry = added({ content: 2, equalityIds: [1, 10], nanValueCounts: null });
    const { bytes, stats } = write([entry], { content: 1 });
    expect(headerText(openContainer(bytes).metadata, 'content')).toBe('deletes');
    expect(stats.content).toBe(1);
    expect(read(bytes)).toMatchObject({ content: 1, entries: [entry] });
  });

  test('maps in any order: ascending by field id in the file, so equal entries give equal bytes', () => {
    const turned = added({
      partition: [20_454],
      columnSizes: new Map([
        [9, 2n ** 53n + 1n],
        [1, 400n],
      ]),
    });
    expect(write([turned], { spec: byDay }).bytes).toEqual(write([entries[0]], { spec: byDay }).bytes);
    expect([...(read(write([turned], { spec: byDay }).bytes).entries[0].dataFile.columnSizes ?? [])][0][0]).toBe(1);
  });

  test('B173 more than one block: read whole by us and by avsc', async () => {
    const padding = 'x'.repeat(2000);
    const many = Array.from({ length: 700 }, (_, i) => added({ filePath: `${padding}${i}.parquet` }));
    const { bytes } = write(many);
    expect(bytes.length).toBeGreaterThan(AVRO_BLOCK_BYTES);
    expect(read(bytes).entries).toEqual(many);
    expect((await avscRead(bytes)).records).toHaveLength(700);
  });

  test('a void field whose column is gone: null, as the spec of a table that began in version 1 may have it', () => {
    const spec = specOf([99, 'void'], [10, 'identity']);
    const entry = added({ partition: [null, 'a'] });
    expect(read(write([entry], { spec }).bytes).entries).toEqual([entry]);
  });

  test('an added entry without snapshot id: gets that of the commit', () => {
    expect(read(write([added({}, { snapshotId: null })]).bytes).entries[0].snapshotId).toBe(SNAPSHOT);
  });
});

describe('manifest: entries that no reader may see', () => {
  test.each<[string, readonly ManifestEntry[], Partial<ManifestWrite>?]>([
    ['E4 none at all', []],
    ['Q2 an existing one without sequence number', [existing({}, { sequenceNumber: null })]],
    ['Q2 an existing one without file sequence number', [existing({}, { fileSequenceNumber: null })]],
    ['Q2 a deleted one without sequence number', [deleted({}, { sequenceNumber: null })]],
    ['Q3 an existing one without snapshot id', [existing({}, { snapshotId: null })]],
    ['Q3 a deleted one of another snapshot', [deleted({}, { snapshotId: 17n })]],
    ['Q1 an added one of another snapshot', [added({}, { snapshotId: 17n })]],
    [
      'B134 an added one that was read from another manifest',
      [added({}, { sequenceNumber: 2n, fileSequenceNumber: 2n })],
    ],
    ['E10 an added one without rows', [added({ recordCount: 0n })]],
    ['E9 an added one without bytes', [added({ fileSizeInBytes: 0n })]],
    ['E2 one path twice', [added(), existing()]],
    ['E6 a delete file among data', [added({ content: 1 })]],
    ['A5 a data file among deletes', [added()], { content: 1 }],
    ['A11 a tuple of another length', [added({ partition: [1] })]],
    ['A13 a tuple value of another type', [added({ partition: ['x'] })], { spec: specOf([10, 'bucket[4]']) }],
    ['a spec over a column that the schema lacks', [added({ partition: [1] })], { spec: specOf([99, 'identity']) }],
  ])('%s: refused', (_what, entries, change) => {
    expect(() => write(entries, change)).toThrow();
  });

  test('a path that is deleted and added again in one manifest: allowed, only one of them is live', () => {
    expect(() => write([deleted(), added()])).not.toThrow();
  });
});

/** Values of a type, with the awkward ones. */
function values(type: string): fc.Arbitrary<Value> {
  const int = (bits: bigint) => fc.bigInt({ min: -(2n ** (bits - 1n)), max: 2n ** (bits - 1n) - 1n });
  switch (type) {
    case 'boolean':
      return fc.boolean();
    case 'int':
    case 'date':
      return fc.integer();
    case 'float':
      return fc.float();
    case 'double':
      return fc.double();
    case 'string':
      return fc.string({ unit: 'grapheme', maxLength: 100 });
    case 'binary':
      return fc.uint8Array({ maxLength: 100 });
    case 'uuid':
      return fc.uint8Array({ minLength: 16, maxLength: 16 });
    case 'fixed[5]':
      return fc.uint8Array({ minLength: 5, maxLength: 5 });
    case 'decimal(9, 2)':
      return fc.bigInt({ min: -999_999_999n, max: 999_999_999n });
    case 'decimal(38, 10)':
      return fc.bigInt({ min: 1n - 10n ** 38n, max: 10n ** 38n - 1n });
    default:
      return int(64n);
  }
}

describe('manifest: round trip', () => {
  test('every column type and transform as partition: the tuple comes back exactly', () => {
    const fields: Array<[number, string]> = schema.fields.map((field) => [field.id, 'identity']);
    fields.push([1, 'year'], [1, 'month'], [1, 'day'], [2, 'hour'], [11, 'bucket[16]'], [10, 'truncate[3]']);
    fields.push([15, 'truncate[10]'], [7, 'void']);
    const spec = specOf(...fields);
    const tuple = fc.tuple(
      ...spec.fields.map((field) => {
        const source = schema.fields.find(({ id }) => id === field['source-id']);
        const type = resultType(field.transform, source?.type ?? '');
        return field.transform === 'void' ? fc.constant(null) : fc.option(values(type), { nil: null, freq: 6 });
      }),
    );
    fc.assert(
      fc.property(fc.array(tuple, { minLength: 1, maxLength: 5 }), fc.boolean(), (tuples, deflated) => {
        const entries = tuples.map((partition, i) => added({ filePath: `f${i}`, partition }));
        const { bytes } = write(entries, { spec, deflate: deflated ? zlibDeflate : null });
        expect(read(bytes)).toEqual({ schema, spec, content: 0, entries });
      }),
      { numRuns: 60 },
    );
  });

  test('every statistic, present and null: comes back exactly', () => {
    const nullable = <T>(value: fc.Arbitrary<T>) => fc.option(value, { nil: null });
    const id = fc.integer({ min: 1, max: 2_147_483_447 });
    const count = fc.bigInt({ min: 0n, max: 2n ** 63n - 1n });
    const map = <V>(value: fc.Arbitrary<V>) => nullable(fc.array(fc.tuple(id, value)).map((pairs) => new Map(pairs)));
    const file = fc.record({
      filePath: fc.string({ unit: 'grapheme' }),
      recordCount: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
      fileSizeInBytes: fc.bigInt({ min: 1n, max: 2n ** 63n - 1n }),
      columnSizes: map(count),
      valueCounts: map(count),
      nullValueCounts: map(count),
      nanValueCounts: map(count),
      lowerBounds: map(fc.uint8Array({ maxLength: 70 })),
      upperBounds: map(fc.uint8Array({ maxLength: 70 })),
      keyMetadata: nullable(fc.uint8Array()),
      splitOffsets: nullable(fc.array(count)),
      equalityIds: nullable(fc.array(id)),
      sortOrderId: nullable(fc.nat()),
      referencedDataFile: nullable(fc.string()),
    });
    fc.assert(
      fc.property(file, fc.constantFrom(added, existing, deleted), (change, make) => {
        const entries = [make(change)];
        expect(read(write(entries).bytes).entries).toEqual(entries);
      }),
      { numRuns: 100 },
    );
  });
});

describe('manifest: stats for the manifest list', () => {
  test('counts and rows by status, smallest number of live entries', () => {
    const { bytes, stats } = write([
      added({ filePath: 'a', recordCount: 1n }),
      added({ filePath: 'b', recordCount: 2n }, { sequenceNumber: 9n }),
      existing({ filePath: 'c', recordCount: 10n }, { sequenceNumber: 7n }),
      deleted({ filePath: 'd', recordCount: 100n }, { sequenceNumber: 2n }),
    ]);
    expect(stats).toEqual({
      content: 0,
      addedFilesCount: 2,
      existingFilesCount: 1,
      deletedFilesCount: 1,
      addedRowsCount: 3n,
      existingRowsCount: 10n,
      deletedRowsCount: 100n,
      minSequenceNumber: 7n,
      partitions: [],
    });
    const where = { path: 's3://lake/m.avro', length: BigInt(bytes.length), specId: 0, snapshotId: SNAPSHOT };
    expect(manifestFileOf(stats, { ...where, sequenceNumber: 12n })).toEqual({
      manifestPath: 's3://lake/m.avro',
      manifestLength: BigInt(bytes.length),
      partitionSpecId: 0,
      content: 0,
      sequenceNumber: 12n,
      minSequenceNumber: 7n,
      addedSnapshotId: SNAPSHOT,
      addedFilesCount: 2,
      existingFilesCount: 1,
      deletedFilesCount: 1,
      addedRowsCount: 3n,
      existingRowsCount: 10n,
      deletedRowsCount: 100n,
      partitions: [],
      keyMetadata: null,
    });
  });

  test('Q6 inherited numbers, or only deleted entries: the number of the commit', () => {
    const where = { path: 'm', length: 1n, specId: 0, snapshotId: SNAPSHOT, sequenceNumber: 12n };
    for (const entries of [[added()], [deleted()]]) {
      const { stats } = write(entries);
      expect(stats.minSequenceNumber).toBe(null);
      expect(manifestFileOf(stats, where).minSequenceNumber).toBe(12n);
      expect(write(entries, { sequenceNumber: 12n }).stats.minSequenceNumber).toBe(12n);
    }
  });

  test('B010 a day partition: bounds are the days as 4-byte ints, over all entries', () => {
    const { stats } = write(
      [
        added({ filePath: 'a', partition: [19_782] }),
        added({ filePath: 'b', partition: [-1] }),
        deleted({ filePath: 'c', partition: [20_000] }),
      ],
      { spec: byDay },
    );
    expect(stats.partitions).toEqual([
      {
        containsNull: false,
        containsNan: false,
        lowerBound: Uint8Array.of(0xff, 0xff, 0xff, 0xff),
        upperBound: Uint8Array.of(0x20, 0x4e, 0, 0),
      },
    ]);
  });
});

describe('manifest: a spec of many fields', () => {
  test('names that Avro does not take: the tuple comes back by id (B091)', () => {
    const spec: PartitionSpec = specOf(
      [10, 'identity', 'price.€'],
      [12, 'identity', 'other key'],
      [6, 'identity', '9'],
    );
    const entries = [added({ partition: ['a', new Uint8Array(16).fill(9), 5] })];
    expect(read(write(entries, { spec }).bytes)).toMatchObject({ spec, entries });
  });
});
