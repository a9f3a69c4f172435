import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { Column } from '../../../src/core/columns/columns.ts';
import { Misfit } from '../../../src/core/columns/fault.ts';
import { type ForeignColumn, type ForeignType, foreignReader } from '../../../src/core/columns/foreign.ts';
import { foreignCast } from '../../../src/core/columns/foreign-casts.ts';
import { foreignColumn } from '../../../src/core/columns/foreign-column.ts';
import { valueAt } from '../../../src/core/columns/value.ts';
import type { NestedField, Type } from '../../../src/core/iceberg/types.ts';

const OPTIONS = { epochUnit: 'ms', textual: true } as const;
const fieldOf = (type: Type): NestedField => ({ id: 1, name: 'c', required: false, type });

function castTo(column: ForeignColumn, type: Type): { values: unknown[]; faults: [row: number, type: string][] } {
  const made = foreignCast(column.type, type, OPTIONS);
  if ('problem' in made) throw new Error(made.problem);
  const faults: [number, string][] = [];
  const out = foreignColumn(column, fieldOf(type), made.cast, (row, misfit) => faults.push([row, misfit.type]));
  return { values: valuesOf(out, type, faults), faults };
}

/** Values at bad rows are anything. */
function valuesOf(column: Column, type: Type, faults: [number, string][]): unknown[] {
  const bad = new Set(faults.map(([row]) => row));
  const rows = column.kind === 'fixed' ? column.values.length / column.width : lengthOf(column);
  return Array.from({ length: rows }, (_, row) => {
    if (bad.has(row)) return 'bad';
    return column.kind === 'nested' ? column.values[row] : valueAt(column, type as string, row);
  });
}

function lengthOf(column: Column): number {
  if (column.kind === 'dictionary') return column.codes.length;
  return column.kind === 'bytes' ? column.values.offsets.length - 1 : (column.values as ArrayLike<unknown>).length;
}

/** The same values, so that no array can be taken over. */
function byValue(column: ForeignColumn): ForeignColumn {
  const read = foreignReader(column);
  const values = Array.from({ length: column.rows }, (_, row) => read(row));
  return { ...column, data: { form: 'values', values } };
}

const int64 = fc.oneof(
  fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n }),
  fc.bigInt({ min: -(2n ** 40n), max: 2n ** 40n }),
  fc.constantFrom(0n, -1n, -1000n, 2n ** 63n - 1n, -(2n ** 63n), 2n ** 32n, -(2n ** 32n), 999_999_999n, 10n ** 18n),
  fc.constantFrom(
    -62_135_596_800_000_000n,
    -62_135_596_800_000_001n,
    253_402_300_799_999_999n,
    253_402_300_800_000_000n,
  ),
  fc.constantFrom(-62_135_596_800n, -62_135_596_801n, 253_402_300_799n, 253_402_300_800n, -62_135_596_800_001n),
);
const int32 = fc.oneof(
  fc.integer(),
  fc.constantFrom(-719_162, -719_163, 2_932_896, 2_932_897, 999_999_999, 1_000_000_000),
);
const text = fc.oneof(
  fc.string({ unit: 'grapheme' }).map((value) => new TextEncoder().encode(value)),
  fc.constantFrom(Uint8Array.of(0xff), Uint8Array.of(0xc3), Uint8Array.of(0xa9), Uint8Array.of(0xed, 0xa0, 0x80)),
);

function stringsOf(values: readonly Uint8Array[]) {
  const offsets = new Int32Array(values.length + 1);
  values.forEach((value, i) => {
    offsets[i + 1] = offsets[i] + value.length;
  });
  return { bytes: new Uint8Array(Buffer.concat(values)), offsets };
}

function littleEndian(value: bigint): Uint8Array {
  return Uint8Array.from({ length: 16 }, (_, i) => Number((value >> BigInt(8 * i)) & 0xffn));
}

const units = fc.constantFrom('s', 'ms', 'us', 'ns' as const);

