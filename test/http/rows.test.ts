import { deflateRawSync, deflateSync, zstdCompressSync } from 'node:zlib';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { hex, utf8 } from '../../src/core/base/bytes.ts';
import { BATCH_COLUMN_BYTES_MAX, ROW_ERRORS_REPORTED_MAX } from '../../src/core/base/limits.ts';
import { readRows } from '../../src/http/rows.ts';
import { sha256 } from '../../src/platform/hash.ts';
import {
  byteStreamOf,
  bytesOf,
  errorsOf,
  gzip,
  JSON_TYPE,
  NDJSON,
  refusal,
  SCHEMA,
  schemaOf,
  send,
  streamOf,
  THREE,
  THREE_ROWS,
  tableOf,
} from './bodies.ts';

describe('digits', () => {
  it.each([
    ['B057', '4611686018427387905'],
    ['B058', '144115188075855873'],
    ['B056', '-4503599627370497'],
    ['B056', '9007199254740993'],
    ['the largest', '9223372036854775807'],
    ['the smallest', '-9223372036854775808'],
  ])('%s: 64-bit integers keep every digit: %s', async (_, digits) => {
    for (const [body, type] of [
      [`{"id":1}\n{"id":${digits},"v":0.1}\n`, NDJSON],
      [`[{"id":1},{"id": ${digits} ,"v":0.1}]`, JSON_TYPE],
      [`{"id":1}\n{"id":"${digits}","v":0.1}\n`, NDJSON],
    ]) {
      for (const onError of ['refuse', 'skip'] as const) {
        const rows = tableOf(await send(SCHEMA, body, { type, options: { onError } }));
        expect(rows[1]).toEqual([BigInt(digits), null, null, 0.1]);
      }
    }
  });

  it('B202: exact numbers beside keys named constructor and __proto__', async () => {
    const schema = schemaOf({ constructor: 'string', n: 'long' });
    expect(tableOf(await send(schema, '{"constructor":"acme","n":9007199254740995}'))).toEqual([
      ['acme', 9_007_199_254_740_995n],
    ]);
    expect(await errorsOf(send(schema, '{"__proto__":{"n":1},"n":9007199254740995}'))).toEqual([
      { line: 1, field: '__proto__', type: 'unknown-column' },
    ]);
  });

  it('integers outside 64 and 32 bits are refused with their digits', async () => {
    const error = await refusal(
      send(schemaOf({ l: 'long', i: 'int' }), '{"l":9223372036854775808}\n{"i":3000000000}\n'),
    );
    expect(error.detail['errors']).toMatchObject([
      { line: 1, field: 'l', type: 'out-of-range', value: '9223372036854775808' },
      { line: 2, field: 'i', type: 'out-of-range', value: '3000000000' },
    ]);
  });

  it('B040: decimals keep every digit, as numbers and as text', async () => {
    const schema = schemaOf({ price: 'decimal(18,2)', v: 'double' });
    const body =
      '{"price":1234567890123456.78,"v":0.12345678901234567}\n{"price":"1234567890123456.78"}\n{"price":1.1}\n';
    expect(tableOf(await send(schema, body))).toEqual([
      [123_456_789_012_345_678n, Number('0.12345678901234567')],
      [123_456_789_012_345_678n, null],
      [110n, null],
    ]);
    expect(await errorsOf(send(schema, '{"price":1.2500000000000000001}'))).toEqual([
      { line: 1, field: 'price', type: 'inexact-number' },
    ]);
  });

  it('NaN and infinities come as text; JSON has no words for them', async () => {
    const body = '{"id":1,"v":"NaN"}\n{"id":2,"v":"-Infinity"}\n';
    expect(tableOf(await send(SCHEMA, body)).map((row) => row[3])).toEqual([Number.NaN, Number.NEGATIVE_INFINITY]);
    expect(await errorsOf(send(SCHEMA, '{"id":1,"v":NaN}\n{"id":2,"v":1e999}\n{"id":3,"v":"nan"}\n'))).toEqual([
      { line: 1, field: null, type: 'malformed-json' },
      { line: 2, field: 'v', type: 'out-of-range' },
      { line: 3, field: 'v', type: 'wrong-type' },
    ]);
  });
});

