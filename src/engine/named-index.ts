import type { Decompress } from '../core/base/codecs.ts';
import { SluiceError } from '../core/base/errors.ts';
import { INDEX_FILE_BYTES_MAX } from '../core/base/index-limits.ts';
import type { Columns } from '../core/columns/columns.ts';
import { indexOf } from '../core/commit/last-value.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import type { TableMetadata } from '../core/iceberg/types.ts';
import { readIndex } from '../core/lastvalue/index-file.ts';
import type { Store } from '../store/store.ts';
import { keyAt } from './live-files.ts';
import type { TablePlace } from './open-table.ts';
import type { Clock, Random } from './ports.ts';
import { persevere } from './uploader.ts';

/**
 * Rows of the last-value index that the current snapshot names; null when it names none, or one that is missing, damaged, too
 * large or outside of the table's folder.
 *
 * @throws StoreError
 */
export async function readNamedIndex(
  ports: { store: Store; clock: Clock; random: Random; decompress: Decompress },
  place: TablePlace,
  metadata: TableMetadata,
): Promise<Columns | null> {
  const location = indexOf(metadata);
  if (location === null || !location.startsWith(`${place.location}/`)) return null;
  const key = keyAt(place, location);
  const bytes = await persevere(ports, () => ports.store.getRange(key, 0, INDEX_FILE_BYTES_MAX + 1));
  if (bytes === null || bytes.length > INDEX_FILE_BYTES_MAX) return null;
  try {
    return readIndex(bytes, currentSchema(metadata), ports.decompress);
  } catch (error) {
    if (error instanceof SluiceError) return null;
    throw error;
  }
}
