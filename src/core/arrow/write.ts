import {
  Schema as ArrowSchema,
  Binary,
  Bool,
  type Data,
  type DataType,
  DateDay,
  Decimal,
  Dictionary,
  Field,
  FixedSizeBinary,
  Float32,
  Float64,
  Int32,
  Int64,
  List,
  Map_,
  makeData,
  RecordBatch,
  RecordBatchStreamWriter,
  Struct,
  TimeMicrosecond,
  TimestampMicrosecond,
  Utf8,
  Vector,
} from 'apache-arrow';
import { assert } from '../base/assert.ts';
import { ColumnsBuilder } from '../columns/builder.ts';
import { type ByteStrings, type Column, type Columns, countOf } from '../columns/columns.ts';
import { pushValue } from '../columns/value.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, Type, Value } from '../iceberg/types.ts';

/**
 * Columns as an Arrow IPC stream of one batch, uncompressed. Text of few distinct values stays a dictionary. The one
 * importer of apache-arrow, of which only what takes typed arrays is used: its builders, and all that goes through
 * them, generate code at run time, which the platform refuses.
 */
export function columnsToIpc({ schema, rows, columns }: Columns): Uint8Array {
  const made = schema.fields.map((field, i) => dataOf(field.type, columns[i], rows));
  const fields = schema.fields.map(({ name, required }, i) => new Field(name, made[i].type, !required));
  const arrowSchema = new ArrowSchema(fields);
  const data = makeData({ type: new Struct(fields), length: rows, nullCount: 0, children: made });
  const writer = new RecordBatchStreamWriter();
  writer.reset(undefined, arrowSchema);
  writer.write(new RecordBatch(arrowSchema, data as Data<Struct>));
  writer.finish();
  return writer.toUint8Array(true);
}

function dataOf(type: Type, column: Column, rows: number): Data {
  const nulls = nullsOf(column.validity, rows);
  if (typeof type !== 'string') {
    assert(column.kind === 'nested', 'a column has the kind of its type');
    return nestedData(type, column.values, nulls);
  }
  const shape = primitive(type);
  switch (column.kind) {
    case 'boolean':
      return makeData({ type: new Bool(), ...nulls, data: bitsOf(column.values) });
    case 'int32':
      if (shape.name === 'decimal') return decimals(shape, widened(column.values), 4, nulls);
      if (shape.name === 'date') return makeData({ type: new DateDay(), ...nulls, data: column.values });
      return makeData({ type: new Int32(), ...nulls, data: column.values });
    case 'int64':
      switch (shape.name) {
        case 'decimal':
          return decimals(shape, bytesOf(column.values), 8, nulls);
        case 'time':
          return makeData({ type: new TimeMicrosecond(), ...nulls, data: column.values });
        case 'timestamp':
          return makeData({ type: new TimestampMicrosecond(), ...nulls, data: column.values });
        case 'timestamptz':
          return makeData({ type: new TimestampMicrosecond('UTC'), ...nulls, data: column.values });
        default:
          return makeData({ type: new Int64(), ...nulls, data: column.values });
      }
    case 'float32':
      return makeData({ type: new Float32(), ...nulls, data: column.values });
    case 'float64':
      return makeData({ type: new Float64(), ...nulls, data: column.values });
    case 'fixed':
      if (shape.name === 'decimal') return decimals(shape, reversed(column.values, column.width), column.width, nulls);
      return makeData({ type: new FixedSizeBinary(column.width), ...nulls, data: column.values });
    case 'dictionary': {
      const codes = column.codes.map((code) => Math.max(code, 0));
      const entries = stringData(shape.name, column.dictionary, { length: countOf(column.dictionary), nullCount: 0 });
      const encoded = new Dictionary(entries.type as Utf8, new Int32());
      return makeData({ type: encoded, ...nulls, data: codes, dictionary: new Vector([entries]) as Vector<Utf8> });
    }
    case 'bytes':
      return stringData(shape.name, column.values, nulls);
    case 'nested':
      assert(false, 'a column has the kind of its type');
  }
}

interface Nulls {
  length: number;
  nullCount: number;
  nullBitmap?: Uint8Array;
}

