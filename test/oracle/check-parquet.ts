import type { NestedField, Schema, Type, Value } from '../../src/core/iceberg/types.ts';
import { childById, fromPhysical, type Leaf, type StructTree } from './columns.ts';
import { type Report, show } from './finding.ts';
import { type Chunk, type ParquetFooter, type ParquetNode, readPageHeader, readPageIndex } from './parquet.ts';
import type { ProfileOptions } from './profile.ts';
import { compareValues, isFloating, isNaNValue, type Primitive, parsePrimitive } from './values.ts';

/** Demands P1-P13 and E13's Parquet side on one file whose rows were read. */
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

interface Extremes {
  count: number;
  nulls: number;
  least: Value;
  greatest: Value;
}

function extremesOf(values: readonly Value[]): Extremes {
  let nulls = 0;
  let least: Value = null;
  let greatest: Value = null;
  for (const value of values) {
    if (value === null) nulls++;
    else if (!isNaNValue(value)) {
      if (least === null || compareValues(value, least) < 0) least = value;
      if (greatest === null || compareValues(value, greatest) > 0) greatest = value;
    }
  }
  return { count: values.length, nulls, least, greatest };
}

function checkChunk(
  bytes: Uint8Array,
  chunk: Chunk,
  leaf: Leaf,
  rows: readonly StructTree[],
  at: string,
  options: ProfileOptions,
  report: Report,
): void {
  const values: Value[] = [];
  for (const row of rows) leaf.collect(row, values);
  const whole = extremesOf(values);
  if (chunk.values !== BigInt(whole.count)) report('E15 num_values', at, whole.count, chunk.values);
  const s = chunk.statistics;
  if (s !== undefined) {
    if (s.nullCount !== undefined && s.nullCount !== BigInt(whole.nulls))
      report('P12 null_count', at, whole.nulls, s.nullCount);
    checkMinMax(leaf.type, chunk.leaf, whole, s.min, s.max, 'P12', at, report);
    checkExact(leaf.type, chunk.leaf, whole.least, s.min, s.minExact, 'min', at, report);
    checkExact(leaf.type, chunk.leaf, whole.greatest, s.max, s.maxExact, 'max', at, report);
  }
  const index = readIndex(bytes, chunk, at, report);
  if (index === null) {
    if (options.pageIndexRequired) report('P13 page index', at, 'present', 'absent');
    return;
  }
  checkPages(bytes, chunk, index, rows.length, at, report);
  if (chunk.columnIndex === undefined) {
    if (options.pageIndexRequired && whole.least !== null) report('P13 column index', at, 'present', 'absent');
    return;
  }
  const pages = index.pages.length;
  const lists = {
    nullPages: index.nullPages,
    min: index.min,
    max: index.max,
    nullCounts: index.nullCounts ?? index.nullPages,
  };
  for (const [name, list] of Object.entries(lists))
    if (list.length !== pages) {
      report(`P13 ${name}`, at, `${pages} items`, list.length);
      return;
    }
  const bounds: { min: Value; max: Value }[] = [];
  for (const [p, page] of index.pages.entries()) {
    const until = index.pages[p + 1]?.firstRow ?? rows.length;
    const inPage: Value[] = [];
    for (const row of rows.slice(page.firstRow, until)) leaf.collect(row, inPage);
    const real = extremesOf(inPage);
    const here = `${at} page ${p}`;
    const isNull = real.nulls === real.count;
    if (index.nullPages[p] !== isNull) report('P13 null_pages', here, isNull, index.nullPages[p]);
    if (index.nullCounts !== undefined && index.nullCounts[p] !== BigInt(real.nulls))
      report('P13 null_counts', here, real.nulls, index.nullCounts[p]);
    if (isNull || index.nullPages[p]) {
      if (isNull && index.min[p].length + index.max[p].length > 0)
        report('P13 null page', here, 'empty bounds', index.min[p]);
      continue;
    }
    const found = checkMinMax(leaf.type, chunk.leaf, real, index.min[p], index.max[p], 'P13', here, report);
    if (found !== null) bounds.push(found);
  }
  checkBoundaryOrder(index.boundaryOrder, bounds, at, report);
}

function readIndex(bytes: Uint8Array, chunk: Chunk, at: string, report: Report) {
  try {
    return readPageIndex(bytes, chunk);
  } catch (error) {
    report('P13 page index', at, 'well formed', (error as Error).message);
    return null;
  }
}

/** Page locations: one after the other, headers where they say, sizes that add up, rows that begin at the first. */
function checkPages(
  bytes: Uint8Array,
  chunk: Chunk,
  index: NonNullable<ReturnType<typeof readPageIndex>>,
  rows: number,
  at: string,
  report: Report,
): void {
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, at, expected, found);
  };
  const first = chunk.dictionaryPageOffset ?? chunk.dataPageOffset;
  const end = Number(first + chunk.compressedSize);
  let offset = Number(chunk.dataPageOffset);
  let row = 0;
  let values = 0;
  for (const [p, page] of index.pages.entries()) {
    must(page.offset === offset, 'P13 page offset', offset, page.offset);
    must(
      p === 0 ? page.firstRow === 0 : page.firstRow > row,
      'P13 first_row_index',
      p === 0 ? 0 : `above ${row}`,
      page.firstRow,
    );
    must(page.firstRow < rows, 'P13 first_row_index', `below ${rows}`, page.firstRow);
    row = page.firstRow;
    let header: ReturnType<typeof readPageHeader>;
    try {
      header = readPageHeader(bytes, page.offset);
    } catch (error) {
      report('P13 page offset', at, 'a page header', (error as Error).message);
      return;
    }
    if (!header.type.startsWith('data')) {
      report('P13 page offset', at, 'a data page', header.type);
      return;
    }
    must(
      header.headerBytes + header.compressedSize === page.size,
      'P13 compressed_page_size',
      header.headerBytes + header.compressedSize,
      page.size,
    );
    const next = index.pages[p + 1]?.firstRow ?? rows;
    if (header.rows !== undefined) must(header.rows === next - row, 'P13 num_rows', next - row, header.rows);
    values += header.values;
    offset = page.offset + page.size;
  }
  must(offset === end, 'P13 pages', `end at ${end}`, offset);
  must(BigInt(values) === chunk.values, 'E15 num_values', chunk.values, values);
}

