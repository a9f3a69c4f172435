import { expect, it } from 'vitest';
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
  newestVersion,
  type Objects,
  snapshotsOf,
} from './mutate.ts';
import { readFooter } from './parquet.ts';
import { items, sub, type ThriftStruct } from './thrift.ts';
import { describeFindings, type Finding, newCache, validateTable } from './validator.ts';
import { encodeSingle, type Primitive, parsePrimitive } from './values.ts';

export const encoder = new TextEncoder();

/** A planted fault: what is broken, and the numbers of exactly the demands that must be found broken then. */
export type Plant = [fault: string, table: FixtureName, demands: string, plant: (objects: Objects) => void];

export const options = (table: FixtureName) => (table === 'engine' ? {} : { bucketName: 'lake' });
export const spell = (finding: Finding) => JSON.stringify(finding);
export const baselines = new Map<FixtureName, Promise<Set<string>>>();

export const cache = newCache();

/** Findings of a table. Files that a fault left alone are taken from the cache. */
export async function find(table: FixtureName, objects: Objects): Promise<Finding[]> {
  const pristine = loadFixture(table);
  const touched = [...objects].some(
    ([key, bytes]) => key.endsWith('.parquet') && !Buffer.from(bytes).equals(pristine.get(key) ?? Buffer.alloc(0)),
  );
  return validateTable(mapBucket(objects), table, { ...options(table), ...(touched ? {} : { cache }) });
}

/** Findings that the untouched fixture does not give. */
export async function planted(table: FixtureName, plant: (objects: Objects) => void): Promise<Finding[]> {
  const before = baselines.get(table) ?? find(table, loadFixture(table)).then((list) => new Set(list.map(spell)));
  baselines.set(table, before);
  const objects = loadFixture(table);
  plant(objects);
  const known = await before;
  return (await find(table, objects)).filter((finding) => !known.has(spell(finding)));
}

export const set =
  (table: FixtureName, name: string, value: JsonObject[string] | undefined) =>
  (objects: Objects): void =>
    editMetadata(objects, table, (metadata) => {
      if (value === undefined) delete metadata[name];
      else metadata[name] = value;
    });

export const inNewest =
  (table: FixtureName, edit: (snapshot: JsonObject, metadata: JsonObject) => void) =>
  (objects: Objects): void =>
    editMetadata(objects, table, (metadata) => edit(snapshotsOf(metadata).at(-1) as JsonObject, metadata));

export const summary = (table: FixtureName, name: string, value: string | bigint | undefined) =>
  inNewest(table, (snapshot) => {
    if (value === undefined) delete (snapshot.summary as JsonObject)[name];
    else (snapshot.summary as JsonObject)[name] = value;
  });

export const hint =
  (text: string) =>
  (objects: Objects): void => {
    objects.set('paged/metadata/version-hint.text', encoder.encode(text));
  };

export const row =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editList(objects, table, (list) => {
      list.records[0][name] = change(list.records[0][name] as never);
    });

export const entry =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editManifest(objects, table, (manifest) => {
      manifest.records[0][name] = change(manifest.records[0][name] as never);
    });

export const file =
  (name: string, change: (value: never) => unknown, table: FixtureName = 'paged') =>
  (objects: Objects) =>
    editManifest(objects, table, (manifest) => {
      dataFileOf(manifest)[name] = change(dataFileOf(manifest)[name] as never);
    });

export interface Pair {
  key: number;
  value: unknown;
}

/** Changes one column's number or bound; undefined takes it out. */
export const metric = (
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

export const bound = (type: string, value: never) => encodeSingle(parsePrimitive(type) as Primitive, value);

export function nodes(schema: unknown, visit: (node: AvroNode) => void): void {
  if (schema === null || typeof schema !== 'object') return;
  if (!Array.isArray(schema)) visit(schema as AvroNode);
  for (const child of Object.values(schema)) nodes(child, visit);
}

/** Changes every node of an Avro schema that has a name. */
export const rename = (from: string, to: string) => (file: AvroFile) =>
  nodes(file.schema, (node) => {
    if (node.name === from) node.name = to;
  });

export const dataFields = (manifest: AvroFile) => {
  const root = manifest.schema as AvroNode;
  const data = root.fields?.find((field) => field.name === 'data_file')?.type as AvroNode;
  return data.fields as NonNullable<AvroNode['fields']>;
};

export const parquetKey = (objects: Objects, prefix: string) =>
  [...objects.keys()].filter((key) => key.startsWith(prefix) && key.endsWith('.parquet')).sort()[0];

/** Changes the first row group's chunk of a column in the footer of a `paged` file. */
export const chunk = (column: number, edit: (meta: ThriftStruct, column: ThriftStruct) => void) => (objects: Objects) =>
  editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) => {
    const group = items<ThriftStruct>(footer, 4)?.[0];
    const found = items<ThriftStruct>(group, 1)?.[column] as ThriftStruct;
    edit(sub(found, 3) as ThriftStruct, found);
  });

export const element = (column: number, edit: (element: ThriftStruct) => void) => (objects: Objects) =>
  editFooter(objects, parquetKey(objects, 'paged/data/'), (footer) =>
    edit(items<ThriftStruct>(footer, 2)?.[column + 1] as ThriftStruct),
  );

/** Changes a page index of the first row group of a `paged` file. */
export const pageIndex =
  (column: number, which: 'columnIndex' | 'offsetIndex', edit: (index: ThriftStruct) => void) => (objects: Objects) => {
    const key = parquetKey(objects, 'paged/data/');
    const at = readFooter(objects.get(key) as Uint8Array).rowGroups[0].chunks[column][which];
    editThrift(objects, key, at?.offset as number, edit);
  };

export const put = (s: ThriftStruct | undefined, id: number, value: unknown) => {
  const field = s?.get(id);
  if (field === undefined) throw new Error(`no field ${id}`);
  field.value = value as never;
};

/** Finds the snapshot that deleted files in `types` and gives it another operation, wherever it is written. */
export function deletion(objects: Objects, operation: string): void {
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
export function deleted(objects: Objects, name: string, value: unknown): void {
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

/** One test a fault: exactly the demands named are found broken. */
export function testPlants(plants: readonly Plant[]): void {
  it('names each fault once', () => {
    expect(new Set(plants.map(([fault]) => fault)).size).toBe(plants.length);
  });

  it.each(plants)('%s (%s): exactly %s', async (_fault, table, demands, plant) => {
    const found = await planted(table, plant);
    const numbers = [...new Set(found.map(({ demand }) => demand.split(' ')[0]))].sort();
    expect(numbers, describeFindings(found)).toEqual(demands.split(' ').sort());
  });
}
