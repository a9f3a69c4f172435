import { beforeEach, describe, expect, it, vi } from 'vitest';
import { SCOPES, type Scope } from '../../src/core/access/grant.ts';
import { invalid } from '../../src/core/base/errors.ts';
import { type AppPorts, createApp, type TableCalls } from '../../src/http/app.ts';
import { tokenFor } from '../core/access/token-for.ts';

// Refusals are logged; refusals.test.ts looks at the lines.
beforeEach(() => {
  vi.spyOn(console, 'log').mockImplementation(() => undefined);
});

/** Who is let through to which route: every registered one, so that none can be added without a scope. */

/** Routes that ask for no token. */
const OPEN = new Set(['GET /health', 'GET /ping', 'GET /openapi.json']);

/** Routes that only look, and take a body for that. */
const LOOKS = new Set(['POST /v1/infer']);

/** Routes that put rows in; all other changes are the administrators'. */
const APPENDS = new Set([
  'POST /api/v2/write',
  'POST /v1/tables/:namespace/:table/rows',
  'POST /v1/tables/:namespace/:table/enqueue',
  'POST /v1/tables/:namespace/:table/flush',
]);

const nowMs = 1_900_000_000_000;

/** Ports that count what is asked of them; each object knows of no table. */
function portsOf(tokens: AppPorts['tokens']) {
  const asked: string[] = [];
  const problem = { kind: 'invalid', type: 'unknown-table', message: 'table does not exist', detail: {} };
  const ports: AppPorts = {
    tokens,
    object(namespace, table) {
      asked.push(`${namespace}/${table}`);
      const answers: Record<string, unknown> = { metrics: null, refused: undefined };
      const answer = (method: string) => (method in answers ? answers[method] : { ok: false, problem });
      return new Proxy({} as TableCalls, { get: (_, method) => async () => answer(String(method)) });
    },
    async latest(namespace, table) {
      asked.push(`${namespace}/${table}`);
      throw invalid('unknown-table', 'table does not exist');
    },
    async tables() {
      asked.push('lake');
      return { tables: [], unreadable: [], next: null };
    },
    queue: () => ({ allows: () => true, send: async () => ({ missed: 0, reason: null }) }),
    async rows(namespace, table) {
      asked.push(`${namespace}/${table}`);
      throw invalid('unknown-table', 'table does not exist');
    },
    async names() {
      asked.push('lake');
      return [];
    },
    now: () => nowMs,
    sleep: async () => undefined,
  };
  return { ports, asked };
}

interface Route {
  name: string;
  method: string;
  path: string;
  scopes: (Scope | undefined)[];
}

/** What is registered, each with the scopes that its handlers declare. */
function routes(): Route[] {
  const found = new Map<string, Route>();
  for (const { method, path, handler } of createApp(() => portsOf(null).ports).routes) {
    if (method === 'ALL') continue;
    const name = `${method} ${path}`;
    const route = found.get(name) ?? { name, method, path, scopes: [] };
    const { scope } = handler as { scope?: Scope };
    if (scope !== undefined) route.scopes.push(scope);
    found.set(name, route);
  }
  return [...found.values()];
}

const guarded = routes().filter(({ name }) => !OPEN.has(name));

/** An address of the route, about table `n/t`. */
function addressOf(path: string): string {
  const address = path
    .replace(':namespace', 'n')
    .replace(':table', 't')
    .replaceAll(/:[a-z]+/g, 'x');
  return address === '/api/v2/write' ? `${address}?bucket=n` : address;
}

/** Of the request under way. One service for all: its routes are put in order at the first request. */
let ports: AppPorts = portsOf(null).ports;
const app = createApp(() => ports);

async function send(route: Route, grant: Parameters<typeof tokenFor>[1] | null, token = 'right') {
  const made = portsOf([tokenFor('other'), ...(grant === null ? [] : [tokenFor('right', grant)])]);
  ports = made.ports;
  const body = route.method === 'GET' ? null : route.path === '/api/v2/write' ? 't v=1 1' : '{}';
  const response = await app.request(addressOf(route.path), {
    method: route.method,
    body,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
  });
  return { status: response.status, text: await response.text(), headers: response.headers, asked: made.asked };
}

describe('access: routes', () => {
  it('every route declares one scope, or is one of the open ones', () => {
    expect(guarded.length).toBeGreaterThan(20);
    const wrong = guarded.filter(({ scopes }) => scopes.length !== 1);
    expect(wrong.map(({ name }) => name)).toEqual([]);
    const open = routes().filter(({ scopes }) => scopes.length === 0);
    expect(open.map(({ name }) => name).sort()).toEqual([...OPEN].sort());
  });

  it('what only looks is read, what puts rows in is append, all else is admin', () => {
    for (const { name, method, scopes } of guarded) {
      expect(scopes, name).toEqual([
        method === 'GET' || LOOKS.has(name) ? 'read' : APPENDS.has(name) ? 'append' : 'admin',
      ]);
    }
  });

  for (const route of guarded) {
    it(`${route.name}: who has the scope on the table is let through, and nobody else`, async () => {
      const [needed] = route.scopes;
      const refusals = new Set<string>();
      for (const scope of SCOPES) {
        for (const pattern of ['n/t', 'n/*', '*', 'n/other', 'other/*', 'n/t2']) {
          const isOfTable = route.path.includes(':table') || route.path === '/api/v2/write';
          const covers = !isOfTable || ['n/t', 'n/*', '*'].includes(pattern);
          const isLet = covers && (scope === needed || scope === 'admin');
          const { status, text, headers, asked } = await send(route, { scopes: [scope], tables: [pattern] });
          expect([401, 403].includes(status), `${scope} on ${pattern}: ${text.slice(0, 300)}`).toBe(!isLet);
          if (isLet) continue;
          expect(status).toBe(403);
          expect(headers.get('www-authenticate')).toContain('insufficient_scope');
          expect(asked, 'no object is asked').toEqual([]);
          refusals.add(text);
        }
      }
      expect(refusals.size, 'one refusal, whatever is there').toBe(1);
      for (const [grant, token] of [
        [{}, 'wrong'],
        [null, 'right'],
        [{ expiresMs: nowMs }, 'right'],
      ] as const) {
        const { status, text, asked } = await send(route, grant, token);
        expect({ status, asked }).toEqual({ status: 401, asked: [] });
        refusals.add(text);
      }
      expect(refusals.size).toBe(2);
    });
  }

  it('the ports of a route reach no table that the caller may not, whatever the route asks', async () => {
    const { ports } = portsOf([tokenFor('right', { scopes: ['read'], tables: ['n/t'] })]);
    const app = createApp(() => ports);
    const reached: string[] = [];
    const { needs } = await import('../../src/http/auth.ts');
    app.get('/v1/anything', needs('read'), (context) => {
      for (const table of ['t', 'other']) {
        try {
          context.var.ports.object('n', table);
          reached.push(table);
        } catch {
          // Refused.
        }
      }
      return context.body(null, 204);
    });
    expect((await app.request('/v1/anything', { headers: { authorization: 'Bearer right' } })).status).toBe(204);
    expect(reached).toEqual(['t']);
  });

  it('a route that declares nothing reaches nothing', async () => {
    const app = createApp(() => portsOf(null).ports);
    app.get('/v1/anything', (context) => context.json(context.var.ports.now()));
    expect((await app.request('/v1/anything')).status).toBe(500);
  });
});
