import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LINE_BYTES_MAX } from '../../../src/core/base/limits.ts';
import { readWindows } from '../../../src/http/body.ts';
import { type PointTable, pointReader } from '../../../src/http/formats/line-protocol.ts';
import { bytesOf, refusal, streamOf } from '../bodies.ts';

const NOW_MICROS = 1_800_000_000_000_000;

interface Given {
  precision?: 'ns' | 'us' | 'ms' | 's';
  cuts?: readonly number[];
  windowBytes?: number;
  exact?: boolean;
  typed?: boolean;
  timeColumn?: string;
}

/** Everything that a reader tells, in order. */
async function read(body: string | Uint8Array, given: Given = {}) {
  const { precision = 'ns', cuts, windowBytes, exact = false, typed = false, timeColumn = 'time' } = given;
  const rows: unknown[][] = [];
  const faults: unknown[][] = [];
  const malformed: unknown[][] = [];
  const tables = new Map<string, PointTable>();
  const reader = pointReader({
    precision,
    nowMicros: NOW_MICROS,
    tables,
    malformed: (line, message, text) => malformed.push([line, message, text]),
  });
  const bytes = typeof body === 'string' ? bytesOf(body) : body;
  await readWindows(streamOf(bytes, cuts), { contentEncoding: null, windowBytes }, (window, last) => {
    let at = 0;
    for (;;) {
      at += reader.take(window.subarray(at), last);
      const { wanted } = reader;
      if (wanted === null) return at;
      tables.set(wanted, {
        timeColumn,
        exact,
        typed,
        untimed: false,
        sink: {
          row: (row, line) => rows.push([wanted, row, line]),
          fault: (line, type, message, text, field) => faults.push([line, type, field, message, text]),
        },
      });
    }
  });
  return { rows, faults, malformed, untimed: [...tables].filter(([, table]) => table.untimed).map(([name]) => name) };
}

/** The row of the one point in a body. */
async function point(body: string, given: Given = {}): Promise<Record<string, unknown>> {
  const { rows, faults, malformed } = await read(body, given);
  expect({ faults, malformed, points: rows.length }).toEqual({ faults: [], malformed: [], points: 1 });
  return rows[0][1] as Record<string, unknown>;
}

/** The value of the field `v`. */
const field = async (text: string, given: Given = {}) => (await point(`m v=${text} 1`, given))['v'];

