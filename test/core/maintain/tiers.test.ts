import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { COMPACT_RUN_FILES_MAX } from '../../../src/core/base/limits.ts';
import { flushDueMs } from '../../../src/core/batch/flush-policy.ts';
import { pick, smallBelow, type TierFile, type TierPolicy, tierOf } from '../../../src/core/maintain/tiers.ts';
import { tableSettings } from '../../../src/core/table/properties.ts';

const KIB = 1024;
const POLICY: TierPolicy = {
  targetBytes: 1024 * KIB,
  minFiles: 4,
  dedup: true,
  coldMicros: null,
  full: false,
  runBytesMax: 4096 * KIB,
  runFilesMax: 6,
  runRowsMax: 1_000_000,
  runHeldBytesMax: 1000,
};

/** A file named for its number; of one partition unless said otherwise. */
const file = (n: number, kib: number, more: Partial<TierFile> = {}): TierFile => ({
  path: `f${String(n).padStart(3, '0')}`,
  bytes: kib * KIB,
  sequenceNumber: BigInt(n),
  partition: 'p',
  specId: 0,
  endMicros: 100n,
  rows: 1,
  heldBytes: 0,
  isUsable: true,
  ...more,
});

const names = (files: readonly TierFile[], policy: Partial<TierPolicy> = {}) =>
  pick(files, { ...POLICY, ...policy }).runs.map((run) => [run.reason, ...run.files.map(({ path }) => path)]);

