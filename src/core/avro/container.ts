import { assert } from '../base/assert.ts';
import { concat, equalBytes, textOf, utf8 } from '../base/bytes.ts';
import type { Deflate } from '../base/codecs.ts';
import { corrupt } from '../base/errors.ts';
import { AVRO_BLOCK_BYTES, AVRO_INFLATED_BYTES_MAX } from '../base/limits.ts';
import { describe } from '../base/shape.ts';
import { ByteSource, type Decode, mapDecoder } from './decode.ts';
import { ByteSink, type Encode } from './encode.ts';
import { type AvroType, minimumBytes, parseSchema } from './schema.ts';

/**
 * Object container files (Avro 1.12, "Object Container Files"): header with the writer's schema and key-value
 * metadata, then blocks, each a count, a size, the (deflated) items and the sync marker.
 */

const MAGIC = utf8('Obj\x01');
const SYNC_BYTES = 16;

export interface ContainerWrite {
  /** The schema as it shall stand in the header. */
  schemaJson: string;
  /** Written after the keys of Avro itself, in this order. */
  metadata: Readonly<Record<string, string>>;
  /** 16 bytes that do not occur in the data but by chance: random, or derived from a seed for equal output. */
  syncMarker: Uint8Array;
  /** Null: codec `null`. */
  deflate: Deflate | null;
  /** A block is closed once it holds this many bytes before compression. */
  blockBytes?: number;
}

/** A whole file with the items in order. Equal arguments give equal bytes. */
export function writeContainer(options: ContainerWrite, encode: Encode, items: Iterable<unknown>): Uint8Array {
  const { schemaJson, metadata, syncMarker, deflate, blockBytes = AVRO_BLOCK_BYTES } = options;
  assert(syncMarker.length === SYNC_BYTES, 'an avro sync marker has 16 bytes');
  const head = new ByteSink();
  head.raw(MAGIC);
  const header = { 'avro.schema': schemaJson, 'avro.codec': deflate === null ? 'null' : 'deflate', ...metadata };
  const entries = Object.entries(header);
  head.int(entries.length);
  for (const [key, value] of entries) {
    head.text(key);
    head.text(value);
  }
  head.byte(0);
  head.raw(syncMarker);
  const parts: Uint8Array[] = [head.take()];

  const body = new ByteSink(Math.min(blockBytes, 64 * 1024));
  let count = 0;
  const close = (): void => {
    if (count === 0) return;
    const block = deflate === null ? body.take() : deflate.deflate(body.written());
    const frame = new ByteSink(32);
    frame.int(count);
    frame.int(block.length);
    parts.push(frame.take(), block, syncMarker);
    body.reset();
    count = 0;
  };
  for (const item of items) {
    encode(body, item);
    count++;
    if (body.length >= blockBytes) close();
  }
  close();
  return concat(parts);
}

export interface Container {
  schema: AvroType;
  /** Values of the header as they stand there, Avro's own keys included. */
  metadata: ReadonlyMap<string, Uint8Array>;
  bytes: Uint8Array;
  syncMarker: Uint8Array;
  deflated: boolean;
  /** Where the first block begins. */
  blocksAt: number;
}

/** Reads the header. Throws corrupt `avro-corrupt`, or `avro-codec-unsupported` for codecs beyond null and deflate. */
export function openContainer(bytes: Uint8Array): Container {
  if (!equalBytes(bytes.subarray(0, MAGIC.length), MAGIC)) {
    throw corrupt('avro-corrupt', `avro file does not begin with its magic: ${bytes.length} bytes`);
  }
  const source = new ByteSource(bytes, MAGIC.length);
  const readMetadata = mapDecoder(
    (from) => from.text(),
    (from) => from.blob(),
    2,
  );
  const metadata = readMetadata(source) as Map<string, Uint8Array>;
  const syncMarker = source.raw(SYNC_BYTES);
  const codec = headerText(metadata, 'avro.codec') ?? 'null';
  if (codec !== 'null' && codec !== 'deflate') {
    throw corrupt('avro-codec-unsupported', `avro file has a codec other than null and deflate: ${describe(codec)}`);
  }
  const schema = parseSchema(headerJson(metadata, 'avro.schema'));
  return { schema, metadata, bytes, syncMarker, deflated: codec === 'deflate', blocksAt: source.at };
}

/** Text of a header value, null when absent. */
export function headerText(metadata: ReadonlyMap<string, Uint8Array>, key: string): string | null {
  const value = metadata.get(key);
  if (value === undefined) return null;
  try {
    return textOf(value);
  } catch (error) {
    throw corrupt('avro-corrupt', `avro header has malformed utf-8 in ${key}`, {}, error);
  }
}

/** A header value as JSON. Throws corrupt `avro-corrupt` when absent or malformed. */
export function headerJson(metadata: ReadonlyMap<string, Uint8Array>, key: string): unknown {
  const text = headerText(metadata, key);
  if (text === null) throw corrupt('avro-corrupt', `avro header has no ${key}`);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw corrupt('avro-corrupt', `avro header has malformed json in ${key}`, {}, error);
  }
}

/** All items of all blocks. Throws corrupt `avro-corrupt` on a wrong count, size or sync marker, or on an inflation bomb. */
export function readItems(container: Container, decode: Decode, deflate: Deflate): unknown[] {
  const { bytes, syncMarker, schema, deflated } = container;
  const source = new ByteSource(bytes, container.blocksAt);
  const itemBytes = minimumBytes(schema);
  const items: unknown[] = [];
  let inflatedLeft = AVRO_INFLATED_BYTES_MAX;
  while (source.at < source.end) {
    const count = source.safeLong();
    const size = source.safeLong();
    if (count < 0 || size < 0) throw source.fail(`has a block of ${count} items in ${size} bytes`);
    const start = source.at;
    source.skip(size);
    const block = bytes.subarray(start, start + size);
    const data = deflated ? inflate(deflate, block, inflatedLeft) : block;
    inflatedLeft -= data.length;
    if (inflatedLeft < 0) throw source.fail(`has more than ${AVRO_INFLATED_BYTES_MAX} bytes in its blocks`);
    const inner = new ByteSource(data);
    inner.emptyItems = source.emptyItems;
    inner.admit(count, itemBytes);
    for (let i = 0; i < count; i++) items.push(decode(inner));
    source.emptyItems = inner.emptyItems;
    if (inner.at !== inner.end) throw inner.fail(`has ${inner.end - inner.at} bytes after the last item of a block`);
    if (!equalBytes(source.raw(SYNC_BYTES), syncMarker)) throw source.fail('has a wrong sync marker');
  }
  return items;
}

function inflate(deflate: Deflate, block: Uint8Array, lengthMax: number): Uint8Array {
  try {
    return deflate.inflate(block, lengthMax);
  } catch (error) {
    throw corrupt('avro-corrupt', `avro block cannot be inflated: ${block.length} bytes`, {}, error);
  }
}
