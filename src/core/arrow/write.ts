import { assert } from '../base/assert.ts';
import { concat } from '../base/bytes.ts';
import { ColumnsBuilder } from '../columns/builder.ts';
import { type ByteStrings, type Column, type Columns, entry } from '../columns/columns.ts';
import { pushValue } from '../columns/value.ts';
import { primitive } from '../iceberg/primitive.ts';
import type { NestedField, Schema, Type, Value } from '../iceberg/types.ts';
import { flatbuffer, type Slot, type Table } from './flatbuffer-write.ts';
import { innerFields, schemaTable } from './schema-write.ts';

/**
 * Columns as an Arrow IPC stream (Arrow columnar format, "Encapsulated message format"): the schema, a batch after the
 * other, and a mark of the end. Uncompressed; text is spelled out, since dictionaries would have to be replaced with each
 * batch, which some readers do not take.
 */

/** Message kinds of the union `MessageHeader`. */
const SCHEMA = 1;
const RECORD_BATCH = 3;
/** Metadata version V5. */
const VERSION = 4;

/** The first message of a stream. */
export function schemaMessage(schema: Schema): Uint8Array {
  return message(SCHEMA, schemaTable(schema), []);
}

/** A message with the rows of one batch, of the schema that was sent before. */
export function batchMessage({ schema, rows, columns }: Columns): Uint8Array {
  const body = new Body();
  schema.fields.forEach((field, i) => {
    body.column(field.type, columns[i], rows);
  });
  return message(RECORD_BATCH, body.table(rows), body.parts);
}

/** What ends a stream: a message of no bytes. */
export const END_OF_STREAM: Uint8Array = Uint8Array.of(0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0);

/** A whole stream of one batch. */
export function columnsToIpc(columns: Columns): Uint8Array {
  return concat([schemaMessage(columns.schema), batchMessage(columns), END_OF_STREAM]);
}

function message(kind: number, header: Table, parts: readonly Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const metadata = flatbuffer([
    { bytes: 2, value: VERSION },
    { bytes: 1, value: kind },
    { table: header },
    { bytes: 8, value: length },
  ]);
  // The body begins at a multiple of eight.
  const padded = Math.ceil(metadata.length / 8) * 8;
  const out = new Uint8Array(8 + padded + length);
  const view = new DataView(out.buffer);
  view.setInt32(0, -1, true);
  view.setInt32(4, padded, true);
  out.set(metadata, 8);
  let at = 8 + padded;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

/** Nodes and buffers of one batch, in the order in which readers take them: each column before what is inside of it. */
class Body {
  readonly parts: Uint8Array[] = [];
  readonly #nodes: bigint[] = [];
  readonly #buffers: bigint[] = [];
  #length = 0;

  table(rows: number): Table {
    const pairs = (values: readonly bigint[]): Slot => ({ pairs: BigInt64Array.from(values) });
    return [{ bytes: 8, value: rows }, pairs(this.#nodes), pairs(this.#buffers)];
  }

  column(type: Type, column: Column, rows: number): void {
    this.#node(column.validity, rows);
    if (typeof type !== 'string') {
      assert(column.kind === 'nested', 'a column has the kind of its type');
      this.#nested(type, column.values);
      return;
    }
    const isDecimal = primitive(type).name === 'decimal';
    switch (column.kind) {
      case 'boolean':
        this.#buffer(bitsOf(column.values));
        break;
      case 'int32':
      case 'int64': {
        const bytes = bytesOf(column.values);
        this.#buffer(isDecimal ? widened(bytes, column.values.BYTES_PER_ELEMENT) : bytes);
        break;
      }
      case 'float32':
      case 'float64':
        this.#buffer(bytesOf(column.values));
        break;
      case 'fixed': {
        const { values, width } = column;
        this.#buffer(isDecimal ? widened(reversed(values, width), width) : bytesOf(values));
        break;
      }
      case 'dictionary':
        this.#strings(spelledOut(column.codes, column.dictionary));
        break;
      case 'bytes':
        this.#strings(column.values);
        break;
      case 'nested':
        assert(false, 'a column has the kind of its type');
    }
  }

  #node(validity: Uint8Array | null, rows: number): void {
    let nulls = 0;
    if (validity !== null) for (let row = 0; row < rows; row++) nulls += validity[row] === 0 ? 1 : 0;
    this.#nodes.push(BigInt(rows), BigInt(nulls));
    // Without nulls the buffer may be empty.
    this.#buffer(nulls === 0 || validity === null ? new Uint8Array(0) : bitsOf(validity));
  }

  #buffer(bytes: Uint8Array): void {
    this.#buffers.push(BigInt(this.#length), BigInt(bytes.length));
    const padding = (8 - (bytes.length % 8)) % 8;
    this.parts.push(bytes);
    if (padding > 0) this.parts.push(new Uint8Array(padding));
    this.#length += bytes.length + padding;
  }

  #strings({ bytes, offsets }: ByteStrings): void {
    this.#buffer(bytesOf(offsets));
    this.#buffer(bytes);
  }

  #nested(type: Exclude<Type, string>, values: readonly unknown[]): void {
    const fields = innerFields(type);
    if (type.type === 'struct') {
      for (const field of fields) this.#values(field, values.map(memberOf(field)));
      return;
    }
    const { flat, offsets } = flattened(values, type.type === 'list' ? elementsOf : entriesOf(type));
    this.#buffer(bytesOf(offsets));
    this.#values(fields[0], flat);
  }

  #values(field: NestedField, values: readonly unknown[]): void {
    const builder = new ColumnsBuilder({ type: 'struct', 'schema-id': 0, fields: [field] });
    const [target] = builder.fields;
    for (const value of values) {
      if (value === null || value === undefined) target.pushNull();
      else if (target.kind === 'nested') target.push(value);
      else pushValue(target, value as Value);
      builder.endRow();
    }
    this.column(field.type, builder.finish().columns[0], values.length);
  }
}

