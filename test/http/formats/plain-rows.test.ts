import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { parseTimestamp, timestampAt } from '../../../src/core/columns/times.ts';
import { ndjsonReader } from '../../../src/http/formats/ndjson.ts';
import { NumberReader } from '../../../src/http/formats/number-bytes.ts';
import { rowBudget, rowCollector } from '../../../src/http/row-collector.ts';
import { digitsOf } from '../../../src/http/rows.ts';
import { bytesOf, schemaOf } from '../bodies.ts';

const SCHEMA = schemaOf({
  time: 'timestamptz!',
  device: 'string',
  d: 'double',
  f: 'float',
  n: 'long',
  i: 'int',
  flag: 'boolean',
  day: 'date',
  amount: 'decimal(12, 3)',
  id: 'uuid',
  raw: 'binary',
  näme: 'string',
  list: { type: 'list', 'element-id': 100, element: 'long', 'element-required': false },
});

/** What comes of a body, read in windows that end behind a line; `plain`: with the plain rows taken apart, else all parsed. */
function read(windows: readonly Uint8Array[], plain: boolean, evolve?: 'json') {
  const collector = rowCollector(SCHEMA, rowBudget(1000), {
    onError: 'skip',
    epochUnit: 'ms',
    textual: false,
    filledField: null,
    evolve,
  });
  let taken = 0;
  const sink = {
    ...collector,
    plain: (bytes: Uint8Array, from: number, line: number) => {
      const found = collector.plain?.(bytes, from, line) ?? { rows: 0, end: from };
      taken += found.rows;
      return found;
    },
  };
  const reader = ndjsonReader(plain ? sink : { ...collector, plain: undefined }, { digits: digitsOf(SCHEMA) });
  try {
    windows.forEach((window, i) => {
      reader.take(window, i === windows.length - 1);
    });
    return { found: collector.finish(), taken };
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    return { found: [error.type, error.message], taken };
  }
}

/** Values as texts of JSON: mostly of the column's type, and what is near to it and is not. */
const VALUES: Record<string, fc.Arbitrary<string>> = {
  time: fc.constantFrom(
    '"2026-01-03T12:34:56.789Z"',
    '"2026-01-03T12:34:56Z"',
    '"2026-02-29T00:00:00Z"',
    '"2026-01-03T12:34:56.123456789Z"',
    '"2026-01-03T12:34:56.Z"',
    '"2026-01-03 12:34+02:00"',
    '"0001-01-01T00:00:00Z"',
    '1767443696789',
    '17674436967890000000',
    '"x"',
    'null',
  ),
  device: fc.oneof(
    fc.constantFrom('"a"', '"b"', '""', '"sensor-17"', '"ü€😀"', '"a\\u0062"', '"\\ud800"', '1', 'true', '"a\tb"'),
    fc.integer({ min: 0, max: 40 }).map((n) => `"number ${n} of many"`),
  ),
  d: fc.oneof(
    fc.double({ noNaN: true, noDefaultInfinity: true }).map(String),
    fc.constantFrom(
      '0',
      '-0',
      '1e400',
      '1E-3',
      '-12.50',
      '0.1234567890123456789',
      '01',
      '1.',
      '.5',
      '-',
      '"NaN"',
      '+1',
    ),
  ),
  f: fc.constantFrom('1.5', '0.1', '3.14159265358979312', '1e39', '-0.0'),
  n: fc.oneof(
    fc.bigInt({ min: -(2n ** 64n), max: 2n ** 64n }).map(String),
    fc.constantFrom('0', '-7', '1.0', '1e3', '1.5', '"12"', '9007199254740993', 'null'),
  ),
  i: fc.constantFrom('1', '-2147483648', '2147483648', '1.0', '"7"', '1.00000000000000001'),
  flag: fc.constantFrom('true', 'false', 'null', 'tru', 'falsy', '"true"', '1'),
  day: fc.constantFrom('"2026-01-03"', '"2026-02-30"', '20260103'),
  amount: fc.constantFrom(
    '1.5',
    '1.0005',
    '123456789.123',
    '1234567890.123',
    '0.1000000000000000055',
    '"2.250"',
    '1e2',
  ),
  id: fc.constantFrom('"01a22967-4fbe-7180-825a-ee47d9a6e567"', '"01a2"'),
  raw: fc.constantFrom('"AQID"', '"AQI"', '""'),
  näme: fc.constantFrom('"x"', '"ß"'),
  list: fc.constantFrom('[1,2]', '[]', 'null', '3'),
  other: fc.constantFrom('1', '"x"', 'null'),
};

