import { describe, expect, test } from 'vitest';
import { backoffMs } from '../../../src/core/commit/backoff.ts';
import { classify, isFresh, type Look, type WriteAnswer, type WriteOutcome } from '../../../src/core/commit/outcome.ts';

describe('outcome: answer of the write × look at the newest version', () => {
  const table: [WriteAnswer, Look, WriteOutcome][] = [
    ['created', 'own', 'committed'],
    ['created', 'other', 'fenced'],
    ['created', 'missing', 'fenced'],
    ['created', 'unreadable', 'unknown'],
    ['exists', 'own', 'committed'],
    ['exists', 'other', 'lost'],
    ['exists', 'missing', 'lost'],
    ['exists', 'unreadable', 'unknown'],
    ['error', 'own', 'committed'],
    ['error', 'other', 'lost'],
    ['error', 'missing', 'unknown'],
    ['error', 'unreadable', 'unknown'],
  ];
  for (const [answer, look, outcome] of table) {
    test(`outcome: ${answer}, look shows ${look} → ${outcome}`, () => expect(classify(answer, look)).toBe(outcome));
  }

  test('fence: created is believed only for so long after the confirmation, and never when the clock went back', () => {
    expect(isFresh(1000, 1000, 5000)).toBe(true);
    expect(isFresh(1000, 6000, 5000)).toBe(true);
    expect(isFresh(1000, 6001, 5000)).toBe(false);
    expect(isFresh(1000, 999, 5000)).toBe(false);
  });
});

describe('backoff', () => {
  test('backoff: grows, is capped, and is spread over the whole of it', () => {
    const bounds = { baseMs: 50, capMs: 2000 };
    const top = 2 ** 32 - 1;
    expect([1, 2, 3, 6, 7, 40].map((attempt) => backoffMs(attempt, top, bounds))).toEqual([
      49, 99, 199, 1599, 1999, 1999,
    ]);
    expect(backoffMs(5, 0, bounds)).toBe(0);
    expect(backoffMs(1, 2 ** 31, bounds)).toBe(25);
  });
});
