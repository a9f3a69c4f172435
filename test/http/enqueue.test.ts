import { describe, expect, it } from 'vitest';
import {
  BATCH_ID_LENGTH_MAX,
  ENQUEUE_BODY_BYTES_MAX,
  ENQUEUE_MESSAGE_BYTES,
  FLUSH_ROWS_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  ROW_ERRORS_REPORTED_MAX,
} from '../../src/core/base/limits.ts';
import type { RowsMessage } from '../../src/core/batch/message.ts';
import { type AppPorts, createApp } from '../../src/http/app.ts';
import { bytesOf, gzip, streamOf } from './bodies.ts';

/** A service whose queue keeps what it is sent; asking for a table's object is an error. */
class Service {
  readonly sent: { message: RowsMessage; bytes: number }[] = [];
  missed = 0;
  readonly #app = createApp((): AppPorts => {
    const notAsked = () => {
      throw new Error('not asked');
    };
    const queue = () => ({
      allows: (namespace: string) => namespace !== 'closed',
      send: async (messages: readonly { message: RowsMessage; bytes: number }[]) => {
        this.sent.push(...messages);
        return { missed: this.missed, reason: this.missed === 0 ? null : new Error('overloaded') };
      },
    });
    return {
      tokens: null,
      object: notAsked,
      tables: notAsked,
      latest: notAsked,
      names: notAsked,
      rows: notAsked,
      queue,
      now: () => 0,
      sleep: async () => undefined,
    };
  });

  async post(
    body: string | Uint8Array,
    { path = 'a/t/enqueue', type = 'application/x-ndjson', headers = {} as Record<string, string> } = {},
  ) {
    const init = {
      method: 'POST',
      headers: { 'content-type': type, ...headers },
      body: streamOf(typeof body === 'string' ? bytesOf(body) : body),
      duplex: 'half',
    };
    const response = await this.#app.request(`/v1/tables/${path}`, init as RequestInit, {});
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Record<string, unknown>,
    };
  }
}

const key = { 'idempotency-key': 'k' };

describe('rows into the queue', () => {
  it('are answered with their messages and batch ids', async () => {
    const service = new Service();
    const answer = await service.post('{"a":1}\n\n  {"a":2} \r\n', { headers: key });
    expect(answer).toMatchObject({
      status: 202,
      body: { state: 'queued', rows: 2, messages: 1, batch_ids: ['k/0'] },
    });
    expect(service.sent.map(({ message }) => message)).toEqual([
      { table: 'a/t', batch_id: 'k/0', ndjson: '{"a":1}\n{"a":2}' },
    ]);
  });

  it('keep every digit and every character, also out of an array over several lines', async () => {
    const service = new Service();
    const rows = [
      '{"a":9007199254740993,"b":0.10000000000000000001}',
      '{"a":-0,"b":"\\u00fc\\n ü😀","c":[1,{"d":null}]}',
    ];
    await service.post(rows.join('\n'));
    await service.post(` [ ${rows.join(' ,\n')}\n] `, { type: 'application/json' });
    await service.post('{\n  "a":\n  1\r\n}', { type: 'application/json; charset=utf-8' });
    await service.post(gzip(rows.join('\n')), { headers: { 'content-encoding': 'gzip' } });
    expect(service.sent.map(({ message }) => message.ndjson)).toEqual([
      rows.join('\n'),
      rows.join('\n'),
      '{   "a":   1  }',
      rows.join('\n'),
    ]);
  });

  it('the same request is the same messages, and one without a key gets one', async () => {
    const service = new Service();
    const body = Array.from({ length: 5000 }, (_, n) => JSON.stringify({ n, text: 'ü'.repeat(n % 50) })).join('\n');
    await service.post(body, { headers: key });
    const first = service.sent.splice(0);
    await service.post(body, { headers: key });
    expect(first.length).toBeGreaterThan(2);
    expect(service.sent).toEqual(first);
    expect(first.map(({ message }) => message.ndjson).join('\n')).toBe(body);
    for (const { bytes } of first) expect(bytes).toBeLessThanOrEqual(ENQUEUE_MESSAGE_BYTES);
    const ids = [await service.post('{}'), await service.post('{}')].map(
      ({ body }) => (body['batch_ids'] as string[])[0],
    );
    expect(ids[0]).toMatch(/^[0-9a-f-]{36}\/0$/);
    expect(ids[1]).not.toBe(ids[0]);
  });

  it('a batch without rows is no message', async () => {
    const service = new Service();
    expect(await service.post('[]', { type: 'application/json' })).toMatchObject({
      status: 200,
      body: { state: 'empty', rows: 0 },
    });
    expect(service.sent).toEqual([]);
  });

  it('a queue that does not take all of them: the answer tells the key that makes it safe to send again', async () => {
    const service = new Service();
    service.missed = 1;
    const answer = await service.post('{}');
    expect(answer.status).toBe(503);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(answer.body).toMatchObject({ type: 'urn:sluice:problem:queue-unavailable', messages: 1, missed: 1 });
    const again = await service.post('{}', { headers: { 'idempotency-key': String(answer.body['idempotency_key']) } });
    expect(again.body['idempotency_key']).toBe(answer.body['idempotency_key']);
    expect(service.sent[1]).toEqual(service.sent[0]);
  });
});