const blank = fc.constantFrom('', '', '', ' ', '\t', '  ');

/** One line, often plain: names in any order, now and then twice. */
const line = fc
  .tuple(
    fc.option(fc.constant('"time":"2026-01-03T00:00:00Z"'), { nil: null, freq: 8 }),
    fc.array(
      fc
        .constantFrom(...Object.keys(VALUES))
        .chain((name) => fc.tuple(VALUES[name], blank, blank).map((parts) => ({ name, parts }))),
      { maxLength: 4 },
    ),
    blank,
    fc.constantFrom('\n', '\n', '\n', '\r\n', ' \n', '}\n', '\n\n', ',\n'),
  )
  .map(([time, pairs, space, end]) => {
    const texts = pairs.map(({ name, parts: [value, before, after] }) => `"${name}"${before}:${after}${value}`);
    return `{${space}${(time === null ? texts : [time, ...texts]).join(`${space},`)}${space}}${end}`;
  });

describe('plain rows', () => {
  it('what is taken apart and what is parsed comes to the same, rows and faults', () => {
    const tests = fc.property(
      fc.array(fc.array(line, { minLength: 1, maxLength: 12 }), { minLength: 1, maxLength: 3 }),
      fc.constantFrom(undefined, 'json' as const),
      (lines, evolve) => {
        const windows = lines.map((one) => bytesOf(one.join('')));
        expect(read(windows, true, evolve).found).toEqual(read(windows, false, evolve).found);
      },
    );
    fc.assert(tests, { numRuns: 100 });
  });

  it('bytes that are no JSON or no UTF-8 come to the same', () => {
    const good = bytesOf('{"time":"2026-01-03T12:34:56.789Z","device":"ü","d":1.25,"n":17,"flag":true}\n');
    const tests = fc.property(
      fc.array(fc.tuple(fc.nat(good.length - 2), fc.nat(255)), { maxLength: 3 }),
      fc.nat(3),
      (changes, before) => {
        const bad = good.slice();
        for (const [at, byte] of changes) bad[at] = byte;
        const windows = [
          new Uint8Array([
            ...Array(before)
              .fill([...good])
              .flat(),
            ...bad,
            ...good,
          ]),
        ];
        expect(read(windows, true).found).toEqual(read(windows, false).found);
      },
    );
    fc.assert(tests, { numRuns: 200 });
  });

  it('ordinary rows are all taken apart, and an odd one among many costs only itself', () => {
    const rows = Array.from({ length: 100 }, (_, i) =>
      JSON.stringify({ time: '2026-01-03T12:34:56.789Z', device: `d${i % 3}`, d: Math.sin(i), n: i, flag: null }),
    );
    expect(read([bytesOf(`${rows.join('\n')}\n`)], true).taken).toBe(100);
    expect(read([bytesOf(rows.join('\r\n').replaceAll(':', ': ').replaceAll(': 34: 56', ':34:56'))], true).taken).toBe(
      100,
    );
    rows[50] = '{"time":"2026-01-03T12:34:56.789Z","device":"\\u0041"}';
    expect(read([bytesOf(rows.join('\n'))], true).taken).toBe(99);
  });

  it('a text of a row that was given up is no text of the column', () => {
    const row = (device: string, time = '2026-01-03T00:00:00Z') => `{"device":"${device}","time":"${time}"}\n`;
    const windows = [bytesOf(row('a').repeat(20) + row('b', 'never') + row('c') + row('b'))];
    expect(read(windows, true)).toEqual({ found: read(windows, false).found, taken: 22 });
  });

  it('a column with more texts than are known by their bytes', () => {
    const windows = [0, 1].map(() =>
      bytesOf(
        Array.from({ length: 500 }, (_, i) => `{"time":"2026-01-03T00:00:00Z","device":"${i * 7919}"}\n`).join(''),
      ),
    );
    const one = read(windows, true);
    expect(one.found).toEqual(read(windows, false).found);
    expect(one.taken).toBe(1000);
  });
});

