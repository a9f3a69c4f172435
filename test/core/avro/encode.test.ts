import avro from 'avsc';
import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { ByteSource, decoderOf, skipperOf } from '../../../src/core/avro/decode.ts';
import { ByteSink, encoderOf } from '../../../src/core/avro/encode.ts';
import { parseSchema } from '../../../src/core/avro/schema.ts';
import { avscType } from './avsc.ts';

function encode(schema: unknown, value: unknown): Uint8Array {
  const sink = new ByteSink(1);
  encoderOf(parseSchema(schema))(sink, value);
  return sink.take();
}

function decode(schema: unknown, bytes: Uint8Array): unknown {
  const source = new ByteSource(bytes);
  const value = decoderOf(parseSchema(schema))(source);
  expect(source.at).toBe(bytes.length);
  return value;
}

/** A schema with an arbitrary of its values, in our form and in avsc's. */
interface Case {
  schema: unknown;
  value: fc.Arbitrary<unknown>;
}

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 54n), max: 2n ** 54n }),
  fc.bigInt({ min: -300n, max: 300n }),
  fc.constantFrom(-(2n ** 63n), 2n ** 63n - 1n, 2n ** 31n, -(2n ** 31n) - 1n, 2n ** 53n + 1n, -(2n ** 52n) - 1n),
);
const text = fc.oneof(
  fc.string({ unit: 'binary', maxLength: 40 }),
  // Around the length where the prefix grows to two bytes, mixed widths.
  fc.array(fc.constantFrom('a', 'é', '€', '😀'), { minLength: 12, maxLength: 80 }).map((parts) => parts.join('')),
);
const blob = fc.uint8Array({ maxLength: 80 });
const float = fc.float({ noNaN: true }).map(Math.fround);

const leaf: fc.Arbitrary<Case> = fc.constantFrom<Case>(
  { schema: 'null', value: fc.constant(null) },
  { schema: 'boolean', value: fc.boolean() },
  { schema: 'int', value: fc.integer() },
  { schema: 'long', value: int64 },
  { schema: { type: 'long', logicalType: 'timestamp-micros' }, value: int64 },
  { schema: 'float', value: float },
  { schema: 'double', value: fc.double({ noNaN: true }) },
  { schema: 'bytes', value: blob },
  { schema: 'string', value: text },
);

let names = 0;
const named: fc.Arbitrary<Case> = fc.integer({ min: 0, max: 20 }).chain((size) => {
  names++;
  const symbols = Array.from({ length: size + 1 }, (_, i) => `S${i}`);
  return fc.constantFrom<Case>(
    {
      schema: { type: 'fixed', name: `F${names}`, size: size + 1 },
      value: fc.uint8Array({ minLength: size + 1, maxLength: size + 1 }),
    },
    { schema: { type: 'enum', name: `E${names}`, symbols }, value: fc.constantFrom(...symbols) },
  );
});

const { tree } = fc.letrec<{ tree: Case }>((tie) => ({
  tree: fc.oneof(
    { maxDepth: 4, withCrossShrink: true },
    leaf,
    named,
    tie('tree').map(({ schema, value }) => ({
      schema: { type: 'array', items: schema },
      value: fc.array(value, { maxLength: 5 }),
    })),
    tie('tree').map(({ schema, value }) => ({
      schema: { type: 'map', values: schema },
      value: fc.array(fc.tuple(text, value), { maxLength: 4 }).map((entries) => new Map(entries)),
    })),
    tie('tree').chain(({ schema, value }) => {
      if (schema === 'null' || Array.isArray(schema)) return fc.constant({ schema, value });
      return fc.boolean().map((nullFirst) => ({
        schema: nullFirst ? ['null', schema] : [schema, 'null'],
        value: fc.option(value, { nil: null }),
      }));
    }),
    fc.array(tie('tree'), { maxLength: 5 }).map((fields) => {
      names++;
      return {
        schema: {
          type: 'record',
          name: `R${names}`,
          fields: fields.map(({ schema }, i) => ({ name: `f${i}`, type: schema })),
        },
        value: fc.record(Object.fromEntries(fields.map(({ value }, i) => [`f${i}`, value]))),
      };
    }),
  ),
}));

