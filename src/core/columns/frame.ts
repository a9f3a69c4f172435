import { assert } from '../base/assert.ts';
import { textOf, utf8 } from '../base/bytes.ts';
import { corrupt, SluiceError, unavailable } from '../base/errors.ts';
import { FLUSH_ROWS_MAX } from '../base/limits.ts';
import { xxhash32 } from '../base/xxhash32.ts';
import type { NestedField, Schema } from '../iceberg/types.ts';
import { type ByteStrings, type Column, type Columns, countOf, int32Pairs } from './columns.ts';
import { nullColumn } from './concat.ts';
import { fromExactJson, toExactJson } from './exact-json.ts';
import { FrameReader, FrameWriter } from './frame-bytes.ts';
import { readFloat64s, writeFloat64s } from './frame-floats.ts';
import { readInt32s, readInt64s, writeInt32s, writeInt64s } from './frame-integers.ts';
import { withNullRows, withoutNulls } from './frame-nulls.ts';
import { gatherColumn, sliceStrings, withNulls } from './gather.ts';
import { byteSizeOf } from './row-bytes.ts';
import { storageOf } from './storage.ts';

/**
 * The body of a frame: the columns of one batch in the ledger, compact and quick to write and read.
 *
 * ```
 * version      byte, 1; 2 when there are columns, or types, that its schema does not have (a proposal)
 * schema id    varint
 * rows         varint, at most FLUSH_ROWS_MAX
 * columns      varint, as many as the schema has fields, in its order; each:
 *   field id   varint
 *   form       byte: low half the kind (KINDS), high half the nulls: 0 none, 1 some, 2 all
 *   validity   one bit a row, low bits first; only when some are null
 *   values     of the rows that are not null; nothing when all are null. By kind:
 *     boolean            one bit a value
 *     int32, int64       frame-integers.ts
 *     float32, fixed     as in memory
 *     float64            frame-floats.ts
 *     dictionary         number of entries, entries, codes as int32
 *     bytes              entries
 *     nested             length, and UTF-8 of one JSON list (exact-json.ts)
 *   entries    lengths as int32, then the bytes
 * checksum     xxHash32 of all before, 4 bytes, little endian
 * ```
 *
 * Frames outlive the build that wrote them. Every version ends with the checksum and begins with the version; a build
 * that meets a version it does not know leaves the frame alone (a newer build wrote it).
 */
const VERSION = 1;

/** The same layout. A build that knows nothing of proposals must leave the frame alone: it would take it for a broken one. */
const VERSION_PROPOSING = 2;

const CHECKSUM_BYTES = 4;
const ID_MAX = 2 ** 31 - 1;

/** Kinds by their number in a frame. Only ever appended to. */
const KINDS: readonly Column['kind'][] = [
  'boolean',
  'int32',
  'int64',
  'float32',
  'float64',
  'fixed',
  'dictionary',
  'bytes',
  'nested',
];

const NO_NULLS = 0;
const SOME_NULLS = 1;
const ALL_NULL = 2;

export function encodeFrameBody(columns: Columns, { proposes = false } = {}): Uint8Array {
  assert(columns.rows <= FLUSH_ROWS_MAX, 'a batch fits one flush');
  const writer = new FrameWriter(byteSizeOf(columns) >> 1);
  writer.byte(proposes ? VERSION_PROPOSING : VERSION);
  writer.varint(columns.schema['schema-id']);
  writer.varint(columns.rows);
  writer.varint(columns.columns.length);
  columns.columns.forEach((column, i) => {
    writer.varint(columns.schema.fields[i].id);
    writeColumn(writer, column, columns.rows);
  });
  const bytes = writer.finish(CHECKSUM_BYTES);
  const checked = bytes.length - CHECKSUM_BYTES;
  new DataView(bytes.buffer).setUint32(checked, xxhash32(bytes.subarray(0, checked)), true);
  return bytes;
}

