import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { type CostReport, costRows, IN_MEMORY_MONTH, PRICES, SWEEPS_A_DAY } from '../bench/cost.ts';
import {
  INDEX_BYTES_MAX,
  INDEX_FILE_BYTES_MAX,
  INDEX_ROWS_MAX,
  INDEX_SCAN_BYTES_MAX,
  INDEX_SCAN_FILES_MAX,
  LAST_VALUE_SERIES_DEFAULT,
  LATEST_SCAN_BYTES_MAX,
  LATEST_SCAN_FILES_MAX,
} from '../src/core/base/index-limits.ts';
import {
  BATCH_COLUMN_BYTES_MAX,
  BATCH_MEMORY_MS,
  BATCH_PARTITIONS_MAX,
  BODY_BYTES_MAX,
  BUFFER_BYTES_MAX,
  BUFFER_FRAMES_MAX,
  COLUMN_NAME_BYTES_MAX,
  ENQUEUE_BODY_BYTES_MAX,
  ENQUEUE_MESSAGE_BYTES,
  FLUSH_BYTES_DEFAULT,
  FLUSH_INTERVAL_DEFAULT_MS,
  FLUSH_INTERVAL_MIN_MS,
  FLUSH_ROWS_MAX,
  INFER_BYTES_MAX,
  INFER_ROWS_MAX,
  LINE_BYTES_MAX,
  METRICS_TABLES_MAX,
  NEW_COLUMNS_MAX,
  POINT_TABLES_MAX,
  PROPERTIES_MAX,
  PROPERTY_BYTES_MAX,
  QUERY_VALUES_MAX,
  QUEUE_DELIVERIES_MAX,
  QUEUE_MESSAGE_BYTES_MAX,
  QUEUE_RETRY,
  QUEUE_SEND_BYTES_MAX,
  QUEUE_SEND_MESSAGES_MAX,
  QUEUE_SETTINGS_MAX,
  REFS_MAX,
  ROW_BLOB_BYTES_MAX,
  SCHEMA_DEPTH_MAX,
  SCHEMA_FIELDS_MAX,
  TOKENS_MAX,
  WAIT_MAX_MS,
  WAITERS_MAX,
  ZSTD_FRAMES_MAX,
} from '../src/core/base/limits.ts';
import {
  ROWS_ANSWER_BYTES_MAX,
  ROWS_GENERAL_BYTES_MAX,
  ROWS_LIMIT,
  ROWS_READ_BYTES_MAX,
  ROWS_READ_FILES_MAX,
  ROWS_READ_REQUESTS_MAX,
} from '../src/core/base/read-limits.ts';
import { epochUnitKey, SETTINGS } from '../src/core/table/properties.ts';

/** What the README says of properties and limits is what the code has. Routes are held against it with their document. */
const readme = readFileSync(join(import.meta.dirname, '../README.md'), 'utf8');
const contract = readFileSync(join(import.meta.dirname, '../docs/timelake-contract.md'), 'utf8');

const rowsOut = readFileSync(join(import.meta.dirname, '../docs/rows-out.md'), 'utf8');

/** Text below a heading up to the next one, as one line. */
function section(heading: string): string {
  const [, text = ''] = rowsOut.split(`\n## ${heading}\n`);
  return text.split('\n## ')[0].replaceAll('\n', ' ');
}

/** Cells of the table whose first row begins with `head`, by the first cell. */
function table(head: string): Map<string, string[]> {
  const lines = readme.split('\n');
  const from = lines.findIndex((line) => line.startsWith(`| ${head} |`));
  const to = lines.findIndex((line, i) => i > from && !line.startsWith('|'));
  const rows = lines.slice(from + 2, to).map((line) =>
    line
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  );
  return new Map(rows.map(([first, ...rest]) => [first, rest]));
}

const count = (value: number): string => value.toLocaleString('en');
const mib = (bytes: number): string => `${bytes / 1024 / 1024} MiB`;
const seconds = (ms: number): string => `${ms / 1000} s`;

