import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { createTestHarness } from 'wrangler';

/**
 * The tests of this folder prove that the bundle generates no code only because the runtime they run in refuses it. This
 * one proves the premise, with a Worker that tries.
 */
const PROBE = `
export default {
  async fetch(request) {
    const path = new URL(request.url).pathname;
    try {
      if (path === '/function') return Response.json({ allowed: new Function('return 1')() });
      if (path === '/eval') return Response.json({ allowed: (0, eval)('1') });
      if (path === '/constructor') return Response.json({ allowed: (() => 0).constructor('return 1')() });
      return Response.json({ allowed: null });
    } catch (error) {
      return Response.json({ refused: error.name });
    }
  },
};
`;

const folder = mkdtempSync(join(tmpdir(), 'no-eval-'));
writeFileSync(join(folder, 'probe.js'), PROBE);
writeFileSync(
  join(folder, 'wrangler.toml'),
  'name = "probe"\nmain = "probe.js"\ncompatibility_date = "2026-11-09"\ncompatibility_flags = ["nodejs_compat"]\n',
);
const server = createTestHarness({ workers: [{ configPath: join(folder, 'wrangler.toml') }] });

beforeAll(async () => {
  await server.listen();
});

afterAll(async () => {
  await server.close();
  rmSync(folder, { recursive: true, force: true });
});

test('runtime: code generation is refused at request time, as in production', async () => {
  for (const path of ['/function', '/eval', '/constructor']) {
    expect(await (await server.fetch(path)).json(), path).toEqual({ refused: 'EvalError' });
  }
  expect(await (await server.fetch('/')).json()).toEqual({ allowed: null });
});