/**
 * The columns behind a frame body. `schema` is the one whose id `schemaIdOfFrame` tells, with what the batch asks of it
 * (`proposedSchema`). The result shares no memory
 * with `bytes`.
 *
 * Throws `corrupt` `frame-corrupt` when the bytes are not what was written or do not belong to the schema;
 * `unavailable` `frame-version-unknown` when a newer build wrote them.
 */
export function decodeFrameBody(bytes: Uint8Array, schema: Schema): Columns {
  const reader = openFrame(bytes);
  const schemaId = reader.varint(ID_MAX);
  if (schemaId !== schema['schema-id']) {
    throw corrupt('frame-corrupt', `frame is of schema ${schemaId}, read with schema ${schema['schema-id']}`);
  }
  try {
    const rows = reader.varint(FLUSH_ROWS_MAX);
    if (reader.varint(ID_MAX) !== schema.fields.length) throw reader.broken('has other columns than its schema');
    const columns = schema.fields.map((field) => readColumn(reader, field, rows));
    if (reader.left !== 0) throw reader.broken('has more bytes than it needs');
    return { schema, rows, columns };
  } catch (cause) {
    if (cause instanceof SluiceError) throw cause;
    throw corrupt('frame-corrupt', `frame of schema ${schemaId} cannot be read: ${cause}`, {}, cause);
  }
}

/** Id of the schema under which a frame body was written. Throws as `decodeFrameBody` does. */
export function schemaIdOfFrame(bytes: Uint8Array): number {
  return openFrame(bytes).varint(ID_MAX);
}

/** A reader behind the version, of bytes that are as they were written. */
function openFrame(bytes: Uint8Array): FrameReader {
  const checked = bytes.length - CHECKSUM_BYTES;
  if (checked < 1) throw corrupt('frame-corrupt', `frame is too short: ${bytes.length} bytes`);
  const stored = new DataView(bytes.buffer, bytes.byteOffset).getUint32(checked, true);
  if (stored !== xxhash32(bytes.subarray(0, checked))) {
    throw corrupt('frame-corrupt', `frame does not match its checksum: ${bytes.length} bytes`);
  }
  const reader = new FrameReader(bytes.subarray(0, checked));
  const version = reader.byte();
  if (version !== VERSION && version !== VERSION_PROPOSING) {
    throw unavailable('frame-version-unknown', `frame is of a version this build does not know: ${version}`, {
      version,
    });
  }
  return reader;
}

function writeColumn(writer: FrameWriter, column: Column, rows: number): void {
  const kind = KINDS.indexOf(column.kind);
  if (column.kind === 'dictionary' && countOf(column.dictionary) > rows) {
    // A slice of other columns, or a foreign dictionary: only entries in use are worth writing.
    const all = Int32Array.from({ length: rows }, (_, row) => row);
    writeColumn(writer, gatherColumn(column, all), rows);
    return;
  }
  const nulls = column.validity === null ? null : withNulls(column.validity);
  if (nulls === null) {
    writer.byte(kind | (NO_NULLS << 4));
    writeValues(writer, column);
  } else if (!nulls.includes(1)) writer.byte(kind | (ALL_NULL << 4));
  else {
    writer.byte(kind | (SOME_NULLS << 4));
    writer.bits(nulls);
    writeValues(writer, withoutNulls(column, nulls, writer.scratch.dense));
  }
}

function readColumn(reader: FrameReader, field: NestedField, rows: number): Column {
  if (reader.varint(ID_MAX) !== field.id) throw reader.broken(`has another column where its schema has ${field.name}`);
  const form = reader.byte();
  const kind = KINDS[form & 15];
  const storage = storageOf(field.type);
  const fits = storage.kind === 'text' ? kind === 'dictionary' || kind === 'bytes' : kind === storage.kind;
  if (!fits) throw reader.broken(`has a column of another kind than its schema: ${field.name}`);
  const width = storage.kind === 'fixed' ? storage.width : 0;
  switch (form >> 4) {
    case NO_NULLS:
      return readValues(reader, kind, width, rows, fresh);
    case SOME_NULLS: {
      const validity = reader.bits(rows);
      let valued = 0;
      for (let row = 0; row < rows; row++) valued += validity[row];
      return withNullRows(readValues(reader, kind, width, valued, reader.scratch.dense.take), validity);
    }
    case ALL_NULL:
      return nullColumn(field, rows);
    default:
      throw reader.broken(`has a column of an unknown form: ${form}`);
  }
}

