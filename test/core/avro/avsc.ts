import { deflateRawSync, inflateRawSync } from 'node:zlib';
import avro from 'avsc';
import type { Deflate } from '../../../src/core/base/codecs.ts';

/** avsc with longs as bigint: the independent codec that ours is compared with. */

// A registry per schema: names must not leak from one to the next.
function bigintLong(): avro.Type {
  const { LongType } = avro.types as unknown as { LongType: { __with(methods: object): avro.Type } };
  return LongType.__with({
    fromBuffer: (bytes: Buffer) => bytes.readBigInt64LE(),
    toBuffer: (value: bigint) => {
      const bytes = Buffer.alloc(8);
      bytes.writeBigInt64LE(value);
      return bytes;
    },
    fromJSON: BigInt,
    toJSON: String,
    isValid: (value: unknown) => typeof value === 'bigint' && BigInt.asIntN(64, value) === value,
    compare: (a: bigint, b: bigint) => (a < b ? -1 : a > b ? 1 : 0),
  });
}

export function avscType(schema: unknown): avro.Type {
  const long = bigintLong();
  return avro.Type.forSchema(structuredClone(schema) as avro.Schema, {
    // A hook and not a registry entry: the latter does not catch `{ type: 'long', logicalType: … }`.
    typeHook: (node) => {
      const name = typeof node === 'string' ? node : (node as { type?: unknown })?.type;
      return name === 'long' ? long : undefined;
    },
  });
}

export const zlibDeflate: Deflate = {
  deflate: (bytes) => new Uint8Array(deflateRawSync(bytes)),
  inflate: (bytes, lengthMax) => new Uint8Array(inflateRawSync(bytes, { maxOutputLength: Math.max(1, lengthMax) })),
};

/** A whole container file of at least one record, made by avsc. `schema` goes into the header as it is. */
export async function avscFile(
  schema: unknown,
  records: readonly unknown[],
  options: { metadata: Record<string, string>; syncMarker: Uint8Array; deflate?: boolean; blockSize?: number },
): Promise<Uint8Array> {
  const encoder = new avro.streams.BlockEncoder(avscType(schema), {
    codec: options.deflate ? 'deflate' : 'null',
    blockSize: options.blockSize ?? 1 << 20,
    syncMarker: Buffer.from(options.syncMarker),
    metadata: Object.fromEntries(Object.entries(options.metadata).map(([key, text]) => [key, Buffer.from(text)])),
  } as object);
  // Else it writes its own, reduced form of the schema.
  Object.assign(encoder, { _schema: schema });
  const chunks: Buffer[] = [];
  encoder.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise((resolve, reject) => {
    encoder.on('end', resolve);
    encoder.on('error', reject);
  });
  for (const record of records) encoder.write(record);
  encoder.end();
  await ended;
  return new Uint8Array(Buffer.concat(chunks));
}

/** What avsc reads from a container file: metadata as text, and the records. */
export async function avscRead(bytes: Uint8Array): Promise<{ metadata: Record<string, string>; records: unknown[] }> {
  const decoder = new avro.streams.BlockDecoder({ parseHook: avscType as never });
  const records: unknown[] = [];
  let metadata: Record<string, string> = {};
  decoder.on('metadata', (_type: unknown, _codec: unknown, header: { meta: Record<string, Buffer> }) => {
    metadata = Object.fromEntries(Object.entries(header.meta).map(([key, value]) => [key, value.toString()]));
  });
  decoder.on('data', (record: unknown) => records.push(record));
  const ended = new Promise((resolve, reject) => {
    decoder.on('end', resolve);
    decoder.on('error', reject);
  });
  decoder.end(Buffer.from(bytes));
  await ended;
  return { metadata, records };
}
