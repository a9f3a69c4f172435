import { describe, expect, test } from 'vitest';
import { runSeed } from '../sim/run.ts';
import { expectReached, SITUATIONS } from '../sim/situations.ts';

/** Seeds beside the few of the test run, which stops where the marks of a situation are hit. */
const SEEDS = Array.from({ length: 20 }, (_, i) => 1_001 + i);

describe('simulation: more seeds', () => {
  test('simulation: no invariant is broken', async () => {
    for (const seed of SEEDS) expect((await runSeed(seed)).violations, `seed ${seed}`).toEqual([]);
  });

  for (const situation of SITUATIONS) {
    test(`simulation: ${situation.name}, all its seeds`, () => expectReached(situation, true));
  }
});
