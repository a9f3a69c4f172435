import { expect, test } from 'vitest';
import { KEPT_DUE_SLACK_MS } from '../../../src/core/base/limits.ts';
import { isDueToKeep } from '../../../src/core/maintain/kept-due.ts';

const NOW = 1_000_000_000;
const HOUR = 3_600_000;

test('a due time is written when the kept one is missing, much too late, or past; not for every step of it', () => {
  expect(isDueToKeep(null, null, NOW)).toBe(false);
  expect(isDueToKeep(null, NOW + HOUR, NOW)).toBe(true);
  expect(isDueToKeep(NOW + HOUR, NOW + HOUR - KEPT_DUE_SLACK_MS - 1, NOW)).toBe(true);
  expect(isDueToKeep(NOW + HOUR, NOW + HOUR - KEPT_DUE_SLACK_MS, NOW)).toBe(false);
  // Too early is put right when its time has come.
  expect(isDueToKeep(NOW + 1, NOW + HOUR, NOW)).toBe(false);
  expect(isDueToKeep(NOW + 1, null, NOW)).toBe(false);
  expect(isDueToKeep(NOW, NOW + HOUR, NOW)).toBe(true);
  expect(isDueToKeep(NOW, null, NOW)).toBe(true);
  // Both past: it is being done.
  expect(isDueToKeep(NOW - 5, NOW - 1, NOW)).toBe(false);
});
