import { specById } from '../iceberg/metadata.ts';
import { type MappedField, nameMappingOf } from '../iceberg/name-mapping.ts';
import type { PartitionSpec, TableMetadata } from '../iceberg/types.ts';
import { columnsOf, type ParquetFooter, unsupported } from './footer-read.ts';
import { nodesOf, type ParquetNode } from './foreign-schema.ts';

const FIELD_ID = 9;

/** What a table tells of the columns of a file. */
export interface ColumnHints {
  /** Its name mapping, for files without field ids. */
  names: readonly MappedField[] | null;
  /** The spec that the file is partitioned by; null when that is not known. */
  spec: PartitionSpec | null;
}

export function columnHints(metadata: TableMetadata, specId: number): ColumnHints {
  return { names: nameMappingOf(metadata.properties), spec: specById(metadata, specId) };
}

/**
 * Gives the columns of a file without field ids those of the table's name mapping (spec: column projection). A file with
 * any id, and a table without a mapping, are left as they are: columns without an id are not read.
 *
 * Throws invalid `parquet-unsupported` for a file that lacks the column it is partitioned by: its value is told by the partition
 * alone, as engines do that keep it in the folder's name, and it would be read as null.
 */
export function applyHints(footer: ParquetFooter, { names, spec }: ColumnHints): void {
  giveIds(footer, names);
  if (footer.columns.every(({ id }) => id === null)) return;
  for (const { transform, name, 'source-id': source } of spec?.fields ?? []) {
    if (transform === 'identity' && !footer.columns.some(({ id }) => id === source)) {
      throw unsupported(`partition column ${name} is not in the file`);
    }
  }
}

function giveIds(footer: ParquetFooter, mapping: readonly MappedField[] | null): void {
  const { elements } = footer;
  if (mapping === null || elements.some((element) => element.has(FIELD_ID))) return;
  const give = (
    node: ParquetNode | null | undefined,
    fields: readonly MappedField[],
    name = node?.name ?? '',
  ): void => {
    const field = fields.find(({ names }) => names.includes(name));
    if (node === null || node === undefined || field === undefined) return;
    if (field.id !== null) elements[node.place].set(FIELD_ID, field.id);
    const { type, repeated, element, children } = node;
    // The levels between have no ids, and what they are called is the writer's affair.
    if (type.kind === 'list' && repeated !== null) give(element, field.fields, 'element');
    else if (type.kind === 'map' && repeated !== null) {
      give(repeated.children[0], field.fields, 'key');
      give(repeated.children[1], field.fields, 'value');
    } else for (const child of children) give(child, field.fields);
  };
  for (const node of nodesOf(elements)) give(node, mapping);
  Object.assign(footer, columnsOf(elements));
}