/** avsc takes Buffers and plain objects where ours are Uint8Arrays and Maps. */
function toAvsc(value: unknown): unknown {
  if (value instanceof Uint8Array) return Buffer.from(value);
  if (Array.isArray(value)) return value.map(toAvsc);
  if (value instanceof Map) {
    const object: Record<string, unknown> = {};
    for (const [key, item] of value) Object.defineProperty(object, key, { value: toAvsc(item), enumerable: true });
    return object;
  }
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, toAvsc(item)]));
}

/** Plain objects order number-like keys first, so maps of several such keys are no fair comparison. */
function ordered(value: unknown): boolean {
  if (value instanceof Uint8Array) return true;
  if (value instanceof Map) {
    const keys = [...value.keys()];
    return keys.every((key) => !/^\d+$/.test(key)) && [...value.values()].every(ordered);
  }
  if (typeof value !== 'object' || value === null) return true;
  return Object.values(value).every(ordered);
}

describe('encoder and decoder: against avsc', () => {
  test('any value of any schema: the same bytes as avsc, and the same value back', () => {
    const seen = new Set<string>();
    fc.assert(
      fc.property(
        tree.chain(({ schema, value }) => fc.tuple(fc.constant(schema), value)),
        ([schema, value]) => {
          fc.pre(ordered(value));
          const bytes = encode(schema, value);
          expect(Buffer.from(bytes).toString('hex')).toBe(avscType(schema).toBuffer(toAvsc(value)).toString('hex'));
          expect(decode(schema, bytes)).toEqual(value);
          const source = new ByteSource(bytes);
          skipperOf(parseSchema(schema))?.(source);
          expect(source.at).toBe(bytes.length);
          seen.add(
            Array.isArray(schema) ? 'union' : typeof schema === 'string' ? schema : (schema as { type: string }).type,
          );
        },
      ),
      { numRuns: 300 },
    );
    // The property is worth nothing if the generator does not reach the composite types.
    expect([...seen]).toEqual(
      expect.arrayContaining(['union', 'array', 'map', 'record', 'fixed', 'enum', 'long', 'string']),
    );
  });

  test('strings around the width of the length prefix: the same bytes as avsc, ASCII or not, up to 20 KB', () => {
    const type = avscType('string');
    for (const unit of ['a', 'é', '€', '😀', 'aé', '\u0000']) {
      for (const count of [0, 1, 15, 16, 21, 31, 32, 33, 62, 63, 64, 65, 127, 128, 4095, 4096, 8191, 8192, 20_000]) {
        const value = unit
          .repeat(Math.ceil(count / unit.length))
          .slice(0, Math.ceil(count / unit.length) * unit.length);
        const bytes = encode('string', value);
        expect(Buffer.from(bytes).equals(type.toBuffer(value)), `${unit} × ${count}`).toBe(true);
        expect(decode('string', bytes)).toBe(value);
      }
    }
  });

  test('lone surrogates: become U+FFFD, and the length prefix still fits', () => {
    for (const value of ['\ud800', 'a\udc00b', '\ud83d\ud83d\ude00', '\ud800'.repeat(40)]) {
      const bytes = encode('string', value);
      expect(bytes).toEqual(encode('string', value.toWellFormed()));
      expect(decode('string', bytes)).toBe(value.toWellFormed());
    }
  });

  test('every union branch: written with its index, wherever null stands', () => {
    const schema = ['int', 'null', 'string', 'boolean', { type: 'array', items: 'int' }];
    const type = avro.Type.forSchema(schema as avro.Schema, { wrapUnions: false });
    for (const value of [7, null, 'x', false, [1, 2]]) {
      const bytes = encode(schema, value);
      expect(Buffer.from(bytes).equals(type.toBuffer(value))).toBe(true);
      expect(decode(schema, bytes)).toEqual(value);
    }
  });

  test('a recursive schema: a list linked through its own name', () => {
    const schema = {
      type: 'record',
      name: 'node',
      namespace: 'a.b',
      fields: [
        { name: 'value', type: 'long' },
        { name: 'next', type: ['null', 'node'], default: null },
      ],
    };
    const value = { value: 1n, next: { value: 2n, next: { value: 3n, next: null } } };
    const bytes = encode(schema, value);
    expect(Buffer.from(bytes).equals(avscType(schema).toBuffer(value))).toBe(true);
    expect(decode(schema, bytes)).toEqual(value);
  });

  test('NaN and the infinities: the same bytes as avsc', () => {
    for (const schema of ['float', 'double']) {
      for (const value of [Number.NaN, Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, -0]) {
        const bytes = encode(schema, value);
        expect(Buffer.from(bytes).equals(avscType(schema).toBuffer(value))).toBe(true);
        expect(decode(schema, bytes)).toBe(value);
      }
    }
  });
});

