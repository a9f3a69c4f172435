import { describe, expect, it } from 'vitest';
import { mapBucket } from './bucket.ts';
import { duckdbRows, openDuckdb } from './duckdb.ts';
import { loadFixture } from './fixtures/load.ts';
import { asIcebird, icebirdRows } from './icebird.ts';
import { readTable, schemaById } from './reader.ts';
import { rows, sameRows } from './rows.ts';

const NAMES = ['types', 'paged', 'engine'] as const;

describe('duckdb: the live files of a table', () => {
  it.each(NAMES)('%s: the rows the oracle reads', async (name) => {
    const bucket = mapBucket(loadFixture(name));
    sameRows(await rows(bucket, name), await duckdbRows(bucket, name));
  });

  it('answers a query over the live rows', async () => {
    const table = await openDuckdb(mapBucket(loadFixture('engine')), 'engine');
    try {
      expect(await table.query('SELECT device, count(*) AS n FROM live GROUP BY 1 ORDER BY 1')).toEqual([
        { device: 'd0', n: 14n },
        { device: 'd1', n: 14n },
        { device: 'd2', n: 12n },
      ]);
    } finally {
      table.close();
    }
  });
});

describe('icebird: the table through its hint and manifests', () => {
  it.each(NAMES)('%s: the rows the oracle reads, as icebird spells them', async (name) => {
    const bucket = mapBucket(loadFixture(name));
    const { metadata } = await readTable(bucket, name, { snapshots: 'none' });
    const schema = schemaById(metadata, metadata['current-schema-id']);
    const expected = asIcebird(await rows(bucket, name), schema as NonNullable<typeof schema>);
    sameRows(expected, await icebirdRows(bucket, name, { lossless: true }));
  });

  it('leaves the global fetch as it was', async () => {
    const before = globalThis.fetch;
    await icebirdRows(mapBucket(loadFixture('paged')), 'paged', { lossless: true });
    await expect(icebirdRows(mapBucket(new Map()), 'paged')).rejects.toThrow();
    expect(globalThis.fetch).toBe(before);
  });
});
