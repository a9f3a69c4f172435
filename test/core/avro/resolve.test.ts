import { describe, expect, test } from 'vitest';
import { ByteSource } from '../../../src/core/avro/decode.ts';
import { type RecordTarget, resolve, type Target, type TargetField } from '../../../src/core/avro/resolve.ts';
import { parseSchema } from '../../../src/core/avro/schema.ts';
import { avscType } from './avsc.ts';

/** What the target makes of a value that avsc wrote under the writer's schema. */
function read(writer: unknown, value: unknown, target: Target): unknown {
  const bytes = new Uint8Array(avscType(writer).toBuffer(value));
  const source = new ByteSource(bytes);
  const result = resolve(parseSchema(writer), target)(source);
  expect(source.at).toBe(bytes.length);
  return result;
}

const record = (...fields: unknown[]) => ({ type: 'record', name: 'r', fields });
const target = (...fields: TargetField[]): RecordTarget => ({
  kind: 'record',
  fields,
  make: (values) => Object.fromEntries(fields.map((field, i) => [field.name, values[i]])),
});
const INT: Target = { kind: 'int' };
const LONG: Target = { kind: 'long' };

describe('resolve: fields by id', () => {
  test('another order, other names, fields that are not wanted: found by id, the rest skipped', () => {
    const everything = record(
      { name: 'x', type: { type: 'array', items: 'string' } },
      { name: 'renamed', type: 'int', 'field-id': 2 },
      { name: 'y', type: { type: 'map', values: 'double' }, 'field-id': 99 },
      { name: 'z', type: { type: 'enum', name: 'e', symbols: ['A', 'B'] } },
      { name: 'nothing', type: 'null' },
      { name: 'u', type: ['null', { type: 'fixed', name: 'f', size: 3 }] },
      { name: 'w', type: { type: 'record', name: 'w', fields: [{ name: 'v', type: 'bytes' }] } },
      { name: 'first', type: 'long', 'field-id': 1 },
    );
    const value = {
      x: ['a', 'b'],
      renamed: 5,
      y: { k: 1.5 },
      z: 'B',
      nothing: null,
      u: Buffer.from('abc'),
      w: { v: Buffer.from('q') },
      first: 7n,
    };
    const wanted = target({ id: 1, name: 'one', target: LONG }, { id: 2, name: 'two', target: INT });
    expect(read(everything, value, wanted)).toEqual({ one: 7n, two: 5 });
  });

  test('a missing optional field: its default, as for null', () => {
    const wanted = target(
      { id: 1, name: 'a', target: LONG, missing: null },
      { id: 2, name: 'b', target: LONG, missing: 0n },
      { id: 3, name: 'c', target: LONG, missing: 0n },
    );
    const writer = record({ name: 'b', type: ['null', 'long'], 'field-id': 2 });
    expect(read(writer, { b: null }, wanted)).toEqual({ a: null, b: 0n, c: 0n });
  });

  test('a missing required field, or one without its id: corrupt, named', () => {
    const wanted = target({ id: 1, name: 'path', target: LONG });
    expect(() => read(record({ name: 'path', type: 'long' }), { path: 1n }, wanted)).toThrow(
      'has no required field path (1)',
    );
  });

  test('null in a required field: corrupt, named', () => {
    const wanted = target({ id: 1, name: 'path', target: LONG });
    const writer = record({ name: 'path', type: ['null', 'long'], 'field-id': 1 });
    expect(() => read(writer, { path: null }, wanted)).toThrow('has null in required field path (1)');
    expect(read(writer, { path: 4n }, wanted)).toEqual({ path: 4n });
  });

  test('a declared field: may be null but not absent', () => {
    const wanted = target({ id: 1, name: 'day', target: INT, missing: null, declared: true });
    expect(read(record({ name: 'day', type: ['null', 'int'], 'field-id': 1 }), { day: null }, wanted)).toEqual({
      day: null,
    });
    expect(() => read(record(), {}, wanted)).toThrow('has no required field day (1)');
  });

  test('one id twice: corrupt', () => {
    const writer = record({ name: 'a', type: 'int', 'field-id': 1 }, { name: 'b', type: 'int', 'field-id': 1 });
    const wanted = target({ id: 1, name: 'a', target: INT });
    expect(() => read(writer, { a: 1, b: 2 }, wanted)).toThrow('repeats field-id 1');
  });

  test('a type that cannot be read as wanted: corrupt before any data is read', () => {
    const writer = parseSchema(record({ name: 'a', type: 'string', 'field-id': 1 }));
    expect(() => resolve(writer, target({ id: 1, name: 'a', target: INT }))).toThrow('field a (1) is no int');
  });
});

