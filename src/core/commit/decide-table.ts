import { utf8 } from '../base/bytes.ts';
import {
  currentSchema,
  defaultSortOrder,
  defaultSpec,
  newTableMetadata,
  serializeMetadata,
} from '../iceberg/metadata.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { applyUpdates, commitTime } from '../iceberg/updates.ts';
import type { Decision } from '../sink.ts';
import { tableSettings } from '../table/properties.ts';
import { CHANGES_KEY, changesAfter } from './changes.ts';
import { type IcebergBase, NOTHING_KEPT } from './iceberg-base.ts';
import type { AttachOperation, CreateOperation, DropOperation } from './operation.ts';
import type { SinkContext } from './sink-context.ts';

/** The property that marks a tombstone. */
export const DROPPED_KEY = 'sluice.dropped';

/** A new table where there is none, or on top of a tombstone, whose numbering goes on. */
export function decideCreate(
  context: SinkContext,
  operation: CreateOperation,
  base: IcebergBase | null,
  nowMs: number,
): Decision<IcebergBase> {
  if (base !== null && !isDropped(base)) {
    return { kind: 'refused', type: 'table-exists', message: 'a table is at this place' };
  }
  const { layout, uuid, location } = operation;
  const timeMs = base === null ? nowMs : commitTime(base.metadata, nowMs);
  const properties = {
    ...layout.properties,
    [CHANGES_KEY]: changesAfter(base?.metadata.properties ?? {}, operation.commitId),
  };
  const fresh = newTableMetadata({ uuid, location, ...layout, properties, nowMs: timeMs });
  return write(base, continued(context, fresh, base));
}

/** Marks the table as served; a table of another layout becomes version 1 with its own file as predecessor. */
export function decideAttach(
  context: SinkContext,
  operation: AttachOperation,
  base: IcebergBase | null,
  nowMs: number,
): Decision<IcebergBase> {
  const { foreign, properties } = operation;
  if (base !== null && isDropped(base)) return { kind: 'refused', type: 'unknown-table', message: 'table was dropped' };
  if (base !== null && foreign !== null) {
    return { kind: 'refused', type: 'table-exists', message: 'a table with versions of its own is at this place' };
  }
  const metadata = base?.metadata ?? foreign?.metadata;
  if (metadata === undefined) return { kind: 'refused', type: 'unknown-table', message: 'table does not exist' };
  // Another service was first, with the same outcome.
  if (base !== null && tableSettings(metadata.properties).served) {
    return { kind: 'nothing', message: 'table is served already', detail: {} };
  }
  const previous = base === null ? foreign?.location : context.versionLocation(base.version);
  const updates = { ...properties, [CHANGES_KEY]: changesAfter(metadata.properties, operation.commitId) };
  const next = applyUpdates(metadata, [{ action: 'set-properties', updates }], {
    nowMs,
    previousMetadataLocation: previous ?? null,
  });
  return write(base, next);
}

/** A last valid version: readers see an empty table, stale writers another uuid, and the numbering stays taken. */
export function decideDrop(
  context: SinkContext,
  operation: DropOperation,
  base: IcebergBase | null,
  nowMs: number,
): Decision<IcebergBase> {
  if (base === null || isDropped(base) || base.metadata['table-uuid'] !== operation.tableUuid) {
    return { kind: 'refused', type: 'unknown-table', message: 'table does not exist any more' };
  }
  const { metadata } = base;
  const tombstone = newTableMetadata({
    uuid: operation.uuid,
    location: metadata.location,
    schema: currentSchema(metadata),
    spec: defaultSpec(metadata),
    sortOrder: defaultSortOrder(metadata),
    properties: {
      ...metadata.properties,
      [DROPPED_KEY]: 'true',
      [CHANGES_KEY]: changesAfter(metadata.properties, operation.commitId),
    },
    nowMs: commitTime(metadata, nowMs),
  });
  return write(base, continued(context, tombstone, base));
}

/** Whether a base is a tombstone. */
export function isDropped(base: IcebergBase): boolean {
  return tableSettings(base.metadata.properties).dropped;
}

/** The chain goes on: each version names its predecessor, across a drop and a re-creation too. */
function continued(context: SinkContext, metadata: TableMetadata, base: IcebergBase | null): TableMetadata {
  if (base === null) return metadata;
  const entry = {
    'timestamp-ms': base.metadata['last-updated-ms'],
    'metadata-file': context.versionLocation(base.version),
  };
  return { ...metadata, 'metadata-log': [entry] };
}

function write(base: IcebergBase | null, metadata: TableMetadata): Decision<IcebergBase> {
  const version = (base?.version ?? 0) + 1;
  return {
    kind: 'proceed',
    uploads: [],
    bytes: utf8(serializeMetadata(metadata)),
    next: (etag) => ({
      version,
      etag,
      metadata,
      manifests: metadata.snapshots.length === 0 ? [] : null,
      kept: NOTHING_KEPT,
    }),
  };
}
