import { describe, expect, test } from 'vitest';
import { manifestsToMerge, tierOf } from '../../../src/core/commit/manifest-policy.ts';
import type { ManifestFile } from '../../../src/core/iceberg/types.ts';

let made = 0;

function manifest(files: number, options: Partial<ManifestFile> = {}): ManifestFile {
  made++;
  return {
    manifestPath: `m${made}`,
    manifestLength: 5000n,
    partitionSpecId: 0,
    content: 0,
    sequenceNumber: BigInt(made),
    minSequenceNumber: BigInt(made),
    addedSnapshotId: BigInt(made),
    addedFilesCount: files,
    existingFilesCount: 0,
    deletedFilesCount: 0,
    addedRowsCount: 1n,
    existingRowsCount: 0n,
    deletedRowsCount: 0n,
    partitions: [],
    keyMetadata: null,
    ...options,
  };
}

const many = (count: number, files: number, options: Partial<ManifestFile> = {}) =>
  Array.from({ length: count }, () => manifest(files, options));

describe('manifest policy', () => {
  test('tiers: each holds up to four times the files of the one below', () => {
    expect([1, 3, 4, 15, 16, 63, 64, 255, 256].map((files) => tierOf(manifest(files)))).toEqual([
      0, 0, 1, 1, 2, 2, 3, 3, 4,
    ]);
  });

  test('merge: eight in a tier with the own one stay apart, the ninth merges the others', () => {
    expect(manifestsToMerge(many(7, 1), manifest(1))).toEqual([]);
    const carried = many(8, 1);
    expect(manifestsToMerge(carried, manifest(1))).toEqual([carried]);
  });

  test('merge: goes on upwards where the result would overflow the tier it lands in', () => {
    const small = many(8, 1);
    const larger = many(8, 8);
    expect(manifestsToMerge([...larger, ...small], manifest(1))[0]).toHaveLength(16);
    expect(manifestsToMerge([...larger.slice(1), ...small], manifest(1))).toEqual([small]);
  });

  test('merge: specs apart, delete files and manifests too large to be worth it left alone', () => {
    const other = many(9, 1, { partitionSpecId: 1 });
    expect(manifestsToMerge([...many(5, 1), ...other], manifest(1))).toEqual([other]);
    expect(manifestsToMerge(many(9, 1, { content: 1 }), manifest(1))).toEqual([]);
    expect(manifestsToMerge(many(9, 1, { manifestLength: 2_000_000n }), manifest(1))).toEqual([]);
  });

  test('merge: what does not fit one commit is merged in part, the oldest first, and holds up nothing below', () => {
    const large = many(9, 100, { manifestLength: 400_000n });
    expect(manifestsToMerge(large, manifest(1))).toEqual([large.slice(-2)]);
    // The tier above overflows and is too large: the small ones are merged all the same.
    const upper = many(8, 8, { manifestLength: 600_000n });
    const small = many(8, 1);
    expect(manifestsToMerge([...upper, ...small], manifest(1))).toEqual([small]);
    const [group] = manifestsToMerge([...many(8, 8, { manifestLength: 300_000n }), ...small], manifest(1));
    expect(group).toHaveLength(8 + 3);
    expect(group.reduce((sum, { manifestLength }) => sum + Number(manifestLength), 0)).toBeLessThan(1024 * 1024);
  });

  test('merge: manifests of very many small entries are bounded by their files', () => {
    const crowded = many(9, 3_000, { manifestLength: 100_000n });
    expect(manifestsToMerge(crowded, manifest(1))).toEqual([crowded.slice(-2)]);
    expect(manifestsToMerge(many(9, 5_000), manifest(1))).toEqual([]);
  });

  test('merge: a table of any size keeps few small manifests, and no commit merges more than fits', () => {
    let carried: ManifestFile[] = [];
    let most = 0;
    for (let commit = 0; commit < 3000; commit++) {
      const own = manifest(4, { manifestLength: 8_000n });
      const [group = []] = manifestsToMerge(carried, own);
      const files = group.reduce((sum, one) => sum + one.addedFilesCount, 0);
      const bytes = group.reduce((sum, one) => sum + one.manifestLength, 0n);
      expect(bytes).toBeLessThanOrEqual(1024n * 1024n);
      const merged = group.length > 0 ? [manifest(files, { manifestLength: bytes })] : [];
      carried = [own, ...merged, ...carried.filter((one) => !group.includes(one))];
      most = Math.max(most, carried.filter(({ manifestLength }) => manifestLength < 512n * 1024n).length);
    }
    expect(carried.length).toBeLessThan(100);
    expect(most).toBeLessThan(8 * 6);
  });

  test('merge: over many commits the manifests of each tier stay few and each entry is rewritten once a tier', () => {
    let carried: ManifestFile[] = [];
    let rewritten = 0;
    let most = 0;
    for (let commit = 0; commit < 2000; commit++) {
      const own = manifest(1);
      const [group = []] = manifestsToMerge(carried, own);
      const files = group.reduce((sum, one) => sum + one.addedFilesCount, 0);
      rewritten += files;
      carried = [own, ...(group.length > 0 ? [manifest(files)] : []), ...carried.filter((one) => !group.includes(one))];
      most = Math.max(most, carried.length);
    }
    expect(most).toBeLessThan(8 * 6);
    expect(rewritten / 2000).toBeLessThan(6);
  });
});
