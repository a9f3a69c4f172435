import { corrupt, invalid, rejected, SluiceError } from '../base/errors.ts';
import { parseUuid } from '../base/ids.ts';
import { parseJson, stringifyJson } from '../base/int64-json.ts';
import { METADATA_CHARS_MAX, METADATA_LIST_MAX, SNAPSHOTS_MAX } from '../base/limits.ts';
import { arrayAt, describe, idAt, int64At, millisAt, objectAt, own, stringAt, stringMapAt } from '../base/shape.ts';
import { checkSpec, highestPartitionId, PARTITION_ID_FIRST, parsePartitionSpec, rebindSpec } from './partition-spec.ts';
import { assignFreshIds, highestFieldId, parseSchema } from './schema.ts';
import { MAIN, snapshotsById } from './snapshot.ts';
import { optionalSnapshotId, parseRef, parseSnapshot, parseStatisticsList } from './snapshot-json.ts';
import { checkSortOrder, parseSortOrder, rebindSortOrder, UNSORTED } from './sort-order.ts';
import type { PartitionSpec, Schema, SortOrder, TableMetadata } from './types.ts';

/**
 * Table metadata, format version 2 (spec: table metadata; M1-M19). One file is one JSON object, loaded strictly: what
 * a real reader refuses is refused here, before we build on it and again before we write it.
 *
 * Top-level keys that the format does not define are lost when we write the next version, as with every writer we
 * know (M28): private state belongs in properties.
 */

/** Java and Rust readers refuse logs and clocks that go back further than this between two entries (M5, M14). */
const CLOCK_SLACK_MS = 60_000;

/**
 * Parses and checks a metadata file.
 *
 * Read leniently, because real writers do it and nothing is lost: `last-column-id` and `last-partition-id` too low
 * (raised to the highest id in use), no `main` ref beside a current snapshot, no unsorted order in the list while
 * order 0 is the default, -1 and null for no snapshot, a trailing slash of the location.
 *
 * Throws corrupt `bad-metadata` with the path, or rejected `unsupported-format-version`.
 */
export function parseMetadata(text: string): TableMetadata {
  try {
    if (text.length > METADATA_CHARS_MAX) {
      throw invalid('too-large', `metadata is longer than ${METADATA_CHARS_MAX} characters: ${text.length}`);
    }
    const metadata = metadataOf(parseJson(text));
    checkMetadata(metadata);
    return metadata;
  } catch (cause) {
    if (!(cause instanceof SluiceError) || cause.kind !== 'invalid') throw cause;
    throw corrupt('bad-metadata', `metadata cannot be loaded: ${cause.message}`, cause.detail, cause);
  }
}

function checkVersion(value: unknown): void {
  if (value === 2) return;
  if (value === 1 || value === 3 || value === 4) {
    throw rejected('unsupported-format-version', `format version of a table must be 2: ${value}`, { version: value });
  }
  throw invalid('malformed', `format-version must be 2: ${describe(value)}`, { path: 'format-version' });
}

