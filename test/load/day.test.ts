import { expect, test } from 'vitest';
import { benchDay, type DayTableReport, dayText, type Figure, grown } from '../../bench/day.ts';
import { type DayTable, STEADY, WIDE } from '../../bench/day-table.ts';

/** Five hours, an append every four minutes: what an expiry lets go of is erased, again and again, from the second hour on. */
const APPENDS = 80;
const PACE = { everyMs: 240_000, stretches: 8 };

/** A table whose history is short for the number of appends, as an hour is for a day of them. */
function brief(table: DayTable, more: Record<string, string> = {}): DayTable {
  const { definition } = table;
  const history = { 'timelake.snapshot-retention': '15m', 'write.metadata.previous-versions-max': '20' };
  const properties = { ...definition.properties, ...history, ...more };
  return { ...table, series: 5, definition: { ...definition, properties } };
}

/** Highest of all stretches. */
const most = ({ stretches }: DayTableReport, name: keyof DayTableReport['stretches'][number]) =>
  Math.max(...stretches.map((stretch) => stretch[name]));

const mean = ({ stretches }: DayTableReport, name: 'writes' | 'reads') =>
  stretches.reduce((sum, stretch) => sum + stretch[name], 0) / stretches.length;

test('bench: a table that is appended to for hours stays small, and leaves nothing behind', async () => {
  const tables = [brief(STEADY), brief(WIDE, { 'timelake.retention': '1h' })];
  const report = await benchDay(APPENDS, tables, PACE);
  for (const table of report.tables) {
    const { events, courses, atRest } = table;
    expect(events).toMatchObject({
      compacted: expect.any(Number),
      expired: expect.any(Number),
      erased: expect.any(Number),
    });
    expect(Object.keys(events).filter((event) => /failed|deferred|left/.test(event))).toEqual([]);
    expect(most(table, 'orphans')).toBe(0);
    expect(most(table, 'filesOfAPartition')).toBeLessThanOrEqual(8);
    expect(most(table, 'manifests')).toBeLessThanOrEqual(16);
    // Those of a quarter of an hour, and a batch that is about to go.
    expect(most(table, 'snapshots')).toBeLessThanOrEqual(40);
    // As many as the log names, or as an hour made.
    expect(most(table, 'versionFiles')).toBeLessThanOrEqual(80);
    expect(mean(table, 'writes')).toBeLessThanOrEqual(12);
    expect(mean(table, 'reads')).toBeLessThanOrEqual(25);
    // An hour of what was expired and is not erased yet.
    expect(most(table, 'doomedKeys')).toBeLessThanOrEqual(300);
    expect(most(table, 'objects')).toBeLessThanOrEqual(400);
    const lasting: Figure[] = ['liveFiles', 'filesOfAPartition', 'manifests', 'metadataBytes', 'manifestListBytes'];
    expect(lasting.filter((name) => !courses[name].bounded)).toEqual([]);
    expect(atRest).toMatchObject({ orphans: 0, doomedKeys: 0, snapshots: 5 });
  }
  const [steady, wide] = report.tables;
  expect(most(steady, 'partitions')).toBe(8);
  expect(most(wide, 'partitions')).toBeLessThanOrEqual(3);
  expect(wide.events['retained']).toBeGreaterThan(0);
  expect(dayText(report)).toContain('| live data files |');
  // What the benchmark fails of.
  const courses = { ...wide.courses, manifests: { second: 10, last: 20, bounded: false } };
  const stretches = [...steady.stretches.slice(1), { ...steady.stretches[0], orphans: 3 }];
  const told = grown({
    ...report,
    tables: [
      { ...steady, stretches },
      { ...wide, courses },
    ],
  });
  expect(told).toContain('steady: 3 objects that nothing reaches and nobody is to delete');
  expect(told).toContain('wide: manifests grow: 10, then 20');
});