describe('line protocol', () => {
  it('tags, fields and time become one row', async () => {
    const { rows, untimed } = await read(
      'cpu,host=a,region=eu usage=0.5,count=3i,total=4u,up=t,note="ok" 1700000000123456789\n',
    );
    expect(rows).toEqual([
      [
        'cpu',
        { host: 'a', region: 'eu', usage: 0.5, count: 3, total: 4, up: true, note: 'ok', time: 1_700_000_000_123_456 },
        1,
      ],
    ]);
    expect(untimed).toEqual([]);
  });

  it('lines of several measurements come with theirs, blank lines and comments are skipped and counted', async () => {
    const { rows } = await read('\n# a comment, with "quotes\n  m v=1 1\r\n\t\n \r\nn v=2 2\n#\nm v=3 3');
    expect(rows).toEqual([
      ['m', { v: 1, time: 0 }, 3],
      ['n', { v: 2, time: 0 }, 6],
      ['m', { v: 3, time: 0 }, 8],
    ]);
  });

  it('a point without a time is of the time given, and its table is told', async () => {
    const { rows, untimed } = await read('m v=1\nm v=2 \nn v=1 1\n');
    expect(rows.map(([, row]) => (row as { time: number }).time)).toEqual([NOW_MICROS, NOW_MICROS, 0]);
    expect(untimed).toEqual(['m']);
  });

  it('several spaces between the parts, and behind them, are one', async () => {
    expect(await point('m,t=a   v=1   5000  \r\n')).toEqual({ t: 'a', v: 1, time: 5 });
  });

  it('escapes in names and tags stand for the character; any other backslash is one', async () => {
    expect(await point('m\\ 1\\,2=3,t\\ a\\=g=v\\,a\\ l\\=u\\e f\\,1=1,back\\slash=2 1')).toEqual({
      't a=g': 'v,a l=u\\e',
      'f,1': 1,
      'back\\slash': 2,
      time: 0,
    });
    expect((await read('m\\ 1\\,2=3 v=1 1')).rows[0][0]).toBe('m 1,2=3');
    expect(await point('m,t=a\\\\b v=1 1')).toMatchObject({ t: 'a\\\\b' });
    // A backslash before a comma escapes it, also behind another one.
    expect(await point('m,t=a\\\\,b v=1 1')).toMatchObject({ t: 'a\\,b' });
    expect(await point('m,t="a" v=1 1')).toMatchObject({ t: '"a"' });
  });

  it.each([
    ['B077', '"a\nb"', 'a\nb'],
    ['B077', '"a\r\nb\n"', 'a\r\nb\n'],
    ['B079', '"C:\\\\"', 'C:\\'],
    ['B079', '"C:\\\\\\""', 'C:\\"'],
    ['a quote', '"say \\"hi\\""', 'say "hi"'],
    ['a backslash before another character', '"a\\nb\\,"', 'a\\nb\\,'],
    ['what splits a line elsewhere', '"a,b=c d 1"', 'a,b=c d 1'],
    ['nothing', '""', ''],
    ['beyond ASCII', '"ä€😀"', 'ä€😀'],
  ])('%s: a text of %j is read', async (_, text, value) => {
    expect(await field(text)).toBe(value);
    expect(await point(`m a=1,v=${text},b=2 1`)).toEqual({ a: 1, v: value, b: 2, time: 0 });
  });

  it('B077: a newline in a text does not split the point, and lines are counted', async () => {
    const { rows, malformed } = await read('m v="a\nb" 1\nm v="c" 1\nm v=\n');
    expect(rows.map(([, row, line]) => [(row as { v: string }).v, line])).toEqual([
      ['a\nb', 1],
      ['c', 3],
    ]);
    expect(malformed).toEqual([[4, 'line has no value for field v', 'm v=']]);
  });

  it.each<[string, unknown]>([
    ['1', 1],
    ['-1.5', -1.5],
    ['1e3', 1000],
    ['1E-3', 0.001],
    ['3.141592653589793238', Math.PI],
    ['9007199254740993', 9_007_199_254_740_992],
    ['1.', 1],
    ['.5', 0.5],
    ['+2', 2],
    ['007', 7],
    ['1i', 1],
    ['-0i', -0],
    ['9007199254740993i', 9_007_199_254_740_993n],
    ['9223372036854775807i', 9_223_372_036_854_775_807n],
    ['-9223372036854775808i', -9_223_372_036_854_775_808n],
    ['0u', 0],
    ['18446744073709551615u', 18_446_744_073_709_551_615n],
    ...['t', 'T', 'true', 'True', 'TRUE'].map((word): [string, unknown] => [word, true]),
    ...['f', 'F', 'false', 'False', 'FALSE'].map((word): [string, unknown] => [word, false]),
  ])('a field of %s is read', async (text, value) => {
    expect(await field(text)).toBe(value);
  });

  it('a float keeps its digits where decimals need them', async () => {
    expect(await field('1234567890123456.78', { exact: true })).toBe('\udc001234567890123456.78');
    expect(await field('0.5', { exact: true })).toBe(0.5);
  });

  it.each([
    ['9223372036854775808i', 'out-of-range'],
    ['-9223372036854775809i', 'out-of-range'],
    ['18446744073709551616u', 'out-of-range'],
    [`${'9'.repeat(5000)}i`, 'out-of-range'],
    ...['NaN', 'nan', 'Inf', '+Inf', '-inf', 'Infinity'].map((text) => [text, 'malformed-value']),
  ])('B083: %s is a fault of its field, and other points are taken', async (text, type) => {
    const { rows, faults, malformed } = await read(`m v=1 1\nm a=1,v=${text} 1\nm v=2 1\n`);
    expect(malformed).toEqual([]);
    expect(faults.map((fault) => fault.slice(0, 3))).toEqual([[2, type, 'v']]);
    expect(rows).toHaveLength(2);
  });
});

