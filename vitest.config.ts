import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

/**
 * Three rings: plain Node for everything pure and for the engine over memory ports; the real runtime, in one isolate,
 * where faults can be planted; and the production bundle, which refuses code generation as production does.
 */
export default defineConfig({
  test: {
    // More than cores: tests on a running service mostly wait for it.
    maxWorkers: 3,
    projects: [
      {
        test: {
          name: 'unit',
          include: ['test/**/*.test.ts'],
          exclude: ['test/workerd/**', 'test/e2e/**', 'test/interop/**'],
        },
      },
      {
        plugins: [
          cloudflareTest({ wrangler: { configPath: './wrangler.toml' }, miniflare: { bindings: { ACCESS: 'local' } } }),
        ],
        test: { name: 'workerd', include: ['test/workerd/**/*.test.ts'] },
      },
      {
        test: { name: 'e2e', include: ['test/e2e/**/*.test.ts'], testTimeout: 60_000, hookTimeout: 60_000 },
      },
    ],
  },
});
