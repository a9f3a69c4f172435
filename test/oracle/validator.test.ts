import { describe, expect, it } from 'vitest';
import { mapBucket } from './bucket.ts';
import { DEVIATIONS } from './deviations.ts';
import { loadFixture } from './fixtures/load.ts';
import type { JsonObject } from './json.ts';
import { editList, editMetadata } from './mutate.ts';
import { assertValidTable, describeFindings, newCache, validateTable } from './validator.ts';

const numbersOf = (findings: { demand: string }[]) =>
  [...new Set(findings.map(({ demand }) => demand.split(' ')[0]))].sort();

describe('validator: tables of other writers', () => {
  it.each([
    ['types', 'pyiceberg', { bucketName: 'lake' }],
    ['paged', 'pyiceberg', { bucketName: 'lake' }],
    ['engine', 'timelake', {}],
  ] as const)('%s by %s: valid but for the known deviations', async (name, writer, options) => {
    const bucket = mapBucket(loadFixture(name));
    const findings = await validateTable(bucket, name, { ...options, ignore: DEVIATIONS[writer], hintRequired: true });
    expect(describeFindings(findings)).toBe('');
  });

  it('finds every listed deviation in the fixtures, so that the list has no dead entry', async () => {
    const types = await validateTable(mapBucket(loadFixture('types')), 'types', { bucketName: 'lake' });
    expect(numbersOf(types)).toEqual([...DEVIATIONS.pyiceberg].sort());
    const engine = await validateTable(mapBucket(loadFixture('engine')), 'engine');
    expect(numbersOf(engine)).toEqual([...DEVIATIONS.timelake].sort());
  });
});

describe('validator: options', () => {
  it('ignores a demand by its number or by number and word', async () => {
    const bucket = mapBucket(loadFixture('engine'));
    const all = await validateTable(bucket, 'engine');
    const less = await validateTable(bucket, 'engine', { ignore: ['B9 lower bound'] });
    expect(less).toEqual(all.filter(({ demand }) => demand !== 'B9 lower bound'));
    expect(less.length).toBeLessThan(all.length);
  });

  it('accepts whole bounds when they need not be cut', async () => {
    const findings = await validateTable(mapBucket(loadFixture('engine')), 'engine', { boundsTruncated: false });
    expect(numbersOf(findings)).not.toContain('B9');
  });

  it('asks for a page index where it is required', async () => {
    const options = { pageIndexRequired: true, zstdRequired: true, ignore: DEVIATIONS.pyiceberg };
    expect(await validateTable(mapBucket(loadFixture('paged')), 'paged', options)).toEqual([]);
    const findings = await validateTable(mapBucket(loadFixture('types')), 'types', options);
    expect(numbersOf(findings)).toEqual(['P13']);
  });

  it('reads each data file once with a cache, and as many as it may without', async () => {
    const objects = loadFixture('paged');
    const reads = new Map<string, number>();
    const bucket = mapBucket(objects);
    const counting = {
      ...bucket,
      get: (key: string) => {
        if (key.endsWith('.parquet')) reads.set(key, (reads.get(key) ?? 0) + 1);
        return bucket.get(key);
      },
    };
    const cache = newCache();
    const first = await validateTable(counting, 'paged', { cache });
    expect(await validateTable(counting, 'paged', { cache })).toEqual(first);
    expect([...reads.values()]).toEqual([1, 1]);
    await validateTable(counting, 'paged', { dataFilesMax: 1 });
    expect([...reads.values()].reduce((a, b) => a + b)).toBe(3);
  });

  it('throws with every finding listed when a table must be valid', async () => {
    const objects = loadFixture('paged');
    editMetadata(objects, 'paged', (metadata) => {
      metadata['next-row-id'] = 1n;
    });
    const options = { bucketName: 'lake', ignore: DEVIATIONS.pyiceberg };
    await expect(assertValidTable(mapBucket(objects), 'paged', options)).rejects.toThrow(
      /1 findings in paged:\nM18 next-row-id\n {2}at paged\/metadata\/v3.metadata.json\n {2}expected absent\n {2}found {4}1/,
    );
    await assertValidTable(mapBucket(loadFixture('paged')), 'paged', options);
  });

  it('notices through a cache that metadata or a manifest list changed', async () => {
    const objects = loadFixture('paged');
    const options = { bucketName: 'lake', ignore: DEVIATIONS.pyiceberg, cache: newCache() };
    expect(await validateTable(mapBucket(objects), 'paged', options)).toEqual([]);
    editList(objects, 'paged', (list) => list.meta.delete('sequence-number'));
    expect(numbersOf(await validateTable(mapBucket(objects), 'paged', options))).toEqual(['ML1']);
    editMetadata(objects, 'paged', (metadata) => {
      metadata['last-sequence-number'] = 3n;
    });
    expect(numbersOf(await validateTable(mapBucket(objects), 'paged', options))).toEqual(['ML1', 'S9']);
  });

  it('does not mind another order of keys in what an older version said too', async () => {
    const objects = loadFixture('paged');
    editMetadata(objects, 'paged', (metadata) => {
      for (const list of ['snapshots', 'schemas', 'partition-specs', 'sort-orders'])
        metadata[list] = (metadata[list] as JsonObject[]).map((item) =>
          Object.fromEntries(Object.entries(item).reverse()),
        );
    });
    const options = { bucketName: 'lake', ignore: DEVIATIONS.pyiceberg };
    expect(await validateTable(mapBucket(objects), 'paged', options)).toEqual([]);
  });

  it.each(['schemas', 'snapshots', 'partition-specs', 'sort-orders', 'refs', 'snapshot-log', 'summary'])(
    'turns %s of an odd shape into findings, never an exception',
    async (name) => {
      for (const value of [null, [null], [{}], 5n, 'x', { a: null }]) {
        const objects = loadFixture('paged');
        editMetadata(objects, 'paged', (metadata) => {
          if (name === 'summary') (metadata.snapshots as JsonObject[])[0].summary = value;
          else metadata[name] = value;
        });
        const options = { bucketName: 'lake', ignore: DEVIATIONS.pyiceberg };
        expect(await validateTable(mapBucket(objects), 'paged', options), String(value)).not.toEqual([]);
      }
    },
  );

  it('reports a folder without versions', async () => {
    expect(numbersOf(await validateTable(mapBucket(new Map()), 'nothing'))).toEqual(['H2']);
  });
});
