import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

/** Faults that others have reported of programs of this kind: number, where, and what they saw. The wording is ours. */
const log = readFileSync(join(import.meta.dirname, 'bug-log.txt'), 'utf8')
  .trimEnd()
  .split('\n')
  .map((line) => line.split('\t'));

/** Those that no test of ours could show, each with its reason. */
const NOT_OURS: Readonly<Record<string, string>> = {
  B163: 'a procedure of Trino; the ways into our tables by folder or vN file are in the README and run by test/interop',
  B190: 'an answer of a REST catalog to a staged create; there is no such catalog here',
};

/** Numbers in the titles of tests, and in the tables that titles are made of; not those in comments. */
function titled(): Set<string> {
  const found = new Set<string>();
  for (const entry of readdirSync(import.meta.dirname, { recursive: true, encoding: 'utf8' })) {
    if (entry === 'bug-log.test.ts' || !/\.test\.ts$|^suites\/.*\.ts$/.test(entry)) continue;
    const text = readFileSync(join(import.meta.dirname, entry), 'utf8');
    for (const line of text.split('\n')) {
      const code = /^\s*(\*|\/\*)/.test(line) ? '' : line.replace(/(^|\s)\/\/.*$/, '');
      for (const [number] of code.matchAll(/\bB\d{3}\b/g)) found.add(number);
    }
  }
  return found;
}

test('bug log: each fault is in the title of a test, or has a reason why it cannot be ours', () => {
  const numbers = log.map(([number]) => number);
  expect(log.every((fields) => fields.length === 3 && fields.every((field) => field !== ''))).toBe(true);
  expect(numbers).toEqual([...new Set(numbers)].sort());
  expect(numbers).toHaveLength(137);
  const found = titled();
  const forgotten = log.filter(([number]) => !found.has(number) && NOT_OURS[number] === undefined);
  expect(forgotten.map((fields) => fields.join(' '))).toEqual([]);
  // Neither a number that nobody knows, nor one that is both.
  expect([...found].filter((number) => !numbers.includes(number))).toEqual([]);
  expect(Object.keys(NOT_OURS).filter((number) => found.has(number) || !numbers.includes(number))).toEqual([]);
});
