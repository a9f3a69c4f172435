import { tableFromIPC } from 'apache-arrow';
import { describe, expect, test } from 'vitest';
import { ARROW_BATCH_ROWS } from '../../src/core/base/limits.ts';
import { rowsFormat, rowsResponse } from '../../src/http/rows-answer.ts';
import { columnsOf, schemaOf } from '../core/columns/rows.ts';

const SCHEMA = schemaOf([
  ['n', 'long'],
  ['s', 'string'],
]);
const columns = columnsOf(SCHEMA, [
  [1n, 'a'],
  [2n ** 60n, null],
]);
const facts = { version: 3, snapshot_id: '12', more: false, note: null };

describe('the format of rows', () => {
  test.each([
    [undefined, 'json'],
    ['', 'json'],
    ['*/*', 'json'],
    ['application/*', 'json'],
    ['text/html, */*;q=0.1', 'json'],
    ['application/x-ndjson', 'ndjson'],
    ['application/jsonl', 'ndjson'],
    ['APPLICATION/VND.APACHE.ARROW.STREAM', 'arrow'],
    ['application/json;q=0.5, application/x-ndjson', 'ndjson'],
    ['application/json;q=0, */*', 'ndjson'],
  ])('%s: %s', (accept, format) => {
    expect(rowsFormat(accept).format).toBe(format);
  });

  test.each(['text/csv', 'application/json;q=0', 'text/*', 'application/json;q=x'])('%s: none', (accept) => {
    expect(() => rowsFormat(accept)).toThrow(expect.objectContaining({ type: 'not-acceptable' }));
  });
});

describe('an answer of rows', () => {
  const answer = (accept: string, of = columns) => rowsResponse(rowsFormat(accept), of, facts);

  test('as JSON: the facts and the rows', async () => {
    const response = answer('application/json');
    expect(response.headers.get('content-type')).toBe('application/json');
    expect(await response.json()).toEqual({
      ...facts,
      rows: [
        { n: 1, s: 'a' },
        { n: String(2n ** 60n), s: null },
      ],
    });
    expect(await rowsResponse(rowsFormat(undefined), columnsOf(SCHEMA, []), {}).json()).toEqual({ rows: [] });
  });

  test('as NDJSON and Arrow: the facts in headers', async () => {
    const lines = answer('application/x-ndjson');
    expect(lines.headers.get('x-sluice-snapshot-id')).toBe('12');
    expect(lines.headers.get('x-sluice-more')).toBe('false');
    expect(lines.headers.has('x-sluice-note')).toBe(false);
    expect(await lines.text()).toBe(`{"n":1,"s":"a"}\n{"n":"${2n ** 60n}","s":null}\n`);
    const arrow = answer('application/vnd.apache.arrow.stream');
    const table = tableFromIPC(new Uint8Array(await arrow.arrayBuffer()));
    expect([...table.getChild('n')!]).toEqual([1n, 2n ** 60n]);
  });

  test('as Arrow: a batch after the other', async () => {
    const many = columnsOf(
      SCHEMA,
      Array.from({ length: ARROW_BATCH_ROWS + 1 }, (_, i) => [BigInt(i), `${i}`]),
    );
    const response = answer('application/vnd.apache.arrow.stream', many);
    const table = tableFromIPC(new Uint8Array(await response.arrayBuffer()));
    expect(table.batches.map((batch) => batch.numRows)).toEqual([ARROW_BATCH_ROWS, 1]);
    expect(table.getChild('s')!.get(ARROW_BATCH_ROWS)).toBe(String(ARROW_BATCH_ROWS));
  });
});
