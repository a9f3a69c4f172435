import { describe, expect, it } from 'vitest';
import { type AvroFile, type AvroNode, readAvro } from './avro.ts';
import { mapBucket } from './bucket.ts';
import { type FixtureName, loadFixture } from './fixtures/load.ts';
import type { JsonObject } from './json.ts';
import {
  dataFileOf,
  editFooter,
  editList,
  editManifest,
  editMetadata,
  editThrift,
  listKeys,
  manifestKeys,
  metadataKey,
  newestVersion,
  type Objects,
  snapshotsOf,
} from './mutate.ts';
import { readFooter } from './parquet.ts';
import { items, sub, type ThriftStruct } from './thrift.ts';
import { type Finding, type ProfileCache, validateTable } from './validator.ts';
import { encodeSingle, type Primitive, parsePrimitive } from './values.ts';

const encoder = new TextEncoder();

/** A planted fault: what is broken, and the numbers of exactly the demands that must be found broken then. */
type Plant = [fault: string, table: FixtureName, demands: string, plant: (objects: Objects) => void];

const options = (table: FixtureName) => (table === 'engine' ? {} : { bucketName: 'lake' });
const spell = (finding: Finding) => JSON.stringify(finding);
const baselines = new Map<FixtureName, Promise<Set<string>>>();

const cache: ProfileCache = new Map();

/** Findings of a table. Files that a fault left alone are taken from the cache. */
async function find(table: FixtureName, objects: Objects): Promise<Finding[]> {
  const pristine = loadFixture(table);
  const touched = [...objects].some(
    ([key, bytes]) => key.endsWith('.parquet') && !Buffer.from(bytes).equals(pristine.get(key) ?? Buffer.alloc(0)),
  );
  return validateTable(mapBucket(objects), table, { ...options(table), ...(touched ? {} : { cache }) });
}

/** Findings that the untouched fixture does not give. */
async function planted(table: FixtureName, plant: (objects: Objects) => void): Promise<Finding[]> {
  const before = baselines.get(table) ?? find(table, loadFixture(table)).then((list) => new Set(list.map(spell)));
  baselines.set(table, before);
  const objects = loadFixture(table);
  plant(objects);
  const known = await before;
  return (await find(table, objects)).filter((finding) => !known.has(spell(finding)));
}

const set =
  (table: FixtureName, name: string, value: JsonObject[string] | undefined) =>
  (objects: Objects): void =>
    editMetadata(objects, table, (metadata) => {
      if (value === undefined) delete metadata[name];
      else metadata[name] = value;
    });

const inNewest =
  (table: FixtureName, edit: (snapshot: JsonObject, metadata: JsonObject) => void) =>
  (objects: Objects): void =>
    editMetadata(objects, table, (metadata) => edit(snapshotsOf(metadata).at(-1) as JsonObject, metadata));

const summary = (table: FixtureName, name: string, value: string | bigint | undefined) =>
  inNewest(table, (snapshot) => {
    if (value === undefined) delete (snapshot.summary as JsonObject)[name];
    else (snapshot.summary as JsonObject)[name] = value;
  });

const hint =
  (text: string) =>
  (objects: Objects): void => {
    objects.set('paged/metadata/version-hint.text', encoder.encode(text));
  };

const row =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editList(objects, table, (list) => {
      list.records[0][name] = change(list.records[0][name] as never);
    });

const entry =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editManifest(objects, table, (manifest) => {
      manifest.records[0][name] = change(manifest.records[0][name] as never);
    });

const file =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editManifest(objects, table, (manifest) => {
      dataFileOf(manifest)[name] = change(dataFileOf(manifest)[name] as never);
    });

interface Pair {
  key: number;
  value: unknown;
}

/** Changes one column's number or bound; undefined takes it out. */
const metric = (
  map: string,
  id: number,
  value: unknown | ((old: never) => unknown),
  table: FixtureName = 'paged',
  manifest?: number,
) => {
  const change = (file: Record<string, unknown>) => {
    const pairs = file[map] as Pair[];
    const old = pairs.find(({ key }) => key === id)?.value;
    const made = typeof value === 'function' ? (value as (old: unknown) => unknown)(old) : value;
    const rest = pairs.filter(({ key }) => key !== id);
    file[map] = made === undefined ? rest : [...rest, { key: id, value: made }];
  };
  return (objects: Objects) =>
    editManifest(
      objects,
      table,
      (file) => change(dataFileOf(file)),
      manifest === undefined ? undefined : manifestKeys(objects, table).at(manifest),
    );
};

