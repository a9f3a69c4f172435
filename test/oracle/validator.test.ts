import { describe, expect, it } from 'vitest';
import { mapBucket } from './bucket.ts';
import { DEVIATIONS } from './deviations.ts';
import { loadFixture } from './fixtures/load.ts';
import { editMetadata } from './mutate.ts';
import { assertValidTable, describeFindings, type ProfileCache, validateTable } from './validator.ts';

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
    const cache: ProfileCache = new Map();
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

  it('reports a folder without versions', async () => {
    expect(numbersOf(await validateTable(mapBucket(new Map()), 'nothing'))).toEqual(['H2']);
  });
});
