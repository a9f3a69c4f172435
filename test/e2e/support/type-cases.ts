import type { Type } from '../../../src/core/iceberg/types.ts';

/** Every type of a column with its edges, as it is sent and as a reader finds it. */

/** What is sent, as JSON text, and what a reader finds, spelled as `rows()` spells it. */
export type Case = [json: string, value: unknown];

const bytes = (...values: number[]): Uint8Array => Uint8Array.from(values);
const base64 = (value: Uint8Array): string => JSON.stringify(Buffer.from(value).toString('base64'));
const NINES = '9'.repeat(38);

export const LONG_MAX = 9_223_372_036_854_775_807n;
const TIME_MIN = -62_135_596_800_000_000n;
const TIME_MAX = 253_402_300_799_999_999n;

export const TIMES: Case[] = [
  ['"2026-01-03T12:34:56.789Z"', 1_767_443_696_789_000n],
  ['"2026-01-03t12:34:56z"', 1_767_443_696_000_000n],
  ['"2026-01-03 12:34"', 1_767_443_640_000_000n],
  ['"2026-01-03T12:34:56.123456789+05:30"', 1_767_423_896_123_456n],
  ['"2026-01-03T00:34:56-0800"', 1_767_429_296_000_000n],
  ['"1969-12-31T23:59:59.999999Z"', -1n],
  ['"0001-01-01T00:00:00Z"', TIME_MIN],
  ['"9999-12-31T23:59:59.999999Z"', TIME_MAX],
  ['"2024-02-29T23:59:59Z"', 1_709_251_199_000_000n],
  ['0', 0n],
  ['-1', -1000n],
  ['1767443696789', 1_767_443_696_789_000n],
  ['0.5', 500n],
];

export const FLAT: Record<string, Case[]> = {
  boolean: [
    ['true', true],
    ['false', false],
  ],
  int: [
    ['0', 0],
    ['-0', 0],
    ['2147483647', 2_147_483_647],
    ['-2147483648', -2_147_483_648],
    ['"-17"', -17],
    ['1e3', 1000],
    ['5.0', 5],
  ],
  long: [
    ['0', 0n],
    ['9223372036854775807', LONG_MAX],
    ['-9223372036854775808', -LONG_MAX - 1n],
    ['9007199254740991', 9_007_199_254_740_991n],
    ['9007199254740993', 9_007_199_254_740_993n],
    ['"-9007199254740993"', -9_007_199_254_740_993n],
    ['1e15', 1_000_000_000_000_000n],
  ],
  float: [
    ['0.1', Math.fround(0.1)],
    ['-0.0', -0],
    ['3.4028234663852886e38', 3.4028234663852886e38],
    ['1.401298464324817e-45', 1.401298464324817e-45],
    ['1e-60', 0],
    ['"NaN"', Number.NaN],
    ['"Infinity"', Number.POSITIVE_INFINITY],
    ['"-Infinity"', Number.NEGATIVE_INFINITY],
    ['16777217', 16_777_216],
  ],
  double: [
    ['0.1', 0.1],
    ['-0.0', -0],
    ['0', 0],
    ['1.7976931348623157e308', Number.MAX_VALUE],
    ['-1.7976931348623157e308', -Number.MAX_VALUE],
    ['5e-324', 5e-324],
    ['"NaN"', Number.NaN],
    ['"Infinity"', Number.POSITIVE_INFINITY],
    ['"-Infinity"', Number.NEGATIVE_INFINITY],
    ['12345678901234567890', 12_345_678_901_234_567_000],
  ],
  'decimal(9, 2)': [
    ['0', 0n],
    ['9999999.99', 999_999_999n],
    ['"-9999999.99"', -999_999_999n],
    ['1.1', 110n],
    ['1e2', 10_000n],
    ['"1.500"', 150n],
    ['-0.01', -1n],
  ],
  'decimal(18, 4)': [
    ['99999999999999.9999', 999_999_999_999_999_999n],
    ['"-99999999999999.9999"', -999_999_999_999_999_999n],
    ['0.0001', 1n],
    ['12345678901234.5678', 123_456_789_012_345_678n],
  ],
  'decimal(38, 0)': [
    [NINES, BigInt(NINES)],
    [`-${NINES}`, -BigInt(NINES)],
    [`"${NINES}"`, BigInt(NINES)],
    ['"1e37"', 10n ** 37n],
    ['0', 0n],
  ],
  'decimal(38, 38)': [
    [`0.${NINES}`, BigInt(NINES)],
    [`"-0.${NINES}"`, -BigInt(NINES)],
    ['1e-38', 1n],
  ],
  date: [
    ['"1970-01-01"', 0],
    ['"1969-12-31"', -1],
    ['"0001-01-01"', -719_162],
    ['"9999-12-31"', 2_932_896],
    ['"2024-02-29"', 19_782],
  ],
  time: [
    ['"00:00"', 0n],
    ['"23:59:59.999999"', 86_399_999_999n],
    ['"12:34:56.7"', 45_296_700_000n],
    ['"00:00:00.000001999"', 1n],
  ],
  timestamp: TIMES,
  timestamptz: TIMES,
  string: [
    ['""', ''],
    ['"\\u0000"', '\u0000'],
    ['"\\ud83d\\ude00"', '\u{1f600}'],
    ['"\u{10ffff}\u00e9\ufeff"', '\u{10ffff}\u00e9\ufeff'],
    ['"line\\nquote\\"tab\\t\\\\"', 'line\nquote"tab\t\\'],
    ['"12345678901234567890"', '12345678901234567890'],
    [`"${'long '.repeat(2000)}"`, 'long '.repeat(2000)],
    ['"null"', 'null'],
  ],
  uuid: [
    ['"00000000-0000-0000-0000-000000000000"', '00000000-0000-0000-0000-000000000000'],
    ['"FFFFFFFF-ffff-FFFF-ffff-FFFFFFFFFFFF"', 'ffffffff-ffff-ffff-ffff-ffffffffffff'],
    ['"6ad97a0c-8d9b-4b5e-a2c1-0123456789ab"', '6ad97a0c-8d9b-4b5e-a2c1-0123456789ab'],
  ],
  'fixed[4]': [
    [base64(bytes(0, 0, 0, 0)), bytes(0, 0, 0, 0)],
    [base64(bytes(255, 255, 255, 255)), bytes(255, 255, 255, 255)],
    [base64(bytes(0, 1, 128, 254)), bytes(0, 1, 128, 254)],
  ],
  binary: [
    ['""', bytes()],
    [base64(bytes(0)), bytes(0)],
    [base64(bytes(0xff, 0xfe, 0xc0)), bytes(0xff, 0xfe, 0xc0)],
    [base64(new Uint8Array(5000).fill(7)), new Uint8Array(5000).fill(7)],
  ],
};

