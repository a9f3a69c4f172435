import type { NestedField, Schema, Type, Value } from '../../src/core/iceberg/types.ts';
import { checkChunk } from './check-pages.ts';
import { childById, type Leaf, type StructTree } from './columns.ts';
import type { Report } from './finding.ts';
import type { Chunk, ParquetFooter, ParquetNode } from './parquet.ts';
import type { ProfileOptions } from './profile.ts';
import { compareValues, type Primitive, parsePrimitive } from './values.ts';

/** Demands P1-P14 and E13's Parquet side on one file whose rows were read. */
export function checkParquet(
  key: string,
  bytes: Uint8Array,
  footer: ParquetFooter,
  schema: Schema,
  rows: readonly StructTree[],
  leaves: readonly Leaf[],
  options: ProfileOptions,
  report: Report,
): void {
  const nodes = new Map<number, ParquetNode>();
  checkFields(schema.fields, footer.root, key, nodes, report);
  for (const child of footer.root.children)
    if (!schema.fields.some((field) => field.id === child.fieldId))
      report('P1 field_id', key, 'a column of the schema', `${child.name} with id ${child.fieldId}`);
  if (footer.createdBy === undefined) report('P12 created_by', key, 'present', undefined);
  if (footer.columnOrders !== footer.leaves.length)
    report('P12 column_orders', key, footer.leaves.length, footer.columnOrders);
  if (footer.rows !== BigInt(rows.length)) report('E10 num_rows', key, rows.length, footer.rows);
  let start = 0;
  for (const [g, group] of footer.rowGroups.entries()) {
    const end = start + Number(group.rows);
    const part = rows.slice(start, end);
    const where = `${key} row group ${g}`;
    if (group.rows === 0n) report('E10 row group', where, 'at least one row', 0);
    const sum = group.chunks.reduce((total, chunk) => total + chunk.uncompressedSize, 0n);
    if (group.totalByteSize !== sum) report('E14 total_byte_size', where, sum, group.totalByteSize);
    const packed = group.chunks.reduce((total, chunk) => total + chunk.compressedSize, 0n);
    if (group.totalCompressedSize !== undefined && group.totalCompressedSize !== packed)
      report('E14 total_compressed_size', where, packed, group.totalCompressedSize);
    if (group.ordinal !== undefined && group.ordinal !== g) report('E12 ordinal', where, g, group.ordinal);
    const offsets = group.chunks.map((chunk) => chunk.dictionaryPageOffset ?? chunk.dataPageOffset).sort(compareValues);
    if (group.fileOffset !== undefined && group.fileOffset !== offsets[0])
      report('E12 file_offset', where, offsets[0], group.fileOffset);
    checkSorting(group.sorting, footer, leaves, part, where, report);
    for (const chunk of group.chunks) {
      const leaf = leaves.find((candidate) => candidate.id === chunk.leaf.fieldId);
      const at = `${where} column ${chunk.leaf.path.join('.')}`;
      checkCodec(chunk, at, options, report);
      if (leaf !== undefined) checkChunk(bytes, chunk, leaf, part, at, options, report);
    }
    start = end;
  }
  if (start !== rows.length) report('E10 row groups', key, rows.length, start);
}

function checkFields(
  fields: readonly NestedField[],
  group: ParquetNode,
  key: string,
  nodes: Map<number, ParquetNode>,
  report: Report,
): void {
  for (const field of fields) {
    const node = childById(group, field.id);
    if (node === undefined) {
      const byName = group.children.find((child) => child.name === field.name);
      if (byName !== undefined) report('P1 field_id', key, `${field.id} on ${field.name}`, byName.fieldId);
      else if (field.required) report('P3 column', key, `required ${field.name}`, 'absent');
      continue;
    }
    checkNode(field.type, field.required, node, key, nodes, report);
  }
}

function checkNode(
  type: Type,
  required: boolean,
  node: ParquetNode,
  key: string,
  nodes: Map<number, ParquetNode>,
  report: Report,
): void {
  const path = node.path.join('.');
  if (node.fieldId !== undefined) nodes.set(node.fieldId, node);
  const repetition = required ? 'REQUIRED' : 'OPTIONAL';
  if (node.repetition !== repetition) report('P3 repetition', key, `${path} ${repetition}`, node.repetition);
  if (typeof type === 'string') {
    const primitive = parsePrimitive(type);
    if (primitive !== null) checkLeafType(primitive, node, key, report);
    return;
  }
  if (type.type === 'struct') {
    checkFields(type.fields, node, key, nodes, report);
    return;
  }
  const annotation = type.type === 'list' ? 'LIST' : 'MAP';
  if ((node.logical ?? node.converted) !== annotation)
    report('P2 annotation', key, `${annotation} on ${path}`, node.logical);
  const repeated = node.children[0];
  const width = type.type === 'list' ? 1 : 2;
  if (node.children.length !== 1 || repeated.repetition !== 'REPEATED' || repeated.children.length !== width) {
    report(
      'P2 levels',
      key,
      `three levels in ${path}`,
      node.children.map((child) => child.name),
    );
    return;
  }
  const sides: [Type, number, boolean][] =
    type.type === 'list'
      ? [[type.element, type['element-id'], type['element-required']]]
      : [
          [type.key, type['key-id'], true],
          [type.value, type['value-id'], type['value-required']],
        ];
  for (const [i, [side, id, isRequired]] of sides.entries()) {
    const child = repeated.children[i];
    if (child.fieldId !== id) report('P1 field_id', key, `${id} on ${child.path.join('.')}`, child.fieldId);
    checkNode(side, isRequired, child, key, nodes, report);
  }
}