describe('refused before anything is sent', () => {
  it.each([
    ['a table that takes no messages', '{}', { path: 'closed/t/enqueue' }, 403, 'table-not-queued'],
    ['a name that is none', '{}', { path: 'a.b/t/enqueue' }, 400, 'bad-name'],
    ['an empty body', ' \n', {}, 400, 'empty-body'],
    ['another format', 'a,b\n1,2', { type: 'text/csv' }, 415, 'unsupported-media-type'],
    ['no format', '{}', { type: 'text/plain' }, 415, 'unsupported-media-type'],
    ['an array cut short', '[{"a":1},', { type: 'application/json' }, 400, 'truncated-body'],
    ['more than one value', '{"a":1}{"a":2}', { type: 'application/json' }, 400, 'trailing-data'],
    ['an encoding that is not there', '{}', { headers: { 'content-encoding': 'gzip' } }, 400, 'malformed-gzip'],
    ['an epoch', '{}', { path: 'a/t/enqueue?app=x&epoch=1' }, 400, 'malformed'],
    ['a branch', '{}', { path: 'a/t/enqueue?branch=b' }, 400, 'malformed'],
    ['rows to be left out', '{}', { path: 'a/t/enqueue?on_error=skip' }, 400, 'malformed'],
    ['a key that is none', '{}', { headers: { 'idempotency-key': 'ü' } }, 400, 'malformed'],
    [
      'a key that leaves no room for numbers',
      '{}',
      { headers: { 'idempotency-key': 'k'.repeat(BATCH_ID_LENGTH_MAX - 6) } },
      400,
      'malformed',
    ],
    ['too many rows', '{}\n'.repeat(FLUSH_ROWS_MAX + 1), {}, 413, 'too-many-rows'],
    ['too large a body', ' '.repeat(ENQUEUE_BODY_BYTES_MAX + 1), {}, 413, 'body-too-large'],
  ])('%s', async (_, body, options, status, slug) => {
    const service = new Service();
    expect(await service.post(body, options)).toMatchObject({ status, body: { type: `urn:sluice:problem:${slug}` } });
    expect(service.sent).toEqual([]);
  });

  it('lines that are no objects, each named', async () => {
    const service = new Service();
    const answer = await service.post('{"a":1}\n[1]\n\n7\n{"a":\nnull\n{"a":1} x\n{"a":"\xff"}'.replace('ÿ', 'y'));
    expect(answer).toMatchObject({
      status: 422,
      body: {
        type: 'urn:sluice:problem:invalid-rows',
        error_count: 5,
        complete: true,
        errors: [
          { line: 2, type: 'not-an-object', field: null, value: 'a list of 1' },
          { line: 4, type: 'not-an-object' },
          { line: 5, type: 'malformed-json' },
          { line: 6, type: 'not-an-object' },
          { line: 7, type: 'trailing-data' },
        ],
      },
    });
    const bytes = new Uint8Array([...new TextEncoder().encode('{}\n{"a":"'), 0xff, ...new TextEncoder().encode('"}')]);
    expect((await service.post(bytes)).body['errors']).toMatchObject([{ line: 2, type: 'malformed-utf8' }]);
    const many = await service.post('7\n'.repeat(ROW_ERRORS_REPORTED_MAX + 1));
    expect(many.body).toMatchObject({ error_count: ROW_ERRORS_REPORTED_MAX + 1, complete: false });
    expect(service.sent).toEqual([]);
  });

  it('a row that is larger than a message, with its line', async () => {
    const service = new Service();
    const answer = await service.post(`{}\n{"a":"${'x'.repeat(QUEUE_MESSAGE_BYTES_MAX)}"}`);
    expect(answer).toMatchObject({
      status: 413,
      body: { type: 'urn:sluice:problem:line-too-long', line: 2, bytes_max: ENQUEUE_MESSAGE_BYTES },
    });
    expect(service.sent).toEqual([]);
  });
});