const bound = (type: string, value: never) => encodeSingle(parsePrimitive(type) as Primitive, value);

function nodes(schema: unknown, visit: (node: AvroNode) => void): void {
  if (schema === null || typeof schema !== 'object') return;
  if (!Array.isArray(schema)) visit(schema as AvroNode);
  for (const child of Object.values(schema)) nodes(child, visit);
}

/** Changes every node of an Avro schema that has a name. */
const rename = (from: string, to: string) => (file: AvroFile) =>
  nodes(file.schema, (node) => {
    if (node.name === from) node.name = to;
  });

const dataFields = (manifest: AvroFile) => {
  const root = manifest.schema as AvroNode;
  const data = root.fields?.find((field) => field.name === 'data_file')?.type as AvroNode;
  return data.fields as NonNullable<AvroNode['fields']>;
};

const parquetKey = (objects: Objects, prefix: string) =>
  [...objects.keys()].filter((key) => key.startsWith(prefix) && key.endsWith('.parquet')).sort()[0];

/** Changes the first row group's chunk of a column in the footer of a `paged` file. */
const chunk = (column: number, edit: (meta: ThriftStruct, column: ThriftStruct) => void) => (objects: Objects) =>
  editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) => {
    const group = items<ThriftStruct>(footer, 4)?.[0];
    const found = items<ThriftStruct>(group, 1)?.[column] as ThriftStruct;
    edit(sub(found, 3) as ThriftStruct, found);
  });

const element = (column: number, edit: (element: ThriftStruct) => void) => (objects: Objects) =>
  editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) =>
    edit(items<ThriftStruct>(footer, 2)?.[column + 1] as ThriftStruct),
  );

/** Changes a page index of the first row group of a `paged` file. */
const pageIndex =
  (column: number, which: 'columnIndex' | 'offsetIndex', edit: (index: ThriftStruct) => void) => (objects: Objects) => {
    const key = parquetKey(objects, 'paged/data/');
    const at = readFooter(objects.get(key) as Uint8Array).rowGroups[0].chunks[column][which];
    editThrift(objects, key, at?.offset as number, edit);
  };

const put = (s: ThriftStruct | undefined, id: number, value: unknown) => {
  const field = s?.get(id);
  if (field === undefined) throw new Error(`no field ${id}`);
  field.value = value as never;
};

