import { describe, expect, test } from 'vitest';
import { consider, noCandidates, sweepBeforeMs } from '../../../src/core/maintain/orphans.ts';

const HOUR = 3_600_000;

function considered(keys: readonly string[], uploadedMs = 0, queued: readonly string[] = []) {
  const candidates = noCandidates();
  const rule = { prefix: 'w/ns/t', beforeMs: 100, queued: new Set(queued) };
  for (const key of keys) consider(candidates, { key: `w/ns/t/${key}`, size: 7, uploadedMs }, rule);
  const { objects, young, other } = candidates;
  return { keys: [...objects.keys()].map((key) => key.slice('w/ns/t/'.length)), young, other };
}

describe('orphans', () => {
  test('data, manifests, lists and indexes may be orphans; versions, pointer, head and what others keep here may not', () => {
    const may = [
      'data/time_day=2026-01-01/x.parquet',
      'data/x.orc',
      'metadata/u-added-m.avro',
      'metadata/snap-1-u.avro',
      'metadata/lvi-1-u.parquet',
    ];
    const mayNot = [
      'metadata/v1.metadata.json',
      'metadata/00003-u.metadata.json',
      'metadata/version-hint.text',
      'metadata/timelake-head',
      'metadata/x.stats',
      'metadata/deep/x.avro',
      'metadata/x.parquet',
      'data/_SUCCESS',
      'notes/x.parquet',
      'dataset/x.parquet',
    ];
    expect(considered([...may, ...mayNot])).toEqual({ keys: may, young: 0, other: mayNot.length });
  });

  test('what is young, or queued already, is no candidate', () => {
    expect(considered(['data/x.parquet'], 99)).toMatchObject({ keys: ['data/x.parquet'] });
    expect(considered(['data/x.parquet'], 100)).toEqual({ keys: [], young: 1, other: 0 });
    expect(considered(['data/x.parquet'], 0, ['w/ns/t/data/x.parquet'])).toEqual({ keys: [], young: 0, other: 1 });
  });

  test('B144 the time before which: the grace period, and nothing of an open commit however long it stays open', () => {
    const nowMs = 1000 * HOUR;
    expect(sweepBeforeMs({ nowMs, graceMs: 24 * HOUR, intentMs: null })).toBe(976 * HOUR);
    expect(sweepBeforeMs({ nowMs, graceMs: 24 * HOUR, intentMs: 999 * HOUR })).toBe(976 * HOUR);
    expect(sweepBeforeMs({ nowMs, graceMs: 24 * HOUR, intentMs: 500 * HOUR })).toBe(499 * HOUR);
    expect(sweepBeforeMs({ nowMs, graceMs: 0, intentMs: 1000 * HOUR })).toBe(999 * HOUR);
  });
});