describe('bounds', () => {
  it('an empty body is refused, with every content type', async () => {
    for (const type of [NDJSON, JSON_TYPE]) {
      for (const body of ['', ' \r\n\n', '\ufeff', null]) {
        expect(await refusal(send(SCHEMA, body, { type }))).toMatchObject({ kind: 'invalid', type: 'empty-body' });
      }
    }
  });

  it('more rows than the flush takes are refused, bad ones counted', async () => {
    expect((await send(SCHEMA, THREE, { options: { rowsMax: 3 } })).rowsRead).toBe(3);
    for (const body of [THREE, `x\n${THREE}`]) {
      const options = { rowsMax: 2, onError: 'skip' } as const;
      expect(await refusal(send(SCHEMA, body, { options }))).toMatchObject({
        type: 'too-many-rows',
        detail: { rowsMax: 2 },
      });
    }
  });

  it('a table of many columns takes fewer rows, since nulls take memory too', async () => {
    const wide = schemaOf(Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`c${i}`, 'double'])));
    const rowsFit = Math.floor(BATCH_COLUMN_BYTES_MAX / (5000 * 9));
    expect((await send(wide, '{}\n'.repeat(rowsFit))).columns.rows).toBe(rowsFit);
    expect(await refusal(send(wide, '{}\n'.repeat(rowsFit + 1)))).toMatchObject({
      type: 'too-many-rows',
      detail: { rowsMax: rowsFit },
    });
  });

  it('errors are told up to a bound; refusing ends the reading there, skipping counts on', async () => {
    const body = '{"id":null}\n'.repeat(500);
    const error = await refusal(send(SCHEMA, body));
    expect(error.detail).toMatchObject({ errorCount: ROW_ERRORS_REPORTED_MAX + 1, complete: false });
    expect((error.detail['errors'] as unknown[]).length).toBe(ROW_ERRORS_REPORTED_MAX);
    const read = await send(SCHEMA, body, { options: { onError: 'skip' } });
    expect([read.errorCount, read.errors.length, read.columns.rows]).toEqual([500, ROW_ERRORS_REPORTED_MAX, 0]);
  });

  it('B071: a body over the limit is refused, also by one byte after inflation', async () => {
    const exact = { options: { bytesMax: THREE.length } };
    const over = { options: { bytesMax: THREE.length - 1 } };
    expect((await send(SCHEMA, THREE, exact)).rowsRead).toBe(3);
    expect((await send(SCHEMA, gzip(THREE), { encoding: 'gzip', ...exact })).rowsRead).toBe(3);
    expect(await refusal(send(SCHEMA, THREE, over))).toMatchObject({ type: 'body-too-large' });
    expect(await refusal(send(SCHEMA, gzip(THREE), { encoding: 'gzip', ...over }))).toMatchObject({
      type: 'body-too-large',
    });
    const zstd = new Uint8Array(zstdCompressSync(THREE));
    expect((await send(SCHEMA, zstd, { encoding: 'zstd', ...exact })).rowsRead).toBe(3);
    expect(await refusal(send(SCHEMA, zstd, { encoding: 'zstd', ...over }))).toMatchObject({ type: 'body-too-large' });
  });

  it('B075: a compressed body is bounded before it is inflated too, for empty blocks inflate to nothing', async () => {
    const empty = gzip('');
    const body = new Uint8Array(Buffer.concat(Array.from({ length: 500 }, () => empty)));
    expect(await refusal(send(SCHEMA, body, { encoding: 'gzip', options: { bytesMax: 1000 } }))).toMatchObject({
      type: 'body-too-large',
    });
  });

  it('B075: a small body that inflates to a huge one is refused before it is read to its end', async () => {
    const bomb = gzip('\n'.repeat(100_000_000));
    let pulled = 0;
    const cuts = Array.from({ length: 99 }, (_, i) => Math.floor(((i + 1) * bomb.length) / 100));
    const error = await refusal(
      readRows({
        body: streamOf(bomb, cuts, (bytes) => {
          pulled += bytes;
        }),
        contentType: NDJSON,
        contentEncoding: 'gzip',
        schema: SCHEMA,
        options: { onError: 'refuse', epochUnit: 'ms', ingestTimeField: null, bytesMax: 1_000_000 },
      }),
    );
    expect(error).toMatchObject({ type: 'body-too-large', detail: { bytesMax: 1_000_000 } });
    expect(pulled).toBeLessThan(bomb.length / 4);
  });
});

