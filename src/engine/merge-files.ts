import { COMPACT_NESTED_RUN_BYTES_MAX, COMPACT_NESTED_RUN_VALUES_MAX } from '../core/base/compact-limits.ts';
import {
  COMPACT_RUN_BYTES_MAX,
  COMPACT_RUN_FILES_MAX,
  COMPACT_WINDOW_BYTES,
  COMPACT_WINDOW_ROWS,
} from '../core/base/limits.ts';
import { byteSizeOf } from '../core/columns/row-bytes.ts';
import { currentOf, dedupOf } from '../core/commit/make-files.ts';
import type { DataFile, Schema } from '../core/iceberg/types.ts';
import { Merger } from '../core/maintain/merge.ts';
import { nestedValuesGuessed, rowBytesGuessed } from '../core/maintain/row-guess.ts';
import { isFlat } from '../core/parquet/layout.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { WindowPorts } from './file-windows.ts';
import { type MergeInput, ofFile, openInputs } from './merge-inputs.ts';
import { OutputFiles, type OutputPlan, type OutputPorts } from './output-files.ts';
import { runBounded } from './uploader.ts';

export interface MergedFiles {
  outputs: DataFile[];
  /** Rows that lost against another of their key. */
  duplicates: number;
}

/** Bytes of Parquet that one slice merges. */
export function runBytesMaxOf(schema: Schema): number {
  return isFlat(schema) ? COMPACT_RUN_BYTES_MAX : COMPACT_NESTED_RUN_BYTES_MAX;
}

/** Rows that one slice merges. */
export function runRowsMaxOf(schema: Schema): number {
  return isFlat(schema)
    ? Number.POSITIVE_INFINITY
    : Math.floor(COMPACT_NESTED_RUN_VALUES_MAX / nestedValuesGuessed(schema));
}

/** Files whose windows fit the budget together. */
export function runFilesMax(schema: Schema): number {
  const fit = Math.floor(COMPACT_WINDOW_BYTES / (COMPACT_WINDOW_ROWS.min * rowBytesGuessed(schema)));
  return Math.max(2, Math.min(COMPACT_RUN_FILES_MAX, fit));
}

/** Rows of a window: a power of two, so that windows end where pages do. */
export function windowRows(files: number, rowBytes: number): number {
  const fit = COMPACT_WINDOW_BYTES / (files * Math.max(1, rowBytes));
  const rows = 2 ** Math.floor(Math.log2(Math.max(1, fit)));
  return Math.max(COMPACT_WINDOW_ROWS.min, Math.min(COMPACT_WINDOW_ROWS.max, rows));
}

/**
 * Merges files of one partition, the oldest first, into new ones, and uploads those. What is in memory is bounded: a window of each
 * input and what the general reader holds of it, files that have to be sorted, the rows of a step, a row group, a part.
 *
 * @throws corrupt `data-file-missing`, `parquet-corrupt`; invalid `parquet-unsupported`, all with `INPUT_PATH`; invalid
 * `unsorted-input`; HeldTooMuch; StoreError
 */
export async function mergeFiles(
  ports: WindowPorts & OutputPorts,
  inputs: readonly MergeInput[],
  plan: OutputPlan,
): Promise<MergedFiles> {
  const { schema, sortOrder } = currentOf(plan.metadata);
  const dedup = dedupOf(schema, tableSettings(plan.metadata.properties));
  const by = {
    schema,
    order: sortOrder,
    dedup: dedup === undefined ? ('none' as const) : { ingestTimeId: dedup.ingestTimeId },
  };
  const files = await openInputs(ports, inputs, plan.metadata);
  const merger = new Merger(by, inputs.length);
  const outputs = new OutputFiles(ports, plan);
  let rowBytes = 0;
  try {
    while (!merger.isDone) {
      const rows = windowRows(inputs.length, rowBytes === 0 ? rowBytesGuessed(schema) : rowBytes);
      await runBounded(
        merger.wanting(rows / 2).map((input) => async () => {
          const { window, isLast } = await ofFile(inputs[input].file, files[input].next(rows));
          // What rows really take makes later windows larger or smaller.
          if (window.rows > 0) rowBytes = Math.max(rowBytes, byteSizeOf(window) / window.rows);
          merger.feed(input, window, isLast);
        }),
      );
      // Requests and flushes get in between windows, merge and row groups, also when all of it is in memory already.
      await ports.clock.sleep(0);
      const merged = merger.take();
      await ports.clock.sleep(0);
      await outputs.add(merged);
    }
    return { outputs: await outputs.finish(), duplicates: merger.duplicates };
  } catch (error) {
    await outputs.abort();
    throw error;
  }
}
