import { deflateRawSync, inflateRawSync } from 'node:zlib';
import avro from 'avsc';

/** An Avro schema as JSON. */
export type AvroSchema = string | AvroSchema[] | AvroNode;
export interface AvroNode {
  type: AvroSchema;
  name?: string;
  fields?: AvroField[];
  items?: AvroSchema;
  values?: AvroSchema;
  size?: number;
  logicalType?: string;
  [attribute: string]: unknown;
}
export interface AvroField {
  name: string;
  type: AvroSchema;
  default?: unknown;
  'field-id'?: number;
  [attribute: string]: unknown;
}

/** One object container file. Longs are bigints, bytes and fixed are Uint8Arrays. */
export interface AvroFile {
  schema: AvroSchema;
  /** The header's entries besides the schema and the codec, as text. */
  meta: Map<string, string>;
  codec: string;
  sync: Uint8Array;
  blocks: number;
  records: Record<string, unknown>[];
}

const decoder = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

/** avsc's own long rounds beyond 2^53 and gets some values wrong below it; this one reads the varint itself. */
const longType = avro.types.LongType.__with(
  {
    fromBuffer: (bytes: Uint8Array) => {
      let raw = 0n;
      for (let i = 0; i < bytes.length; i++) raw |= BigInt(bytes[i] & 0x7f) << BigInt(7 * i);
      return BigInt.asIntN(64, (raw >> 1n) ^ -(raw & 1n));
    },
    toBuffer: (value: bigint) => {
      let raw = BigInt.asUintN(64, (value << 1n) ^ (value >> 63n));
      const bytes: number[] = [];
      for (; raw > 0x7fn; raw >>= 7n) bytes.push(Number(raw & 0x7fn) | 0x80);
      return Buffer.from([...bytes, Number(raw)]);
    },
    fromJSON: BigInt,
    toJSON: String,
    isValid: (value: unknown) => typeof value === 'bigint',
    compare: (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0),
  },
  true,
);

const types = new Map<string, avro.Type>();

/** The compiled type of a schema. Compiling takes longer than reading a manifest, so the last ones are kept. */
function typeOf(schema: AvroSchema): avro.Type {
  const text = JSON.stringify(schema);
  const known = types.get(text);
  if (known !== undefined) return known;
  const type = avro.Type.forSchema(schema as avro.Schema, {
    wrapUnions: 'never',
    registry: { long: longType },
    typeHook: (node: unknown) =>
      node === 'long' || (node as { type?: unknown }).type === 'long' ? longType : undefined,
  });
  if (types.size >= 100) types.clear();
  types.set(text, type);
  return type;
}

const HEADER = {
  type: 'record',
  name: 'header',
  fields: [
    { name: 'magic', type: { type: 'fixed', name: 'magic', size: 4 } },
    { name: 'meta', type: { type: 'map', values: 'bytes' } },
    { name: 'sync', type: { type: 'fixed', name: 'sync', size: 16 } },
  ],
};
const headerType = avro.Type.forSchema(HEADER as avro.Schema);
const countType = avro.Type.forSchema('long');

