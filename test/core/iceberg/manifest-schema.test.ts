import { describe, expect, test } from 'vitest';
import {
  avroName,
  decimalBytes,
  MANIFEST_FILE_SCHEMA,
  manifestEntrySchema,
} from '../../../src/core/iceberg/manifest-schema.ts';
import { avscType } from '../avro/avsc.ts';
import { byDay, specOf, unpartitioned } from './manifests.ts';

/** The texts that the reference writer's conversion gives for its v2 entry and list schemas, one field a line. */
const ENTRY = (partition: string) =>
  [
    '{"type":"record","name":"manifest_entry","fields":[',
    '{"name":"status","type":"int","field-id":0},',
    '{"name":"snapshot_id","type":["null","long"],"default":null,"field-id":1},',
    '{"name":"sequence_number","type":["null","long"],"default":null,"field-id":3},',
    '{"name":"file_sequence_number","type":["null","long"],"default":null,"field-id":4},',
    '{"name":"data_file","type":{"type":"record","name":"r2","fields":[',
    '{"name":"content","type":"int","doc":"Contents of the file: 0=data, 1=position deletes, 2=equality deletes","field-id":134},',
    '{"name":"file_path","type":"string","doc":"Location URI with FS scheme","field-id":100},',
    '{"name":"file_format","type":"string","doc":"File format name: avro, orc, or parquet","field-id":101},',
    `{"name":"partition","type":{"type":"record","name":"r102","fields":[${partition}]},`,
    '"doc":"Partition data tuple, schema based on the partition spec","field-id":102},',
    '{"name":"record_count","type":"long","doc":"Number of records in the file","field-id":103},',
    '{"name":"file_size_in_bytes","type":"long","doc":"Total file size in bytes","field-id":104},',
    ENTRY_MAP('column_sizes', 117, 'long', 'Map of column id to total size on disk', 108),
    ENTRY_MAP('value_counts', 119, 'long', 'Map of column id to total count, including null and NaN', 109),
    ENTRY_MAP('null_value_counts', 121, 'long', 'Map of column id to null value count', 110),
    ENTRY_MAP('nan_value_counts', 138, 'long', 'Map of column id to number of NaN values in the column', 137),
    ENTRY_MAP('lower_bounds', 126, 'bytes', 'Map of column id to lower bound', 125),
    ENTRY_MAP('upper_bounds', 129, 'bytes', 'Map of column id to upper bound', 128),
    '{"name":"key_metadata","type":["null","bytes"],"doc":"Encryption key metadata blob","default":null,"field-id":131},',
    '{"name":"split_offsets","type":["null",{"type":"array","items":"long","element-id":133}],"doc":"Splittable offsets","default":null,"field-id":132},',
    '{"name":"equality_ids","type":["null",{"type":"array","items":"int","element-id":136}],"doc":"Equality comparison field IDs","default":null,"field-id":135},',
    '{"name":"sort_order_id","type":["null","int"],"doc":"Sort order ID","default":null,"field-id":140},',
    '{"name":"referenced_data_file","type":["null","string"],"doc":"Fully qualified location (URI with FS scheme) of a data file that all deletes reference","default":null,"field-id":143}',
    ']},"field-id":2}',
    ']}',
  ].join('');

function ENTRY_MAP(name: string, key: number, value: string, doc: string, id: number): string {
  const entry = [
    `{"type":"record","name":"k${key}_v${key + 1}","fields":[`,
    `{"name":"key","type":"int","field-id":${key}},{"name":"value","type":"${value}","field-id":${key + 1}}]}`,
  ].join('');
  const array = `{"type":"array","items":${entry},"logicalType":"map"}`;
  return `{"name":"${name}","type":["null",${array}],"doc":"${doc}","default":null,"field-id":${id}},`;
}

const LIST = [
  '{"type":"record","name":"manifest_file","fields":[',
  '{"name":"manifest_path","type":"string","doc":"Location URI with FS scheme","field-id":500},',
  '{"name":"manifest_length","type":"long","doc":"Total file size in bytes","field-id":501},',
  '{"name":"partition_spec_id","type":"int","doc":"Spec ID used to write","field-id":502},',
  '{"name":"content","type":"int","doc":"Contents of the manifest: 0=data, 1=deletes","field-id":517},',
  '{"name":"sequence_number","type":"long","doc":"Sequence number when the manifest was added","field-id":515},',
  '{"name":"min_sequence_number","type":"long","doc":"Lowest sequence number in the manifest","field-id":516},',
  '{"name":"added_snapshot_id","type":"long","doc":"Snapshot ID that added the manifest","field-id":503},',
  '{"name":"added_files_count","type":"int","doc":"Added entry count","field-id":504},',
  '{"name":"existing_files_count","type":"int","doc":"Existing entry count","field-id":505},',
  '{"name":"deleted_files_count","type":"int","doc":"Deleted entry count","field-id":506},',
  '{"name":"added_rows_count","type":"long","doc":"Added rows count","field-id":512},',
  '{"name":"existing_rows_count","type":"long","doc":"Existing rows count","field-id":513},',
  '{"name":"deleted_rows_count","type":"long","doc":"Deleted rows count","field-id":514},',
  '{"name":"partitions","type":["null",{"type":"array","items":{"type":"record","name":"r508","fields":[',
  '{"name":"contains_null","type":"boolean","doc":"True if any file has a null partition value","field-id":509},',
  '{"name":"contains_nan","type":["null","boolean"],"doc":"True if any file has a nan partition value","default":null,"field-id":518},',
  '{"name":"lower_bound","type":["null","bytes"],"doc":"Partition lower bound for all files","default":null,"field-id":510},',
  '{"name":"upper_bound","type":["null","bytes"],"doc":"Partition upper bound for all files","default":null,"field-id":511}',
  ']},"element-id":508}],"doc":"Summary for each partition","default":null,"field-id":507},',
  '{"name":"key_metadata","type":["null","bytes"],"doc":"Encryption key metadata blob","default":null,"field-id":519}',
  ']}',
].join('');

