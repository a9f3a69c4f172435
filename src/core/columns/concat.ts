import { assert } from '../base/assert.ts';
import { rejected } from '../base/errors.ts';
import { DICTIONARY_ENTRIES_MAX } from '../base/limits.ts';
import { release } from '../base/release.ts';
import type { NestedField, Schema, Type } from '../iceberg/types.ts';
import { ByteInterner } from './byte-interner.ts';
import { type ByteStrings, type Column, type ColumnData, type Columns, countOf, int32Pairs } from './columns.ts';
import { checkColumnBytes } from './gather.ts';
import { promoteColumn } from './promote.ts';
import { type FixedWidthStorage, storageOf } from './storage.ts';

/**
 * The rows of all parts, in order, under `schema`. Parts may have been written under other schemas of the table: their
 * columns are matched by field id, absent ones are null, dropped ones are left out, promoted types are widened. So rows
 * that waited in the buffer survive a schema change. Dictionaries are merged.
 *
 * A single part that already fits is not copied.
 *
 * Throws `rejected`: `incompatible-type` when a type is no promotion of the one a part was written with,
 * `null-in-required-column` when rows have no value for a column that is required by now.
 */
export function concat(
  parts: readonly Columns[],
  schema: Schema,
  dictionaryEntriesMax = DICTIONARY_ENTRIES_MAX,
): Columns {
  let rows = 0;
  for (const part of parts) rows += part.rows;
  const filled = parts.filter((part) => part.rows > 0);
  const places = placesById(filled);
  const columns = schema.fields.map((field) => {
    const sources = filled.map((part) => sourceOf(part, field, places));
    const column = joined(sources, field, rows, dictionaryEntriesMax);
    if (field.required) checkRequired(column, field);
    return column;
  });
  return { schema, rows, columns };
}

/** A column of `rows` nulls. */
export function nullColumn(field: NestedField, rows: number): Column {
  return joined([{ rows, column: null }], field, rows, 0);
}

/** A column of one part, or the number of rows for which it has none. */
type Source = { rows: number; column: Column | null };

/** For each schema object among the parts: field id → position. */
function placesById(parts: readonly Columns[]): Map<Schema, Map<number, number>> {
  const out = new Map<Schema, Map<number, number>>();
  for (const { schema } of parts) {
    if (!out.has(schema)) out.set(schema, new Map(schema.fields.map((field, i) => [field.id, i])));
  }
  return out;
}

function sourceOf(part: Columns, field: NestedField, places: Map<Schema, Map<number, number>>): Source {
  const place = places.get(part.schema)?.get(field.id);
  if (place === undefined) return { rows: part.rows, column: null };
  const column = part.columns[place];
  const from = part.schema.fields[place].type;
  return { rows: part.rows, column: sameType(from, field.type) ? column : promoteColumn(column, field, from) };
}

function sameType(a: Type, b: Type): boolean {
  return a === b || (typeof a !== 'string' && typeof b !== 'string' && JSON.stringify(a) === JSON.stringify(b));
}

function checkRequired(column: Column, field: NestedField): void {
  const row = column.validity === null ? -1 : column.validity.indexOf(0);
  if (row < 0) return;
  throw rejected('null-in-required-column', `column ${field.name} is required and null in row ${row}`, {
    field: field.name,
    row,
  });
}

function joined(sources: Source[], field: NestedField, rows: number, dictionaryEntriesMax: number): Column {
  if (sources.length === 1 && sources[0].column !== null) return sources[0].column;
  const validity = joinedValidity(sources, rows);
  const storage = storageOf(field.type);
  switch (storage.kind) {
    case 'text': {
      const dictionary = sources.every(isDictionary) ? joinedDictionary(sources, rows, dictionaryEntriesMax) : null;
      return dictionary === null
        ? { kind: 'bytes', values: joinedBytes(sources, rows), validity }
        : { ...dictionary, validity };
    }
    case 'nested': {
      const values = sources.flatMap(({ column, rows: count }) => {
        if (column === null) return new Array<unknown>(count).fill(null);
        assert(column.kind === 'nested', 'a column has the kind of its type');
        return column.values;
      });
      return { kind: 'nested', values, validity };
    }
    default:
      return { ...joinedFixedWidth(storage, sources, rows), validity };
  }
}

function isDictionary({ column }: Source): boolean {
  return column === null || column.kind === 'dictionary';
}