/** A column in the forms that readers make, and what it is cast to. */
const columns: fc.Arbitrary<[ForeignColumn, string]> = fc
  .record({
    longs: fc.array(int64, { maxLength: 12 }),
    ints: fc.array(int32, { maxLength: 12 }),
    floats: fc.array(fc.oneof(fc.double(), fc.float(), fc.constantFrom(1e39, -0, 2 ** 53)), { maxLength: 12 }),
    texts: fc.array(text, { maxLength: 12 }),
    unit: units,
    nulls: fc.array(fc.boolean(), { minLength: 12, maxLength: 12 }),
    pick: fc.integer({ min: 0, max: 17 }),
  })
  .map(({ longs, ints, floats, texts, unit, nulls, pick }): [ForeignColumn, string] => {
    const made = (
      rows: number,
      type: ForeignType,
      data: ForeignColumn['data'],
      to: string,
    ): [ForeignColumn, string] => {
      const validity = nulls[0] ? Uint8Array.from(nulls.slice(0, rows), (value) => (value ? 1 : 0)) : null;
      return [{ type, rows, validity, data }, to];
    };
    const int64s = { form: 'int64' as const, values: BigInt64Array.from(longs) };
    const uint64s = { form: 'int64' as const, values: BigUint64Array.from(longs) };
    const numbers = { form: 'numbers' as const, values: Int32Array.from(ints) };
    const unsigned = { form: 'numbers' as const, values: Uint32Array.from(ints) };
    const doubles = { form: 'numbers' as const, values: Float64Array.from(floats) };
    const strings = { form: 'strings' as const, strings: stringsOf(texts) };
    const wide = new Uint8Array(Buffer.concat(longs.map(littleEndian)));
    const fixed = { form: 'fixed' as const, width: 16, bigEndian: false, values: wide };
    const [r, n, f, t] = [longs.length, ints.length, floats.length, texts.length];
    const codes = {
      form: 'dictionary' as const,
      codes: Int32Array.from(ints, (code) => Math.abs(code) % Math.max(t, 1)),
    };
    const entries: ForeignColumn = { type: { kind: 'text' }, rows: t, validity: null, data: strings };
    const signed64 = { kind: 'integer', bits: 64, signed: true } as const;
    const signed32 = { kind: 'integer', bits: 32, signed: true } as const;
    switch (pick) {
      case 0:
        return made(r, signed64, int64s, 'long');
      case 1:
        return made(r, signed64, int64s, 'int');
      case 2:
        return made(r, { kind: 'integer', bits: 64, signed: false }, uint64s, 'long');
      case 3:
        return made(n, signed32, numbers, 'int');
      case 4:
        return made(n, signed32, numbers, 'long');
      case 5:
        return made(n, { kind: 'integer', bits: 32, signed: false }, unsigned, 'int');
      case 6:
        return made(f, { kind: 'float', bits: 64 }, doubles, 'double');
      case 7:
        return made(f, { kind: 'float', bits: 64 }, doubles, 'float');
      case 8:
        return made(f, { kind: 'float', bits: 32 }, { form: 'numbers', values: Float32Array.from(floats) }, 'double');
      case 9:
        return made(r, { kind: 'timestamp', unit }, int64s, 'timestamptz');
      case 10:
        return made(n, { kind: 'date', unit: 'd' }, numbers, 'date');
      case 11:
        return made(r, { kind: 'decimal', precision: 9, scale: 2 }, fixed, 'decimal(9, 2)');
      case 12:
        return made(r, { kind: 'decimal', precision: 18, scale: 2 }, fixed, 'decimal(18, 2)');
      case 13:
        return made(n, { kind: 'decimal', precision: 9, scale: 2 }, numbers, 'decimal(9, 2)');
      case 14:
        return made(r, { kind: 'decimal', precision: 18, scale: 0 }, int64s, 'decimal(18, 0)');
      case 15:
        return made(t, { kind: 'text' }, strings, 'string');
      case 16:
        return made(
          t === 0 ? 0 : n,
          { kind: 'text' },
          { ...codes, codes: t === 0 ? new Int32Array(0) : codes.codes, entries },
          'string',
        );
      default:
        return made(t, { kind: 'bytes', length: null }, strings, 'binary');
    }
  });