describe('tiers', () => {
  test('tier: fourfold from 256 KiB on', () => {
    expect([0, 1, 255, 256, 1023, 1024, 4096].map((kib) => tierOf(kib * KIB))).toEqual([0, 0, 0, 1, 1, 2, 3]);
  });

  test('tier: enough small files of one tier are merged, fewer wait, and how many more are needed is told', () => {
    expect(names([file(1, 1), file(2, 1), file(3, 1)])).toEqual([]);
    expect(pick([file(1, 1), file(2, 1), file(3, 1)], POLICY).filesToNext).toBe(1);
    expect(pick([], POLICY).filesToNext).toBe(4);
    expect(names([file(4, 1), file(2, 1), file(3, 1), file(1, 1)])).toEqual([['tier', 'f001', 'f002', 'f003', 'f004']]);
    expect(names([file(1, 300), file(2, 300), file(3, 1), file(4, 1)])).toEqual([]);
  });

  test('tier: a file of three quarters of the target is not small', () => {
    expect(smallBelow(POLICY)).toBe(768 * KIB);
    const just = [1, 2, 3, 4].map((n) => file(n, 767));
    expect(names(just)).toEqual([['tier', 'f001', 'f002', 'f003', 'f004']]);
    expect(names([...just.slice(0, 3), file(4, 768)])).toEqual([]);
  });

  test('a run holds no more memory and no more rows than it may, and a file that fills one by its rows is not small', () => {
    const held = [1, 2, 3, 4].map((n) => file(n, 1, { heldBytes: 400 }));
    expect(names(held)).toEqual([['tier', 'f001', 'f002']]);
    expect(names(held, { full: true })).toEqual([['full', 'f001', 'f002']]);
    const long = [1, 2, 3, 4].map((n) => file(n, 1, { rows: 300_000 }));
    expect(names(long)).toEqual([['tier', 'f001', 'f002', 'f003']]);
    expect(names([...long.slice(1), file(5, 1, { rows: 750_000 })])).toEqual([]);
  });

  test('tier: with dedup a file of another size between ends the run, without it does not', () => {
    const files = [file(1, 1), file(2, 1), file(3, 900), file(4, 1), file(5, 1)];
    expect(names(files)).toEqual([]);
    expect(names(files, { dedup: false })).toEqual([['tier', 'f001', 'f002', 'f004', 'f005']]);
  });

  test('tier: with dedup files of one commit beside the lowest number are let be, those of a higher one end the run', () => {
    const beside = [file(1, 900), file(9, 1, { sequenceNumber: 1n }), file(2, 1), file(3, 1), file(4, 1)];
    expect(names(beside)).toEqual([['tier', 'f009', 'f002', 'f003', 'f004']]);
    const above = [file(1, 1), file(2, 1), file(3, 1), file(4, 1), file(9, 900, { sequenceNumber: 4n })];
    expect(names(above)).toEqual([]);
  });

  test('tier: with dedup no run goes past a file under another partition spec, one beside its lowest number does no harm', () => {
    const other = (n: number) =>
      file(9, 900, { sequenceNumber: BigInt(n), partition: 'o', specId: 1, isUsable: false });
    const six = [1, 2, 3, 4, 5, 6].map((n) => file(n, 1));
    const all = ['tier', 'f001', 'f002', 'f003', 'f004', 'f005', 'f006'];
    expect(names([...six, other(1)])).toEqual([all]);
    expect(names([...six, other(7)])).toEqual([all]);
    expect(names([...six, other(3)])).toEqual([['tier', 'f003', 'f004', 'f005', 'f006']]);
    expect(names([...six, other(6)])).toEqual([all.slice(0, -1)]);
    expect(names([...six, other(3)], { dedup: false })).toEqual([all]);
    expect(names([...six, other(3)], { full: true })).toEqual([['full', 'f001', 'f002']]);
  });

  test('tier: a file that is left alone is in no run, and with dedup none goes past it', () => {
    const files = [1, 2, 3, 4, 5].map((n) => file(n, 1, { isUsable: n !== 3 }));
    expect(names(files, { minFiles: 2 })).toEqual([['tier', 'f001', 'f002']]);
    expect(names(files, { dedup: false })).toEqual([['tier', 'f001', 'f002', 'f004', 'f005']]);
  });

  test('tier: runs keep their bounds, the oldest files first', () => {
    const files = Array.from({ length: 9 }, (_, n) => file(n, 100));
    expect(names(files)[0]).toHaveLength(1 + 6);
    expect(names(files, { runBytesMax: 350 * KIB })).toEqual([['tier', 'f000', 'f001', 'f002']]);
  });

  test('tier: each partition by itself, those that free most files first', () => {
    const files = [1, 2, 3, 4].flatMap((n) => [file(n, 1), file(n, 1, { partition: 'q', path: `q${n}` })]);
    expect(names([...files, file(5, 1, { partition: 'q', path: 'q5' })]).map((run) => run.length)).toEqual([6, 5]);
  });

  test('cold: two small files are enough once the partition has ended long ago', () => {
    const files = [file(1, 60), file(2, 900)];
    expect(names([...files, file(3, 1)], { coldMicros: 99n })).toEqual([]);
    expect(names(files, { coldMicros: 100n })).toEqual([]);
    expect(names([...files, file(3, 1)], { coldMicros: 100n })).toEqual([['cold', 'f001', 'f002', 'f003']]);
    expect(names([file(1, 1, { endMicros: null }), file(2, 1, { endMicros: null })], { coldMicros: 100n })).toEqual([]);
  });

  test('cold: late rows are merged with each other, and with a large file once they are a sixteenth of it', () => {
    const cold = { coldMicros: 100n };
    const big = file(1, 640);
    expect(names([big, file(2, 39)], cold)).toEqual([]);
    expect(names([big, file(2, 40)], cold)).toEqual([['cold', 'f001', 'f002']]);
    expect(names([big, file(2, 1), file(3, 1)], cold)).toEqual([['cold', 'f002', 'f003']]);
    expect(names([big, file(2, 20), file(3, 20)], cold)).toEqual([['cold', 'f001', 'f002', 'f003']]);
    expect(names([file(1, 250), file(2, 1)], cold)).toEqual([['cold', 'f001', 'f002']]);
    expect(names([big, file(2, 1)], { ...cold, full: true })).toEqual([['full', 'f001', 'f002']]);
  });

  test('cold: rows that come late for ever are written a few times over, and their files stay few', () => {
    const policy = { ...POLICY, targetBytes: 1024 * 1024 * KIB, runBytesMax: 1024 * 1024 * KIB, coldMicros: 100n };
    let files = [file(0, 100 * 1024)];
    let written = 0;
    const late = 3000;
    for (let n = 1; n <= late; n++) {
      files.push(file(n, 4));
      for (const run of pick(files, policy).runs) {
        const bytes = run.files.reduce((sum, one) => sum + one.bytes, 0);
        written += bytes;
        files = files.filter((one) => !run.files.includes(one));
        files.push({ ...file(n, 0), bytes, sequenceNumber: run.files[run.files.length - 1].sequenceNumber });
      }
      expect(files.length).toBeLessThanOrEqual(8);
    }
    // Each late row with the hundred megabytes would be 25,000 times as much.
    expect(written / (late * 4 * KIB)).toBeLessThan(60);
  });

  test('B095: a row a second for an hour is some hundred commits, and never more than a few files', () => {
    const { flush } = tableSettings({});
    const bounds = { gatherMs: 0, commitIntervalMinMs: 0 };
    const policy = { ...POLICY, targetBytes: 64 * 1024 * KIB, minFiles: 8, runFilesMax: COMPACT_RUN_FILES_MAX };
    let files: TierFile[] = [];
    let commits = 0;
    let oldestMs: number | null = null;
    let buffered = 0;
    let most = 0;
    for (let ms = 0; ms <= 3_600_000; ms += 1_000) {
      oldestMs ??= ms;
      buffered += 1;
      const due = flushDueMs(
        { rows: buffered, bytes: buffered * 100, oldestMs, waiterMs: null, lastCommitMs: null },
        flush,
        bounds,
      );
      if (due === null || due > ms) continue;
      files.push(file(++commits, 4, { rows: buffered }));
      [buffered, oldestMs] = [0, null];
      for (const run of pick(files, policy).runs) {
        files = files.filter((one) => !run.files.includes(one));
        const bytes = run.files.reduce((sum, one) => sum + one.bytes, 0);
        files.push({ ...file(commits, 0), bytes });
      }
      most = Math.max(most, files.length);
    }
    expect(commits).toBeGreaterThan(100);
    expect(commits).toBeLessThanOrEqual(360);
    expect(most).toBeLessThanOrEqual(24);
  });

  test('full: of a partition beyond two targets only the small files, as they lie side by side', () => {
    const files = [file(1, 1000), file(2, 1000), file(3, 1), file(4, 1), file(5, 1000), file(6, 1)];
    expect(names(files, { full: true })).toEqual([['full', 'f003', 'f004']]);
    expect(names(files, { full: true, dedup: false })).toEqual([['full', 'f003', 'f004', 'f006']]);
  });

  test('runs: bounded, of one partition, contiguous with dedup, and nothing is left to do in the end', () => {
    const any = fc.record({
      kib: fc.constantFrom(1, 100, 300, 700, 800, 1200),
      number: fc.integer({ min: 1, max: 12 }),
      partition: fc.constantFrom('p', 'q'),
      isUsable: fc.boolean(),
    });
    fc.assert(
      fc.property(
        fc.array(any, { maxLength: 25 }),
        fc.boolean(),
        fc.boolean(),
        fc.boolean(),
        (made, dedup, full, cold) => {
          const policy = { ...POLICY, dedup, full, coldMicros: cold ? 100n : null, minFiles: 3 };
          let files = made.map(({ kib, number, partition, isUsable }, i) =>
            file(i, kib, { sequenceNumber: BigInt(number), partition, isUsable }),
          );
          for (let round = 0; ; round++) {
            expect(round).toBeLessThan(60);
            const { runs } = pick(files, policy);
            if (runs.length === 0) break;
            const [run] = runs;
            const chosen = new Set(run.files);
            expect(chosen.size).toBeGreaterThan(1);
            expect(chosen.size).toBeLessThanOrEqual(policy.runFilesMax);
            expect(run.files.reduce((sum, { bytes }) => sum + bytes, 0)).toBeLessThanOrEqual(policy.runBytesMax);
            expect(run.files.every((one) => one.isUsable && one.partition === run.partition)).toBe(true);
            const numbers = run.files.map(({ sequenceNumber }) => sequenceNumber);
            const lowest = numbers[0];
            const highest = numbers[numbers.length - 1];
            const between = files.filter(
              (one) =>
                one.partition === run.partition &&
                !chosen.has(one) &&
                one.sequenceNumber > lowest &&
                one.sequenceNumber <= highest,
            );
            if (dedup) expect(between).toEqual([]);
            // What a merge makes: files of the target's size and a rest, with the highest number.
            let bytes = run.files.reduce((sum, one) => sum + one.bytes, 0);
            files = files.filter((one) => !chosen.has(one));
            for (let part = 0; bytes > 0; part++) {
              const size = Math.min(bytes, policy.targetBytes);
              files.push(
                file(1000 + round * 10 + part, size / KIB, { sequenceNumber: highest, partition: run.partition }),
              );
              bytes -= size;
            }
          }
        },
      ),
      { numRuns: 300 },
    );
  });
});
