import { describe, expect, it } from 'vitest';
import { LINE_BYTES_MAX } from '../../../src/core/base/limits.ts';
import { readRows } from '../../../src/http/rows.ts';
import {
  bytesOf,
  errorsOf,
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
} from '../bodies.ts';

describe('NDJSON', () => {
  it('lines are rows, with or without the last newline, LF or CRLF', async () => {
    for (const body of [THREE, THREE.trimEnd(), THREE.replaceAll('\n', '\r\n'), THREE.replaceAll('\n', ' \r\n')]) {
      const read = await send(SCHEMA, body);
      expect(tableOf(read)).toEqual(THREE_ROWS);
      expect(read).toMatchObject({ rowsRead: 3, errors: [], errorCount: 0, bytes: body.length });
    }
  });

  it('blank lines are skipped and counted', async () => {
    const body = `\n${THREE.replaceAll('\n', '\n  \n\r\n')}\n\n{"id":"x"}`;
    expect(await errorsOf(send(SCHEMA, body))).toEqual([{ line: 13, field: 'id', type: 'wrong-type' }]);
    expect(tableOf(await send(SCHEMA, body, { options: { onError: 'skip' } }))).toEqual(THREE_ROWS);
  });

  it('B066: a byte order mark at the start is stripped, and nowhere else', async () => {
    expect(tableOf(await send(SCHEMA, `\ufeff${THREE}`))).toEqual(THREE_ROWS);
    expect(await errorsOf(send(SCHEMA, `${THREE}\ufeff{"id":4}`))).toEqual([
      { line: 4, field: null, type: 'malformed-json' },
    ]);
  });

  it('B064: a malformed line refuses the batch, named with its line and its text', async () => {
    const error = await refusal(send(SCHEMA, '{"id":1}\n{"id":\n{"id":2}\n'));
    expect(error.message).toBe('batch has 1 bad rows, first at line 2: line is JSON cut short');
    expect(error.detail).toEqual({
      errorCount: 1,
      complete: true,
      errors: [{ line: 2, field: null, type: 'malformed-json', message: 'line is JSON cut short', value: '{"id":' }],
    });
  });

  it('B069: with skip, one bad row costs itself alone', async () => {
    const lines = Array.from({ length: 1000 }, (_, i) => (i === 499 ? '{"id":' : `{"id":${i}}`));
    const read = await send(SCHEMA, lines.join('\n'), { options: { onError: 'skip' } });
    expect(read).toMatchObject({ rowsRead: 1000, errorCount: 1, columns: { rows: 999 } });
    expect(read.errors).toMatchObject([{ line: 500, type: 'malformed-json', value: '{"id":' }]);
    expect(tableOf(read)[499][0]).toBe(500n);
  });

  it('two objects on one line are refused, with or without a comma', async () => {
    const error = await refusal(send(SCHEMA, '{"id":1}\n{"id":2}{"id":3}\n'));
    expect(error.message).toContain('line goes on behind its JSON value at byte 9');
    expect(await errorsOf(send(SCHEMA, '{"id":1},{"id":2}\n'))).toEqual([
      { line: 1, field: null, type: 'trailing-data' },
    ]);
  });

  it('broken lines that would make a good array when joined are refused', async () => {
    const split = '{"id":1},{"id":2}\n';
    for (const broken of [
      '{"id":1\n"v":2}\n',
      '{"id":1,"name":"a}\n{b"}\n',
      '{"id":1\n,"v":2}\n',
      '{"id":1,"v":[{}\n{}]}\n',
    ]) {
      const types = (await errorsOf(send(SCHEMA, `${broken}${split}`))).map((error) => error.line);
      expect(types).toContain(3);
    }
  });

  it('what is no object is refused', async () => {
    expect(await errorsOf(send(SCHEMA, '[1]\n5\nnull\n"x"\n[{"id":1}]\n'))).toEqual(
      [1, 2, 3, 4, 5].map((line) => ({ line, field: null, type: 'not-an-object' })),
    );
  });

  it('invalid UTF-8 is refused, naming the line', async () => {
    const body = bytesOf('{"id":1}\n{"id":2,"name":"abc"}\n');
    body[body.indexOf(98)] = 0xff;
    expect(await errorsOf(send(SCHEMA, body))).toEqual([{ line: 2, field: null, type: 'malformed-utf8' }]);
  });

  it('B084: a lone surrogate is refused by row and field, and a pair is kept', async () => {
    const body = '{"id":1,"name":"x\\uD83D"}\n{"id":2,"name":"\\uD83D\\uDE00"}\n';
    expect(await errorsOf(send(SCHEMA, body))).toEqual([{ line: 1, field: 'name', type: 'lone-surrogate' }]);
    expect(tableOf(await send(SCHEMA, body, { options: { onError: 'skip' } }))).toEqual([[2n, '😀', null, null]]);
  });

  it.each([
    ['s', '1767443696.123456999', 1_767_443_696_123_456n],
    ['s', '1767443696.0000009999', 1_767_443_696_000_000n],
    ['s', '-99999999.1234560009', -99_999_999_123_457n],
    ['ms', '1767443696789.999999', 1_767_443_696_789_999n],
  ] as const)('a time in %s with nanoseconds is floored in every format: %s', async (epochUnit, digits, micros) => {
    const schema = schemaOf({ at: 'timestamptz' });
    const bodies = { [NDJSON]: `{"at":${digits}}`, [JSON_TYPE]: `[{"at":${digits}}]`, 'text/csv': `at\n${digits}` };
    for (const [type, body] of Object.entries(bodies)) {
      expect([type, tableOf(await send(schema, body, { type, options: { epochUnit } }))]).toEqual([type, [[micros]]]);
    }
  });

  it('of a name that stands twice in an object the last one counts', async () => {
    expect(tableOf(await send(SCHEMA, '{"id":1,"id":2}'))[0][0]).toBe(2n);
  });

  it('a line without end is refused in bounded memory', async () => {
    let pulled = 0;
    const line = bytesOf(`{"id":1}\n{"id":2,"name":"${'x'.repeat(10_000_000)}`);
    const body = new Uint8Array(30_000_000).fill(120);
    body.set(line);
    const cuts = Array.from({ length: 300 }, (_, i) => (i + 1) * 65_536).filter((at) => at < body.length);
    const error = await refusal(
      readRows({
        body: streamOf(body, cuts, (bytes) => {
          pulled += bytes;
        }),
        contentType: NDJSON,
        contentEncoding: null,
        schema: SCHEMA,
        options: { onError: 'skip', epochUnit: 'ms', ingestTimeField: null },
      }),
    );
    expect(error).toMatchObject({ type: 'line-too-long', detail: { line: 2 } });
    expect(pulled).toBeLessThan(LINE_BYTES_MAX + 500_000);
  });

  it('a long line below the bound is a row', async () => {
    const name = 'x'.repeat(3_000_000);
    const read = await send(SCHEMA, `{"id":1,"name":"${name}"}\n{"id":2}\n`, { cuts: [1_000_000, 2_000_000] });
    expect(tableOf(read).map(([id, text]) => [id, (text as string | null)?.length])).toEqual([
      [1n, 3_000_000],
      [2n, undefined],
    ]);
  });
});
