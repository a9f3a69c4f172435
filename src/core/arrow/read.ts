import type { Decompress } from '../base/codecs.ts';
import { invalid, type SluiceError } from '../base/errors.ts';
import { ARROW_MESSAGES_MAX, BODY_BYTES_MAX } from '../base/limits.ts';
import type { ForeignBatch } from '../columns/foreign.ts';
import { BatchBuffers, type BodyReading } from './buffers.ts';
import { plainColumn, readColumn } from './columns.ts';
import { Dictionaries } from './dictionaries.ts';
import { FlatTable, type FlatVector, malformed } from './flatbuffer.ts';
import { type ArrowField, readSchema } from './schema.ts';

/**
 * Arrow IPC (https://arrow.apache.org/docs/format/Columnar.html, "Serialization and Interprocess Communication"), both
 * streams and files, as columns that are views of the body wherever the layout allows.
 *
 * The metadata is read with a reader of its own, not with apache-arrow's: that one believes every count and length, so a
 * body of a few bytes could keep it busy for minutes, and makes columns that read beyond their buffers.
 */
export interface ArrowBody {
  fields: ArrowField[];
  /** Rows of all batches, told before any is read. */
  rows: number;
  /** The batches, each read when it is asked for. */
  batches(): Generator<ForeignBatch>;
}

/** Of the union MessageHeader. */
const SCHEMA = 1;
const DICTIONARY_BATCH = 2;
const RECORD_BATCH = 3;

/** Metadata version V4 (Arrow 0.8): since then the layout has not changed. */
const VERSION_MIN = 3;

interface Message {
  kind: number;
  header: FlatTable;
  body: Uint8Array;
}

/**
 * Takes a stream apart. It must end with its end-of-stream mark: one without it may have been cut between two batches.
 *
 * Throws `invalid`: `empty-body`, `malformed-body`, `truncated-body`, `trailing-data`; the batches also
 * `unsupported-compression` and `body-too-large`.
 */
export function readArrowStream(bytes: Uint8Array, decompress: Decompress): ArrowBody {
  if (bytes.length === 0) throw empty();
  if (hasMagic(bytes, 0)) throw malformed('is a file; its content type is application/vnd.apache.arrow.file');
  const view = viewOf(bytes);
  const messages: Message[] = [];
  let at = 0;
  for (;;) {
    if (at + 4 > bytes.length) throw truncated(messages);
    let length = view.getInt32(at, true);
    at += 4;
    // Before Arrow 0.15 the length stood first.
    if (length === CONTINUATION) {
      if (at + 4 > bytes.length) throw truncated(messages);
      length = view.getInt32(at, true);
      at += 4;
    }
    if (length === 0) break;
    if (length < 0 || (messages.length === 0 && length > bytes.length - at)) throw malformed('is no Arrow IPC stream');
    const { message, end } = messageAt(bytes, at, length, messages);
    messages.push(message);
    at = end;
  }
  if (at < bytes.length) {
    throw invalid('trailing-data', `arrow body: goes on behind its end, at byte ${at + 1}`, { byte: at + 1 });
  }
  const [first, ...rest] = messages;
  if (first === undefined) throw empty();
  if (first.kind !== SCHEMA) throw malformed('does not begin with a schema');
  return bodyOf(readSchema(first.header), rest, decompress);
}

/** As `readArrowStream`, for the file format, whose footer says where its batches lie. */
export function readArrowFile(bytes: Uint8Array, decompress: Decompress): ArrowBody {
  if (bytes.length === 0) throw empty();
  if (!hasMagic(bytes, 0)) throw malformed('is no Arrow file: it does not begin with ARROW1');
  if (bytes.length < 20 || !hasMagic(bytes, bytes.length - 6)) throw truncated([]);
  const view = viewOf(bytes);
  const length = view.getInt32(bytes.length - 10, true);
  const start = bytes.length - 10 - length;
  if (length <= 0 || start < 8) throw malformed('footer lies outside of the file');
  const footer = FlatTable.root(bytes.subarray(start, start + length));
  const schema = footer.table(1);
  if (schema === null) throw malformed('footer has no schema');
  const messages: Message[] = [];
  // All dictionaries first: in a file they may stand behind the batches that need them.
  for (const [field, kind] of [
    [2, DICTIONARY_BATCH],
    [3, RECORD_BATCH],
  ]) {
    const blocks: FlatVector = footer.vector(field, 24);
    for (let i = 0; i < blocks.length; i++) {
      const at = footer.sizeAt(blocks.at + 24 * i);
      if (at + 8 > start) throw malformed('block lies outside of the file');
      const prefixed = view.getInt32(at, true) === CONTINUATION;
      const metadata = view.getInt32(prefixed ? at + 4 : at, true);
      if (metadata <= 0) throw malformed('block holds no message');
      const { message } = messageAt(bytes.subarray(0, start), prefixed ? at + 8 : at + 4, metadata, messages);
      if (message.kind !== kind) throw malformed('block holds another message than the footer says');
      messages.push(message);
    }
  }
  return bodyOf(readSchema(schema), messages, decompress);
}

