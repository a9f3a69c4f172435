import { assert } from '../base/assert.ts';
import { shownText, utf8 } from '../base/bytes.ts';
import { formatUuid } from '../base/ids.ts';
import { JSON_PIECE_CHARS } from '../base/limits.ts';
import { primitive } from '../iceberg/primitive.ts';
import { fromTwosComplement } from '../iceberg/single-value.ts';
import type { PrimitiveType, Type } from '../iceberg/types.ts';
import { toBase64 } from './base64.ts';
import { type ByteStrings, type Column, type Columns, entry, int32Pairs, isNull } from './columns.ts';
import { dayText, timeOfDayText, timestampText, timestampTexts } from './time-text.ts';

/**
 * Rows as JSON text, a piece at a time. What comes out can be sent in again and is the same values:
 *
 * | type                       | JSON                                                                              |
 * |----------------------------|-----------------------------------------------------------------------------------|
 * | boolean                    | true, false                                                                       |
 * | int                        | a number                                                                          |
 * | long                       | a number up to 2^53 - 1, beyond that its digits as text: clients would round them |
 * | float, double              | the shortest number that is read back alike, -0 too; "NaN", "Infinity", "-Infinity" |
 * | decimal                    | text with all digits of its scale: "12.50"                                        |
 * | date, time                 | "2026-01-03", "12:34:56.789012"                                                   |
 * | timestamptz, timestamp     | "2026-01-03T12:34:56.789012Z", without the Z                                      |
 * | string, uuid               | text; U+FFFD for what another writer's string has that is no UTF-8                |
 * | fixed, binary              | base64 with padding                                                               |
 * | list, struct               | a list, an object with each of its fields                                         |
 * | map                        | an object where keys are texts, else a list of [key, value]                       |
 *
 * Each row has all columns in their order, null where it has no value.
 */
export function* jsonLines(columns: Columns): Generator<Uint8Array> {
  yield* pieces(columns, '', '\n');
}

/** The rows as elements of a list, without its brackets. */
export function* jsonElements(columns: Columns): Generator<Uint8Array> {
  yield* pieces(columns, ',', '');
}

function* pieces(columns: Columns, between: string, behind: string): Generator<Uint8Array> {
  const textOfRow = rowTexts(columns);
  let text = '';
  for (let row = 0; row < columns.rows; row++) {
    if (row > 0) text += between;
    text += textOfRow(row) + behind;
    if (text.length < JSON_PIECE_CHARS) continue;
    yield utf8(text);
    text = '';
  }
  if (text !== '') yield utf8(text);
}

function rowTexts({ schema, columns }: Columns): (row: number) => string {
  const cells = columns.map((column, i) => {
    const { name, type } = schema.fields[i];
    return { head: `${i === 0 ? '{' : ','}${JSON.stringify(name)}:`, column, textOf: cellTexts(column, type) };
  });
  return (row) => {
    let text = cells.length === 0 ? '{' : '';
    for (const cell of cells) text += cell.head + (isNull(cell.column, row) ? 'null' : cell.textOf(row));
    return `${text}}`;
  };
}

/** Texts of the rows of a column that have a value. */
function cellTexts(column: Column, type: Type): (row: number) => string {
  if (column.kind === 'nested' || typeof type !== 'string') {
    assert(column.kind === 'nested' && typeof type !== 'string', 'a column has the kind of its type');
    return (row) => nestedText(type, column.values[row]);
  }
  const shape = primitive(type);
  switch (column.kind) {
    case 'boolean':
      return (row) => (column.values[row] === 0 ? 'false' : 'true');
    case 'int32': {
      const { values } = column;
      if (shape.name === 'decimal') return (row) => decimalText(BigInt(values[row]), shape.scale);
      return shape.name === 'date' ? (row) => `"${dayText(values[row])}"` : (row) => String(values[row]);
    }
    case 'int64':
      return int64Texts(column.values, type);
    case 'float32':
      return (row) => floatText(column.values[row]);
    case 'float64':
      return (row) => doubleText(column.values[row]);
    case 'fixed': {
      const { values, width } = column;
      return (row) => primitiveText(type, fixedValue(values.subarray(row * width, (row + 1) * width), type));
    }
    case 'dictionary':
      return entryTexts(column.codes, column.dictionary, type);
    case 'bytes':
      return (row) => stringText(entry(column.values, row), type);
  }
}