describe('resolve: values', () => {
  test.each([
    ['int', 5, INT, 5],
    ['long', 5n, INT, 5],
    ['int', -5, LONG, -5n],
    ['float', 1.5, { kind: 'double' }, 1.5],
    ['double', 0.1, { kind: 'double' }, 0.1],
    ['bytes', Buffer.from('ab'), { kind: 'fixed', size: 2 }, Uint8Array.of(97, 98)],
    [{ type: 'fixed', name: 'f', size: 2 }, Buffer.from('ab'), { kind: 'bytes' }, Uint8Array.of(97, 98)],
    [{ type: 'fixed', name: 'f', size: 4 }, Buffer.from([255, 255, 255, 133]), { kind: 'decimal' }, -123n],
    ['bytes', Buffer.from([0, 200]), { kind: 'decimal' }, 200n],
    [['long', 'null'], null, LONG, null],
    [['null', 'string', 'long'], 9n, LONG, 9n],
    [{ type: 'array', items: 'long' }, [1n, 2n], { kind: 'list', element: INT }, [1, 2]],
    [{ type: 'array', items: ['null', 'long'] }, [1n], { kind: 'list', element: LONG }, [1n]],
  ] as const)('%j %o as %j', (writer, value, wanted, expected) => {
    expect(read(writer, value, wanted as Target)).toEqual(expected);
  });

  test.each([
    ['a long beyond int32', 'long', 2n ** 31n, INT, 'in place of an int'],
    ['bytes of another length', 'bytes', Buffer.from('abc'), { kind: 'fixed', size: 2 }, '3 bytes in place of 2'],
    ['a decimal without bytes', 'bytes', Buffer.alloc(0), { kind: 'decimal' }, 'a decimal of 0 bytes'],
    ['a decimal of 17 bytes', 'bytes', Buffer.alloc(17), { kind: 'decimal' }, 'a decimal of 17 bytes'],
    ['another branch', ['null', 'string', 'long'], 'x', LONG, 'string in place of long'],
    [
      'null in a list',
      { type: 'array', items: ['null', 'int'] },
      [null],
      { kind: 'list', element: INT },
      'list element',
    ],
  ] as const)('%s: corrupt', (_what, writer, value, wanted, message) => {
    expect(() => read(writer, value, wanted as Target)).toThrow(message);
  });
});

describe('resolve: maps', () => {
  const wanted: Target = { kind: 'map', keyId: 117, key: INT, valueId: 118, value: LONG };
  const entry = (key: object, value: object) => ({
    type: 'array',
    items: {
      type: 'record',
      name: 'kv',
      fields: [
        { name: 'key', ...key },
        { name: 'value', ...value },
      ],
    },
  });

  test('entries by id, or by the names key and value: a Map', () => {
    const expected = new Map([
      [1, 10n],
      [2, 20n],
    ]);
    const pairs = [
      { key: 1, value: 10n },
      { key: 2, value: 20n },
    ];
    const withIds = entry({ type: 'int', 'field-id': 117 }, { type: 'long', 'field-id': 118 });
    expect(read(withIds, pairs, wanted)).toEqual(expected);
    expect(read(entry({ type: 'int' }, { type: ['null', 'long'] }), pairs, wanted)).toEqual(expected);
  });

  test('a key twice, or a null value: corrupt', () => {
    const schema = entry({ type: 'int' }, { type: ['null', 'long'] });
    const twice = [
      { key: 1, value: 10n },
      { key: 1, value: 20n },
    ];
    expect(() => read(schema, twice, wanted)).toThrow('repeats map key 1');
    expect(() => read(schema, [{ key: 1, value: null }], wanted)).toThrow('null in required map value');
  });
});
