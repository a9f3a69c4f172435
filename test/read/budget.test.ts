import { expect, test } from 'vitest';
import {
  ROWS_READ_BYTES_MAX,
  ROWS_READ_FILES_MAX,
  ROWS_READ_REQUESTS_MAX,
  ROWS_WORK_BYTES_MAX,
} from '../../src/core/base/read-limits.ts';
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
  const scattered = new ReadBudget();
  for (let i = 0; i < ROWS_READ_REQUESTS_MAX; i++) scattered.spend(1);
  expect(() => scattered.spend(1)).toThrow(refused('more than 5000 parts of files'));
});

test('budget: work waits until there is room for its memory; what needs more than all of it goes alone', async () => {
  const budget = new ReadBudget();
  const log: string[] = [];
  const ends = new Map<string, () => void>();
  const start = (name: string, bytes: number) =>
    budget.holding(bytes, async () => {
      log.push(name);
      await new Promise<void>((end) => ends.set(name, end));
    });
  const settled = () => new Promise((resolve) => setImmediate(resolve));
  const half = ROWS_WORK_BYTES_MAX / 2;
  const works = [start('a', half), start('b', half), start('c', 1), start('large', 3 * half)];
  await settled();
  expect(log).toEqual(['a', 'b']);
  ends.get('a')?.();
  await settled();
  expect(log).toEqual(['a', 'b', 'c']);
  ends.get('b')?.();
  await settled();
  expect(log).toEqual(['a', 'b', 'c']);
  ends.get('c')?.();
  await settled();
  expect(log).toEqual(['a', 'b', 'c', 'large']);
  ends.get('large')?.();
  await Promise.all(works);
  await expect(budget.holding(1, () => Promise.reject(new Error('broken')))).rejects.toThrow('broken');
  await budget.holding(2 * half, async () => undefined);
});
