import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { manifestFileOf, readManifest, writeManifest } from '../../../src/core/iceberg/manifest.ts';
import { manifestEntrySchema } from '../../../src/core/iceberg/manifest-schema.ts';
import type { ManifestEntry, ManifestFile, PartitionSpec, Schema } from '../../../src/core/iceberg/types.ts';
import { avscFile, zlibDeflate } from '../avro/avsc.ts';
import { added, avroRecord, byDay, deleted, existing, SNAPSHOT, SYNC_MARKER, schema, specOf } from './manifests.ts';

interface Field {
  name: string;
  type: unknown;
  'field-id'?: number;
}
interface Entry {
  type: 'record';
  name: string;
  fields: Field[];
}

const row: ManifestFile = manifestFileOf(
  writeManifest({
    schema,
    spec: byDay,
    snapshotId: SNAPSHOT,
    entries: [added({ partition: [1] })],
    syncMarker: SYNC_MARKER,
    deflate: null,
  }).stats,
  { path: 's3://lake/m.avro', length: 1n, specId: 4, snapshotId: SNAPSHOT, sequenceNumber: 40n },
);

/** Our schema, to be changed into another writer's. */
function ours(spec: PartitionSpec = byDay, types: string[] = ['date']): { entry: Entry; file: Entry } {
  const entry = structuredClone(manifestEntrySchema(spec, types)) as unknown as Entry;
  return { entry, file: entry.fields[4].type as Entry };
}

const header = {
  schema: JSON.stringify(schema),
  'schema-id': '3',
  'partition-spec': JSON.stringify(byDay.fields),
  'partition-spec-id': '4',
  'format-version': '2',
  content: 'data',
};

/** A manifest that avsc writes: under any schema, with any header. */
async function foreign(
  entry: Entry,
  records: unknown[],
  metadata: Partial<Record<keyof typeof header, string>> = header,
): Promise<Uint8Array> {
  return avscFile(entry, records, {
    metadata: metadata as Record<string, string>,
    syncMarker: SYNC_MARKER,
    deflate: true,
  });
}

const recordOf = (entry: ManifestEntry) => avroRecord(entry, { ts_day: entry.dataFile.partition[0] });

function without(metadata: typeof header, ...keys: string[]): Record<string, string> {
  return Object.fromEntries(Object.entries(metadata).filter(([key]) => !keys.includes(key)));
}

async function readEntry(entry: ManifestEntry, options: { row?: ManifestFile } = { row }): Promise<ManifestEntry> {
  const bytes = await foreign(ours().entry, [recordOf(entry)]);
  return readManifest(bytes, { deflate: zlibDeflate, ...options }).entries[0];
}

