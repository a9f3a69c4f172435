import { METADATA_LIST_MAX } from '../base/limits.ts';
import { arrayAt, idAt, int64At, malformed, millisAt, objectAt, own, stringAt, stringMapAt } from '../base/shape.ts';
import type { Snapshot, SnapshotRef, StatisticsFile, Summary } from './types.ts';

/** JSON of snapshots, refs and statistics, in metadata files and in changes that clients send. */

/** Snapshot ids that mean none: some writers put -1 or null where the spec leaves the key out (M12, S4, B175). */
export function optionalSnapshotId(value: unknown, path: string): bigint | undefined {
  if (value === undefined || value === null) return undefined;
  const id = int64At(value, path);
  return id === -1n ? undefined : id;
}

const OPERATIONS = ['append', 'replace', 'overwrite', 'delete'];

/**
 * Checks one snapshot (S1-S5). A missing sequence number is 0: the table began in format version 1. A missing
 * operation is `overwrite`, which promises a reader nothing. An inline list of manifests (version 1) is refused.
 */
export function parseSnapshot(json: unknown, path: string): Snapshot {
  const object = objectAt(json, path);
  const parent = optionalSnapshotId(object['parent-snapshot-id'], `${path}.parent-snapshot-id`);
  const schemaId = object['schema-id'];
  const sequence = object['sequence-number'];
  const snapshot: Snapshot = {
    'snapshot-id': int64At(object['snapshot-id'], `${path}.snapshot-id`),
    ...(parent === undefined ? {} : { 'parent-snapshot-id': parent }),
    'sequence-number': sequence === undefined ? 0n : int64At(sequence, `${path}.sequence-number`),
    'timestamp-ms': millisAt(object['timestamp-ms'], `${path}.timestamp-ms`),
    'manifest-list': stringAt(object['manifest-list'], `${path}.manifest-list`),
    summary: parseSummary(object['summary'], `${path}.summary`),
    ...(schemaId === undefined || schemaId === null ? {} : { 'schema-id': idAt(schemaId, `${path}.schema-id`) }),
  };
  if (snapshot['snapshot-id'] < 0n) throw malformed(`${path}.snapshot-id`, 'a positive id', object['snapshot-id']);
  if (snapshot['sequence-number'] < 0n) throw malformed(`${path}.sequence-number`, 'not negative', sequence);
  if (snapshot['manifest-list'] === '') throw malformed(`${path}.manifest-list`, 'a location', '');
  return snapshot;
}

function parseSummary(json: unknown, path: string): Summary {
  const values = json === undefined || json === null ? {} : stringMapAt(json, path);
  const operation = own(values, 'operation') ?? 'overwrite';
  if (!OPERATIONS.includes(operation)) throw malformed(`${path}.operation`, OPERATIONS.join(', '), operation);
  return { ...values, operation: operation as Summary['operation'] };
}

/** Checks one ref (S12): retention limits are positive, and a tag has an age of its own only. */
export function parseRef(json: unknown, path: string): SnapshotRef {
  const object = objectAt(json, path);
  const type = object['type'];
  if (type !== 'branch' && type !== 'tag') throw malformed(`${path}.type`, 'branch or tag', type);
  const ref: SnapshotRef = { 'snapshot-id': int64At(object['snapshot-id'], `${path}.snapshot-id`), type };
  for (const key of ['min-snapshots-to-keep', 'max-snapshot-age-ms', 'max-ref-age-ms'] as const) {
    const value = object[key];
    if (value === undefined || value === null) continue;
    // ages of "for ever" exceed what a double holds; no clock of ours gets there
    const number =
      typeof value === 'bigint' && value > 0n ? Number.MAX_SAFE_INTEGER : millisAt(value, `${path}.${key}`);
    if (number < 1) throw malformed(`${path}.${key}`, 'positive', value);
    if (type === 'tag' && key !== 'max-ref-age-ms') throw malformed(`${path}.${key}`, 'left out for a tag', value);
    ref[key] = number;
  }
  return ref;
}

/** Checks a list of statistics files. Entries stay as they are but for the snapshot id. Absent and null mean none. */
export function parseStatisticsList(json: unknown, path: string): StatisticsFile[] {
  if (json === undefined || json === null) return [];
  return arrayAt(json, path, METADATA_LIST_MAX).map((item, i) => parseStatistics(item, `${path}[${i}]`));
}

/** Checks one statistics or partition-statistics file. */
export function parseStatistics(json: unknown, path: string): StatisticsFile {
  const object = objectAt(json, path);
  stringAt(object['statistics-path'], `${path}.statistics-path`);
  return { ...object, 'snapshot-id': int64At(object['snapshot-id'], `${path}.snapshot-id`) };
}