describe('encoder: numbers', () => {
  test('B056 longs beyond 2^52: exact, where avsc by itself rounds or refuses', () => {
    for (const value of [-4503599627370497n, 9007199254740993n, 2n ** 63n - 1n, -(2n ** 63n)]) {
      expect(decode('long', encode('long', value))).toBe(value);
    }
    expect(encode('long', -4503599627370497n)).toEqual(encode('long', -4503599627370497));
  });

  test('safe numbers in a long: the same bytes as the bigint', () => {
    fc.assert(
      fc.property(fc.maxSafeInteger(), (value) => {
        expect(encode('long', value)).toEqual(encode('long', BigInt(value)));
      }),
    );
  });

  test('a number that is no safe integer, or a bigint beyond int64: refused', () => {
    for (const value of [2 ** 53, 0.5, Number.NaN, 2n ** 63n, -(2n ** 63n) - 1n, '1', null]) {
      expect(() => encode('long', value)).toThrow('does not fit avro type long');
    }
  });

  test('an int beyond 32 bits or a bigint: refused', () => {
    for (const value of [2 ** 31, -(2 ** 31) - 1, 1.5, 1n, undefined]) {
      expect(() => encode('int', value)).toThrow('does not fit avro type int');
    }
  });
});

describe('encoder: values that do not fit', () => {
  test.each([
    ['null', 0],
    ['boolean', 1],
    ['double', 1n],
    ['float', '1'],
    ['bytes', 'text'],
    ['string', new Uint8Array(1)],
    [{ type: 'fixed', name: 'f', size: 2 }, new Uint8Array(3)],
    [{ type: 'enum', name: 'e', symbols: ['A'] }, 'B'],
    [{ type: 'array', items: 'int' }, new Map([[1, 2]])],
    [{ type: 'map', values: 'int' }, { a: 1 }],
    [{ type: 'record', name: 'r', fields: [] }, null],
    [['null', 'int'], undefined],
    [['null', 'int', 'string'], 1n],
  ])('%j: refuses %o', (schema, value) => {
    expect(() => encode(schema, value)).toThrow('does not fit avro type');
  });

  test('an array of two-field records: takes a Map in its order', () => {
    const entry = {
      type: 'record',
      name: 'kv',
      fields: [
        { name: 'key', type: 'int' },
        { name: 'value', type: 'long' },
      ],
    };
    const schema = { type: 'array', items: entry, logicalType: 'map' };
    const pairs = [
      { key: 5, value: 1n },
      { key: 2, value: 2n },
    ];
    expect(
      encode(
        schema,
        new Map([
          [5, 1n],
          [2, 2n],
        ]),
      ),
    ).toEqual(encode(schema, pairs));
    expect(encode(schema, new Map())).toEqual(Uint8Array.of(0));
  });
});

describe('sink: growth', () => {
  test('one sink used again after reset: no trace of the value before', () => {
    const sink = new ByteSink(2);
    const encodeText = encoderOf(parseSchema('string'));
    encodeText(sink, 'x'.repeat(1000));
    sink.reset();
    encodeText(sink, 'ab');
    expect(sink.take()).toEqual(Uint8Array.of(4, 97, 98));
  });
});
