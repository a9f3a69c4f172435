import { metricsOf } from '../iceberg/bounds.ts';
import type { DataFile, PartitionSpec, Schema, SortOrder, Value } from '../iceberg/types.ts';
import type { SortingColumn } from '../parquet/footer-write.ts';
import type { FileFacts } from '../parquet/writer.ts';

/** A Parquet file that was just written, as a manifest lists it; all its rows are in one partition and in the sort order. */
export function dataFileOf(
  { schema, spec, sortOrder }: { schema: Schema; spec: PartitionSpec; sortOrder: SortOrder },
  file: { location: string; tuple: readonly Value[]; facts: FileFacts },
): DataFile {
  const { facts } = file;
  const sourceIds = new Set([...spec.fields, ...sortOrder.fields].map((field) => field['source-id']));
  return {
    content: 0,
    filePath: file.location,
    fileFormat: 'PARQUET',
    partition: [...file.tuple],
    recordCount: BigInt(facts.recordCount),
    fileSizeInBytes: BigInt(facts.fileSizeInBytes),
    ...metricsOf(schema, facts.columns, { sortAndPartitionIds: sourceIds }),
    keyMetadata: null,
    splitOffsets: facts.splitOffsets.map(BigInt),
    equalityIds: null,
    sortOrderId: sortOrder['order-id'] === 0 ? null : sortOrder['order-id'],
    referencedDataFile: null,
  };
}

/** The sort order as Parquet's footers tell it; none when an order has transforms, which they cannot. */
export function sortingColumnsOf(schema: Schema, sortOrder: SortOrder): SortingColumn[] {
  if (!sortOrder.fields.every((field) => field.transform === 'identity')) return [];
  return sortOrder.fields.map((field) => ({
    columnIndex: schema.fields.findIndex((column) => column.id === field['source-id']),
    descending: field.direction === 'desc',
    nullsFirst: field['null-order'] === 'nulls-first',
  }));
}
