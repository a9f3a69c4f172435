/**
 * `npm run bench -- <name> [--json] [--rows n] [--runs n]`: runs a benchmark. With `--json` one object goes to standard
 * output, else text for people. `append` takes several numbers of rows: `--rows 1000,10000,100000`.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { benchAppend } from './append.ts';
import { appendText } from './append-text.ts';
import { benchCommits, commitsText } from './commits.ts';
import { benchCompact, COMPACT_CASES } from './compact.ts';
import { compactText } from './compact-text.ts';
import { benchCost, costText } from './cost.ts';
import { benchDay, DAY_APPENDS, dayText, grown } from './day.ts';
import { benchEncode, encodeText } from './encode.ts';
import { benchOrder } from './order.ts';
import { setting } from './report.ts';

/** Of `append`: from one commit of a table to the next a second passes at least. */
const REST_MS = 1100;

/** Of `cost`: two hours. */
const COST_COMMITS = 720;

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: { json: { type: 'boolean', default: false }, rows: { type: 'string' }, runs: { type: 'string' } },
});

function numbers(text: string): number[] {
  const found = text.split(',').map(Number);
  if (found.some((number) => !Number.isSafeInteger(number) || number < 1)) throw new Error(`not a number: ${text}`);
  return found;
}

function print(report: object, text: () => string): void {
  console.log(values.json ? JSON.stringify(report, null, 2) : text());
}

const rows = values.rows === undefined ? null : numbers(values.rows);
const runs = values.runs === undefined ? null : numbers(values.runs)[0];

switch (positionals[0]) {
  case 'append': {
    const report = await benchAppend({ rows: rows ?? [1000, 10_000, 100_000], runs: runs ?? 9, restMs: REST_MS });
    print(report, () => appendText(report));
    break;
  }
  case 'commits': {
    const costs = await benchCommits(runs ?? 2000);
    print({ ...setting('commits', []), costs }, () => commitsText(costs));
    break;
  }
  case 'compact': {
    const report = await benchCompact({
      files: 24,
      rows: rows?.[0] ?? 50_000,
      runs: runs ?? 3,
      cases: COMPACT_CASES,
      pauses: ['day', 'large'],
      extras: true,
    });
    print(report, () => compactText(report));
    break;
  }
  case 'cost': {
    const report = await benchCost(runs ?? COST_COMMITS);
    if (runs === null) {
      const path = join(import.meta.dirname, 'results', `cost-${report.date.slice(0, 10)}`);
      writeFileSync(`${path}.json`, `${JSON.stringify(report, null, 2)}\n`);
      writeFileSync(`${path}.md`, costText(report));
    }
    print(report, () => costText(report));
    break;
  }
  case 'day': {
    const report = await benchDay(runs ?? DAY_APPENDS);
    if (report.appends === DAY_APPENDS) {
      const path = join(import.meta.dirname, 'results', `day-${report.date.slice(0, 10)}`);
      writeFileSync(`${path}.json`, `${JSON.stringify(report, null, 2)}\n`);
      writeFileSync(`${path}.md`, dayText(report));
    }
    print(report, () => dayText(report));
    // A shorter run is still filling up.
    for (const line of report.appends === DAY_APPENDS ? grown(report) : []) {
      console.error(line);
      process.exitCode = 1;
    }
    break;
  }
  case 'encode': {
    const steps = await benchEncode(rows?.[0] ?? 100_000, runs ?? 9);
    const report = { ...setting('encode', ['hyparquet', 'hyparquet-writer']), rows: rows?.[0] ?? 100_000, steps };
    print(report, () => encodeText(steps));
    break;
  }
  case 'order': {
    const result = benchOrder(rows?.[0] ?? 100_000, runs ?? 50);
    const report = { ...setting('order', []), rows: rows?.[0] ?? 100_000, ...result };
    const ms = (value: number) => `${value.toFixed(1).padStart(7)} ms`;
    print(report, () =>
      [
        `${JSON.stringify(result.bytes)}, digest ${result.digest}`,
        ...result.timings.map(
          ({ step, leastMs, medianMs }) => `${step.padEnd(44)} least ${ms(leastMs)}  median ${ms(medianMs)}`,
        ),
      ].join('\n'),
    );
    break;
  }
  default:
    console.error(
      'usage: npm run bench -- append|commits|compact|cost|day|encode|order [--json] [--rows n] [--runs n]',
    );
    process.exitCode = 2;
}
