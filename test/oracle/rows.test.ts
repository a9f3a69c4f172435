import { describe, expect, it } from 'vitest';
import { mapBucket } from './bucket.ts';
import { loadFixture } from './fixtures/load.ts';
import { differenceOfRows, rows, sameRows } from './rows.ts';

describe('rows: values of every type', () => {
  it('keeps every digit and every edge', async () => {
    const found = await rows(mapBucket(loadFixture('types')), 'types');
    expect(found.map((row) => row.id).sort()).toEqual(
      [1n, 5n, 9n, 77n, 2n ** 53n + 1n, 2n ** 53n + 2n, 2n ** 53n + 3n, 2n ** 53n + 4n].sort(),
    );
    expect(found.find((row) => row.id === 1n)).toEqual({
      id: 1n,
      flag: true,
      i: -(2 ** 31),
      f: Number.NaN,
      d: Number.NEGATIVE_INFINITY,
      small: -128n,
      large: 10_000_000_000n,
      day: -1,
      t: 1n,
      ts: -1n,
      tz: 1_767_323_045_000_006n,
      s: `${'\u{1F600}'.repeat(16)}x`,
      u: 'ffffffff-ffff-ffff-ffff-ffffffffffff',
      fx: Uint8Array.of(0, 255, 0, 255),
      b: new Uint8Array(20).fill(255),
      none: null,
      place: { x: Number.NaN, name: 'a' },
      tags: ['a', null],
      m: [[1, 1.5]],
      later: null,
    });
    const five = found.find((row) => row.id === 5n);
    expect(five).toMatchObject({ large: -999999999999999999995000000000n, day: -719162, ts: 253402214400000000n });
    expect(five).toMatchObject({ place: null, tags: [], m: [], b: new Uint8Array(0) });
    expect(found.find((row) => row.id === 9n)).toMatchObject({ f: -0, place: { x: null, name: null }, tags: null });
    expect(found.find((row) => row.id === 77n)?.later).toBe('new');
  });

  it('reads an older snapshot by its id', async () => {
    const bucket = mapBucket(loadFixture('engine'));
    const current = await rows(bucket, 'engine');
    expect(current.length).toBe(40);
    const text = new TextDecoder().decode((await bucket.get('engine/metadata/v4.metadata.json')) as Uint8Array);
    const before = BigInt(/"current-snapshot-id":(\d+)/.exec(text)?.[1] as string);
    expect((await rows(bucket, 'engine', { snapshotId: before })).length).toBe(60);
    await expect(rows(bucket, 'engine', { snapshotId: 7n })).rejects.toThrow('no such snapshot: 7');
  });

  it('gives no rows of a table without a snapshot', async () => {
    expect(await rows(mapBucket(loadFixture('paged')), 'paged', { version: 1 })).toEqual([]);
  });
});

describe('sameRows: multisets of rows', () => {
  it('accepts another order of rows and columns', () => {
    sameRows(
      [{ a: 1, b: 2n }, { a: 3 }],
      [
        { a: 3, b: null },
        { b: 2n, a: 1 },
      ],
    );
  });

  it('counts equal rows', () => {
    expect(differenceOfRows([{ a: 1 }, { a: 1 }], [{ a: 1 }])).toEqual({ missing: ['{a: 1}'], unexpected: [] });
    expect(differenceOfRows([{ a: 1 }], [{ a: 1 }, { a: 1 }])).toEqual({ missing: [], unexpected: ['{a: 1}'] });
  });

  it.each([
    ['numbers and bigints', { a: 1 }, { a: 1n }],
    ['zeros of two signs', { a: 0 }, { a: -0 }],
    ['text and bytes', { a: 'x00' }, { a: Uint8Array.of(0) }],
    ['an empty list and null', { a: [] }, { a: null }],
    ['neighbours beyond 2^53', { a: 2n ** 53n }, { a: 2n ** 53n + 1n }],
    ['text that looks like null', { a: 'null' }, { a: null }],
  ])('tells %s apart', (_, a, b) => {
    expect(() => sameRows([a], [b])).toThrow(/missing 1:.*unexpected 1:/s);
  });

  it('takes NaN as equal to NaN and bytes by content', () => {
    sameRows([{ a: Number.NaN, b: Uint8Array.of(1) }], [{ a: Number.NaN, b: Uint8Array.of(1) }]);
  });
});
