import { describe, expect, it } from 'vitest';
import { LINE_BYTES_MAX } from '../../../src/core/base/limits.ts';
import { errorsOf, JSON_TYPE, refusal, SCHEMA, send, THREE, THREE_ROWS, tableOf } from '../bodies.ts';

describe('JSON arrays and objects', () => {
  const array = (body: string, options = {}) => send(SCHEMA, body, { type: JSON_TYPE, options });
  const asArray = (text: string) => `[${text.trimEnd().replaceAll('\n', ',')}]`;

  it('elements are rows, however they are laid out', async () => {
    for (const body of [
      asArray(THREE),
      `\ufeff \n[\n${THREE.trimEnd().replaceAll('\n', '\n , \n')}\n]\n`,
      JSON.stringify(JSON.parse(asArray(THREE)), null, 2),
    ]) {
      expect(tableOf(await array(body))).toEqual(THREE_ROWS);
    }
  });

  it('zero rows are zero rows', async () => {
    for (const body of ['[]', ' [ ] ', '[\n]\n']) {
      expect(await array(body)).toMatchObject({ rowsRead: 0, errorCount: 0, columns: { rows: 0 } });
    }
  });

  it('a single object is one row', async () => {
    expect(tableOf(await array(' {"id":7,\n"name":"x"} \n'))).toEqual([[7n, 'x', null, null]]);
  });

  it('B062: anything behind the value is refused', async () => {
    for (const body of [
      '{"id":1}{"id":2}',
      THREE,
      '[{"id":1}] x',
      '[{"id":1}][{"id":2}]',
      '[{"id":1}]]',
      '{"id":1}]',
    ]) {
      expect(await refusal(array(body))).toMatchObject({ kind: 'invalid', type: 'trailing-data' });
    }
    expect((await refusal(array(THREE))).message).toContain('application/x-ndjson');
  });

  it('B068: an array that is cut is refused whole, wherever it is cut', async () => {
    const whole = '[{"id":1,"name":"]"},{"id":2}]';
    for (let length = 1; length < whole.length; length++) {
      for (const onError of ['refuse', 'skip']) {
        const { kind, type } = await refusal(array(whole.slice(0, length), { onError }));
        expect([kind, type === 'truncated-body' || type === 'malformed-body']).toEqual(['invalid', true]);
      }
    }
    expect(await refusal(array('[{"id":1},{"id":2},'))).toMatchObject({
      type: 'truncated-body',
      detail: { elements: 2 },
    });
  });

  it.each([
    '[{"id":1},]',
    '[,{"id":1}]',
    '[{"id":1} {"id":2}]',
    '[{"id":1},,{"id":2}]',
    '[}',
    '[{"id":1]',
    '[{"id":1}}',
    '[{id:1}]',
    '[nul]',
    'x',
    '"x"',
    '5',
  ])('malformed: %s', async (body) => {
    for (const windowBytes of [undefined, 1]) {
      const { kind, type } = await refusal(array(body, { windowBytes }));
      expect([kind, type]).toEqual(['invalid', 'malformed-body']);
    }
  });

  it('a malformed element is named with its place', async () => {
    const error = await refusal(array('[{"id":1},{"id":2},{"id":x}]'));
    expect(error.message).toContain('element 3 at byte 20 of the body is not JSON');
  });

  it('rows that do not fit are reported by element', async () => {
    expect(await errorsOf(array('[{"id":1},{"id":"x"},5,{"id":null}]'))).toEqual([
      { line: 2, field: 'id', type: 'wrong-type' },
      { line: 3, field: null, type: 'not-an-object' },
      { line: 4, field: 'id', type: 'null-in-required' },
    ]);
  });

  it('an element without end, and one object without end, are refused', async () => {
    const long = 'x'.repeat(LINE_BYTES_MAX + 300_000);
    expect(await refusal(array(`[{"id":1},{"id":2,"name":"${long}`))).toMatchObject({
      type: 'line-too-long',
      detail: { line: 2 },
    });
    expect(await refusal(array(`{"id":2,"name":"${long}"}`))).toMatchObject({ type: 'line-too-long' });
  });

  it('nesting without end is refused and does not exhaust the stack', async () => {
    const deep = '['.repeat(100_000);
    expect(await refusal(array(deep))).toMatchObject({ kind: 'invalid' });
    expect(await errorsOf(array(`[{"id":1,"name":${deep}${']'.repeat(100_000)}}]`))).toEqual([
      { line: 1, field: 'name', type: 'wrong-type' },
    ]);
    expect(await errorsOf(array(`[{"id":9007199254740993,"name":${deep}${']'.repeat(100_000)}}]`))).toEqual([
      { line: 1, field: 'name', type: 'wrong-type' },
    ]);
  });
});