function metadataOf(json: unknown): TableMetadata {
  const object = objectAt(json, 'metadata');
  checkVersion(object['format-version']);
  const list = <T>(key: string, parse: (item: unknown, path: string) => T): T[] =>
    arrayAt(object[key], key, METADATA_LIST_MAX).map((item, i) => parse(item, `${key}[${i}]`));
  const log = <T>(key: string, parse: (item: Record<string, unknown>, path: string) => T): T[] =>
    arrayAt(object[key] ?? [], key, SNAPSHOTS_MAX).map((item, i) => {
      const path = `${key}[${i}]`;
      return parse(objectAt(item, path), path);
    });

  const schemas = list('schemas', parseSchema);
  const specs = list('partition-specs', parsePartitionSpec);
  const orders = list('sort-orders', parseSortOrder);
  const defaultOrder = idAt(object['default-sort-order-id'], 'default-sort-order-id');
  if (defaultOrder === 0 && !orders.some((order) => order['order-id'] === 0)) orders.unshift(UNSORTED);
  const current = optionalSnapshotId(object['current-snapshot-id'], 'current-snapshot-id');
  const refs = new Map(
    Object.entries(objectAt(object['refs'] ?? {}, 'refs')).map(([name, ref]) => [name, parseRef(ref, `refs.${name}`)]),
  );
  if (current !== undefined && !refs.has(MAIN)) refs.set(MAIN, { 'snapshot-id': current, type: 'branch' });

  return {
    'format-version': 2,
    'table-uuid': stringAt(object['table-uuid'], 'table-uuid'),
    location: stringAt(object['location'], 'location').replace(/\/+$/, ''),
    'last-sequence-number': int64At(object['last-sequence-number'], 'last-sequence-number'),
    'last-updated-ms': millisAt(object['last-updated-ms'], 'last-updated-ms'),
    'last-column-id': Math.max(idAt(object['last-column-id'], 'last-column-id'), ...schemas.map(highestFieldId)),
    schemas,
    'current-schema-id': idAt(object['current-schema-id'], 'current-schema-id'),
    'partition-specs': specs,
    'default-spec-id': idAt(object['default-spec-id'], 'default-spec-id'),
    'last-partition-id': Math.max(
      idAt(object['last-partition-id'] ?? PARTITION_ID_FIRST - 1, 'last-partition-id'),
      ...specs.map(highestPartitionId),
    ),
    'sort-orders': orders,
    'default-sort-order-id': defaultOrder,
    properties: stringMapAt(object['properties'] ?? {}, 'properties'),
    ...(current === undefined ? {} : { 'current-snapshot-id': current }),
    snapshots: arrayAt(object['snapshots'] ?? [], 'snapshots', SNAPSHOTS_MAX).map((item, i) =>
      parseSnapshot(item, `snapshots[${i}]`),
    ),
    'snapshot-log': log('snapshot-log', (entry, path) => ({
      'timestamp-ms': millisAt(entry['timestamp-ms'], `${path}.timestamp-ms`),
      'snapshot-id': int64At(entry['snapshot-id'], `${path}.snapshot-id`),
    })),
    'metadata-log': log('metadata-log', (entry, path) => ({
      'timestamp-ms': millisAt(entry['timestamp-ms'], `${path}.timestamp-ms`),
      'metadata-file': stringAt(entry['metadata-file'], `${path}.metadata-file`),
    })),
    refs: Object.fromEntries(refs),
    statistics: parseStatisticsList(object['statistics'], 'statistics'),
    'partition-statistics': parseStatisticsList(object['partition-statistics'], 'partition-statistics'),
  };
}

/** The current schema. */
export function currentSchema(metadata: TableMetadata): Schema {
  return found(schemaById(metadata, metadata['current-schema-id']), 'current-schema-id', metadata['current-schema-id']);
}

/** The schema with this id, or null. */
export function schemaById(metadata: TableMetadata, id: number): Schema | null {
  return metadata.schemas.find((schema) => schema['schema-id'] === id) ?? null;
}

/** The spec that new files are partitioned by. */
export function defaultSpec(metadata: TableMetadata): PartitionSpec {
  return found(specById(metadata, metadata['default-spec-id']), 'default-spec-id', metadata['default-spec-id']);
}

/** The spec with this id, or null. */
export function specById(metadata: TableMetadata, id: number): PartitionSpec | null {
  return metadata['partition-specs'].find((spec) => spec['spec-id'] === id) ?? null;
}

/** The order that new files are sorted by. */
export function defaultSortOrder(metadata: TableMetadata): SortOrder {
  const id = metadata['default-sort-order-id'];
  const order = metadata['sort-orders'].find((item) => item['order-id'] === id) ?? null;
  return found(order, 'default-sort-order-id', id);
}

function found<T>(value: T | null, key: string, id: number): T {
  if (value === null) throw bad(key, `is not in its list: ${id}`);
  return value;
}

