import type { TableMetadata } from '../iceberg/types.ts';
import type { Decision } from '../sink.ts';
import { tableSettings } from '../table/properties.ts';
import type { IcebergBase } from './iceberg-base.ts';

/**
 * What operations ask of the base of each attempt. Whether the commit is in the chain already is asked before all of
 * these, by the driver: else a late own replace would find its inputs gone and throw its live outputs away.
 */

type Refusal = Extract<Decision<IcebergBase>, { kind: 'refused' }>;

/** The table is there, and is the one the operation was made for. Null: it is. */
export function otherTable(base: IcebergBase | null, tableUuid: string): Refusal | null {
  if (base === null) return { kind: 'refused', type: 'table-gone', message: 'table has no version in the store' };
  const { metadata } = base;
  if (metadata['table-uuid'] === tableUuid) return null;
  const type = tableSettings(metadata.properties).dropped ? 'table-dropped' : 'table-replaced';
  return { kind: 'refused', type, message: `table is not the one it was made for: ${metadata['table-uuid']}` };
}

/** What files were made for. */
export interface Layout {
  schemaId: number;
  specId: number;
  sortOrderId: number;
}

/** New rows take the table's current layout: schema, partition spec and sort order are the ones used. */
export function isCurrentLayout(metadata: TableMetadata, layout: Layout): boolean {
  return (
    metadata['current-schema-id'] === layout.schemaId &&
    metadata['default-spec-id'] === layout.specId &&
    metadata['default-sort-order-id'] === layout.sortOrderId
  );
}

/** Rows that are only moved may keep an older layout, as long as the table still knows it. */
export function isKnownLayout(metadata: TableMetadata, layout: Layout): boolean {
  return (
    metadata.schemas.some((schema) => schema['schema-id'] === layout.schemaId) &&
    metadata['partition-specs'].some((spec) => spec['spec-id'] === layout.specId) &&
    metadata['sort-orders'].some((order) => order['order-id'] === layout.sortOrderId)
  );
}
