import {
  Field,
  Int64,
  makeData,
  Struct,
  Table,
  tableFromArrays,
  tableToIPC,
  Utf8,
  Vector,
  vectorFromArray,
} from 'apache-arrow';
import { describe, expect, it } from 'vitest';
import { NEW_COLUMNS_MAX } from '../../src/core/base/limits.ts';
import { PROPOSED_ID_MIN, proposalOf } from '../../src/core/iceberg/proposal.ts';
import type { Schema } from '../../src/core/iceberg/types.ts';
import { newFrame } from '../../src/http/new-frame.ts';
import type { RowsRead } from '../../src/http/rows.ts';
import type { IngestView } from '../../src/object/views.ts';
import { errorsOf, JSON_TYPE, NDJSON, refusal, type Sent, schemaOf, send, tableOf } from './bodies.ts';

const SCHEMA = schemaOf({ id: 'int', price: 'decimal(4, 2)', ratio: 'float' });
const CSV = 'text/csv';
const STREAM = 'application/vnd.apache.arrow.stream';

function evolve(body: string | Uint8Array, sent: Sent = {}, schema: Schema = SCHEMA): Promise<RowsRead> {
  return send(schema, body, { ...sent, options: { evolves: true, ...sent.options } });
}

/** Columns that the batch brings, and columns of the table that are wider in it: name → type. */
function news({ columns }: RowsRead, schema: Schema = SCHEMA): Record<string, unknown> {
  const proposal = proposalOf(schema, columns.schema);
  const wider = (proposal?.widened ?? []).map(({ id, type }) => [
    schema.fields.find((one) => one.id === id)?.name,
    type,
  ]);
  return Object.fromEntries([...wider, ...(proposal?.added ?? []).map(({ name, type }) => [name, type])]);
}

