import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { MUTANTS } from '../../scripts/mutants-list.ts';

const ROOT = join(import.meta.dirname, '../..');

test('mutants: each fault that is to be planted finds its place once', () => {
  const lost = MUTANTS.flatMap(({ name, changes }) =>
    changes
      .filter(({ file, from }) => readFileSync(join(ROOT, file), 'utf8').split(from).length !== 2)
      .map(({ file }) => `${name}: ${file}`),
  );
  expect(lost).toEqual([]);
});