interface Layout {
  physical: string;
  logical?: string;
  length?: number;
}

/** Physical and logical type of each Iceberg type (spec: parquet). Older, narrower files keep theirs (M23). */
function layoutOf(type: Primitive, node: ParquetNode): Layout | null {
  switch (type.name) {
    case 'boolean':
      return { physical: 'BOOLEAN' };
    case 'int':
      return { physical: 'INT32' };
    case 'long':
      return { physical: node.physical === 'INT32' ? 'INT32' : 'INT64' };
    case 'float':
      return { physical: 'FLOAT' };
    case 'double':
      return { physical: node.physical === 'FLOAT' ? 'FLOAT' : 'DOUBLE' };
    case 'date':
      return { physical: 'INT32', logical: 'DATE' };
    case 'time':
      return { physical: 'INT64', logical: 'TIME(MICROS,false)' };
    case 'timestamp':
      return { physical: 'INT64', logical: 'TIMESTAMP(MICROS,false)' };
    case 'timestamptz':
      return { physical: 'INT64', logical: 'TIMESTAMP(MICROS,true)' };
    case 'string':
      return { physical: 'BYTE_ARRAY', logical: 'STRING' };
    case 'binary':
      return { physical: 'BYTE_ARRAY' };
    case 'uuid':
      return { physical: 'FIXED_LEN_BYTE_ARRAY', logical: 'UUID', length: 16 };
    case 'fixed':
      return { physical: 'FIXED_LEN_BYTE_ARRAY', length: type.length };
    case 'decimal': {
      const logical = `DECIMAL(${type.precision},${type.scale})`;
      if (type.precision <= 18) return { physical: type.precision <= 9 ? 'INT32' : 'INT64', logical };
      let length = 1;
      while (10n ** BigInt(type.precision) > 1n << BigInt(8 * length - 1)) length++;
      return { physical: 'FIXED_LEN_BYTE_ARRAY', logical, length };
    }
    default:
      return null;
  }
}

function checkLeafType(type: Primitive, node: ParquetNode, key: string, report: Report): void {
  const layout = layoutOf(type, node);
  if (layout === null) return;
  const path = node.path.join('.');
  const temporal = type.name.startsWith('time') || type.name === 'date';
  const logicalDemand = type.name === 'decimal' ? 'P5 decimal' : temporal ? 'P6 logical type' : 'P4 logical type';
  if (node.physical === 'INT96') report('P7 INT96', key, `${path} ${layout.physical}`, node.physical);
  else if (node.physical !== layout.physical)
    report(
      type.name === 'decimal' ? 'P5 decimal' : 'P4 physical type',
      key,
      `${path} ${layout.physical}`,
      node.physical,
    );
  if (layout.logical !== undefined && node.logical !== layout.logical)
    report(logicalDemand, key, `${path} ${layout.logical}`, node.logical);
  if (layout.length !== undefined && node.typeLength !== layout.length)
    report('P4 type_length', key, `${path} ${layout.length}`, node.typeLength);
}

function checkCodec(chunk: Chunk, at: string, options: ProfileOptions, report: Report): void {
  const allowed = options.zstdRequired ? ['ZSTD'] : ['ZSTD', 'SNAPPY'];
  if (!allowed.includes(chunk.codec)) report('P14 codec', at, allowed, chunk.codec);
}

/** Rows of a row group follow the sorting columns its metadata declares. */
function checkSorting(
  sorting: ParquetFooter['rowGroups'][0]['sorting'],
  footer: ParquetFooter,
  leaves: readonly Leaf[],
  rows: readonly StructTree[],
  where: string,
  report: Report,
): void {
  if (sorting === undefined) return;
  const columns = sorting.map((s) => {
    const leaf = leaves.find((candidate) => candidate.id === footer.leaves[s.column]?.fieldId);
    const values: Value[] = [];
    if (leaf !== undefined) for (const row of rows) leaf.collect(row, values);
    return { ...s, values, known: leaf !== undefined };
  });
  if (columns.some(({ known, values }) => !known || values.length !== rows.length)) {
    report('E13 sorting_columns', where, 'flat columns of the file', sorting);
    return;
  }
  for (let i = 1; i < rows.length; i++)
    for (const { values, descending, nullsFirst } of columns) {
      const [a, b] = [values[i - 1], values[i]];
      const sign =
        a === null || b === null
          ? a === b
            ? 0
            : (a === null) === nullsFirst
              ? -1
              : 1
          : compareValues(a, b) * (descending ? -1 : 1);
      if (sign > 0) {
        report('E13 sorting_columns', where, 'rows in the declared order', `row ${i} before row ${i - 1}`);
        return;
      }
      if (sign < 0) break;
    }
}
