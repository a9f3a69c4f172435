import type { IcebergBase } from '../core/commit/iceberg-base.ts';
import { currentSchema } from '../core/iceberg/metadata.ts';
import { type FileStatistics, fileStatistics } from '../core/maintain/file-statistics.ts';
import { smallBelow } from '../core/maintain/tiers.ts';
import { tableSettings } from '../core/table/properties.ts';
import type { LiveFiles } from './live-files.ts';
import { runBytesMaxOf } from './merge-files.ts';

/** What a table's live files look like. */
export interface FileListing {
  base: IcebergBase;
  statistics: FileStatistics;
  /** Files of deleted rows, which other engines write. */
  deleteFiles: number;
  /** Size at which files roll over, and below which a file is a small one. */
  targetBytes: number;
  smallBelow: number;
}

/** @throws see `LiveFiles.of` */
export async function listFiles(live: LiveFiles, base: IcebergBase): Promise<FileListing> {
  const { files, deletes } = await live.of(base);
  const { targetFileBytes: targetBytes } = tableSettings(base.metadata.properties);
  const below = smallBelow({ targetBytes, runBytesMax: runBytesMaxOf(currentSchema(base.metadata)) });
  return {
    base,
    statistics: fileStatistics(files, base.metadata, below),
    deleteFiles: deletes.length,
    targetBytes,
    smallBelow: below,
  };
}
