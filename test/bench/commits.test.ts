import { expect, test } from 'vitest';
import { benchCommits, commitsText } from '../../bench/commits.ts';

test('bench: a short row of commits costs what a long one does', { timeout: 30_000 }, async () => {
  const [first, last] = await benchCommits(100);
  expect([first.commit, last.commit]).toEqual([10, 100]);
  for (const cost of [first, last]) {
    expect(cost.writes).toBeLessThanOrEqual(6.3);
    expect(cost.reads).toBeLessThanOrEqual(2.3);
    expect(cost.manifests).toBeLessThanOrEqual(16);
    expect(cost.liveFiles).toBe(cost.commit);
  }
  expect(commitsText([first, last]).split('\n')).toHaveLength(3);
});
