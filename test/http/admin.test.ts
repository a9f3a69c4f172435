import { beforeEach, describe, expect, test, vi } from 'vitest';
import { DEFINITION_BYTES_MAX } from '../../src/core/base/limits.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import { bytesOf, streamOf } from './bodies.ts';

// Refusals are logged; refusals.test.ts looks at the lines.
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
  asked.length = 0;
});

/** Methods of the object that were called, with what they were called with. */
const asked: unknown[][] = [];

const object = new Proxy({} as TableCalls, {
  get:
    (_, method: string) =>
    async (...given: unknown[]) => {
      if (method !== 'refused') asked.push([method, ...given]);
      return { ok: true, value: {} };
    },
});

const ports = {
  tokens: null,
  object: () => object,
  now: () => 0,
  sleep: async () => undefined,
} as unknown as AppPorts;

const call = (method: string, path: string, body?: string | ReadableStream) =>
  createApp(() => ports).request(`/v1/tables/n/t${path}`, { method, body, duplex: 'half' } as RequestInit);

async function slugOf(response: Response): Promise<string> {
  return ((await response.json()) as { type: string }).type.replace('urn:sluice:problem:', '');
}

describe('a dry run', () => {
  test.each([
    ['?dry_run=true', undefined, true],
    ['?dry_run=true', '{"dry_run": false}', true],
    ['', '{"dry_run": true}', true],
    ['?dry_run=false', undefined, false],
    ['', undefined, false],
  ])('expiry: %s %s', async (query, body, isDry) => {
    expect((await call('POST', `/expire${query}`, body)).status).toBe(200);
    expect(asked).toEqual([['expire', isDry]]);
  });

  test.each([
    ['POST', '/expire?dry_run=yes', undefined],
    ['POST', '/maintain?dry_run=', undefined],
    ['POST', '/delete?dry_run=true', '{"filter": {"all": true}}'],
    ['POST', '/overwrite?dry_run=true&filter={"all":true}', '{}'],
    ['POST', '/rewrite-manifests?dry_run=true', undefined],
    ['POST', '/rollback?dry_run=true', '{"snapshot_id": "1"}'],
    ['DELETE', '?dry_run=true', undefined],
  ])('what has none refuses it, and does nothing: %s %s', async (method, path, body) => {
    const response = await call(method, path, body);
    expect([response.status, await slugOf(response)]).toEqual([400, 'malformed']);
    expect(asked).toEqual([]);
  });
});

describe('a body of JSON', () => {
  test('one that is too large is not read to its end, whatever it says of its length', async () => {
    let pulled = 0;
    const piece = 64 * 1024;
    const length = 8 * DEFINITION_BYTES_MAX;
    const cuts = Array.from({ length: length / piece }, (_, i) => i * piece);
    const body = streamOf(bytesOf(' '.repeat(length)), cuts, (bytes) => {
      pulled += bytes;
    });
    const response = await call('PATCH', '/properties', body);
    expect([response.status, await slugOf(response)]).toEqual([413, 'body-too-large']);
    expect(pulled).toBeLessThan(2 * DEFINITION_BYTES_MAX);
  });

  test('bytes count, not characters; the bound itself is taken', async () => {
    const text = `{"set": {"a": "${'é'.repeat(DEFINITION_BYTES_MAX / 2)}"}}`;
    expect(await slugOf(await call('PATCH', '/properties', streamOf(bytesOf(text))))).toBe('body-too-large');
    const fits = '{"set": {"a": "b"}}'.padEnd(DEFINITION_BYTES_MAX);
    expect((await call('PATCH', '/properties', streamOf(bytesOf(fits)))).status).toBe(200);
    expect(asked).toEqual([['changeProperties', { a: 'b' }, []]]);
  });

  test('bytes that are no UTF-8 are refused, and a byte order mark is left out', async () => {
    const broken = new ReadableStream({
      start(controller) {
        controller.enqueue(new Uint8Array([...bytesOf('{"set": {"a": "'), 0xff, ...bytesOf('"}}')]));
        controller.close();
      },
    });
    expect(await slugOf(await call('PATCH', '/properties', broken))).toBe('malformed-utf8');
    expect((await call('PATCH', '/properties', '\uFEFF{"set": {"a": "b"}}')).status).toBe(200);
  });
});
