import { beforeEach, describe, expect, it, vi } from 'vitest';
import { createApp } from '../../src/http/app.ts';
import type { LatestFound } from '../../src/read/latest.ts';
import type { RowsFound } from '../../src/read/rows.ts';
import { tokenFor } from '../core/access/token-for.ts';
import { columnsOf, schemaOf } from '../core/columns/rows.ts';

// Refusals are logged; refusals.test.ts looks at the lines.
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

/** What is found by who reads rows. */
let given: { rows?: RowsFound; latest?: LatestFound } = {};

const ORIGIN = 'https://app.example';
const ROWS = '/v1/tables/n/t/rows';

function appWith(...origins: string[]) {
  const ports = {
    tokens: [tokenFor('right')],
    object: () => Promise.reject(new Error('not asked')) as never,
    tables: async () => ({ tables: [], unreadable: [], next: null }),
    queue: () => Promise.reject(new Error('not asked')) as never,
    latest: async () => given.latest as LatestFound,
    names: async () => [],
    rows: async () => given.rows as RowsFound,
    now: () => 0,
    sleep: async () => undefined,
  };
  return createApp(
    () => ports,
    () => origins,
  );
}

async function preflight(origins: string[], path: string, origin = ORIGIN) {
  const headers = { origin, 'access-control-request-method': 'POST' };
  return await appWith(...origins).request(path, { method: 'OPTIONS', headers });
}

const allowedOf = (response: Response) => response.headers.get('access-control-allow-origin');

describe('cors', () => {
  it('without origins nothing is allowed, and OPTIONS is a method like any other', async () => {
    const response = await preflight([], ROWS);
    expect([response.status, allowedOf(response), response.headers.get('vary')]).toEqual([401, null, null]);
  });

  it('a question of an allowed origin is answered before a token is asked for, alike at every address', async () => {
    const answers = await Promise.all(
      [ROWS, '/v1/tables/n/nobody', '/v1/nowhere', '/health'].map((path) =>
        preflight(['https://b.example', ORIGIN], path),
      ),
    );
    for (const answer of answers) {
      const { 'x-request-id': _, ...headers } = Object.fromEntries(answer.headers);
      expect([answer.status, await answer.text()]).toEqual([204, '']);
      expect(headers).toMatchObject({ 'access-control-allow-origin': ORIGIN, vary: 'Origin' });
      expect(headers['access-control-allow-methods']).toContain('PATCH');
      expect(headers['access-control-allow-headers']).toMatch(/authorization.*idempotency-key/);
    }
  });

  it('an origin that is not allowed gets no leave', async () => {
    for (const origin of ['https://evil.example', 'https://app.example.evil.example', 'http://app.example', 'null']) {
      const response = await preflight([ORIGIN], ROWS, origin);
      expect([response.status, allowedOf(response)], origin).toEqual([401, null]);
      expect(response.headers.get('vary')).toBe('Origin');
    }
  });

  it('a star allows all, and is the answer to all', async () => {
    const response = await preflight(['*'], ROWS);
    expect([response.status, allowedOf(response), response.headers.get('vary')]).toEqual([204, '*', null]);
  });

  it('answers and refusals carry the leave, and name the headers that may be read', async () => {
    for (const [authorization, status] of [
      ['Bearer right', 200],
      ['Bearer wrong', 401],
    ] as const) {
      const response = await appWith(ORIGIN).request('/v1/tables', { headers: { origin: ORIGIN, authorization } });
      expect([response.status, allowedOf(response)]).toEqual([status, ORIGIN]);
      expect(response.headers.get('access-control-expose-headers')).toContain('x-request-id');
      expect(response.headers.get('x-request-id')).not.toBeNull();
    }
    expect(allowedOf(await appWith(ORIGIN).request('/health'))).toBeNull();
  });

  it('whatever is told in headers of its own beside rows may be read', async () => {
    const facts = { version: 1, snapshot_id: '2', more: true, files_considered: 3, files_read: 2, bytes_read: 1 };
    const found = { version: 1, snapshot_id: '2', source: 'index', buffered_rows: 4 } as const;
    const rows = columnsOf(schemaOf([['n', 'long']]), [[1n]]);
    const app = appWith(ORIGIN);
    const headers = { origin: ORIGIN, authorization: 'Bearer right' };
    given = { rows: { columns: rows, facts }, latest: { columns: rows, facts: found } };
    for (const path of ['/v1/tables/n/t/rows', '/v1/tables/n/t/latest']) {
      const response = await app.request(path, { headers });
      const exposed = response.headers.get('access-control-expose-headers')?.split(', ');
      const told = [...response.headers.keys()].filter((name) => name.startsWith('x-sluice-'));
      expect(told.length).toBeGreaterThan(3);
      expect(exposed).toEqual(expect.arrayContaining(told));
    }
  });
});
