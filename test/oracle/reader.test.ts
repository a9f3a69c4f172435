import { describe, expect, it } from 'vitest';
import { mapBucket, storeBucket } from './bucket.ts';
import { directoryBucket } from './directory.ts';
import { loadFixture } from './fixtures/load.ts';
import { editMetadata } from './mutate.ts';
import { liveEntries, readTable, snapshotState } from './reader.ts';

describe('readTable: versions, snapshots, entries', () => {
  it('finds the newest version by listing, whatever the hint says', async () => {
    const objects = loadFixture('engine');
    objects.set('engine/metadata/version-hint.text', new TextEncoder().encode('2'));
    const table = await readTable(mapBucket(objects), 'engine');
    expect(table.versions).toEqual([1, 2, 3, 4, 5]);
    expect(table.version).toBe(5);
    expect(table.hint).toEqual(new TextEncoder().encode('2'));
  });

  it('sorts versions as numbers: ten comes after nine', async () => {
    const objects = loadFixture('paged');
    for (const version of [9, 10]) {
      objects.set(
        `paged/metadata/v${version}.metadata.json`,
        objects.get('paged/metadata/v3.metadata.json') as Uint8Array,
      );
    }
    expect((await readTable(mapBucket(objects), 'paged')).version).toBe(10);
  });

  it('keeps snapshot ids above 2^53 exact', async () => {
    const objects = loadFixture('paged');
    const { metadata } = await readTable(mapBucket(objects), 'paged', { bucketName: 'lake' });
    const text = new TextDecoder().decode(objects.get('paged/metadata/v3.metadata.json'));
    const id = metadata['current-snapshot-id'] as bigint;
    expect(id).toBeGreaterThan(2n ** 53n);
    expect(text).toContain(`"current-snapshot-id":${id}`);
    expect(metadata['last-updated-ms']).toBeTypeOf('number');
  });

  it('gives added entries the numbers they inherit', async () => {
    const table = await readTable(mapBucket(loadFixture('engine')), 'engine');
    const third = table.snapshots.find(({ snapshot }) => snapshot['sequence-number'] === 3n);
    const entries = liveEntries(third as NonNullable<typeof third>);
    expect(entries.map((entry) => entry.sequenceNumber)).toEqual([null, null, null]);
    expect(entries.map((entry) => entry.effective.sequenceNumber)).toEqual([3n, 2n, 1n]);
    expect(entries.map((entry) => entry.dataFile.partition)).toEqual([[20455], [20454], [20454]]);
  });

  it('follows a compaction: inputs deleted, output live', async () => {
    const table = await readTable(mapBucket(loadFixture('engine')), 'engine', { snapshots: 'current' });
    expect(table.snapshots.length).toBe(1);
    const state = snapshotState(table);
    expect(state?.manifests.flatMap(({ entries }) => entries.map(({ status }) => status)).sort()).toEqual([1, 1, 2, 2]);
    expect(liveEntries(state as NonNullable<typeof state>).length).toBe(2);
  });

  it('treats a current snapshot of null or -1 as none', async () => {
    for (const value of [null, -1n]) {
      const objects = loadFixture('paged');
      editMetadata(objects, 'paged', (metadata) => {
        metadata['current-snapshot-id'] = value;
      });
      const table = await readTable(mapBucket(objects), 'paged', { snapshots: 'none' });
      expect(table.metadata['current-snapshot-id']).toBeUndefined();
    }
  });

  it('throws and names what it could not read', async () => {
    const objects = loadFixture('paged');
    const list = [...objects.keys()].find((key) => key.includes('/snap-')) as string;
    objects.delete(list);
    await expect(readTable(mapBucket(objects), 'paged')).rejects.toThrow(`I3 object\n  at ${list}`);
    await expect(readTable(mapBucket(objects), 'paged', { version: 7 })).rejects.toThrow('v7.metadata.json');
  });

  it('refuses a location outside the table', async () => {
    const table = await readTable(mapBucket(loadFixture('paged')), 'paged', { bucketName: 'lake' });
    expect(table.keyOf('s3://lake/paged/data/x')).toBe('paged/data/x');
    for (const location of ['s3://pond/paged/data/x', 's3a://lake/paged/data/x', 's3://lake/other/x', 'paged/data/x'])
      expect(table.keyOf(location)).toBeNull();
  });
});

describe('bucket: adapters', () => {
  it('reads and lists through the store port in key order', async () => {
    const objects = loadFixture('paged');
    const bucket = storeBucket({
      get: async (key) => {
        const bytes = objects.get(key);
        return bytes === undefined ? null : { bytes, etag: 'e' };
      },
      list: async function* (prefix) {
        for (const [key, bytes] of objects)
          if (key.startsWith(prefix)) yield { key, size: bytes.length, etag: 'e', uploadedMs: 0 };
      },
    });
    expect(await bucket.list('paged/')).toEqual(await mapBucket(objects).list('paged/'));
    expect(await bucket.get('paged/metadata/version-hint.text')).toEqual(Uint8Array.of(0x33));
    expect(await bucket.get('paged/missing')).toBeNull();
  });

  it('reads and lists a local folder', async () => {
    const bucket = directoryBucket(new URL('fixtures', import.meta.url).pathname);
    const names = (await bucket.list('')).map(({ key }) => key);
    expect(names).toEqual([...names].sort());
    expect(names).toContain('README.md');
    expect((await bucket.get('README.md'))?.length).toBeGreaterThan(0);
    expect(await bucket.get('missing')).toBeNull();
  });
});