describe('foreign columns', () => {
  it('B045, B047, B055: taken array by array they are what they are value by value', () => {
    fc.assert(
      fc.property(columns, ([column, type]) => {
        const own = castTo(column, type);
        expect(own).toEqual(castTo(byValue(column), type));
      }),
      { numRuns: 1500 },
    );
  });

  it('values are views of the body where they lie as the table has them', () => {
    const values = Float64Array.of(1, 2, 3);
    const column: ForeignColumn = {
      type: { kind: 'float', bits: 64 },
      rows: 3,
      validity: null,
      data: { form: 'numbers', values },
    };
    const out = foreignColumn(
      column,
      fieldOf('double'),
      (value) => value,
      () => {},
    );
    expect(out).toEqual({ kind: 'float64', values, validity: null });
    expect((out as { values: Float64Array }).values.buffer).toBe(values.buffer);
  });

  it('what stands in null rows does not stay', () => {
    const validity = Uint8Array.of(1, 0, 1);
    const data = { form: 'numbers' as const, values: Int32Array.of(7, 99, 8) };
    const column: ForeignColumn = { type: { kind: 'integer', bits: 32, signed: true }, rows: 3, validity, data };
    expect(
      foreignColumn(
        column,
        fieldOf('int'),
        (value) => value,
        () => {},
      ),
    ).toEqual({
      kind: 'int32',
      values: Int32Array.of(7, 0, 8),
      validity,
    });
    expect(data.values).toEqual(Int32Array.of(7, 99, 8));
  });

  it('a column of many distinct texts is bytes, of few a dictionary', () => {
    const column = (texts: string[]): ForeignColumn => {
      const strings = stringsOf(texts.map((value) => new TextEncoder().encode(value)));
      return { type: { kind: 'text' }, rows: texts.length, validity: null, data: { form: 'strings', strings } };
    };
    const kindOf = (texts: string[]) =>
      foreignColumn(
        column(texts),
        fieldOf('string'),
        (value) => value,
        () => {},
      ).kind;
    expect(kindOf(Array.from({ length: 10_000 }, (_, i) => `t${i}`))).toBe('bytes');
    expect(kindOf(Array.from({ length: 10_000 }, (_, i) => `t${i % 50}`))).toBe('dictionary');
  });
});