describe('new columns: rows', () => {
  it('B036: the row that brings a column keeps its value, rows before it are null there', async () => {
    for (const [body, type] of [
      ['{"id":1}\n{"id":2,"color":"red"}\n{"id":3}', NDJSON],
      ['[{"id":1},{"id":2,"color":"red"},{"id":3}]', JSON_TYPE],
      ['id,color\n1,\n2,red\n3,', CSV],
    ]) {
      const read = await evolve(body, { type });
      expect(news(read)).toEqual({ color: 'string' });
      expect(read.columns.schema.fields[3].id).toBe(PROPOSED_ID_MIN);
      expect(tableOf(read)).toEqual([
        [1, null, null, null],
        [2, null, null, 'red'],
        [3, null, null, null],
      ]);
    }
  });

  it('what a batch asks of the schema fits a row of the ledger, beside which its rows are kept', async () => {
    const many = (count: number) =>
      JSON.stringify({
        id: 1,
        o: Object.fromEntries(Array.from({ length: count }, (_, i) => [`${i}${'n'.repeat(200)}`, 1])),
      });
    const view = { schema: SCHEMA, spec: { 'spec-id': 0, fields: [] } } as unknown as IngestView;
    const frameOf = async (count: number) => {
      const { columns, digest } = await evolve(many(count), { type: NDJSON });
      return newFrame(columns, view, { batchId: null, producer: null }, digest);
    };
    expect((await frameOf(2000)).rows).toBe(1);
    await expect(frameOf(6000)).rejects.toThrow(
      expect.objectContaining({ kind: 'invalid', type: 'too-large', message: expect.stringContaining('columns') }),
    );
  });

  it('types follow from the values; text stays text', async () => {
    const read = await evolve(
      [
        '{"b":true,"n":1,"x":1,"t":"2026-01-03T00:00:00Z","l":[1,null],"o":{"a":1}}',
        '{"n":9007199254740993,"x":0.5,"l":[2.5],"o":{"b":"y"},"nothing":null}',
      ].join('\n'),
    );
    const types = news(read);
    expect(types).toMatchObject({ b: 'boolean', n: 'long', x: 'double', t: 'string' });
    expect(types).toMatchObject({ l: { type: 'list', element: 'double' }, o: { type: 'struct' } });
    expect(types).not.toHaveProperty('nothing');
    const [, second] = tableOf(read);
    expect(second.slice(3, 6)).toEqual([null, 9_007_199_254_740_993n, 0.5]);
  });

  it('without the property nothing changes: B201 unknown columns are refused by name', async () => {
    expect(await errorsOf(send(SCHEMA, '{"id":1,"extra":true}'))).toEqual([
      { line: 1, field: 'extra', type: 'unknown-column' },
    ]);
  });

  it('B037: a list here and a number there is refused with its row; with skip the other rows are taken', async () => {
    const body = '{"id":1,"v":[1,2]}\n{"id":2,"v":7}\n{"id":3,"v":[3]}';
    expect(await errorsOf(evolve(body))).toEqual([{ line: 2, field: 'v', type: 'wrong-type' }]);
    const read = await evolve(body, { options: { onError: 'skip' } });
    expect(tableOf(read).map((row) => [row[0], row[3]])).toEqual([
      [1, [1n, 2n]],
      [3, [3n]],
    ]);
    expect(read.errors).toMatchObject([{ line: 2, field: 'v' }]);
  });

  it('a refused row leaves nothing behind: neither its values nor its columns', async () => {
    const body = '{"a":"x","id":"no"}\n{"id":5000000000,"a":1,"price":"y"}\n{"a":2,"id":7}';
    const read = await evolve(body, { options: { onError: 'skip' } });
    expect(news(read)).toEqual({ a: 'long' });
    expect(tableOf(read)).toEqual([[7, null, null, 2n]]);
    expect(read.errorCount).toBe(2);
  });

  it('B089: a name that differs by case is no new column', async () => {
    const error = await refusal(evolve('{"ID":1}', {}, schemaOf({ id: 'int' })));
    expect(error.detail['errors']).toMatchObject([{ line: 1, field: 'ID', type: 'unknown-column' }]);
    expect(JSON.stringify(error.detail['errors'])).toContain('names differ by case');
  });

  it('B087, B204: two new names that differ by case, and reserved names, are refused', async () => {
    expect(await errorsOf(evolve('{"Tag":1,"tag":2}'))).toEqual([{ line: 1, field: 'tag', type: 'bad-column-name' }]);
    expect(await errorsOf(evolve('{"_pos":1}'))).toEqual([{ line: 1, field: '_pos', type: 'bad-column-name' }]);
  });

  it('B202: constructor and __proto__ are names like others', async () => {
    const read = await evolve('{"constructor":"acme","__proto__":9007199254740995}');
    expect(news(read)).toEqual({ constructor: 'string', ['__proto__']: 'long' });
    expect(tableOf(read)[0].slice(3)).toEqual(['acme', 9_007_199_254_740_995n]);
  });

  it('values that tell no type are refused, and B084 lone surrogates with their row', async () => {
    expect(await errorsOf(evolve('{"a":[]}\n{"id":1}'))).toEqual([{ line: 1, field: 'a', type: 'wrong-type' }]);
    expect(await errorsOf(evolve('{"a":"x"}\n{"a":"\\ud83d"}'))).toEqual([
      { line: 2, field: 'a', type: 'lone-surrogate' },
    ]);
    const late = await evolve('{"a":"\\ud83d","id":1}\n{"a":"x","id":2}', { options: { onError: 'skip' } });
    expect(tableOf(late)).toEqual([[2, null, null, 'x']]);
    expect(late.errors).toMatchObject([{ line: 1, field: 'a', type: 'lone-surrogate' }]);
    // In the order of lines, whenever they were found.
    const both = await evolve('{"a":"\\ud83d"}\n{"id":"no"}\n{"a":"x"}', { options: { onError: 'skip' } });
    expect(both.errors.map(({ line }) => line)).toEqual([1, 2]);
    expect(tableOf(both)).toEqual([[null, null, null, 'x']]);
  });

  it('a batch brings a bounded number of columns', async () => {
    const row = Object.fromEntries(Array.from({ length: NEW_COLUMNS_MAX + 1 }, (_, i) => [`c${i}`, i]));
    expect(await errorsOf(evolve(JSON.stringify(row)))).toMatchObject([{ field: `c${NEW_COLUMNS_MAX}` }]);
  });
});

