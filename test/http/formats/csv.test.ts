import { parse } from 'csv-parse/sync';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { LINE_BYTES_MAX } from '../../../src/core/base/limits.ts';
import { readRows } from '../../../src/http/rows.ts';
import { bytesOf, errorsOf, refusal, SCHEMA, type Sent, schemaOf, send, streamOf, tableOf } from '../bodies.ts';

const CSV = 'text/csv';
const csv = (body: string | Uint8Array, sent: Sent = {}, schema = SCHEMA) => send(schema, body, { type: CSV, ...sent });
const rowsOf = async (body: string | Uint8Array, sent: Sent = {}, schema = SCHEMA) =>
  tableOf(await csv(body, sent, schema));

const TEXTS = schemaOf({ a: 'string', b: 'string', c: 'string' });
const BODY = 'id,name,at,v\n1,a,,\n2,,,0.5\n3,,2026-01-03T00:00:00Z,\n';
const ROWS = [
  [1n, 'a', null, null],
  [2n, null, null, 0.5],
  [3n, null, 1_767_398_400_000_000n, null],
];

describe('CSV', () => {
  it('lines are rows, with or without the last newline, LF or CRLF, also mixed, and with a byte order mark', async () => {
    const crlf = BODY.replaceAll('\n', '\r\n');
    for (const body of [BODY, BODY.trimEnd(), crlf, crlf.trimEnd(), BODY.replace('\n', '\r\n'), `\ufeff${BODY}`]) {
      expect(await rowsOf(body)).toEqual(ROWS);
    }
    expect(await csv(BODY)).toMatchObject({ rowsRead: 3, errors: [], errorCount: 0, bytes: BODY.length });
  });

  it('columns are found by the names of the header, in any order; those not named are null', async () => {
    expect(await rowsOf('v,id\n0.5,2\n,3\n')).toEqual([
      [2n, null, null, 0.5],
      [3n, null, null, null],
    ]);
  });

  it('values in quotes hold delimiters, line ends and doubled quotes', async () => {
    const body = 'a,"b",c\n"x,y","one\ntwo\r\nthree","say ""hi"""\n"""","","a""b"\n';
    expect(await rowsOf(body, {}, TEXTS)).toEqual([
      ['x,y', 'one\ntwo\r\nthree', 'say "hi"'],
      ['"', '', 'a"b'],
    ]);
  });

  it('nothing is null, quotes around nothing are the empty text, and null where the column has none', async () => {
    const schema = schemaOf({
      s: 'string',
      b: 'binary',
      n: 'long',
      d: 'date',
      l: { type: 'list', 'element-id': 9, element: 'int', 'element-required': false },
    });
    expect(await rowsOf('s,b,n,d,l\n,,,,\n"","","","",""\n', {}, schema)).toEqual([
      [null, null, null, null, null],
      ['', '', null, null, null],
    ]);
    expect(await errorsOf(csv('id\n""\n'))).toEqual([{ line: 2, field: 'id', type: 'null-in-required' }]);
  });

  it('nothing is trimmed', async () => {
    expect(await rowsOf('a,b,c\n x , ,\t\n', {}, TEXTS)).toEqual([[' x ', ' ', '\t']]);
    expect(await errorsOf(csv('id\n 1\n'))).toEqual([{ line: 2, field: 'id', type: 'wrong-type' }]);
  });

  it('the delimiter is a semicolon, a tab or a bar on demand, and a tab for tab-separated values', async () => {
    for (const [delimiter, mark] of [
      [';', ';'],
      ['semicolon', ';'],
      ['\t', '\t'],
      ['tab', '\t'],
      ['\\t', '\t'],
      ['|', '|'],
      ['pipe', '|'],
      [',', ','],
      ['comma', ','],
    ]) {
      const body = `a${mark}b${mark}c\n1,5${mark}"x${mark}y"${mark};\n`.replace('1,5', mark === ',' ? '"1,5"' : '1,5');
      const expected = mark === ';' ? null : ';';
      const sent = { options: { delimiter } };
      const text = mark === ';' ? body.replace(';;\n', ';\n') : body;
      expect(await rowsOf(text, sent, TEXTS), delimiter).toEqual([['1,5', `x${mark}y`, expected]]);
    }
    expect(await rowsOf('a\tb\tc\n1\t2\t"3\t4"\n', { type: 'text/tab-separated-values' }, TEXTS)).toEqual([
      ['1', '2', '3\t4'],
    ]);
    for (const delimiter of ['', ',,', '"', '\n', 'x', 'constructor']) {
      expect(await refusal(csv(BODY, { options: { delimiter } })), delimiter).toMatchObject({ type: 'malformed' });
    }
    expect(await refusal(send(SCHEMA, '{"id":1}', { options: { delimiter: ';' } }))).toMatchObject({
      type: 'malformed',
    });
  });

  it('blank lines are skipped and counted', async () => {
    expect(await rowsOf(`\n\r\n${BODY.replaceAll('\n', '\n\n')}\n`)).toEqual(ROWS);
    expect(await errorsOf(csv('\n\nid\n\n1\r\n\r\nx\n'))).toEqual([{ line: 7, field: 'id', type: 'wrong-type' }]);
  });

  it('a header alone has no rows; no header at all is an empty body', async () => {
    expect(await csv('id,name\n')).toMatchObject({ rowsRead: 0, columns: { rows: 0 } });
    expect(await csv('id')).toMatchObject({ rowsRead: 0, columns: { rows: 0 } });
    for (const body of ['', '\n\r\n', '\ufeff']) {
      expect(await refusal(csv(body))).toMatchObject({ kind: 'invalid', type: 'empty-body' });
    }
    expect(await refusal(csv(BODY, { type: 'text/csv; header=absent' }))).toMatchObject({
      type: 'unsupported-media-type',
    });
    expect(await rowsOf(BODY, { type: 'text/csv; charset=utf-8; header=present' })).toEqual(ROWS);
  });
});