describe('line protocol: time', () => {
  const time = async (digits: string, precision: Given['precision']) =>
    (await point(`m v=1 ${digits}`, { precision }))['time'];

  it.each<[digits: string, precision: 'ns' | 'us' | 'ms' | 's', micros: number | bigint]>([
    ['1700000000123456789', 'ns', 1_700_000_000_123_456],
    ['1700000000123456', 'us', 1_700_000_000_123_456],
    ['1700000000123', 'ms', 1_700_000_000_123_000],
    ['1700000000', 's', 1_700_000_000_000_000],
    ['0', 'ns', 0],
    ['-1', 'ns', -1],
    ['-1500', 'ns', -2],
    ['1', 's', 1_000_000],
    ['-62135596800', 's', -62_135_596_800_000_000n],
    ['253402300799', 's', 253_402_300_799_000_000n],
    ['9223372036854775807', 'ns', 9_223_372_036_854_775n],
  ])('%s in %s', async (digits, precision, micros) => {
    expect(Number(await time(digits, precision))).toBe(Number(micros));
  });

  it('B082: seconds, milliseconds and microseconds posted in a finer unit are refused, with the unit that fits', async () => {
    const digits = { s: '1700000000', ms: '1700000000000', us: '1700000000000000', ns: '1700000000000000000' } as const;
    const units = ['s', 'ms', 'us', 'ns'] as const;
    for (const sent of units) {
      for (const precision of units) {
        const { rows, faults } = await read(`m v=1 ${digits[sent]}`, { precision });
        if (sent === precision) {
          expect(rows).toHaveLength(1);
          continue;
        }
        expect(faults.map((fault) => fault.slice(0, 3))).toEqual([[1, 'out-of-range', 'time']]);
        expect(faults[0][3]).toMatch(new RegExp(`^time in ${precision} is .*in ${sent} it would be of our time`));
      }
    }
  });

  it('B082: times that no unit makes ours are taken as they are, and refused outside of the years 0001 to 9999', async () => {
    expect(await time('86400', 's')).toBe(86_400_000_000);
    expect(await time('1234', 'ms')).toBe(1_234_000);
    expect(await time('946684799', 'ns')).toBe(946_684);
    for (const [digits, precision] of [
      ['253402300800', 's'],
      ['-62135596801', 's'],
      ['99999999999999999999', 'us'],
    ] as const) {
      const { faults } = await read(`m v=1 ${digits}`, { precision });
      expect(faults.map((fault) => fault.slice(0, 3))).toEqual([[1, 'out-of-range', 'time']]);
    }
  });
});

describe('line protocol: what is wrong', () => {
  it.each([
    ['m', 'has no fields'],
    ['m ', 'has no fields'],
    ['m,t=a', 'has no fields'],
    ['m,t=a \r', 'has no fields'],
    [',t=a v=1', 'has no measurement'],
    ['m,t v=1', 'has a tag or field without a value'],
    ['m,t= v=1', 'has no value for tag t'],
    ['m,=a v=1', 'has a tag or field without a name'],
    ['m, v=1', 'has a tag or field without a value'],
    ['m,t=a=b v=1', 'has a bare equals sign in tag t'],
    ['m v', 'has a tag or field without a value'],
    ['m v=', 'has no value for field v'],
    ['m =1', 'has a tag or field without a name'],
    ['m v=1,', 'has a tag or field without a value'],
    ['m v=1,,w=1', 'has a tag or field without a value'],
    ['m v=abc', 'has no value for field v'],
    ['m v=0x10', 'has no value for field v'],
    ['m v=1.5i', 'has no value for field v'],
    ['m v=-1u', 'has no value for field v'],
    ['m v=i', 'has no value for field v'],
    ['m v=tRUE', 'has no value for field v'],
    ["m v='a'", 'has no value for field v'],
    ['m v="a"b 1', 'has text behind the closing quote of field v'],
    ['m v=1 x', 'ends with something else than a time in digits'],
    ['m v=1 1.5', 'ends with something else than a time in digits'],
    ['m v=1 -', 'ends with something else than a time in digits'],
    ['m v=1 123456789012345678901', 'ends with something else than a time in digits'],
    ['m v=1 1 2', 'goes on behind its time'],
    ['{"m":1}', 'has no fields'],
  ])('%j is malformed, and told with its line', async (line, problem) => {
    const { rows, faults, malformed } = await read(`m v=1 1\n${line}\nm v=2 1\n`);
    expect(malformed.map(([at, message]) => [at, message])).toEqual([[2, `line ${problem}`]]);
    expect(faults).toEqual([]);
    expect(rows.map(([, row]) => row)).toEqual([
      { v: 1, time: 0 },
      { v: 2, time: 0 },
    ]);
  });

  it('a name that stands twice, and one of the time column, is a fault of the row', async () => {
    for (const line of ['m a=1,a=2 1', 'm,a=x a=1 1', 'm,a=x,a=y v=1 1', 'm time=5 1', 'm,time=x v=1 1']) {
      const { rows, faults } = await read(`m,a=1 b=1 1\n${line}\n${line}\nm b=1,a=1 1\n${line}\n`);
      expect(faults.map((fault) => fault.slice(0, 2))).toEqual([2, 3, 5].map((at) => [at, 'duplicate-key']));
      expect(rows).toHaveLength(2);
    }
  });

  it('names of objects are names like others', async () => {
    const { rows } = await read('m,constructor=a __proto__=1,toString=2 1');
    const row = rows[0][1] as object;
    expect(Object.entries(row)).toEqual([
      ['constructor', 'a'],
      ['__proto__', 1],
      ['toString', 2],
      ['time', 0],
    ]);
  });

  it('a text that is never closed ends the reading', async () => {
    expect(await refusal(read('m v=1 1\nm v="a\nm v=2 1\n'))).toMatchObject({
      type: 'truncated-body',
      detail: { line: 2 },
    });
  });

  it('bytes that are not UTF-8 are malformed lines, and other lines of the window are as they are', async () => {
    const body = bytesOf('m v="ä\n" 1\nm v="?\n",w="=" 1\n# ?="\nm,t="ü v=2 1\nm v=3 1\n');
    body[body.indexOf(0x3f)] = 0xff;
    body[body.indexOf(0x3f)] = 0xff;
    const { rows, malformed } = await read(body);
    expect(malformed).toEqual([
      [3, 'line is not UTF-8', ''],
      [5, 'line is not UTF-8', ''],
    ]);
    expect(rows.map(([, row, line]) => [row, line])).toEqual([
      [{ v: 'ä\n', time: 0 }, 1],
      [{ t: '"ü', v: 2, time: 0 }, 6],
      [{ v: 3, time: 0 }, 7],
    ]);
  });

  it('an empty body, and one of comments, is refused', async () => {
    for (const body of ['', '\n', '# nothing\n']) {
      expect(await refusal(read(body))).toMatchObject({ type: 'empty-body' });
    }
  });

  it('a point that is longer than a row may be is refused by its line', async () => {
    const long = 'x'.repeat(LINE_BYTES_MAX);
    for (const text of [`"${long}"`, `"${long}`, `"${'y\n'.repeat(LINE_BYTES_MAX)}"`]) {
      expect(await refusal(read(`m v=1 1\nm v=${text}`))).toMatchObject({ type: 'line-too-long', detail: { line: 2 } });
    }
  });
});

