import { describe, expect, test } from 'vitest';
import { type AppFacts, admit, isAppName, parseEpoch, placeOf } from '../../../src/core/batch/admission.ts';

const nothing: AppFacts = { committed: null, waiting: null, parked: null, digest: null };
const request = (epoch: bigint, options: { digest?: string; sparse?: boolean } = {}) => ({
  epoch,
  digest: 'd',
  sparse: false,
  ...options,
});

describe('admission: dense epochs', () => {
  test('dense: a new app begins where it likes, then counts up', () => {
    expect(admit(nothing, request(7n))).toEqual({ verdict: 'accept' });
    expect(admit({ ...nothing, committed: 7n }, request(8n))).toEqual({ verdict: 'accept' });
    expect(admit({ ...nothing, committed: 7n, waiting: 9n }, request(10n))).toEqual({ verdict: 'accept' });
  });

  test('dense: a gap names the epoch that is expected', () => {
    expect(admit({ ...nothing, committed: 7n }, request(9n))).toEqual({ verdict: 'gap', expected: 8n });
    expect(admit({ ...nothing, waiting: 7n }, request(9n))).toEqual({ verdict: 'gap', expected: 8n });
  });

  test('B108 B185: at, below and just above the watermark, no off-by-one', () => {
    const facts = { ...nothing, committed: 7n, digest: 'd' };
    expect(admit(facts, request(7n)).verdict).toBe('duplicate');
    expect(admit(facts, request(6n)).verdict).toBe('duplicate');
    expect(admit({ ...facts, digest: null }, request(8n)).verdict).toBe('accept');
  });

  test('B208: epochs below the first one that was taken are never taken later', () => {
    for (const facts of [
      { ...nothing, waiting: 5n },
      { ...nothing, committed: 5n },
    ]) {
      for (const sparse of [false, true]) {
        for (let epoch = 0n; epoch < 5n; epoch++)
          expect(admit(facts, request(epoch, { sparse })).verdict).toBe('behind');
        expect(admit(facts, request(6n, { sparse })).verdict).toBe('accept');
      }
    }
  });

  test('dense: the same epoch with another body is a conflict', () => {
    expect(admit({ ...nothing, committed: 7n, digest: 'e' }, request(7n))).toEqual({ verdict: 'conflict' });
  });

  test('B117 B118: a source that starts again lower is told the committed epoch, loudly', () => {
    expect(admit({ ...nothing, committed: 900n }, request(1n))).toEqual({ verdict: 'behind', committed: 900n });
  });
});

describe('admission: sparse epochs and parked apps', () => {
  test('sparse: any higher epoch is next', () => {
    expect(admit({ ...nothing, committed: 7n }, request(100n, { sparse: true }))).toEqual({ verdict: 'accept' });
    expect(admit({ ...nothing, committed: 7n }, request(7n, { sparse: true }))).toEqual({
      verdict: 'behind',
      committed: 7n,
    });
  });

  test('parked: later epochs wait for the owner, earlier ones are answered as ever', () => {
    const facts = { ...nothing, committed: 6n, waiting: 6n, parked: 7n };
    expect(admit(facts, request(7n))).toEqual({ verdict: 'parked', epoch: 7n });
    expect(admit(facts, request(8n, { sparse: true }))).toEqual({ verdict: 'parked', epoch: 7n });
    expect(admit({ ...facts, digest: 'd' }, request(6n))).toEqual({ verdict: 'duplicate' });
  });

  test('rollback: progress that went back lets a replay in again', () => {
    expect(admit({ ...nothing, committed: 5n, digest: 'd' }, request(6n))).toEqual({ verdict: 'accept' });
  });
});

describe('admission: on the base of an attempt', () => {
  test('place: next, committed already, or a gap', () => {
    expect(placeOf({ epoch: 5n, sparse: false }, null)).toBe('next');
    expect(placeOf({ epoch: 5n, sparse: false }, 4n)).toBe('next');
    expect(placeOf({ epoch: 5n, sparse: false }, 5n)).toBe('committed');
    expect(placeOf({ epoch: 5n, sparse: false }, 3n)).toBe('gap');
    expect(placeOf({ epoch: 5n, sparse: true }, 3n)).toBe('next');
    expect(placeOf({ epoch: 5n, sparse: true }, 9n)).toBe('committed');
  });
});

describe('admission: names and numbers', () => {
  test('app: short printable names, none of the service’s own', () => {
    for (const name of ['a', 'ingest-1', 'kafka:topic/3', 'x@y.z']) expect(isAppName(name), name).toBe(true);
    for (const name of ['', ' ', 'sluice/0', '-a', 'ä', 'a b', 'x'.repeat(129)])
      expect(isAppName(name), name).toBe(false);
  });

  test('epoch: int64 in decimal, every digit kept', () => {
    expect(parseEpoch('9223372036854775807')).toBe(9223372036854775807n);
    expect(parseEpoch('0')).toBe(0n);
    for (const text of ['', '-1', '01', '1.0', '1e3', '9223372036854775808', ' 1'])
      expect(parseEpoch(text), text).toBeNull();
  });
});
