import type {
  DataFile,
  EntryStatus,
  FieldSummary,
  ManifestEntry,
  ManifestFile,
  NestedField,
  PartitionSpec,
  Schema,
  Snapshot,
  TableMetadata,
  Type,
  Value,
} from '../../src/core/iceberg/types.ts';
import { type AvroFile, fieldById, itemsOf, readAvro } from './avro.ts';
import { type Bucket, cachingBucket } from './bucket.ts';
import { newCache, sameOr, type ValidatorCache } from './cache.ts';
import { collector, describeFindings, type Report } from './finding.ts';
import { isObject, type Json, type JsonObject, parseJson } from './json.ts';
import { resultType } from './transform.ts';
import { type Primitive, parsePrimitive, signedBigEndian } from './values.ts';

export interface ReadOptions {
  /** The bucket's name in stored locations. Without it any location below the table's own is accepted. */
  bucketName?: string;
  /** The version to read; the newest by listing when absent. */
  version?: number;
  /** Which snapshots' manifests to read. */
  snapshots?: 'all' | 'current' | 'none';
  cache?: ValidatorCache;
}

/** A manifest entry with the numbers it inherits. */
export interface EntryState extends ManifestEntry {
  effective: { snapshotId: bigint; sequenceNumber: bigint; fileSequenceNumber: bigint };
}

export interface ManifestState {
  row: ManifestFile;
  key: string;
  size: number;
  avro: AvroFile;
  entries: EntryState[];
}

export interface SnapshotState {
  snapshot: Snapshot;
  listKey: string;
  list: AvroFile;
  manifests: ManifestState[];
}

export interface TableState {
  bucket: Bucket;
  prefix: string;
  /** All objects below the prefix, with sizes. */
  objects: Map<string, number>;
  /** Versions that exist, ascending. */
  versions: number[];
  version: number;
  metadataKey: string;
  metadataBytes: Uint8Array;
  raw: JsonObject;
  metadata: TableMetadata;
  /** Bytes of the version hint, or null. */
  hint: Uint8Array | null;
  snapshots: SnapshotState[];
  /** What was read so far: one manifest is named by many snapshots. */
  cache: ValidatorCache;
  /** The object key of a stored location; null when it lies outside the table. */
  keyOf(location: string): string | null;
}

const VERSION_FILE = /^v([0-9]+)\.metadata\.json$/;

/** Reads a table whole. Throws an Error that lists what could not be read or resolved. */
export async function readTable(bucket: Bucket, tablePrefix: string, options: ReadOptions = {}): Promise<TableState> {
  const { findings, report } = collector();
  const table = await loadTable(bucket, tablePrefix, options, report);
  if (table === null || findings.length > 0) throw new Error(`unreadable table:\n${describeFindings(findings)}`);
  return table;
}

