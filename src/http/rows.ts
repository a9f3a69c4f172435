import { invalid } from '../core/base/errors.ts';
import { BODY_BYTES_MAX, FLUSH_ROWS_MAX } from '../core/base/limits.ts';
import { hasDecimals } from '../core/columns/align.ts';
import type { EpochUnit } from '../core/columns/times.ts';
import type { Schema } from '../core/iceberg/types.ts';
import { readWindows } from './body.ts';
import { type ColumnFormat, readColumnBody } from './column-body.ts';
import { csvReader, delimiterOf } from './formats/csv.ts';
import type { RowReader, RowSink } from './formats/format.ts';
import { jsonReader } from './formats/json-array.ts';
import type { Digits } from './formats/long-numbers.ts';
import { ndjsonReader } from './formats/ndjson.ts';
import { type Collected, rowBudget, rowCollector } from './row-collector.ts';

export type { RowError } from './row-collector.ts';

export interface RowsOptions {
  /** `refuse`: one bad row refuses the batch. `skip`: bad rows are left out and reported. */
  onError: 'refuse' | 'skip';
  /** What a number counts in a timestamp column; the table property `sluice.epoch-unit`. */
  epochUnit: EpochUnit;
  /** Columns that have a unit of their own; `sluice.epoch-unit.<column>`. */
  epochUnits?: ReadonlyMap<string, EpochUnit>;
  /** Rows bring new columns and wider types with them; `sluice.schema-evolution`. */
  evolves?: boolean;
  /** The column that the flush fills where it is null (`_ingest_ts`), or null. It may be missing from every row. */
  ingestTimeField: string | null;
  /** What is between the values of CSV: a character, or the name of one (`delimiterOf`). For CSV alone. */
  delimiter?: string | null;
  rowsMax?: number;
  /** Inflated bytes of the body. */
  bytesMax?: number;
  /** Bytes parsed at a time; only tests have a reason to change it. */
  windowBytes?: number;
  /** False: no digest is wanted (`readWindows`). */
  digested?: boolean;
}

export interface RowsRequest {
  body: ReadableStream<Uint8Array> | null;
  contentType: string | null;
  contentEncoding: string | null;
  /** The current schema of the table. */
  schema: Schema;
  options: RowsOptions;
}

export interface RowsRead extends Collected {
  /** SHA-256 of the inflated body, if wanted. */
  digest: Uint8Array;
  /** Bytes of the inflated body. */
  bytes: number;
}

/**
 * Reads the rows of a request into typed columns of the table's schema: in windows, never the whole body parsed at once.
 * All or nothing: whatever is refused here has written nothing.
 *
 * A body without rows (`[]`, a CSV header) gives zero rows; an empty body is refused. With `skip` the columns may be
 * empty too.
 *
 * Throws `invalid`: `unsupported-media-type`, `malformed`, what `readWindows` and the reader of the format throw, and
 * what `rowCollector` throws.
 */
export async function readRows({
  body,
  contentType,
  contentEncoding,
  schema,
  options,
}: RowsRequest): Promise<RowsRead> {
  const { onError, epochUnit, ingestTimeField, rowsMax = FLUSH_ROWS_MAX, bytesMax = BODY_BYTES_MAX } = options;
  const format = formatOf(contentType);
  const given = options.delimiter ?? null;
  if (given !== null && format !== 'csv' && format !== 'tsv') {
    throw invalid('malformed', `delimiter is for text/csv: ${given.slice(0, 100)}`);
  }
  if (isColumnar(format)) return readColumnBody(format, { body, contentEncoding, schema, options });
  const collector = rowCollector(schema, rowBudget(rowsMax), {
    onError,
    epochUnit,
    epochUnits: options.epochUnits,
    evolve: options.evolves === true ? 'json' : undefined,
    filledField: ingestTimeField,
    textual: format === 'csv' || format === 'tsv',
  });
  const reader = readerOf(format, collector, { schema, delimiter: given, evolves: options.evolves });
  const { windowBytes, digested } = options;
  const facts = await readWindows(body, { contentEncoding, bytesMax, windowBytes, digested }, (window, last) =>
    reader.take(window, last),
  );
  return { ...collector.finish(), ...facts };
}

type Format = TextFormat | ColumnFormat;
type TextFormat = 'ndjson' | 'json' | 'csv' | 'tsv';

interface ReaderOptions {
  schema: Schema;
  delimiter: string | null;
  /** Columns that the schema lacks are no fault. */
  evolves?: boolean;
}

export function readerOf(format: TextFormat, sink: RowSink, { schema, delimiter, evolves }: ReaderOptions): RowReader {
  switch (format) {
    case 'ndjson':
      return ndjsonReader(sink, { digits: digitsOf(schema) });
    case 'json':
      return jsonReader(sink, { digits: digitsOf(schema) });
    case 'csv':
    case 'tsv':
      return csvReader(sink, { schema, delimiter: delimiterOf(delimiter ?? (format === 'csv' ? ',' : '\t')), evolves });
  }
}

/** Which numbers a double must not round on their way into the columns of a schema. */
export function digitsOf(schema: Schema): Digits {
  return hasDecimals(schema.fields) ? 'decimals' : 'integers';
}

const MEDIA_TYPES: ReadonlyMap<string, Format> = new Map([
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
  ['application/jsonl', 'ndjson'],
  ['application/x-jsonlines', 'ndjson'],
  ['application/json', 'json'],
  ['text/csv', 'csv'],
  ['application/csv', 'csv'],
  ['text/tab-separated-values', 'tsv'],
  ['application/vnd.apache.arrow.stream', 'arrow-stream'],
  ['application/vnd.apache.arrow.file', 'arrow-file'],
  ['application/vnd.apache.parquet', 'parquet'],
]);

/** What `Content-Type` may say of a body of rows. */
export const ROW_MEDIA_TYPES: readonly string[] = [...MEDIA_TYPES.keys()];

/** Those of them that are JSON. */
export const JSON_MEDIA_TYPES: readonly string[] = ROW_MEDIA_TYPES.filter((type) =>
  ['ndjson', 'json'].includes(MEDIA_TYPES.get(type) ?? ''),
);

export function isColumnar(format: Format): format is ColumnFormat {
  return format === 'arrow-stream' || format === 'arrow-file' || format === 'parquet';
}

/** The format that a `Content-Type` names. Nothing is guessed from the body. Throws `invalid` `unsupported-media-type`. */
export function formatOf(contentType: string | null): Format {
  const [name, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const format = MEDIA_TYPES.get(name);
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  const isUtf8 = charset === undefined || /^"?utf-?8"?$/.test(charset);
  const supported = [...ROW_MEDIA_TYPES];
  if (format !== undefined && isUtf8) {
    // RFC 4180 section 3: names of columns are what ties values to a table.
    if (!parameters.includes('header=absent')) return format;
    throw invalid('unsupported-media-type', 'csv must begin with a line of column names: header=absent', { supported });
  }
  const given = contentType === null ? 'none' : contentType.slice(0, 100).toWellFormed();
  const message = `content-type must be one of those supported, text in UTF-8: ${given}`;
  throw invalid('unsupported-media-type', message, { supported });
}