/**
 * Checks what must hold between the parts of table metadata: ids are unique and in their lists, `main` is the current
 * snapshot, sequence numbers and logs are in order, the default spec and order fit the current schema. Throws invalid
 * `bad-metadata`.
 */
export function checkMetadata(metadata: TableMetadata): void {
  const uuid = metadata['table-uuid'];
  if (parseUuid(uuid) === null) throw bad('table-uuid', `is no uuid: ${describe(uuid)}`);
  if (metadata.location === '') throw bad('location', 'is empty');
  for (const key of ['schemas', 'partition-specs', 'sort-orders', 'statistics', 'partition-statistics'] as const) {
    if (metadata[key].length > METADATA_LIST_MAX) throw bad(key, `has more than ${METADATA_LIST_MAX} entries`);
  }
  for (const key of ['snapshots', 'snapshot-log', 'metadata-log'] as const) {
    if (metadata[key].length > SNAPSHOTS_MAX) throw bad(key, `has more than ${SNAPSHOTS_MAX} entries`);
  }
  const { schemas, snapshots } = metadata;
  distinct('schemas', schemas, (schema) => schema['schema-id']);
  distinct('partition-specs', metadata['partition-specs'], (spec) => spec['spec-id']);
  distinct('sort-orders', metadata['sort-orders'], (order) => order['order-id']);
  distinct('snapshots', snapshots, (snapshot) => snapshot['snapshot-id']);
  distinct('partition-statistics', metadata['partition-statistics'], (entry) => entry['snapshot-id']);
  const schema = currentSchema(metadata);
  checkSpec(defaultSpec(metadata), schema, 'default-spec-id');
  checkSortOrder(defaultSortOrder(metadata), schema, 'default-sort-order-id');
  for (const item of schemas) {
    if (highestFieldId(item) > metadata['last-column-id']) throw bad('last-column-id', `is below a field id in use`);
  }
  for (const spec of metadata['partition-specs']) {
    if (highestPartitionId(spec) > metadata['last-partition-id']) throw bad('last-partition-id', 'is below one in use');
  }
  checkSnapshots(metadata);
  checkLogs(metadata);
}

function checkSnapshots(metadata: TableMetadata): void {
  const last = metadata['last-sequence-number'];
  if (last < 0n) throw bad('last-sequence-number', `is negative: ${last}`);
  for (const snapshot of metadata.snapshots) {
    if (snapshot['sequence-number'] > last) {
      throw bad('last-sequence-number', `is below that of snapshot ${snapshot['snapshot-id']}: ${last}`);
    }
  }
  const current = metadata['current-snapshot-id'];
  const main = own(metadata.refs, MAIN);
  if (main !== undefined && main.type !== 'branch') throw bad('refs.main', 'is not a branch');
  if (current !== main?.['snapshot-id']) {
    throw bad('refs.main', `is not the current snapshot: ${main?.['snapshot-id'] ?? 'none'}, ${current ?? 'none'}`);
  }
  for (const [name, ref] of Object.entries(metadata.refs)) {
    if (!snapshotsById(metadata).has(ref['snapshot-id'])) {
      throw bad(`refs.${name}`, `names a snapshot that is not there: ${ref['snapshot-id']}`);
    }
  }
}

function checkLogs(metadata: TableMetadata): void {
  const updated = metadata['last-updated-ms'];
  for (const key of ['snapshot-log', 'metadata-log'] as const) {
    let before = 0;
    for (const { 'timestamp-ms': at } of metadata[key]) {
      if (at < before - CLOCK_SLACK_MS) throw bad(key, `is out of order at ${at}`);
      before = at;
    }
    if (updated < before - CLOCK_SLACK_MS)
      throw bad('last-updated-ms', `is before the newest entry of ${key}: ${updated}`);
  }
}

