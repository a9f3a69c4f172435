/**
 * Does a table stay small by itself?
 *
 *   npm run bench -- day [--json] [--runs 8640]
 *
 * A simulated day of appends to two tables, one every ten seconds, with everything that an object does beside. The whole day
 * takes a quarter of an hour of processor time for the narrow table and up to an hour for the wide one, is written to
 * `bench/results`, and fails where a figure goes on growing.
 */
import { type DayRun, runDay, type Stretch } from './day-run.ts';
import { type DayTable, STEADY, WIDE } from './day-table.ts';
import { type Setting, setting } from './report.ts';

export const DAY_APPENDS = 8640;
const PACE = { everyMs: 10_000, stretches: 24 };

/** A figure over the run: highest of its second quarter and of its last. */
export interface Course {
  second: number;
  last: number;
  /** It no longer grows: the last quarter's is not above the second's by more than what chance makes. */
  bounded: boolean;
}

export type Figure = Exclude<keyof Stretch, 'append'>;

export interface DayTableReport extends DayRun {
  table: string;
  about: string;
  courses: Record<Figure, Course>;
}

export interface DayReport extends Setting {
  appends: number;
  tables: DayTableReport[];
}

/** Runs the benchmark. Progress goes to standard error. */
export async function benchDay(
  appends: number = DAY_APPENDS,
  tables: readonly DayTable[] = [STEADY, WIDE],
  { everyMs, stretches }: typeof PACE = PACE,
): Promise<DayReport> {
  const reports: DayTableReport[] = [];
  for (const table of tables) {
    const run = await runDay(table, { appends, stretch: Math.ceil(appends / stretches), everyMs }, (stretch) => {
      const { append, liveFiles, objects, orphans } = stretch;
      process.stderr.write(
        `${table.name}: ${append} appends, ${liveFiles} files, ${objects} objects, ${orphans} orphans\n`,
      );
    });
    reports.push({ table: table.name, about: table.about, ...run, courses: coursesOf(run.stretches) });
  }
  return { ...setting('day', []), appends, tables: reports };
}

/** What does not stay bounded, and what was left behind: none of it is as it should be. */
export function grown(report: DayReport): string[] {
  return report.tables.flatMap(({ table, courses, atRest, stretches }) => {
    const names = (Object.keys(courses) as Figure[]).filter((name) => !courses[name].bounded);
    const left = Math.max(atRest.orphans, ...stretches.map(({ orphans }) => orphans));
    return [
      ...names.map((name) => `${table}: ${MEANINGS[name]} grow: ${courses[name].second}, then ${courses[name].last}`),
      ...(left > 0 ? [`${table}: ${left} ${MEANINGS.orphans}`] : []),
    ];
  });
}

/** Counts of a few may differ by chance, and larger ones by a part of themselves. */
const CHANCE = { share: 1.25, count: 4 };

function coursesOf(stretches: readonly Stretch[]): Record<Figure, Course> {
  const quarter = stretches.length / 4;
  const most = (name: Figure, from: number, to: number) =>
    Math.max(...stretches.slice(Math.floor(from * quarter), Math.ceil(to * quarter)).map((stretch) => stretch[name]));
  const figures = Object.keys(stretches[0]).filter((name): name is Figure => name !== 'append');
  const courses = figures.map((name): [Figure, Course] => {
    const [second, last] = [most(name, 1, 2), most(name, 3, 4)];
    return [name, { second, last, bounded: last <= Math.max(CHANCE.share * second, second + CHANCE.count) }];
  });
  return Object.fromEntries(courses) as Record<Figure, Course>;
}

/** What the figures are, for people, in the order of the table. */
const MEANINGS: Record<Figure, string> = {
  liveFiles: 'live data files',
  partitions: 'partitions',
  filesOfAPartition: 'files of one partition',
  manifests: 'manifests',
  snapshots: 'snapshots',
  metadataBytes: 'bytes of the metadata file',
  manifestListBytes: 'bytes of the manifest list',
  versionFiles: '`vN.metadata.json` files',
  doomedKeys: 'keys queued for deletion',
  objects: 'objects in the store',
  orphans: 'objects that nothing reaches and nobody is to delete',
  storeBytes: 'bytes in the store',
  writes: 'writes',
  reads: 'reads',
  lists: 'listings',
  deletes: 'deletions (up to 1,000 keys each)',
  bytesWritten: 'bytes written',
  bytesRead: 'bytes read',
  operationsMost: 'operations of the dearest ten seconds',
  versions: 'versions of a stretch',
};

/** The report as Markdown. */
export function dayText(report: DayReport): string {
  const { date, machine, versions, tables } = report;
  const lines = [
    `# A day of appends, ${date.slice(0, 10)}`,
    '',
    'Appends to a table, one every ten simulated seconds from noon on, each a commit with its last-value index; merging, retention, expiry and erasing by themselves, over a store in memory.',
    `Node ${versions['node']}, ${machine.cpu}; counts and bytes do not depend on either. Highest value of each quarter; writes to bytes read are means over a stretch of ${tables[0]?.stretches[0]?.append} appends, for the ten seconds of one.`,
  ];
  for (const { table, about, appends, rows, events, stretches, courses, atRest } of tables) {
    lines.push(
      '',
      `## ${table}: ${about}`,
      '',
      '| | quarter 1 | 2 | 3 | 4 | |',
      '| --- | ---: | ---: | ---: | ---: | --- |',
    );
    for (const name of Object.keys(MEANINGS) as Figure[]) {
      const quarters = [0, 1, 2, 3].map((quarter) => {
        const of = stretches.filter((_, i) => Math.floor((4 * i) / stretches.length) === quarter);
        return Math.max(...of.map((stretch) => stretch[name]));
      });
      lines.push(`| ${[MEANINGS[name], ...quarters, courses[name].bounded ? 'bounded' : 'grows'].join(' | ')} |`);
    }
    const told = Object.entries(events).map(([event, count]) => `${count} ${event}`);
    lines.push('', `${appends} appends, ${rows} rows. Log: ${told.join(', ')}.`);
    const rest = Object.entries(atRest).map(([name, count]) => `${count} ${MEANINGS[name as Figure]}`);
    lines.push(`Once nothing comes in any more and all that is due is done: ${rest.join(', ')}.`);
  }
  return `${lines.join('\n')}\n`;
}
