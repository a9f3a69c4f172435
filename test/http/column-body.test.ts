import { gzipSync } from 'node:zlib';
import {
  Schema as ArrowSchema,
  Bool,
  Dictionary,
  Field,
  Int32,
  Int64,
  makeData,
  makeVector,
  RecordBatch,
  RecordBatchStreamWriter,
  Struct,
  Table,
  TimestampNanosecond,
  TimestampSecond,
  tableToIPC,
  Uint64,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { SluiceError } from '../../src/core/base/errors.ts';
import { BATCH_COLUMN_BYTES_MAX, ROW_ERRORS_REPORTED_MAX } from '../../src/core/base/limits.ts';
import { valueAt } from '../../src/core/columns/value.ts';
import type { Schema, Type } from '../../src/core/iceberg/types.ts';
import type { RowsRead } from '../../src/http/rows.ts';
import { loadFixture } from '../oracle/fixtures/load.ts';
import { errorsOf, refusal, type Sent, schemaOf, send, tableOf } from './bodies.ts';

const STREAM = 'application/vnd.apache.arrow.stream';
const FILE = 'application/vnd.apache.arrow.file';
const PARQUET = 'application/vnd.apache.parquet';

const bodies = loadFixture('bodies');
const bodyOf = (name: string): Uint8Array => bodies.get(`bodies/${name}`)!;

const list = (element: Type): Type => ({ type: 'list', 'element-id': 100, element, 'element-required': false });
const struct = (fields: Record<string, Type>): Type => ({
  type: 'struct',
  fields: schemaOf(fields).fields.map((field) => ({ ...field, id: field.id + 200 })),
});

/** Name → type of the table, and what the first four of the six rows hold; the last two are the second and third again. */
const EXPECTED: Record<string, [type: Type, ...values: unknown[]]> = {
  i8: ['int', -128, 127, null, 0],
  u8: ['int', 0, 255, null, 1],
  i16: ['int', -32_768, 32_767, null, 0],
  u16: ['int', 0, 65_535, null, 1],
  i32: ['int', -2_147_483_648, 2_147_483_647, null, 0],
  u32: ['long', 0n, 4_294_967_295n, null, 1n],
  i64: ['long', -(2n ** 63n), 2n ** 63n - 1n, null, 0n],
  u64: ['long', 0n, 2n ** 63n - 1n, null, 1n],
  f16: ['double', 1.5, -65_504, null, 2 ** -24],
  f32: ['float', Math.fround(0.1), Number.NaN, null, -0],
  f64: ['double', 0.1, Number.POSITIVE_INFINITY, null, -0],
  flag: ['boolean', true, false, null, true],
  unset: ['boolean', null, null, null, null],
  text: ['string', '', 'é😀', null, 'x'.repeat(100)],
  large_text: ['string', 'a', 'b', null, 'c'],
  text_view: ['string', 'short', 'a long text beyond twelve', null, ''],
  bytes: ['binary', [], [0xff, 0], null, [0x7a]],
  large_bytes: ['binary', [0x31], [], null, [0x32, 0x32]],
  bytes_view: ['binary', new Array(20).fill(0x31), [], null, [0x32, 0x32]],
  four: ['fixed[4]', [97, 98, 99, 100], [0, 255, 128, 1], null, [48, 48, 48, 48]],
  dec9: ['decimal(9, 2)', 125n, -999_999_999n, null, 0n],
  dec18: ['decimal(18, 4)', 999_999_999_999_999_999n, -1n, null, 0n],
  dec38: ['decimal(38, 10)', 12_345_678_901_234_567_890_123_456_780_123_456_789n, -(10n ** 10n), null, 0n],
  date32: ['date', -719_162, 2_932_896, null, -1],
  date64: ['date', 1, -1, null, 19_782],
  time32: ['time', 3_723_004_000n, 0n, null, 86_399_000_000n],
  time64: ['time', 3_723_000_004n, 0n, null, 86_399_999_999n],
  local_s: ['timestamp', 0n, -1_000_000n, null, 1_700_000_000_000_000n],
  zoned_s: ['timestamptz', 0n, -1_000_000n, null, 1_700_000_000_000_000n],
  local_ms: ['timestamp', 0n, -1000n, null, 1_700_000_000_000_000n],
  zoned_ms: ['timestamptz', 0n, -1000n, null, 1_700_000_000_000_000n],
  local_us: ['timestamp', 0n, -1n, null, 1_700_000_000_000_000n],
  zoned_us: ['timestamptz', 0n, -1n, null, 1_700_000_000_000_000n],
  local_ns: ['timestamp', 0n, -1n, null, 1_700_000_000_000_000n],
  zoned_ns: ['timestamptz', 0n, -1n, null, 1_700_000_000_000_000n],
  longs: [list('long'), [1n, null, 2n ** 60n], [], null, [3n]],
  large_texts: [list('string'), ['a'], [null], null, []],
  pairs: [list('int'), [1, 2], [3, null], null, [5, 6]],
  lists: [list(list('int')), [[1], null, []], [], null, [[2, 3]]],
  place: [
    struct({ x: 'int', y: struct({ z: 'timestamp' }) }),
    { x: 1, y: { z: 1_577_836_800_000_000n } },
    { x: null, y: null },
    null,
    { x: 3, y: { z: null } },
  ],
  counts: [
    { type: 'map', 'key-id': 300, key: 'string', 'value-id': 301, value: 'long', 'value-required': false },
    new Map([
      ['__proto__', 1n],
      ['a', null],
    ]),
    new Map(),
    null,
    new Map([
      ['1', 2n],
      ['0', 9_007_199_254_740_993n],
    ]),
  ],
  steps: [
    list(struct({ k: 'string', v: list('double') })),
    [{ k: 'a', v: [1.5, null] }, null, { k: null, v: null }],
    [],
    null,
    [{ k: 'z', v: [] }],
  ],
  code: ['string', 'a', 'b', null, 'a'],
  nothing: ['int', null, null, null, null],
};

const ALL = schemaOf(Object.fromEntries(Object.entries(EXPECTED).map(([name, [type]]) => [name, type])));

/** Columns by name, in plain values. */
function columnsOf({ columns }: RowsRead): Record<string, unknown[]> {
  const plain = (value: unknown): unknown => {
    if (value instanceof Uint8Array) return [...value];
    if (value instanceof Map) return value;
    if (Array.isArray(value)) return value.map(plain);
    if (typeof value === 'object' && value !== null)
      return Object.fromEntries(Object.entries(value).map(([name, held]) => [name, plain(held)]));
    return value;
  };
  return Object.fromEntries(
    columns.schema.fields.map((field, i) => {
      const column = columns.columns[i];
      const values = Array.from({ length: columns.rows }, (_, row) =>
        column.kind === 'nested' ? column.values[row] : valueAt(column, field.type as string, row),
      );
      return [field.name, values.map(plain)];
    }),
  );
}

function sendTo(schema: Schema, body: Uint8Array, type: string, sent: Sent = {}): Promise<RowsRead> {
  return send(schema, body, { ...sent, type });
}

describe('column bodies: the same rows of every type, as PyArrow writes them', () => {
  it.each([
    ['stream.arrows', STREAM],
    ['zstd.arrows', STREAM],
    ['file.arrow', FILE],
    ['snappy.parquet', PARQUET],
    ['gzip.parquet', PARQUET],
    ['pages2.parquet', PARQUET],
    ['encodings.parquet', PARQUET],
    ['int96.parquet', PARQUET],
  ])('B030, B047, B054, B055: %s', async (name, type) => {
    const read = await sendTo(ALL, bodyOf(name), type);
    expect(read.columns.rows).toBe(6);
    const found = columnsOf(read);
    for (const [column, [, ...four]] of Object.entries(EXPECTED)) {
      // Parquet files are written without the columns of views.
      const absent = type === PARQUET && column.endsWith('_view');
      const six = [...four, four[1], four[2]];
      expect(found[column], column).toEqual(absent ? new Array(6).fill(null) : six);
    }
  });

  it('content encodings and windows make no difference', async () => {
    const plain = bodyOf('stream.arrows');
    const whole = columnsOf(await sendTo(ALL, plain, STREAM));
    const zipped = await sendTo(ALL, gzipSync(plain), STREAM, { encoding: 'gzip', cuts: [1, 100, 101] });
    expect(columnsOf(zipped)).toEqual(whole);
    expect(columnsOf(await sendTo(ALL, plain, STREAM, { options: { windowBytes: 7 } }))).toEqual(whole);
  });

  it('a dictionary may be made longer, and replaced, between batches', async () => {
    const schema = schemaOf({ code: 'string' });
    const expected = ['a', 'b', null, 'c', 'a', 'b', 'z', 'z', 'z'].map((code) => [code]);
    for (const name of ['delta.arrows', 'replaced.arrows']) {
      expect(tableOf(await sendTo(schema, bodyOf(name), STREAM)), name).toEqual(expected);
    }
  });
});

/** An Arrow stream of columns of typed values. */
function streamOf(columns: Record<string, Vector | TypedArray>): Uint8Array {
  const vectors = Object.entries(columns).map(([name, values]) => [
    name,
    values instanceof Vector ? values : makeVector(values),
  ]);
  return tableToIPC(new Table(Object.fromEntries(vectors)), 'stream');
}

type TypedArray = Int32Array | BigInt64Array | Float64Array;

describe('column bodies: what does not fit', () => {
  it('B028: a null in a required column is refused by row and field, and nothing is taken', async () => {
    const schema = schemaOf({ id: 'long!', name: 'string' });
    const body = streamOf({
      id: vectorFromArray([1n, null, 3n], new Int64()),
      name: vectorFromArray(['a', 'b', null], new Utf8()),
    });
    expect(await errorsOf(sendTo(schema, body, STREAM))).toEqual([{ line: 2, field: 'id', type: 'null-in-required' }]);
    const read = await sendTo(schema, body, STREAM, { options: { onError: 'skip' } });
    expect(tableOf(read)).toEqual([
      [1n, 'a'],
      [3n, null],
    ]);
    expect([read.rowsRead, read.errorCount]).toEqual([3, 1]);
  });

  it('rows are counted over all batches, and the first fault of each is told', async () => {
    const batch = (values: bigint[]) => {
      const field = new Field('n', new Uint64(), false);
      const child = makeData({ type: new Uint64(), data: BigUint64Array.from(values) });
      const data = makeData({ type: new Struct([field]), length: values.length, children: [child] });
      return new RecordBatch(new ArrowSchema([field]), data as never);
    };
    const writer = new RecordBatchStreamWriter();
    for (const values of [[1n, 2n ** 63n], [], [5n, 2n ** 64n - 1n]]) writer.write(batch(values));
    writer.finish();
    const body = writer.toUint8Array(true);
    const error = await refusal(sendTo(schemaOf({ n: 'long' }), body, STREAM));
    expect(error).toMatchObject({
      type: 'invalid-rows',
      detail: {
        errors: [
          { line: 2, field: 'n', type: 'out-of-range', value: '9223372036854775808' },
          { line: 4, field: 'n', type: 'out-of-range', value: '18446744073709551615' },
        ],
        errorCount: 2,
        complete: true,
      },
    });
  });

  it('errors are told up to a bound', async () => {
    const body = streamOf({ n: BigInt64Array.from({ length: 300 }, () => 2n ** 31n) });
    const error = await refusal(sendTo(schemaOf({ n: 'int' }), body, STREAM));
    expect(error.detail).toMatchObject({ errorCount: 300, complete: true });
    expect(error.detail['errors']).toHaveLength(ROW_ERRORS_REPORTED_MAX);
  });

  it('B201, B089: columns that the table does not have, or of a type it cannot take, are named together', async () => {
    const schema = schemaOf({ id: 'long!', at: 'timestamptz', v: 'double' });
    const body = streamOf({
      ID: BigInt64Array.of(1n),
      at: vectorFromArray([true], new Bool()),
      v: Float64Array.of(1),
    });
    expect(await refusal(sendTo(schema, body, STREAM))).toMatchObject({
      kind: 'invalid',
      type: 'schema-mismatch',
      detail: {
        errorCount: 3,
        errors: [
          { field: 'id', type: 'missing-required', message: 'id is required and missing' },
          { field: 'at', type: 'wrong-type', message: 'at comes as boolean, of which no timestamptz is made' },
          {
            field: 'ID',
            type: 'unknown-column',
            message: 'ID is a column that the table does not have; it has id, and names differ by case',
          },
        ],
      },
    });
  });

  it('a missing optional column is null, and so is the column that the flush fills', async () => {
    const schema = schemaOf({ id: 'long!', name: 'string', _ingest_ts: 'timestamptz!' });
    const read = await sendTo(schema, streamOf({ id: BigInt64Array.of(7n) }), STREAM, {
      options: { ingestTimeField: '_ingest_ts' },
    });
    expect(tableOf(read)).toEqual([[7n, null, null]]);
  });

  it('B052, B054: times beyond the years 0001 to 9999 are refused by row; nanoseconds are floored', async () => {
    const schema = schemaOf({ at: 'timestamptz' });
    const at = (type: TimestampNanosecond | TimestampSecond, ...values: bigint[]) => {
      const data = makeData({ type, data: BigInt64Array.from(values) } as never);
      return streamOf({ at: new Vector([data]) });
    };
    const nanos = at(new TimestampNanosecond('UTC'), -1n, 1999n, -1001n, 2n ** 63n - 1n, -(2n ** 63n));
    expect(tableOf(await sendTo(schema, nanos, STREAM))).toEqual(
      [-1n, 1n, -2n, 9_223_372_036_854_775n, -9_223_372_036_854_776n].map((micros) => [micros]),
    );
    const [first, last] = [-62_135_596_800n, 253_402_300_799n];
    const seconds = at(new TimestampSecond('UTC'), first, last, first - 1n, last + 1n, 2n ** 63n - 1n, -(2n ** 63n));
    const read = await sendTo(schema, seconds, STREAM, { options: { onError: 'skip' } });
    expect(tableOf(read)).toEqual([[first * 1_000_000n], [last * 1_000_000n]]);
    expect(read.errors.map(({ line, type }) => [line, type])).toEqual(
      [3, 4, 5, 6].map((line) => [line, 'out-of-range']),
    );
  });

  it('more rows than a flush takes are refused with advice, before any is read', async () => {
    const body = streamOf({ n: new Int32Array(1001) });
    const schema = schemaOf({ n: 'int' });
    expect((await sendTo(schema, body, STREAM, { options: { rowsMax: 1001 } })).columns.rows).toBe(1001);
    expect(await refusal(sendTo(schema, body, STREAM, { options: { rowsMax: 1000 } }))).toMatchObject({
      type: 'too-many-rows',
      message: expect.stringContaining('split it'),
      detail: { rowsMax: 1000 },
    });
    const six = sendTo(ALL, bodyOf('snappy.parquet'), PARQUET, { options: { rowsMax: 5 } });
    expect(await refusal(six)).toMatchObject({ type: 'too-many-rows' });
  });

  it('a batch that is small as sent and huge as columns is refused', async () => {
    // One text of a megabyte in a dictionary, named by every row.
    const rows = BATCH_COLUMN_BYTES_MAX / (1024 * 1024) + 1;
    const text = vectorFromArray(['x'.repeat(1024 * 1024)], new Utf8());
    const type = new Dictionary(new Utf8(), new Int32());
    const codes = makeData({ type, length: rows, nullCount: 0, data: new Int32Array(rows), dictionary: text });
    const body = tableToIPC(new Table({ s: new Vector([codes]) }), 'stream');
    expect(body.length).toBeLessThan(2 * 1024 * 1024);
    expect(await refusal(sendTo(schemaOf({ s: 'string' }), body, STREAM))).toMatchObject({ type: 'too-large' });
  });
});

describe('column bodies: broken ones', () => {
  const stream = bodyOf('stream.arrows');
  const file = bodyOf('file.arrow');
  const parquet = bodyOf('snappy.parquet');

  it('an empty body is refused', async () => {
    for (const type of [STREAM, FILE, PARQUET]) {
      expect(await refusal(sendTo(ALL, new Uint8Array(0), type))).toMatchObject({ type: 'empty-body' });
    }
  });

  it('a schema without batches, and a file without row groups, are a batch without rows', async () => {
    const schema = schemaOf({ n: 'int' });
    const none = streamOf({ n: new Int32Array(0) });
    expect((await sendTo(schema, none, STREAM)).columns.rows).toBe(0);
    const writer = new RecordBatchStreamWriter();
    writer.reset(undefined, new ArrowSchema([new Field('n', new Int32(), true)]));
    writer.finish();
    expect((await sendTo(schema, writer.toUint8Array(true), STREAM)).columns.rows).toBe(0);
  });

  it('B068: a stream cut anywhere is refused, also between two batches and before its end mark', async () => {
    for (const length of [1, 7, 100, 3000, stream.length - 4, stream.length - 8, stream.length - 9]) {
      const error = await refusal(sendTo(ALL, stream.slice(0, length), STREAM));
      expect(error.kind, String(length)).toBe('invalid');
      expect(['truncated-body', 'malformed-body'], `${length}: ${error.message}`).toContain(error.type);
    }
    expect(await refusal(sendTo(ALL, stream.slice(0, -8), STREAM))).toMatchObject({
      type: 'truncated-body',
      detail: { batches: 2 },
    });
  });

  it('files cut anywhere are refused', async () => {
    for (const [body, type] of [
      [file, FILE],
      [parquet, PARQUET],
    ] as const) {
      for (const length of [4, 11, 500, body.length - 1, body.length - 8]) {
        const error = await refusal(sendTo(ALL, body.slice(0, length), type));
        expect(['truncated-body', 'malformed-body'], `${length}: ${error.message}`).toContain(error.type);
      }
    }
  });

  it('a body of another format than its content type says is refused, and told which it is', async () => {
    const json = new TextEncoder().encode('{"id": 1, "name": "a", "more": "text to be long enough"}');
    for (const [body, type] of [
      [json, STREAM],
      [json, FILE],
      [json, PARQUET],
      [parquet, STREAM],
      [stream, FILE],
      [file, PARQUET],
    ] as const) {
      expect(await refusal(sendTo(ALL, body, type))).toMatchObject({ kind: 'invalid', type: 'malformed-body' });
    }
    const error = await refusal(sendTo(ALL, file, STREAM));
    expect(error.message).toContain('application/vnd.apache.arrow.file');
  });

  it('B062: bytes behind the end of a stream are refused', async () => {
    const twice = new Uint8Array(Buffer.concat([stream, stream]));
    expect(await refusal(sendTo(ALL, twice, STREAM))).toMatchObject({ type: 'trailing-data' });
  });

  it('compressions that are not read are named with those that are', async () => {
    for (const [name, type] of [
      ['lz4.arrows', STREAM],
      ['lz4.parquet', PARQUET],
      ['brotli.parquet', PARQUET],
    ] as const) {
      const error = await refusal(sendTo(ALL, bodyOf(name), type));
      expect(error, name).toMatchObject({
        type: 'unsupported-compression',
        detail: { supported: expect.arrayContaining(['zstd']) },
      });
    }
    expect((await refusal(sendTo(ALL, bodyOf('brotli.parquet'), PARQUET))).message).toContain(
      'column i32 is compressed with BROTLI',
    );
  });

  it('whatever bytes are damaged, the answer is rows or a refusal of the request, within a moment', async () => {
    let seed = 1;
    const random = () => {
      seed = (Math.imul(seed, 1_664_525) + 1_013_904_223) >>> 0;
      return seed / 2 ** 32;
    };
    const outcomes = new Set<string>();
    for (const [name, type] of [
      ['stream.arrows', STREAM],
      ['zstd.arrows', STREAM],
      ['delta.arrows', STREAM],
      ['file.arrow', FILE],
      ['snappy.parquet', PARQUET],
      ['encodings.parquet', PARQUET],
    ] as const) {
      for (let i = 0; i < 120; i++) {
        const body = bodyOf(name).slice();
        // Metadata of a Parquet file is at its end.
        const from = type === PARQUET && random() < 0.5 ? Math.floor(body.length * 0.6) : 0;
        for (let flips = Math.floor(random() * 4); flips >= 0; flips--) {
          body[from + Math.floor(random() * (body.length - from))] = random() < 0.3 ? 0xff : Math.floor(random() * 256);
        }
        const started = performance.now();
        try {
          await sendTo(name === 'delta.arrows' ? schemaOf({ code: 'string' }) : ALL, body, type);
          outcomes.add('rows');
        } catch (error) {
          if (!(error instanceof SluiceError) || error.kind !== 'invalid') throw error;
          outcomes.add(error.type);
        }
        expect(performance.now() - started).toBeLessThan(2000);
      }
    }
    // The damage did reach all stages.
    for (const outcome of ['rows', 'malformed-body', 'truncated-body', 'schema-mismatch', 'invalid-rows']) {
      expect(outcomes, outcome).toContain(outcome);
    }
  });
});
