import { expect, test } from 'vitest';
import { ROWS_READ_BYTES_MAX, ROWS_READ_FILES_MAX } from '../../src/core/base/read-limits.ts';
import { ReadBudget } from '../../src/read/budget.ts';

test('budget: bytes and files up to their bounds, and a refusal that says what to ask instead', () => {
  const budget = new ReadBudget();
  budget.spend(ROWS_READ_BYTES_MAX);
  for (let i = 0; i < ROWS_READ_FILES_MAX; i++) budget.open();
  expect(budget).toMatchObject({ bytes: ROWS_READ_BYTES_MAX, files: ROWS_READ_FILES_MAX });
  const refused = (message: string) =>
    expect.objectContaining({
      kind: 'rejected',
      type: 'too-much-to-read',
      message: `${message} would have to be read: ask for a shorter time range, a series, or fewer columns`,
    });
  expect(() => budget.spend(1)).toThrow(refused('more than 128 MiB of files'));
  expect(() => budget.open()).toThrow(refused('more than 1000 data files'));
});
