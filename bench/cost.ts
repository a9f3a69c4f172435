/**
 * What does a table cost?
 *
 *   npm run bench -- cost [--json] [--runs 720]
 *
 * Operations of the bucket, rows of the object's database and requests to the object, counted over simulated hours of a
 * commit every ten seconds, and their price. In the real runtime, whose database counts its rows; a minute or two.
 */
import type { Used } from './cost-run.ts';
import { type Setting, setting } from './report.ts';
import { bundle, removeBundle, startRuntime } from './support/runtime.ts';

/** Dollars a million, without what a plan includes: Cloudflare's pages on R2 and Durable Objects, November 2026. */
export const PRICES = {
  classA: 4.5,
  classB: 0.36,
  rowsWritten: 1,
  rowsRead: 0.001,
  objectRequests: 0.15,
} as const;

export type Priced = keyof typeof PRICES;

export const MONTH_DAYS = 30;
/** Of the cron trigger in `wrangler.toml`. */
export const SWEEPS_A_DAY = 288;
/** Dollars for an object that is in memory all month: 128 MB at $12.50 a million GB-s. */
export const IN_MEMORY_MONTH = (0.128 * MONTH_DAYS * 86_400 * 12.5) / 1e6;

const COMMITS_A_DAY = 8640;
/** From then on nothing grows: what was expired first has been erased. */
const WARM_UP = 720;
/** Of a request to the runtime, for progress. */
const STEP = 60;

export interface CostTable {
  table: string;
  /** Of the commits that were counted. */
  commits: number;
  used: Used;
  /** Rows written to the database for each commit when its receipt is forgotten, a day or more later. */
  forgotten: number;
}

export interface CostReport extends Setting {
  tables: CostTable[];
  /** One sweep of a table that has nothing to do, and whose object is not in memory. */
  idle: Used;
}

/** Runs the benchmark. Progress goes to standard error. */
export async function benchCost(commits: number, warmUp = WARM_UP): Promise<CostReport> {
  const built = await bundle('bench/cost-worker.ts', 'CostHost');
  const runtime = await startRuntime(built, false);
  const ask = async (path: string, table: string, query = ''): Promise<Used & { alarmMs: number | null }> => {
    const answered = await fetch(`${runtime.url}${path}?table=${encodeURIComponent(table)}${query}`);
    if (!answered.ok) throw new Error(`${path}: ${answered.status} ${await answered.text()} ${runtime.log()}`);
    return (await answered.json()) as Used & { alarmMs: number | null };
  };
  try {
    const tables: CostTable[] = [];
    let idle: Used | null = null;
    for (const table of ['in order', 'late']) {
      await ask('/begin', table);
      for (let done = 0; done < warmUp; done += STEP) await ask('/appends', table, `&count=${STEP}`);
      let used: Used | null = null;
      for (let done = 0; done < commits; done += STEP) {
        const step = await ask('/appends', table, `&count=${Math.min(STEP, commits - done)}`);
        used = used === null ? countsOf(step) : sum(used, step);
        process.stderr.write('.');
      }
      if (used === null) throw new Error('nothing was counted');
      tables.push({ table, commits, used, forgotten: 1 });
      const { alarmMs } = await ask('/rest', table);
      if (alarmMs !== null) throw new Error('the table does not come to rest');
      idle = countsOf(await ask('/sweep', table));
    }
    process.stderr.write('\n');
    if (idle === null) throw new Error('nothing was counted');
    return { ...setting('cost', ['workerd']), tables, idle };
  } finally {
    await runtime.stop();
    removeBundle(built);
  }
}

const NAMES: readonly (keyof Used)[] = ['classA', 'classB', 'rowsWritten', 'alarmsSet', 'rowsRead', 'objectRequests'];

function countsOf(used: Used): Used {
  return Object.fromEntries(NAMES.map((name) => [name, used[name]])) as unknown as Used;
}

function sum(a: Used, b: Used): Used {
  return Object.fromEntries(NAMES.map((name) => [name, a[name] + b[name]])) as unknown as Used;
}

/** What a table uses in a day of a commit every ten seconds. */
export function dayOf({ commits, used, forgotten }: CostTable): Record<Priced, number> {
  const day = (count: number): number => Math.round((count / commits) * COMMITS_A_DAY);
  return {
    classA: day(used.classA),
    classB: day(used.classB),
    rowsWritten: day(used.rowsWritten + forgotten * commits),
    rowsRead: day(used.rowsRead),
    objectRequests: day(used.objectRequests),
  };
}

/** What so many tables without work use in a day: a call of each sweep, and its listings (of the lake, and of one namespace). */
export function idleDay(idle: Used, tables: number): Record<Priced, number> {
  const sweeps = tables * SWEEPS_A_DAY;
  return {
    classA: idle.classA * sweeps + SWEEPS_A_DAY * (1 + Math.ceil(tables / 1000)),
    classB: idle.classB * sweeps,
    rowsWritten: idle.rowsWritten * sweeps,
    rowsRead: idle.rowsRead * sweeps,
    objectRequests: sweeps,
  };
}

/** Dollars a month. */
export function priceOf(day: Record<Priced, number>): Record<Priced, number> & { all: number } {
  const prices = Object.entries(PRICES).map(([name, price]): [string, number] => [
    name,
    (day[name as Priced] * MONTH_DAYS * price) / 1e6,
  ]);
  const all = prices.reduce((total, [, price]) => total + price, 0);
  return { ...(Object.fromEntries(prices) as Record<Priced, number>), all };
}

const MEANINGS: Record<Priced, string> = {
  classA: 'R2 operations of class A (writes, listings)',
  classB: 'R2 operations of class B (reads)',
  rowsWritten: "rows written to the object's database, alarms set among them",
  rowsRead: 'rows read from it',
  objectRequests: 'requests to the object, alarms among them',
};

/** Lines of the README's table: what is used a day, and what that costs a month. */
export function costRows({ tables, idle }: CostReport): string[] {
  const days = [...tables.map(dayOf), idleDay(idle, 1000)];
  const count = (value: number): string => value.toLocaleString('en');
  const dollars = (value: number): string => `$${value.toFixed(2)}`;
  const rows = (Object.keys(MEANINGS) as Priced[]).map((name) => {
    const cells = days.map((day) => `${count(day[name])}, ${dollars(priceOf(day)[name])}`);
    return `| ${[MEANINGS[name], ...cells].join(' | ')} |`;
  });
  return [...rows, `| all a month | ${days.map((day) => dollars(priceOf(day).all)).join(' | ')} |`];
}

/** The report as Markdown. */
export function costText(report: CostReport): string {
  const { date, machine, versions, tables } = report;
  return [
    `# What a table costs, ${date.slice(0, 10)}`,
    '',
    `A commit every ten seconds; counted over ${tables[0]?.commits} commits behind ${WARM_UP} others, Node ${versions['node']}, workerd ${versions['workerd']}, ${machine.cpu}. Counts do not depend on the machine.`,
    '',
    `| a day, and a month of ${MONTH_DAYS} days | rows in order | one batch in ten with late rows | 1,000 idle tables |`,
    '|---|---:|---:|---:|',
    ...costRows(report),
    '',
  ].join('\n');
}