describe('CSV: what is wrong with a line', () => {
  const wrong = async (line: string) => errorsOf(csv(`id,name\n1,a\n${line}\n3,c\n`));

  it('ragged rows are refused by line: too few and too many values', async () => {
    for (const line of ['2', '2,b,', '2,b,c', ',,,,']) {
      expect(await wrong(line)).toEqual([{ line: 3, field: null, type: 'ragged-row' }]);
    }
    const error = await refusal(csv('id,name\n2\n'));
    expect(error.message).toBe('batch has 1 bad rows, first at line 2: line has 1 values, and the header 2');
  });

  it('quotes and carriage returns out of place are refused by line, and reading goes on behind it', async () => {
    for (const line of ['2,b"c', '2,b"', '2,"b"c', '2,"b" ', '2,"b" "c"', '2,b\rc', '"2"x,"y\n']) {
      expect(await wrong(line)).toEqual([{ line: 3, field: null, type: 'malformed-csv' }]);
    }
    const body = 'id,name\n1,a\n2,b"c,"\n3,c\n';
    expect(await rowsOf(body, { options: { onError: 'skip' } })).toEqual([
      [1n, 'a', null, null],
      [3n, 'c', null, null],
    ]);
  });

  it('a row of several lines is told by its first, and later ones by theirs', async () => {
    const body = 'name,id\n"a\nb\r\nc",1\n"d\ne",x\n\nf,y\n';
    expect(await errorsOf(csv(body))).toEqual([
      { line: 5, field: 'id', type: 'wrong-type' },
      { line: 8, field: 'id', type: 'wrong-type' },
    ]);
  });

  it('a quote that is never closed ends the reading, with skip too: what follows cannot be told', async () => {
    for (const onError of ['refuse', 'skip'] as const) {
      for (const body of ['id,name\n1,"a\nb\n2,c\n', 'id,name\n1,"a""', 'id,name\n1,"', '"id']) {
        const error = await refusal(csv(body, { options: { onError } }));
        expect(error).toMatchObject({ type: 'truncated-body', detail: { line: body.startsWith('"') ? 1 : 2 } });
      }
    }
  });

  it('a header alone that names other columns is refused: it is a row whose header was forgotten', async () => {
    for (const onError of ['refuse', 'skip'] as const) {
      expect(await refusal(csv('1,a,0.5\n', { options: { onError } }))).toMatchObject({
        type: 'malformed-body',
        message: 'header on line 1 names a column that the table does not have, and no row follows: 1',
      });
    }
    const collected = await csv('id,fresh\n', { options: { evolves: true } });
    expect(collected).toMatchObject({ rowsRead: 0, errors: [] });
  });

  it('a header with a name twice, without a name, or malformed refuses the body', async () => {
    for (const header of ['id,id', 'id,', ',id', '"",id', 'id,na"me', '"id"x', 'id\r,name']) {
      for (const onError of ['refuse', 'skip'] as const) {
        const error = await refusal(csv(`\n${header}\n1,2\n`, { options: { onError } }));
        expect(error).toMatchObject({ kind: 'invalid', type: 'malformed-body', detail: { line: 2 } });
      }
    }
  });

  it('unknown columns are refused, also without a value, and by any name', async () => {
    expect(await errorsOf(csv('id,nope\n1,x\n2,\n'))).toEqual([
      { line: 2, field: 'nope', type: 'unknown-column' },
      { line: 3, field: 'nope', type: 'unknown-column' },
    ]);
    for (const name of ['__proto__', 'constructor', 'toString', 'ID']) {
      expect(await errorsOf(csv(`id,${name}\n1,x\n`))).toEqual([{ line: 2, field: name, type: 'unknown-column' }]);
    }
    expect(
      await rowsOf('__proto__,constructor\n1,2\n', {}, schemaOf({ constructor: 'string', ['__proto__']: 'string' })),
    ).toEqual([['2', '1']]);
  });

  it('bytes that are not UTF-8 are refused by line, and other rows of the window are as they are', async () => {
    const body = bytesOf('name,id\n"ä""ö",1\n"?\n",2\n?,3\nü,x\n€,5\n');
    body[body.indexOf(0x3f)] = 0xff;
    body[body.indexOf(0x3f)] = 0xc3;
    expect(await errorsOf(csv(body))).toEqual([
      { line: 3, field: null, type: 'malformed-utf8' },
      { line: 5, field: null, type: 'malformed-utf8' },
      { line: 6, field: 'id', type: 'wrong-type' },
    ]);
    expect(await rowsOf(body, { options: { onError: 'skip' } })).toEqual([
      [1n, 'ä"ö', null, null],
      [5n, '€', null, null],
    ]);
    expect(await errorsOf(csv(bytesOf('id,name\n1,ä').subarray(0, -1)))).toEqual([
      { line: 2, field: null, type: 'malformed-utf8' },
    ]);
  });

  it('a row that is longer than a row may be is refused by its line, in quotes too', async () => {
    const long = 'x'.repeat(LINE_BYTES_MAX);
    for (const body of [
      `id,name\n1,a\n2,${long}`,
      `id,name\n1,a\n2,"${long}"\n`,
      `id,name\n1,a\n2,"${'x\n'.repeat(LINE_BYTES_MAX)}`,
    ]) {
      expect(await refusal(csv(body))).toMatchObject({ type: 'line-too-long', detail: { line: 3 } });
    }
    expect((await rowsOf(`a\n${long.slice(2)}\n`, {}, TEXTS))[0][0]).toHaveLength(LINE_BYTES_MAX - 2);
  });
});

