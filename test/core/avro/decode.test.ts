import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteSource, decoderOf, skipperOf } from '../../../src/core/avro/decode.ts';
import { ByteSink, encoderOf } from '../../../src/core/avro/encode.ts';
import { parseSchema } from '../../../src/core/avro/schema.ts';
import { SluiceError } from '../../../src/core/base/errors.ts';

function decode(schema: unknown, ...bytes: number[]): unknown {
  return decoderOf(parseSchema(schema))(new ByteSource(Uint8Array.from(bytes)));
}

function skip(schema: unknown, ...bytes: number[]): number {
  const source = new ByteSource(Uint8Array.from(bytes));
  skipperOf(parseSchema(schema))?.(source);
  return source.at;
}

const ints = { type: 'array', items: 'int' };

describe('decoder: blocks', () => {
  test('several blocks: read one after the other', () => {
    expect(decode(ints, 4, 2, 4, 2, 6, 0)).toEqual([1, 2, 3]);
  });

  test('a negative count: the byte size follows and is checked', () => {
    expect(decode(ints, 3, 4, 2, 4, 0)).toEqual([1, 2]);
    expect(() => decode(ints, 3, 6, 2, 4, 0)).toThrow('has a block that should end at byte 5');
    expect(() => decode(ints, 3, 2, 2, 4, 0)).toThrow('has a block that should end at byte 3');
  });

  test('a map in several blocks with sizes: read whole', () => {
    expect(decode({ type: 'map', values: 'int' }, 1, 6, 2, 97, 2, 2, 2, 98, 4, 0)).toEqual(
      new Map([
        ['a', 1],
        ['b', 2],
      ]),
    );
  });

  test('a skipped array: steps over sized blocks by their size and over others item by item', () => {
    expect(skip(ints, 3, 4, 255, 255, 4, 2, 4, 0)).toBe(8);
    expect(skip({ type: 'map', values: 'double' }, 2, 2, 97, 0, 0, 0, 0, 0, 0, 0, 0, 0)).toBe(12);
  });
});