describe('headers', () => {
  it.each([
    'application/ndjson',
    'application/jsonl',
    'Application/X-NDJSON; charset=UTF-8',
    'application/x-ndjson;charset="utf-8"',
  ])('content type %s is taken', async (type) => {
    expect((await send(SCHEMA, THREE, { type })).rowsRead).toBe(3);
  });

  it.each([
    'text/plain',
    '',
    null,
    'application/x-www-form-urlencoded',
    'application/x-ndjson; charset=utf-16',
    'constructor',
  ])('content type %s is refused', async (type) => {
    expect(await refusal(send(SCHEMA, THREE, { type }))).toMatchObject({ type: 'unsupported-media-type' });
  });

  it('content encodings are gzip, deflate, zstd and identity; others, and several, are refused', async () => {
    const bodies = {
      identity: bytesOf(THREE),
      GZIP: gzip(THREE),
      deflate: new Uint8Array(deflateSync(THREE)),
      ' Deflate ': new Uint8Array(deflateRawSync(THREE)),
      zstd: new Uint8Array(zstdCompressSync(THREE)),
    };
    for (const [encoding, body] of Object.entries(bodies)) {
      expect(tableOf(await send(SCHEMA, body, { encoding })), encoding).toEqual(THREE_ROWS);
    }
    for (const encoding of ['br', 'gzip, gzip', 'gzip,zstd', 'x-gzip', 'constructor']) {
      expect(await refusal(send(SCHEMA, THREE, { encoding }))).toMatchObject({ type: 'unsupported-encoding' });
    }
  });

  it('B072: all members of a gzip body count; a cut one is refused', async () => {
    const [first, ...rest] = THREE.trimEnd().split('\n');
    const body = new Uint8Array(Buffer.concat([gzip(`${first}\n`), gzip(rest.join('\n'))]));
    expect(tableOf(await send(SCHEMA, body, { encoding: 'gzip' }))).toEqual(THREE_ROWS);
    expect(await refusal(send(SCHEMA, body.subarray(0, -1), { encoding: 'gzip' }))).toMatchObject({
      type: 'malformed-gzip',
    });
    expect(await refusal(send(SCHEMA, THREE, { encoding: 'gzip' }))).toMatchObject({ type: 'malformed-gzip' });
  });

  it('the digest is of the inflated body', async () => {
    const plain = await send(SCHEMA, THREE);
    const zipped = await send(SCHEMA, gzip(THREE), { encoding: 'gzip' });
    expect(hex(plain.digest)).toBe(hex(sha256([utf8(THREE)])));
    expect(hex(zipped.digest)).toBe(hex(plain.digest));
    expect(zipped.bytes).toBe(THREE.length);
  });
});

describe('streams', () => {
  const request = (body: ReadableStream<Uint8Array>) =>
    readRows({
      body,
      contentType: NDJSON,
      contentEncoding: null,
      schema: SCHEMA,
      options: { onError: 'refuse', epochUnit: 'ms', ingestTimeField: null },
    });

  it('byte streams are read in large pieces', async () => {
    const lines = Array.from({ length: 20_000 }, (_, i) => `{"id":${i},"name":"name ${i}"}\n`).join('');
    const read = await request(byteStreamOf(bytesOf(lines), 4096));
    expect(read.columns.rows).toBe(20_000);
    expect(tableOf(read)[19_999]).toEqual([19_999n, 'name 19999', null, null]);
    expect(hex(read.digest)).toBe(hex(sha256([utf8(lines)])));
  });

  it('a body that breaks off is refused, and one that is refused is cancelled', async () => {
    const broken = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.error(new Error('reset by peer')),
    });
    expect(await refusal(request(broken))).toMatchObject({ kind: 'invalid', type: 'body-interrupted' });
    let cancelled = false;
    const endless = new ReadableStream<Uint8Array>({
      pull: (controller) => controller.enqueue(bytesOf('{"id":"x"}\n'.repeat(1000))),
      cancel: () => {
        cancelled = true;
      },
    });
    expect(await refusal(request(endless))).toMatchObject({ type: 'invalid-rows' });
    expect(cancelled).toBe(true);
  });
});

