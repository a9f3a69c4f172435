import { SluiceError } from '../core/base/errors.ts';
import {
  COMPACT_PIECE_BYTES,
  COMPACT_RUN_FILES_MAX,
  COMPACT_WINDOW_BYTES,
  COMPACT_WINDOW_ROWS,
  TEXT_BYTES_GUESSED,
} from '../core/base/limits.ts';
import { byteSizeOf } from '../core/columns/row-bytes.ts';
import { storageOf } from '../core/columns/storage.ts';
import { currentOf, dedupOf } from '../core/commit/make-files.ts';
import type { DataFile, Schema } from '../core/iceberg/types.ts';
import { Merger } from '../core/maintain/merge.ts';
import { tableSettings } from '../core/table/properties.ts';
import { FileWindows, type WindowPorts } from './file-windows.ts';
import { OutputFiles, type OutputPlan, type OutputPorts } from './output-files.ts';
import { runBounded } from './uploader.ts';

/** In the detail of errors that are about one of the inputs: its path. */
export const INPUT_PATH = 'data_file';

export interface MergedFiles {
  outputs: DataFile[];
  /** Rows that lost against another of their key. */
  duplicates: number;
}

/** Bytes a row takes in a window, as far as the schema tells. */
export function rowBytesGuessed(schema: Schema): number {
  let bytes = 0;
  for (const { type } of schema.fields) {
    const storage = storageOf(type);
    bytes += 1;
    switch (storage.kind) {
      case 'boolean':
        bytes += 1;
        break;
      case 'int32':
      case 'float32':
        bytes += 4;
        break;
      case 'int64':
      case 'float64':
        bytes += 8;
        break;
      case 'fixed':
        bytes += storage.width;
        break;
      default:
        bytes += 4 + TEXT_BYTES_GUESSED;
    }
  }
  return bytes;
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
 * Merges sorted files of one partition, the oldest first, into new ones, and uploads those. What is in memory is bounded:
 * a window of each input, the rows of a step, a row group, a part.
 *
 * @throws corrupt `data-file-missing`, `parquet-corrupt`; invalid `parquet-unsupported`, all with `INPUT_PATH`; invalid
 * `unsorted-input`; StoreError
 */
export async function mergeFiles(
  ports: WindowPorts & OutputPorts,
  inputs: readonly { key: string; file: DataFile }[],
  plan: OutputPlan,
): Promise<MergedFiles> {
  const { schema, sortOrder } = currentOf(plan.metadata);
  const dedup = dedupOf(schema, tableSettings(plan.metadata.properties));
  const by = {
    schema,
    order: sortOrder,
    dedup: dedup === undefined ? ('none' as const) : { ingestTimeId: dedup.ingestTimeId },
  };
  const files = new Array<FileWindows>(inputs.length);
  const pieceBytesMax = Math.floor(COMPACT_PIECE_BYTES / inputs.length);
  await runBounded(
    inputs.map(({ key, file }, i) => async () => {
      files[i] = await ofFile(file, FileWindows.open(ports, key, file, schema, pieceBytesMax));
    }),
  );
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
      await outputs.add(merger.take());
      // Requests and flushes get in between, also when the next windows are in memory already.
      await ports.clock.sleep(0);
    }
    return { outputs: await outputs.finish(), duplicates: merger.duplicates };
  } catch (error) {
    await outputs.abort();
    throw error;
  }
}

/** What reading one file comes to; its errors name it. */
async function ofFile<T>({ filePath }: DataFile, reading: Promise<T>): Promise<T> {
  try {
    return await reading;
  } catch (error) {
    if (!(error instanceof SluiceError)) throw error;
    const { kind, type, message, detail } = error;
    const name = filePath.slice(filePath.lastIndexOf('/') + 1);
    const told = message.endsWith(name) ? message : `${message}: ${filePath}`;
    throw new SluiceError(kind, type, told, { ...detail, [INPUT_PATH]: filePath }, error);
  }
}
