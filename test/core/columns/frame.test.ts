import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { SluiceError } from '../../../src/core/base/errors.ts';
import { FLUSH_ROWS_MAX } from '../../../src/core/base/limits.ts';
import { xxhash32 } from '../../../src/core/base/xxhash32.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { decodeFrameBody, encodeFrameBody, schemaIdOfFrame } from '../../../src/core/columns/frame.ts';
import { slice } from '../../../src/core/columns/gather.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { columnsOf, everyKind, rowsOf, schemaOf } from './rows.ts';

function roundTrip(columns: Columns): unknown[][] {
  return rowsOf(decodeFrameBody(encodeFrameBody(columns), columns.schema));
}

/** The frame with its checksum made right again, as a forger or a faulty writer would. */
function resealed(frame: Uint8Array): Uint8Array {
  const out = frame.slice();
  new DataView(out.buffer).setUint32(out.length - 4, xxhash32(out.subarray(0, out.length - 4)), true);
  return out;
}

function failure(run: () => unknown): SluiceError {
  try {
    run();
  } catch (error) {
    if (error instanceof SluiceError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

describe('frame', () => {
  test('frame: rows of every kind come back, also from slices', () => {
    fc.assert(
      fc.property(fc.array(everyKind.row, { maxLength: 40 }), fc.nat(6), fc.nat(40), (rows, limit, cut) => {
        const columns = columnsOf(everyKind.schema, rows, limit);
        expect(roundTrip(columns)).toEqual(rows);
        const from = Math.min(cut, rows.length);
        expect(roundTrip(slice(columns, from, rows.length))).toEqual(rows.slice(from));
      }),
    );
  });

  test('frame: null slots come back as zeros, codes as -1', () => {
    const schema = schemaOf([
      ['l', 'long'],
      ['i', 'int'],
      ['d', 'double'],
      ['s', 'string'],
    ]);
    const rows = [
      [5n, 7, 1.5, 'x'],
      [null, null, null, null],
      [9n, 8, 2.5, 'x'],
    ];
    const { columns } = decodeFrameBody(encodeFrameBody(columnsOf(schema, rows)), schema);
    expect(
      columns.map((column) => [
        ...(column.kind === 'dictionary' ? column.codes : (column as { values: Int32Array }).values),
      ]),
    ).toEqual([
      [5n, 0n, 9n],
      [7, 0, 8],
      [1.5, 0, 2.5],
      [0, -1, 0],
    ]);
    for (const column of columns) expect(column.validity).toEqual(Uint8Array.of(1, 0, 1));
  });

  test.each([0, 1, 255, 256, 65_535, 65_536, 2 ** 24 - 1, 2 ** 24, 2 ** 32 - 1])(
    'frame: int32 values that differ by %d',
    (range) => {
      const schema = schemaOf([
        ['i', 'int'],
        ['l', 'long'],
      ]);
      const min = range > 2 ** 31 ? -(2 ** 31) : -7;
      const rows = [min, min + range, min + Math.floor(range / 2), min + Math.floor(range / 3)].map((v) => [
        v,
        BigInt(v),
      ]);
      expect(roundTrip(columnsOf(schema, rows))).toEqual(rows);
    },
  );

  test.each([
    2n ** 32n - 1n,
    2n ** 32n,
    2n ** 40n - 1n,
    2n ** 40n,
    2n ** 48n - 1n,
    2n ** 48n,
    2n ** 63n - 1n,
    2n ** 64n - 1n,
  ])('frame: int64 values that differ by %d (B047)', (range) => {
    const schema = schemaOf([['l', 'long']]);
    for (const min of [-(2n ** 63n), -5n, 0xfffffffen, -0xfffffffen]) {
      const values = [min + range, min, min + 1n, min + range / 2n, min + range - 1n].filter((v) => v < 2n ** 63n);
      expect(
        roundTrip(
          columnsOf(
            schema,
            values.map((v) => [v]),
          ),
        ),
      ).toEqual(values.map((v) => [v]));
    }
  });

  test('frame: doubles of few decimals come back bit for bit', () => {
    const schema = schemaOf([['d', 'double']]);
    const bits = (value: number) => new BigInt64Array(Float64Array.of(value).buffer)[0];
    fc.assert(
      fc.property(
        fc.array(
          fc.oneof(
            fc.tuple(fc.integer(), fc.integer({ min: 0, max: 8 })).map(([whole, decimals]) => whole / 10 ** decimals),
            fc.constantFrom(0, -0, 0.1, 1 / 3, 2 ** 31, -(2 ** 31), 1e-7, 1e300, 5e-324, Number.POSITIVE_INFINITY),
          ),
          { maxLength: 8 },
        ),
        (values) => {
          const back = roundTrip(
            columnsOf(
              schema,
              values.map((v) => [v]),
            ),
          ).map(([v]) => v as number);
          expect(back.map(bits)).toEqual(values.map(bits));
        },
      ),
      { numRuns: 1000 },
    );
    const rounded = columnsOf(
      schema,
      Array.from({ length: 1000 }, (_, i) => [(i - 500) / 100]),
    );
    expect(encodeFrameBody(rounded).length).toBeLessThan(2100);
  });

  test('frame: a null list, an empty list and a list of null stay three different values (B032)', () => {
    const tags: Type = { type: 'list', 'element-id': 9, element: 'string', 'element-required': false };
    const rows = [[null], [[]], [[null]]];
    expect(roundTrip(columnsOf(schemaOf([['tags', tags]]), rows))).toEqual(rows);
  });

  test('frame: columns of nulls only keep kind and rows (B030, B031)', () => {
    const rows = Array.from({ length: 3 }, () => everyKind.schema.fields.map(() => null));
    const columns = columnsOf(everyKind.schema, rows);
    const back = decodeFrameBody(encodeFrameBody(columns), columns.schema);
    expect(rowsOf(back)).toEqual(rows);
    expect(back).toEqual(columns);
  });

  test('frame: one row costs little beside its values', () => {
    const schema = schemaOf([
      ['time', 'timestamptz'],
      ['device', 'string'],
      ['a', 'double'],
      ['b', 'double'],
      ['c', 'double'],
      ['d', 'double'],
      ['count', 'long'],
      ['status', 'string'],
      ['site', 'string'],
      ['_ingest_ts', 'timestamptz'],
    ]);
    const row = [1_764_000_000_000_000n, 'device-1', 1.5, 0.1, 1 / 3, null, 7n, 'ok', 'site-1', null];
    const values = 8 + 8 + 3 * 8 + 8 + 2 + 6;
    expect(encodeFrameBody(columnsOf(schema, [row])).length).toBeLessThan(values + 60);
  });

  test('frame: a large dictionary of which few entries are used is not written whole', () => {
    const schema = schemaOf([['s', 'string']]);
    const columns = columnsOf(
      schema,
      Array.from({ length: 5000 }, (_, i) => [`text ${i}`]),
    );
    const frame = encodeFrameBody(slice(columns, 4000, 4002));
    expect(frame.length).toBeLessThan(50);
    expect(rowsOf(decodeFrameBody(frame, schema))).toEqual([['text 4000'], ['text 4001']]);
  });

  test('frame: the schema id can be read without the schema, and another schema is refused', () => {
    const columns = columnsOf(schemaOf([['a', 'int']], 300), [[1]]);
    const frame = encodeFrameBody(columns);
    expect(schemaIdOfFrame(frame)).toBe(300);
    expect(failure(() => decodeFrameBody(frame, schemaOf([['a', 'int']], 2)))).toMatchObject({
      kind: 'corrupt',
      type: 'frame-corrupt',
      message: 'frame is of schema 300, read with schema 2',
    });
  });

  test('frame: the same id over other columns is refused', () => {
    const frame = encodeFrameBody(columnsOf(schemaOf([['a', 'int']]), [[1]]));
    const two = schemaOf([
      ['a', 'int'],
      ['b', 'int'],
    ]);
    const otherId = { ...schemaOf([]), fields: [{ id: 2, name: 'a', required: false, type: 'int' }] };
    for (const schema of [two, otherId, schemaOf([]), schemaOf([['a', 'long']]), schemaOf([['a', 'string']])]) {
      expect(failure(() => decodeFrameBody(frame, schema)).type).toBe('frame-corrupt');
    }
  });

  test('frame: a newer version is left alone, not called corrupt', () => {
    const frame = encodeFrameBody(columnsOf(schemaOf([['a', 'int']]), [[1]]));
    frame[0] = 3;
    const newer = resealed(frame);
    expect(failure(() => decodeFrameBody(newer, schemaOf([['a', 'int']])))).toMatchObject({
      kind: 'unavailable',
      type: 'frame-version-unknown',
    });
    expect(failure(() => schemaIdOfFrame(newer)).kind).toBe('unavailable');
  });

  test('frame: version 1 stays readable byte for byte', () => {
    const schema = schemaOf(
      [
        ['i', 'int'],
        ['l', 'long'],
        ['d', 'double'],
        ['s', 'string'],
        ['f', 'boolean'],
      ],
      3,
    );
    const rows = [
      [1, -1n, 0.5, 'a', true],
      [null, 300n, 1.25, 'b', false],
      [3, 5n, 2, 'a', null],
    ];
    const frame = encodeFrameBody(columnsOf(schema, rows));
    expect(Buffer.from(frame).toString('hex')).toMatchInlineSnapshot(
      `"01030305011105020100020202010200002d0106000304026401004b96040602020061620001000100051003011c1c8a31"`,
    );
    expect(rowsOf(decodeFrameBody(frame, schema))).toEqual(rows);
  });

  test('frame: unaligned bytes are read, and nothing of them is kept', () => {
    const columns = columnsOf(everyKind.schema, fc.sample(everyKind.row, { seed: 1, numRuns: 20 }));
    const frame = encodeFrameBody(columns);
    for (let offset = 1; offset < 8; offset++) {
      const blob = new Uint8Array(frame.length + 16);
      blob.set(frame, offset);
      const back = decodeFrameBody(blob.subarray(offset, offset + frame.length), columns.schema);
      blob.fill(0xff);
      expect(rowsOf(back)).toEqual(rowsOf(columns));
    }
  });

  test('frame: any changed, missing or added byte is noticed', () => {
    const columns = columnsOf(everyKind.schema, fc.sample(everyKind.row, { seed: 2, numRuns: 12 }));
    const frame = encodeFrameBody(columns);
    for (let at = 0; at < frame.length; at++) {
      for (const flip of [1, 0x80, 0xff]) {
        const broken = frame.slice();
        broken[at] ^= flip;
        expect(failure(() => decodeFrameBody(broken, columns.schema)).type).toBe('frame-corrupt');
      }
      expect(failure(() => decodeFrameBody(frame.subarray(0, at), columns.schema)).type).toBe('frame-corrupt');
    }
    expect(failure(() => decodeFrameBody(new Uint8Array([...frame, 0]), columns.schema)).type).toBe('frame-corrupt');
  });

  test('frame: garbage under a right checksum is an error or rows, never a crash, a hang or a flood of memory', () => {
    const frames = fc
      .sample(fc.array(everyKind.row, { minLength: 1, maxLength: 6 }), { seed: 3, numRuns: 20 })
      .map((rows, i) => encodeFrameBody(columnsOf(everyKind.schema, rows, i % 3)));
    let refused = 0;
    let read = 0;
    fc.assert(
      fc.property(
        fc.constantFrom(...frames),
        fc.array(fc.tuple(fc.nat(2000), fc.nat(255)), { minLength: 1, maxLength: 3 }),
        fc.nat(2000),
        (frame, changes, cut) => {
          const forged = frame.slice(0, cut > frame.length ? frame.length : Math.max(5, cut));
          for (const [at, byte] of changes) forged[1 + (at % (forged.length - 1))] = byte;
          try {
            const columns = decodeFrameBody(resealed(forged), everyKind.schema);
            expect(columns.rows).toBeLessThanOrEqual(FLUSH_ROWS_MAX);
            read++;
          } catch (error) {
            expect(error).toBeInstanceOf(SluiceError);
            expect((error as SluiceError).type).toBe('frame-corrupt');
            refused++;
          }
        },
      ),
      { numRuns: 2000 },
    );
    expect(refused).toBeGreaterThan(100);
    expect(read).toBeGreaterThan(0);
  });

  test('frame: more rows than a flush takes are refused before memory is taken', () => {
    const rows = [0x80, 0x80, 0x80, 0x80, 0x01];
    const forged = resealed(Uint8Array.of(1, 0, ...rows, 1, 1, 0x21, 0, 0, 0, 0));
    expect(failure(() => decodeFrameBody(forged, schemaOf([['a', 'int']]))).message).toContain('above 100000');
  });
});