/** As `readTable`, but notes what is wrong and goes on; null when there is no metadata to read. */
export async function loadTable(
  source: Bucket,
  tablePrefix: string,
  options: ReadOptions,
  report: Report,
): Promise<TableState | null> {
  const bucket = cachingBucket(source);
  const prefix = tablePrefix.replace(/\/$/, '');
  const objects = new Map((await bucket.list(`${prefix}/`)).map(({ key, size }) => [key, size]));
  const folder = `${prefix}/metadata/`;
  const versions = [...objects.keys()]
    .filter((key) => key.startsWith(folder))
    .flatMap((key) => VERSION_FILE.exec(key.slice(folder.length))?.[1] ?? [])
    .map(Number)
    .sort((a, b) => a - b);
  const version = options.version ?? versions.at(-1);
  if (version === undefined) {
    report('H2 versions', folder, 'v<N>.metadata.json', 'none');
    return null;
  }
  const metadataKey = `${folder}v${version}.metadata.json`;
  const metadataBytes = await bucket.get(metadataKey);
  if (metadataBytes === null) {
    report('I3 object', metadataKey, 'present', 'missing');
    return null;
  }
  const cache = options.cache ?? newCache();
  const parsed = parseMetadata(cache, metadataBytes, metadataKey, report);
  if (parsed === null) return null;
  const { raw, metadata } = parsed;
  const keyOf = (location: string): string | null => {
    const own = options.bucketName === undefined ? null : `s3://${options.bucketName}/`;
    if (own !== null && location.startsWith(`${own}${prefix}/`)) return location.slice(own.length);
    if (own === null && location.startsWith(`${metadata.location}/`))
      return prefix + location.slice(metadata.location.length);
    return null;
  };
  const table: TableState = {
    bucket,
    prefix,
    objects,
    versions,
    version,
    metadataKey,
    metadataBytes,
    raw,
    metadata,
    hint: await bucket.get(`${folder}version-hint.text`),
    snapshots: [],
    cache,
    keyOf,
  };
  const wanted = options.snapshots ?? 'all';
  for (const snapshot of metadata.snapshots) {
    const isCurrent = snapshot['snapshot-id'] === metadata['current-snapshot-id'];
    if (wanted === 'none' || (wanted === 'current' && !isCurrent)) continue;
    const state = await loadSnapshot(table, snapshot, report);
    if (state !== null) table.snapshots.push(state);
  }
  return table;
}

/** Parses a metadata file and sees that it can be understood at all. */
export function parseMetadata(cache: ValidatorCache, bytes: Uint8Array, key: string, report: Report) {
  try {
    return sameOr(cache.versions, key, bytes, () => {
      const raw = parseJson(bytes);
      if (!isObject(raw)) throw new Error('not an object');
      for (const name of ['schemas', 'partition-specs', 'sort-orders'])
        if (!Array.isArray(raw[name])) throw new Error(`${name} is no list`);
      return { raw, metadata: toMetadata(raw) };
    });
  } catch (error) {
    report('M19 metadata file', key, 'one JSON object of table metadata', (error as Error).message);
    return null;
  }
}

const IDS = new Set([
  'snapshot-id',
  'parent-snapshot-id',
  'current-snapshot-id',
  'sequence-number',
  'last-sequence-number',
]);

/** Lossless JSON in the shape of the spec: ids and sequence numbers stay bigint, other integers become numbers. */
export function toMetadata(raw: JsonObject): TableMetadata {
  const convert = (value: Json, name: string): unknown => {
    if (typeof value === 'bigint') return IDS.has(name) ? value : Number(value);
    if (Array.isArray(value)) return value.map((item) => convert(item, name));
    if (isObject(value))
      return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, convert(item, key)]));
    return value;
  };
  const shaped = convert(raw, '') as TableMetadata;
  const current = shaped['current-snapshot-id'] as bigint | null | undefined;
  if (current === null || current === -1n) delete shaped['current-snapshot-id'];
  shaped.snapshots ??= [];
  shaped['snapshot-log'] ??= [];
  shaped['metadata-log'] ??= [];
  shaped.refs ??= {};
  shaped.properties ??= {};
  shaped.statistics ??= [];
  shaped['partition-statistics'] ??= [];
  return shaped;
}

export function schemaById(metadata: TableMetadata, id: number | undefined): Schema | undefined {
  return metadata.schemas.find((schema) => schema['schema-id'] === id);
}

export function specById(metadata: TableMetadata, id: number): PartitionSpec | undefined {
  return metadata['partition-specs'].find((spec) => spec['spec-id'] === id);
}

/** Every field of a type by id, nested ones too, list elements and map sides with names `element`, `key`, `value`. */
export function fieldsById(fields: readonly NestedField[]): Map<number, NestedField> {
  const found = new Map<number, NestedField>();
  const visit = (field: NestedField) => {
    found.set(field.id, field);
    inside(field.type);
  };
  const inside = (type: Type) => {
    if (typeof type === 'string') return;
    if (type.type === 'struct') for (const field of type.fields) visit(field);
    else if (type.type === 'list')
      visit({ id: type['element-id'], name: 'element', required: type['element-required'], type: type.element });
    else {
      visit({ id: type['key-id'], name: 'key', required: true, type: type.key });
      visit({ id: type['value-id'], name: 'value', required: type['value-required'], type: type.value });
    }
  };
  for (const field of fields) visit(field);
  return found;
}