describe('where the body is cut into pieces and windows', () => {
  const schema = schemaOf({ id: 'long!', name: 'string', at: 'timestamptz', v: 'double', tags: tagsType() });

  function tagsType() {
    const element = { type: 'struct' as const, fields: [{ id: 21, name: 'k', required: false, type: 'string' }] };
    return { type: 'list' as const, 'element-id': 20, element, 'element-required': true };
  }

  const text = fc.string({ unit: fc.constantFrom('a', '"', '\\', '{', '}', '[', ']', ',', ':', '\n', '€', '😀', ' ') });
  const good = fc.record(
    {
      id: fc.integer(),
      name: fc.option(text),
      v: fc.double({ noNaN: true, noDefaultInfinity: true }),
      tags: fc.array(fc.record({ k: text }), { maxLength: 3 }),
    },
    { requiredKeys: ['id'] },
  );
  const line = fc.oneof(
    { weight: 8, arbitrary: good.map((row) => JSON.stringify(row)) },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '{"id":9007199254740993,"v":1}',
        '{"id":"x"}',
        '{"id":1,"x":2}',
        '[]',
        '{"id":1}{"id":2}',
      ),
    },
    {
      weight: 1,
      arbitrary: fc.constantFrom(
        '{"id":',
        '{"id":1},',
        ']',
        '"',
        '',
        '{"id":1}\r',
        '{"id":1} ',
        '{"id":1,"name":"\u2028"}',
      ),
    },
  );

  /** Everything that a client sees of a request. */
  async function seen(body: string, type: string, onError: 'refuse' | 'skip', cuts: number[], windowBytes?: number) {
    try {
      const read = await send(schema, body, { type, cuts, options: { onError, windowBytes } });
      const { columns, digest, ...rest } = read;
      return { ...rest, digest: hex(digest), table: tableOf({ ...read, columns }) };
    } catch (error) {
      const { type, message, detail } = error as { type: string; message: string; detail: object };
      return { type, message, detail };
    }
  }

  it.each([
    [NDJSON, 'refuse'],
    [NDJSON, 'skip'],
    [JSON_TYPE, 'refuse'],
    [JSON_TYPE, 'skip'],
  ] as const)('makes no difference: %s, %s', async (type, onError) => {
    const bodies = fc.array(line, { maxLength: 6 }).map((lines) => {
      return type === NDJSON ? lines.join('\n') : `[${lines.join(' ,\n')}]`;
    });
    const cuts = fc.array(fc.nat(), { maxLength: 8 });
    await fc.assert(
      fc.asyncProperty(bodies, cuts, fc.integer({ min: 1, max: 40 }), async (body, places, windowBytes) => {
        const { length } = bytesOf(body);
        const whole = await seen(body, type, onError, []);
        const pieces = places.map((place) => place % (length + 1));
        expect(await seen(body, type, onError, pieces, windowBytes)).toEqual(whole);
      }),
      { numRuns: 150 },
    );
  });

  it('makes no difference for lines that are parsed together', async () => {
    const together = { weight: 5, arbitrary: fc.constant('{"id":1,"name":"a\\"}"}') };
    const bodies = fc.array(fc.oneof(together, line), { maxLength: 6 }).map((lines) => lines.join('\n'));
    await fc.assert(
      fc.asyncProperty(bodies, fc.integer({ min: 1, max: 60 }), async (body, windowBytes) => {
        const whole = await seen(body, NDJSON, 'skip', []);
        expect(await seen(body, NDJSON, 'skip', [], windowBytes)).toEqual(whole);
      }),
      { numRuns: 150 },
    );
  });
});