describe('numbers out of bytes', () => {
  const reader = new NumberReader();

  function agree(text: string): boolean {
    const end = reader.read(bytesOf(`${text},`), 0);
    if (end !== text.length || (reader.isKnown && !Object.is(reader.value, Number(text)))) {
      expect([text, end, reader.value]).toEqual([text, text.length, Number(text)]);
    }
    return reader.isKnown;
  }

  it('are the doubles that JSON.parse makes of them', () => {
    let known = 0;
    for (let i = 0; i < 20_000; i++) {
      const scale = 10 ** Math.floor(Math.random() * 12 - 3);
      if (agree(String((Math.random() - 0.5) * scale))) known++;
    }
    // Those below 1e-6 have an exponent.
    expect(known).toBeGreaterThan(18_500);
  });

  it('also just beside the middle between two doubles, or known not to be', () => {
    const bits = new BigUint64Array(1);
    const double = new Float64Array(bits.buffer);
    for (let i = 0; i < 5000; i++) {
      double[0] = Math.random() * 10 ** Math.floor(Math.random() * 6);
      const low = double[0];
      bits[0]++;
      // The middle to 60 digits: both are multiples of 2^-60 or so, exactly.
      const middle = (BigInt(Math.floor(low * 2 ** 52)) + BigInt(Math.floor(double[0] * 2 ** 52))) * 10n ** 18n;
      const digits = (middle / 2n ** 53n).toString().padStart(19, '0');
      const text = `${digits.slice(0, -18)}.${digits.slice(-18)}`;
      for (const length of [16, 17, 18, 19]) agree(text.slice(0, length + 1).replace(/\.$/, ''));
    }
  });

  it.each(['0', '-0', '10', '0.5', '123456789012345678', '9007199254740994', '0.000000000000000000001', '1.10'])(
    '%s',
    (text) => {
      expect(agree(text)).toBe(true);
      expect(Object.is(reader.value, Number(text))).toBe(true);
    },
  );

  it('in the very middle between two doubles none is told', () => {
    expect(agree('9007199254740993')).toBe(false);
  });

  it.each(['', '-', '01', '-01', '1.', '.1', '1.e5', '1e', '1e+', '+1', 'x'])('%s is none', (text) => {
    expect(reader.read(bytesOf(`${text},`), 0)).toBe(-1);
  });
});

it('times out of bytes are those of the text', () => {
  const texts = [
    '2026-01-03T12:34:56.789Z',
    '2024-02-29T23:59:59Z',
    '1969-12-31T00:00:00.000001Z',
    '1600-01-01T00:00:00Z',
  ];
  for (const text of texts) {
    for (let at = 0; at < text.length; at++) {
      for (const other of ['', '0', '9', '.', 'T', 'Z', ':', '-', '00', 'ü']) {
        const changed = text.slice(0, at) + other + text.slice(at + 1);
        const bytes = bytesOf(`"${changed}"`);
        const micros = timestampAt(bytes, 1, bytes.length - 1);
        if (!Number.isNaN(micros)) expect([changed, micros]).toEqual([changed, parseTimestamp(changed)]);
      }
    }
  }
  expect(timestampAt(bytesOf('2026-01-03T12:34:56.789Z'), 0, 24)).toBe(1_767_443_696_789_000);
});