describe('manifest inheritance: from the manifest list row', () => {
  const partition = [1];

  test('Q1 Q4 an added entry: null id and numbers become the row’s', async () => {
    const entry = await readEntry(added({ partition }, { snapshotId: null }));
    expect(entry).toMatchObject({ snapshotId: SNAPSHOT, sequenceNumber: 40n, fileSequenceNumber: 40n });
  });

  test('Q1 an added entry with an explicit older number: keeps it, the file number is the row’s', async () => {
    const entry = await readEntry(added({ partition }, { sequenceNumber: 31n }));
    expect(entry).toMatchObject({ sequenceNumber: 31n, fileSequenceNumber: 40n });
  });

  test('Q2 Q3 existing and deleted entries: keep what they say', async () => {
    expect(await readEntry(existing({ partition }))).toEqual(existing({ partition }));
    expect(await readEntry(deleted({ partition }))).toEqual(deleted({ partition }));
  });

  test('Q2 null numbers on existing or deleted entries: corrupt, with and without a row', async () => {
    for (const make of [existing, deleted]) {
      for (const hole of [{ sequenceNumber: null }, { fileSequenceNumber: null }]) {
        for (const options of [{ row }, {}]) {
          await expect(readEntry(make({ partition }, hole), options)).rejects.toThrow(
            expect.objectContaining({ kind: 'corrupt', type: 'manifest-corrupt' }),
          );
        }
      }
    }
  });

  test('Q8 a row with sequence number 0, from a version 1 table: null numbers are 0', async () => {
    const entry = await readEntry(existing({ partition }, { sequenceNumber: null, fileSequenceNumber: null }), {
      row: { ...row, sequenceNumber: 0n },
    });
    expect(entry).toMatchObject({ sequenceNumber: 0n, fileSequenceNumber: 0n });
  });

  test('without a row: null numbers of added entries stay null', async () => {
    const entry = await readEntry(added({ partition }, { snapshotId: null }), {});
    expect(entry).toMatchObject({ snapshotId: null, sequenceNumber: null, fileSequenceNumber: null });
  });

  test('B133 B134 a survivor rewritten: existing with the numbers it inherited, readable as such', async () => {
    const survivor = { ...(await readEntry(added({ partition }))), status: 0 as const };
    const { bytes, stats } = writeManifest({
      schema,
      spec: byDay,
      snapshotId: 99n,
      entries: [survivor],
      syncMarker: SYNC_MARKER,
      deflate: null,
    });
    const next = manifestFileOf(stats, { path: 'n', length: 1n, specId: 4, snapshotId: 99n, sequenceNumber: 46n });
    expect(next).toMatchObject({ sequenceNumber: 46n, minSequenceNumber: 40n });
    expect(readManifest(bytes, { deflate: zlibDeflate, row: next }).entries).toEqual([
      { ...existing({ partition }), snapshotId: SNAPSHOT, sequenceNumber: 40n, fileSequenceNumber: 40n },
    ]);
  });

  test('a row that contradicts the header: corrupt', async () => {
    const bytes = await foreign(ours().entry, [recordOf(added({ partition }))]);
    const attempt = (change: Partial<ManifestFile>) => () =>
      readManifest(bytes, { deflate: zlibDeflate, row: { ...row, ...change } });
    expect(attempt({ content: 1 })).toThrow('manifest of content 0 is listed as 1: s3://lake/m.avro');
    expect(attempt({ partitionSpecId: 0 })).toThrow('manifest of spec 4 is listed under spec 0: s3://lake/m.avro');
  });
});