describe('CSV: types', () => {
  const one = async (type: string, text: string) => (await rowsOf(`c\n${text}\n`, {}, schemaOf({ c: type })))[0][0];

  it.each<[type: string, text: string, value: unknown]>([
    ['int', '-2147483648', -2_147_483_648],
    ['int', '1.0', 1],
    ['int', '1e3', 1000],
    ['int', '"7"', 7],
    ['long', '9007199254740993', 9_007_199_254_740_993n],
    ['long', '-9223372036854775808', -9_223_372_036_854_775_808n],
    ['double', '-0', -0],
    ['double', '0.1', 0.1],
    ['double', '123456789012.345', 123456789012.345],
    ['double', '0.000001', 0.000001],
    ['double', '1.7976931348623157e308', Number.MAX_VALUE],
    ['double', '5e-324', 5e-324],
    ['double', '3.141592653589793238', Math.PI],
    ['double', 'NaN', Number.NaN],
    ['double', '-Infinity', Number.NEGATIVE_INFINITY],
    ['float', '0.1', Math.fround(0.1)],
    ['decimal(9, 2)', '12.5', 1250],
    ['decimal(18, 2)', '1234567890123456.78', 123_456_789_012_345_678n],
    ['decimal(38, 10)', '"1234567890123456789012345678.0123456789"', '0949b0f6f0023313c449904ecc674515'],
    ['boolean', 'true', true],
    ['boolean', 'TRUE', true],
    ['boolean', 'False', false],
    ['date', '2026-01-03', 20_456],
    ['time', '12:34:56.789', 45_296_789_000n],
    ['timestamptz', '2026-01-03T01:00:00+01:00', 1_767_398_400_000_000n],
    ['timestamp', '2026-01-03 00:00:00', 1_767_398_400_000_000n],
    ['timestamptz', '1767398400000', 1_767_398_400_000_000n],
    ['timestamptz', '1767398400000.5', 1_767_398_400_000_500n],
    ['string', '007', '007'],
    ['string', 'true', 'true'],
    ['string', 'null', 'null'],
    ['uuid', '00000000-0000-0000-0000-0000000000FF', '000000000000000000000000000000ff'],
    ['fixed[2]', 'AAE=', '0001'],
    ['binary', 'YQ==', 'a'],
  ])('a column of %s takes %s', async (type, text, value) => {
    expect(await one(type, text)).toEqual(value);
  });

  it.each([
    ['int', '2147483648', 'out-of-range'],
    ['int', '1.5', 'wrong-type'],
    ['int', '007', 'wrong-type'],
    ['int', '0x10', 'wrong-type'],
    ['int', '1_000', 'wrong-type'],
    ['int', '"1,000"', 'wrong-type'],
    ['long', '9223372036854775808', 'out-of-range'],
    ['long', '-', 'wrong-type'],
    ['long', '+1', 'wrong-type'],
    ['double', '1e999', 'out-of-range'],
    ['double', '.5', 'wrong-type'],
    ['double', '1.', 'wrong-type'],
    ['double', 'inf', 'wrong-type'],
    ['double', 'nan', 'wrong-type'],
    ['float', '1e39', 'out-of-range'],
    ['decimal(9, 2)', '1.005', 'inexact-number'],
    ['decimal(9, 2)', '12345678', 'out-of-range'],
    ['boolean', '1', 'wrong-type'],
    ['boolean', 'yes', 'wrong-type'],
    ['date', '20260103', 'malformed-value'],
    ['date', '03.01.2026', 'malformed-value'],
    ['time', '25:00', 'malformed-value'],
    ['timestamptz', '253402300800000', 'out-of-range'],
    ['timestamptz', 'yesterday', 'malformed-value'],
    ['uuid', 'x', 'malformed-value'],
    ['fixed[2]', 'AA==', 'malformed-value'],
    ['binary', 'YQ', 'malformed-value'],
  ])('a column of %s refuses %s as %s', async (type, text, fault) => {
    expect(await errorsOf(csv(`c\n${text}\n`, {}, schemaOf({ c: type })))).toEqual([
      { line: 2, field: 'c', type: fault },
    ]);
  });

  it('lists, structs and maps are JSON', async () => {
    const schema = schemaOf({
      tags: { type: 'list', 'element-id': 10, element: 'long', 'element-required': false },
      place: { type: 'struct', fields: [{ id: 11, name: 'city', required: true, type: 'string' }] },
      id: 'int',
    });
    const body = 'id,tags,place\n1,"[9007199254740993, null]","{""city"": ""a""}"\n2,[],\n3,null,null\n';
    expect(await rowsOf(body, {}, schema)).toEqual([
      [[9_007_199_254_740_993n, null], { city: 'a' }, 1],
      [[], null, 2],
      [null, null, 3],
    ]);
    expect(await errorsOf(csv('tags,place\n[1,\n"[""x""]",\n,{}\n', {}, schema))).toEqual([
      { line: 2, field: 'tags', type: 'malformed-json' },
      { line: 3, field: 'tags[0]', type: 'wrong-type' },
      { line: 4, field: 'place.city', type: 'missing-required' },
    ]);
    expect(await errorsOf(csv('tags\n[1\n', {}, schema))).toEqual([{ line: 2, field: 'tags', type: 'malformed-json' }]);
  });
});

