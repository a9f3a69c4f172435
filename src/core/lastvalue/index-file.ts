import type { Compress, Decompress } from '../base/codecs.ts';
import { corrupt, invalid, SluiceError } from '../base/errors.ts';
import { INDEX_ROWS_MAX } from '../base/index-limits.ts';
import { PARQUET_READ_ROWS_MAX } from '../base/limits.ts';
import type { Columns } from '../columns/columns.ts';
import { concat } from '../columns/concat.ts';
import { batchAligner } from '../columns/foreign-align.ts';
import type { Schema } from '../iceberg/types.ts';
import type { Encodings } from '../parquet/choose.ts';
import { readParquet } from '../parquet/foreign.ts';
import { isFlat } from '../parquet/layout.ts';
import { footerLength, parseFooter, readWindow } from '../parquet/reader.ts';
import { writeParquet } from '../parquet/writer.ts';

/**
 * The file of a last-value index (contract, section 6): the newest row of each series, in the order of the key, in the
 * table's schema with its field ids; a Parquet file like any other, but for the sorting columns, which it does not state.
 */
export function writeIndex(rows: Columns, encodings: Encodings, compress: Compress): Uint8Array {
  const options = { rowGroupRows: INDEX_ROWS_MAX, encodings, sortingColumns: [], keyValues: [] };
  return writeParquet(rows, options, compress).bytes;
}

/**
 * The rows of an index as columns of `schema`, whoever wrote it. It may be of an older schema: columns are found by their
 * ids, in tables with lists, structs or maps by their names, as the engine finds them all.
 *
 * Throws `corrupt` `parquet-corrupt`; `invalid`: `too-many-rows`, and what the readers of Parquet throw; `rejected` as `concat`.
 */
export function readIndex(bytes: Uint8Array, schema: Schema, decompress: Decompress): Columns {
  try {
    return isFlat(schema) ? readFlat(bytes, schema, decompress) : readNested(bytes, schema, decompress);
  } catch (error) {
    if (error instanceof SluiceError) throw error;
    // Reading beyond the end of damaged bytes.
    throw corrupt('parquet-corrupt', 'last-value index is damaged', {}, error);
  }
}

function readFlat(bytes: Uint8Array, schema: Schema, decompress: Decompress): Columns {
  const length = Math.min(footerLength(bytes), bytes.length);
  const footer = parseFooter(bytes.subarray(bytes.length - length), bytes.length);
  checkRows(footer.rows);
  const whole = { offset: 0, bytes };
  const parts: Columns[] = [];
  footer.rowGroups.forEach(({ rows }, group) => {
    for (let from = 0; from < rows; from += PARQUET_READ_ROWS_MAX) {
      const to = Math.min(rows, from + PARQUET_READ_ROWS_MAX);
      parts.push(readWindow(footer, group, schema, from, to, [whole], decompress));
    }
  });
  return concat(parts, schema);
}

function readNested(bytes: Uint8Array, schema: Schema, decompress: Decompress): Columns {
  const gzip = () => {
    throw invalid('unsupported-compression', 'last-value index is compressed with gzip');
  };
  const body = readParquet(bytes, { zstd: decompress, gzip });
  checkRows(body.rows);
  const align = batchAligner(body.fields, schema, { epochUnit: 'us', filledField: null });
  const parts: Columns[] = [];
  for (const batch of body.batches()) {
    parts.push(
      align(batch, (row, fault) => {
        throw corrupt('parquet-corrupt', `last-value index has a value that is none of its column: row=${row}`, {
          problem: JSON.stringify(fault),
        });
      }),
    );
  }
  return concat(parts, schema);
}

function checkRows(rows: number): void {
  if (rows > INDEX_ROWS_MAX) {
    throw invalid('too-many-rows', `last-value index has more than ${INDEX_ROWS_MAX} rows: ${rows}`);
  }
}