describe('line protocol: windows', () => {
  const BODY =
    'm,t=ä v="a\nb",w="C:\\\\" 1\nn,host=a\\ b v=1 2000\r\n\n# c\nm,t=€ v="😀\n\n",w="" 3000\nm x=1i,y=f\n\n  n v=-1.5e3 4000';

  it('where windows and pieces end makes no difference', async () => {
    const expected = await read(BODY);
    expect(expected.rows).toHaveLength(5);
    const bytes = bytesOf(BODY);
    for (let cut = 0; cut < bytes.length; cut++) {
      expect(await read(bytes, { cuts: [cut, cut + 1], windowBytes: 3 })).toEqual(expected);
    }
    const every = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
    expect(await read(bytes, { cuts: every, windowBytes: 1 })).toEqual(expected);
  });

  it('what is written as the protocol says is read as it was meant, in any order of names', async () => {
    const name = fc.stringMatching(/^[a-c ,=\\]{0,3}[a-c]$/);
    const tag = fc.stringMatching(/^[a-z ,="\\€\t]{0,5}[a-z]$/);
    const value = fc.oneof(
      fc.string({ unit: fc.constantFrom(...'ab"\\\n ,=€') }),
      fc.integer(),
      fc.boolean(),
      fc.double({ noNaN: true, noDefaultInfinity: true }),
    );
    const escaped = (text: string) => text.replaceAll(/[, =]/g, '\\$&');
    const written = (held: unknown) =>
      typeof held === 'string'
        ? `"${held.replaceAll(/["\\]/g, '\\$&')}"`
        : Object.is(held, -0)
          ? '-0'
          : String(held).replace('e+', 'e');
    const points = fc.array(
      fc.record({
        tags: fc.dictionary(
          name.map((key) => `t${key}`),
          tag,
          { maxKeys: 3 },
        ),
        fields: fc.dictionary(
          name.map((key) => `f${key}`),
          value,
          { minKeys: 1, maxKeys: 3 },
        ),
      }),
      { minLength: 1, maxLength: 6 },
    );
    await fc.assert(
      fc.asyncProperty(points, fc.integer({ min: 1, max: 60 }), async (given, windowBytes) => {
        const lines = given.map(({ tags, fields }) => {
          const head = ['m', ...Object.entries(tags).map(([key, text]) => `${escaped(key)}=${escaped(text)}`)].join(
            ',',
          );
          return `${head} ${Object.entries(fields)
            .map(([key, held]) => `${escaped(key)}=${written(held)}`)
            .join(',')} 1700000000000000000`;
        });
        const { rows, faults, malformed } = await read(lines.join('\n'), { windowBytes });
        expect({ faults, malformed }).toEqual({ faults: [], malformed: [] });
        expect(rows.map(([, row]) => row)).toEqual(
          given.map(({ tags, fields }) => ({ ...tags, ...fields, time: 1_700_000_000_000_000 })),
        );
      }),
      { numRuns: 300 },
    );
  });
});