describe('readme', () => {
  test('properties: all of the service, no others, with their defaults', () => {
    const rows = table('property');
    const told = [...rows.keys()].flatMap((cell) => [...cell.matchAll(/`([^`]+)`/g)].map(([, key]) => key));
    const known = [...SETTINGS.keys()].filter((key) => key.startsWith('sluice.'));
    expect(told.sort()).toEqual([...known, epochUnitKey('<column>'), 'timelake.*'].sort());
    const interval = rows.get('`sluice.flush-interval`')?.join(' ');
    expect(interval).toContain(`\`${FLUSH_INTERVAL_MIN_MS / 1000}s\` to \`1h\``);
    expect(interval).toContain(`\`${FLUSH_INTERVAL_DEFAULT_MS / 1000}s\``);
    expect(rows.get('`sluice.flush-rows`, `sluice.flush-bytes`')?.[1]).toBe(
      `${count(FLUSH_ROWS_MAX)}; ${mib(FLUSH_BYTES_DEFAULT)}`,
    );
  });

  test('costs: what was counted last, at the prices that are named', () => {
    const results = join(import.meta.dirname, '../bench/results');
    const last = readdirSync(results).filter((name) => /^cost-.*\.json$/.test(name));
    const report = JSON.parse(readFileSync(join(results, last.sort().at(-1) ?? ''), 'utf8')) as CostReport;
    for (const row of costRows(report)) expect(readme).toContain(`\n${row}\n`);
    expect(readme).toContain(`it reads ${report.idle.rowsRead} rows of its database, writes none`);
    expect(report.idle).toMatchObject({ classA: 0, classB: 0, rowsWritten: 0 });
    const { classA, classB, rowsWritten, rowsRead, objectRequests } = PRICES;
    for (const price of [
      `$${classA.toFixed(2)} a million operations of class A`,
      `$${classB} of class B`,
      `$${rowsWritten} a million rows written`,
      `$${rowsRead} read`,
      `$${objectRequests} a million requests`,
      `at most $${IN_MEMORY_MONTH.toFixed(2)} a month`,
    ]) {
      expect(readme).toContain(price);
    }
    const wrangler = readFileSync(join(import.meta.dirname, '../wrangler.toml'), 'utf8');
    expect(/^crons = (.*)$/m.exec(wrangler)?.[1]).toBe(`["*/${(24 * 60) / SWEEPS_A_DAY} * * * *"]`);
  });

  test('properties: those of the engine are in its contract', () => {
    const missing = [...SETTINGS.keys()].filter((key) => key.startsWith('timelake.') && !contract.includes(key));
    expect(missing).toEqual([]);
  });

  test('limits: each figure is that of the code', () => {
    const expected: Record<string, readonly string[]> = {
      'body of one request, inflated': [mib(BODY_BYTES_MAX), `${count(FLUSH_ROWS_MAX)} rows`],
      'a batch as typed columns, texts spelled out': [mib(BATCH_COLUMN_BYTES_MAX)],
      'one row': [mib(LINE_BYTES_MAX)],
      'compressed body': [`${count(ZSTD_FRAMES_MAX)} frames of zstd`],
      'measurements of one write of points': [count(POINT_TABLES_MAX)],
      'body of one `/enqueue`, inflated': [
        mib(ENQUEUE_BODY_BYTES_MAX),
        `${count(FLUSH_ROWS_MAX)} rows`,
        `${count(ENQUEUE_MESSAGE_BYTES)} bytes a row`,
      ],
      "one queue message, one send of several (the platform's)": [
        `${count(QUEUE_MESSAGE_BYTES_MAX)} bytes`,
        `${count(QUEUE_SEND_BYTES_MAX)} bytes and ${count(QUEUE_SEND_MESSAGES_MAX)} messages`,
      ],
      'deliveries of a message, delay between them': [
        `${count(QUEUE_DELIVERIES_MAX)}; ${seconds(QUEUE_RETRY.baseMs)} to ${seconds(QUEUE_RETRY.capMs)}`,
      ],
      'entries of `QUEUE_TABLES`, of `QUEUE_TABLE`': [count(QUEUE_SETTINGS_MAX)],
      'rows of a sample that are looked at, and bytes of text': [`${count(INFER_ROWS_MAX)}; ${mib(INFER_BYTES_MAX)}`],
      'tables on one page of metrics': [count(METRICS_TABLES_MAX)],
      'tokens of one variable': [count(TOKENS_MAX)],
      "fields of a schema, levels of nesting, bytes of a column's name": [
        `${count(SCHEMA_FIELDS_MAX)}; ${SCHEMA_DEPTH_MAX}; ${COLUMN_NAME_BYTES_MAX}`,
      ],
      'properties that a request sets, characters of one': [`${PROPERTIES_MAX}; ${count(PROPERTY_BYTES_MAX)}`],
      'branches and tags of a table': [count(REFS_MAX)],
      'columns that a batch may add': [count(NEW_COLUMNS_MAX)],
      'what a batch asks of the schema, as JSON': [mib(ROW_BLOB_BYTES_MAX)],
      'partitions of one batch': [count(BATCH_PARTITIONS_MAX)],
      'buffered rows of one table': [mib(BUFFER_BYTES_MAX), `${count(BUFFER_FRAMES_MAX)} batches`],
      'callers waiting for a commit': [`${count(WAITERS_MAX)} a table`, `${seconds(WAIT_MAX_MS)} each`],
      'memory of batch ids and receipts': [`${BATCH_MEMORY_MS / 86_400_000} days`],
      'rows of one answer, values that a request names to choose them': [
        `${count(ROWS_LIMIT.default)}, at most ${count(ROWS_LIMIT.max)}; ${count(QUERY_VALUES_MAX)}`,
      ],
      'what one request for rows reads, what its answer holds': [
        `${mib(ROWS_READ_BYTES_MAX)} of ${count(ROWS_READ_FILES_MAX)} data files, in ${count(ROWS_READ_REQUESTS_MAX)} parts`,
        `${mib(ROWS_ANSWER_BYTES_MAX)} of values`,
      ],
      'what is looked through for newest rows without an index, and to make one': [
        `${mib(LATEST_SCAN_BYTES_MAX)} of ${count(LATEST_SCAN_FILES_MAX)} data files; ${mib(INDEX_SCAN_BYTES_MAX)} of ${count(INDEX_SCAN_FILES_MAX)}`,
      ],
      'one last-value index': [
        `${mib(INDEX_BYTES_MAX)}, ${count(INDEX_ROWS_MAX)} series; ${count(LAST_VALUE_SERIES_DEFAULT)}`,
        mib(INDEX_FILE_BYTES_MAX),
      ],
    };
    const rows = table('what');
    for (const [what, figures] of Object.entries(expected)) {
      for (const figure of figures) expect(rows.get(what)?.[0], what).toContain(figure);
    }
    // A row that nobody holds against the code would be believed all the same.
    expect([...rows.keys()].filter((what) => !(what in expected))).toEqual([]);
  });

  test('looking at rows: each figure is that of the code', () => {
    const rows = section('Looking at rows');
    for (const figure of [
      `(${count(ROWS_LIMIT.default)} by default, at most ${count(ROWS_LIMIT.max)};`,
      `reads at most ${mib(ROWS_READ_BYTES_MAX)} of at most ${count(ROWS_READ_FILES_MAX)} files`,
      `at most ${mib(ROWS_ANSWER_BYTES_MAX)} of values`,
      `at most ${mib(ROWS_GENERAL_BYTES_MAX)} of memory`,
    ]) {
      expect(rows).toContain(figure);
    }
    const newest = section('Newest rows');
    for (const figure of [`up to ${mib(LATEST_SCAN_BYTES_MAX)} of`, `up to ${mib(INDEX_SCAN_BYTES_MAX)}`]) {
      expect(newest).toContain(figure);
    }
  });
});