function memberOf({ name }: NestedField): (value: unknown) => unknown {
  return (value) => (value === null ? null : ((value as Record<string, unknown>)[name] ?? null));
}

function elementsOf(value: unknown): unknown[] {
  return value as unknown[];
}

/** Entries of a map as values of the struct that Arrow has for them. */
function entriesOf(type: Exclude<Type, string>): (value: unknown) => unknown[] {
  assert(type.type === 'map', 'entries are of a map');
  return (value) => Array.from(value as Map<unknown, unknown>, ([key, held]) => ({ key, value: held }));
}

function flattened(values: readonly unknown[], elements: (value: unknown) => unknown[]) {
  const offsets = new Int32Array(values.length + 1);
  const flat: unknown[] = [];
  values.forEach((value, row) => {
    if (value !== null) for (const element of elements(value)) flat.push(element);
    offsets[row + 1] = flat.length;
  });
  return { flat, offsets };
}

function bitsOf(bytes: Uint8Array): Uint8Array {
  const out = new Uint8Array((bytes.length + 7) >> 3);
  for (let i = 0; i < bytes.length; i++) if (bytes[i] !== 0) out[i >> 3] |= 1 << (i & 7);
  return out;
}

function bytesOf(values: Uint8Array | Int32Array | BigInt64Array | Float32Array | Float64Array): Uint8Array {
  return new Uint8Array(values.buffer, values.byteOffset, values.byteLength);
}

/** Rows of a dictionary column, each as its own text. */
function spelledOut(codes: Int32Array, dictionary: ByteStrings): ByteStrings {
  const offsets = new Int32Array(codes.length + 1);
  let end = 0;
  codes.forEach((code, row) => {
    if (code >= 0) end += dictionary.offsets[code + 1] - dictionary.offsets[code];
    offsets[row + 1] = end;
  });
  const bytes = new Uint8Array(end);
  codes.forEach((code, row) => {
    if (code >= 0) bytes.set(entry(dictionary, code), offsets[row]);
  });
  return { bytes, offsets };
}

function reversed(values: Uint8Array, width: number): Uint8Array {
  const out = new Uint8Array(values.length);
  for (let at = 0; at < values.length; at += width) {
    for (let i = 0; i < width; i++) out[at + i] = values[at + width - 1 - i];
  }
  return out;
}

/** Little-endian integers of `width` bytes as decimals of sixteen. */
function widened(bytes: Uint8Array, width: number): Uint8Array {
  const rows = bytes.length / width;
  const wide = new Uint8Array(rows * 16);
  for (let row = 0; row < rows; row++) {
    const from = row * width;
    wide.set(bytes.subarray(from, from + width), row * 16);
    if (bytes[from + width - 1] >= 0x80) wide.fill(0xff, row * 16 + width, (row + 1) * 16);
  }
  return wide;
}
