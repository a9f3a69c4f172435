import { corrupt, rejected } from '../core/base/errors.ts';
import { OPERATION_MANIFEST_BYTES_MAX, OPERATION_MANIFESTS_MAX } from '../core/base/limits.ts';
import type { ColumnFilter } from '../core/columns/row-filter.ts';
import { type FileMatcher, fileMatcher } from '../core/commit/file-filter.ts';
import { valueMatcher, valuesOfFile } from '../core/commit/value-matcher.ts';
import { readManifestList } from '../core/iceberg/manifest-list.ts';
import { DELETED, readManifest } from '../core/iceberg/manifest-read.ts';
import type { DataFile, ManifestEntry, ManifestFile, Schema, Snapshot, TableMetadata } from '../core/iceberg/types.ts';
import type { KnownValues, ValueTest } from '../core/iceberg/value-test.ts';
import { type ColumnHints, columnHints } from '../core/parquet/column-hints.ts';
import { keyAt } from '../engine/live-files.ts';
import type { TablePlace } from '../engine/open-table.ts';
import { runBounded } from '../engine/uploader.ts';
import type { ReadBudget } from './budget.ts';
import { type ReadPorts, readWhole } from './ports.ts';

/** A data file that may hold rows that are asked for. */
export interface Candidate {
  key: string;
  file: DataFile;
  /** Place among all candidates by age: rows of later files win over those of earlier ones. */
  rank: number;
  /** What its manifest says of the time column. */
  times: KnownValues;
  hints: ColumnHints;
}

export interface FilesWanted {
  schema: Schema;
  snapshot: Snapshot;
  timeId: number | null;
  /** Null leaves a side open; `to` is not in the range. */
  from: bigint | null;
  to: bigint | null;
  filters: readonly ColumnFilter[];
  tests: readonly ValueTest[];
}

/**
 * Data files of a snapshot that may hold wanted rows: manifests are left out by their partition summaries, files by partition
 * and bounds.
 *
 * @throws rejected `too-many-manifests`, `delete-files`, `unsupported-file`, `too-much-to-read`; corrupt; StoreError
 */
export async function planFiles(
  ports: ReadPorts,
  budget: ReadBudget,
  place: TablePlace,
  metadata: TableMetadata,
  wanted: FilesWanted,
): Promise<{ candidates: Candidate[]; considered: number }> {
  const { snapshot, schema, tests } = wanted;
  const matchers = matchersOf(wanted, metadata);
  const list = await readWhole(ports, budget, keyAt(place, snapshot['manifest-list']), 'manifest-list-missing');
  const rows = readManifestList(list, ports.codecs.deflate).filter(
    (row) => row.addedFilesCount + row.existingFilesCount > 0 && matchers.every(({ mayHold }) => mayHold(row)),
  );
  checkCount(rows);
  const required = new Set(schema.fields.filter((field) => field.required).map(({ id }) => id));
  const entries: { entry: ManifestEntry; specId: number }[] = [];
  let considered = 0;
  await runBounded(
    rows.map((row) => async () => {
      const bytes = await readWhole(ports, budget, keyAt(place, row.manifestPath), 'manifest-missing');
      const manifest = readManifest(bytes, {
        deflate: ports.codecs.deflate,
        row,
        schema,
        specs: metadata['partition-specs'],
      });
      for (const entry of manifest.entries) {
        if (entry.status === DELETED) continue;
        const { dataFile } = entry;
        if (row.content === 0) considered++;
        if (matchers.some((matcher) => matcher.match(row.partitionSpecId, dataFile) === 'outside')) continue;
        if (row.content === 1) throw deleteFiles(dataFile);
        const holds = (test: ValueTest) => test.mayHold(valuesOfFile(dataFile, test, required.has(test.fieldId)));
        if (dataFile.recordCount > 0n && tests.every(holds)) {
          entries.push({ entry, specId: row.partitionSpecId });
        }
      }
    }),
  );
  entries.sort((a, b) => byAge(a.entry, b.entry));
  const isRequired = wanted.timeId !== null && required.has(wanted.timeId);
  const specIds = new Set(entries.map(({ specId }) => specId));
  const hints = new Map(Array.from(specIds, (specId) => [specId, columnHints(metadata, specId)]));
  return {
    candidates: entries.map(({ entry, specId }, rank) => ({
      ...candidateOf(place, entry, rank, wanted.timeId, isRequired),
      hints: hints.get(specId) as ColumnHints,
    })),
    considered,
  };
}

function matchersOf({ from, to, filters }: FilesWanted, metadata: TableMetadata): FileMatcher[] {
  const matchers = filters.length === 0 ? [] : [valueMatcher(filters, metadata)];
  return from === null && to === null
    ? matchers
    : [...matchers, fileMatcher({ kind: 'time-range', from, to }, metadata)];
}

function checkCount(rows: readonly ManifestFile[]): void {
  const bytes = rows.reduce((sum, row) => sum + Number(row.manifestLength), 0);
  if (rows.length <= OPERATION_MANIFESTS_MAX && bytes <= OPERATION_MANIFEST_BYTES_MAX) return;
  throw rejected('too-many-manifests', `too many manifests would have to be read: count=${rows.length} bytes=${bytes}`);
}

function deleteFiles({ filePath }: DataFile) {
  return rejected(
    'delete-files',
    `rows are deleted by a file that is not applied here; read the table with an engine: ${filePath}`,
  );
}

/** Data sequence number, then path: the order in which compaction takes files too. */
function byAge(a: ManifestEntry, b: ManifestEntry): number {
  const [x, y] = [a.sequenceNumber ?? 0n, b.sequenceNumber ?? 0n];
  if (x !== y) return x < y ? -1 : 1;
  return a.dataFile.filePath < b.dataFile.filePath ? -1 : 1;
}

function candidateOf(
  place: TablePlace,
  { dataFile: file }: ManifestEntry,
  rank: number,
  timeId: number | null,
  isRequired: boolean,
): Omit<Candidate, 'hints'> {
  if (file.fileFormat.toUpperCase() !== 'PARQUET' || file.keyMetadata !== null) {
    throw rejected('unsupported-file', `data file is encrypted or no Parquet file: ${file.filePath}`);
  }
  if (file.fileSizeInBytes < 12n) throw corrupt('parquet-corrupt', `data file is too short: ${file.filePath}`);
  const key = keyAt(place, file.filePath);
  const test = { fieldId: timeId ?? 0, type: 'timestamptz', mayHold: () => true } as const;
  return { key, file, rank, times: valuesOfFile(file, test, isRequired) };
}