function int64Texts(values: BigInt64Array, type: PrimitiveType): (row: number) => string {
  const { name } = primitive(type);
  if (name === 'timestamp' || name === 'timestamptz') {
    const textOfTime = timestampTexts(values);
    return name === 'timestamp' ? (row) => `"${textOfTime(row)}"` : (row) => `"${textOfTime(row)}Z"`;
  }
  if (name !== 'long') return (row) => primitiveText(type, values[row]);
  const pairs = int32Pairs(values);
  return (row) => {
    const high = pairs[2 * row + 1];
    // Numbers of 53 bits without a bigint on the way.
    return high >= -0x1f_ffff && high < 0x20_0000
      ? String(high * 2 ** 32 + (pairs[2 * row] >>> 0))
      : longText(values[row]);
  };
}

/** Each entry of a dictionary is spelled once. */
function entryTexts(codes: Int32Array, dictionary: ByteStrings, type: PrimitiveType): (row: number) => string {
  const texts: string[] = [];
  return (row) => {
    const code = codes[row];
    texts[code] ??= stringText(entry(dictionary, code), type);
    return texts[code];
  };
}

function stringText(bytes: Uint8Array, type: PrimitiveType): string {
  return type === 'string' ? JSON.stringify(shownText(bytes)) : `"${toBase64(bytes)}"`;
}

function fixedValue(bytes: Uint8Array, type: PrimitiveType): unknown {
  return primitive(type).name === 'decimal' ? fromTwosComplement(bytes) : bytes;
}

/** JSON of a value as `Value` has it. */
function primitiveText(type: PrimitiveType, value: unknown): string {
  const shape = primitive(type);
  switch (shape.name) {
    case 'boolean':
    case 'int':
      return String(value);
    case 'long':
      return longText(BigInt(value as bigint));
    case 'float':
      return floatText(value as number);
    case 'double':
      return doubleText(value as number);
    case 'decimal':
      return decimalText(BigInt(value as bigint), shape.scale);
    case 'date':
      return `"${dayText(value as number)}"`;
    case 'time':
      return `"${timeOfDayText(Number(value))}"`;
    case 'timestamp':
      return `"${timestampText(BigInt(value as bigint))}"`;
    case 'timestamptz':
      return `"${timestampText(BigInt(value as bigint))}Z"`;
    case 'string':
      return JSON.stringify(value);
    case 'uuid':
      return `"${formatUuid(value as Uint8Array)}"`;
    case 'fixed':
    case 'binary':
      return `"${toBase64(value as Uint8Array)}"`;
  }
}

function nestedText(type: Type, value: unknown): string {
  if (value === null || value === undefined) return 'null';
  if (typeof type === 'string') return primitiveText(type, value);
  switch (type.type) {
    case 'list':
      return `[${(value as unknown[]).map((element) => nestedText(type.element, element)).join(',')}]`;
    case 'struct': {
      const held = value as Record<string, unknown>;
      return `{${type.fields.map(({ name, type: inner }) => `${JSON.stringify(name)}:${nestedText(inner, held[name])}`).join(',')}}`;
    }
    case 'map': {
      const entries = Array.from(value as Map<unknown, unknown>, ([key, inner]) => [
        nestedText(type.key, key),
        nestedText(type.value, inner),
      ]);
      if (type.key === 'string') return `{${entries.map(([key, inner]) => `${key}:${inner}`).join(',')}}`;
      return `[${entries.map(([key, inner]) => `[${key},${inner}]`).join(',')}]`;
    }
  }
}

function longText(value: bigint): string {
  return value <= Number.MAX_SAFE_INTEGER && value >= Number.MIN_SAFE_INTEGER ? String(value) : `"${value}"`;
}

function doubleText(value: number): string {
  if (!Number.isFinite(value)) return `"${value}"`;
  return Object.is(value, -0) ? '-0' : String(value);
}

/** The fewest digits that make the same float: 0.1, where its double has 0.10000000149011612. */
function floatText(value: number): string {
  for (let digits = 6; digits < 9; digits++) {
    const short = Number(value.toPrecision(digits));
    if (Object.is(Math.fround(short), value)) return doubleText(short);
  }
  return doubleText(value);
}

function decimalText(unscaled: bigint, scale: number): string {
  const digits = String(unscaled < 0n ? -unscaled : unscaled).padStart(scale + 1, '0');
  const point = digits.length - scale;
  const fraction = scale === 0 ? '' : `.${digits.slice(point)}`;
  return `"${unscaled < 0n ? '-' : ''}${digits.slice(0, point)}${fraction}"`;
}
