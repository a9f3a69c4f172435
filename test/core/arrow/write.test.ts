import { Type as ArrowType, tableFromIPC } from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { readArrowStream } from '../../../src/core/arrow/read.ts';
import { batchMessage, columnsToIpc, END_OF_STREAM, schemaMessage } from '../../../src/core/arrow/write.ts';
import { concat } from '../../../src/core/base/bytes.ts';
import { type Columns, isNull } from '../../../src/core/columns/columns.ts';
import { batchAligner } from '../../../src/core/columns/foreign-align.ts';
import { slice } from '../../../src/core/columns/gather.ts';
import type { Schema } from '../../../src/core/iceberg/types.ts';
import { decompressZstd } from '../../../src/platform/zlib.ts';
import { schemaOf, send } from '../../http/bodies.ts';

const map = {
  type: 'map',
  'key-id': 10,
  key: 'string',
  'value-id': 11,
  value: 'long',
  'value-required': false,
} as const;
const list = (element: 'long' | 'string') =>
  ({ type: 'list', 'element-id': 12, element, 'element-required': false }) as const;

const SCHEMA = schemaOf({
  i: 'int!',
  l: 'long',
  f: 'float',
  d: 'double',
  b: 'boolean',
  unset: 'boolean',
  s: 'string',
  bin: 'binary',
  u: 'uuid',
  x: 'fixed[3]',
  day: 'date',
  t: 'time',
  at: 'timestamp',
  tz: 'timestamptz',
  d9: 'decimal(9, 2)',
  d18: 'decimal(18, 2)',
  d38: 'decimal(38, 2)',
  li: list('long'),
  m: map,
  st: {
    type: 'struct',
    fields: schemaOf({ a: 'long', b: list('string') }).fields.map((f) => ({ ...f, id: f.id + 50 })),
  },
});

const ROWS = [
  `{"i":1,"l":9007199254740993,"f":0.5,"d":-0.0,"b":true,"s":"é😀","bin":"AP8=","u":"6ad97a0c-8d9b-4b5e-a2c1-0123456789ab",
    "x":"AQID","day":"1969-12-31","t":"23:59:59.999999","at":"0001-01-01T00:00:00Z","tz":"9999-12-31T23:59:59.999999Z",
    "d9":-9999999.99,"d18":"-1234567890123456.78","d38":"-123456789012345678901234567890123456.78",
    "li":[1,null,9007199254740993],"m":{"__proto__":1,"z":null},"st":{"a":-1,"b":["x",null]}}`,
  '{"i":2}',
  '{"i":3,"l":-1,"f":"NaN","d":"Infinity","b":false,"s":"","bin":"","d9":0.01,"d18":0.01,"d38":0.01,"li":[],"m":{},"st":{}}',
].map((row) => row.replaceAll('\n', ''));

async function sample(): Promise<Columns> {
  return (await send(SCHEMA, ROWS.join('\n'))).columns;
}

function readBack(bytes: Uint8Array, schema: Schema): Columns {
  const body = readArrowStream(bytes, decompressZstd);
  const align = batchAligner(body.fields, schema, { epochUnit: 'ms', filledField: null });
  const [batch] = body.batches();
  return align(batch, (row, fault) => {
    throw new Error(`${row} ${fault.message}`);
  });
}

describe('columns as an Arrow stream', () => {
  it('read back they are the same', async () => {
    const columns = await sample();
    const back = readBack(columnsToIpc(columns), SCHEMA);
    const plain = (of: Columns) =>
      of.columns.map((column, i) => {
        const { validity, ...data } = column;
        return [
          of.schema.fields[i].name,
          data,
          Array.from({ length: of.rows }, (_, row) => isNull({ ...data, validity }, row)),
        ];
      });
    expect(plain(back)).toEqual(plain(columns));
  });

  it('B030, B047: apache-arrow reads them, a boolean column of only nulls and 64-bit numbers too', async () => {
    const table = tableFromIPC(columnsToIpc(await sample()));
    expect(table.numRows).toBe(3);
    const column = (name: string) => [...table.getChild(name)!];
    expect(column('i')).toEqual([1, 2, 3]);
    expect(column('l')).toEqual([9_007_199_254_740_993n, null, -1n]);
    expect(column('f')).toEqual([0.5, null, Number.NaN]);
    expect(column('d')).toEqual([-0, null, Number.POSITIVE_INFINITY]);
    expect(column('b')).toEqual([true, null, false]);
    expect(column('unset')).toEqual([null, null, null]);
    expect(column('s')).toEqual(['é😀', null, '']);
    expect(column('bin')).toEqual([Uint8Array.of(0, 255), null, new Uint8Array(0)]);
    expect(column('x')).toEqual([Uint8Array.of(1, 2, 3), null, null]);
    expect(column('li').map((value) => value && [...value])).toEqual([[1n, null, 9_007_199_254_740_993n], null, []]);
    expect(column('st').map((value) => value?.toJSON().a)).toEqual([-1n, undefined, null]);
    const types = Object.fromEntries(table.schema.fields.map((field) => [field.name, field.type]));
    expect(types['tz'].toString()).toBe('Timestamp<MICROSECOND, UTC>');
    expect(types['at'].toString()).toBe('Timestamp<MICROSECOND>');
    expect(types['d38'].toString()).toBe('Decimal[38e+2]');
    expect(types['s'].typeId).toBe(ArrowType.Utf8);
    expect(table.schema.fields.filter((field) => !field.nullable).map((field) => field.name)).toEqual(['i']);
  });

  it('batches follow each other in one stream', async () => {
    const columns = await sample();
    const batches = [slice(columns, 0, 1), slice(columns, 1, 3)].map(batchMessage);
    const bytes = concat([schemaMessage(SCHEMA), ...batches, END_OF_STREAM]);
    const table = tableFromIPC(bytes);
    expect(table.batches.map((batch) => batch.numRows)).toEqual([1, 2]);
    expect([...table.getChild('l')!]).toEqual([9_007_199_254_740_993n, null, -1n]);
    expect([...table.getChild('s')!]).toEqual(['é😀', null, '']);
    expect(readArrowStream(bytes, decompressZstd).rows).toBe(3);
    expect(tableFromIPC(concat([schemaMessage(SCHEMA), END_OF_STREAM])).numRows).toBe(0);
  });

  it('no rows are a batch of none', async () => {
    const columns = (await send(SCHEMA, '[]', { type: 'application/json' })).columns;
    expect(tableFromIPC(columnsToIpc(columns)).numRows).toBe(0);
    expect(readArrowStream(columnsToIpc(columns), decompressZstd).rows).toBe(0);
  });
});
