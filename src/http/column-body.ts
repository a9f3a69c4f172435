import { readArrowFile, readArrowStream } from '../core/arrow/read.ts';
import { BODY_BYTES_MAX, BODY_WINDOW_BYTES, FLUSH_ROWS_MAX, ROW_ERRORS_REPORTED_MAX } from '../core/base/limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { concat } from '../core/columns/concat.ts';
import type { RowFault } from '../core/columns/fault.ts';
import type { ForeignBatch, ForeignField } from '../core/columns/foreign.ts';
import { batchAligner } from '../core/columns/foreign-align.ts';
import { foreignSchema } from '../core/columns/foreign-proposal.ts';
import { gather } from '../core/columns/gather.ts';
import type { Schema } from '../core/iceberg/types.ts';
import { readParquet } from '../core/parquet/foreign.ts';
import { decompressGzip, decompressZstd } from '../platform/zlib.ts';
import { type BodyFacts, type BodyOptions, readWindows } from './body.ts';
import { type Collected, invalidRows, rowBudget, rowBytesOf, takeRows } from './row-collector.ts';
import type { RowsRead, RowsRequest } from './rows.ts';

/** Formats that come by column. */
export type ColumnFormat = 'arrow-stream' | 'arrow-file' | 'parquet';

/** What each of these formats is taken apart into. */
interface ColumnBody {
  fields: ForeignField[];
  rows: number;
  batches(): Generator<ForeignBatch>;
}

/**
 * Reads a body of columns into those of the table: whole, since a Parquet file is read from its end, and Arrow's columns
 * stay where they lie in it. Row numbers in errors count from 1, over all batches.
 *
 * Throws `invalid`: what `readWindows`, `readArrowStream`, `readParquet` and `batchAligner` throw, `too-many-rows`, and,
 * with `refuse`, `invalid-rows`.
 */
export async function readColumnBody(
  format: ColumnFormat,
  { body, contentEncoding, schema, options }: Omit<RowsRequest, 'contentType'>,
): Promise<RowsRead> {
  const { bytesMax = BODY_BYTES_MAX, windowBytes, digested } = options;
  const { whole, facts } = await readWhole(body, { contentEncoding, bytesMax, windowBytes, digested });
  return { ...collect(columnBodyOf(format, whole), schema, options), ...facts };
}

export function columnBodyOf(format: ColumnFormat, bytes: Uint8Array): ColumnBody {
  switch (format) {
    case 'arrow-stream':
      return readArrowStream(bytes, decompressZstd);
    case 'arrow-file':
      return readArrowFile(bytes, decompressZstd);
    case 'parquet':
      return readParquet(bytes, { zstd: decompressZstd, gzip: decompressGzip });
  }
}

/** The inflated body, from the start of a buffer of its own: parts of it become typed arrays, which need their places. */
export async function readWhole(
  body: ReadableStream<Uint8Array> | null,
  { bytesMax = BODY_BYTES_MAX, ...given }: BodyOptions,
): Promise<{ whole: Uint8Array; facts: BodyFacts }> {
  const options = { ...given, bytesMax };
  let buffer = new Uint8Array(BODY_WINDOW_BYTES);
  let end = 0;
  const facts = await readWindows(body, options, (window) => {
    if (end + window.length > buffer.length) {
      const grown = new Uint8Array(Math.max(end + window.length, Math.min(2 * buffer.length, options.bytesMax)));
      grown.set(buffer.subarray(0, end));
      buffer = grown;
    }
    buffer.set(window, end);
    end += window.length;
    return window.length;
  });
  return { whole: buffer.subarray(0, end), facts };
}

function collect(body: ColumnBody, table: Schema, options: RowsRequest['options']): Collected {
  const { onError, epochUnit, epochUnits, ingestTimeField, rowsMax = FLUSH_ROWS_MAX } = options;
  const evolves = options.evolves === true;
  const schema = evolves ? foreignSchema(body.fields, table) : table;
  takeRows(rowBudget(rowsMax), schema, rowBytesOf(schema), body.rows);
  const align = batchAligner(body.fields, schema, { epochUnit, epochUnits, filledField: ingestTimeField, evolves });
  /** By row, the first fault of each. */
  const faults = new Map<number, RowFault>();
  const parts: Columns[] = [];
  let before = 0;
  for (const batch of body.batches()) {
    const from = before;
    const columns = align(batch, (row, fault) => {
      if (!faults.has(from + row)) faults.set(from + row, fault);
    });
    parts.push(columns);
    before += batch.rows;
  }
  const bad = [...faults.keys()].sort((a, b) => a - b);
  const errors = bad.slice(0, ROW_ERRORS_REPORTED_MAX).map((row) => ({ line: row + 1, ...faults.get(row)! }));
  if (onError === 'refuse' && bad.length > 0) throw invalidRows(errors, bad.length, true);
  const columns = joined(parts, schema);
  return {
    columns: bad.length === 0 ? columns : gather(columns, others(bad, before)),
    rowsRead: before,
    errors,
    errorCount: bad.length,
  };
}

/** Required columns have nulls here where rows are bad, and where the flush will fill them. */
function joined(parts: readonly Columns[], schema: Schema): Columns {
  const relaxed = { ...schema, fields: schema.fields.map((field) => ({ ...field, required: false })) };
  return { ...concat(parts, relaxed), schema };
}

/** The rows that are not among `bad`, which is in order. */
function others(bad: readonly number[], rows: number): Int32Array {
  const out = new Int32Array(rows - bad.length);
  let next = 0;
  let at = 0;
  for (let row = 0; row < rows; row++) {
    if (bad[next] === row) next++;
    else out[at++] = row;
  }
  return out;
}