describe('foreign casts', () => {
  const cast = (from: ForeignType, to: Type, value: unknown): unknown => {
    const made = foreignCast(from, to, OPTIONS);
    if ('problem' in made) return made.problem;
    const result = made.cast(value);
    return result instanceof Misfit ? result.type : result;
  };
  const TEXT: ForeignType = { kind: 'text' };
  const LONG: ForeignType = { kind: 'integer', bits: 64, signed: true };
  const DOUBLE: ForeignType = { kind: 'float', bits: 64 };
  const DECIMAL: ForeignType = { kind: 'decimal', precision: 10, scale: 2 };

  it.each<[ForeignType, Type, unknown, unknown]>([
    [TEXT, 'long', '9007199254740993', 9_007_199_254_740_993n],
    [TEXT, 'int', '12.5', 'wrong-type'],
    [TEXT, 'double', '1.5', 1.5],
    [TEXT, 'boolean', 'true', true],
    [TEXT, 'decimal(19, 2)', '12345678901234567.89', 1_234_567_890_123_456_789n],
    [TEXT, 'timestamptz', '2026-01-03T00:00:00.123456789+01:00', 1_767_394_800_123_456n],
    [TEXT, 'date', '2026-01-03', 20_456],
    [TEXT, 'uuid', 'x', 'malformed-value'],
    [TEXT, 'binary', 'AAE=', Uint8Array.of(0, 1)],
    [TEXT, 'string', undefined, 'malformed-utf8'],
    [LONG, 'double', 2n ** 60n, 2 ** 60],
    [LONG, 'decimal(20, 2)', 7n, 700n],
    [LONG, 'timestamptz', 1_767_394_800_123n, 1_767_394_800_123_000n],
    [DOUBLE, 'long', 5, 5n],
    [DOUBLE, 'long', 5.5, 'wrong-type'],
    [DOUBLE, 'int', Number.NaN, 'out-of-range'],
    [DOUBLE, 'long', 2 ** 53, 'inexact-number'],
    [DOUBLE, 'decimal(9, 2)', 1.1, 110n],
    [DOUBLE, 'float', 1e39, 'out-of-range'],
    [DECIMAL, 'decimal(12, 4)', 125n, 12_500n],
    [DECIMAL, 'decimal(12, 1)', 125n, 'inexact-number'],
    [DECIMAL, 'decimal(12, 1)', 120n, 12n],
    [DECIMAL, 'decimal(4, 2)', 10_000n, 'out-of-range'],
    [DECIMAL, 'long', -700n, -7n],
    [DECIMAL, 'int', 701n, 'wrong-type'],
    [DECIMAL, 'double', 125n, 1.25],
    [{ kind: 'decimal', precision: 3, scale: -2 }, 'long', 5n, 500n],
    [{ kind: 'date', unit: 'd' }, 'timestamp', -1, -86_400_000_000n],
    [{ kind: 'date', unit: 'ms' }, 'date', 86_400_000n, 1],
    [{ kind: 'date', unit: 'ms' }, 'date', 86_400_001n, 'inexact-number'],
    [{ kind: 'time', unit: 's' }, 'time', 86_400, 'out-of-range'],
    [{ kind: 'time', unit: 'ns' }, 'time', 1999n, 1n],
    [{ kind: 'bytes', length: null }, 'uuid', new Uint8Array(16), new Uint8Array(16)],
    [{ kind: 'bytes', length: null }, 'fixed[4]', new Uint8Array(3), 'malformed-value'],
    [{ kind: 'bytes', length: null }, 'string', Uint8Array.of(0xc3, 0xa9), 'é'],
    [{ kind: 'bytes', length: null }, 'string', Uint8Array.of(0xc3), 'malformed-utf8'],
    [LONG, 'string', 1n, 'comes as integer of 64 bits, of which no string is made'],
    [{ kind: 'other', name: 'duration' }, 'long', 1n, 'comes as duration, of which no long is made'],
    [{ kind: 'timestamp', unit: 'us' }, 'date', 0n, 'comes as timestamp in us, of which no date is made'],
  ])('B031, B037, B040: %j to %s of %s', (from, to, value, expected) => {
    expect(cast(from, to, value)).toEqual(expected);
  });

  it('fields of structs go by name, and what is inside is named', () => {
    const to: Type = {
      type: 'struct',
      fields: [
        { id: 2, name: 'x', required: true, type: 'int' },
        { id: 3, name: '__proto__', required: false, type: 'string' },
        { id: 4, name: 'z', required: false, type: 'long' },
      ],
    };
    const from = (...fields: [string, ForeignType][]): ForeignType => ({
      kind: 'struct',
      fields: fields.map(([name, type]) => ({ name, type })),
    });
    const both = from(['__proto__', TEXT], ['x', LONG]);
    const made = foreignCast(both, to, OPTIONS);
    if ('problem' in made) throw new Error(made.problem);
    expect(Object.entries(made.cast(['a', 1n]) as object)).toEqual([
      ['x', 1],
      ['__proto__', 'a'],
      ['z', null],
    ]);
    expect(made.cast(['a', null])).toMatchObject({ type: 'null-in-required', path: '.x' });
    expect(cast(from(['z', LONG]), to, [])).toBe('has no field x, which is required');
    expect(cast(from(['x', LONG], ['w', LONG]), to, [])).toBe('has a field w that the table does not have');
    expect(cast(from(['x', TEXT], ['x', TEXT]), to, [])).toBe('has two fields of one name');
  });

  it('a map names each key once, and none of them null', () => {
    const to: Type = { type: 'map', 'key-id': 1, key: 'long', 'value-id': 2, value: 'long', 'value-required': true };
    const from: ForeignType = { kind: 'map', key: { name: 'k', type: LONG }, value: { name: 'v', type: LONG } };
    expect(cast(from, to, [[1n, 2n]])).toEqual(new Map([[1n, 2n]]));
    expect(
      cast(from, to, [
        [1n, 2n],
        [1n, 3n],
      ]),
    ).toBe('duplicate-key');
    expect(cast(from, to, [[null, 2n]])).toBe('null-in-required');
    expect(cast(from, to, [[1n, null]])).toBe('null-in-required');
    expect(cast(from, to, [null])).toBe('null-in-required');
  });
});
