import { deflateRawSync, inflateRawSync } from 'node:zlib';
import { plainDecoder } from './avro-plain.ts';

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

/** Missing in the runtime of the Worker's own tests, which cannot load it; then the plain decoder reads. */
const avsc = await import('avsc').then(
  (module) => module.default,
  () => null,
);

type AvscType = import('avsc').Type;

/** avsc's own long rounds beyond 2^53 and gets some values wrong below it; this one reads the varint itself. */
const longType = avsc?.types.LongType.__with(
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

const types = new Map<string, AvscType>();

/** The compiled type of a schema. Compiling takes longer than reading a manifest, so the last ones are kept. */
function typeOf(schema: AvroSchema): AvscType {
  if (avsc === null) throw new Error('avro: avsc is not available here');
  const text = JSON.stringify(schema);
  const known = types.get(text);
  if (known !== undefined) return known;
  const type = avsc.Type.forSchema(schema as import('avsc').Schema, {
    wrapUnions: 'never',
    registry: { long: longType as AvscType },
    typeHook: (node: unknown) =>
      node === 'long' || (node as { type?: unknown }).type === 'long' ? longType : undefined,
  });
  if (types.size >= 100) types.clear();
  types.set(text, type);
  return type;
}

type Decode = (bytes: Uint8Array, at: number) => { value: unknown; offset: number };

/** Decodes values of a schema one after another: by avsc, or by the plain decoder where it cannot be loaded. */
function decoderOf(schema: AvroSchema, plain: boolean): Decode {
  if (plain || avsc === null) return plainDecoder(schema);
  const type = typeOf(schema);
  return (bytes, at) => type.decode(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength), at);
}

const HEADER: AvroNode = {
  type: 'record',
  name: 'header',
  fields: [
    { name: 'magic', type: { type: 'fixed', name: 'magic', size: 4 } },
    { name: 'meta', type: { type: 'map', values: 'bytes' } },
    { name: 'sync', type: { type: 'fixed', name: 'sync', size: 16 } },
  ],
};

/** Buffers and avsc's record objects turned into plain values. */
function plain(value: unknown): unknown {
  if (value instanceof Uint8Array) return Uint8Array.from(value);
  if (Array.isArray(value)) return value.map(plain);
  if (value === null || typeof value !== 'object') return value;
  return Object.fromEntries(Object.entries(value).map(([name, member]) => [name, plain(member)]));
}

/** Reads a container file of codec null or deflate. Throws on anything that is not exactly that. */
export function readAvro(source: Uint8Array, plainly = false): AvroFile {
  if (source.length < 4 || !source.subarray(0, 4).every((byte, i) => byte === [0x4f, 0x62, 0x6a, 1][i]))
    throw new Error('avro: no container file');
  const head = decoderOf(HEADER, plainly)(source, 0);
  if (head.value === undefined) throw new Error('avro: header cut short');
  const header = head.value as { meta: Record<string, Uint8Array>; sync: Uint8Array };
  const meta = new Map<string, string>();
  for (const [key, bytes] of Object.entries(header.meta)) meta.set(key, decoder.decode(bytes));
  const schema = JSON.parse(meta.get('avro.schema') ?? 'null') as AvroSchema;
  const codec = meta.get('avro.codec') ?? 'null';
  meta.delete('avro.schema');
  meta.delete('avro.codec');
  if (codec !== 'null' && codec !== 'deflate') throw new Error(`avro: codec ${codec}`);
  const decode = decoderOf(schema, plainly);
  const decodeLong = decoderOf('long', plainly);
  const records: Record<string, unknown>[] = [];
  let at = head.offset;
  let blocks = 0;
  while (at < source.length) {
    const count = decodeLong(source, at);
    const size = decodeLong(source, count.offset);
    const end = size.offset + Number(size.value);
    if (!(Number(size.value) >= 0 && end + 16 <= source.length)) throw new Error(`avro: block ${blocks} past the end`);
    if (!header.sync.every((byte, i) => byte === source[end + i])) throw new Error(`avro: sync of block ${blocks}`);
    const stored = source.subarray(size.offset, end);
    const data = codec === 'deflate' ? inflateRawSync(stored) : stored;
    let position = 0;
    for (let i = 0; i < Number(count.value); i++) {
      const record = decode(data, position);
      if (record.offset < 0) throw new Error(`avro: block ${blocks} ends inside record ${i}`);
      records.push(plain(record.value) as Record<string, unknown>);
      position = record.offset;
    }
    if (position !== data.length) throw new Error(`avro: ${data.length - position} bytes after block ${blocks}`);
    at = end + 16;
    blocks++;
  }
  return { schema, meta, codec, sync: Uint8Array.from(header.sync), blocks, records };
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
  const magic = Buffer.from([0x4f, 0x62, 0x6a, 1]);
  const header = typeOf(HEADER).toBuffer({ magic, meta, sync: Buffer.from(file.sync) });
  const long = typeOf('long');
  const block =
    file.records.length === 0
      ? []
      : [
          long.toBuffer(BigInt(file.records.length)),
          long.toBuffer(BigInt(stored.length)),
          stored,
          Buffer.from(file.sync),
        ];
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
