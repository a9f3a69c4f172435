import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';

/**
 * Three rings: plain Node for everything pure and for the engine over memory ports; the real runtime, in one isolate,
 * where faults can be planted; and the production bundle, which refuses code generation as production does.
 */
export default defineConfig({
  test: {
    // More than cores: tests on a running service mostly wait for it.
    maxWorkers: 4,
    projects: [
      {
        test: {
          name: 'unit',
          // No test is about time: a busy machine takes longer, and what hangs is found all the same.
          testTimeout: 30_000,
          // Files share workers: starting one takes longer than most files, and none leaves anything behind.
          isolate: false,
          include: ['test/**/*.test.ts'],
          exclude: ['test/workerd/**', 'test/e2e/**', 'test/interop/**', 'test/load/**'],
        },
      },
      {
        plugins: [
          cloudflareTest({ wrangler: { configPath: './wrangler.toml' }, miniflare: { bindings: { ACCESS: 'local' } } }),
        ],
        test: { name: 'workerd', include: ['test/workerd/**/*.test.ts'] },
      },
      {
        // A minute each, and the machine to themselves: apart from `npm test`.
        test: { name: 'load', include: ['test/load/**/*.test.ts'], testTimeout: 240_000, hookTimeout: 60_000 },
      },
      {
        // Files share workers and, most of them, a running service: starting either takes longer than most files.
        test: {
          name: 'e2e',
          isolate: false,
          globalSetup: 'test/e2e/support/shared-services.ts',
          include: ['test/e2e/**/*.test.ts'],
          testTimeout: 60_000,
          hookTimeout: 60_000,
        },
      },
    ],
  },
});