function distinct<T>(key: string, items: readonly T[], idOf: (item: T) => number | bigint): void {
  const seen = new Set<number | bigint>();
  for (const item of items) {
    const id = idOf(item);
    if (seen.has(id)) throw bad(key, `has one id twice: ${id}`);
    seen.add(id);
  }
}

function bad(path: string, why: string): SluiceError {
  return invalid('bad-metadata', `${path} ${why}`, { path });
}

/**
 * Metadata of a table that is just made: no snapshots, sequence number 0, an empty log. Schema, spec and order may come
 * from anywhere: field ids are given anew from 1, partition field ids from 1000, and sources follow. Whether names and
 * properties are welcome is for the caller to check (`checkNewColumnNames`, `checkNewSpec`, `checkedProperties`).
 * Throws invalid `bad-spec`, `bad-sort-order` or `bad-metadata`.
 */
export function newTableMetadata(input: {
  uuid: string;
  /** Canonical: see `locations.ts`. */
  location: string;
  schema: Schema;
  spec: PartitionSpec;
  sortOrder: SortOrder;
  properties: Readonly<Record<string, string>>;
  nowMs: number;
}): TableMetadata {
  const { schema, ids } = assignFreshIds(input.schema);
  const spec = rebindSpec({ ...input.spec, 'spec-id': 0 }, ids);
  // the only order in the list, as the reference writer has it: order 0 is listed only when it is the default
  const sorted = input.sortOrder.fields.length > 0;
  const sortOrder = sorted ? rebindSortOrder({ ...input.sortOrder, 'order-id': 1 }, ids) : UNSORTED;
  const metadata: TableMetadata = {
    'format-version': 2,
    'table-uuid': input.uuid,
    location: input.location,
    'last-sequence-number': 0n,
    'last-updated-ms': input.nowMs,
    'last-column-id': highestFieldId(schema),
    schemas: [{ ...schema, 'schema-id': 0 }],
    'current-schema-id': 0,
    'partition-specs': [spec],
    'default-spec-id': 0,
    'last-partition-id': highestPartitionId(spec),
    'sort-orders': [sortOrder],
    'default-sort-order-id': sortOrder['order-id'],
    properties: { ...input.properties },
    snapshots: [],
    'snapshot-log': [],
    'metadata-log': [],
    refs: {},
    statistics: [],
    'partition-statistics': [],
  };
  checkMetadata(metadata);
  return metadata;
}

/**
 * Text of a metadata file, in the key order of the reference writer. Checked first; holds the keys of format version 2
 * and no others (M7, M8, M18), and `current-snapshot-id` only when there is one (M12). Throws invalid `bad-metadata`, rejected `metadata-too-large`.
 */
export function serializeMetadata(metadata: TableMetadata): string {
  checkMetadata(metadata);
  const text = stringifyJson({
    'format-version': metadata['format-version'],
    'table-uuid': metadata['table-uuid'],
    location: metadata.location,
    'last-sequence-number': metadata['last-sequence-number'],
    'last-updated-ms': metadata['last-updated-ms'],
    'last-column-id': metadata['last-column-id'],
    'current-schema-id': metadata['current-schema-id'],
    schemas: metadata.schemas,
    'default-spec-id': metadata['default-spec-id'],
    'partition-specs': metadata['partition-specs'],
    'last-partition-id': metadata['last-partition-id'],
    'default-sort-order-id': metadata['default-sort-order-id'],
    'sort-orders': metadata['sort-orders'],
    properties: metadata.properties,
    'current-snapshot-id': metadata['current-snapshot-id'],
    refs: metadata.refs,
    snapshots: metadata.snapshots,
    statistics: metadata.statistics,
    'partition-statistics': metadata['partition-statistics'],
    'snapshot-log': metadata['snapshot-log'],
    'metadata-log': metadata['metadata-log'],
  });
  // never write what could not be loaded again
  if (text.length > METADATA_CHARS_MAX) {
    throw rejected('metadata-too-large', `metadata is longer than ${METADATA_CHARS_MAX} characters: ${text.length}`);
  }
  return text;
}
