import type { MappedField } from '../iceberg/name-mapping.ts';
import { columnsOf, type ParquetFooter } from './footer-read.ts';
import { nodesOf, type ParquetNode } from './foreign-schema.ts';

const FIELD_ID = 9;

/**
 * Gives the columns of a file without field ids those of the table's name mapping (spec: column projection). A file with
 * any id, and a table without a mapping, are left as they are: columns without an id are not read.
 */
export function giveIds(footer: ParquetFooter, mapping: readonly MappedField[] | null): void {
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
