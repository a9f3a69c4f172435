import { describe } from 'vitest';
import type { AvroNode } from './avro.ts';
import type { JsonObject } from './json.ts';
import { dataFileOf, editList, editManifest, editMetadata, listKeys, manifestKeys, newestVersion } from './mutate.ts';
import { bound, dataFields, deleted, entry, file, metric, nodes, type Pair, rename, row, testPlants } from './plant.ts';

describe('validator: one fault planted in the manifests of a valid table', () => {
  testPlants([
    // manifest list
    [
      'no sequence number in the list header',
      'paged',
      'ML1',
      (objects) => editList(objects, 'paged', (list) => list.meta.delete('sequence-number')),
    ],
    [
      'a nullable count',
      'paged',
      'A10',
      (objects) =>
        editList(objects, 'paged', (list) => {
          for (const field of (list.schema as AvroNode).fields ?? [])
            if (field.name === 'added_files_count') Object.assign(field, { type: ['null', 'int'], default: null });
        }),
    ],
    [
      'another root name of the list',
      'paged',
      'A9',
      (objects) => editList(objects, 'paged', rename('manifest_file', 'row')),
    ],
    [
      'another name of the field summary',
      'paged',
      'A9',
      (objects) => editList(objects, 'paged', rename('r508', 'summary')),
    ],
    ['a wrong manifest length', 'paged', 'ML5', row('manifest_length', (length: bigint) => length + 1n)],
    ['a wrong count of files', 'paged', 'ML6', row('added_files_count', () => 2)],
    ['a wrong count of rows', 'paged', 'ML6', row('added_rows_count', (rows: bigint) => rows - 1n)],
    ['no partition summaries', 'paged', 'ML7', row('partitions', () => null)],
    ['a partition summary too many', 'paged', 'ML7', row('partitions', (list: unknown[]) => [...list, ...list])],
    [
      'contains_null without a null',
      'paged',
      'ML8',
      row('partitions', ([first]: [JsonObject]) => [{ ...first, contains_null: true }]),
    ],
    [
      'a partition summary bound too low',
      'paged',
      'ML8',
      row('partitions', ([first]: [JsonObject]) => [{ ...first, upper_bound: bound('int', 1 as never) }]),
    ],
    [
      'a partition summary bound of eight bytes',
      'paged',
      'ML8 ML9',
      row('partitions', ([first]: [JsonObject]) => [{ ...first, lower_bound: bound('long', 490_000n as never) }]),
    ],
    [
      'manifests oldest first',
      'paged',
      'ML12',
      (objects) => editList(objects, 'paged', (list) => list.records.reverse()),
    ],
    ['a wrong least sequence number', 'paged', 'Q6', row('min_sequence_number', () => 1n)],
    ['a wrong sequence number of a manifest', 'paged', 'Q6', row('sequence_number', () => 3n)],
    [
      'a carried row that changed',
      'paged',
      'Q6',
      (objects) =>
        editList(objects, 'paged', (list) => {
          list.records[1].existing_files_count = 0;
          list.records[1].key_metadata = Uint8Array.of(1);
        }),
    ],
    [
      'a manifest named twice',
      'paged',
      'E2 ML12 S8',
      (objects) => editList(objects, 'paged', (list) => list.records.push(structuredClone(list.records[0]))),
    ],
    [
      'a manifest of another bucket',
      'paged',
      'L2 S8',
      row('manifest_path', (path: string) => path.replace('lake', 'pond')),
    ],
    [
      'a manifest dropped from the list',
      'paged',
      'I3 S8',
      (objects) => editList(objects, 'paged', (list) => list.records.pop()),
    ],
    [
      'a broken sync marker',
      'paged',
      'A6',
      (objects) => {
        const key = listKeys(objects, 'paged')[0];
        const bytes = objects.get(key) as Uint8Array;
        bytes[bytes.length - 1] ^= 1;
      },
    ],
    // manifest
    [
      'the manifest schema in the header',
      'paged',
      'A1',
      (objects) =>
        editManifest(objects, 'paged', (manifest) => manifest.meta.set('schema', JSON.stringify(manifest.schema))),
    ],
    [
      'the whole spec in the header',
      'paged',
      'A3',
      (objects) =>
        editManifest(objects, 'paged', (manifest) =>
          manifest.meta.set('partition-spec', `{"spec-id":0,"fields":${manifest.meta.get('partition-spec')}}`),
        ),
    ],
    [
      'no content in the header',
      'paged',
      'A4',
      (objects) => editManifest(objects, 'paged', (manifest) => manifest.meta.delete('content')),
    ],
    [
      'format version 1 in the header',
      'paged',
      'A4',
      (objects) => editManifest(objects, 'paged', (manifest) => manifest.meta.set('format-version', '1')),
    ],
    [
      'another spec id in the header',
      'paged',
      'A4',
      (objects) => editManifest(objects, 'paged', (manifest) => manifest.meta.set('partition-spec-id', '1')),
    ],
    [
      'a field without its id',
      'paged',
      'A8 A14',
      (objects) =>
        editManifest(objects, 'paged', (manifest) => {
          const field = dataFields(manifest).find(({ name }) => name === 'key_metadata');
          delete field?.['field-id'];
        }),
    ],
    [
      'another name of the data file record',
      'paged',
      'A9',
      (objects) => editManifest(objects, 'paged', rename('r2', 'data_file')),
    ],
    [
      'another name of a map record',
      'paged',
      'A9',
      (objects) => editManifest(objects, 'paged', rename('k126_v127', 'lower')),
    ],
    [
      'fields in another order',
      'paged',
      'A14',
      (objects) =>
        editManifest(objects, 'paged', (manifest) => {
          const fields = dataFields(manifest);
          fields.push(fields.shift() as never);
        }),
    ],
    [
      'a field of version 1',
      'paged',
      'A15',
      (objects) =>
        editManifest(objects, 'paged', (manifest) => {
          dataFields(manifest).push({ name: 'block_size_in_bytes', type: 'long', 'field-id': 105 });
          for (let i = 0; i < manifest.records.length; i++) dataFileOf(manifest, i).block_size_in_bytes = 1n;
        }),
    ],
    [
      'a map without its logical type',
      'paged',
      'A8',
      (objects) =>
        editManifest(objects, 'paged', (manifest) =>
          nodes(manifest.schema, (node) => {
            if (JSON.stringify(node.items ?? '').includes('k119_v120')) delete node.logicalType;
          }),
        ),
    ],
    [
      'a day that is no date',
      'types',
      'A13',
      (objects) =>
        editManifest(objects, 'types', (manifest) =>
          nodes(manifest.schema, (node) => {
            if (node.logicalType === 'date') delete node.logicalType;
          }),
        ),
    ],
    [
      'an empty manifest',
      'types',
      'E4 ML6 ML8 S8',
      (objects) => editManifest(objects, 'types', (manifest) => manifest.records.splice(0)),
    ],
    // entries
    ['an unknown status', 'paged', 'E1 ML6 Q2 S8', entry('status', () => 3)],
    ['an existing entry with inherited numbers', 'paged', 'E1 ML6 Q2 S8', entry('status', () => 0)],
    ['an added entry of another snapshot', 'paged', 'E1 Q1 S8', entry('snapshot_id', () => 5n)],
    ['an added entry with a file sequence number', 'paged', 'Q1', entry('file_sequence_number', () => 2n)],
    ['an added entry from the future', 'paged', 'Q1', entry('sequence_number', () => 9n)],
    ['a deleted entry of another snapshot', 'types', 'I3 Q3 S8', (objects) => deleted(objects, 'snapshot_id', 5n)],
    [
      'a deleted entry without its sequence number',
      'types',
      'Q2 Q4',
      (objects) => deleted(objects, 'sequence_number', null),
    ],
    [
      'a deleted entry with another sequence number',
      'types',
      'Q4',
      (objects) => deleted(objects, 'sequence_number', 1n),
    ],
    ['another case of the format', 'paged', 'E5', file('file_format', () => 'parquet')],
    ['deletes in a data manifest', 'paged', 'E6 S8', file('content', () => 1)],
    ['equality ids of a data file', 'paged', 'E6', file('equality_ids', () => [1n])],
    ['key metadata', 'paged', 'E6', file('key_metadata', () => Uint8Array.of(1))],
    ['a wrong partition', 'paged', 'E7 ML8', file('partition', () => ({ time_hour: 5 }))],
    ['a wrong file size', 'paged', 'E9 S8', file('file_size_in_bytes', (size: bigint) => size + 1n)],
    ['a wrong record count', 'paged', 'E10 ML6 S8', file('record_count', (count: bigint) => count + 1n)],
    ['a wrong split offset', 'paged', 'E12', file('split_offsets', ([, ...rest]: bigint[]) => [5n, ...rest])],
    ['a missing split offset', 'paged', 'E12', file('split_offsets', ([first]: bigint[]) => [first])],
    ['an unknown sort order', 'paged', 'E13', file('sort_order_id', () => 4)],
    [
      'a sort order that the rows do not follow',
      'engine',
      'E13',
      (objects) => {
        for (let version = 1; version <= newestVersion(objects, 'engine'); version++)
          editMetadata(
            objects,
            'engine',
            (metadata) => {
              const [order] = metadata['sort-orders'] as { fields: JsonObject[] }[];
              order.fields[1].direction = 'desc';
            },
            version,
          );
      },
    ],
    ['a wrong column size', 'paged', 'E14', metric('column_sizes', 3, (old: bigint) => old + 1n)],
    ['a wrong value count', 'paged', 'E15', metric('value_counts', 3, (old: bigint) => old + 1n)],
    ['a missing value count', 'paged', 'E15', metric('value_counts', 3, undefined)],
    ['a wrong null count', 'paged', 'E15', metric('null_value_counts', 4, 0n)],
    ['a wrong NaN count', 'engine', 'E16', metric('nan_value_counts', 3, 1n, 'engine')],
    ['a NaN count of a string', 'engine', 'E16', metric('nan_value_counts', 2, 0n, 'engine')],
    ['a count of an unknown column', 'paged', 'E19', metric('value_counts', 99, 1n)],
    ['a count twice in a map', 'paged', 'E15 E19', file('value_counts', ([first]: Pair[]) => [first, first])],
    [
      'a path that is added twice',
      'paged',
      'E2 Q9',
      (objects) => {
        const [newest, oldest] = manifestKeys(objects, 'paged');
        let path: unknown;
        editManifest(
          objects,
          'paged',
          (manifest) => {
            path = dataFileOf(manifest).file_path;
          },
          oldest,
        );
        editManifest(
          objects,
          'paged',
          (manifest) => {
            dataFileOf(manifest).file_path = path;
          },
          newest,
        );
      },
    ],
  ]);
});