describe('CSV: windows', () => {
  it('where windows and pieces end makes no difference', async () => {
    const body = 'a,"b",c\r\n"x\ny",ä€😀,""\n\n,"q""q",\r\n"\n\n","""",z\nlast,,';
    const bytes = bytesOf(body);
    const expected = await rowsOf(body, {}, TEXTS);
    expect(expected).toEqual([
      ['x\ny', 'ä€😀', ''],
      [null, 'q"q', null],
      ['\n\n', '"', 'z'],
      ['last', null, null],
    ]);
    for (let cut = 0; cut < bytes.length; cut++) {
      for (const windowBytes of [1, 7]) {
        expect(await rowsOf(body, { cuts: [cut, cut + 1], options: { windowBytes } }, TEXTS)).toEqual(expected);
      }
    }
    const every = Array.from({ length: bytes.length - 1 }, (_, i) => i + 1);
    expect(await rowsOf(body, { cuts: every, options: { windowBytes: 1 } }, TEXTS)).toEqual(expected);
  });

  it('a large body is never held whole', async () => {
    const line = `${'x'.repeat(400)},"${'y\n'.repeat(50)}",1\n`;
    const body = bytesOf(`a,b,c\n${line.repeat(20_000)}`);
    const read = await readRows({
      body: streamOf(
        body,
        Array.from({ length: 200 }, (_, i) => (i + 1) * 50_001),
      ),
      contentType: CSV,
      contentEncoding: null,
      schema: TEXTS,
      options: { onError: 'refuse', epochUnit: 'ms', ingestTimeField: null },
    });
    expect(read.columns.rows).toBe(20_000);
  });

  it('reads what an independent parser reads', async () => {
    const cell = fc.oneof(
      fc.constantFrom('', '""', '"a""b"', '"x,y"', '"1\n2"', 'plain', ' spaced ', 'ä€', '"\n"', "'", '7'),
      fc.string({ maxLength: 6 }).map((text) => `"${text.replaceAll('"', '""').replaceAll('\r', '')}"`),
      fc.string({ maxLength: 6, unit: fc.constantFrom(...'abz019 .-_;|\t') }),
    );
    const record = fc.tuple(cell, cell, cell);
    const property = fc.asyncProperty(
      fc.array(record, { minLength: 1, maxLength: 8 }),
      fc.boolean(),
      fc.integer({ min: 1, max: 40 }),
      async (records, isEnded, windowBytes) => {
        const body = ['a,b,c', ...records.map((cells) => cells.join(','))].join('\n') + (isEnded ? '\n' : '');
        const read = await rowsOf(body, { options: { windowBytes } }, TEXTS);
        const theirs = parse(body, {
          columns: true,
          cast: (value, { quoting }) => (value === '' && !quoting ? null : value),
        }) as Record<string, string | null>[];
        expect(read).toEqual(theirs.map(({ a, b, c }) => [a, b, c]));
      },
    );
    await fc.assert(property, { numRuns: 300 });
  });
});