function joinedValidity(sources: Source[], rows: number): Uint8Array | null {
  if (sources.every(({ column }) => column !== null && column.validity === null)) return null;
  const out = new Uint8Array(rows);
  let at = 0;
  for (const { column, rows: count } of sources) {
    if (column?.validity) out.set(column.validity, at);
    else if (column !== null) out.fill(1, at, at + count);
    at += count;
  }
  return out;
}

function joinedFixedWidth(storage: FixedWidthStorage, sources: Source[], rows: number): ColumnData {
  switch (storage.kind) {
    case 'boolean':
      return { kind: 'boolean', values: joinedValues(storage.kind, sources, new Uint8Array(rows), 1) };
    case 'int32':
      return { kind: 'int32', values: joinedValues(storage.kind, sources, new Int32Array(rows), 1) };
    case 'int64': {
      const values = new BigInt64Array(rows);
      joinedValues(storage.kind, sources, int32Pairs(values), 2);
      return { kind: 'int64', values };
    }
    case 'float32':
      return { kind: 'float32', values: joinedValues(storage.kind, sources, new Float32Array(rows), 1) };
    case 'float64':
      return { kind: 'float64', values: joinedValues(storage.kind, sources, new Float64Array(rows), 1) };
    case 'fixed': {
      const { kind, width } = storage;
      return { kind, width, values: joinedValues(kind, sources, new Uint8Array(rows * width), width) };
    }
  }
}

type Values = Uint8Array | Int32Array | Float32Array | Float64Array;

function joinedValues<A extends Values>(kind: FixedWidthStorage['kind'], sources: Source[], out: A, perRow: number): A {
  let at = 0;
  for (const { column, rows } of sources) {
    if (column !== null) {
      assert(column.kind === kind, 'a column has the kind of its type');
      out.set(column.kind === 'int64' ? int32Pairs(column.values) : (column.values as Values), at);
    }
    at += rows * perRow;
  }
  return out;
}

/** Null when the parts have more distinct values together than a dictionary may. */
function joinedDictionary(sources: Source[], rows: number, entriesMax: number) {
  const interner = new ByteInterner(entriesMax);
  const codes = new Int32Array(rows);
  let at = 0;
  for (const { column, rows: count } of sources) {
    if (column === null) codes.fill(-1, at, at + count);
    else {
      assert(column.kind === 'dictionary', 'a column has the kind of its type');
      const { bytes, offsets } = column.dictionary;
      const newCodes = new Int32Array(countOf(column.dictionary));
      for (let code = 0; code < newCodes.length; code++) {
        newCodes[code] = interner.intern(bytes, offsets[code], offsets[code + 1]);
        if (newCodes[code] < 0) return null;
      }
      for (let i = 0; i < count; i++) codes[at + i] = column.codes[i] < 0 ? -1 : newCodes[column.codes[i]];
      release(newCodes);
    }
    at += count;
  }
  return { kind: 'dictionary' as const, codes, dictionary: interner.finish() };
}

function joinedBytes(sources: Source[], rows: number): ByteStrings {
  const offsets = new Int32Array(rows + 1);
  let at = 0;
  let end = 0;
  for (const { column, rows: count } of sources) {
    if (column === null) offsets.fill(end, at + 1, at + count + 1);
    else {
      assert(column.kind === 'dictionary' || column.kind === 'bytes', 'a column has the kind of its type');
      const strings = column.kind === 'bytes' ? column.values : column.dictionary;
      for (let i = 0; i < count; i++) {
        const index = column.kind === 'bytes' ? i : column.codes[i];
        if (index >= 0) end += strings.offsets[index + 1] - strings.offsets[index];
        offsets[at + i + 1] = end;
      }
    }
    at += count;
  }
  checkColumnBytes(end);
  const bytes = new Uint8Array(end);
  at = 0;
  for (const { column, rows: count } of sources) {
    if (column?.kind === 'bytes') {
      const { bytes: source, offsets: sourceOffsets } = column.values;
      bytes.set(source.subarray(sourceOffsets[0], sourceOffsets[count]), offsets[at]);
    } else if (column?.kind === 'dictionary') {
      const { bytes: source, offsets: sourceOffsets } = column.dictionary;
      for (let i = 0; i < count; i++) {
        const code = column.codes[i];
        if (code >= 0) bytes.set(source.subarray(sourceOffsets[code], sourceOffsets[code + 1]), offsets[at + i]);
      }
    }
    at += count;
  }
  return { bytes, offsets };
}
