import { beforeEach, describe, expect, it, vi } from 'vitest';
import { type AppPorts, createApp } from '../../src/http/app.ts';
import { OPERATIONS } from '../../src/http/openapi/document.ts';
import { tokenFor } from '../core/access/token-for.ts';

beforeEach(() => {
  for (const method of ['log', 'error'] as const) vi.spyOn(console, method).mockImplementation(() => undefined);
});

/** Whoever is asked is told of: a request that is refused reaches nobody. */
function portsOf(reached: string[], tokens: AppPorts['tokens'] = null): AppPorts {
  const reach = (name: string) => (): never => {
    reached.push(name);
    throw new Error('reached');
  };
  const methods = { get: (_: object, name: string) => (name === 'refused' ? async () => undefined : reach(name)) };
  return {
    tokens,
    object: () => new Proxy({}, methods) as ReturnType<AppPorts['object']>,
    tables: reach('tables'),
    latest: reach('latest'),
    names: reach('names'),
    rows: reach('rows'),
    queue: reach('queue'),
    now: () => 0,
    sleep: async () => undefined,
  };
}

const routes = Object.entries(OPERATIONS).filter(([name]) => name.includes(' /v1/'));
const addressOf = (path: string) => path.replace(/\{([a-z]+)\}/g, 'x');

describe('query parameters', () => {
  it('one that the address does not have is refused before anything is asked, whichever the address', async () => {
    expect(routes.length).toBeGreaterThan(30);
    for (const [name, operation] of routes) {
      const [method, path] = name.split(' ');
      const reached: string[] = [];
      const app = createApp(() => portsOf(reached));
      const response = await app.request(`${addressOf(path)}?dryrun=true`, { method });
      if (operation.columns === true) continue;
      const own = (operation.parameters ?? []).filter((parameter) => parameter.in === 'query');
      expect([response.status, await response.json(), reached], name).toMatchObject([
        400,
        {
          type: 'urn:sluice:problem:malformed',
          parameter: 'dryrun',
          expected: own.map((parameter) => parameter.name),
        },
        [],
      ]);
    }
  });

  it('the answer names it, and those that there are', async () => {
    const app = createApp(() => portsOf([]));
    const detail = async (path: string) =>
      ((await (await app.request(path, { method: 'POST' })).json()) as { detail: string }).detail;
    expect(await detail('/v1/tables/n/t/rows?on_eror=skip')).toBe(
      'parameter is not one of on_error, delimiter, app, epoch, epochs, branch: on_eror',
    );
    expect(await detail('/v1/tables/n/t/delete?dry_run=true')).toBe('address takes no parameters: dry_run');
  });

  it('the address of other clients, and those where parameters name columns, take any', async () => {
    for (const path of ['/v1/tables/n/t/rows?v=1', '/v1/tables/n/t/latest?v=1']) {
      const reached: string[] = [];
      await createApp(() => portsOf(reached)).request(path);
      expect(reached, path).toHaveLength(1);
    }
    const written = await createApp(() => portsOf([])).request('/api/v2/write?bucket=&orgID=1', { method: 'POST' });
    expect(((await written.json()) as { detail: string }).detail).toMatch(/^bucket is missing/);
  });

  it('who may not ask is told no more than that', async () => {
    const tokens = [tokenFor('secret', { name: 'reader', scopes: ['read'], tables: ['*'] })];
    const app = createApp(() => portsOf([], tokens));
    const headers = { authorization: 'Bearer secret' };
    const response = await app.request('/v1/tables/n/t/flush?dryrun=true', { method: 'POST', headers });
    expect(response.status).toBe(403);
  });
});
