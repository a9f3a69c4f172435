import { BATCH_COLUMN_BYTES_MAX, FOREIGN_ELEMENTS_MAX } from '../base/limits.ts';
import type { ByteStrings } from '../columns/columns.ts';
import type { ForeignColumn, ForeignData } from '../columns/foreign.ts';
import { halvesOf } from '../columns/halves.ts';
import { type BatchBuffers, float32s, float64s, int16s, int32s, int64s, uint16s, uint32s, uint64s } from './buffers.ts';
import { malformed } from './flatbuffer.ts';
import type { ArrowField } from './schema.ts';

/** The entries of a dictionary by its id; null when none were sent yet. */
export type DictionaryOf = (id: bigint) => ForeignColumn | null;

/**
 * Takes one column out of a batch, with all that is in it. Lengths, offsets and codes are checked, so the column can be read
 * without further checks. Throws `invalid` `malformed-body`.
 */
export function readColumn(field: ArrowField, buffers: BatchBuffers, dictionaryOf: DictionaryOf): ForeignColumn {
  if (field.dictionary !== null) return encodedColumn(field, buffers, dictionaryOf);
  return plainColumn(field, buffers, dictionaryOf);
}

/** The column as if it were not dictionary-encoded: so are the entries themselves. */
export function plainColumn(field: ArrowField, buffers: BatchBuffers, dictionaryOf: DictionaryOf): ForeignColumn {
  const { length: rows, nulls } = buffers.nextNode();
  if (rows > FOREIGN_ELEMENTS_MAX) throw malformed(`column ${field.name} has ${rows} values`);
  const { layout, type } = field;
  if (layout.kind === 'other') throw malformed(`column ${field.name} has a type that is not read`);
  if (layout.kind === 'none') return { type, rows, validity: new Uint8Array(rows), data: { form: 'none' } };
  const validity = validityOf(buffers, rows, nulls);
  const data = dataOf(field, rows, validity, buffers, dictionaryOf);
  return { type, rows, validity, data };
}

function dataOf(
  field: ArrowField,
  rows: number,
  validity: Uint8Array | null,
  buffers: BatchBuffers,
  dictionaryOf: DictionaryOf,
): ForeignData {
  const { layout, name } = field;
  switch (layout.kind) {
    case 'bits':
      return { form: 'numbers', values: bitsOf(buffers.nextOf((rows + 7) >> 3), rows) };
    case 'integers':
      return integersOf(buffers.nextOf((rows * layout.bits) / 8), layout);
    case 'floats':
      return { form: 'numbers', values: floatsOf(buffers.nextOf((rows * layout.bits) / 8), layout.bits) };
    case 'fixed':
      return { form: 'fixed', width: layout.width, bigEndian: false, values: buffers.nextOf(rows * layout.width) };
    case 'strings': {
      const offsets = offsetsOf(buffers, rows, layout.large, name);
      const bytes = buffers.next();
      if (offsets[rows] > bytes.length) throw malformed(`texts of column ${name} run past their buffer`);
      return { form: 'strings', strings: { bytes, offsets } };
    }
    case 'views':
      return { form: 'strings', strings: viewsOf(buffers, rows, validity, name) };
    case 'list': {
      const offsets = offsetsOf(buffers, rows, layout.large, name);
      return listOf(field, offsets, rows, buffers, dictionaryOf);
    }
    case 'fixed-list': {
      const { size } = layout;
      if (rows * size > FOREIGN_ELEMENTS_MAX) throw malformed(`lists of column ${name} have ${rows * size} elements`);
      const offsets = Int32Array.from({ length: rows + 1 }, (_, row) => row * size);
      return listOf(field, offsets, rows, buffers, dictionaryOf);
    }
    case 'struct': {
      const children = field.children.map((child) => readColumn(child, buffers, dictionaryOf));
      for (const child of children) if (child.rows < rows) throw malformed(`struct ${name} has a field of fewer rows`);
      return { form: 'struct', children };
    }
    default:
      throw malformed(`column ${name} has a type that is not read`);
  }
}

function listOf(
  field: ArrowField,
  offsets: Int32Array,
  rows: number,
  buffers: BatchBuffers,
  dictionaryOf: DictionaryOf,
): ForeignData {
  const child = readColumn(field.children[0], buffers, dictionaryOf);
  if (offsets[rows] > child.rows) throw malformed(`lists of column ${field.name} run past their elements`);
  return { form: 'list', offsets, child };
}

/** One byte a row instead of one bit; null where there are no nulls. Writers may leave the buffer out then. */
function validityOf(buffers: BatchBuffers, rows: number, nulls: number): Uint8Array | null {
  const bytes = buffers.next();
  if (nulls === 0) return null;
  const length = (rows + 7) >> 3;
  if (bytes.length < length) throw malformed('nulls are counted and not marked');
  const validity = bitsOf(bytes, rows);
  return validity.includes(0) ? validity : null;
}

function bitsOf(bytes: Uint8Array, rows: number): Uint8Array {
  const out = new Uint8Array(rows);
  for (let row = 0; row < rows; row++) out[row] = (bytes[row >> 3] >> (row & 7)) & 1;
  return out;
}

