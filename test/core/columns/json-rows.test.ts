import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { concat, textOf } from '../../../src/core/base/bytes.ts';
import { JSON_PIECE_CHARS } from '../../../src/core/base/limits.ts';
import type { Columns } from '../../../src/core/columns/columns.ts';
import { jsonElements, jsonLines } from '../../../src/core/columns/json-rows.ts';
import type { Type } from '../../../src/core/iceberg/types.ts';
import { schemaOf as httpSchemaOf, send } from '../../http/bodies.ts';
import { columnsOf, everyKind, rowsOf, schemaOf } from './rows.ts';

const linesOf = (columns: Columns): string => textOf(concat([...jsonLines(columns)]));

function cells(type: Type, values: unknown[]): unknown[] {
  const text = linesOf(
    columnsOf(
      schemaOf([['v', type]]),
      values.map((value) => [value]),
    ),
  );
  return text
    .trimEnd()
    .split('\n')
    .map((line) => line.slice('{"v":'.length, -1));
}

describe('rows as JSON', () => {
  test('text of other writers that is no UTF-8 is shown as far as it is, and breaks no answer off', () => {
    const values = { bytes: Uint8Array.of(0x61, 0xff, 0x62), offsets: Int32Array.of(0, 2, 3) };
    const schema = schemaOf([['v', 'string']]);
    expect(linesOf({ schema, rows: 2, columns: [{ kind: 'bytes', values, validity: null }] })).toBe(
      '{"v":"a\uFFFD"}\n{"v":"b"}\n',
    );
  });

  test('long: numbers while clients keep them, text beyond', () => {
    const edge = 2n ** 53n;
    expect(
      cells('long', [0n, -1n, 2n ** 32n, -(2n ** 32n) - 5n, edge - 1n, 1n - edge, edge, -edge, 2n ** 63n - 1n]),
    ).toEqual([
      '0',
      '-1',
      '4294967296',
      '-4294967301',
      '9007199254740991',
      '-9007199254740991',
      '"9007199254740992"',
      '"-9007199254740992"',
      '"9223372036854775807"',
    ]);
  });

  test('float, double: shortest digits, the sign of zero, NaN and infinities as text', () => {
    expect(cells('double', [0.1, -0, 1e21, 5, Number.NaN, -Infinity, 5e-324])).toEqual([
      '0.1',
      '-0',
      '1e+21',
      '5',
      '"NaN"',
      '"-Infinity"',
      '5e-324',
    ]);
    expect(cells('float', [Math.fround(0.1), -0, Math.fround(16_777_217), Number.NaN, Infinity])).toEqual([
      '0.1',
      '-0',
      '16777216',
      '"NaN"',
      '"Infinity"',
    ]);
  });

  test('decimal: all digits of its scale, as text, whatever it is stored in', () => {
    expect(cells('decimal(9, 2)', [1250, -5, 0])).toEqual(['"12.50"', '"-0.05"', '"0.00"']);
    expect(cells('decimal(18, 0)', [-(10n ** 18n) + 1n])).toEqual(['"-999999999999999999"']);
    const wide = Uint8Array.from({ length: 16 }, () => 0xff);
    expect(cells('decimal(38, 3)', [wide])).toEqual(['"-0.001"']);
  });

  test('times: microseconds, UTC, years beyond four digits as ISO 8601 has them', () => {
    const times = [0n, -1n, 1_767_434_400_000_001n, -62_135_596_800_000_000n, 253_402_300_800_000_000n];
    expect(cells('timestamptz', times)).toEqual([
      '"1970-01-01T00:00:00.000000Z"',
      '"1969-12-31T23:59:59.999999Z"',
      '"2026-01-03T10:00:00.000001Z"',
      '"0001-01-01T00:00:00.000000Z"',
      '"+010000-01-01T00:00:00.000000Z"',
    ]);
    expect(cells('timestamp', [-(2n ** 63n)])).toEqual(['"-290308-12-21T19:59:05.224192"']);
    expect(cells('time', [86_399_999_999n])).toEqual(['"23:59:59.999999"']);
    expect(cells('date', [-719_162, 20_456])).toEqual(['"0001-01-01"', '"2026-01-03"']);
  });

  test('every kind of column sent in again is the same', async () => {
    const list = { type: 'list', 'element-id': 90, element: 'timestamptz', 'element-required': false } as const;
    const map = (key: 'string' | 'long') =>
      ({ type: 'map', 'key-id': 91, key, 'value-id': 92, value: 'decimal(38, 2)', 'value-required': false }) as const;
    const fields = httpSchemaOf({ a: 'long', __proto__x: 'double' }).fields.map((f) => ({ ...f, id: f.id + 70 }));
    const schema = httpSchemaOf({
      ...{ i: 'int', l: 'long', f: 'float', d: 'double', b: 'boolean', s: 'string', bin: 'binary', u: 'uuid' },
      ...{ x: 'fixed[3]', day: 'date', t: 'time', at: 'timestamp', tz: 'timestamptz' },
      ...{ d9: 'decimal(9, 2)', d18: 'decimal(18, 2)', d38: 'decimal(38, 2)' },
      ...{ li: list, m: map('string'), n: map('long'), st: { type: 'struct', fields } },
    });
    const rows = [
      `{"i":1,"l":9007199254740993,"f":0.1,"d":-0.0,"b":true,"s":"é😀\\"\\n","bin":"AP8=","u":"6ad97a0c-8d9b-4b5e-a2c1-0123456789ab",
        "x":"AQID","day":"1969-12-31","t":"23:59:59.999999","at":"0001-01-01T00:00:00Z","tz":"9999-12-31T23:59:59.999999Z",
        "d9":-9999999.99,"d18":"-1234567890123456.78","d38":"-123456789012345678901234567890123456.78",
        "li":["1969-12-31T23:59:59.999999Z",null],"m":{"__proto__":"1.00","z":null},"n":[[-9007199254740993,"0.01"]],
        "st":{"a":-9007199254740993,"__proto__x":"NaN"}}`.replaceAll('\n', ''),
      '{}',
    ];
    const { columns } = await send(schema, rows.join('\n'));
    const again = await send(schema, linesOf(columns));
    expect(rowsOf(again.columns)).toEqual(rowsOf(columns));
    const array = `[${textOf(concat([...jsonElements(columns)]))}]`;
    expect(JSON.parse(array)).toHaveLength(2);
  });

  test('any rows are JSON, with all columns in each', () => {
    fc.assert(
      fc.property(fc.array(everyKind.row, { maxLength: 20 }), (rows) => {
        const lines = linesOf(columnsOf(everyKind.schema, rows)).split('\n').slice(0, -1);
        const names = everyKind.schema.fields.map(({ name }) => name);
        expect(lines.map((line) => Object.keys(JSON.parse(line)))).toEqual(rows.map(() => names));
        lines.forEach((line, row) => {
          const place = names.indexOf('double');
          const value = rows[row][place] as number | null;
          const text = JSON.parse(line).double;
          expect(Object.is(text === null ? null : Number(text), value)).toBe(true);
        });
      }),
    );
  });

  test('text comes in pieces', () => {
    const rows = Array.from({ length: 5000 }, (_, i) => [`${i}${'x'.repeat(100)}`]);
    const columns = columnsOf(schemaOf([['v', 'string']]), rows);
    const sizes = [...jsonLines(columns)].map((piece) => piece.length);
    expect(sizes.length).toBeGreaterThan(5);
    expect(Math.max(...sizes)).toBeLessThan(JSON_PIECE_CHARS + 200);
    expect(JSON.parse(`[${textOf(concat([...jsonElements(columns)]))}]`)).toHaveLength(5000);
  });
});
