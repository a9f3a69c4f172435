import { COMPACT_HELD_BYTES_MAX, COMPACT_HELD_FILE_BYTES_MAX } from '../core/base/compact-limits.ts';
import { SluiceError } from '../core/base/errors.ts';
import { COMPACT_PIECE_BYTES } from '../core/base/limits.ts';
import { currentOf } from '../core/commit/make-files.ts';
import type { DataFile, TableMetadata } from '../core/iceberg/types.ts';
import { columnHints } from '../core/parquet/column-hints.ts';
import { FileWindows, type WindowPorts } from './file-windows.ts';
import { isSorted, SortedFile, type Windows } from './sorted-file.ts';
import { runBounded } from './uploader.ts';

/** In the detail of errors that are about one of the inputs: its path. */
export const INPUT_PATH = 'data_file';

/** A file to be merged. */
export interface MergeInput {
  key: string;
  file: DataFile;
  /** It is not in the table's order, or is said not to be. */
  mustSort?: boolean;
}

/** Inputs that would take too much memory together. Nothing was read of them but their footers, nothing was written. */
export class HeldTooMuch extends Error {
  /** Of each input. */
  readonly heldBytes: readonly number[];

  constructor(heldBytes: readonly number[]) {
    super(`files to be merged hold ${heldBytes.reduce((sum, bytes) => sum + bytes, 0)} bytes`);
    this.heldBytes = heldBytes;
  }
}

/**
 * Opens the inputs of a merge, so that each gives its rows in the table's order. A file that is in none is read and sorted, one at a
 * time.
 *
 * @throws as `mergeFiles`
 */
export async function openInputs(
  ports: WindowPorts,
  inputs: readonly MergeInput[],
  metadata: TableMetadata,
): Promise<Windows[]> {
  const { schema, sortOrder: order } = currentOf(metadata);
  const files = await openFiles(ports, inputs, metadata);
  const heldBytes = files.map((file, i) => (inputs[i].mustSort ? file.wholeBytes : file.heldBytes));
  const leftFor = (i: number) =>
    heldBytes.reduce((left, bytes, at) => (at === i ? left : left - bytes), COMPACT_HELD_BYTES_MAX);
  if (leftFor(-1) < 0) throw new HeldTooMuch(heldBytes);
  const opened: Windows[] = [...files];
  for (const [i, file] of files.entries()) {
    if (!inputs[i].mustSort) continue;
    const bytesMax = Math.min(COMPACT_HELD_FILE_BYTES_MAX, leftFor(i));
    const sorted = await ofFile(inputs[i].file, SortedFile.load(file, { schema, order }, bytesMax));
    // Null: its rows take more than the footer told.
    heldBytes[i] = sorted?.bytes ?? bytesMax + 1;
    if (sorted === null) throw new HeldTooMuch(heldBytes);
    opened[i] = sorted;
  }
  return opened;
}

/** Paths of the inputs that are not in the table's order, though they say so. Reads them all. */
export async function unsortedInputs(
  ports: WindowPorts,
  inputs: readonly MergeInput[],
  metadata: TableMetadata,
): Promise<string[]> {
  const { sortOrder } = currentOf(metadata);
  const files = await openFiles(ports, inputs, metadata);
  const unsorted: string[] = [];
  for (const [i, file] of files.entries()) {
    const { file: dataFile, mustSort } = inputs[i];
    if (!mustSort && !(await isSorted(file, sortOrder))) unsorted.push(dataFile.filePath);
  }
  return unsorted;
}

async function openFiles(
  ports: WindowPorts,
  inputs: readonly MergeInput[],
  metadata: TableMetadata,
): Promise<FileWindows[]> {
  const { schema, spec } = currentOf(metadata);
  const hints = columnHints(metadata, spec['spec-id']);
  const files = new Array<FileWindows>(inputs.length);
  const pieceBytesMax = Math.floor(COMPACT_PIECE_BYTES / inputs.length);
  await runBounded(
    inputs.map(({ key, file }, i) => async () => {
      files[i] = await ofFile(file, FileWindows.open(ports, key, file, schema, pieceBytesMax, hints));
    }),
  );
  return files;
}

/** What reading one file comes to; its errors name it. */
export async function ofFile<T>({ filePath }: DataFile, reading: Promise<T>): Promise<T> {
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
