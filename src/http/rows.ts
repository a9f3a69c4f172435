import { type Detail, invalid } from '../core/base/errors.ts';
import {
  BATCH_COLUMN_BYTES_MAX,
  BODY_BYTES_MAX,
  FLUSH_ROWS_MAX,
  ROW_ERRORS_REPORTED_MAX,
} from '../core/base/limits.ts';
import { hasDecimals, rowAligner, slotBytesOf } from '../core/columns/align.ts';
import { ColumnsBuilder } from '../core/columns/builder.ts';
import type { Columns } from '../core/columns/columns.ts';
import type { RowFault } from '../core/columns/fault.ts';
import type { EpochUnit } from '../core/columns/times.ts';
import type { Schema } from '../core/iceberg/types.ts';
import { readWindows } from './body.ts';
import type { RowReader, RowSink } from './formats/format.ts';
import { jsonReader } from './formats/json-array.ts';
import type { Digits } from './formats/long-numbers.ts';
import { ndjsonReader } from './formats/ndjson.ts';

/** Why a line of the body is not in the columns. */
export interface RowError extends RowFault {
  /** Counted from 1: the line of the body, or the element of a JSON array. */
  line: number;
}

export interface RowsOptions {
  /** `refuse`: one bad row refuses the batch. `skip`: bad rows are left out and reported. */
  onError: 'refuse' | 'skip';
  /** What a number counts in a timestamp column; the table property `sluice.epoch-unit`. */
  epochUnit: EpochUnit;
  /** The column that the flush fills where it is null (`_ingest_ts`), or null. It may be missing from every row. */
  ingestTimeField: string | null;
  rowsMax?: number;
  /** Inflated bytes of the body. */
  bytesMax?: number;
  /** Bytes parsed at a time; only tests have a reason to change it. */
  windowBytes?: number;
}

export interface RowsRequest {
  body: ReadableStream<Uint8Array> | null;
  contentType: string | null;
  contentEncoding: string | null;
  /** The current schema of the table. */
  schema: Schema;
  options: RowsOptions;
}

export interface RowsRead {
  columns: Columns;
  /** Rows in the body, bad ones included. */
  rowsRead: number;
  /** The first `ROW_ERRORS_REPORTED_MAX`. */
  errors: RowError[];
  errorCount: number;
  /** SHA-256 of the inflated body. */
  digest: Uint8Array;
  /** Bytes of the inflated body. */
  bytes: number;
}

/**
 * Reads the rows of a request into typed columns of the table's schema: in windows, never the whole body parsed at once.
 * All or nothing: whatever is refused here has written nothing.
 *
 * A body without rows (`[]`) gives zero rows; an empty body is refused. With `skip` the columns may be empty too.
 *
 * Throws `invalid`: `unsupported-media-type`, what `readWindows` and the reader of the format throw, `too-many-rows`, and,
 * with `refuse`, `invalid-rows`, whose detail has `errors`, `errorCount` and `complete`: false when reading ended at
 * `ROW_ERRORS_REPORTED_MAX` errors, so that there may be more.
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
  const builder = new ColumnsBuilder(schema);
  const align = rowAligner(builder, { epochUnit, filledField: ingestTimeField, textual: false });
  const errors: RowError[] = [];
  let errorCount = 0;
  let rowsRead = 0;

  function report(line: number, fault: RowFault): void {
    errorCount++;
    if (errors.length < ROW_ERRORS_REPORTED_MAX) errors.push({ line, ...fault });
    else if (onError === 'refuse') throw invalidRows(errors, errorCount, false);
  }

  const rowsFit = Math.floor(BATCH_COLUMN_BYTES_MAX / Math.max(1, slotBytesOf(schema.fields)));

  function count(): void {
    if (++rowsRead > rowsMax) throw invalid('too-many-rows', `batch has more than ${rowsMax} rows`, { rowsMax });
    if (rowsRead > rowsFit) {
      const message = `batch into ${schema.fields.length} columns has more than ${rowsFit} rows: split it`;
      throw invalid('too-many-rows', message, { rowsMax: rowsFit });
    }
  }

  const sink: RowSink = {
    row(row, line) {
      count();
      const fault = align(row);
      if (fault !== null) report(line, fault);
    },
    fault(line, type, message, text) {
      count();
      report(line, { type, field: null, message, ...(text === undefined ? {} : { value: text }) });
    },
  };
  const digits: Digits = hasDecimals(schema.fields) ? 'decimals' : 'integers';
  const reader: RowReader = format === 'ndjson' ? ndjsonReader(sink, { digits }) : jsonReader(sink, { digits });
  const { windowBytes } = options;
  const facts = await readWindows(body, { contentEncoding, bytesMax, windowBytes }, (window, last) =>
    reader.take(window, last),
  );
  if (onError === 'refuse' && errorCount > 0) throw invalidRows(errors, errorCount, true);
  return { columns: builder.finish(), rowsRead, errors, errorCount, ...facts };
}

function invalidRows(errors: RowError[], errorCount: number, complete: boolean) {
  const first = errors[0];
  const message = `batch has ${complete ? errorCount : `at least ${errorCount}`} bad rows, first at line ${first.line}: ${first.message}`;
  return invalid('invalid-rows', message, {
    errors: errors.map((error): { [key: string]: Detail } => ({ ...error })),
    errorCount,
    complete,
  });
}

const MEDIA_TYPES: ReadonlyMap<string, 'ndjson' | 'json'> = new Map([
  ['application/x-ndjson', 'ndjson'],
  ['application/ndjson', 'ndjson'],
  ['application/jsonl', 'ndjson'],
  ['application/x-jsonlines', 'ndjson'],
  ['application/json', 'json'],
]);

/** The format that a `Content-Type` names. Nothing is guessed from the body. */
function formatOf(contentType: string | null): 'ndjson' | 'json' {
  const [name, ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase());
  const format = MEDIA_TYPES.get(name);
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))?.slice('charset='.length);
  if (format !== undefined && (charset === undefined || /^"?utf-?8"?$/.test(charset))) return format;
  const supported = [...MEDIA_TYPES.keys()];
  const given = contentType === null ? 'none' : contentType.slice(0, 100).toWellFormed();
  throw invalid(
    'unsupported-media-type',
    `content-type must be application/x-ndjson or application/json in UTF-8: ${given}`,
    {
      supported,
    },
  );
}