/** The partition record's fields alone. */
function partition(...types: string[]): unknown {
  const spec = specOf(...types.map((_, i): [number, string] => [i + 1, 'identity']));
  const entry = manifestEntrySchema(spec, types) as { fields: { type: { fields: { type: { fields: unknown } }[] } }[] };
  return entry.fields[4].type.fields[3].type.fields;
}

describe('manifest schema: layout of the reference writer', () => {
  test('A9 A10 A14 B165 B166 B167 B174 entries of an unpartitioned table: the whole text', () => {
    expect(JSON.stringify(manifestEntrySchema(unpartitioned, []))).toBe(ENTRY(''));
  });

  test('A11 T3 a day partition: a nullable date under its own field id', () => {
    expect(JSON.stringify(manifestEntrySchema(byDay, ['date']))).toBe(
      ENTRY('{"name":"ts_day","type":["null",{"type":"int","logicalType":"date"}],"default":null,"field-id":1000}'),
    );
  });

  test('ML2 ML3 rows of a manifest list: the whole text', () => {
    expect(JSON.stringify(MANIFEST_FILE_SCHEMA)).toBe(LIST);
  });

  test('A15 fields of version 1 and 3: not written', () => {
    const text = JSON.stringify(manifestEntrySchema(byDay, ['date']));
    for (const id of [105, 106, 107, 111, 142, 144, 145]) expect(text).not.toContain(`"field-id":${id}}`);
  });
});

describe('manifest schema: partition fields', () => {
  test.each([
    ['boolean', 'boolean'],
    ['int', 'int'],
    ['long', 'long'],
    ['float', 'float'],
    ['double', 'double'],
    ['string', 'string'],
    ['binary', 'bytes'],
    ['date', { type: 'int', logicalType: 'date' }],
    ['time', { type: 'long', logicalType: 'time-micros' }],
    ['timestamp', { type: 'long', logicalType: 'timestamp-micros', 'adjust-to-utc': false }],
    ['timestamptz', { type: 'long', logicalType: 'timestamp-micros', 'adjust-to-utc': true }],
    ['uuid', { type: 'fixed', name: 'uuid_fixed', size: 16, logicalType: 'uuid' }],
    ['fixed[5]', { type: 'fixed', name: 'fixed_5', size: 5 }],
    ['decimal(9, 2)', { type: 'fixed', name: 'decimal_9_2', size: 4, logicalType: 'decimal', precision: 9, scale: 2 }],
  ])('A13 %s: the type of the spec, nullable', (type, expected) => {
    expect(partition(type)).toEqual([{ name: 'p0', type: ['null', expected], default: null, 'field-id': 1000 }]);
  });

  test('A13 two fields of one fixed type: spelt out once, then by name, as Avro demands', () => {
    const fields = partition('uuid', 'decimal(9, 2)', 'uuid', 'decimal(9, 2)') as { type: unknown[] }[];
    expect(fields[2].type).toEqual(['null', 'uuid_fixed']);
    expect(fields[3].type).toEqual(['null', 'decimal_9_2']);
    const spec = specOf([11, 'identity'], [12, 'identity']);
    expect(() => avscType(manifestEntrySchema(spec, ['uuid', 'uuid']))).not.toThrow();
  });

  test('A12 B091 names outside the grammar: sanitised, the real name beside', () => {
    const spec = specOf([1, 'day', 'ts_day'], [10, 'identity', 'price.€'], [10, 'identity', '😎'], [10, 'void', '9a']);
    const text = JSON.stringify(manifestEntrySchema(spec, ['date', 'string', 'string', 'string']));
    expect(text).toContain(
      '{"name":"ts_day","type":["null",{"type":"int","logicalType":"date"}],"default":null,"field-id":1000}',
    );
    expect(text).toContain(
      '"name":"price_x2E_x20AC","type":["null","string"],"default":null,"iceberg-field-name":"price.€","field-id":1001}',
    );
    expect(text).toContain(
      '"name":"_xD83D_xDE0E","type":["null","string"],"default":null,"iceberg-field-name":"😎","field-id":1002}',
    );
    expect(text).toContain(
      '"name":"_9a","type":["null","string"],"default":null,"iceberg-field-name":"9a","field-id":1003}',
    );
  });

  test('two names that meet when sanitised: stay apart', () => {
    const spec = specOf([10, 'identity', 'a b'], [10, 'void', 'a_x20b'], [10, 'void', 'a_x20b_1001']);
    const json = manifestEntrySchema(spec, ['string', 'string', 'string']);
    expect(() => avscType(json)).not.toThrow();
    expect(JSON.stringify(json)).toContain('"iceberg-field-name":"a_x20b","field-id":1001');
  });

  test.each([
    ['plain_1', 'plain_1'],
    ['_', '_'],
    ['1st', '_1st'],
    ['a-b c', 'a_x2Db_x20c'],
    ['é', '_xE9'],
    ['a\u0001', 'a_x1'],
  ])('avro name of %j: %s', (name, expected) => {
    expect(avroName(name)).toBe(expected);
  });

  test.each([
    [1, 1],
    [2, 1],
    [3, 2],
    [4, 2],
    [5, 3],
    [9, 4],
    [10, 5],
    [18, 8],
    [19, 9],
    [38, 16],
  ])('decimal of precision %i: %i bytes', (precision, bytes) => {
    expect(decimalBytes(precision)).toBe(bytes);
  });
});