/** Source and result type of each field of a spec, looked up in the newest schema that has the source. */
export function partitionTypes(
  metadata: TableMetadata,
  spec: PartitionSpec,
): { source: Primitive; result: Primitive }[] {
  return spec.fields.map((field) => {
    const type = [...metadata.schemas]
      .sort((a, b) => b['schema-id'] - a['schema-id'])
      .map((schema) => fieldsById(schema.fields).get(field['source-id'])?.type)
      .find((found) => found !== undefined);
    const source = typeof type === 'string' ? parsePrimitive(type) : null;
    const result = source === null ? null : resultType(field.transform, source);
    if (source === null || result === null)
      throw new Error(`partition field ${field.name}: no ${field.transform} of it`);
    return { source, result };
  });
}

async function load(table: TableState, location: string, from: string, report: Report) {
  const key = table.keyOf(location);
  if (key === null) {
    report('L2 location', from, `below ${table.metadata.location}`, location);
    return null;
  }
  const bytes = await table.bucket.get(key);
  if (bytes === null) report('I3 object', key, `present, named by ${from}`, 'missing');
  return bytes === null ? null : { key, bytes };
}

async function loadAvro(table: TableState, location: string, from: string, report: Report) {
  const object = await load(table, location, from, report);
  if (object === null) return null;
  try {
    const avro = sameOr(table.cache.containers, object.key, object.bytes, () => readAvro(object.bytes));
    return { key: object.key, size: object.bytes.length, avro };
  } catch (error) {
    report('A6 container', object.key, 'an Avro container file of codec null or deflate', (error as Error).message);
    return null;
  }
}

async function loadSnapshot(table: TableState, snapshot: Snapshot, report: Report): Promise<SnapshotState | null> {
  const list = await loadAvro(table, snapshot['manifest-list'], table.metadataKey, report);
  if (list === null) return null;
  const manifests: ManifestState[] = [];
  for (const record of list.avro.records) {
    const row = manifestRow(list.avro, record);
    const manifest = await loadAvro(table, row.manifestPath, list.key, report);
    if (manifest === null) continue;
    try {
      const spec = specById(table.metadata, row.partitionSpecId);
      if (spec === undefined) throw new Error(`partition spec ${row.partitionSpecId} unknown`);
      const entries = manifest.avro.records.map((entry) =>
        entryState(table.metadata, spec, manifest.avro, entry, row, manifest.key, report),
      );
      manifests.push({ row, ...manifest, entries });
    } catch (error) {
      report('A8 manifest entries', manifest.key, 'entries by field id', (error as Error).message);
    }
  }
  return { snapshot, listKey: list.key, list: list.avro, manifests };
}

function manifestRow(file: AvroFile, record: Record<string, unknown>): ManifestFile {
  const at = <T>(id: number): T => (fieldById(file.schema, record, id)?.value ?? null) as T;
  const summaries = fieldById(file.schema, record, 507);
  const partitions = summaries?.value as Record<string, unknown>[] | null | undefined;
  return {
    manifestPath: at(500),
    manifestLength: at(501),
    partitionSpecId: at(502),
    content: at<0 | 1 | null>(517) ?? 0,
    sequenceNumber: at<bigint | null>(515) ?? 0n,
    minSequenceNumber: at<bigint | null>(516) ?? 0n,
    addedSnapshotId: at(503),
    addedFilesCount: at(504),
    existingFilesCount: at(505),
    deletedFilesCount: at(506),
    addedRowsCount: at(512),
    existingRowsCount: at(513),
    deletedRowsCount: at(514),
    partitions:
      partitions?.map((summary): FieldSummary => {
        const part = <T>(id: number): T => (fieldById(itemsOf(summaries?.field.type), summary, id)?.value ?? null) as T;
        return { containsNull: part(509), containsNan: part(518), lowerBound: part(510), upperBound: part(511) };
      }) ?? null,
    keyMetadata: at(519),
  };
}