function nullsOf(validity: Uint8Array | null, length: number): Nulls {
  if (validity === null) return { length, nullCount: 0 };
  let nullCount = 0;
  for (let row = 0; row < length; row++) nullCount += validity[row] === 0 ? 1 : 0;
  return { length, nullCount, nullBitmap: bitsOf(validity) };
}

function bitsOf(bytes: Uint8Array): Uint8Array {
  // Padded as the format asks.
  const out = new Uint8Array(Math.ceil(bytes.length / 64) * 8);
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) out[i >> 3] |= 1 << (i & 7);
  return out;
}

function stringData(name: string, { bytes, offsets }: ByteStrings, nulls: Nulls): Data {
  const given = { ...nulls, valueOffsets: offsets, data: bytes };
  return name === 'string' ? makeData({ type: new Utf8(), ...given }) : makeData({ type: new Binary(), ...given });
}

function widened(values: Int32Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function bytesOf(values: BigInt64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

function reversed(values: Uint8Array, width: number): Uint8Array {
  const out = new Uint8Array(values.length);
  for (let at = 0; at < values.length; at += width) {
    for (let i = 0; i < width; i++) out[at + i] = values[at + width - 1 - i];
  }
  return out;
}

/** Little-endian integers of `width` bytes as decimals of sixteen. */
function decimals(shape: { precision: number; scale: number }, bytes: Uint8Array, width: number, nulls: Nulls): Data {
  const wide = new Uint8Array(nulls.length * 16);
  for (let row = 0; row < nulls.length; row++) {
    const from = row * width;
    wide.set(bytes.subarray(from, from + width), row * 16);
    if (bytes[from + width - 1] >= 0x80) wide.fill(0xff, row * 16 + width, (row + 1) * 16);
  }
  const words = new Uint32Array(wide.buffer);
  return makeData({ type: new Decimal(shape.scale, shape.precision, 128), ...nulls, data: words });
}

function nestedData(type: Exclude<Type, string>, values: readonly unknown[], nulls: Nulls): Data {
  switch (type.type) {
    case 'list': {
      const field = { id: type['element-id'], name: 'element', required: type['element-required'], type: type.element };
      const { flat, offsets } = flattened(values, (value) => value as unknown[]);
      const child = dataOfValues(field, flat);
      const list = new List(new Field(field.name, child.type, !field.required));
      return makeData({ type: list, ...nulls, valueOffsets: offsets, child });
    }
    case 'map': {
      const { flat, offsets } = flattened(values, (value) => [...(value as Map<unknown, unknown>)]);
      const key: NestedField = { id: type['key-id'], name: 'key', required: true, type: type.key };
      const required = type['value-required'];
      const value: NestedField = { id: type['value-id'], name: 'value', required, type: type.value };
      const entries = structData([key, value], [flat.map(([held]) => held), flat.map(([, held]) => held)], {
        length: flat.length,
        nullCount: 0,
      });
      const map = new Map_<DataType, DataType>(new Field('entries', entries.type as never, false));
      return makeData({ type: map, ...nulls, valueOffsets: offsets, child: entries as never });
    }
    case 'struct': {
      const parts = type.fields.map(({ name }) =>
        values.map((value) => (value === null ? null : ((value as Record<string, unknown>)[name] ?? null))),
      );
      return structData(type.fields, parts, nulls);
    }
  }
}

function structData(fields: readonly NestedField[], parts: readonly unknown[][], nulls: Nulls): Data {
  const children = fields.map((field, i) => dataOfValues(field, parts[i]));
  const type = new Struct(fields.map(({ name, required }, i) => new Field(name, children[i].type, !required)));
  return makeData({ type, ...nulls, children });
}

function flattened<T>(values: readonly unknown[], elements: (value: unknown) => T[]) {
  const offsets = new Int32Array(values.length + 1);
  const flat: T[] = [];
  values.forEach((value, row) => {
    if (value !== null) for (const element of elements(value)) flat.push(element);
    offsets[row + 1] = flat.length;
  });
  return { flat, offsets };
}

function dataOfValues(field: NestedField, values: readonly unknown[]): Data {
  const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': 0, fields: [field] });
  const [target] = builder.fields;
  for (const value of values) {
    if (value === null || value === undefined) target.pushNull();
    else if (target.kind === 'nested') target.push(value);
    else pushValue(target, value as Value);
    builder.endRow();
  }
  return dataOf(field.type, builder.finish().columns[0], values.length);
}
