import { cloudflareTest } from '@cloudflare/vitest-plugin';
import { defineConfig } from 'vitest/config';
import { BaseSequencer, type TestSpecification } from 'vitest/node';

/** Long files of a clean clone, which has no times of an earlier run: one that begins last keeps all others waiting. */
const LONG = [
  'workerd/table-object',
  'workerd/cost',
  'e2e/admin',
  'e2e/text-formats',
  'e2e/compact',
  'e2e/queue',
  'e2e/evolution',
  'e2e/bad-input',
  'sim/sim',
  'engine/operations',
  'engine/expire',
  'engine/conflicts',
];

/**
 * Projects overlap: those that mostly wait for a running service come first, and two workers of each go on side by side; what
 * only computes fills the cores after them. A worker is kept only for the next file of its project, so each stays together.
 */
class Overlapping extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const place = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`/test/${name}.test.ts`));
      return at < 0 ? LONG.length : at;
    };
    const sorted = (await super.sort(files)).sort((a, b) => place(a) - place(b));
    const of = (name: string) => sorted.filter(({ project }) => project.name === name);
    const [workerd, e2e] = [of('workerd'), of('e2e')];
    const rest = sorted.filter(({ project }) => project.name !== 'workerd' && project.name !== 'e2e');
    return [...workerd.slice(0, 2), ...e2e.slice(0, 2), ...workerd.slice(2), ...e2e.slice(2), ...rest];
  }
}

/**
 * Three rings: plain Node for everything pure and for the engine over memory ports; the real runtime, in one isolate,
 * where faults can be planted; and the production bundle, which refuses code generation as production does.
 */
export default defineConfig({
  test: {
    // More than cores: tests on a running service mostly wait for it.
    maxWorkers: 4,
    sequence: { sequencer: Overlapping },
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
        // Files share runtimes: one that starts has the whole source sent to it again.
        test: { name: 'workerd', isolate: false, include: ['test/workerd/**/*.test.ts'], testTimeout: 30_000 },
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
