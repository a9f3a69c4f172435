import { TIMESTAMP_MICROS_MIN } from '../columns/times.ts';
import { type TimeField, timeFields, tupleTypesOf } from '../commit/file-filter.ts';
import { specById } from '../iceberg/metadata.ts';
import { boundOf } from '../iceberg/single-value.ts';
import type { ManifestFile, TableMetadata } from '../iceberg/types.ts';
import { tableSettings } from '../table/properties.ts';
import { type LiveFile, timeIdOf } from './live-files.ts';

/**
 * When data is past a table's retention. The rules are the engine's (docs/timelake-contract.md, section 10): a partition goes
 * whole, once it ends at or before now less the limit. Times in microseconds are of the data, those in milliseconds of the clock.
 */

/** The instant before which data goes, microseconds; null when the table keeps all: it says no limit, or has no time column. */
export function retentionCutoff(metadata: TableMetadata, nowMs: number): bigint | null {
  const { retentionMs } = tableSettings(metadata.properties);
  if (retentionMs === null || timeIdOf(metadata) === null) return null;
  const cutoff = BigInt(Math.floor(nowMs - retentionMs)) * 1000n;
  return cutoff <= TIMESTAMP_MICROS_MIN ? null : cutoff;
}

/** When data that ends at `endMicros` is past the table's retention; null: never. */
export function retentionDueMs(metadata: TableMetadata, endMicros: bigint | null): number | null {
  const { retentionMs } = tableSettings(metadata.properties);
  return endMicros === null || retentionMs === null ? null : ceilMs(endMicros) + retentionMs;
}

/**
 * The earliest end of a partition, as far as the rows of a manifest list tell; null when no file is in one. `unknown` when
 * the manifests must be asked: a writer left bounds out or spoilt them, or files are not partitioned by time.
 */
export function earliestEnd(rows: readonly ManifestFile[], metadata: TableMetadata): bigint | null | 'unknown' {
  const timeId = timeIdOf(metadata);
  let earliest: bigint | null = null;
  for (const row of rows) {
    if (row.content !== 0 || row.addedFilesCount + row.existingFilesCount === 0) continue;
    const field = timeId === null ? null : timePartitionOf(metadata, row.partitionSpecId, timeId);
    const summary = field === null ? undefined : row.partitions?.[field.index];
    if (field === null || summary === undefined) return 'unknown';
    const lower = boundOf(field.type, summary.lowerBound);
    if (lower === null) {
      // Nothing but nulls: files of no time.
      if (summary.lowerBound === null && summary.containsNull) continue;
      return 'unknown';
    }
    earliest = lesser(earliest, field.start(lower, 1));
  }
  return earliest;
}

/** Files counted that are past a limit. */
export interface PastFiles {
  files: number;
  rows: bigint;
  bytes: bigint;
  partitions: number;
}

/** Counts the files that end at or before `cutoff`, microseconds. */
export function pastFiles(files: readonly LiveFile[], metadata: TableMetadata, cutoff: bigint): PastFiles {
  const endOf = endsOf(metadata);
  const past = files.filter((file) => {
    const end = endOf(file);
    return end !== null && end <= cutoff;
  });
  return {
    files: past.length,
    rows: past.reduce((sum, { entry }) => sum + entry.dataFile.recordCount, 0n),
    bytes: past.reduce((sum, { entry }) => sum + entry.dataFile.fileSizeInBytes, 0n),
    partitions: new Set(past.map(({ partition }) => partition)).size,
  };
}

/** The same from the files themselves, of those that end after `afterMicros`; null when there are none. */
export function earliestEndOf(
  files: readonly LiveFile[],
  metadata: TableMetadata,
  afterMicros: bigint | null,
): bigint | null {
  const endOf = endsOf(metadata);
  let earliest: bigint | null = null;
  for (const file of files) {
    const end = endOf(file);
    if (end !== null && (afterMicros === null || end > afterMicros)) earliest = lesser(earliest, end);
  }
  return earliest;
}

/** First instant after a file: after its partition, or after its newest row where it is in none by time. */
function endsOf(metadata: TableMetadata): (file: LiveFile) => bigint | null {
  const timeId = timeIdOf(metadata);
  const fields = new Map(
    metadata['partition-specs'].map(({ 'spec-id': id }) => [
      id,
      timeId === null ? null : timePartitionOf(metadata, id, timeId),
    ]),
  );
  return ({ specId, entry, newestMicros }) => {
    const field = fields.get(specId) ?? null;
    if (field === null) return newestMicros === null ? null : newestMicros + 1n;
    const value = entry.dataFile.partition[field.index];
    return value === null ? null : field.start(value, 1);
  };
}

function timePartitionOf(metadata: TableMetadata, specId: number, timeId: number): TimeField | null {
  const spec = specById(metadata, specId);
  // A tuple of columns that no schema has any more cannot be read.
  if (spec === null || tupleTypesOf(spec, metadata) === null) return null;
  return timeFields(spec, timeId)[0] ?? null;
}

function lesser(one: bigint | null, other: bigint): bigint {
  return one === null || other < one ? other : one;
}

/** Rounded up: a millisecond before it, the last microseconds are not past yet. */
function ceilMs(micros: bigint): number {
  const ms = micros / 1000n;
  return Number(ms * 1000n < micros ? ms + 1n : ms);
}
