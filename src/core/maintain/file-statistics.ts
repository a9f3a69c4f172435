import { tupleTypesOf } from '../commit/file-filter.ts';
import { specById } from '../iceberg/metadata.ts';
import { partitionLabel } from '../iceberg/partition-spec.ts';
import type { PartitionSpec, PrimitiveType, TableMetadata } from '../iceberg/types.ts';
import type { LiveFile } from './live-files.ts';
import { tierOf } from './tiers.ts';

/** Live data files counted together. */
export interface FileCounts {
  files: number;
  rows: bigint;
  bytes: bigint;
  /** Those that compaction would merge with others. */
  smallFiles: number;
  /** Files by tier of size, from the lowest. */
  tiers: number[];
}

export interface PartitionCounts extends FileCounts {
  specId: number;
  /** Partition field → label as filters take it (`2026-01-03`); null is null. */
  partition: Record<string, string | null>;
}

export interface FileStatistics {
  all: FileCounts;
  /** In the order of their labels. */
  partitions: PartitionCounts[];
}

/** Counts the live data files of a table, whole and by partition. `smallBelow`: bytes at which a file is no small one. */
export function fileStatistics(
  files: readonly LiveFile[],
  metadata: TableMetadata,
  smallBelow: number,
): FileStatistics {
  const all = noFiles();
  const partitions = new Map<string, PartitionCounts>();
  for (const file of files) {
    let counts = partitions.get(file.partition);
    if (counts === undefined) {
      counts = { specId: file.specId, partition: labelsOf(file, metadata), ...noFiles() };
      partitions.set(file.partition, counts);
    }
    for (const into of [all, counts]) count(into, file, smallBelow);
  }
  return { all, partitions: [...partitions.values()].sort(byLabel) };
}

function noFiles(): FileCounts {
  return { files: 0, rows: 0n, bytes: 0n, smallFiles: 0, tiers: [] };
}

function count(counts: FileCounts, { entry }: LiveFile, smallBelow: number): void {
  const { recordCount, fileSizeInBytes } = entry.dataFile;
  const tier = tierOf(Number(fileSizeInBytes));
  while (counts.tiers.length <= tier) counts.tiers.push(0);
  counts.tiers[tier]++;
  counts.files++;
  counts.rows += recordCount;
  counts.bytes += fileSizeInBytes;
  if (Number(fileSizeInBytes) < smallBelow) counts.smallFiles++;
}

/** Empty for a spec whose columns are in no schema any more: its values cannot be read. */
function labelsOf({ specId, entry }: LiveFile, metadata: TableMetadata): Record<string, string | null> {
  const spec: PartitionSpec | null = specById(metadata, specId);
  const types: PrimitiveType[] | null = spec === null ? null : tupleTypesOf(spec, metadata);
  if (spec === null || types === null) return {};
  return Object.fromEntries(
    spec.fields.map(({ name, transform }, i) => {
      const value = entry.dataFile.partition[i];
      return [name, value === null ? null : partitionLabel(transform, types[i], value)];
    }),
  );
}

function byLabel(a: PartitionCounts, b: PartitionCounts): number {
  const [one, other] = [a, b].map(({ specId, partition }) => `${Object.values(partition).join('\u0000')} ${specId}`);
  return one < other ? -1 : one > other ? 1 : 0;
}