describe('manifest of another writer', () => {
  const partition = [20_454];
  const entry = added({ partition, equalityIds: null });
  const read = (bytes: Uint8Array) => readManifest(bytes, { deflate: zlibDeflate });

  test('A16 PyIceberg’s schema: equality ids as longs, no referenced data file, content with a default', async () => {
    const { entry: writer, file } = ours();
    file.fields = file.fields.filter((field) => field['field-id'] !== 143);
    file.fields.find((field) => field['field-id'] === 135)!.type = [
      'null',
      { type: 'array', items: 'long', 'element-id': 136 },
    ];
    const deletes = added({ content: 2, equalityIds: [1, 7], partition });
    const bytes = await foreign(
      writer,
      [
        {
          ...(recordOf(deletes) as object),
          data_file: { ...(recordOf(deletes) as { data_file: object }).data_file, equality_ids: [1n, 7n] },
        },
      ],
      { ...header, content: 'deletes' },
    );
    expect(read(bytes)).toMatchObject({ content: 1, entries: [deletes] });
  });

  test('another order of fields and of branches, more fields, other record names: read by id', async () => {
    const { entry: writer, file } = ours();
    writer.name = 'entry';
    file.name = 'data_file_record';
    writer.fields[1].type = ['long', 'null'];
    delete (writer.fields[1] as { default?: unknown }).default;
    file.fields.reverse();
    file.fields.splice(3, 0, { name: 'first_row_id', type: ['null', 'long'], 'field-id': 142 });
    file.fields.push(
      { name: 'spec_id', type: 'int', 'field-id': 141 },
      { name: 'tags', type: { type: 'map', values: 'string' } },
    );
    const record = recordOf(entry) as { data_file: object };
    const bytes = await foreign(writer, [
      { ...record, data_file: { ...record.data_file, first_row_id: 5n, spec_id: 4, tags: { a: 'b' } } },
    ]);
    expect(read(bytes).entries).toEqual([entry]);
  });

  test('Q8 version 1: no sequence numbers, no content, a block size, a spec without field ids', async () => {
    const { entry: writer, file } = ours();
    writer.fields = writer.fields.filter((field) => ![3, 4].includes(field['field-id']!));
    file.fields = file.fields.filter((field) => field['field-id'] !== 134);
    file.fields.push({ name: 'block_size_in_bytes', type: 'long', 'field-id': 105 });
    const { 'field-id': _id, ...specField } = byDay.fields[0];
    const old = existing({ partition }, { sequenceNumber: 0n, fileSequenceNumber: 0n });
    const record = recordOf(old) as { data_file: object };
    const bytes = await foreign(writer, [{ ...record, data_file: { ...record.data_file, block_size_in_bytes: 64n } }], {
      schema: header.schema,
      'partition-spec': JSON.stringify([specField]),
      'partition-spec-id': '4',
    });
    expect(read(bytes)).toEqual({ schema, spec: byDay, content: 0, entries: [old] });
  });

  test('a schema that knows no file sequence number yet: stays null on an existing file', async () => {
    const { entry: writer } = ours();
    writer.fields = writer.fields.filter((field) => field['field-id'] !== 4);
    const old = existing({ partition }, { fileSequenceNumber: null });
    const bytes = await foreign(writer, [recordOf(old)]);
    expect(readManifest(bytes, { deflate: zlibDeflate, row }).entries).toEqual([old]);
  });

  test('A3 a whole spec in place of its fields: read', async () => {
    const bytes = await foreign(ours().entry, [recordOf(entry)], {
      ...header,
      'partition-spec': JSON.stringify(byDay),
    });
    expect(read(bytes).spec).toEqual(byDay);
  });

  test('B168 a header schema that is no table schema: the table’s takes its place, without one it is corrupt', async () => {
    const bytes = await foreign(ours().entry, [recordOf(entry)], { ...header, schema: JSON.stringify(ours().entry) });
    expect(() => read(bytes)).toThrow('manifest header has a malformed schema');
    expect(readManifest(bytes, { deflate: zlibDeflate, schema })).toMatchObject({ schema, entries: [entry] });
  });

  test('a column promoted since: the tuple is read in the type it has now', async () => {
    const spec = specOf([6, 'identity', 'small']);
    const { entry: writer } = ours(spec, ['int']);
    const bytes = await foreign(writer, [avroRecord(entry, { small: 7 })], {
      ...header,
      'partition-spec': JSON.stringify(spec.fields),
    });
    const promoted: Schema = {
      ...schema,
      fields: schema.fields.map((field) => (field.id === 6 ? { ...field, type: 'long' } : field)),
    };
    expect(read(bytes).entries[0].dataFile.partition).toEqual([7]);
    expect(readManifest(bytes, { deflate: zlibDeflate, schema: promoted }).entries[0].dataFile.partition).toEqual([7n]);
  });

  test('a column dropped since: the tuple is read by the header’s schema, or else as it was written', async () => {
    const spec = specOf([15, 'identity', 'price']);
    const { entry: writer } = ours(spec, ['decimal(9, 2)']);
    const dropped: Schema = { ...schema, fields: schema.fields.filter((field) => field.id !== 15) };
    const read = async (inHeader: Schema) => {
      const bytes = await foreign(writer, [avroRecord(entry, { price: Buffer.from([0, 0, 1, 0]) })], {
        ...header,
        schema: JSON.stringify(inHeader),
        'partition-spec': JSON.stringify(spec.fields),
      });
      return readManifest(bytes, { deflate: zlibDeflate, schema: dropped }).entries[0].dataFile.partition;
    };
    expect(await read(schema)).toEqual([256n]);
    expect(await read(dropped)).toEqual([Uint8Array.of(0, 0, 1, 0)]);
  });

  test('the table’s own spec of that id: used in place of the header’s', async () => {
    const bytes = await foreign(ours().entry, [recordOf(entry)], { ...header, 'partition-spec': '[]' });
    expect(read(bytes).entries[0].dataFile.partition).toEqual([]);
    const { spec, entries } = readManifest(bytes, { deflate: zlibDeflate, specs: [byDay] });
    expect(spec).toEqual(byDay);
    expect(entries[0].dataFile.partition).toEqual(partition);
  });

  test('a spec field that the tuple lacks: corrupt, since absent is not null; for void it is', async () => {
    const { entry: writer } = ours();
    const two = (transform: string) => ({
      ...byDay,
      fields: [...byDay.fields, { ...specOf([6, transform]).fields[0], 'field-id': 1001 }],
    });
    const bytes = await foreign(writer, [recordOf(entry)]);
    expect(() => readManifest(bytes, { deflate: zlibDeflate, specs: [two('identity')] })).toThrow(
      'no required field p0 (1001)',
    );
    const { entries } = readManifest(bytes, { deflate: zlibDeflate, specs: [two('void')] });
    expect(entries[0].dataFile.partition).toEqual([20_454, null]);
  });
});