const CONTINUATION = -1;

function messageAt(bytes: Uint8Array, at: number, length: number, before: readonly Message[]) {
  if (before.length >= ARROW_MESSAGES_MAX) {
    const detail = { messagesMax: ARROW_MESSAGES_MAX };
    throw invalid(
      'malformed-body',
      `arrow body: has more than ${ARROW_MESSAGES_MAX} messages: make larger batches`,
      detail,
    );
  }
  const bodyAt = at + length;
  if (bodyAt > bytes.length) throw truncated(before);
  const table = FlatTable.root(bytes.subarray(at, bodyAt));
  if (table.int16(0) < VERSION_MIN) throw malformed('is of a version before Arrow 0.8');
  const kind = table.uint8(1);
  const header = table.table(2);
  if (header === null || kind < SCHEMA || kind > RECORD_BATCH) throw malformed(`holds a message of kind ${kind}`);
  const end = bodyAt + table.size(3);
  if (end > bytes.length) throw truncated(before);
  return { message: { kind, header, body: bytes.subarray(bodyAt, end) }, end };
}

function bodyOf(fields: ArrowField[], messages: readonly Message[], decompress: Decompress): ArrowBody {
  const encoded = new Map<bigint, ArrowField>();
  findEncoded(fields, encoded);
  let rows = 0;
  for (const { kind, header } of messages) {
    if (kind === SCHEMA) throw malformed('has a second schema');
    if (kind === RECORD_BATCH) rows += header.size(0);
  }
  return { fields, rows, batches: () => batchesOf(fields, encoded, messages, decompress) };
}

function* batchesOf(
  fields: readonly ArrowField[],
  encoded: ReadonlyMap<bigint, ArrowField>,
  messages: readonly Message[],
  decompress: Decompress,
): Generator<ForeignBatch> {
  const dictionaries = new Dictionaries();
  const dictionaryOf = (id: bigint) => dictionaries.get(id);
  const reading: BodyReading = { decompress, inflatable: BODY_BYTES_MAX };
  for (const { kind, header, body } of messages) {
    if (kind === DICTIONARY_BATCH) {
      const id = header.int64(0);
      const field = encoded.get(id);
      const batch = header.table(1);
      // Nothing asks for it.
      if (field === undefined) continue;
      if (batch === null) throw malformed(`dictionary ${id} has no entries`);
      const column = plainColumn(field, new BatchBuffers(batch, body, reading), dictionaryOf);
      if (header.uint8(2) !== 0) dictionaries.extend(id, column);
      else dictionaries.replace(id, column);
      continue;
    }
    const buffers = new BatchBuffers(header, body, reading);
    const { rows } = buffers;
    const columns = fields.map((field) => {
      const column = readColumn(field, buffers, dictionaryOf);
      if (column.rows !== rows) throw malformed(`column ${field.name} has ${column.rows} of ${rows} rows`);
      return column;
    });
    yield { rows, columns };
  }
}

/** The dictionary-encoded fields by the id of their dictionary, inner ones too. */
function findEncoded(fields: readonly ArrowField[], out: Map<bigint, ArrowField>): void {
  for (const field of fields) {
    if (field.dictionary !== null) out.set(field.dictionary.id, field);
    findEncoded(field.children, out);
  }
}

const MAGIC = [0x41, 0x52, 0x52, 0x4f, 0x57, 0x31];

function hasMagic(bytes: Uint8Array, at: number): boolean {
  return MAGIC.every((byte, i) => bytes[at + i] === byte);
}

function viewOf(bytes: Uint8Array): DataView {
  return new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
}

function truncated(messages: readonly Message[]): SluiceError {
  const batches = messages.filter(({ kind }) => kind === RECORD_BATCH).length;
  return invalid('truncated-body', `arrow body: ends too early, behind ${batches} whole batches`, { batches });
}

function empty(): SluiceError {
  return invalid('empty-body', 'body is empty; a batch without rows is a schema without batches');
}
