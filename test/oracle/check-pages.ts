import { crc32 } from 'node:zlib';
import type { Value } from '../../src/core/iceberg/types.ts';
import { fromPhysical, type Leaf, type StructTree } from './columns.ts';
import { type Report, show } from './finding.ts';
import { type Chunk, type PageHeader, type ParquetNode, readPageHeader, readPageIndex } from './parquet.ts';
import type { ProfileOptions } from './profile.ts';
import { compareValues, isFloating, isNaNValue, type Primitive } from './values.ts';

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

function valuesOf(leaf: Leaf, rows: readonly StructTree[]): Value[] {
  const values: Value[] = [];
  for (const row of rows) leaf.collect(row, values);
  return values;
}

/** Statistics and page index of one column chunk against its values: P12, P13, B14, E15. */
export function checkChunk(
  bytes: Uint8Array,
  chunk: Chunk,
  leaf: Leaf,
  rows: readonly StructTree[],
  at: string,
  options: ProfileOptions,
  report: Report,
): void {
  const whole = extremesOf(valuesOf(leaf, rows));
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
  const headers = checkPages(bytes, chunk, index, rows.length, at, report);
  for (const [p, header] of headers.entries()) {
    if (header.nulls === undefined) continue;
    const inPage = valuesOf(leaf, rows.slice(index.pages[p].firstRow, index.pages[p + 1]?.firstRow ?? rows.length));
    const { nulls } = extremesOf(inPage);
    if (nulls !== header.nulls) report('P13 num_nulls', `${at} page ${p}`, nulls, header.nulls);
  }
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
    const real = extremesOf(valuesOf(leaf, rows.slice(page.firstRow, until)));
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
): PageHeader[] {
  const must = (holds: boolean, demand: string, expected: unknown, found: unknown) => {
    if (!holds) report(demand, at, expected, found);
  };
  const headers: PageHeader[] = [];
  if (chunk.dictionaryPageOffset !== undefined) checkDictionary(bytes, chunk, at, report);
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
      return headers;
    }
    if (!header.type.startsWith('data')) {
      report('P13 page offset', at, 'a data page', header.type);
      return headers;
    }
    headers.push(header);
    checkCrc(bytes, page.offset, header, at, report);
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
  return headers;
}

function checkCrc(bytes: Uint8Array, offset: number, header: PageHeader, at: string, report: Report): void {
  if (header.crc === undefined) return;
  const start = offset + header.headerBytes;
  const real = crc32(bytes.subarray(start, start + header.compressedSize));
  if (header.crc >>> 0 !== real) report('P13 crc', at, real, header.crc >>> 0);
}

function checkDictionary(bytes: Uint8Array, chunk: Chunk, at: string, report: Report): void {
  const offset = Number(chunk.dictionaryPageOffset);
  try {
    const header = readPageHeader(bytes, offset);
    if (header.type !== 'dictionary') throw new Error(`a page of type ${header.type}`);
    checkCrc(bytes, offset, header, at, report);
    const end = offset + header.headerBytes + header.compressedSize;
    if (BigInt(end) !== chunk.dataPageOffset) report('P13 data_page_offset', at, end, chunk.dataPageOffset);
  } catch (error) {
    report('P13 dictionary_page_offset', at, 'a dictionary page', (error as Error).message);
  }
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