describe('manifest: corrupt', () => {
  const good = recordOf(added({ partition: [1] })) as { data_file: object };
  const read = async (records: unknown[], metadata: object = header, writer = ours().entry) =>
    readManifest(await foreign(writer, records, metadata), { deflate: zlibDeflate });

  test.each<[string, unknown, object?]>([
    ['a status that is none', { ...good, status: 3 }],
    ['a content that is none', { ...good, data_file: { ...good.data_file, content: 3 } }],
    ['a delete file in a data manifest', { ...good, data_file: { ...good.data_file, content: 1 } }],
    ['a header content that is none', good, { ...header, content: 'rows' }],
    ['no schema', good, without(header, 'schema')],
    ['a spec that is no list', good, { ...header, 'partition-spec': '5' }],
    ['a spec that is no JSON', good, { ...header, 'partition-spec': '[' }],
    ['a spec field without transform', good, { ...header, 'partition-spec': '[{"name":"a","source-id":1}]' }],
    ['a spec id that is no number', good, { ...header, 'partition-spec-id': 'x' }],
    ['no spec', good, without(header, 'partition-spec')],
  ])('%s: refused', async (_what, record, metadata) => {
    await expect(read([record], metadata)).rejects.toThrow(expect.objectContaining({ kind: 'corrupt' }));
  });

  test('B165 fields without ids: refused by name, not read by guess', async () => {
    const { entry } = ours();
    for (const field of entry.fields) delete field['field-id'];
    await expect(read([good], header, entry)).rejects.toThrow('no required field status (0)');
  });

  test('any byte changed: a manifest or a corrupt error, never another', async () => {
    const { bytes } = writeManifest({
      schema,
      spec: byDay,
      snapshotId: SNAPSHOT,
      entries: [added({ partition: [1] }), existing({ filePath: 'b', partition: [null] })],
      syncMarker: SYNC_MARKER,
      deflate: null,
    });
    let refused = 0;
    fc.assert(
      fc.property(fc.nat(bytes.length - 1), fc.integer({ min: 1, max: 255 }), (at, flip) => {
        try {
          readManifest(bytes.with(at, bytes[at] ^ flip), { deflate: zlibDeflate, row });
        } catch (error) {
          refused++;
          expect(error).toBeInstanceOf(SluiceError);
          expect(error).toMatchObject({ kind: 'corrupt' });
        }
      }),
      { numRuns: 400 },
    );
    expect(refused).toBeGreaterThan(30);
  });
});