const list = (element: Type | object) => ({ type: 'list', element });
const map = (key: Type | object, value: Type | object) => ({ type: 'map', key, value });
const struct = (fields: Record<string, Type | object>) => ({
  type: 'struct',
  fields: Object.entries(fields).map(([name, type]) => ({ name, type })),
});

/** Columns with something in something, each with its cases. */
export const NESTED: Record<string, { type: object; cases: Case[] }> = {
  texts: {
    type: list('string'),
    cases: [
      ['[]', []],
      ['[null]', [null]],
      ['["a", null, "", "\u{1f600}"]', ['a', null, '', '\u{1f600}']],
      [JSON.stringify(Array.from({ length: 500 }, (_, i) => `e${i}`)), Array.from({ length: 500 }, (_, i) => `e${i}`)],
    ],
  },
  longs: {
    type: list('long'),
    cases: [
      ['[9223372036854775807, -9223372036854775808]', [LONG_MAX, -LONG_MAX - 1n]],
      ['[9007199254740993, "9007199254740993", null]', [9_007_199_254_740_993n, 9_007_199_254_740_993n, null]],
    ],
  },
  lists: {
    type: list(list('int')),
    cases: [
      ['[[], [1], null, [null, 2]]', [[], [1], null, [null, 2]]],
      ['[]', []],
    ],
  },
  floats: {
    type: struct({ f: 'float', d: 'double', b: 'boolean' }),
    cases: [
      ['{"f": -0.0, "d": "NaN", "b": false}', { f: -0, d: Number.NaN, b: false }],
      ['{"f": 0, "d": -0.0, "b": true}', { f: 0, d: -0, b: true }],
      ['{"f": "-Infinity", "d": 5e-324}', { f: Number.NEGATIVE_INFINITY, d: 5e-324, b: null }],
      ['{}', { f: null, d: null, b: null }],
    ],
  },
  deep: {
    type: struct({ at: 'timestamptz', in: struct({ day: 'date', more: list(struct({ price: 'decimal(38, 10)' })) }) }),
    cases: [
      [
        '{"at": "0001-01-01T00:00:00Z", "in": {"day": "9999-12-31"}}',
        { at: TIME_MIN, in: { day: 2_932_896, more: null } },
      ],
      [
        '{"in": {"more": [{"price": 9999999999999999999999999999.9999999999}, {}, null]}}',
        { at: null, in: { day: null, more: [{ price: BigInt(NINES) }, { price: null }, null] } },
      ],
      ['{"in": null}', { at: null, in: null }],
    ],
  },
  labels: {
    type: map('string', 'string'),
    cases: [
      ['{}', []],
      [
        '{"a": "b", "": null, "\u{1f600}": ""}',
        [
          ['a', 'b'],
          ['', null],
          ['\u{1f600}', ''],
        ],
      ],
      [
        '[["k", "v"], {"key": "l", "value": "w"}]',
        [
          ['k', 'v'],
          ['l', 'w'],
        ],
      ],
    ],
  },
  counts: {
    type: map('long', list('int')),
    cases: [
      [
        '{"9007199254740993": [1, null], "-1": null}',
        [
          [9_007_199_254_740_993n, [1, null]],
          [-1n, null],
        ],
      ],
      ['[[9223372036854775807, []]]', [[LONG_MAX, []]]],
    ],
  },
  blobs: {
    type: struct({ u: 'uuid', x: 'fixed[4]', b: 'binary', t: 'time' }),
    cases: [
      [
        `{"u": "6ad97a0c-8d9b-4b5e-a2c1-0123456789ab", "x": ${base64(bytes(1, 2, 3, 4))}, "b": "", "t": "23:59:59.999999"}`,
        { u: '6ad97a0c-8d9b-4b5e-a2c1-0123456789ab', x: bytes(1, 2, 3, 4), b: bytes(), t: 86_399_999_999n },
      ],
      [`{"b": ${base64(bytes(0xff))}}`, { u: null, x: null, b: bytes(0xff), t: null }],
    ],
  },
};