function physicalValue(type: Primitive, node: ParquetNode, bytes: Uint8Array): Value {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);
  const width = (length: number | undefined) => {
    if (bytes.length !== length) throw new Error(`${node.physical} in ${bytes.length} bytes`);
  };
  switch (node.physical) {
    case 'BOOLEAN':
      width(1);
      return bytes[0] === 1;
    case 'INT32':
      width(4);
      return fromPhysical(type, node, view.getInt32(0, true));
    case 'INT64':
      width(8);
      return fromPhysical(type, node, view.getBigInt64(0, true));
    case 'FLOAT':
      width(4);
      return view.getFloat32(0, true);
    case 'DOUBLE':
      width(8);
      return view.getFloat64(0, true);
    case 'FIXED_LEN_BYTE_ARRAY':
      width(node.typeLength);
      return fromPhysical(type, node, bytes);
    default:
      return fromPhysical(type, node, bytes);
  }
}

/** Bounds in Parquet: right, tight where the type is not cut, and a prefix (its successor) where it is. */
function checkMinMax(
  type: Primitive,
  node: ParquetNode,
  real: Extremes,
  min: Uint8Array | undefined,
  max: Uint8Array | undefined,
  demand: 'P12' | 'P13',
  at: string,
  report: Report,
): { min: Value; max: Value } | null {
  if (min === undefined && max === undefined) return null;
  if (real.least === null) {
    if (demand === 'P12' || !isFloating(type)) report(`${demand} min_max`, at, 'absent: no value', { min, max });
    return null;
  }
  if (min === undefined || max === undefined) {
    report(`${demand} min_max`, at, 'both or neither', { min, max });
    return null;
  }
  let found: { min: Value; max: Value };
  try {
    found = { min: physicalValue(type, node, min), max: physicalValue(type, node, max) };
  } catch (error) {
    report(`${demand} min_max`, at, `values of ${type.name}`, (error as Error).message);
    return null;
  }
  const cut = node.physical === 'BYTE_ARRAY';
  const exactly = isFloating(type)
    ? { least: real.least === 0 ? -0 : real.least, greatest: real.greatest === 0 ? 0 : real.greatest }
    : real;
  if (compareValues(found.min, real.least) > 0 || (!cut && compareValues(found.min, exactly.least) !== 0))
    report(`${demand} min`, at, exactly.least, found.min);
  else if (cut && !isPrefix(rawOf(found.min), rawOf(real.least)))
    report(`${demand} min`, at, `a prefix of ${show(real.least)}`, found.min);
  if (compareValues(found.max, real.greatest) < 0 || (!cut && compareValues(found.max, exactly.greatest) !== 0))
    report(`${demand} max`, at, exactly.greatest, found.max);
  else if (cut && !isRoundedUp(found.max, real.greatest))
    report(`${demand} max`, at, `${show(real.greatest)} or a prefix of it rounded up`, found.max);
  return found;
}

function rawOf(value: Value): Uint8Array {
  return value instanceof Uint8Array ? value : new TextEncoder().encode(String(value));
}

function isPrefix(prefix: Uint8Array, whole: Uint8Array): boolean {
  return prefix.length <= whole.length && prefix.every((byte, i) => byte === whole[i]);
}

/** The value itself, or a shorter prefix of it whose last character is the next one. */
function isRoundedUp(bound: Value, whole: Value): boolean {
  if (compareValues(bound, whole) === 0) return true;
  const units = (value: Value) =>
    value instanceof Uint8Array ? Array.from(value) : Array.from(String(value), (c) => c.codePointAt(0) as number);
  const [cut, all] = [units(bound), units(whole)];
  const last = cut.length - 1;
  if (last < 0 || cut.length >= all.length || cut.some((unit, i) => i < last && unit !== all[i])) return false;
  return cut[last] === (all[last] === 0xd7ff ? 0xe000 : all[last] + 1);
}

function checkExact(
  type: Primitive,
  node: ParquetNode,
  real: Value,
  bound: Uint8Array | undefined,
  exact: boolean | undefined,
  side: string,
  at: string,
  report: Report,
): void {
  if (bound === undefined || real === null || node.physical !== 'BYTE_ARRAY') return;
  const isExact = compareValues(physicalValueOrNull(type, node, bound) ?? real, real) === 0;
  if (!isExact && exact !== false) report(`B14 is_${side}_value_exact`, at, false, exact);
}

function physicalValueOrNull(type: Primitive, node: ParquetNode, bytes: Uint8Array): Value {
  try {
    return physicalValue(type, node, bytes);
  } catch {
    return null;
  }
}

function checkBoundaryOrder(
  order: number,
  bounds: readonly { min: Value; max: Value }[],
  at: string,
  report: Report,
): void {
  const sign = order === 1 ? 1 : order === 2 ? -1 : 0;
  for (let i = 1; sign !== 0 && i < bounds.length; i++)
    for (const side of ['min', 'max'] as const)
      if (compareValues(bounds[i][side], bounds[i - 1][side]) * sign < 0) {
        report('P13 boundary_order', at, order === 1 ? 'ascending' : 'descending', `page ${i} breaks it in ${side}`);
        return;
      }
}