describe('wider columns: rows', () => {
  it('int to long, float to double, decimals of more digits: by the value that asks for it', async () => {
    const body = '{"id":1,"price":1.5,"ratio":0.5}\n{"id":5000000000,"price":"123456.78","ratio":1e39}\n{"id":-2}';
    const read = await evolve(body);
    expect(news(read)).toEqual({ id: 'long', price: 'decimal(8, 2)', ratio: 'double' });
    expect(tableOf(read)).toEqual([
      [1n, 150, 0.5],
      [5_000_000_000n, 12_345_678, 1e39],
      [-2n, null, null],
    ]);
  });

  it('B040: wide decimals keep every digit, up to 38', async () => {
    const digits = `${'9'.repeat(36)}.25`;
    const read = await evolve(`{"price":${digits}}\n{"price":"-0.01"}`);
    expect(news(read)).toEqual({ price: 'decimal(38, 2)' });
    expect(tableOf(read).map((row) => row[1])).toEqual([
      BigInt(digits.replace('.', '')).toString(16).padStart(32, '0'),
      'f'.repeat(32),
    ]);
    expect(await errorsOf(evolve(`{"price":9${digits}}`))).toEqual([{ line: 1, field: 'price', type: 'out-of-range' }]);
    expect(await errorsOf(evolve('{"price":1.234}'))).toEqual([{ line: 1, field: 'price', type: 'inexact-number' }]);
  });

  it('what no wider type takes is refused as ever', async () => {
    expect(await errorsOf(evolve('{"id":9223372036854775808}'))).toEqual([
      { line: 1, field: 'id', type: 'out-of-range' },
    ]);
    expect(await errorsOf(evolve('{"id":1.5}'))).toEqual([{ line: 1, field: 'id', type: 'wrong-type' }]);
  });

  it('required columns get wider too', async () => {
    const schema = schemaOf({ id: 'int!' });
    const read = await evolve('{"id":3000000000}', {}, schema);
    expect(read.columns.schema.fields[0]).toMatchObject({ type: 'long', required: true });
    expect(tableOf(read)).toEqual([[3_000_000_000n]]);
  });
});

describe('new and wider columns: bodies of columns', () => {
  const arrow = (columns: Record<string, Vector>) => tableToIPC(new Table(columns), 'stream');

  it('types are those of the body', async () => {
    const body = arrow({
      id: vectorFromArray([1n, null], new Int64()),
      ratio: vectorFromArray(Float64Array.of(0.1, 2)),
      name: vectorFromArray(['a', null], new Utf8()),
    });
    const read = await evolve(body, { type: STREAM });
    expect(news(read)).toEqual({ id: 'long', ratio: 'double', name: 'string' });
    expect(tableOf(read)).toEqual([
      [1n, null, 0.1, 'a'],
      [null, null, 2, null],
    ]);
  });

  it('structs come along; names that no table lets in are refused', async () => {
    const point = new Struct([new Field('x', new Int64(), true)]);
    const data = makeData({ type: point, length: 1, children: [vectorFromArray([7n], new Int64()).data[0]] });
    const read = await evolve(arrow({ point: new Vector([data]) }), { type: STREAM });
    expect(news(read)).toMatchObject({ point: { type: 'struct' } });
    expect(tableOf(read)[0][3]).toEqual({ x: 7n });
    const wrong = await refusal(
      evolve(tableToIPC(tableFromArrays({ ID: [1], _file: ['x'] }), 'stream'), { type: STREAM }),
    );
    expect(wrong.type).toBe('schema-mismatch');
    expect(wrong.detail['errors']).toMatchObject([{ field: 'ID' }, { field: '_file' }]);
  });
});

describe('units of single columns', () => {
  it('a column with a unit of its own counts in it, in text and in columns', async () => {
    const schema = schemaOf({ a: 'timestamptz', b: 'timestamp' });
    const options = { epochUnits: new Map([['b', 's' as const]]) };
    const micros = [1_000_000n, 1_000_000_000n];
    expect(tableOf(await send(schema, '{"a":1000,"b":1000}', { options }))).toEqual([micros]);
    expect(tableOf(await send(schema, 'a,b\n1000,1000', { type: CSV, options }))).toEqual([micros]);
    const body = arrowLongs({ a: 1000n, b: 1000n });
    expect(tableOf(await send(schema, body, { type: STREAM, options }))).toEqual([micros]);
  });
});

function arrowLongs(values: Record<string, bigint>): Uint8Array {
  const columns = Object.entries(values).map(([name, value]) => [name, vectorFromArray([value], new Int64())]);
  return tableToIPC(new Table(Object.fromEntries(columns)), 'stream');
}
