import { corrupt, SluiceError } from '../base/errors.ts';
import { GENERAL_VALUE_BYTES } from '../base/read-limits.ts';
import type { Cast } from '../columns/casts.ts';
import type { Column, Columns } from '../columns/columns.ts';
import { Misfit } from '../columns/fault.ts';
import { type ForeignColumn, foreignReader } from '../columns/foreign.ts';
import { foreignColumn, type ReportMisfit } from '../columns/foreign-column.ts';
import type { NestedField, Schema } from '../iceberg/types.ts';
import { canReadChunk } from './column-reader.ts';
import { type ByteRange, type ColumnChunk, type ParquetFooter, type Piece, unsupported } from './footer-read.ts';
import { CODECS_READ, codecName, columnOf, InflatedLeft, leavesOf, type ParquetCodecs } from './foreign.ts';
import { nodesOf, type ParquetNode } from './foreign-schema.ts';
import { castById } from './id-casts.ts';
import { BYTE_ARRAY, FIXED_LEN_BYTE_ARRAY } from './layout.ts';
import { canRead, coalesce } from './reader.ts';

/**
 * Columns of a data file of a table, whoever wrote it. Most are read by windows (`reader.ts`). The others, nested ones
 * and what is stored in other encodings, codecs or types, go through the general reader: a row group at a time, value by
 * value where hyparquet has to read them, and so within a bound of memory that the footer tells beforehand.
 */

/** Fields of a schema by the reader that takes them from this file. Fields that the file does not have go by windows. */
export function fieldsByReader(
  footer: ParquetFooter,
  schema: Schema,
): { windowed: NestedField[]; general: NestedField[] } {
  const windowed: NestedField[] = [];
  const general: NestedField[] = [];
  for (const field of schema.fields) (isWindowed(footer, field) ? windowed : general).push(field);
  return { windowed, general };
}

function isWindowed(footer: ParquetFooter, field: NestedField): boolean {
  if (footer.groupIds.has(field.id)) return false;
  const at = footer.columns.findIndex(({ id }) => id === field.id);
  if (at === -1) return true;
  const column = footer.columns[at];
  return canRead(column, field) && footer.rowGroups.every(({ chunks }) => canReadChunk(chunks[at], column));
}

/** The stretches of the file that hold these fields of a row group whole. */
export function planGeneral(
  footer: ParquetFooter,
  rowGroup: number,
  fields: readonly NestedField[],
  gapBytesMax = 0,
): ByteRange[] {
  const { chunks } = footer.rowGroups[rowGroup];
  const ranges = leavesOfFields(footer, fields).map((place) => ({
    offset: chunks[place].offset,
    length: chunks[place].length,
  }));
  return coalesce(ranges, gapBytesMax);
}

/** Memory that these fields of a row group take when they are read by the general reader, told by the footer. */
export function generalBytes(footer: ParquetFooter, rowGroup: number, fields: readonly NestedField[]): number {
  const { chunks } = footer.rowGroups[rowGroup];
  return leavesOfFields(footer, fields).reduce((sum, place) => {
    const { values, inflatedLength } = chunks[place];
    // What pages hold stands in memory as it is and once more as values.
    return sum + values * GENERAL_VALUE_BYTES + 2 * inflatedLength;
  }, 0);
}

/** Memory that these fields of a row group take as typed columns, those that are read by windows; dictionaries once. */
export function typedBytes(footer: ParquetFooter, rowGroup: number, fields: readonly NestedField[]): number {
  const { rows, chunks } = footer.rowGroups[rowGroup];
  return fields.reduce((sum, { id }) => {
    const at = footer.columns.findIndex((column) => column.id === id);
    if (at === -1) return sum;
    const { physical, length } = footer.columns[at];
    const width = physical === BYTE_ARRAY ? 4 : physical === FIXED_LEN_BYTE_ARRAY ? length : 8;
    return sum + rows * (1 + width) + (physical === BYTE_ARRAY ? chunks[at].inflatedLength : 0);
  }, 0);
}

function leavesOfFields({ elements }: ParquetFooter, fields: readonly NestedField[]): number[] {
  const ids = new Set(fields.map(({ id }) => id));
  return nodesOf(elements)
    .filter(({ id }) => id !== null && ids.has(id))
    .flatMap((node) => leavesOf(node).map(({ place }) => place));
}

/**
 * A row group as columns of `schema`, by the general reader; `pieces` hold the stretches of `planGeneral`. Fields are found by
 * id, inner ones too. `bytesMax` bounds what pages may inflate to.
 *
 * Throws corrupt `parquet-corrupt`; invalid `parquet-unsupported` for codecs, types and values that are not read here.
 */
export function readGeneral(
  footer: ParquetFooter,
  rowGroup: number,
  schema: Schema,
  pieces: readonly Piece[],
  { codecs, bytesMax }: { codecs: ParquetCodecs; bytesMax: number },
): Columns {
  const nodes = nodesOf(footer.elements);
  const group = footer.rowGroups[rowGroup];
  const source = { footer, group, pieces, codecs, left: new InflatedLeft(bytesMax) };
  const columns = schema.fields.map((field) => {
    const node = nodes.find(({ id }) => id === field.id);
    if (node === undefined) throw unsupported(`column ${field.name} is not in the file`);
    const made = castById(node, field.type);
    if ('problem' in made) throw unsupported(`column ${field.name} ${made.problem}`);
    checkCodecs(node, group.chunks);
    return guarded(() => castColumn(columnOf(source, node), field, made.cast));
  });
  return { schema, rows: group.rows, columns };
}

function checkCodecs(node: ParquetNode, chunks: readonly ColumnChunk[]): void {
  for (const { place } of leavesOf(node)) {
    const { codec } = chunks[place];
    if (!CODECS_READ.has(codec)) throw unsupported(`column ${node.name} is compressed with ${codecName(codec)}`);
  }
}

function castColumn(column: ForeignColumn, field: NestedField, cast: Cast<unknown>): Column {
  const report: ReportMisfit = (row, { problem }) => {
    throw unsupported(`row ${row} of column ${field.name} ${problem}`);
  };
  if (typeof field.type === 'string') return foreignColumn(column, field, cast, report);
  const read = foreignReader(column);
  const values = Array.from({ length: column.rows }, (_, row) => {
    const given = read(row);
    const value = given === null ? null : cast(given);
    if (value instanceof Misfit) report(row, value);
    return value;
  });
  return { kind: 'nested', values, validity: column.validity };
}

/** Damage that shows in a decompressor, or as a read beyond the end of bytes, is damage of the file. */
function guarded<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    if (error instanceof SluiceError && error.type === 'too-large')
      throw unsupported('pages inflate to more than they say');
    if (error instanceof SluiceError && (error.kind !== 'corrupt' || error.type === 'parquet-corrupt')) throw error;
    throw corrupt('parquet-corrupt', 'parquet file: is damaged', {}, error);
  }
}

/** Columns of a schema, each out of the part that has it; the parts have the same rows. */
export function joinFields(schema: Schema, parts: readonly Columns[]): Columns {
  const byId = new Map(parts.flatMap((part) => part.schema.fields.map(({ id }, i) => [id, part.columns[i]] as const)));
  return { schema, rows: parts[0].rows, columns: schema.fields.map(({ id }) => byId.get(id) as Column) };
}
