import { describe, expect, test } from 'vitest';
import { benchAppend } from '../../bench/append.ts';
import { appendText } from '../../bench/append-text.ts';

describe('bench: append', () => {
  test('a tiny run commits its rows on the production bundle and reports every stage', {
    timeout: 90_000,
  }, async () => {
    const report = await benchAppend({ rows: [1000], runs: 1, restMs: 1100 });
    const [size] = report.sizes;
    // Of the values alone: it changes with the rows that are sent and with nothing else.
    expect(size.endToEnd.digest).toBe('51973badeacd37a1');
    // Data, manifest, list and version; the answer does not wait for the pointer.
    expect(size.endToEnd.bucketRequests['put']).toBeGreaterThanOrEqual(4);
    expect(size.endToEnd.warm.cpuMs.min).toBeGreaterThan(0);
    expect(size.memory.peakBytes).toBeGreaterThan(size.memory.idle.used);
    expect(size.stages.length).toBeGreaterThanOrEqual(17);
    expect(size.stagesCpuMs.min).toBeGreaterThan(0);
    expect(size.library.cpuMs.min).toBeGreaterThan(0);
    expect(report.yardstick).toBeNull();
    expect(JSON.parse(JSON.stringify(report))).toEqual(report);
    expect(appendText(report)).toContain('| frame: encode |');
  });
});
