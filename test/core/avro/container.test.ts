import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { headerText, openContainer, readItems, writeContainer } from '../../../src/core/avro/container.ts';
import { decoderOf } from '../../../src/core/avro/decode.ts';
import { encoderOf } from '../../../src/core/avro/encode.ts';
import { parseSchema } from '../../../src/core/avro/schema.ts';
import { concat, utf8 } from '../../../src/core/base/bytes.ts';
import { AVRO_INFLATED_BYTES_MAX } from '../../../src/core/base/limits.ts';
import { avscFile, avscRead, zlibDeflate } from './avsc.ts';

const schema = {
  type: 'record',
  name: 'row',
  fields: [
    { name: 'id', type: 'long', 'field-id': 1 },
    { name: 'name', type: ['null', 'string'], default: null, 'field-id': 2 },
  ],
};
const schemaJson = JSON.stringify(schema);
const metadata = { 'format-version': '2', ключ: 'значение' };
const syncMarker = Uint8Array.from({ length: 16 }, (_, i) => 200 + i);
const rows = Array.from({ length: 500 }, (_, i) => ({ id: BigInt(i) * 1_000_000_007n, name: i % 3 ? `n${i}` : null }));
const encode = encoderOf(parseSchema(schema));

function write(items: unknown[], options: { deflated?: boolean; blockBytes?: number } = {}): Uint8Array {
  const { deflated = false, blockBytes } = options;
  const deflate = deflated ? zlibDeflate : null;
  return writeContainer({ schemaJson, metadata, syncMarker, deflate, blockBytes }, encode, items);
}

function read(bytes: Uint8Array): unknown[] {
  const container = openContainer(bytes);
  return readItems(container, decoderOf(container.schema), zlibDeflate);
}

/** Number of blocks, by the sync markers. */
function blocks(bytes: Uint8Array): number {
  return Buffer.from(bytes).toString('latin1').split(Buffer.from(syncMarker).toString('latin1')).length - 2;
}

describe('container: writing', () => {
  test.each([false, true])('one block, deflate %s: the same file as avsc', async (deflated) => {
    const expected = await avscFile(schema, rows, { metadata, syncMarker, deflate: deflated });
    expect(Buffer.from(write(rows, { deflated })).equals(expected)).toBe(true);
  });

  test('no items: the header alone, the one of avsc', async () => {
    const bytes = write([]);
    const one = await avscFile(schema, rows.slice(0, 1), { metadata, syncMarker });
    expect(bytes).toEqual(one.slice(0, bytes.length));
    expect(bytes.subarray(-16)).toEqual(syncMarker);
    expect(read(bytes)).toEqual([]);
  });

  test('B173 several blocks: avsc and we read every item of every block', async () => {
    for (const deflated of [false, true]) {
      const bytes = write(rows, { deflated, blockBytes: 1000 });
      expect(blocks(bytes)).toBeGreaterThan(3);
      expect(read(bytes)).toEqual(rows);
      expect((await avscRead(bytes)).records).toEqual(rows);
    }
  });

  test('B173 several blocks made by avsc: read whole', async () => {
    const bytes = await avscFile(schema, rows, { metadata, syncMarker, deflate: true, blockSize: 800 });
    expect(blocks(bytes)).toBeGreaterThan(3);
    expect(read(bytes)).toEqual(rows);
  });

  test('metadata: read back by avsc and by us, the schema text as it was given', async () => {
    const bytes = write(rows);
    const expected = { ...metadata, 'avro.schema': schemaJson, 'avro.codec': 'null' };
    expect((await avscRead(bytes)).metadata).toEqual(expected);
    const header = openContainer(bytes).metadata;
    expect(Object.fromEntries([...header.keys()].map((key) => [key, headerText(header, key)]))).toEqual(expected);
  });

  test('equal arguments: equal bytes', () => {
    expect(write(rows, { deflated: true })).toEqual(write(rows, { deflated: true }));
  });
});

describe('container: corrupt files', () => {
  const good = write(rows.slice(0, 3));
  const headerEnd = openContainer(good).blocksAt;
  const block = (count: number, payload: Uint8Array, marker = syncMarker, size = payload.length) =>
    concat([good.subarray(0, headerEnd), Uint8Array.of(2 * count, 2 * size), payload, marker]);
  const one = Uint8Array.of(2, 0);

  test('the hand-made block that the cases below vary: is read', () => {
    expect(read(block(1, one))).toEqual([{ id: 1n, name: null }]);
    expect(read(block(0, new Uint8Array(0)))).toEqual([]);
  });

  test.each([
    ['an empty file', new Uint8Array(0)],
    ['another magic', concat([utf8('PAR1'), good.subarray(4)])],
    ['a header cut off', good.subarray(0, headerEnd - 1)],
    ['a block cut off', good.subarray(0, good.length - 20)],
    ['a sync marker cut off', good.subarray(0, good.length - 1)],
    ['a wrong sync marker', good.with(good.length - 1, 0)],
    ['fewer items than the block holds', block(1, Uint8Array.of(2, 0, 4, 0))],
    ['more items than the block holds', block(2, one)],
    ['a negative count', concat([good.subarray(0, headerEnd), Uint8Array.of(1, 4), one, syncMarker])],
    ['a negative size', concat([good.subarray(0, headerEnd), Uint8Array.of(2, 1), one, syncMarker])],
    ['a size beyond the end', block(1, one, syncMarker, 60)],
  ])('%s: corrupt', (_what, bytes) => {
    expect(() => read(bytes)).toThrow(expect.objectContaining({ kind: 'corrupt', type: 'avro-corrupt' }));
  });

  test('a codec of another kind: named in the error', () => {
    const other = Buffer.from(good).toString('latin1').replace('avro.codec\x08null', 'avro.codec\x0csnappy');
    expect(() => read(Buffer.from(other, 'latin1'))).toThrow(
      expect.objectContaining({ type: 'avro-codec-unsupported', message: expect.stringContaining('snappy') }),
    );
  });

  test('a schema that is no JSON, or none: corrupt', () => {
    const bad = writeContainer({ schemaJson: '{', metadata: {}, syncMarker, deflate: null }, encode, []);
    expect(() => read(bad)).toThrow('malformed json in avro.schema');
    const none = concat([utf8('Obj\x01'), Uint8Array.of(0), syncMarker]);
    expect(() => read(none)).toThrow('avro header has no avro.schema');
  });

  test('a deflated block that is damaged: corrupt', () => {
    const bytes = write(rows, { deflated: true });
    const at = openContainer(bytes).blocksAt + 10;
    expect(() => read(bytes.with(at, bytes[at] ^ 0xff))).toThrow(expect.objectContaining({ type: 'avro-corrupt' }));
  });

  test('an inflation bomb: refused at the bound, not inflated', () => {
    const bomb = zlibDeflate.deflate(new Uint8Array(AVRO_INFLATED_BYTES_MAX + 1));
    const file = write([], { deflated: true });
    const size = new Uint8Array([...varint(bomb.length)]);
    expect(() => read(concat([file, Uint8Array.of(2), size, bomb, syncMarker]))).toThrow('cannot be inflated');
  });

  test('any byte changed: other items or corrupt, never another error', () => {
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), (at, byte) => {
        try {
          read(good.with(at, byte));
        } catch (error) {
          expect(error).toMatchObject({ kind: 'corrupt' });
        }
      }),
      { numRuns: 400 },
    );
  });
});

function* varint(value: number): Generator<number> {
  let rest = value * 2;
  while (rest > 127) {
    yield (rest & 127) | 128;
    rest = Math.floor(rest / 128);
  }
  yield rest;
}
