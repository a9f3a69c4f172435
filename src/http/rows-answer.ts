import { batchMessage, END_OF_STREAM, schemaMessage } from '../core/arrow/write.ts';
import { utf8 } from '../core/base/bytes.ts';
import { invalid } from '../core/base/errors.ts';
import { ARROW_BATCH_ROWS } from '../core/base/limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { slice } from '../core/columns/gather.ts';
import { jsonElements, jsonLines } from '../core/columns/json-rows.ts';
import type { LatestFound } from '../read/latest.ts';
import type { RowsFound } from '../read/rows.ts';

/** What is told about an answer of rows: members of the JSON object, and headers `x-sluice-…` in every format. */
export type RowFacts = Readonly<Record<string, string | number | boolean | null>>;

/** Names of what is told, of rows and of newest rows. */
export const ROWS_FACTS: readonly (keyof RowsFound['facts'] | keyof LatestFound['facts'])[] = [
  'version',
  'snapshot_id',
  'more',
  'files_considered',
  'files_read',
  'bytes_read',
  'source',
  'buffered_rows',
];

/** The header of a fact. */
export function factHeader(name: string): string {
  return `x-sluice-${name.replaceAll('_', '-')}`;
}

export type RowsFormat = 'json' | 'ndjson' | 'arrow';

/** Media types that rows are answered in, the first that fits being taken. */
const FORMATS: readonly (readonly [type: string, format: RowsFormat])[] = [
  ['application/json', 'json'],
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
  ['application/jsonl', 'ndjson'],
  ['application/x-jsonlines', 'ndjson'],
  ['application/vnd.apache.arrow.stream', 'arrow'],
];

/** What `Accept` may ask for. */
export const ROWS_ANSWER_TYPES: readonly string[] = [
  'application/json',
  'application/x-ndjson',
  'application/vnd.apache.arrow.stream',
];

/**
 * The format that `Accept` asks for (RFC 9110, section 12.5.1), JSON where it does not say.
 *
 * @throws invalid `not-acceptable`
 */
export function rowsFormat(accept: string | undefined): { format: RowsFormat; type: string } {
  const ranges = (accept ?? '').split(',').flatMap((part) => rangeOf(part));
  if (ranges.length === 0) return { format: 'json', type: 'application/json' };
  let best: { format: RowsFormat; type: string; weight: number } | null = null;
  for (const [type, format] of FORMATS) {
    const weight = weightOf(type, ranges);
    if (weight > (best?.weight ?? 0)) best = { format, type, weight };
  }
  if (best !== null) return best;
  throw invalid(
    'not-acceptable',
    `rows are answered in none of the types that are accepted: ${(accept ?? '').slice(0, 200)}`,
    {
      supported: [...ROWS_ANSWER_TYPES],
    },
  );
}

interface Range {
  range: string;
  weight: number;
}

function rangeOf(part: string): Range[] {
  const [range, ...parameters] = part.split(';').map((text) => text.trim().toLowerCase());
  if (range === '') return [];
  const given = parameters.find((parameter) => parameter.startsWith('q='));
  const weight = given === undefined ? 1 : Number(given.slice(2));
  return [{ range, weight: weight >= 0 && weight <= 1 ? weight : 0 }];
}

/** The weight of the range that names the type most closely. */
function weightOf(type: string, ranges: readonly Range[]): number {
  for (const name of [type, `${type.slice(0, type.indexOf('/'))}/*`, '*/*']) {
    const found = ranges.find(({ range }) => range === name);
    if (found !== undefined) return found.weight;
  }
  return 0;
}

/** Rows as a response, made a piece at a time while it is sent. */
export function rowsResponse(
  { format, type }: { format: RowsFormat; type: string },
  columns: Columns,
  facts: RowFacts,
): Response {
  const headers = new Headers({ 'content-type': type, vary: 'Accept' });
  for (const [name, value] of Object.entries(facts)) {
    if (value !== null) headers.set(factHeader(name), String(value));
  }
  return new Response(streamOf(PIECES[format](columns, facts)), { headers });
}

type Pieces = (columns: Columns, facts: RowFacts) => Iterable<Uint8Array>;

const PIECES: Readonly<Record<RowsFormat, Pieces>> = {
  *json(columns, facts) {
    const head = JSON.stringify(facts).slice(0, -1);
    yield utf8(`${head}${head === '{' ? '' : ','}"rows":[`);
    yield* jsonElements(columns);
    yield utf8(']}');
  },
  ndjson: (columns) => jsonLines(columns),
  *arrow(columns) {
    yield schemaMessage(columns.schema);
    for (let from = 0; from < columns.rows; from += ARROW_BATCH_ROWS) {
      yield batchMessage(slice(columns, from, Math.min(columns.rows, from + ARROW_BATCH_ROWS)));
    }
    yield END_OF_STREAM;
  },
};

/** The next piece is made when it is asked for, and none any more once the client has gone. */
function streamOf(pieces: Iterable<Uint8Array>): ReadableStream<Uint8Array> {
  const iterator = pieces[Symbol.iterator]();
  return new ReadableStream({
    pull(controller) {
      const { done, value } = iterator.next();
      if (done === true) controller.close();
      else controller.enqueue(value);
    },
    cancel() {
      iterator.return?.();
    },
  });
}