const plants: Plant[] = [
  // metadata.json
  ['format version 1', 'paged', 'M1', set('paged', 'format-version', 1n)],
  ['another table uuid', 'paged', 'I4', set('paged', 'table-uuid', '00000000-0000-4000-8000-000000000000')],
  ['an upper-case uuid', 'paged', 'I4 M2', set('paged', 'table-uuid', '00000000-0000-4000-8000-00000000000A')],
  ['a slash after the location', 'paged', 'I4 L2 M3', set('paged', 'location', 's3://lake/paged/')],
  ['a sequence number too low', 'paged', 'M4 S9', set('paged', 'last-sequence-number', 1n)],
  ['a sequence number too high', 'paged', 'S9', set('paged', 'last-sequence-number', 3n)],
  ['an update time before the logs', 'paged', 'M14 M5', set('paged', 'last-updated-ms', 1n)],
  ['a last column id too low', 'paged', 'M6', set('paged', 'last-column-id', 3n)],
  ['an unknown current schema', 'paged', 'M7', set('paged', 'current-schema-id', 9n)],
  ['an unknown default spec', 'paged', 'M8', set('paged', 'default-spec-id', 9n)],
  ['a last partition id too low', 'paged', 'M9', set('paged', 'last-partition-id', 999n)],
  ['an unknown default sort order', 'paged', 'M10', set('paged', 'default-sort-order-id', 7n)],
  ['a property that is null', 'paged', 'M11', set('paged', 'properties', { a: null })],
  ['a metadata path of its own', 'paged', 'H11', set('paged', 'properties', { 'write.metadata.path': 'x' })],
  ['an unknown current snapshot', 'paged', 'M12 M14 M16', set('paged', 'current-snapshot-id', 5n)],
  ['no snapshots list', 'engine', 'M12 M13 M14 M16 S9', set('engine', 'snapshots', undefined)],
  [
    'main at the older snapshot',
    'paged',
    'M16',
    inNewest('paged', (_, metadata) => {
      (metadata.refs as { main: JsonObject }).main['snapshot-id'] = snapshotsOf(metadata)[0]['snapshot-id'];
    }),
  ],
  ['a tag at no snapshot', 'paged', 'M16', set('paged', 'refs', { t: { type: 'tag', 'snapshot-id': 5n } })],
  [
    'a snapshot log out of order',
    'paged',
    'M14',
    inNewest('paged', (_, metadata) => (metadata['snapshot-log'] as JsonObject[]).reverse()),
  ],
  [
    'a metadata log with another time',
    'paged',
    'M15',
    inNewest('paged', (_, metadata) => {
      (metadata['metadata-log'] as JsonObject[])[1]['timestamp-ms'] = 1n;
    }),
  ],
  [
    'a metadata log that skips its predecessor',
    'paged',
    'I4 M15',
    inNewest('paged', (_, metadata) => (metadata['metadata-log'] as JsonObject[]).pop()),
  ],
  ['a key of version 3', 'paged', 'M18', set('paged', 'next-row-id', 0n)],
  ['statistics of an unknown snapshot', 'paged', 'M17', set('paged', 'statistics', [{ 'snapshot-id': 5n }])],
  [
    'text after the JSON',
    'paged',
    'M19',
    (objects) => {
      const key = metadataKey('paged', newestVersion(objects, 'paged'));
      objects.set(key, Uint8Array.of(...(objects.get(key) as Uint8Array), 0x7b));
    },
  ],
  [
    'two columns that differ by case',
    'types',
    'A1 M20 M25',
    (objects) =>
      editMetadata(objects, 'types', (metadata) => {
        for (const schema of metadata.schemas as { fields: JsonObject[] }[]) schema.fields[2].name = 'FLAG';
      }),
  ],
  [
    'an identifier field that may be null',
    'types',
    'M20 M22',
    (objects) =>
      editMetadata(objects, 'types', (metadata) => {
        (metadata.schemas as JsonObject[])[0]['identifier-field-ids'] = [2n];
      }),
  ],
  [
    'a version file with padding',
    'paged',
    'H2',
    (objects) =>
      objects.set('paged/metadata/v01.metadata.json', objects.get('paged/metadata/v1.metadata.json') as Uint8Array),
  ],
  ['a hint with a newline', 'paged', 'H5', hint('3\n')],
  ['a hint ahead of the versions', 'paged', 'H6', hint('4')],
  [
    'a hole above the hint',
    'paged',
    'H8',
    (objects) => {
      hint('1')(objects);
      objects.delete('paged/metadata/v2.metadata.json');
    },
  ],
  // snapshots
  ['no schema id', 'paged', 'S2', inNewest('paged', (snapshot) => delete snapshot['schema-id'])],
  ['an unknown operation', 'paged', 'S3', summary('paged', 'operation', 'upsert')],
  ['a deletion called append', 'types', 'S3', (objects) => deletion(objects, 'append')],
  ['a compaction called append', 'engine', 'S3', summary('engine', 'operation', 'append')],
  [
    'a parent that is null',
    'types',
    'M20 S4',
    (objects) =>
      editMetadata(objects, 'types', (metadata) => {
        snapshotsOf(metadata)[0]['parent-snapshot-id'] = null;
      }),
  ],
  [
    'a time before the parent',
    'paged',
    'S6',
    inNewest('paged', (snapshot) => {
      snapshot['timestamp-ms'] = 1n;
    }),
  ],
  [
    'a sequence number twice',
    'paged',
    'ML1 Q6 S7',
    inNewest('paged', (snapshot) => {
      snapshot['sequence-number'] = 1n;
    }),
  ],
  ['a summary value that is a number', 'paged', 'J4', summary('paged', 'extra', 5n)],
  [
    'a snapshot id in quotes',
    'paged',
    'E1 J1 M12 M14 M16 Q6 S8',
    inNewest('paged', (snapshot) => {
      snapshot['snapshot-id'] = String(snapshot['snapshot-id']);
    }),
  ],
  [
    'inline manifests',
    'paged',
    'S5',
    inNewest('paged', (snapshot) => {
      snapshot.manifests = [];
    }),
  ],
  ['a wrong total of records', 'paged', 'S8', summary('paged', 'total-records', '721')],
  ['a wrong total of sizes', 'paged', 'S8', summary('paged', 'total-files-size', '1')],
  ['a missing total', 'paged', 'S8', summary('paged', 'total-delete-files', undefined)],
  ['a wrong count of added files', 'paged', 'S8', summary('paged', 'added-data-files', '2')],
  [
    'an older snapshot rewritten',
    'paged',
    'M20',
    (objects) =>
      editMetadata(objects, 'paged', (metadata) => {
        (snapshotsOf(metadata)[0].summary as JsonObject).note = 'new';
      }),
  ],
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
  ['a deleted entry with another sequence number', 'types', 'Q4', (objects) => deleted(objects, 'sequence_number', 1n)],
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
  // bounds
  ['a lower bound too high', 'paged', 'B1', metric('lower_bounds', 4, bound('long', (2n ** 61n) as never))],
  ['a lower bound looser than it is', 'paged', 'B1', metric('lower_bounds', 4, bound('long', 0n as never))],
  ['an upper bound too low', 'paged', 'B1', metric('upper_bounds', 3, bound('double', 1 as never))],
  ['a bound of the wrong width', 'paged', 'B2', metric('lower_bounds', 4, bound('int', 0 as never))],
  [
    'a time bound in milliseconds',
    'paged',
    'B1',
    metric('upper_bounds', 1, bound('long', 1_764_003_600_000n as never)),
  ],
  ['a bound that is NaN', 'paged', 'B7', metric('upper_bounds', 3, bound('double', Number.NaN as never))],
  [
    'a lower bound of positive zero',
    'types',
    'B8',
    (objects) =>
      editManifest(
        objects,
        'types',
        (manifest) => {
          for (const [i] of manifest.records.entries())
            for (const pair of dataFileOf(manifest, i).lower_bounds as Pair[])
              if (pair.key === 4) pair.value = new Uint8Array(4);
        },
        manifestKeys(objects, 'types', 0)[0],
      ),
  ],
  [
    'a lower bound of zero below a greater value',
    'paged',
    'B1',
    metric('lower_bounds', 3, bound('double', 0 as never)),
  ],
  ['a missing bound', 'paged', 'E18', metric('upper_bounds', 2, undefined)],
  ['a string bound that is not cut', 'paged', 'B9', metric('lower_bounds', 2, encoder.encode('device-number-0000'))],
  ['a string bound cut too short', 'paged', 'B10', metric('lower_bounds', 2, encoder.encode('device'))],
  ['a string bound cut inside a character', 'paged', 'B10', metric('lower_bounds', 2, Uint8Array.of(0x64, 0xf0, 0x9f))],
  [
    'an upper bound cut and not rounded up',
    'paged',
    'B11',
    metric('upper_bounds', 2, encoder.encode('device-number-00')),
  ],
  ['an upper bound rounded up too far', 'paged', 'B11', metric('upper_bounds', 2, encoder.encode('e'))],
  ['a bound of a column without values', 'types', 'E15', metric('lower_bounds', 16, encoder.encode('a'), 'types')],
  ['a bound inside a list', 'types', 'E17', metric('lower_bounds', 22, encoder.encode('a'), 'types')],
  ['a bound of a list', 'types', 'B18', metric('lower_bounds', 18, encoder.encode('a'), 'types')],
  // missing objects
  ['a missing data file', 'paged', 'I3', (objects) => objects.delete(parquetKey(objects, 'paged/data/'))],
  ['a missing manifest', 'paged', 'I3 S8', (objects) => objects.delete(manifestKeys(objects, 'paged')[0])],
  ['a missing manifest list', 'paged', 'I3', (objects) => objects.delete(listKeys(objects, 'paged')[0])],
  ['a missing last-value index', 'engine', 'I3', (objects) => objects.delete(parquetKey(objects, 'engine/metadata/'))],
  // Parquet
  ['a column without its field id', 'paged', 'B18 E19 P1', element(2, (node) => put(node, 9, 44))],
  [
    'milliseconds said of microseconds',
    'paged',
    'P6',
    element(0, (node) => {
      const unit = sub(sub(sub(node, 10), 8), 2) as ThriftStruct;
      const [[, micros]] = unit;
      unit.clear();
      unit.set(1, micros);
    }),
  ],
  ['a wrong null count in the footer', 'paged', 'P12', chunk(2, (meta) => put(sub(meta, 12), 3, 1n))],
  ['a wrong minimum in the footer', 'paged', 'P12', chunk(3, (meta) => put(sub(meta, 12), 6, new Uint8Array(8)))],
  [
    'a wrong maximum in the footer',
    'paged',
    'B14 P12',
    chunk(1, (meta) => put(sub(meta, 12), 5, encoder.encode('device-number-0003'))),
  ],
  ['a wrong number of values', 'paged', 'E15', chunk(3, (meta) => put(meta, 5, 239n))],
  [
    'sorting columns the other way',
    'paged',
    'E13',
    (objects) =>
      editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) => {
        const sorting = items<ThriftStruct>(items<ThriftStruct>(footer, 4)?.[0], 4)?.[0];
        put(sorting, 2, true);
      }),
  ],
  [
    'a wrong null count of a page',
    'paged',
    'P13',
    pageIndex(2, 'columnIndex', (index) => {
      (items<bigint>(index, 5) as bigint[])[0]++;
    }),
  ],
  [
    'a wrong minimum of a page',
    'paged',
    'P13',
    pageIndex(0, 'columnIndex', (index) => {
      (items<Uint8Array>(index, 2) as Uint8Array[])[1][0] ^= 1;
    }),
  ],
  [
    'a wrong maximum of a page',
    'paged',
    'P13',
    pageIndex(2, 'columnIndex', (index) => {
      (items<Uint8Array>(index, 3) as Uint8Array[])[0].fill(0);
    }),
  ],
  [
    'a page called null',
    'paged',
    'P13',
    pageIndex(2, 'columnIndex', (index) => {
      (items<boolean>(index, 1) as boolean[])[0] = true;
    }),
  ],
  ['a wrong boundary order', 'paged', 'P13', pageIndex(0, 'columnIndex', (index) => put(index, 4, 2))],
  [
    'a page that begins at another row',
    'paged',
    'P13',
    pageIndex(0, 'offsetIndex', (index) => put((items<ThriftStruct>(index, 1) as ThriftStruct[])[1], 3, 61n)),
  ],
  [
    'a page at another offset',
    'paged',
    'P13',
    pageIndex(0, 'offsetIndex', (index) => {
      const page = (items<ThriftStruct>(index, 1) as ThriftStruct[])[1];
      put(page, 1, (page.get(1)?.value as bigint) + 1n);
    }),
  ],
  [
    'a file cut short',
    'paged',
    'E9 P4',
    (objects) => {
      const key = parquetKey(objects, 'paged/data/');
      objects.set(key, (objects.get(key) as Uint8Array).slice(0, -4));
    },
  ],
];