function writeValues(writer: FrameWriter, column: Column): void {
  switch (column.kind) {
    case 'boolean':
      writer.bits(column.values);
      return;
    case 'int32':
      writeInt32s(writer, column.values);
      return;
    case 'int64':
      writeInt64s(writer, int32Pairs(column.values));
      return;
    case 'float32':
    case 'fixed':
      writer.plane(column.values);
      return;
    case 'float64':
      writeFloat64s(writer, column.values);
      return;
    case 'dictionary':
      writer.varint(countOf(column.dictionary));
      writeEntries(writer, column.dictionary);
      writeInt32s(writer, column.codes);
      return;
    case 'bytes':
      writeEntries(writer, column.values);
      return;
    case 'nested': {
      const text = utf8(toExactJson(column.values));
      writer.varint(text.length);
      writer.plane(text);
      return;
    }
  }
}

type Memory = (bytes: number) => ArrayBuffer;

const fresh: Memory = (bytes) => new ArrayBuffer(bytes);

/** `count` values, none of them null. Those of fixed width are put into `memory`. */
function readValues(reader: FrameReader, kind: Column['kind'], width: number, count: number, memory: Memory): Column {
  switch (kind) {
    case 'boolean':
      return { kind, values: reader.bits(count), validity: null };
    case 'int32': {
      const values = readInt32s(reader, new Int32Array(memory(4 * count), 0, count));
      return { kind, values, validity: null };
    }
    case 'int64': {
      const values = new BigInt64Array(memory(8 * count), 0, count);
      readInt64s(reader, int32Pairs(values));
      return { kind, values, validity: null };
    }
    case 'float32': {
      const values = new Float32Array(memory(4 * count), 0, count);
      reader.fill(values);
      return { kind, values, validity: null };
    }
    case 'float64': {
      const values = new Float64Array(memory(8 * count), 0, count);
      readFloat64s(reader, values);
      return { kind, values, validity: null };
    }
    case 'fixed': {
      reader.expect(width * count);
      const values = new Uint8Array(memory(width * count), 0, width * count);
      reader.fill(values);
      return { kind, width, values, validity: null };
    }
    case 'dictionary': {
      const entries = reader.varint(FLUSH_ROWS_MAX);
      const dictionary = readEntries(reader, entries);
      const codes = readInt32s(reader, new Int32Array(memory(4 * count), 0, count), 0, entries - 1);
      return { kind, codes, dictionary, validity: null };
    }
    case 'bytes':
      return { kind, values: readEntries(reader, count), validity: null };
    case 'nested': {
      const text = textOf(reader.copy(reader.varint(reader.left)));
      const values = fromExactJson(text);
      if (!Array.isArray(values) || values.length !== count) throw reader.broken('has a wrong number of nested values');
      return { kind, values, validity: null };
    }
  }
}

function writeEntries(writer: FrameWriter, strings: ByteStrings): void {
  const count = countOf(strings);
  const lengths = new Int32Array(count);
  for (let i = 0; i < count; i++) lengths[i] = strings.offsets[i + 1] - strings.offsets[i];
  writeInt32s(writer, lengths);
  writer.plane(sliceStrings(strings, 0, count).bytes);
}

function readEntries(reader: FrameReader, count: number): ByteStrings {
  const offsets = new Int32Array(count + 1);
  const lengths = readInt32s(reader, new Int32Array(count), 0);
  let end = 0;
  for (let i = 0; i < count; i++) {
    end += lengths[i];
    offsets[i + 1] = end;
  }
  return { bytes: reader.copy(end), offsets };
}
