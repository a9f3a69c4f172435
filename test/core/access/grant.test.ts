import { describe, expect, it } from 'vitest';
import { coversNamespace, coversTable, hasScope, isPattern, type Scope } from '../../../src/core/access/grant.ts';

const grantOf = (...tables: string[]) => ({ name: 'a', scopes: [] as Scope[], tables });

describe('grants', () => {
  it('patterns are a table, the tables of a namespace, or all', () => {
    for (const pattern of ['*', 'a/*', 'a/b', 'A_1/b-2']) expect(isPattern(pattern), pattern).toBe(true);
    const wrong = ['', 'a', 'a/', '/b', '*/b', '*/*', 'a/b/c', 'a*/b', 'a/b*', 'metadata/b', 'a/data', 'a b/c', '**'];
    for (const pattern of wrong) expect(isPattern(pattern), pattern).toBe(false);
  });

  it('a table is covered by its name, its namespace, or a star', () => {
    const cases: [patterns: string[], namespace: string, table: string, covered: boolean][] = [
      [['*'], 'a', 'b', true],
      [['a/*'], 'a', 'b', true],
      [['a/*'], 'ab', 'b', false],
      [['a/b'], 'a', 'b', true],
      [['a/b'], 'a', 'bc', false],
      [['a/b'], 'a', 'B', false],
      [['a/b'], 'b', 'a', false],
      [['x/y', 'a/b'], 'a', 'b', true],
      // What an address may be decoded to.
      [['a/b'], 'a/b', '', false],
      [['a/*'], 'a/*', 'b', false],
      [['a/b'], 'a', '*', false],
    ];
    for (const [patterns, namespace, table, covered] of cases) {
      expect(coversTable(grantOf(...patterns), namespace, table), `${patterns} ${namespace}/${table}`).toBe(covered);
    }
  });

  it('a namespace is looked into when a table of it may be covered', () => {
    expect(coversNamespace(grantOf('*'), 'a')).toBe(true);
    expect(coversNamespace(grantOf('a/b'), 'a')).toBe(true);
    expect(coversNamespace(grantOf('a/*'), 'a')).toBe(true);
    expect(coversNamespace(grantOf('ab/*', 'b/a'), 'a')).toBe(false);
  });

  it('admin has every scope, the others only themselves', () => {
    const has = (scopes: Scope[]) =>
      (['read', 'append', 'admin'] as const).filter((scope) => hasScope({ name: 'a', tables: [], scopes }, scope));
    expect(has(['admin'])).toEqual(['read', 'append', 'admin']);
    expect(has(['append'])).toEqual(['append']);
    expect(has(['read'])).toEqual(['read']);
    expect(has(['read', 'append'])).toEqual(['read', 'append']);
    expect(has([])).toEqual([]);
  });
});