function integersOf(bytes: Uint8Array, { bits, signed }: { bits: 8 | 16 | 32 | 64; signed: boolean }): ForeignData {
  switch (bits) {
    case 8:
      return { form: 'numbers', values: signed ? new Int8Array(bytes.buffer, bytes.byteOffset, bytes.length) : bytes };
    case 16:
      return { form: 'numbers', values: signed ? int16s(bytes) : uint16s(bytes) };
    case 32:
      return { form: 'numbers', values: signed ? int32s(bytes) : uint32s(bytes) };
    case 64:
      return { form: 'int64', values: signed ? int64s(bytes) : uint64s(bytes) };
  }
}

function floatsOf(bytes: Uint8Array, bits: 16 | 32 | 64): Float32Array | Float64Array {
  if (bits === 32) return float32s(bytes);
  return bits === 64 ? float64s(bytes) : halvesOf(uint16s(bytes));
}

/** Ends of strings or lists, as int32 and never falling. No rows may come without even the first offset. */
function offsetsOf(buffers: BatchBuffers, rows: number, large: boolean, name: string): Int32Array {
  const bytes = buffers.next();
  const width = large ? 8 : 4;
  if (rows === 0 && bytes.length < width) return new Int32Array(1);
  if (bytes.length < (rows + 1) * width) throw malformed(`offsets of column ${name} are too few`);
  const given = int32s(bytes.subarray(0, (rows + 1) * width));
  const offsets = large ? lowHalves(given, name) : given;
  let last = 0;
  for (let i = 0; i <= rows; i++) {
    if (offsets[i] < last) throw malformed(`offsets of column ${name} go backwards`);
    last = offsets[i];
  }
  return offsets;
}

function lowHalves(pairs: Int32Array, name: string): Int32Array {
  const out = new Int32Array(pairs.length / 2);
  for (let i = 0; i < out.length; i++) {
    if (pairs[2 * i + 1] !== 0) throw malformed(`offsets of column ${name} are out of range`);
    out[i] = pairs[2 * i];
  }
  return out;
}

/** Short strings stand in their views, long ones in one of the data buffers. */
function viewsOf(buffers: BatchBuffers, rows: number, validity: Uint8Array | null, name: string): ByteStrings {
  const views = buffers.nextOf(rows * 16);
  const data: Uint8Array[] = [];
  for (let left = buffers.nextVariadic(); left > 0; left--) data.push(buffers.next());
  const words = new DataView(views.buffer, views.byteOffset, views.length);
  const offsets = new Int32Array(rows + 1);
  let end = 0;
  for (let row = 0; row < rows; row++) {
    const isValue = validity === null || validity[row] === 1;
    const length = isValue ? words.getInt32(row * 16, true) : 0;
    end += length;
    if (length < 0 || end > BATCH_COLUMN_BYTES_MAX) throw malformed(`texts of column ${name} are too long`);
    offsets[row + 1] = end;
  }
  const bytes = new Uint8Array(end);
  for (let row = 0; row < rows; row++) {
    const length = offsets[row + 1] - offsets[row];
    if (length <= 12) bytes.set(views.subarray(row * 16 + 4, row * 16 + 4 + length), offsets[row]);
    else {
      const source = data[words.getInt32(row * 16 + 8, true)];
      const from = words.getInt32(row * 16 + 12, true);
      if (source === undefined || from < 0 || from + length > source.length) {
        throw malformed(`texts of column ${name} run past their buffer`);
      }
      bytes.set(source.subarray(from, from + length), offsets[row]);
    }
  }
  return { bytes, offsets };
}

function encodedColumn(field: ArrowField, buffers: BatchBuffers, dictionaryOf: DictionaryOf): ForeignColumn {
  const { name, type, dictionary } = field;
  if (dictionary === null) throw malformed(`column ${name} has no dictionary`);
  const { length: rows, nulls } = buffers.nextNode();
  if (rows > FOREIGN_ELEMENTS_MAX) throw malformed(`column ${name} has ${rows} values`);
  const given = validityOf(buffers, rows, nulls);
  const indexes = integersOf(buffers.nextOf((rows * dictionary.bits) / 8), dictionary);
  const entries = dictionaryOf(dictionary.id);
  const count = entries?.rows ?? 0;
  const codes = new Int32Array(rows);
  let validity = given;
  for (let row = 0; row < rows; row++) {
    if (given !== null && given[row] === 0) continue;
    const code = indexes.form === 'int64' || indexes.form === 'numbers' ? Number(indexes.values[row]) : -1;
    if (entries === null) throw malformed(`dictionary ${dictionary.id} of column ${name} is missing`);
    if (!(code >= 0 && code < count)) throw malformed(`column ${name} names entry ${code} of a dictionary of ${count}`);
    codes[row] = code;
    if (entries.validity !== null && entries.validity[code] === 0) {
      if (validity === given) validity = given === null ? new Uint8Array(rows).fill(1) : given.slice();
      if (validity !== null) validity[row] = 0;
    }
  }
  if (entries === null) return { type, rows, validity: new Uint8Array(rows), data: { form: 'none' } };
  return { type, rows, validity, data: { form: 'dictionary', codes, entries } };
}