/** A map of a data file: an array of records with key and value, or nothing. The first of two equal keys is kept. */
function numbered<V>(value: unknown, key: string, report: Report): Map<number, V> | null {
  if (value === null || value === undefined) return null;
  const pairs = value as { key: number; value: V }[];
  const map = new Map<number, V>();
  for (const { key: id, value: item } of pairs) {
    if (map.has(id)) report('E19 map', key, 'each key once', id);
    else map.set(id, item);
  }
  return map;
}

function partitionValue(result: Primitive, raw: unknown): Value {
  if (raw === null || raw === undefined) return null;
  if (result.name === 'decimal') return signedBigEndian(raw as Uint8Array);
  if (result.name === 'date' || result.name === 'int') return Number(raw);
  return raw as Value;
}

function entryState(
  metadata: TableMetadata,
  spec: PartitionSpec,
  file: AvroFile,
  record: Record<string, unknown>,
  row: ManifestFile,
  key: string,
  report: Report,
): EntryState {
  const at = <T>(id: number): T => (fieldById(file.schema, record, id)?.value ?? null) as T;
  const data = fieldById(file.schema, record, 2);
  if (data === undefined) throw new Error('entry without data_file');
  const of = <T>(id: number): T => (fieldById(data.field.type, data.value, id)?.value ?? null) as T;
  const tuple = fieldById(data.field.type, data.value, 102);
  const types = partitionTypes(metadata, spec);
  const dataFile: DataFile = {
    content: of<0 | 1 | 2 | null>(134) ?? 0,
    filePath: of(100),
    fileFormat: of(101),
    partition: spec.fields.map((field, i) => {
      const found = tuple === undefined ? undefined : fieldById(tuple.field.type, tuple.value, field['field-id']);
      return partitionValue(types[i].result, found?.value);
    }),
    recordCount: of(103),
    fileSizeInBytes: of(104),
    columnSizes: numbered(of(108), key, report),
    valueCounts: numbered(of(109), key, report),
    nullValueCounts: numbered(of(110), key, report),
    nanValueCounts: numbered(of(137), key, report),
    lowerBounds: numbered(of(125), key, report),
    upperBounds: numbered(of(128), key, report),
    keyMetadata: of(131),
    splitOffsets: of(132),
    equalityIds: of<(number | bigint)[] | null>(135)?.map(Number) ?? null,
    sortOrderId: of(140),
    referencedDataFile: of(143),
  };
  const [snapshotId, sequenceNumber, fileSequenceNumber] = [1, 3, 4].map((id) => at<bigint | null>(id));
  return {
    status: at<EntryStatus>(0),
    snapshotId,
    sequenceNumber,
    fileSequenceNumber,
    dataFile,
    effective: {
      snapshotId: snapshotId ?? row.addedSnapshotId,
      sequenceNumber: sequenceNumber ?? row.sequenceNumber,
      fileSequenceNumber: fileSequenceNumber ?? row.sequenceNumber,
    },
  };
}

/** The state of a snapshot by id, of the current one without an id; undefined when the table has none. */
export function snapshotState(table: TableState, id?: bigint): SnapshotState | undefined {
  const wanted = id ?? table.metadata['current-snapshot-id'];
  return table.snapshots.find(({ snapshot }) => snapshot['snapshot-id'] === wanted);
}

/** Live entries of a snapshot: added or existing, of both contents. */
export function liveEntries(state: SnapshotState): EntryState[] {
  return state.manifests.flatMap(({ entries }) => entries.filter(({ status }) => status !== 2));
}