describe('decoder: corrupt input', () => {
  test.each([
    ['an integer cut off', 'long', [0x80]],
    ['an integer of eleven bytes', 'long', [128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 1]],
    ['an integer of 65 bits', 'long', [255, 255, 255, 255, 255, 255, 255, 255, 255, 2]],
    ['an int of 33 bits', 'int', [255, 255, 255, 255, 31]],
    ['a boolean 2', 'boolean', [2]],
    ['a double cut off', 'double', [1, 2, 3]],
    ['a fixed cut off', { type: 'fixed', name: 'f', size: 4 }, [1, 2, 3]],
    ['a negative length', 'bytes', [1]],
    ['a length beyond the end', 'string', [20, 97]],
    ['a length near 2^63', 'string', [254, 255, 255, 255, 255, 255, 255, 255, 255, 1]],
    ['malformed utf-8', 'string', [2, 255]],
    ['a surrogate in utf-8', 'string', [6, 0xed, 0xa0, 0x80]],
    ['a union branch that is not there', ['null', 'int'], [4]],
    ['a negative union branch', ['null', 'int'], [1]],
    ['an enum symbol that is not there', { type: 'enum', name: 'e', symbols: ['A'] }, [2]],
    ['an array without end', ints, [2, 2]],
    ['a count beyond the end', ints, [254, 255, 255, 255, 15, 2]],
    ['a count of -2^63', ints, [255, 255, 255, 255, 255, 255, 255, 255, 255, 1, 0]],
    ['a block size beyond the end', ints, [1, 200, 1, 2, 0]],
    ['a negative block size', ints, [1, 1, 2, 0]],
    ['a map key twice', { type: 'map', values: 'int' }, [4, 2, 97, 2, 2, 97, 4, 0]],
  ])('%s: corrupt, with the offset', (_what, schema, bytes) => {
    const attempt = () => decode(schema, ...bytes);
    expect(attempt).toThrow(SluiceError);
    expect(attempt).toThrow(/avro data .* at byte \d+/);
    expect(attempt).toThrow(expect.objectContaining({ kind: 'corrupt', type: 'avro-corrupt' }));
  });

  test('a count that the rest cannot hold: refused before its items are read', () => {
    expect(() => decode(ints, 254, 255, 255, 255, 15, 2)).toThrow('has a count of 2147483647 beyond the end at byte 5');
    expect(() => decode({ type: 'array', items: 'double' }, 4, ...Array(15).fill(0))).toThrow('has a count of 2');
    expect(() => skip({ type: 'map', values: 'int' }, 4, 0, 0, 0)).toThrow('has a count of 2');
  });

  test('items without bytes: a billion of them are refused at once, some are read', () => {
    const nothing = { type: 'array', items: { type: 'record', name: 'e', fields: [] } };
    expect(decode(nothing, 6, 0)).toEqual([{}, {}, {}]);
    expect(() => decode(nothing, 128, 168, 214, 185, 7, 0)).toThrow('empty items');
    // Also when spread over many arrays.
    const many = { type: 'array', items: { type: 'array', items: 'null' } };
    const inner = [128, 128, 6, 0];
    expect(() => decode(many, 6, ...inner, ...inner, ...inner, 0)).toThrow('empty items');
  });

  test('records nested without end: refused at a fixed depth, also when skipped', () => {
    const schema = {
      type: 'record',
      name: 'n',
      fields: [{ name: 'next', type: ['null', 'n'] }],
    };
    const deep = Array.from({ length: 100_000 }, () => 2);
    expect(() => decode(schema, ...deep)).toThrow('nests n deeper than');
    expect(() => skip(schema, ...deep)).toThrow('nests n deeper than');
  });

  test('a schema that doubles at every level without a byte of data: refused, not walked', () => {
    let type: unknown = { type: 'record', name: 'r0', fields: [] };
    for (let i = 1; i < 60; i++) {
      type = {
        type: 'record',
        name: `r${i}`,
        fields: [
          { name: 'a', type },
          { name: 'b', type: `r${i - 1}` },
        ],
      };
    }
    expect(() => decode(type)).toThrow('empty items');
    expect(skip(type)).toBe(0);
  });

  test('a field called __proto__: a field like any other', () => {
    const schema = { type: 'record', name: 'r', fields: [{ name: '__proto__', type: ints }] };
    const value = decode(schema, 2, 2, 0) as object;
    expect(Object.keys(value)).toEqual(['__proto__']);
    expect(Object.getPrototypeOf(value)).toBe(null);
  });

  test('any bytes under a rich schema: a value or avro-corrupt, never another error', () => {
    const schema = {
      type: 'record',
      name: 'r',
      fields: [
        { name: 'a', type: ['null', 'string', { type: 'map', values: 'long' }] },
        { name: 'b', type: { type: 'array', items: ['null', 'r', 'double'] } },
        { name: 'c', type: { type: 'enum', name: 'e', symbols: ['X', 'Y'] } },
      ],
    };
    const read = decoderOf(parseSchema(schema));
    const sink = new ByteSink();
    encoderOf(parseSchema(schema))(sink, { a: new Map([['k', 5n]]), b: [null, { a: 'x', b: [1.5], c: 'X' }], c: 'Y' });
    const good = sink.take();
    let values = 0;
    const attempt = (bytes: Uint8Array): void => {
      try {
        read(new ByteSource(bytes));
        values++;
      } catch (error) {
        expect(error).toMatchObject({ type: 'avro-corrupt' });
      }
    };
    fc.assert(fc.property(fc.uint8Array({ maxLength: 60 }), attempt), { numRuns: 500 });
    fc.assert(
      fc.property(fc.nat(good.length - 1), fc.nat(255), (at, byte) => attempt(good.with(at, byte))),
      { numRuns: 500 },
    );
    expect(values).toBeGreaterThan(10);
  });
});

describe('decoder: copies', () => {
  test('bytes and fixed: do not share memory with the input', () => {
    for (const input of [Uint8Array.from([4, 1, 2]), Buffer.from([4, 1, 2])]) {
      const bytes = decoderOf(parseSchema('bytes'))(new ByteSource(input)) as Uint8Array;
      input.fill(9);
      expect(bytes).toEqual(Uint8Array.of(1, 2));
      expect(bytes.buffer.byteLength).toBe(2);
    }
  });
});
