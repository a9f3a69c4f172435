import { newTableMetadata } from '../../../src/core/iceberg/metadata.ts';
import { seriesTimeOrder } from '../../../src/core/iceberg/sort-order.ts';
import type { NestedField, Schema, Snapshot, TableMetadata, Type } from '../../../src/core/iceberg/types.ts';
import { applyUpdates, type MetadataUpdate } from '../../../src/core/iceberg/updates.ts';

/** Small tables for tests. Nothing here is a checker: it only builds. */

export const UUID = 'f79c3e09-677c-4bbd-a479-3f349cb785e7';
export const LOCATION = 's3://lake/wh/iot/t';

export const field = (id: number, name: string, type: Type, required = false): NestedField => ({
  id,
  name,
  required,
  type,
});

export const SCHEMA: Schema = {
  type: 'struct',
  'schema-id': 0,
  fields: [field(1, 'time', 'timestamptz', true), field(2, 'device', 'string'), field(3, 'v', 'int')],
};

/** A time-series table at its first version: partitioned by day, sorted by (device, time). */
export function timeTable(properties: Record<string, string> = {}): TableMetadata {
  return newTableMetadata({
    uuid: UUID,
    location: LOCATION,
    schema: SCHEMA,
    spec: {
      'spec-id': 0,
      fields: [{ 'source-id': 1, 'field-id': 1000, name: 'time_day', transform: 'day' }],
    },
    sortOrder: seriesTimeOrder(SCHEMA, ['device'], 'time'),
    properties,
    nowMs: 1000,
  });
}

export function snapshotOf(metadata: TableMetadata, id: bigint, more: Partial<Snapshot> = {}): Snapshot {
  const parent = metadata['current-snapshot-id'];
  return {
    'snapshot-id': id,
    ...(parent === undefined ? {} : { 'parent-snapshot-id': parent }),
    'sequence-number': metadata['last-sequence-number'] + 1n,
    'timestamp-ms': metadata['last-updated-ms'] + 10,
    'manifest-list': `${LOCATION}/metadata/snap-${id}.avro`,
    summary: { operation: 'append' },
    'schema-id': 0,
    ...more,
  };
}

/** One commit of `updates` after `metadata`, ten milliseconds later. */
export function commit(metadata: TableMetadata, ...updates: MetadataUpdate[]): TableMetadata {
  return applyUpdates(metadata, updates, {
    nowMs: metadata['last-updated-ms'] + 10,
    previousMetadataLocation: `${LOCATION}/metadata/v${metadata['last-updated-ms']}.metadata.json`,
  });
}

/** One append of a new snapshot to `ref`. */
export function append(metadata: TableMetadata, id: bigint, ref = 'main'): TableMetadata {
  return commit(
    metadata,
    { action: 'add-snapshot', snapshot: snapshotOf(metadata, id) },
    { action: 'set-snapshot-ref', 'ref-name': ref, type: 'branch', 'snapshot-id': id },
  );
}