/** Buffers and avsc's record objects turned into plain values. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** Reads a container file of codec null or deflate. Throws on anything that is not exactly that. */
export function readAvro(source: Uint8Array): AvroFile {
  const buffer = Buffer.from(source.buffer, source.byteOffset, source.byteLength);
  if (buffer.length < 4 || buffer.readUInt32BE(0) !== 0x4f626a01) throw new Error('avro: no container file');
  const head = headerType.decode(buffer, 0);
  if (head.value === undefined) throw new Error('avro: header cut short');
  const meta = new Map<string, string>();
  for (const [key, bytes] of Object.entries(head.value.meta as Record<string, Uint8Array>))
    meta.set(key, decoder.decode(bytes));
  const schema = JSON.parse(meta.get('avro.schema') ?? 'null') as AvroSchema;
  const codec = meta.get('avro.codec') ?? 'null';
  meta.delete('avro.schema');
  meta.delete('avro.codec');
  if (codec !== 'null' && codec !== 'deflate') throw new Error(`avro: codec ${codec}`);
  const type = typeOf(schema);
  const records: Record<string, unknown>[] = [];
  let at = head.offset;
  let blocks = 0;
  while (at < buffer.length) {
    const count = countType.decode(buffer, at);
    const size = countType.decode(buffer, count.offset);
    const end = size.offset + size.value;
    if (!(size.value >= 0 && end + 16 <= buffer.length)) throw new Error(`avro: block ${blocks} past the end`);
    if (buffer.compare(head.value.sync, 0, 16, end, end + 16) !== 0) throw new Error(`avro: sync of block ${blocks}`);
    const stored = buffer.subarray(size.offset, end);
    const data = codec === 'deflate' ? inflateRawSync(stored) : stored;
    let position = 0;
    for (let i = 0; i < count.value; i++) {
      const record = type.decode(data, position);
      if (record.offset < 0) throw new Error(`avro: block ${blocks} ends inside record ${i}`);
      records.push(plain(record.value) as Record<string, unknown>);
      position = record.offset;
    }
    if (position !== data.length) throw new Error(`avro: ${data.length - position} bytes after block ${blocks}`);
    at = end + 16;
    blocks++;
  }
  return { schema, meta, codec, sync: Uint8Array.from(head.value.sync), blocks, records };
}

/** Bytes of a container file with one block; the counterpart of `readAvro`, for fixtures broken on purpose. */
export function writeAvro(file: AvroFile): Uint8Array {
  const type = typeOf(file.schema);
  const buffers = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return Buffer.from(value);
    if (Array.isArray(value)) return value.map(buffers);
    if (value === null || typeof value !== 'object') return value;
    return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, buffers(member)]));
  };
  const data = Buffer.concat(file.records.map((record) => type.toBuffer(buffers(record))));
  const stored = file.codec === 'deflate' ? deflateRawSync(data) : data;
  const meta: Record<string, Buffer> = {
    'avro.schema': Buffer.from(JSON.stringify(file.schema)),
    'avro.codec': Buffer.from(file.codec),
  };
  for (const [key, value] of file.meta) meta[key] = Buffer.from(value);
  const header = headerType.toBuffer({ magic: Buffer.from([0x4f, 0x62, 0x6a, 1]), meta, sync: Buffer.from(file.sync) });
  const block =
    file.records.length === 0
      ? []
      : [countType.toBuffer(file.records.length), countType.toBuffer(stored.length), stored, Buffer.from(file.sync)];
  return Uint8Array.from(Buffer.concat([header, ...block]));
}

/** The branch of a union that is not null, and whether null is allowed. Anything but one branch stays as it is. */
export function branch(schema: AvroSchema): { schema: AvroSchema; nullable: boolean } {
  if (!Array.isArray(schema)) return { schema, nullable: false };
  const rest = schema.filter((part) => part !== 'null');
  return { schema: rest.length === 1 ? rest[0] : rest, nullable: rest.length < schema.length };
}

/** Fields of a record schema, looking through a union with null. */
export function fieldsOf(schema: AvroSchema): AvroField[] {
  const inner = branch(schema).schema;
  if (typeof inner === 'string' || Array.isArray(inner)) return [];
  if (inner.fields !== undefined) return inner.fields;
  return typeof inner.type === 'object' ? fieldsOf(inner.type) : [];
}

/** The schema of an array's items, looking through a union with null; `null` when it is no array. */
export function itemsOf(schema: AvroSchema | undefined): AvroSchema {
  const inner = schema === undefined ? 'null' : branch(schema).schema;
  return typeof inner === 'object' && !Array.isArray(inner) ? (inner.items ?? 'null') : 'null';
}

/** The value of the field with an id in a record, and the field's schema; undefined when the schema has no such field. */
export function fieldById(
  schema: AvroSchema,
  record: unknown,
  id: number,
): { field: AvroField; value: unknown } | undefined {
  const field = fieldsOf(schema).find((f) => f['field-id'] === id);
  if (field === undefined || record === null || typeof record !== 'object') return undefined;
  return { field, value: (record as Record<string, unknown>)[field.name] };
}