/** Finds the snapshot that deleted files in `types` and gives it another operation, wherever it is written. */
function deletion(objects: Objects, operation: string): void {
  for (let version = 1; version <= newestVersion(objects, 'types'); version++)
    editMetadata(
      objects,
      'types',
      (metadata) => {
        for (const snapshot of (metadata.snapshots ?? []) as { summary: JsonObject }[])
          if (snapshot.summary.operation === 'delete') snapshot.summary.operation = operation;
      },
      version,
    );
}

/** Changes the entry with status DELETED in `types`. */
function deleted(objects: Objects, name: string, value: unknown): void {
  const keys = listKeys(objects, 'types').flatMap((_, i) => manifestKeys(objects, 'types', i));
  const key = keys.find((candidate) =>
    readAvro(objects.get(candidate) as Uint8Array).records.some((record) => record.status === 2),
  );
  editManifest(
    objects,
    'types',
    (manifest) => {
      manifest.records[0][name] = value;
    },
    key,
  );
}

describe('validator: one fault planted in a valid table', () => {
  it('is tried with at least forty faults', () => {
    expect(plants.length).toBeGreaterThanOrEqual(40);
    expect(new Set(plants.map(([fault]) => fault)).size).toBe(plants.length);
  });

  it.each(plants)('%s (%s): exactly %s', async (_fault, table, demands, plant) => {
    const found = await planted(table, plant);
    const numbers = [...new Set(found.map(({ demand }) => demand.split(' ')[0]))].sort();
    expect(numbers, found.map((f) => `${f.demand} at ${f.key}: ${f.expected} / ${f.found}`).join('\n')).toEqual(
      demands.split(' ').sort(),
    );
  });
});
