import { invalid } from '../base/errors.ts';
import type { Frame } from '../batch/frame.ts';
import { currentSchema } from '../iceberg/metadata.ts';
import { type Proposal, schemaAfter } from '../iceberg/proposal.ts';
import { highestFieldId } from '../iceberg/schema.ts';
import type { TableMetadata } from '../iceberg/types.ts';
import { applyUpdates, type MetadataUpdate } from '../iceberg/updates.ts';
import { isCurrentLayout, type Layout } from './premises.ts';

/** A change of schema that a commit makes beside its snapshot, and what it was worked out on. */
export interface Evolution {
  updates: readonly MetadataUpdate[];
  /** Premises: with these as they were, the updates give the ids that the files are written with. */
  before: { schemaId: number; lastColumnId: number; schemaIds: readonly number[] };
}

/**
 * The table with what the batches ask of its schema, in their order, and the change that makes it so; null: they ask for
 * nothing that the table lacks.
 *
 * @throws as `checkPartitionNames`, `schemaAfter` and `applyUpdates`
 */
export function evolvedBy(
  frames: readonly Pick<Frame, 'proposal'>[],
  metadata: TableMetadata,
): { metadata: TableMetadata; evolution: Evolution | null } {
  const before = currentSchema(metadata);
  let schema = before;
  let lastColumnId = metadata['last-column-id'];
  for (const { proposal } of frames) {
    if (proposal === undefined) continue;
    checkPartitionNames(proposal, metadata);
    schema = schemaAfter(schema, proposal, lastColumnId);
    lastColumnId = Math.max(lastColumnId, highestFieldId(schema));
  }
  if (schema === before) return { metadata, evolution: null };
  const updates: MetadataUpdate[] = [
    { action: 'add-schema', schema },
    { action: 'set-current-schema', 'schema-id': -1 },
  ];
  const nowMs = metadata['last-updated-ms'];
  return {
    metadata: applyUpdates(metadata, updates, { nowMs, previousMetadataLocation: null }),
    evolution: {
      updates,
      before: {
        schemaId: before['schema-id'],
        lastColumnId: metadata['last-column-id'],
        schemaIds: schemaIdsOf(metadata),
      },
    },
  };
}

/**
 * Holds new columns against the names of partition fields, which are no column's.
 *
 * @throws invalid `bad-column-name`
 */
export function checkPartitionNames({ added }: Proposal, metadata: TableMetadata): void {
  const taken = new Set(
    metadata['partition-specs'].flatMap(({ fields }) => fields.map(({ name }) => name.toLowerCase())),
  );
  const clash = added.find(({ name }) => taken.has(name.toLowerCase()));
  if (clash === undefined) return;
  const { name } = clash;
  throw invalid('bad-column-name', `column has the name of a partition field: ${name}`, { field: name });
}

/** New rows take the table's current layout, or the one that comes of it by the commit's own change of schema. */
export function isLayoutOf(metadata: TableMetadata, layout: Layout, evolution: Evolution | null): boolean {
  if (evolution === null) return isCurrentLayout(metadata, layout);
  const { schemaId, lastColumnId, schemaIds } = evolution.before;
  return (
    isCurrentLayout(metadata, { ...layout, schemaId }) &&
    metadata['last-column-id'] === lastColumnId &&
    schemaIds.join() === schemaIdsOf(metadata).join()
  );
}

function schemaIdsOf(metadata: TableMetadata): number[] {
  return metadata.schemas.map((schema) => schema['schema-id']);
}
