import { describe, expect, test } from 'vitest';
import { LakeTables } from '../../src/lake/lake.ts';

/** The folders of a bucket by listing; nothing can be read in it. */
function bucketOf(...paths: string[]): R2Bucket {
  const list = async ({ prefix = '' }: { prefix?: string }) => {
    const below = paths.filter((path) => path.startsWith(prefix)).map((path) => path.slice(prefix.length));
    const delimitedPrefixes = [...new Set(below.map((path) => `${prefix}${path.split('/')[0]}/`))].sort();
    return { objects: [], delimitedPrefixes, truncated: false };
  };
  return { list, get: async () => null, head: async () => null } as unknown as R2Bucket;
}

describe('folders of a lake that can be no table', () => {
  const folders = ['a/x', 'a/x.old', 'a/ünlich', 'my lake/y', 'b/z'].map((path) => `lake/${path}/metadata`);
  const ports = { clock: { now: () => 0, sleep: async () => undefined }, random: { bytes: () => new Uint8Array(8) } };
  const tables = new LakeTables(bucketOf(...folders), { scheme: 's3', bucket: 'b', prefix: 'lake' }, ports);

  test('have no object: they are neither woken nor asked for metrics', async () => {
    expect(await tables.names(null, 10)).toEqual([
      { namespace: 'a', table: 'x' },
      { namespace: 'b', table: 'z' },
    ]);
    expect(await tables.names('a/x.old', 1)).toEqual([{ namespace: 'a', table: 'x' }]);
  });

  test('are told in the listing, whose next page may begin behind one', async () => {
    const seen: string[] = [];
    let after: string | null = null;
    do {
      const page = await tables.page(after, 1);
      seen.push(...page.unreadable.map(({ namespace, table }) => `${namespace}/${table}`));
      after = page.next;
    } while (after !== null);
    expect(seen).toEqual(['a/x.old', 'a/ünlich', 'my lake/y']);
  });
});
